// A training run: its settings, what it has seen so far, and what it says.
#ifndef PRESK_CLI_TRAIN_RUN_H
#define PRESK_CLI_TRAIN_RUN_H

#include "cli/curve.h"
#include "cli/training.h"

#include <stdio.h>

typedef struct CliTrainRun {
    CliTraining training;
    RtTrainer *trainer;
    uint64_t first;         // steps that a resumed run had done before
    uint64_t steps;         // the whole run's
    uint64_t report;        // a line every so many steps
    const char *checkpoint; // null: nothing is saved
    uint64_t every;         // 0: at the end only
    uint32_t hypers;
    RtHyper *hyper;
    FILE *log; // null: none
    CliCurve curve;
    double loss;    // of the last step
    uint64_t saved; // the step of the last checkpoint
    bool interrupted;
    double started, seconds; // of the loop, without what saving took
    double saving;
    Str plan;
} CliTrainRun;

// Settings of the block and the command line: hyperparameters, steps, checkpoints.
int cli_train_settings(CliTrainRun *run);

// Sees whether checkpoint, log and curve can be written and replace nothing that the run reads.
int cli_train_can_write(const CliTrainRun *run);

void cli_train_print_header(CliTrainRun *run);
// One line of the run so far: step, loss, rate.
Str cli_train_line(const CliTrainRun *run, Arena *arena);
// What it took: launches with and without fusion, memory, time by part, the curve of the loss.
int cli_train_print_summary(CliTrainRun *run);
// The curve as a file, where one is asked for.
int cli_train_write_curve(const CliTrainRun *run);

// The log: a row a step. A resumed run keeps the rows of the steps that it does not repeat.
int cli_train_log_open(CliTrainRun *run);
void cli_train_log_add(CliTrainRun *run);
// Says where rows could not be written.
int cli_train_log_close(CliTrainRun *run);

#endif
