// Exactness: every point of the spaces of many nests against the scalar sequential kernel, bit for
// bit, by the interpreter and as native code, on 1, 2, 3 and 7 threads, with guard words around
// every buffer and outputs and scratch memory full of NaN beforehand.
//
// Of each nest all points of the core run on every target that the machine has, and of one point in
// EXACT_MODIFIED_EVERY modifiers such that every two values of two of them meet. Points whose
// kernel has a text that came before on the target are not run again. The interpreter runs each
// text once. As native code runs one kernel in `native_share`; of those longer than
// EXACT_NATIVE_INSTS instructions one in n times as many, n growing with their length as their time
// in LLVM does, but at least one in EXACT_NATIVE_MOST; and on a wider target one in EXACT_REPEATED
// times as many of the texts that a narrower one had.
#ifndef PRESK_TESTS_EXACT_H
#define PRESK_TESTS_EXACT_H

#include "base/context.h"

enum {
    EXACT_MODIFIED_EVERY = 47,
    EXACT_NATIVE_INSTS = 128,
    EXACT_NATIVE_MOST = 16,
    EXACT_REPEATED = 4,
    EXACT_LENGTHS = 12
};

typedef struct ExactOptions {
    uint64_t sample;       // about so many points, in a fixed choice; 0: all
    uint32_t native_share; // one kernel in so many also runs as native code; 0: 1
    double seconds;        // no new points after so long; 0: no limit
    uint32_t workers;      // 0: pool_default_workers()
    bool progress;         // on standard output
    const char *table;     // a file for the coverage by nest kind and type; null: none
} ExactOptions;

typedef struct ExactReport {
    uint32_t nests;
    uint64_t points;                   // of all spaces, those of each target
    uint64_t chosen;                   // of these, distinct kernels by nest and target
    uint64_t reached;                  // of these, those that ran
    uint64_t texts;                    // distinct kernels that ran, each in the interpreter
    uint64_t split;                    // of these, kernels that ran on several threads
    uint64_t natives;                  // kernels that ran as native code, by target
    uint64_t length[EXACT_LENGTHS][2]; // by number of instructions: ran natively, of how many
    Str coverage;                      // a table: kernels by value of each decision
    Str failure;                       // empty: every bit was right
} ExactReport;

ExactReport exact_run(Context *context, const ExactOptions *options);
void exact_print(const ExactReport *report);

#endif
