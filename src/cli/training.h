// The training block as the commands see it that train, evaluate and sample: its data as a stream,
// its model's parameters, functions bound at a number of samples.
#ifndef PRESK_CLI_TRAINING_H
#define PRESK_CLI_TRAINING_H

#include "cli/entry.h"
#include "runtime/data.h"
#include "runtime/train.h"

// Options that these commands have.
#define CLI_TRAINING_OPTIONS                                                                       \
    {"dim", CLI_LIST, "X=n", "the value of a dimension, in place of the block's"},                 \
        {"const", CLI_LIST, "X=value", "another value for a constant of the program"},             \
        {"realize", CLI_TEXT, "R", "the arithmetic: f64, f32 (default), bf16 or @FILE"},           \
        {"plan", CLI_TEXT, "P", "arithmetic and layouts: @FILE, or default"},                      \
        {"retarget", CLI_FLAG, NULL,                                                               \
         "drop what a plan for another target has and this one lacks"},                            \
        {"backend", CLI_TEXT, "B", "ref, kernel or native (default)"},                             \
        {"fusion", CLI_TEXT, "on|off", "fusion groups (default on)"},                              \
        {"threads", CLI_NUMBER, "N", "workers (default PRESK_THREADS, else the machine's)"}, {     \
        "target", CLI_NUMBER, "BITS", "widest vector registers: 128, 256 or 512"                   \
    }

typedef struct CliTraining {
    CliEntry entry; // of the loss
    const ChkTraining *block;
    Str model;
    const char *data_path;
    RtStreamSpec spec;
    RtData data; // open: while bytes are mapped
    RtStream stream;
    RtBackend backend;
} CliTraining;

// Opens the program, its training block (E6203 where that lacks something), realization, backend
// and the stages of its data, whose dimensions are bound.
int cli_training_open(CliArgs *args, CliTraining *training);
// Opens the data: --data, else the block's. `whole`: every sample of the file once, in order, in
// batches of at most the block's.
int cli_training_data(CliTraining *training, bool whole);
void cli_training_close(CliTraining *training);

// A function of the program bound at `size` samples and the dimensions of the block.
RtBinding *cli_training_bind(CliTraining *training, Str function, int64_t size);
// Reads --checkpoint into the parameter tree of a binding, its first argument.
int cli_training_parameters(CliTraining *training, RtBinding *binding);

// A function that runs again and again on the entry's backend, on the values that its arguments
// have at the time.
typedef struct CliFunction {
    CliTraining *training;
    RtBinding *binding;
    RtProgram *program; // null on the reference backend
} CliFunction;
int cli_function_build(CliTraining *training, RtBinding *binding, CliFunction *function);
// The result; what it needs on the reference backend is in `scratch`.
CoreValue cli_function_run(const CliFunction *function, Arena *scratch);

#endif
