// Layouts: how a nest's loops run. A layout moves no bit. Decisions, their domains and defaults
// are those of the plan reference; decision.def lists them.
#ifndef PRESK_REALIZE_LAYOUT_H
#define PRESK_REALIZE_LAYOUT_H

#include "realize/nest.h"

// The vector registers that a layout may use, in bits: 128, 256 or 512.
typedef uint32_t RlzTarget;

typedef struct RlzLayout {
    bool row_wise;    // form: running sums in the output row instead of registers; tile, kblock
                      // and order are then [1, 1], 0 and unused
    uint32_t tile[2]; // [m, n]: results held in accumulators
    uint32_t kblock;  // 0: none
    uint8_t order[3]; // block loops, outermost first: RlzRole values I, J (, K)
    uint32_t lanes;   // of a contraction's tile, along J; elsewhere across output elements, along
                      // the last PARALLEL axis
    int32_t split_depth; // −1: none
    uint32_t split_workers;
    bool pack;       // operand 1 of an NT contraction copied to [outer, K, J]
    uint32_t passes; // softmax: 3 or 2
} RlzLayout;

// The default of every decision at this nest, target and lanes: `lanes_one` gives the kernel
// interpreter's default (one lane everywhere), else the target's widest legal.
RlzLayout rlz_layout_default(const RlzNest *nest, RlzTarget target, uint32_t workers,
                             bool lanes_one);
RlzLayout rlz_layout_scalar(const RlzNest *nest);
// One line: "tile [1, 8] lanes 8 split 0 over 2".
Str rlz_layout_text(const RlzNest *nest, const RlzLayout *layout, Arena *arena);

#endif
