// presk man: the manual page, from the same tables as help. `presk man | man -l -` shows it.
#include "cli/cli.h"

#include <stdio.h>

// Text for roff: hyphens stay hyphens, backslashes are spelled out, and no line is a request.
static void print_text(const char *text) {
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        begins = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_section(const char *title) {
    printf(".SH %s\n", title);
}

// Lines as they are.
static void print_block(const char *text) {
    fputs(".PP\n.nf\n", stdout);
    print_text(text);
    fputs("\n.fi\n", stdout);
}

static void print_option(Arena *arena, const CliOption *option) {
    fputs(".TP\n.B ", stdout);
    print_text(cli_option_text(arena, option).at);
    putchar('\n');
    print_text(option->help);
    puts(option->kind == CLI_LIST ? " (may be repeated)" : "");
}

static void print_command(Arena *arena, const CliCommand *command) {
    printf(".SS presk %s\n", command->name);
    print_text(command->summary);
    fputs(".\n", stdout);
    print_block(str_format(arena, "presk %s %s", command->name, command->usage).at);
    if (command->details)
        print_block(command->details);
    for (const CliOption *o = command->options; o->name; o++)
        print_option(arena, o);
    fputs(".PP\nExamples:\n", stdout);
    print_block(command->examples);
}

static const struct {
    const char *name, *meaning;
} environment[] = {
    {"PRESK_THREADS", "the number of workers where --threads is not given"},
    {"PRESK_CACHE",
     "the folder of compiled kernels (default: presk in $XDG_CACHE_HOME or ~/.cache)"},
    {"PRESK_LIB", "the folder of libpresk_llvm.so, which compiles kernels"},
    {"NO_COLOR", "if set, no colours"},
};

static const char *const statuses[] = {
    "0",  "fine",
    "1",  "diagnostics: the program, a plan or the data is wrong",
    "2",  "the command line is wrong",
    "3",  "a comparison or a limit was missed",
    "70", "a fault of presk itself",
};

static void print_item(const char *name, const char *meaning) {
    printf(".TP\n.B %s\n", name);
    print_text(meaning);
    putchar('\n');
}

static int run(CliArgs *args) {
    printf(".TH PRESK 1\n");
    print_section("NAME");
    printf("presk \\- %s\n", cli_title);
    print_section("SYNOPSIS");
    print_block("presk COMMAND …\npresk COMMAND --help\npresk --version");
    print_section("COMMANDS");
    for (uint32_t i = 0; i < CLI_COMMAND_COUNT; i++)
        print_command(args->arena, cli_commands[i]);
    print_section("OPTIONS OF ALL COMMANDS");
    for (const CliOption *o = cli_common_options; o->name; o++)
        print_option(args->arena, o);
    print_section("EXIT STATUS");
    for (uint32_t i = 0; i < COUNT_OF(statuses); i += 2)
        print_item(statuses[i], statuses[i + 1]);
    print_section("ENVIRONMENT");
    for (uint32_t i = 0; i < COUNT_OF(environment); i++)
        print_item(environment[i].name, environment[i].meaning);
    return CLI_FINE;
}

static const CliOption options[] = {{0}};

const CliCommand cli_command_man = {
    .name = "man",
    .usage = "",
    .summary = "the manual page, as roff",
    .examples = "  presk man | man -l -",
    .options = options,
    .min = 0,
    .max = 0,
    .run = run,
};
