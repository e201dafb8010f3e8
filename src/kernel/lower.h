// Lowering: from a nest and its layout to a kernel. The kernel's buffers are the nest's MEMORY
// inputs in order (named in0, in1, …), then the output (out), then scratch. Of a nest of all leaves
// they are those of the first leaf, then of the second, and so on (in0, …, out0, …, out1); it has
// split loops whatever the layout states, and groups over one tree have the same ones.
#ifndef PRESK_KERNEL_LOWER_H
#define PRESK_KERNEL_LOWER_H

#include "kernel/kernel.h"
#include "realize/layout.h"
#include "realize/nest.h"

// A scalar sequential kernel (lanes 1, tile [1, 1], no split) is krn_lower at rlz_layout_scalar:
// what every other layout is compared with. The layout has been resolved and checked. A layout that
// states a split gives a kernel without one (split_count 0) where the loop at that depth has fewer
// than two iterations, or stands in a loop over k that keeps its sums in the output.
Kernel *krn_lower(const RlzNest *nest, const RlzLayout *layout, Arena *arena, Names *names);

#endif
