// What the lowering of contractions (lower_contraction.c) shares with its copies of operands
// (lower_pack.c).
#ifndef PRESK_KERNEL_CONTRACTION_H
#define PRESK_KERNEL_CONTRACTION_H

#include "kernel/lowering.h"

typedef struct LowContraction {
    int32_t i, j; // the axes, −1: none
    bool spilled;
    uint32_t first_k;                   // spilled: the level of the first K loop
    uint32_t right;                     // operand 1's pack
    int64_t right_stride[RLZ_AXES_MAX]; // and its strides there
    uint32_t right_level;               // where it is made
    LowIndex right_block[RLZ_AXES_MAX]; // where the packed block begins
    uint32_t left;                      // operand 0's pack
    int64_t left_stride[RLZ_AXES_MAX];  // of K axes
    int64_t left_terms;                 // of a tile's row
    uint32_t left_level;
    LowIndex left_block[RLZ_AXES_MAX], tile; // and where the present tile begins
    int64_t m;                               // rows of the present tile
    KrnValue *sum;                           // accumulators: [row][piece]
} LowContraction;

// Makes the buffers and strides of the copies that the layout has.
void low_prepare_packs(Low *low);
// Copies where this level is the one to do it.
void low_make_packs(Low *low, uint32_t level);
// A piece of operand 1, and operand 0's element of the present row, in the running sum's type.
KrnValue low_right(Low *low, const LowPiece *piece);
KrnValue low_left(Low *low);
// Fetches what the next tile of operand 0 needs at this k and the following ones, `terms` in all.
// Where it lies along k, that is a line of low_prefetch_line indices for each row.
void low_prefetch_left(Low *low, int64_t terms);
bool low_prefetch_by_lines(const Low *low);
int64_t low_prefetch_line(const Low *low);

#endif
