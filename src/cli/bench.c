// presk bench: one entry, timed: the whole of it, then each nest alone.
#include "base/file.h"
#include "cli/execute.h"
#include "realize/dump.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Times {
    double median, min, p90;
} Times;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static Times times_of(double *seconds, uint32_t count) {
    qsort(seconds, count, sizeof *seconds, by_value);
    return (Times){seconds[count / 2], seconds[0], seconds[(count * 9) / 10]};
}

// ---- nests ----------------------------------------------------------------------------------

// The launches of one site at one shape: what a table row stands for.
typedef struct NestRow {
    const RtLaunch *launch;
    uint32_t launches;
    double seconds; // of all its launches in one run
} NestRow;

// Runs a launch for at least a fiftieth of a millisecond a sample, so that the clock's own cost
// does not count, and takes the median of the samples.
static double time_launch(RtProgram *program, uint32_t index, uint32_t samples, double *seconds) {
    double started = clock_seconds();
    rt_run_launch(program, index);
    double once = clock_seconds() - started;
    uint32_t repeat = once < 2e-5 ? (uint32_t)MIN(1000.0, 2e-5 / fmax(once, 2e-8)) + 1 : 1;
    for (uint32_t s = 0; s < samples; s++) {
        started = clock_seconds();
        for (uint32_t r = 0; r < repeat; r++)
            rt_run_launch(program, index);
        seconds[s] = (clock_seconds() - started) / repeat;
    }
    return times_of(seconds, samples).median;
}

static uint32_t time_nests(CliEntry *entry, RtProgram *program, uint32_t samples, NestRow **rows) {
    Arena *arena = entry->args->arena;
    uint32_t launches = rt_launch_count(program), count = 0;
    *rows = arena_array(arena, NestRow, launches + 1);
    double *seconds = arena_array(arena, double, samples);
    Map *row_of = map_new(arena);
    Progress progress;
    progress_begin(&progress, "timing nests", entry->args->quiet);
    for (uint32_t i = 0; i < launches; i++) {
        const RtLaunch *launch = rt_launch_at(program, i);
        struct {
            CoreFnId fn;
            CoreLetId let;
            RtKernel *kernel;
        } key = {launch->fn, launch->let, launch->kernel};
        bool fresh;
        uint32_t *slot = map_slot(row_of, &key, sizeof key, &fresh);
        if (fresh) {
            *slot = count;
            (*rows)[count++] = (NestRow){.launch = launch};
        }
        NestRow *row = &(*rows)[*slot];
        row->launches++;
        row->seconds += time_launch(program, i, samples, seconds);
        progress_update(&progress, i + 1, launches, "");
    }
    progress_end(&progress);
    return count;
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const NestRow *)a)->seconds, y = ((const NestRow *)b)->seconds;
    return (x < y) - (x > y);
}

static void print_nests(CliEntry *entry, NestRow *rows, uint32_t count, double total) {
    Arena *arena = entry->args->arena;
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += rows[i].seconds;
    printf("\n  %-30s %8s %9s %6s %9s %8s  nest\n", "site", "launches", "time", "share", "GFLOP/s",
           "GB/s");
    for (uint32_t i = 0; i < count; i++) {
        const NestRow *row = &rows[i];
        const RlzNest *nest = row->launch->nest;
        double each = row->seconds / row->launches;
        printf("  %-30s %8u %9s %5.1f%% %9.2f %8.2f  %s\n",
               core_site_text(entry->core, row->launch->fn, row->launch->let, arena).at,
               row->launches, cli_seconds_text(arena, row->seconds).at, 100 * row->seconds / sum,
               rlz_nest_flops(nest) / each * 1e-9, rlz_nest_bytes(nest) / each * 1e-9,
               rlz_nest_line(nest, &row->launch->layout, arena).at);
    }
    printf("  nests alone take %s, %.0f%% of the run\n", cli_seconds_text(arena, sum).at,
           100 * sum / total);
}

// ---- the whole entry ------------------------------------------------------------------------

static int bad_other(CliArgs *args, const char *spec) {
    return cli_usage(
        args, "--vs is @PLAN, plan=default, fusion=off, threads=N or target=BITS, not `%s`", spec);
}

// The other program of --vs, built with one thing changed.
static int open_other(CliEntry *entry, const char *spec, CliEntry *other) {
    CliArgs *args = entry->args;
    Str name, value;
    *other = *entry;
    if (spec[0] == '@')
        return cli_entry_replan(other, "--vs", spec);
    if (!cli_split(args->arena, spec, &name, &value))
        return bad_other(args, spec);
    if (str_is(name, "plan"))
        return cli_entry_replan(other, "--vs plan", value.at);
    if (str_is(name, "fusion") && str_is(value, "off")) {
        other->arithmetic = rlz_arithmetic(entry->core, args->arena, entry->realization, false);
        other->options.arithmetic = other->arithmetic;
        return CLI_FINE;
    }
    char *end;
    unsigned long number = strtoul(value.at, &end, 10);
    if (str_is(name, "threads") && !*end && number >= 1 && number <= 1024) {
        other->options.pool = pool_new((uint32_t)number);
        if (!other->options.pool)
            diag(&args->context->diags, E6017, (Span){0}, value.at);
        return cli_report(args);
    }
    if (str_is(name, "target") && (number == 128 || number == 256 || number == 512) &&
        number <= nat_machine_target()) {
        other->options.target = (RlzTarget)number;
        NatOptions native = {.target = (uint32_t)number, .threads = pool_default_workers()};
        other->options.native = nat_new(args->context, args->arena, &native);
        return other->options.native ? CLI_FINE : cli_report(args);
    }
    return bad_other(args, spec);
}

static void close_other(const CliEntry *entry, CliEntry *other) {
    if (other->options.pool != entry->options.pool)
        pool_free(other->options.pool);
    if (other->options.native != entry->options.native)
        nat_free(other->options.native);
}

static double timed_run(RtProgram *program) {
    double started = clock_seconds();
    rt_run(program);
    return clock_seconds() - started;
}

// How much longer the other program takes.
typedef struct Race {
    const char *against; // null: there was none
    double median, low, high;
} Race;

// Runs both programs in turn, so that a slow spell of the machine meets both; the ratio is taken
// within each round.
static int race(CliEntry *entry, RtProgram *program, const char *spec, uint32_t runs,
                Race *result) {
    CliEntry other;
    int status = open_other(entry, spec, &other);
    if (status)
        return status;
    RtProgram *against = cli_entry_build(&other);
    if (!against) {
        close_other(entry, &other);
        return cli_report(entry->args);
    }
    double *ratio = arena_array(entry->args->arena, double, runs);
    timed_run(program);
    timed_run(against);
    for (uint32_t i = 0; i < runs; i++) {
        double first = timed_run(program);
        ratio[i] = timed_run(against) / first;
    }
    *result = (Race){spec, times_of(ratio, runs).median, ratio[0], ratio[runs - 1]};
    close_other(entry, &other);
    return CLI_FINE;
}

static json_t *nest_json(CliEntry *entry, const NestRow *row) {
    Arena *arena = entry->args->arena;
    const RlzNest *nest = row->launch->nest;
    double each = row->seconds / row->launches;
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:f, s:f}", "site",
                     core_site_text(entry->core, row->launch->fn, row->launch->let, arena).at,
                     "kind", rlz_kind_text(nest->kind), "axes", rlz_nest_shape(nest, arena).at,
                     "layout", rlz_layout_text(nest, &row->launch->layout, arena).at, "launches",
                     (int)row->launches, "median_s", each, "gflops",
                     rlz_nest_flops(nest) / each * 1e-9, "gbytes_s",
                     rlz_nest_bytes(nest) / each * 1e-9);
}

static void print_json(CliEntry *entry, const RtProgram *program, Times times, uint32_t runs,
                       const NestRow *rows, uint32_t count, const Race *other) {
    RtSummary summary = rt_summary(program);
    json_t *nests = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(nests, nest_json(entry, &rows[i]));
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:i, s:f, s:f, s:I, s:f, s:o}", "entry",
        name_c(entry->args->context->names, entry->binding->fn->name), "backend",
        cli_backend_text(entry->options.backend), "realization", entry->realization->name.at,
        "plan", cli_plan_text(entry, program, NULL).at, "threads",
        (int)pool_workers(entry->options.pool), "runs", (int)runs, "median_s", times.median,
        "min_s", times.min, "p90_s", times.p90, "launches", (int)summary.launches, "flops",
        summary.flops, "bytes", summary.bytes, "peak_bytes", (json_int_t)summary.peak_bytes,
        "compile_s", summary.compile_seconds, "nests", nests);
    if (other->against)
        json_object_set_new(object, "vs",
                            json_pack("{s:s, s:f, s:f, s:f}", "against", other->against, "ratio",
                                      other->median, "smallest", other->low, "largest",
                                      other->high));
    char *text = json_dumps(object, JSON_INDENT(2));
    puts(text);
    free(text);
    json_decref(object);
}

static void print_times(CliEntry *entry, const RtProgram *program, Times times, uint32_t runs,
                        const Race *other) {
    RtSummary summary = rt_summary(program);
    Arena *arena = entry->args->arena;
    printf("  plan        %s\n", cli_plan_text(entry, program, NULL).at);
    printf("  time        %s (median of %u; fastest %s, nine tenths within %s)\n",
           cli_seconds_text(arena, times.median).at, runs, cli_seconds_text(arena, times.min).at,
           cli_seconds_text(arena, times.p90).at);
    printf("  work        %.3g GFLOP/s, %.3g GB/s; launches %u, kernels %u, peak %s\n",
           summary.flops / times.median * 1e-9, summary.bytes / times.median * 1e-9,
           summary.launches, summary.kernels, cli_bytes_text(arena, (double)summary.peak_bytes).at);
    if (other->against)
        printf("  against     %s takes %.3f times as long (median of %u interleaved rounds, from "
               "%.3f to %.3f)\n",
               other->against, other->median, runs, other->low, other->high);
}

static int bench(CliEntry *entry, uint32_t runs) {
    CliArgs *args = entry->args;
    RtProgram *program = cli_entry_build(entry);
    if (!program)
        return cli_report(args);
    double *seconds = arena_array(args->arena, double, runs);
    timed_run(program); // pages and caches
    Progress progress;
    progress_begin(&progress, "timing runs", args->quiet);
    for (uint32_t i = 0; i < runs; i++) {
        seconds[i] = timed_run(program);
        progress_update(&progress, i + 1, runs, "");
    }
    progress_end(&progress);
    Times times = times_of(seconds, runs);
    NestRow *rows;
    uint32_t count = time_nests(entry, program, MIN(runs, 9), &rows);
    qsort(rows, count, sizeof *rows, by_seconds);
    Race other = {0};
    const char *vs = cli_text(args, "vs");
    int status = vs ? race(entry, program, vs, runs, &other) : CLI_FINE;
    if (status)
        return status;
    if (cli_flag(args, "json")) {
        print_json(entry, program, times, runs, rows, count, &other);
        return CLI_FINE;
    }
    print_times(entry, program, times, runs, &other);
    print_nests(entry, rows, count, times.median);
    return CLI_FINE;
}

static int run(CliArgs *args) {
    CliEntry entry = {0};
    RtBackend backend = RT_NATIVE;
    const char *text = cli_text(args, "backend");
    if (text && (!cli_backend_of_text(text, &backend) || backend == RT_REF))
        return cli_usage(args, "--backend is kernel or native, not `%s`", text);
    int64_t runs = cli_number(args, "runs", 21);
    if (runs < 1 || runs > 1000000)
        return cli_usage(args, "--runs is 1 to 1000000, not %lld", (long long)runs);
    int status = cli_entry_open(args, &entry);
    if (!status)
        status = cli_entry_values(&entry);
    if (!status)
        status = cli_entry_backend(&entry, backend, RT_TO_RUN);
    if (!status && !cli_flag(args, "json"))
        cli_print_header(&entry);
    if (!status)
        status = bench(&entry, (uint32_t)runs);
    cli_entry_close(&entry);
    return status;
}

static const CliOption options[] = {
    CLI_ENTRY_OPTIONS,
    CLI_VALUE_OPTIONS,
    {"backend", CLI_TEXT, "B", "kernel or native (default)"},
    {"runs", CLI_NUMBER, "N", "timed runs (default 21)"},
    {"vs", CLI_TEXT, "X=v",
     "race against @PLAN, plan=default, fusion=off, threads=N or target=BITS"},
    {"json", CLI_FLAG, NULL, "one JSON object on stdout"},
    {0},
};

const CliCommand cli_command_bench = {
    .name = "bench",
    .usage = "FILE.psk [--entry F] [options]",
    .summary = "time one function of a program, nest by nest",
    .details =
        "The whole entry is timed first, then each nest alone, on the values of the last run.\n"
        "A nest's GB/s counts each operand once.",
    .examples =
        "  presk bench corpus/nlp/05_gpt.psk --entry loss --dim B=2 --dim T=32 --const D=64 "
        "--const H=2 --const L=2\n"
        "  presk bench corpus/nlp/05_gpt.psk --entry GPT.apply --dim B=4 --dim T=64 "
        "--vs fusion=off\n"
        "  presk bench tests/plan/two_dots.psk --plan @tests/plan/two_dots.json --vs plan=default",
    .options = options,
    .min = 1,
    .max = 1,
    .run = run,
};
