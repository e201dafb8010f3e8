// Settings of a training run: the block's, then the command line's.
#include "cli/train_run.h"

#include <math.h>
#include <stdlib.h>

static CliArgs *args_of(const CliTrainRun *run) {
    return run->training.entry.args;
}

// ---- hyperparameters --------------------------------------------------------------------------

static int set_hyper(CliTrainRun *run, const char *text) {
    CliArgs *args = args_of(run);
    const Names *names = args->context->names;
    Str name, value;
    char *end;
    if (!cli_split(args->arena, text, &name, &value))
        return cli_usage(args, "--set is NAME=number, not `%s`", text);
    double number = strtod(value.at, &end);
    if (!value.size || *end || !isfinite(number))
        return cli_usage(args, "--set %s needs a number, not `%s`", name.at, value.at);
    Str *known = arena_array(args->arena, Str, run->hypers + 1);
    for (uint32_t i = 0; i < run->hypers; i++) {
        known[i] = name_str(names, run->hyper[i].name);
        if (str_equal(known[i], name)) {
            run->hyper[i].value = number;
            run->hyper[i].schedule = 0;
            return CLI_FINE;
        }
    }
    Str near = nearest_spelling(args->arena, name, known, run->hypers);
    if (near.size)
        return cli_usage(args, "the optimizer has no `%s`; did you mean `%s`?", name.at, near.at);
    StrBuf list = {.arena = args->arena};
    for (uint32_t i = 0; i < run->hypers; i++)
        buf_format(&list, "%s%s", i ? ", " : "", known[i].at);
    return cli_usage(args, "the optimizer has no `%s`, but %s", name.at,
                     run->hypers ? buf_str(&list).at : "nothing to set");
}

// ---- length and checkpoints -------------------------------------------------------------------

static int64_t block_number(const CliTrainRun *run, const char *name) {
    const ChkTraining *block = run->training.block;
    int64_t number;
    for (uint32_t i = 0; i < block->settings.count; i++) {
        const ChkSetting *setting = &block->settings.at[i];
        if (str_is(name_str(args_of(run)->context->names, setting->name), name) && setting->value &&
            rational_is_int(setting->value, &number) && number >= 0)
            return number;
    }
    return -1;
}

// Steps and epochs of the command line count before those of the block; the shorter of two.
static int choose_steps(CliTrainRun *run) {
    CliArgs *args = args_of(run);
    int64_t steps = cli_number(args, "steps", -1), epochs = cli_number(args, "epochs", -1);
    if (steps < 0 && epochs < 0) {
        steps = block_number(run, "steps");
        epochs = block_number(run, "epochs");
    }
    uint64_t batches = run->training.stream.batches, whole;
    run->steps = steps < 0 ? UINT64_MAX : (uint64_t)steps;
    if (epochs >= 0 && !__builtin_mul_overflow((uint64_t)epochs, batches, &whole))
        run->steps = MIN(run->steps, whole);
    if (run->steps <= INT64_MAX)
        return CLI_FINE;
    diag(&args->context->diags, E6203, run->training.block->span,
         "says neither `steps` nor `epochs`; --steps does, too");
    return cli_report(args);
}

int cli_train_settings(CliTrainRun *run) {
    CliArgs *args = args_of(run);
    const ChkTraining *block = run->training.block;
    run->hypers = cli_hypers(args, block, &run->hyper);
    const char **texts;
    uint32_t count = cli_list(args, "set", args->arena, &texts);
    for (uint32_t i = 0; i < count; i++) {
        int status = set_hyper(run, texts[i]);
        if (status)
            return status;
    }
    const char *checkpoint = cli_text(args, "checkpoint");
    if (checkpoint)
        run->checkpoint = checkpoint[0] == '@' ? checkpoint + 1 : checkpoint;
    else if (block->checkpoint_path.size)
        run->checkpoint = block->checkpoint_path.at;
    run->every = (uint64_t)block->checkpoint_every;
    int status = choose_steps(run);
    run->report = (uint64_t)cli_number(args, "report", 0);
    if (!run->report)
        run->report = MAX(run->steps / 20, (uint64_t)1);
    return status;
}
