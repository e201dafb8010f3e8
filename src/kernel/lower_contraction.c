// Lowering of contractions: every form, tile, k-block, order, lane count and pack by one builder.
//
// The loops are rlz_layout_loops: outer axes, then the block loops of I, J and K in the layout's
// order. At the bottom stands a tile of m × n results, its n columns in vectors (pieces), held in
// accumulators while K runs. Each result adds its terms to +0 in increasing k wherever the loops
// stand, so every layout gives the same bits.
//
// Where K's block loop encloses a loop of I or J, a result is visited once a block: its running sum
// waits in the output, which is set to 0 first (*spilled*). The row-wise form is the spilled tile
// [1, J] whose K block is one term.
#include "kernel/lowering.h"

typedef struct Contraction {
    uint32_t right;                     // operand 1's buffer: in memory, or packed
    int64_t right_stride[RLZ_AXES_MAX]; // and its strides there
    int32_t i;                          // the I axis, −1: none
    bool spilled;
    uint32_t first_k;    // spilled: the level of the first K loop
    uint32_t pack_level; // where the pack is made
    int64_t m;           // rows of the present tile
    KrnValue *sum;       // accumulators: [row][piece]
} Contraction;

// ---- tiles ------------------------------------------------------------------------------------

static void set_tile(Low *low) {
    Contraction *c = low->data;
    c->m = c->i < 0 ? 1 : low->block[c->i];
    if (low->vector >= 0)
        low_pieces(low, low->block[low->vector], low->layout->lanes);
    c->sum = arena_array(low->arena, KrnValue, (size_t)c->m * low->pieces);
}

static void move_row(Low *low, int64_t rows) {
    const Contraction *c = low->data;
    if (c->i >= 0)
        low->at[c->i].offset += rows;
}

typedef KrnValue (*TileValue)(Low *low, KrnValue sum, const LowPiece *piece);

// For each result of the tile, at its index: a new accumulator, or a store (`value` gives 0).
static void for_tile(Low *low, TileValue value) {
    const Contraction *c = low->data;
    for (int64_t row = 0; row < c->m; row++) {
        for (uint32_t p = 0; p < low->pieces; p++) {
            KrnValue *sum = &c->sum[row * low->pieces + p];
            *sum = value(low, *sum, &low->piece[p]);
        }
        move_row(low, 1);
    }
    move_row(low, -c->m);
}

static KrnValue zero(Low *low, KrnValue sum, const LowPiece *piece) {
    (void)sum;
    return low_constant(low, low->nest->accumulate, piece->width, 0);
}

static KrnValue load_spilled(Low *low, KrnValue sum, const LowPiece *piece) {
    (void)sum;
    return low_load(low, low->out, low->nest->output.stride, piece);
}

static KrnValue store_result(Low *low, KrnValue sum, const LowPiece *piece) {
    low_store(low, piece, low_float(low, sum, low->nest->arithmetic));
    return sum;
}

static KrnValue store_zero(Low *low, KrnValue sum, const LowPiece *piece) {
    low_store(low, piece, zero(low, sum, piece));
    return sum;
}

// ---- terms ------------------------------------------------------------------------------------

static KrnValue add_product(Low *low, KrnValue left, KrnValue right, KrnValue sum) {
    if (!low->nest->multiply_add)
        return krn_op3(&low->b, KRN_FMA, left, right, sum);
    return krn_op2(&low->b, KRN_ADD, sum, krn_op2(&low->b, KRN_MUL, left, right));
}

// An operand in the type of the running sum.
static KrnValue operand_value(Low *low, uint32_t buffer, const int64_t *stride,
                              const LowPiece *piece) {
    return low_float(low, low_load(low, buffer, stride, piece), low->nest->accumulate);
}

static KrnValue left_value(Low *low) {
    return operand_value(low, low->buffer[0], low->nest->input[0].stride, &(LowPiece){0, 1});
}

// One term of each result of the tile. An ein reads operand 0 first, the products of a dot and its
// derivatives where they multiply it.
static void add_terms(Low *low, KrnValue *sum) {
    const Contraction *c = low->data;
    KrnValue right[LOW_PIECES_MAX], first = 0;
    bool ein = low->nest->prim == CORE_ein;
    if (ein)
        first = left_value(low);
    for (uint32_t p = 0; p < low->pieces; p++)
        right[p] = operand_value(low, c->right, c->right_stride, &low->piece[p]);
    for (int64_t row = 0; row < c->m; row++) {
        KrnValue left = ein && row == 0 ? first : left_value(low);
        KrnValue wide = left;
        for (uint32_t p = 0, width = 1; p < low->pieces; p++) {
            if (low->piece[p].width != width) {
                width = low->piece[p].width;
                wide = width == 1 ? left : krn_splat(&low->b, left, width);
            }
            KrnValue *at = &sum[row * low->pieces + p];
            *at = add_product(low, wide, right[p], *at);
        }
        move_row(low, 1);
    }
    move_row(low, -c->m);
}

static uint32_t accumulators(const Low *low) {
    const Contraction *c = low->data;
    return (uint32_t)c->m * low->pieces;
}

// All of K: its last axis in blocks, if the layout says so, each of them whole.
static void sum_blocks(Low *low, uint32_t axis, KrnValue *sum);

static void sum_block(Low *low, uint32_t axis, int64_t begin, int64_t end, int64_t step,
                      KrnValue *sum) {
    LowLoop block = low_open(low, axis, begin, end, step, KRN_WHOLE, accumulators(low), sum);
    LowLoop loop = low_open(low, axis, 0, step, 1, KRN_WHOLE, accumulators(low), sum);
    add_terms(low, sum);
    low_close(low, &loop, accumulators(low), sum);
    low_close(low, &block, accumulators(low), sum);
}

static void sum_blocks(Low *low, uint32_t axis, KrnValue *sum) {
    int64_t extent = low->nest->extent[axis], step = low->layout->kblock;
    if (axis + 1 < low->nest->axes) {
        LowLoop loop = low_open(low, axis, 0, extent, 1, KRN_WHOLE, accumulators(low), sum);
        sum_blocks(low, axis + 1, sum);
        low_close(low, &loop, accumulators(low), sum);
        return;
    }
    if (extent >= step)
        sum_block(low, axis, 0, extent - extent % step, step, sum);
    if (extent % step)
        sum_block(low, axis, extent - extent % step, extent, extent % step, sum);
}

static void sum_all(Low *low, KrnValue *sum) {
    int32_t first = rlz_nest_axis(low->nest, RLZ_K);
    if (first >= 0 && low->layout->kblock && !low->layout->row_wise)
        sum_blocks(low, (uint32_t)first, sum);
    else
        low_fold(low, RLZ_K, accumulators(low), sum, add_terms);
}

// The block of K at which the loops stand.
static void sum_rest(Low *low, KrnValue *sum) {
    uint32_t axis = low->nest->axes - 1;
    LowLoop loop = low_open(low, axis, 0, low->block[axis], 1, KRN_WHOLE, accumulators(low), sum);
    add_terms(low, sum);
    low_close(low, &loop, accumulators(low), sum);
}

static bool has_terms(const RlzNest *nest) {
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_K && nest->extent[i] == 0)
            return false;
    return true;
}

static void tile_body(Low *low) {
    const Contraction *c = low->data;
    set_tile(low);
    for_tile(low, c->spilled ? load_spilled : zero);
    if (c->spilled)
        sum_rest(low, c->sum);
    else if (has_terms(low->nest))
        sum_all(low, c->sum);
    for_tile(low, store_result);
}

// ---- spills and packs ---------------------------------------------------------------------------

static void zero_body(Low *low) {
    set_tile(low);
    for_tile(low, store_zero);
}

// Sets to 0 what the loops below this level visit: their parallel ones, run once.
static void store_zeros(Low *low, uint32_t level) {
    Low inner = *low;
    inner.loops = level;
    for (uint32_t i = level; i < low->loops; i++)
        if (low->loop[i].parallel)
            inner.loop[inner.loops++] = low->loop[i];
    inner.split = -1;
    inner.enter = NULL;
    inner.body = zero_body;
    low_nest(&inner, level);
    low->b = inner.b;
}

static void copy_to_pack(Low *low, KrnValue *none) {
    (void)none;
    const Contraction *c = low->data;
    LowPiece one = {0, 1};
    KrnValue value = low_load(low, low->buffer[1], low->nest->input[1].stride, &one);
    KrnIndex index = low_address(low, low->scratch, c->right_stride, 0);
    krn_store(&low->b, &index, 1, value, false);
}

static void copy_row_to_pack(Low *low, KrnValue *none) {
    low_fold(low, RLZ_J, 0, none, copy_to_pack);
}

// Operand 1 to [K, J], at the level below the outer axes that it carries.
static void prepare_pack(Low *low) {
    Contraction *c = low->data;
    const RlzNest *nest = low->nest;
    int64_t size = 1;
    memset(c->right_stride, 0, sizeof c->right_stride);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t axis = nest->axes; axis-- > 0;)
            if (nest->role[axis] == (pass ? RLZ_K : RLZ_J)) {
                c->right_stride[axis] = nest->extent[axis] == 1 ? 0 : size;
                size *= nest->extent[axis];
            }
    c->pack_level = 0;
    for (uint32_t axis = 0; axis < nest->axes && nest->role[axis] == RLZ_OUTER; axis++)
        if (nest->input[1].stride[axis])
            c->pack_level = axis + 1;
    low->scratch = krn_buffer(&low->b, "pack", nest->input[1].type, size, 0, KRN_SCRATCH);
    c->right = low->scratch;
}

static void enter_level(Low *low, uint32_t level) {
    const Contraction *c = low->data;
    if (low->layout->pack && level == c->pack_level)
        low_fold(low, RLZ_K, 0, NULL, copy_row_to_pack);
    if (c->spilled && level == c->first_k)
        store_zeros(low, level);
}

// ---- all ----------------------------------------------------------------------------------------

// K is spilled where a loop of I or J stands within its block loop. Where none does, K's loops
// belong to the tile.
static void find_spill(Low *low) {
    Contraction *c = low->data;
    uint32_t loops = low->loops;
    while (loops > 0 && !low->loop[loops - 1].parallel)
        loops--;
    c->first_k = 0;
    while (c->first_k < loops && low->loop[c->first_k].parallel)
        c->first_k++;
    c->spilled = c->first_k < loops;
    if (!c->spilled)
        low->loops = loops;
}

// A row-wise loop over J takes several vectors an iteration, so that operand 0's element serves
// them all.
static void widen_rows(Low *low) {
    int64_t step = low->layout->lanes > 1 ? 4 * low->layout->lanes : 1;
    while (step > 1 && step > low->nest->extent[low->vector])
        step /= 2;
    low->loop[low->loops - 1].step = step;
}

void low_contraction(Low *low) {
    const RlzNest *nest = low->nest;
    Contraction *c = arena_new_of(low->arena, Contraction);
    c->i = rlz_nest_axis(nest, RLZ_I);
    c->right = low->buffer[1];
    memcpy(c->right_stride, nest->input[1].stride, sizeof c->right_stride);
    low->data = c;
    low->body = tile_body;
    low->enter = enter_level;
    low_prepare_constant(low, nest->accumulate, 0);
    find_spill(low);
    if (low->layout->row_wise && c->spilled)
        widen_rows(low);
    if (low->layout->pack)
        prepare_pack(low);
    low_run(low);
}
