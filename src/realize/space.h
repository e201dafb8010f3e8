// The space of a nest: the layouts among which a plan is chosen.
//
// Its core is enumerated whole: form, tile, k-block, order, lanes (one or the widest legal), pack,
// tail, passes, rows and split. On target 128 that is the space of the plan reference. Modifiers
// (blocks of rows, pack of the left operand, prefetch, unrolling, merged axes, streamed stores) are
// tried on chosen points of the core. Points are legal (legal.h); an epilogue is the nest's own.
//
// Left out are points whose kernel another one has: a tail where everything divides, a tile or a
// k-block longer than its axis.
#ifndef PRESK_REALIZE_SPACE_H
#define PRESK_REALIZE_SPACE_H

#include "realize/legal.h"

// The points of the core, in the arena, in a fixed order; how many.
uint32_t rlz_space_core(const RlzNest *nest, const RlzMachine *machine, Arena *arena,
                        RlzLayout **points);
// A point of the core with modifiers, such that every two values of two modifiers that the nest has
// occur together at least once; the point itself comes first.
uint32_t rlz_space_modified(const RlzNest *nest, const RlzMachine *machine, const RlzLayout *point,
                            Arena *arena, RlzLayout **points);

#endif
