// Pairs of forward and backward functions, one for each function and set of active parameters.
#ifndef PRESK_AD_VARIANT_H
#define PRESK_AD_VARIANT_H

#include "ad/sweep.h"

enum { AD_ACTIVE_MAX = 64 };

typedef struct AdVariant {
    CoreFnId fn;
    uint64_t mask;    // bit i: parameter i is active; AD_ACTIVE_MAX of them at most
    CoreFnId forward; // fn itself where nothing is saved
    CoreFnId backward;
    uint32_t saved;         // values after the first of the forward's result
    CoreTypeId *saved_type; // in fn's dimensions and pack
    Vec(uint32_t) params;   // parameters of fn that the backward function takes, in order
} AdVariant;

typedef struct AdState {
    CoreProgram *program;
    Arena *arena;
    Vec(AdVariant *) variants;
} AdState;

// The pair of a function, made where it is not there yet; null after a diagnostic.
const AdVariant *ad_variant(AdState *state, CoreFnId fn, uint64_t mask);
// The body of a gradient that is only declared; false after a diagnostic.
bool ad_gradient(AdState *state, CoreFnId fn);

#endif
