// Random arguments for a random program's entry, and comparison of results.
#ifndef PRESK_TESTS_RANDOM_VALUE_H
#define PRESK_TESTS_RANDOM_VALUE_H

#include "core/eval.h"
#include "support/random_program.h"

// One value a parameter: reals mostly within ±2, some whole, zero of either sign; in one tensor
// of four also large, small, infinite and NaN; indices within their bounds. The same for the same
// seed.
CoreValue *random_arguments(const RandomProgram *program, uint64_t seed, DType inputs, DType params,
                            Arena *arena);

// The empty string where two values agree bit for bit (a NaN with any NaN), else where they differ:
// "part 2, part 0, element 17: 0.5 and 0.25".
Str value_difference(const CoreValue *a, const CoreValue *b, Arena *arena);

#endif
