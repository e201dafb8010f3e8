// presk check: parse, check, and say what is wrong.
#include "base/file.h"
#include "cli/load.h"
#include "driver.h"

#include <stdio.h>

static int explain(CliArgs *args, const char *code) {
    for (DiagCode i = 0; i < DIAG_CODE_COUNT; i++)
        if (strcmp(diag_code_text(i), code) == 0) {
            printf("%s: %s\n", code, diag_code_explanation(i));
            return CLI_FINE;
        }
    return cli_usage(args, "there is no diagnostic `%s`", code);
}

static int run(CliArgs *args) {
    const char *code = cli_text(args, "explain");
    if (code)
        return explain(args, code);
    if (args->count < 1)
        return cli_usage(args, "which file?");
    uint32_t count;
    ChkConst *consts;
    if (!cli_consts(args, &count, &consts))
        return CLI_USAGE;
    double started = clock_seconds();
    PreskCompiled compiled;
    presk_compile(args->context, args->arena, args->positional[0], count, consts, NULL, &compiled);
    if (cli_flag(args, "json")) {
        fputs(diags_render(&args->context->diags, args->arena, DIAG_JSON).at, stdout);
        return args->context->diags.errors ? CLI_DIAGNOSTICS : CLI_FINE;
    }
    int status = cli_report(args);
    if (status == CLI_FINE && !args->quiet)
        fprintf(stderr, "%s: %u functions, %u lines, no errors (%.1f ms)\n", args->positional[0],
                compiled.functions, compiled.program->lines, (clock_seconds() - started) * 1e3);
    return status;
}

static const CliOption options[] = {
    {"const", CLI_LIST, "X=value", "another value for a constant of the program"},
    {"json", CLI_FLAG, NULL, "diagnostics as JSON on stdout"},
    {"explain", CLI_TEXT, "CODE", "what a diagnostic's code means"},
    {0},
};

const CliCommand cli_command_check = {
    .name = "check",
    .usage = "FILE.psk [options]",
    .summary = "parse and type-check a program",
    .details = "Prints every error with its source line, what was expected and the nearest legal\n"
               "spelling. The exit status is 1 if there were errors.",
    .examples = "  presk check corpus/nlp/05_gpt.psk\n"
                "  presk check corpus/nlp/05_gpt.psk --const D=64 --const H=2\n"
                "  presk check --explain E2003",
    .options = options,
    .min = 0,
    .max = 1,
    .run = run,
};
