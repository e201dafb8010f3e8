// Training: the gradient of a loss and an optimizer's step, run in turn over the batches of a
// stream.
//
// Step t (from 1) takes batch t − 1 of the stream, whose epochs follow each other; so what a step
// does depends on parameters, optimizer state and t alone, and a run that is stopped and resumed
// gives the bits of one that never stopped. Two programs do the work: that of `loss.grad` reads
// the parameters and the batch; that of `NAME.step` reads parameters, gradient and states and
// writes the new ones in the places of the old (RtOptions.update). Hyperparameters and t reach it
// through host cells: F64, rounded to the arithmetic type that reads them. After the first step
// nothing is allocated any more. The reference backend evaluates both functions instead.
//
// A *state file* holds everything that a run needs to go on (see state.c); it is written with one
// rename, so at any moment the file there is whole.
#ifndef PRESK_RUNTIME_TRAIN_H
#define PRESK_RUNTIME_TRAIN_H

#include "runtime/bind.h"
#include "runtime/data.h"
#include "runtime/runtime.h"

// ---- batches (batch.c) ------------------------------------------------------------------------

// Gives those arguments of a function that are no trees, in order, tensors for `size` samples of a
// stream: their shapes bind dimensions. Reals have the storage type `real`. False with a
// diagnostic (E5006 where the number, kind or bound of the data's leaves does not fit).
bool rt_bind_batch(RtBinding *binding, const RtStream *stream, int64_t size, DType real);
// Fills those tensors with samples `first` … of an epoch.
bool rt_read_batch(RtBinding *binding, RtStream *stream, uint64_t epoch, uint64_t first);

// ---- training ---------------------------------------------------------------------------------

// A hyperparameter in double precision: a number, or a schedule of the step `t`.
typedef struct RtHyper {
    Name name;
    double value;
    CoreScalar schedule; // 0: `value`
    Str text;            // a schedule as it is written
    Span span;
} RtHyper;

// Hyperparameters at a step (from 1); the schedules' dimensions have their values in `dims`.
typedef struct RtHypers {
    CoreProgram *core;
    const int64_t *dims;
    uint32_t count;
    const RtHyper *at;
    uint64_t step; // 0: `t` has no value
} RtHypers;
// A CoreHyper whose data is an RtHypers.
bool rt_hyper_value(void *hypers, Name name, double *value);

typedef struct RtTrainSpec {
    // The loss: every dimension bound, its batch by rt_bind_batch; the trainer fills it, and sets
    // the parameters.
    RtBinding *loss;
    CoreFnId gradient, step; // loss.grad, NAME.step
    Str model;               // its name, as checkpoints state it
    RtOptions options;       // dims, hyper and update are the trainer's
    const RlzRealization *realization;
    RtStream *stream;
    RtHypers hypers; // their number and values; the rest is the trainer's
    uint64_t seed;   // of the initial parameters
    bool check_finite;
} RtTrainSpec;

typedef struct RtTrainTimes {
    double batch, gradient, step; // seconds since the start, reading batches apart
    double forward;               // of the gradient's; 0 on the reference backend
} RtTrainTimes;

typedef struct RtTrainer {
    RtTrainSpec spec;
    CoreProgram *core;
    Arena *arena, *scratch; // scratch: of a step
    uint32_t leaves;        // of the parameter tree
    CoreLeaf *leaf;
    uint32_t states;              // trees of the optimizer's state
    Name *state_name;             // by state
    CoreValue *arguments;         // of NAME.step: parameters, gradient, states
    RtProgram *gradient, *update; // null on the reference backend
    uint32_t copies;              // leaves that the step could not write in place
    void **aside;                 // by tree and leaf: room for them on the way; null: none
    uint64_t steps;               // done
    RtTrainTimes times;
} RtTrainer;

// A trainer at step 0 with drawn parameters and zero states; null with diagnostics. The arena must
// outlive it; everything in `spec` is kept, not copied.
RtTrainer *rt_trainer_new(Arena *arena, const RtTrainSpec *spec);
// One step; *loss is that of its batch before the step. False with a diagnostic: a batch that
// cannot be read, a hyperparameter without a finite value (E6003), or, where check_finite is set, a
// loss that is not finite (E6201): then the parameters are as they were.
bool rt_trainer_step(RtTrainer *trainer, double *loss);
const CoreValue *rt_trainer_parameters(const RtTrainer *trainer);
// The epoch (from 1) of the next step.
uint64_t rt_trainer_epoch(const RtTrainer *trainer);

// The launches that the functions of a step have in an arithmetic, counted on programs that are
// built for it (with fusion under the plan, without it at the default layouts); false with a
// diagnostic.
typedef struct RtTrainLaunches {
    uint32_t loss, gradient, step;
} RtTrainLaunches;
bool rt_trainer_launches(RtTrainer *trainer, const CoreArithmetic *arithmetic,
                         RtTrainLaunches *launches);

// ---- files (state.c) --------------------------------------------------------------------------

// "out/gpt.psk.d" has its state in "out/gpt.state.psk.d" and its companion in "out/gpt.json".
Str rt_state_path(Arena *arena, const char *checkpoint);
Str rt_companion_path(Arena *arena, const char *checkpoint);
// Does the name end as a checkpoint's does: .psk.d or .safetensors?
bool rt_checkpoint_named(const char *path);
// Writes the state file of a checkpoint (one rename: from then on the run resumes here), then the
// `params M` checkpoint, then the companion: model, step, realization and the plan's hash as JSON.
bool rt_trainer_save(RtTrainer *trainer, const RtPath *checkpoint, Str plan);
// Removes what a run that was killed while it saved has left beside these files.
void rt_checkpoint_sweep(Arena *arena, const char *checkpoint);
// Takes a state file's parameters, states and step. False (E5006, E6202) where it belongs to
// another model, optimizer, realization, seed or stream; then the trainer is as it was.
bool rt_trainer_load(RtTrainer *trainer, const RtPath *state);

#endif
