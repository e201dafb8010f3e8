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
// Sums wider than what they add, operands of other types than the result, products that round
// twice a term, sums in stripes.
void exact_nests_mixed(ExactNests *all);
// Every nest of two transformers' gradients, an optimizer's step and an image classifier's
// gradient, in each uniform realization and one of types apart; products that a gradient launches
// also with an operand to add. False with diagnostics.
bool exact_nests_of_programs(Context *context, ExactNests *all);

#endif
