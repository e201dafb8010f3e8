// Layouts: how a nest's loops run. A layout moves no bit. Decisions, their domains and defaults
// are those of the plan reference.
#ifndef PRESK_REALIZE_LAYOUT_H
#define PRESK_REALIZE_LAYOUT_H

#include "realize/nest.h"

// The vector registers that a layout may use, in bits: 128, 256 or 512.
typedef uint32_t RlzTarget;

enum { RLZ_PACK_NONE, RLZ_PACK_ROWS, RLZ_PACK_PANEL };
enum { RLZ_ORDER_IJ, RLZ_ORDER_JI, RLZ_ORDER_IJK }; // values of the decision; more follow

// A value for each decision of decision.def, which says what they mean.
typedef struct RlzLayout {
    bool row_wise;    // form: running sums in the output row instead of registers; tile, kblock
                      // and order are then [1, 1], 0 and unused
    uint32_t tile[2]; // [m, n]: results held in accumulators
    uint32_t kblock;  // of the innermost K axis; 0: none
    uint8_t
        order[3];   // block loops, outermost first: RlzRole values I, J, K (K last without kblock)
    uint32_t lanes; // of a contraction's tile, along J; elsewhere across output elements, along
                    // the last PARALLEL axis (sums in stripes16 may run along the reduced one)
    int32_t split_depth; // −1: none
    uint32_t split_workers;
    uint8_t pack;    // operand 1 of a contraction copied: RLZ_PACK_ROWS to [K, J], RLZ_PACK_PANEL
                     // to [J / n, K, n]
    uint32_t passes; // softmax: 3 or 2
    bool epilogue;   // the nest has one (RlzNest.epilogue) exactly then
    bool peel;       // tail
    bool pack_left;
    uint32_t iblock; // tiles of rows; 0: none
    bool prefetch;
    uint32_t unroll; // ≥ 1
    bool merge;
    uint32_t rows;   // ≥ 1
    bool all_leaves; // leaves: the nest is of all leaves (RlzNest.leaves) exactly then
    bool stream;
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
// The same where some decisions are stated (a set of bits by RlzDecision): their values are those
// of `stated`, the rest follow from them.
RlzLayout rlz_layout_complete(const RlzNest *nest, RlzTarget target, uint32_t workers,
                              bool lanes_one, uint32_t decisions, const RlzLayout *stated);
// One line with every decision that the nest has: "tile [1, 8] order IJ lanes 8 split 0 over 2";
// those beyond the first ones only where they are not their default. Together with the nest's text,
// the key of a kernel.
Str rlz_layout_text(const RlzNest *nest, const RlzLayout *layout, Arena *arena);

// The nest whose outer axes that operand 0 alone carries, and that continue I in memory, are part
// of I, and whose summed axes that continue the last one are part of it: what a layout with `merge`
// runs.
typedef struct RlzMerged {
    RlzNest nest;
    RlzOperand input[3];
} RlzMerged;
// `nest` itself where the layout does not merge or nothing is to be merged, else &merged->nest.
const RlzNest *rlz_layout_nest(const RlzNest *nest, const RlzLayout *layout, RlzMerged *merged);

// Operand 1 of a contraction lies along J: consecutive columns are consecutive in memory.
bool rlz_right_along_j(const RlzNest *nest);

#endif
