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
#include "kernel/contraction.h"

// ---- tiles ------------------------------------------------------------------------------------

static void set_tile(Low *low) {
    LowContraction *c = low->data;
    c->m = c->i < 0 ? 1 : low->block[c->i];
    if (low->vector >= 0)
        low_pieces(low, low->block[low->vector], low->layout->lanes);
    c->sum = arena_array(low->arena, KrnValue, (size_t)c->m * low->pieces);
    if (c->i >= 0)
        c->tile = low->at[c->i];
}

static void move_row(Low *low, int64_t rows) {
    const LowContraction *c = low->data;
    if (c->i >= 0)
        low->at[c->i].offset += rows;
}

typedef KrnValue (*TileValue)(Low *low, KrnValue sum, const LowPiece *piece);

// For each result of the tile, at its index: a new accumulator, or a store (`value` gives 0).
static void for_tile(Low *low, TileValue value) {
    const LowContraction *c = low->data;
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

// A result, rounded to the storage type, plus the other operand of the epilogue: what the add's own
// kernel would read and compute.
static KrnValue with_epilogue(Low *low, KrnValue result, const LowPiece *piece) {
    DType arithmetic = low->nest->arithmetic;
    const RlzOperand *out = &low->nest->output;
    if (out->type != arithmetic) {
        low_store(low, piece, result);
        result = low_float(low, low_load(low, low->out, out->stride, piece), arithmetic);
    }
    return krn_op2(&low->b, KRN_ADD, result, low_real(low, 2, piece, arithmetic));
}

// Whether the results that are stored now are whole, so that the epilogue follows.
static bool is_finished(const Low *low) {
    const LowContraction *c = low->data;
    return low->nest->epilogue && (!c->spilled || (low->last && !low->layout->row_wise));
}

static KrnValue store_result(Low *low, KrnValue sum, const LowPiece *piece) {
    KrnValue result = low_float(low, sum, low->nest->arithmetic);
    low_store(low, piece, is_finished(low) ? with_epilogue(low, result, piece) : result);
    return sum;
}

static KrnValue store_epilogue(Low *low, KrnValue sum, const LowPiece *piece) {
    low_store(low, piece, with_epilogue(low, sum, piece));
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

// One term of each result of the tile. An ein reads operand 0 first, the products of a dot and its
// derivatives where they multiply it.
static void add_terms(Low *low, KrnValue *sum) {
    const LowContraction *c = low->data;
    KrnValue right[LOW_PIECES_MAX], first = 0;
    bool ein = low->nest->prim == CORE_ein;
    if (ein)
        first = low_left(low);
    for (uint32_t p = 0; p < low->pieces; p++)
        right[p] = low_right(low, &low->piece[p]);
    for (int64_t row = 0; row < c->m; row++) {
        KrnValue left = ein && row == 0 ? first : low_left(low);
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
    const LowContraction *c = low->data;
    return (uint32_t)c->m * low->pieces;
}

// Terms begin … end − 1 of the innermost K axis, relative to its index, several an iteration.
static void sum_range(Low *low, uint32_t axis, int64_t begin, int64_t end, int64_t step,
                      KrnValue *sum) {
    if (begin == end)
        return;
    LowLoop loop = low_open(low, axis, begin, end, step, KRN_WHOLE, accumulators(low), sum);
    if (low->layout->prefetch && !low_prefetch_by_lines(low))
        low_prefetch_left(low, step);
    for (int64_t i = 0; i < step; i++) {
        low->at[axis].offset += i;
        add_terms(low, sum);
        low->at[axis].offset -= i;
    }
    low_close(low, &loop, accumulators(low), sum);
}

static void sum_unrolled(Low *low, uint32_t axis, int64_t end, KrnValue *sum) {
    int64_t whole = end - end % low->layout->unroll;
    sum_range(low, axis, 0, whole, low->layout->unroll, sum);
    sum_range(low, axis, whole, end, 1, sum);
}

// One prefetch for each cache line along k.
static void sum_lines(Low *low, uint32_t axis, int64_t begin, int64_t end, int64_t step,
                      KrnValue *sum) {
    if (begin == end)
        return;
    LowLoop line = low_open(low, axis, begin, end, step, KRN_WHOLE, accumulators(low), sum);
    low_prefetch_left(low, step);
    sum_unrolled(low, axis, step, sum);
    low_close(low, &line, accumulators(low), sum);
}

static void sum_terms(Low *low, uint32_t axis, int64_t end, KrnValue *sum) {
    if (!low->layout->prefetch || !low_prefetch_by_lines(low)) {
        sum_unrolled(low, axis, end, sum);
        return;
    }
    int64_t line = low_prefetch_line(low), whole = end - end % line;
    sum_lines(low, axis, 0, whole, line, sum);
    sum_lines(low, axis, whole, end, end % line, sum);
}

static void sum_block(Low *low, uint32_t axis, int64_t begin, int64_t end, int64_t step,
                      KrnValue *sum) {
    if (begin == end)
        return;
    LowLoop block = low_open(low, axis, begin, end, step, KRN_WHOLE, accumulators(low), sum);
    sum_terms(low, axis, step, sum);
    low_close(low, &block, accumulators(low), sum);
}

// All of K from an axis on: its last one in blocks, if the layout says so.
static void sum_axes(Low *low, uint32_t axis, KrnValue *sum) {
    int64_t extent = low->nest->extent[axis], step = low->layout->kblock;
    if (axis + 1 < low->nest->axes) {
        LowLoop loop = low_open(low, axis, 0, extent, 1, KRN_WHOLE, accumulators(low), sum);
        sum_axes(low, axis + 1, sum);
        low_close(low, &loop, accumulators(low), sum);
    } else if (step && !low->layout->row_wise) {
        sum_block(low, axis, 0, extent - extent % step, step, sum);
        sum_block(low, axis, extent - extent % step, extent, extent % step, sum);
    } else {
        sum_terms(low, axis, extent, sum);
    }
}

static void sum_all(Low *low, KrnValue *sum) {
    int32_t first = rlz_nest_axis(low->nest, RLZ_K);
    if (first >= 0)
        sum_axes(low, (uint32_t)first, sum);
    else
        add_terms(low, sum);
}

// The block of K at which the loops stand.
static void sum_rest(Low *low, KrnValue *sum) {
    uint32_t axis = low->nest->axes - 1;
    sum_terms(low, axis, low->block[axis], sum);
}

static bool has_terms(const RlzNest *nest) {
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_K && nest->extent[i] == 0)
            return false;
    return true;
}

static void tile_body(Low *low) {
    const LowContraction *c = low->data;
    set_tile(low);
    for_tile(low, c->spilled ? load_spilled : zero);
    if (c->spilled)
        sum_rest(low, c->sum);
    else if (has_terms(low->nest))
        sum_all(low, c->sum);
    for_tile(low, store_result);
}

// ---- spills -------------------------------------------------------------------------------------

static void zero_body(Low *low) {
    set_tile(low);
    for_tile(low, store_zero);
}

static void epilogue_body(Low *low) {
    set_tile(low);
    for_tile(low, load_spilled);
    for_tile(low, store_epilogue);
}

// Once over what the loops below this level visit: their parallel ones.
static void sweep(Low *low, uint32_t level, LowBody body) {
    Low inner = *low;
    inner.loops = level;
    for (uint32_t i = level; i < low->loops; i++)
        if (low->loop[i].parallel)
            inner.loop[inner.loops++] = low->loop[i];
    inner.split = -1;
    inner.enter = inner.leave = NULL;
    inner.body = body;
    low_nest(&inner, level);
    low->b = inner.b;
}

static void enter_level(Low *low, uint32_t level) {
    const LowContraction *c = low->data;
    low_make_packs(low, level);
    if (c->spilled && level == c->first_k)
        sweep(low, level, zero_body);
}

// The epilogue where it has no last block of K to belong to.
static void leave_level(Low *low, uint32_t level) {
    const LowContraction *c = low->data;
    bool blocks = !low->layout->row_wise && has_terms(low->nest);
    if (low->nest->epilogue && c->spilled && level == c->first_k && !blocks)
        sweep(low, level, epilogue_body);
}

// ---- all ----------------------------------------------------------------------------------------

// K is spilled where a loop of I or J stands within its block loop. Where none does, K's loops
// belong to the tile.
static void find_spill(Low *low) {
    LowContraction *c = low->data;
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

// A loop that is to be split and stands within loops over k: outside of them, its axis is divided
// into a part for each worker.
static void make_parts(Low *low) {
    const RlzLayout *layout = low->layout;
    int32_t first = 0, depth = layout->split_depth;
    while (first < (int32_t)low->loops && low->loop[first].parallel)
        first++;
    if (layout->row_wise || depth <= first || depth >= (int32_t)low->loops ||
        !low->loop[depth].parallel)
        return;
    RlzLoop part = low->loop[depth];
    for (int32_t i = 0; i < first; i++)
        if (low->loop[i].axis == part.axis)
            return;
    part.step *= MAX(low->nest->extent[part.axis] / part.step / layout->split_workers, 1);
    memmove(low->loop + first + 1, low->loop + first,
            (low->loops - (uint32_t)first) * sizeof *low->loop);
    low->loop[first] = part;
    low->loops++;
    low->split = first;
    low->divided = true;
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
    LowContraction *c = arena_new_of(low->arena, LowContraction);
    c->i = rlz_nest_axis(nest, RLZ_I);
    c->j = rlz_nest_axis(nest, RLZ_J);
    low->data = c;
    low->body = tile_body;
    low->enter = enter_level;
    low->leave = leave_level;
    low_prepare_constant(low, nest->accumulate, 0);
    make_parts(low);
    find_spill(low);
    if (low->layout->row_wise && c->spilled)
        widen_rows(low);
    low_prepare_packs(low);
    low_run(low);
}
