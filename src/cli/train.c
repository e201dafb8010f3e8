// presk train: the training block, step by step.
#include "base/file.h"
#include "cli/execute.h"
#include "cli/train_run.h"

#include <math.h>
#include <signal.h>

// The one global of presk: a signal handler has nothing else to write to.
static volatile sig_atomic_t stop_asked;

static void ask_stop(int signal) {
    (void)signal;
    stop_asked = 1;
}

// The first of these signals ends the run after its step, a second SIGINT, SIGTERM or SIGHUP at
// once. So do a terminal that is gone and output that nobody reads any more: what was learnt is
// saved first. One that is ignored, as under nohup, stays so. A file that grows too large is an
// error of writing.
static void watch_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (uint32_t i = 0; i < COUNT_OF(signals); i++) {
        struct sigaction action = {.sa_handler = ask_stop, .sa_flags = SA_RESTART}, before;
        if (signals[i] != SIGPIPE)
            action.sa_flags |= (int)SA_RESETHAND;
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN);
}

static CliArgs *args_of(const CliTrainRun *run) {
    return run->training.entry.args;
}

// ---- setting up -------------------------------------------------------------------------------

static int make_trainer(CliTrainRun *run) {
    CliTraining *training = &run->training;
    CliEntry *entry = &training->entry;
    CliArgs *args = args_of(run);
    if (!training->block->step) {
        diag(&args->context->diags, E6203, training->block->span, "has no optimizer");
        return cli_report(args);
    }
    Str loss = name_str(args->context->names, core_fn(entry->core, training->block->loss)->name);
    RtBinding *b = cli_training_bind(training, loss, training->stream.spec.batch);
    if (!b ||
        !rt_bind_batch(b, &training->stream, training->stream.spec.batch,
                       entry->arithmetic->inputs) ||
        !rt_bind_dims_done(b))
        return cli_report(args);
    entry->binding = b;
    RtTrainSpec spec = {.loss = b,
                        .gradient = entry->compiled.gradient,
                        .step = training->block->step,
                        .model = training->model,
                        .options = entry->options,
                        .realization = entry->realization,
                        .stream = &training->stream,
                        .hypers = {.count = run->hypers, .at = run->hyper},
                        .seed = (uint64_t)cli_number(args, "seed", 0),
                        .check_finite = cli_flag(args, "check-finite")};
    run->trainer = rt_trainer_new(args->arena, &spec);
    return run->trainer ? CLI_FINE : cli_report(args);
}

static RtPath checkpoint_path(const CliTrainRun *run, const char *path) {
    return (RtPath){&args_of(run)->context->diags, args_of(run)->arena, path, {0}};
}

static int resume(CliTrainRun *run) {
    CliArgs *args = args_of(run);
    const char *text = cli_text(args, "resume");
    if (!text)
        return CLI_FINE;
    const char *from = text[0] == '@' ? text + 1 : *text ? text : run->checkpoint;
    if (!from)
        return cli_usage(args, "--resume: the block names no checkpoint; say --resume=@FILE");
    RtPath path = checkpoint_path(run, rt_state_path(args->arena, from).at);
    int status =
        cli_must_exist(args, path.path,
                       "nothing has been saved there yet; without --resume a run begins at step 1");
    if (!status && rt_trainer_load(run->trainer, &path))
        run->first = run->trainer->steps;
    return status ? status : cli_report(args);
}

static Str plan_of(CliTrainRun *run) {
    if (!run->trainer->gradient)
        return STR("none");
    return cli_plan_text(&run->training.entry, run->trainer->gradient, run->trainer->update);
}

static int open(CliArgs *args, CliTrainRun *run) {
    int status = cli_training_open(args, &run->training);
    if (!status)
        status = cli_training_data(&run->training, false);
    if (!status)
        status = cli_train_settings(run);
    if (!status)
        status = cli_train_can_write(run);
    if (!status)
        status = make_trainer(run);
    if (!status)
        status = resume(run);
    if (!status)
        status = cli_train_log_open(run);
    if (status)
        return status;
    if (run->checkpoint)
        rt_checkpoint_sweep(args->arena, run->checkpoint);
    run->plan = plan_of(run);
    cli_curve_begin(&run->curve, run->first + 1);
    return CLI_FINE;
}

// ---- the loop ---------------------------------------------------------------------------------

static int save(CliTrainRun *run) {
    if (!run->checkpoint)
        return CLI_FINE;
    if (run->log)
        fflush(run->log);
    double started = clock_seconds();
    RtPath path = checkpoint_path(run, run->checkpoint);
    if (!rt_trainer_save(run->trainer, &path, run->plan))
        return cli_report(args_of(run));
    run->saving += clock_seconds() - started;
    run->saved = run->trainer->steps;
    return CLI_FINE;
}

static void show(CliTrainRun *run, Progress *progress, Arena *scratch) {
    uint64_t steps = run->trainer->steps;
    bool line = !cli_flag(args_of(run), "quiet") && !progress->enabled;
    if (line && (steps % run->report == 0 || steps == run->steps)) {
        printf("  step %-8llu %s\n", (unsigned long long)steps, cli_train_line(run, scratch).at);
        fflush(stdout);
    }
    if (progress->enabled)
        progress_update(progress, steps - run->first, run->steps - run->first,
                        str_format(scratch, "step %llu  %s", (unsigned long long)steps,
                                   cli_train_line(run, scratch).at)
                            .at);
}

static int loop(CliTrainRun *run) {
    CliArgs *args = args_of(run);
    Progress progress;
    progress_begin(&progress, "training", args->quiet || cli_flag(args, "quiet"));
    int status = CLI_FINE;
    run->started = clock_seconds();
    Arena *scratch = arena_new(&args->context->heap, "line");
    while (!status && run->trainer->steps < run->steps && !stop_asked) {
        if (!rt_trainer_step(run->trainer, &run->loss)) {
            progress_end(&progress);
            status = cli_report(args);
            break;
        }
        if (isnan(run->loss))
            run->loss = NAN; // one sign, however it came about
        cli_curve_add(&run->curve, run->loss);
        cli_train_log_add(run);
        show(run, &progress, scratch);
        arena_reset(scratch);
        if (run->every && run->trainer->steps % run->every == 0)
            status = save(run);
    }
    run->seconds = clock_seconds() - run->started - run->saving;
    progress_end(&progress);
    arena_free(scratch);
    run->interrupted = !status && stop_asked && run->trainer->steps < run->steps;
    if (!status && run->trainer->steps != run->saved)
        status = save(run);
    return status;
}

static void print_saved(const CliTrainRun *run) {
    if (run->first && run->first >= run->steps)
        printf("nothing was left to do: %llu steps of %llu had been done\n",
               (unsigned long long)run->first, (unsigned long long)run->steps);
    if (run->interrupted && !run->checkpoint)
        printf("stopped at step %llu; nothing is saved, since no checkpoint is named\n",
               (unsigned long long)run->trainer->steps);
    else if (run->interrupted)
        printf("stopped at step %llu of %llu; --resume goes on from there\n",
               (unsigned long long)run->trainer->steps, (unsigned long long)run->steps);
    if (run->checkpoint && run->saved && run->trainer->steps == run->saved)
        printf("  checkpoint  %s (step %llu)\n", run->checkpoint, (unsigned long long)run->saved);
}

static int run_open(CliTrainRun *run) {
    bool quiet = cli_flag(args_of(run), "quiet");
    if (!quiet)
        cli_train_print_header(run);
    watch_signals();
    int status = loop(run);
    if (status)
        return status;
    status = quiet ? CLI_FINE : cli_train_print_summary(run);
    if (!status)
        status = cli_train_write_curve(run);
    if (!quiet || run->interrupted)
        print_saved(run);
    return status;
}

static int run(CliArgs *args) {
    CliTrainRun *train = arena_new_of(args->arena, CliTrainRun);
    int status = open(args, train);
    if (!status)
        status = run_open(train);
    int closed = cli_train_log_close(train);
    cli_training_close(&train->training);
    return status ? status : closed;
}

static const CliOption options[] = {
    CLI_TRAINING_OPTIONS,
    {"steps", CLI_NUMBER, "N", "steps of the whole run, in place of the block's"},
    {"epochs", CLI_NUMBER, "N", "epochs of the whole run"},
    {"set", CLI_LIST, "NAME=X", "a hyperparameter of the optimizer: lr=0.001"},
    {"data", CLI_TEXT, "F.psk.d", "another data file"},
    {"seed", CLI_NUMBER, "N", "the initial parameters are drawn from this seed (default 0)"},
    {"checkpoint", CLI_TEXT, "F.psk.d", "where parameters are saved, in place of the block's"},
    {"resume", CLI_OPTIONAL, "@F", "go on from the run's last checkpoint, or from that of F"},
    {"log", CLI_TEXT, "F.csv", "a row a step: step, epoch, loss, seconds"},
    {"curve", CLI_TEXT, "F.svg", "draw the curve of the loss"},
    {"report", CLI_NUMBER, "N", "without a terminal: a line every N steps (default a twentieth)"},
    {"check-finite", CLI_FLAG, NULL, "stop at the first loss that is not finite"},
    {"quiet", CLI_FLAG, NULL, "print nothing but errors"},
    {0},
};

const CliCommand cli_command_train = {
    .name = "train",
    .usage = "FILE.psk [options]",
    .summary = "train a program's model as its training block says",
    .details =
        "Parameters, optimizer state and step are saved with one rename beside the checkpoint\n"
        "(out/gpt.psk.d has its state in out/gpt.state.psk.d); a run that was stopped or killed\n"
        "and resumed ends with the bits of one that never stopped. The first SIGINT (SIGTERM,\n"
        "SIGHUP) ends the run after its step and saves; the second ends it at once.",
    .examples = "  presk data text /usr/share/common-licenses/GPL-3 --vocab 92 -o out/text.psk.d\n"
                "  presk train corpus/nlp/05_gpt.psk --const D=64 --const H=2 --const L=2\n"
                "  presk train corpus/nlp/05_gpt.psk --const D=64 --const H=2 --const L=2 "
                "--steps 1000 --resume",
    .options = options,
    .min = 1,
    .max = 1,
    .run = run,
};
