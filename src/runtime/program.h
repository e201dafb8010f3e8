// Inside of a program: buffers with lifetimes, kernels, host cells. Shared by the builder, the
// memory planner and the runner.
#ifndef PRESK_RUNTIME_PROGRAM_H
#define PRESK_RUNTIME_PROGRAM_H

#include "base/file.h"
#include "core/concrete.h"
#include "runtime/runtime.h"

// Memory of one value. Launches are numbered in order; a buffer lives from the launch that writes
// it to the last one that reads it, and results live to the end.
typedef struct RtBuffer {
    size_t bytes;
    void *external; // an argument's or constant's memory; null: planned in the block
    uint32_t first, last;
    size_t offset; // in the block
} RtBuffer;

enum { RT_FOREVER = UINT32_MAX };

// A host scalar that depends on hyperparameters: read by kernels from `at`.
typedef struct RtCell {
    CoreScalar scalar;
    DType type;
    const int64_t *by_dim;
    void *at;
} RtCell;

// Which buffers a launch reads and writes, by kernel buffer (inputs in nest order, the output).
typedef struct RtUse {
    uint32_t count;
    uint32_t *buffer;
    uint32_t scratch; // a buffer with every worker's scratch, or 0
} RtUse;

// Launches first … first + count − 1, which run piece by piece (chain.c).
typedef struct RtChain {
    uint32_t first, count;
    int64_t pieces; // at most the iterations of a launch
} RtChain;

struct RtProgram {
    CoreProgram *core;
    Arena *arena;
    RtOptions options;
    Vec(RtLaunch) launches;
    Vec(RtUse) uses;
    Vec(RtBuffer) buffers; // at[0] unused
    Vec(RtKernel *) kernels;
    Map *kernel_of; // nest and layout text → index into kernels
    Vec(RtCell) cells;
    Vec(RtChain) chains; // in order
    CoreValue result;
    void *block;
    uint64_t ran;        // launches
    uint32_t first_call; // launches up to the end of the entry's first call
    RtSummary summary;
};

// Finds the program's chains, and lets their buffers live as long as they have to; before rt_plan.
void rt_find_chains(RtProgram *program);

// Gives every planned buffer an offset such that buffers alive at once do not overlap; returns the
// size of the block. Offsets are multiples of 64.
size_t rt_plan(RtBuffer *buffers, uint32_t count, Arena *arena);

#endif
