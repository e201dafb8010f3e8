// What a training run says: its head, its lines, its log and its summary.
#include "base/file.h"
#include "cli/execute.h"
#include "cli/train_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static CliArgs *args_of(const CliTrainRun *run) {
    return run->training.entry.args;
}

static const char *fn_name(const CliTrainRun *run, CoreFnId fn) {
    return name_c(args_of(run)->context->names, core_fn(run->trainer->core, fn)->name);
}

// "107,228"
static Str count_text(Arena *arena, uint64_t count) {
    Str digits = str_format(arena, "%llu", (unsigned long long)count);
    StrBuf text = {.arena = arena};
    for (uint32_t i = 0; i < digits.size; i++) {
        if (i && (digits.size - i) % 3 == 0)
            buf_char(&text, ',');
        buf_char(&text, digits.at[i]);
    }
    return buf_str(&text);
}

// ---- head -------------------------------------------------------------------------------------

static void print_data(const CliTrainRun *run) {
    Arena *arena = args_of(run)->arena;
    const RtStream *stream = &run->training.stream;
    printf("  data        %s: %s samples, %s batches an epoch%s\n", run->training.data_path,
           count_text(arena, stream->samples).at, count_text(arena, stream->batches).at,
           stream->spec.shuffle ? ", shuffled" : "");
}

void cli_train_print_header(CliTrainRun *run) {
    CliEntry *entry = &run->training.entry;
    Arena *arena = args_of(run)->arena;
    uint64_t parameters = 0;
    for (uint32_t i = 0; i < run->trainer->leaves; i++)
        parameters += (uint64_t)shape_count(&run->trainer->arguments[0].parts[i].tensor.shape);
    StrBuf values = {.arena = arena};
    buf_format(&values, "%s parameters in %u tensors", count_text(arena, parameters).at,
               run->trainer->leaves);
    if (run->first)
        buf_format(&values, ", resumed at step %llu", (unsigned long long)run->first);
    else
        buf_format(&values, " of seed %llu", (unsigned long long)run->trainer->spec.seed);
    entry->values = buf_str(&values);
    cli_print_header(entry);
    print_data(run);
    printf("  optimizer   %s", fn_name(run, run->trainer->spec.step));
    for (uint32_t i = 0; i < run->hypers; i++)
        printf("%s %s = %s", i ? "," : ":",
               name_c(args_of(run)->context->names, run->hyper[i].name),
               run->hyper[i].schedule ? run->hyper[i].text.at
                                      : str_of_double(arena, run->hyper[i].value).at);
    printf("\n  plan        %s\n", run->plan.at);
    if (!run->first && run->checkpoint && file_exists(rt_state_path(arena, run->checkpoint).at))
        printf("  replaces    %s, which is there; --resume would go on from it\n", run->checkpoint);
    fflush(stdout);
}

// ---- lines and log ----------------------------------------------------------------------------

static double rate(const CliTrainRun *run, const char **unit) {
    const RtStreamSpec *spec = &run->training.stream.spec;
    double seconds = clock_seconds() - run->started - run->saving;
    double samples = (double)(run->trainer->steps - run->first) * (double)spec->batch;
    *unit = spec->window ? "tokens" : "samples";
    return seconds > 0 ? samples * (double)MAX(spec->window, 1) / seconds : 0;
}

Str cli_train_line(const CliTrainRun *run, Arena *arena) {
    const char *unit;
    double per_second = rate(run, &unit);
    return str_format(arena, "loss %.4f  %s %s/s", run->loss,
                      count_text(arena, (uint64_t)per_second).at, unit);
}

// The rows of a log up to a step, as text; empty where there is no such log.
static Str kept_rows(CliTrainRun *run, const char *path) {
    Arena *arena = args_of(run)->arena;
    Str text, error;
    if (!run->first || !file_read(arena, path, &text, &error))
        return STR("");
    uint32_t end = 0;
    for (uint32_t at = 0; at < text.size; at = end) {
        const char *line = memchr(text.at + at, '\n', text.size - at);
        if (!line)
            return str_copy(arena, text.at, at); // cut off while it was written
        if (at && strtoull(text.at + at, NULL, 10) > run->first)
            return str_copy(arena, text.at, at);
        end = (uint32_t)(line - text.at) + 1;
    }
    return text;
}

static int cannot_write(CliArgs *args, const char *path, const char *why) {
    diag(&args->context->diags, E5002, (Span){0}, path, why);
    return cli_report(args);
}

int cli_train_log_open(CliTrainRun *run) {
    CliArgs *args = args_of(run);
    const char *path = cli_text(args, "log");
    if (!path)
        return CLI_FINE;
    static const char head[] = "step,epoch,loss,seconds\n";
    if (file_is_special(path)) { // a pipe, say: opened once, since its reader leaves when it closes
        FILE *log = fopen(path, "ab");
        if (!log || fputs(head, log) < 0 || fflush(log)) {
            Str why = str_of(strerror(errno));
            if (log)
                fclose(log);
            return cannot_write(args, path, why.at);
        }
        run->log = log;
        return CLI_FINE;
    }
    Str rows = kept_rows(run, path), error;
    if (!rows.size)
        rows = str_of(head);
    file_make_folders(args->arena, path);
    if (!file_write(args->arena, path, rows.at, rows.size, &error))
        return cannot_write(args, path, error.at);
    run->log = fopen(path, "ab");
    return run->log ? CLI_FINE : cannot_write(args, path, strerror(errno));
}

int cli_train_log_close(CliTrainRun *run) {
    if (!run->log)
        return CLI_FINE;
    bool failed = ferror(run->log) != 0;
    failed = fclose(run->log) != 0 || failed;
    run->log = NULL;
    CliArgs *args = args_of(run);
    return failed ? cannot_write(args, cli_text(args, "log"), "rows are missing at its end")
                  : CLI_FINE;
}

void cli_train_log_add(CliTrainRun *run) {
    if (run->log)
        fprintf(run->log, "%llu,%llu,%.9g,%.3f\n", (unsigned long long)run->trainer->steps,
                (unsigned long long)((run->trainer->steps - 1) / run->training.stream.batches + 1),
                run->loss, clock_seconds() - run->started);
}

// ---- summary ----------------------------------------------------------------------------------

static void print_launches(const char *what, uint32_t alone, uint32_t fused) {
    double removed = alone ? 100.0 * (alone - fused) / alone : 0;
    if (fused)
        removed = fmin(removed, 99); // where some are left, not all are gone
    printf("    %-28s %10u %10u %8.0f %%\n", what, alone, fused, removed);
}

// What the steps of this run have launched, on average.
static void count_run(const CliTrainRun *run, RtTrainLaunches *launches) {
    const RtTrainer *trainer = run->trainer;
    uint64_t done = trainer->steps - run->first;
    if (!trainer->gradient || !done)
        return;
    launches->gradient = (uint32_t)(rt_launches_run(trainer->gradient) / done);
    launches->step = (uint32_t)(rt_launches_run(trainer->update) / done);
}

static int print_launch_table(CliTrainRun *run) {
    RtTrainer *trainer = run->trainer;
    CliEntry *entry = &run->training.entry;
    Arena *arena = args_of(run)->arena;
    RtTrainLaunches alone, fused;
    const CoreArithmetic *unfused = rlz_arithmetic(entry->core, arena, entry->realization, false);
    const CoreArithmetic *groups = rlz_arithmetic(entry->core, arena, entry->realization, true);
    if (!rt_trainer_launches(trainer, unfused, &alone) ||
        !rt_trainer_launches(trainer, groups, &fused))
        return cli_report(args_of(run));
    count_run(run, entry->arithmetic->fusion ? &fused : &alone);
    printf("  launches %36s %10s %10s\n", "no fusion", "fusion", "removed");
    print_launches(str_format(arena, "%s, forward", fn_name(run, trainer->spec.loss->id)).at,
                   alone.loss, fused.loss);
    print_launches(fn_name(run, trainer->spec.gradient), alone.gradient, fused.gradient);
    print_launches(fn_name(run, trainer->spec.step), alone.step, fused.step);
    print_launches("a whole training step", alone.gradient + alone.step,
                   fused.gradient + fused.step);
    return CLI_FINE;
}

// The two programs of a step, which do not share memory; parameters and states.
static void print_memory(const CliTrainRun *run) {
    const RtTrainer *trainer = run->trainer;
    Arena *arena = args_of(run)->arena;
    double kept = 0;
    for (uint32_t i = 0; i < trainer->states + 2; i++)
        for (uint32_t j = 0; i != 1 && j < trainer->leaves; j++) {
            const Tensor *leaf = &trainer->arguments[i].parts[j].tensor;
            kept += (double)shape_count(&leaf->shape) * (double)dtype_size(leaf->type);
        }
    printf("  memory      %s for parameters and state", cli_bytes_text(arena, kept).at);
    if (trainer->gradient) {
        size_t peak = rt_summary(trainer->gradient).peak_bytes;
        peak += rt_summary(trainer->update).peak_bytes;
        printf(", %s at most for a step's other values", cli_bytes_text(arena, (double)peak).at);
    }
    putchar('\n');
}

int cli_train_write_curve(const CliTrainRun *run) {
    CliArgs *args = args_of(run);
    const char *path = cli_text(args, "curve");
    if (!path || run->trainer->steps == run->first)
        return CLI_FINE;
    Str error;
    Str title = str_format(args->arena, "%s: loss of each batch", run->training.model.at);
    Str svg = cli_curve_svg(&run->curve, title.at, args->arena);
    if (!file_write(args->arena, path, svg.at, svg.size, &error))
        return cannot_write(args, path, error.at);
    if (!cli_flag(args, "quiet"))
        printf("  curve       %s\n", path);
    return CLI_FINE;
}

int cli_train_print_summary(CliTrainRun *run) {
    Arena *arena = args_of(run)->arena;
    const RtTrainTimes *times = &run->trainer->times;
    uint64_t done = run->trainer->steps - run->first;
    int status = print_launch_table(run);
    if (!status)
        print_memory(run);
    if (status || !done)
        return status;
    double steps = (double)done, backward = (times->gradient - times->forward) / steps;
    printf("  time        %s a step: ", cli_seconds_text(arena, run->seconds / steps).at);
    if (times->forward > 0)
        printf("forward %s, backward ", cli_seconds_text(arena, times->forward / steps).at);
    else
        printf("forward and backward ");
    printf("%s, optimizer %s, reading %s\n", cli_seconds_text(arena, backward).at,
           cli_seconds_text(arena, times->step / steps).at,
           cli_seconds_text(arena, times->batch / steps).at);
    if (run->saving > 0)
        printf("  saving      %s\n", cli_seconds_text(arena, run->saving).at);
    printf("  loss        %.4f at step %llu  %s\n", run->loss,
           (unsigned long long)run->trainer->steps, cli_curve_text(&run->curve, 48, arena).at);
    return CLI_FINE;
}
