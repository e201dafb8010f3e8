// The nests whose spaces are run: made by hand for each kind, and those of programs.
#ifndef PRESK_TESTS_EXACT_NESTS_H
#define PRESK_TESTS_EXACT_NESTS_H

#include "support/nest_run.h"

typedef struct ExactNests {
    Arena *arena;
    Map *seen; // texts of nests
    Vec(const RlzNest *) nests;
} ExactNests;

void exact_nests_by_hand(ExactNests *all, DType storage);
void exact_leaves_by_hand(ExactNests *all, DType storage);
// Every nest of a small transformer's gradient and optimizer step, of an image classifier's
// gradient, in a realization. False with diagnostics.
bool exact_nests_of_programs(Context *context, ExactNests *all, const char *realization);

#endif
