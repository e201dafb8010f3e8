// presk run: one entry, once.
#include "cli/execute.h"
#include "cli/values.h"

#include <stdio.h>

static int choose_backend(CliArgs *args, const char *option, RtBackend *backend) {
    const char *text = cli_text(args, option);
    if (!text || cli_backend_of_text(text, backend))
        return CLI_FINE;
    return cli_usage(args, "--%s is ref, kernel or native, not `%s`", option, text);
}

// The launches that the same entry has without fusion.
static uint32_t launches_without_fusion(CliEntry *entry) {
    CoreArithmetic *unfused =
        rlz_arithmetic(entry->core, entry->args->arena, entry->realization, false);
    RtOptions saved = entry->options;
    entry->options.arithmetic = unfused;
    entry->options.plan = NULL;
    entry->options.depth = RT_TO_COUNT;
    RtProgram *program = cli_entry_build(entry);
    entry->options = saved;
    return program ? rt_launch_count(program) : 0;
}

static void print_summary(CliEntry *entry, const CliExecution *execution) {
    Arena *arena = entry->args->arena;
    if (!execution->program) {
        printf("  launches    %llu, were they kernels\n  time        %s\n",
               (unsigned long long)execution->launches,
               cli_seconds_text(arena, execution->seconds).at);
        return;
    }
    RtSummary summary = rt_summary(execution->program);
    printf("  plan        %s\n", cli_plan_text(entry, execution->program, NULL).at);
    printf("  launches    %u", summary.launches);
    if (entry->arithmetic->fusion)
        printf(" (%u without fusion)", launches_without_fusion(entry));
    printf(", %u kernel%s\n  memory      %s for intermediates and results\n", summary.kernels,
           summary.kernels == 1 ? "" : "s", cli_bytes_text(arena, (double)summary.peak_bytes).at);
    printf("  time        %s", cli_seconds_text(arena, execution->seconds).at);
    printf(" (built in %s", cli_seconds_text(arena, summary.build_seconds).at);
    if (entry->options.native) {
        NatStatistics native = nat_statistics(entry->options.native);
        printf("; %u kernel%s compiled, %u from the cache, in %s", native.compiled,
               native.compiled == 1 ? "" : "s", native.loaded,
               cli_seconds_text(arena, summary.compile_seconds).at);
    }
    printf(")\n");
}

// The same values on another backend.
static int compare(CliEntry *entry, const CliExecution *execution, RtBackend other,
                   CliDifference *difference) {
    CliExecution again;
    int status = cli_entry_backend(entry, other, RT_TO_RUN);
    if (!status)
        status = cli_execute(entry, &again);
    if (!status)
        *difference = cli_compare_results(entry, &execution->result, &again.result);
    return status;
}

static int finish(CliEntry *entry, CliExecution *execution, RtBackend other) {
    CliArgs *args = entry->args;
    RtBackend backend = entry->options.backend;
    bool json = cli_flag(args, "json"), compared = cli_text(args, "compare") != NULL;
    CliNamedTensor *tensors;
    uint32_t count = cli_result_tensors(entry, &execution->result, &tensors);
    if (!json) {
        print_summary(entry, execution);
        putchar('\n');
        cli_print_tensors(entry, count, tensors);
    }
    const char *out = cli_text(args, "out");
    if (out && !cli_values_write(entry, out, count, tensors))
        return cli_report(args);
    CliDifference difference = {.same = true};
    int status = compared ? compare(entry, execution, other, &difference) : CLI_FINE;
    if (status)
        return status;
    entry->options.backend = backend;
    if (json)
        cli_json_result(entry, execution, count, tensors, compared ? &difference : NULL, other);
    else if (compared)
        cli_print_difference(&difference, cli_backend_text(backend), cli_backend_text(other));
    return difference.same ? cli_report(args) : CLI_GATE;
}

static int run(CliArgs *args) {
    RtBackend backend = RT_NATIVE, other = RT_REF;
    int status = choose_backend(args, "backend", &backend);
    if (!status)
        status = choose_backend(args, "compare", &other);
    CliEntry entry = {0};
    CliExecution execution;
    if (!status)
        status = cli_entry_open(args, &entry);
    const char *out = cli_text(args, "out");
    if (!status && out)
        status = cli_values_can_write(&entry, out);
    if (!status)
        status = cli_entry_values(&entry);
    if (!status)
        status = cli_entry_backend(&entry, backend, RT_TO_RUN);
    const char *folder = cli_text(args, "save-values");
    if (!status && folder && !cli_values_save(&entry, folder))
        status = cli_report(args);
    if (!status && !cli_flag(args, "json"))
        cli_print_header(&entry);
    if (!status)
        status = cli_execute(&entry, &execution);
    if (!status)
        status = finish(&entry, &execution, other);
    cli_entry_close(&entry);
    return status;
}

static const CliOption options[] = {
    CLI_ENTRY_OPTIONS,
    CLI_VALUE_OPTIONS,
    {"backend", CLI_TEXT, "B", "ref, kernel or native (default)"},
    {"compare", CLI_TEXT, "B", "run on this backend too and compare bits (exit status 3)"},
    {"out", CLI_TEXT, "@F", "the file for the result: .npy, .psk.d, .safetensors (also -o)"},
    {"save-values", CLI_TEXT, "DIR", "write inputs (.npy) and parameters (.safetensors) there"},
    {"json", CLI_FLAG, NULL, "one JSON object on stdout"},
    {0},
};

const CliCommand cli_command_run = {
    .name = "run",
    .usage = "FILE.psk [--entry F] [options]",
    .summary = "run one function of a program",
    .details =
        "Without --in and --params, everything is drawn from --seed. The backends give the same\n"
        "bits: ref is the plain evaluator of Core, kernel interprets kernels, native compiles "
        "them.",
    .examples =
        "  presk run corpus/nlp/05_gpt.psk --entry loss --dim B=2 --dim T=32 --const D=64 "
        "--const H=2\n"
        "  presk run corpus/nlp/05_gpt.psk --batch 0 --seed 0 --backend kernel --compare ref\n"
        "  presk run examples/layer.psk --entry score --in x=@x.npy --params @p.safetensors -o "
        "y.npy",
    .options = options,
    .min = 1,
    .max = 1,
    .run = run,
};
