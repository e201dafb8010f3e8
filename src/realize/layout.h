// Layouts: how a nest's loops run. A layout moves no bit. Decisions, their domains and defaults
// are those of the plan reference.
#ifndef PRESK_REALIZE_LAYOUT_H
#define PRESK_REALIZE_LAYOUT_H

#include "realize/nest.h"

// The vector registers that a layout may use, in bits: 128, 256 or 512.
typedef uint32_t RlzTarget;

typedef struct RlzLayout {
    bool row_wise;    // form: running sums in the output row instead of registers; tile, kblock
                      // and order are then [1, 1], 0 and unused
    uint32_t tile[2]; // [m, n]: results held in accumulators
    uint32_t kblock;  // of the innermost K axis; 0: none
    uint8_t order[3]; // block loops, outermost first: RlzRole values I, J (, K)
    uint32_t lanes;   // of a contraction's tile, along J; elsewhere across output elements, along
                      // the last PARALLEL axis (sums in stripes16 may run along the reduced one)
    int32_t split_depth; // −1: none
    uint32_t split_workers;
    bool pack;       // operand 1 of a contraction copied to [K, J] before the block loops
    uint32_t passes; // softmax: 3 or 2
} RlzLayout;

// The loops that a split's depth counts, outermost first: each nest axis in steps. A K axis is
// listed only where it stands outside a block loop of I or J or is blocked.
typedef struct RlzLoop {
    uint32_t axis;
    int64_t step;
    bool parallel;
} RlzLoop;
enum { RLZ_LOOPS_MAX = RLZ_AXES_MAX + 1 };
uint32_t rlz_layout_loops(const RlzNest *nest, const RlzLayout *layout,
                          RlzLoop loops[RLZ_LOOPS_MAX]);

// Lane counts that a target allows to a nest's types, ascending from 1; how many.
enum { RLZ_LANES_CHOICES = 4 };
uint32_t rlz_lanes_legal(const RlzNest *nest, RlzTarget target, uint32_t lanes[RLZ_LANES_CHOICES]);

// Sums in stripes16 whose reduced axis is contiguous run their lanes along it, one result at a
// time: the sixteen partial sums are lanes. All other lanes run across results.
bool rlz_runs_along(const RlzNest *nest);

// The default of every decision at this nest, target and lanes: `lanes_one` gives the kernel
// interpreter's default (one lane everywhere), else the target's widest legal.
RlzLayout rlz_layout_default(const RlzNest *nest, RlzTarget target, uint32_t workers,
                             bool lanes_one);
RlzLayout rlz_layout_scalar(const RlzNest *nest);
// One line with every decision that the nest has: "tile [1, 8] order IJ lanes 8 split 0 over 2".
// Together with the nest's text, the key of a kernel.
Str rlz_layout_text(const RlzNest *nest, const RlzLayout *layout, Arena *arena);

#endif
