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
#include "realize/realization.h"

typedef enum RtBackend { RT_REF, RT_KERNEL, RT_NATIVE } RtBackend;

typedef struct RtOptions {
    RtBackend backend;
    const CoreArithmetic *arithmetic;
    RlzTarget target;
    Pool *pool;
    Native *native;      // RT_NATIVE
    const int64_t *dims; // values of global dimensions by DimId
    CoreHyper hyper;
    void *hyper_data;
} RtOptions;

typedef struct RtLaunch {
    CoreFnId fn;         // site
    CoreLetId let;
    uint32_t leaf;       // launches over a parameter tree: which leaf
    const RlzNest *nest;
    RlzLayout layout;
    const Kernel *kernel;
    NatFunction code;    // native
    void **buffers;      // by kernel buffer (worker 0)
    void ***worker_buffers; // by worker where scratch differs; null: all share `buffers`
    uint32_t workers;    // 1: not split
    double weight;
} RtLaunch;

typedef struct RtProgram {
    CoreProgram *core;
    CoreFnId entry;
    Vec(RtLaunch) launches;
    CoreValue result;    // tensors that point into the program's memory; overwritten by each run
    size_t peak_bytes;   // of intermediates and results
    double flops, bytes;
    double build_seconds, compile_seconds;
} RtProgram;

// Null with diagnostics (a shape that does not fit, sizes whose product overflows, memory). The
// arguments' tensors must stay where they are while the program is used. `dims` and `pack`: the
// entry function's own, as in core_eval.
RtProgram *rt_build(CoreProgram *core, Arena *arena, const RtOptions *options, CoreFnId entry,
                    const CoreValue *arguments, const int64_t *dims, uint32_t pack_rank,
                    const int64_t *pack);
void rt_run(RtProgram *program);
// Runs each launch by itself `runs` times; seconds[i] is the median of launch i.
void rt_time(RtProgram *program, uint32_t runs, double *seconds);
void rt_free(RtProgram *program);

#endif
