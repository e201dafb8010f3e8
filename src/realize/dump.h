// Nests as `presk dump --stage realize` shows them.
#ifndef PRESK_REALIZE_DUMP_H
#define PRESK_REALIZE_DUMP_H

#include "realize/layout.h"

// Extents in the order of the nest's axes: "4096x1536x384"; "1" where there is none. A layout key
// may name a site at this shape: "Linear.apply/%3@4096x1536x384".
Str rlz_nest_shape(const RlzNest *nest, Arena *arena);

// "contraction dot f32   outer 16  I 256  J 64  K 256   tile [1, 8] order IJ lanes 8"; a group says
// how many members it has.
Str rlz_nest_line(const RlzNest *nest, const RlzLayout *layout, Arena *arena);

#endif
