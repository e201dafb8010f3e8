// Exactness: every point of the space of many nests against the scalar sequential kernel, bit for
// bit, by the interpreter and as native code, on 1, 2, 3 and 7 threads, with guard words around
// every buffer and outputs and scratch memory full of NaN beforehand.
#ifndef PRESK_TESTS_EXACT_H
#define PRESK_TESTS_EXACT_H

#include "base/context.h"

typedef struct ExactReport {
    uint64_t nests, points; // points of all spaces
    uint64_t texts;         // distinct kernels that ran
    uint64_t native;        // of these, kernels that ran as native code, by target
    uint64_t split;         // kernels that ran on several threads
    Str failure;            // empty: every bit was right
} ExactReport;

// `sample`: about so many points in a fixed choice; 0: all. `progress`: lines on stdout.
ExactReport exact_run(Context *context, uint64_t sample, bool progress);

#endif
