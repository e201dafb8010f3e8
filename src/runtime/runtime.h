// Running programs: an entry at concrete dimensions becomes a *program*, a flat list of launches
// over planned buffers, which any executor of kernels runs as often as wanted.
//
// Building walks the entry's Core function with concrete shapes, follows calls, makes a nest for
// each let that launches, asks for its kernel (the kernel cache is keyed by the nest's text, its
// layout and the target), plans buffers by lifetime in one block, and resolves every pointer. A
// run after that allocates nothing.
#ifndef PRESK_RUNTIME_RUNTIME_H
#define PRESK_RUNTIME_RUNTIME_H

#include "base/pool.h"
#include "core/eval.h"
#include "kernel/lower.h"
#include "native/native.h"
#include "realize/plan.h"

typedef enum RtBackend { RT_REF, RT_KERNEL, RT_NATIVE } RtBackend;

// How far a program is built: to run, to look at its kernels, or for its counts alone.
typedef enum RtDepth { RT_TO_RUN, RT_TO_LOOK, RT_TO_COUNT } RtDepth;

typedef struct RtOptions {
    RtBackend backend; // KERNEL or NATIVE; the reference evaluator runs Core itself (core_eval)
    RtDepth depth;
    const CoreArithmetic *arithmetic;
    const RlzPlan *plan; // checked (rlz_plan_check); null: the default of every nest
    RlzTarget target;
    Pool *pool;          // null: one worker
    Native *native;      // NATIVE
    const int64_t *dims; // values of global dimensions by DimId
    CoreHyper hyper;     // values of hyperparameters; may be null
    void *hyper_data;
    // Where the entry's result is a tuple of values that replace arguments: by part, the argument.
    // A new value is written in the old one's place where no launch reads that afterwards; the rest
    // lies in the program's memory, as results do. Null: nothing is replaced.
    const uint32_t *update;
} RtOptions;

// A kernel of the program's cache and its executors' forms.
typedef struct RtKernel {
    const Kernel *kernel;
    const KrnCode *code;  // KERNEL
    NatFunction function; // NATIVE
    size_t scratch;       // bytes a worker needs
} RtKernel;

typedef struct RtLaunch {
    CoreFnId fn; // site
    CoreLetId let;
    uint32_t leaf; // launches over a parameter tree: which leaf
    const RlzNest *nest;
    RlzLayout layout;
    RtKernel *kernel;
    uint32_t workers; // 1: not split
    void ***buffers;  // [worker][kernel buffer]
} RtLaunch;

typedef struct RtProgram RtProgram;

typedef struct RtSummary {
    uint32_t launches, kernels;
    size_t peak_bytes;   // intermediates, results and scratch, as planned
    double flops, bytes; // of all nests
    double build_seconds, compile_seconds;
} RtSummary;

// Null with diagnostics (a size that overflows, a scalar without a value, a plan whose layout does
// not fit a nest's shape, LLVM that fails). The
// arguments' tensors must stay where they are while the program is used. `dims` and `pack`: the
// entry function's own, as in core_eval. The arena must outlive the program.
RtProgram *rt_build(CoreProgram *core, Arena *arena, const RtOptions *options, CoreFnId entry,
                    const CoreValue *arguments, const int64_t *dims, uint32_t pack_rank,
                    const int64_t *pack);
// Runs every launch in order, but for those of all leaves of a tree, which run piece by piece where
// that makes no difference (chain.c). Allocates nothing.
void rt_run(RtProgram *program);
// The launches from `first` up to `end` of a run.
void rt_run_launches(RtProgram *program, uint32_t first, uint32_t end);
// The launches up to the end of the entry's first call: in a gradient those of the forward pass.
uint32_t rt_launches_of_first_call(const RtProgram *program);
// The entry's result: tensors in the program's memory, overwritten by each run.
CoreValue rt_result(const RtProgram *program);
RtSummary rt_summary(const RtProgram *program);
uint32_t rt_launch_count(const RtProgram *program);
// How many launches have been run since the program was built.
uint64_t rt_launches_run(const RtProgram *program);
const RtLaunch *rt_launch_at(const RtProgram *program, uint32_t index);
// One launch alone, on the values that the last run left.
void rt_run_launch(RtProgram *program, uint32_t index);
// Host scalars of hyperparameters are read anew from options.hyper (the step `t` has moved on).
// False with a diagnostic where one has no value.
bool rt_refresh(RtProgram *program);

#endif
