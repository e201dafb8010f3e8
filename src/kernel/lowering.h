// What the lowerings of the kinds of nests share; private to lower*.c.
//
// A lowering walks the nest's parallel loops (rlz_layout_loops) with low_nest, which opens them,
// splits the one that the layout splits, peels what a step leaves over, and calls a body at the
// bottom. Everywhere, `at` says what each axis's index is at this point of the kernel, so that the
// address of any operand follows from its strides alone.
//
// Along one axis, the vector axis, a body computes several results at once: its *pieces*, each a
// vector or a scalar at an offset from the axis's index.
#ifndef PRESK_KERNEL_LOWERING_H
#define PRESK_KERNEL_LOWERING_H

#include "kernel/lower.h"

typedef struct LowIndex { // an index value: offset + the sum of coefficient times loop index
    int64_t offset;
    uint32_t count;
    KrnTerm term[4];
} LowIndex;

typedef struct LowPiece {
    int64_t offset;
    uint32_t width;
} LowPiece;

enum { LOW_PIECES_MAX = 72 };

// A block of indices along an axis, turned in registers (lower_turn.c).
enum { LOW_TURN_MAX = 16 };
typedef struct LowTurned {
    uint32_t buffer;
    int64_t offset; // of the piece
    bool stored, fresh;
    KrnValue value[LOW_TURN_MAX]; // by index along the axis
} LowTurned;

typedef struct LowTurn {
    uint32_t lanes; // of a block and of its vectors; 0: folds make no blocks
    int64_t ahead;  // how many results further on a block is fetched; 0: none
    bool open;      // within a block
    bool truths;    // indices are turned as floats, of which only what is 0 matters
    uint32_t axis, column;
    Vec(LowTurned) made;
} LowTurn;

typedef struct Low Low;
typedef void (*LowBody)(Low *low);
typedef KrnValue (*LowTerm)(Low *low, uint32_t piece);

struct Low {
    const RlzNest *nest;
    const RlzLayout *layout;
    Arena *arena;
    KrnBuilder b;
    uint32_t *buffer; // by input, where it is MEMORY
    uint32_t out, scratch;
    bool of_leaves;     // the nest is one of several of this kernel
    uint32_t ins, outs; // buffers so far
    LowIndex at[RLZ_AXES_MAX];

    int32_t vector; // the vector axis, −1: none
    uint32_t pieces;
    LowPiece piece[LOW_PIECES_MAX];

    RlzLoop loop[RLZ_LOOPS_MAX + 1];
    uint32_t loops;
    int32_t split;                           // level of the split loop, −1: none
    bool divided;                            // that loop runs over parts of an axis, for workers
    int64_t block[RLZ_AXES_MAX];             // indices that the body covers along each axis
    void (*enter)(Low *low, uint32_t level); // before the loop of a level opens; may be null
    void (*leave)(Low *low, uint32_t level); // after it is closed; may be null
    bool last;                               // of an epilogue: all loops over k are at their last
    LowTurn turn;
    LowBody body;
    LowTerm term; // of the sum under way
    void *data;   // the kind's own
};

// ---- loops ----------------------------------------------------------------------------------

typedef struct LowLoop {
    uint32_t axis;
    int64_t offset; // before
    bool emitted;   // a loop of one iteration is none, unless it is split or a tail
} LowLoop;

// A loop over an axis's index with at least one iteration, carrying `carried` in place.
LowLoop low_open(Low *low, uint32_t axis, int64_t begin, int64_t end, int64_t step, KrnShare share,
                 uint32_t count, KrnValue *carried);
// `values` are the next values, on return the final ones.
void low_close(Low *low, const LowLoop *loop, uint32_t count, KrnValue *values);

// All loops, one of them split if the layout says so; and those from a level to the bottom.
void low_run(Low *low);
void low_nest(Low *low, uint32_t level);
// Sets the pieces for `extent` indices along the vector axis, in vectors of at most `lanes`.
void low_pieces(Low *low, int64_t extent, uint32_t lanes);
// The widths of all pieces that this nest can have, widest first, for constants made beforehand.
uint32_t low_widths(const Low *low, uint32_t widths[8]);

// Runs `step`, which updates the carried values, for all indices of the axes of a role that the
// loops at this level have before them, in order.
typedef void (*LowStep)(Low *low, KrnValue *carried);
void low_fold(Low *low, RlzRole role, uint32_t count, KrnValue *carried, LowStep step);

// Transposition in registers (lower_turn.c). A fold's last axis in blocks: within one, loads and
// stores of pieces that lie along it are turned; true where they are.
void low_turn_fold(Low *low, uint32_t axis, uint32_t count, KrnValue *carried, LowStep step);
bool low_turned_load(Low *low, uint32_t buffer, const int64_t *stride, const LowPiece *piece,
                     KrnValue *value);
bool low_turned_store(Low *low, uint32_t buffer, const int64_t *stride, const LowPiece *piece,
                      KrnValue value);
// Turns the reduced axis where the layout has groups of rows that lie along it.
void low_turn_rows(Low *low);

// ---- operands ---------------------------------------------------------------------------------

// The address of an operand at the present index, `offset` further along the vector axis.
KrnIndex low_address(const Low *low, uint32_t buffer, const int64_t *stride, int64_t offset);
// A piece of a buffer with these strides, one scalar in all lanes where the vector axis does not
// move it.
KrnValue low_load(Low *low, uint32_t buffer, const int64_t *stride, const LowPiece *piece);
// A piece of an input as it comes: f32, f64, or i64 for indices and ranges.
KrnValue low_input(Low *low, uint32_t input, const LowPiece *piece);
// A value as a float of the arithmetic type.
KrnValue low_float(Low *low, KrnValue value, DType arithmetic);
// The same of an input's piece.
KrnValue low_real(Low *low, uint32_t input, const LowPiece *piece, DType arithmetic);
// An input of indices as truth values: not 0.
KrnValue low_truth(Low *low, uint32_t input, const LowPiece *piece);
// The index of an axis as a scalar i64.
KrnValue low_index_value(Low *low, uint32_t axis);
// Rounds once to the output's type and stores.
void low_store(Low *low, const LowPiece *piece, KrnValue value);
KrnValue low_constant(Low *low, DType arithmetic, uint32_t width, double value);
// Makes it outside all loops, in each width.
void low_prepare_constant(Low *low, DType arithmetic, double value);

// ---- maths (lower_maths.c) ----------------------------------------------------------------------

MthProgram low_program(Low *low, MthFunction function, int64_t exponent, DType arithmetic);
// Makes the program's constants outside all loops, in each width.
void low_prepare(Low *low, const MthProgram *program, DType arithmetic);
// Arguments are floats of the arithmetic type; the result is one, or a truth value.
KrnValue low_apply(Low *low, const MthProgram *program, DType arithmetic, const KrnValue *args);

// ---- sums (lower_sum.c) -------------------------------------------------------------------------

// The sum of a term over the REDUCED axes for each piece, in the nest's order of summation.
void low_sum(Low *low, DType type, LowTerm term, KrnValue *sum);
// The sum of input 0 for one result, in vectors along the reduced axis (rlz_runs_along).
KrnValue low_sum_along(Low *low, DType type);

// ---- kinds ------------------------------------------------------------------------------------

void low_map(Low *low); // GROUP, PERMUTE, INDEXED
void low_contraction(Low *low);
void low_reduction(Low *low);
void low_row(Low *low);
void low_reverse_row(Low *low); // softmax_vjp, reduce_max_vjp, reduce_min_vjp
void low_scatter(Low *low);     // scatter_add

#endif
