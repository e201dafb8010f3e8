// The files that a training run writes: whether it can, and whether one would replace what it
// reads. Said before anything is trained, not hours later.
#include "base/file.h"
#include "cli/train_run.h"

typedef struct Named {
    const char *what, *path; // null: there is none
} Named;

enum { INPUTS = 4, OUTPUTS = 5 };

static const char *file_of(const char *text) {
    return text && text[0] == '@' ? text + 1 : NULL;
}

static void list_inputs(const CliTrainRun *run, Named inputs[INPUTS]) {
    CliArgs *args = run->training.entry.args;
    const Named all[INPUTS] = {{"the program", args->positional[0]},
                               {"the data", run->training.data_path},
                               {"the plan", file_of(cli_text(args, "plan"))},
                               {"the realization", file_of(cli_text(args, "realize"))}};
    memcpy(inputs, all, sizeof all);
}

static void list_outputs(const CliTrainRun *run, Named outputs[OUTPUTS]) {
    CliArgs *args = run->training.entry.args;
    const char *checkpoint = run->checkpoint;
    const Named all[OUTPUTS] = {
        {"the checkpoint", checkpoint},
        {"the checkpoint's state", checkpoint ? rt_state_path(args->arena, checkpoint).at : NULL},
        {"the checkpoint's companion",
         checkpoint ? rt_companion_path(args->arena, checkpoint).at : NULL},
        {"the log", cli_text(args, "log")},
        {"the curve", cli_text(args, "curve")}};
    memcpy(outputs, all, sizeof all);
}

static int apart(CliArgs *args, const Named *output, const Named *other) {
    if (!other->path || !file_same(output->path, other->path) || file_is_special(output->path))
        return CLI_FINE;
    return cli_usage(args, "%s, %s, would replace %s; one of them needs another name", output->what,
                     output->path, other->what);
}

int cli_train_can_write(const CliTrainRun *run) {
    CliArgs *args = run->training.entry.args;
    Named inputs[INPUTS], outputs[OUTPUTS];
    list_inputs(run, inputs);
    list_outputs(run, outputs);
    if (run->checkpoint && !rt_checkpoint_named(run->checkpoint))
        return cli_usage(args, "a checkpoint is a file .psk.d or .safetensors, not `%s`",
                         run->checkpoint);
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        if (!outputs[i].path)
            continue;
        int status = CLI_FINE;
        for (uint32_t j = 0; j < INPUTS && !status; j++)
            status = apart(args, &outputs[i], &inputs[j]);
        for (uint32_t j = 0; j < i && !status; j++)
            status = apart(args, &outputs[i], &outputs[j]);
        if (!status && !file_is_special(outputs[i].path) && !cli_can_write(args, outputs[i].path))
            status = cli_report(args);
        if (status)
            return status;
    }
    return CLI_FINE;
}
