// One kernel of a nest against what the nest's scalar sequential kernel computes.
#ifndef PRESK_TESTS_EXACT_POINT_H
#define PRESK_TESTS_EXACT_POINT_H

#include "base/pool.h"
#include "native/native.h"
#include "support/nest_run.h"

// What a kernel reads and has to write: of one nest of several leaves, each has a part.
typedef struct ExactPart {
    const RlzNest *nest;
    Data *data; // by input
    Data output;
} ExactPart;

typedef struct ExactTruth {
    uint32_t parts;
    ExactPart *part;
} ExactTruth;

// Draws inputs and computes the outputs: of a nest with an epilogue by the product's kernel, then
// the add's; of all leaves in one nest by each leaf's own. What stays is in the arena.
ExactTruth exact_truth(const RlzNest *nest, Random *random, Arena *arena, Arena *scratch,
                       Names *names);

// A kernel that is split runs on 1, 2, 3 and 7 threads.
enum { EXACT_THREADS = 4 };
typedef struct ExactPools {
    Pool *pool[EXACT_THREADS];
} ExactPools;
ExactPools exact_pools(void);
void exact_pools_free(ExactPools *pools);

// Runs a kernel, natively or (null) in the interpreter, into an output full of NaN. What is wrong,
// in the arena; empty: nothing.
Str exact_check(const ExactTruth *truth, const ExactPools *pools, const Kernel *kernel,
                NatFunction native, Arena *arena);

#endif
