// Lowering of row nests: softmax, log_softmax, logsumexp, cross_entropy and its derivative, along
// one axis.
//
// A first pass finds the maximum m, a second sums e = exp(x − m) to s, a third gives the results;
// in two passes softmax stores e while it sums and divides in place. Refused positions (a mask)
// count for neither and give 0; a softmax row whose maximum is −inf is all 0.
//
// Rows that are turned in registers are turned once: the first pass holds them in scratch memory as
// the vectors that the later passes want, refused positions as −inf. Two passes hold e there, so
// that the output is written once.
#include "kernel/lowering.h"

#include <math.h>

typedef struct Row {
    MthProgram max, exp, log;
    KrnValue m[LOW_PIECES_MAX], s[LOW_PIECES_MAX];
    KrnValue target[LOW_PIECES_MAX], ct[LOW_PIECES_MAX]; // of cross_entropy's derivative
    bool holds, held; // rows in low->scratch: once they are there
} Row;

static uint32_t row_axis(const Low *low) {
    return (uint32_t)rlz_nest_axis(low->nest, RLZ_REDUCED);
}

static bool has_mask(const Low *low) {
    return low->nest->prim == CORE_softmax && low->nest->inputs == 2;
}

static KrnValue number(Low *low, uint32_t piece, double value) {
    return low_constant(low, low->nest->arithmetic, low->piece[piece].width, value);
}

static KrnIndex held_at(const Low *low, uint32_t piece) {
    int64_t stride[RLZ_AXES_MAX] = {0};
    stride[row_axis(low)] = low->layout->rows;
    KrnIndex index = low_address(low, low->scratch, stride, 0);
    index.offset += low->piece[piece].offset;
    return index;
}

static KrnValue held_value(Low *low, uint32_t piece) {
    KrnIndex index = held_at(low, piece);
    return krn_load(&low->b, &index, low->piece[piece].width, 1);
}

static void hold(Low *low, uint32_t piece, KrnValue value) {
    KrnIndex index = held_at(low, piece);
    krn_store(&low->b, &index, 1, value, false);
}

static KrnValue x_value(Low *low, uint32_t piece) {
    const Row *row = low->data;
    if (row->held)
        return held_value(low, piece);
    return low_real(low, 0, &low->piece[piece], low->nest->arithmetic);
}

// `value` where the mask allows the position, else `refused`.
static KrnValue where_allowed(Low *low, uint32_t piece, KrnValue value, double refused) {
    if (!has_mask(low))
        return value;
    KrnValue mask = low_truth(low, 1, &low->piece[piece]);
    return krn_op3(&low->b, KRN_SELECT, mask, value, number(low, piece, refused));
}

static KrnValue centred(Low *low, uint32_t piece) {
    const Row *row = low->data;
    return krn_op2(&low->b, KRN_SUB, x_value(low, piece), row->m[piece]);
}

// Held rows need no mask: −inf is refused or has the exponential +0 as well, and where m makes that
// NaN, so are the sum and what the result selects. The exponential that is not wanted is that of 0:
// one that underflows takes a hundred times as long.
static KrnValue held_exponential(Low *low, uint32_t piece) {
    const Row *row = low->data;
    KrnBuilder *b = &low->b;
    KrnValue zero = number(low, piece, 0), x = x_value(low, piece);
    KrnValue none = krn_op2(b, KRN_EQ, x, number(low, piece, -INFINITY));
    x = krn_op3(b, KRN_SELECT, none, zero, krn_op2(b, KRN_SUB, x, row->m[piece]));
    return krn_op3(b, KRN_SELECT, none, zero, low_apply(low, &row->exp, low->nest->arithmetic, &x));
}

static KrnValue exponential(Low *low, uint32_t piece) {
    const Row *row = low->data;
    if (row->held && has_mask(low))
        return held_exponential(low, piece);
    KrnValue x = centred(low, piece);
    return where_allowed(low, piece, low_apply(low, &row->exp, low->nest->arithmetic, &x), 0);
}

static KrnValue stored_exponential(Low *low, uint32_t piece) {
    const Row *row = low->data;
    KrnValue e = exponential(low, piece);
    if (row->held)
        hold(low, piece, e);
    else
        low_store(low, &low->piece[piece], e);
    return e;
}

static void max_step(Low *low, KrnValue *m) {
    const Row *row = low->data;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue args[2] = {m[p], where_allowed(low, p, x_value(low, p), -INFINITY)};
        if (row->holds)
            hold(low, p, args[1]);
        m[p] = low_apply(low, &row->max, low->nest->arithmetic, args);
    }
}

// ---- cross_entropy ------------------------------------------------------------------------------

// The target's x can be loaded where its index is a scalar in memory. In lanes, each index is
// compared while the maximum is found.
static bool loads_target(const Low *low) {
    if (low->nest->input[1].source != RLZ_MEMORY || low->nest->extent[row_axis(low)] == 0)
        return false;
    for (uint32_t p = 0; p < low->pieces; p++)
        if (low->piece[p].width > 1)
            return false;
    return true;
}

static void target_step(Low *low, KrnValue *carried) {
    KrnBuilder *b = &low->b;
    max_step(low, carried);
    KrnValue index = low_index_value(low, row_axis(low));
    for (uint32_t p = 0; p < low->pieces; p++) {
        uint32_t width = low->piece[p].width;
        KrnValue at = width == 1 ? index : krn_splat(b, index, width);
        KrnValue is = krn_op2(b, KRN_IEQ, at, low_input(low, 1, &low->piece[p]));
        KrnValue *x = &carried[low->pieces + p];
        *x = krn_op3(b, KRN_SELECT, is, x_value(low, p), *x);
    }
}

static KrnValue target_value(Low *low, uint32_t piece) {
    const RlzOperand *x = &low->nest->input[0];
    KrnIndex index = low_address(low, low->buffer[0], x->stride, low->piece[piece].offset);
    krn_index_add(&index, x->stride[row_axis(low)], low_input(low, 1, &low->piece[piece]));
    return low_float(low, krn_load(&low->b, &index, 1, 1), low->nest->arithmetic);
}

// log s − (x_t − m)
static void store_cross_entropy(Low *low, const KrnValue *target, const KrnValue *log_s) {
    const Row *row = low->data;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue x = krn_op2(&low->b, KRN_SUB, target[p], row->m[p]);
        low_store(low, &low->piece[p], krn_op2(&low->b, KRN_SUB, log_s[p], x));
    }
}

// m + log s, or m where it is infinite.
static void store_logsumexp(Low *low) {
    const Row *row = low->data;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue sum = krn_op2(&low->b, KRN_ADD, row->m[p], row->s[p]);
        KrnValue size = krn_op1(&low->b, KRN_ABS, row->m[p]);
        KrnValue infinite = krn_op2(&low->b, KRN_EQ, size, number(low, p, INFINITY));
        low_store(low, &low->piece[p], krn_op3(&low->b, KRN_SELECT, infinite, row->m[p], sum));
    }
}

// ---- all ----------------------------------------------------------------------------------------

// The maximum of each piece to row->m and, where it is not loaded, the target's x to `target`.
static void find_max(Low *low, bool with_target, KrnValue *target) {
    Row *row = low->data;
    uint32_t count = with_target ? 2 * low->pieces : low->pieces;
    KrnValue *carried = arena_array(low->arena, KrnValue, 2 * low->pieces);
    for (uint32_t i = 0; i < count; i++)
        carried[i] = i < low->pieces ? number(low, i, -INFINITY) : number(low, i - low->pieces, 0);
    low_fold(low, RLZ_REDUCED, count, carried, with_target ? target_step : max_step);
    memcpy(row->m, carried, low->pieces * sizeof *row->m);
    memcpy(target, carried + low->pieces, low->pieces * sizeof *target);
    row->held = row->holds;
}

// e / s, 0 where the maximum is −inf.
static KrnValue share(Low *low, uint32_t p, KrnValue e) {
    const Row *row = low->data;
    KrnValue y = krn_op2(&low->b, KRN_DIV, e, row->s[p]);
    KrnValue empty = krn_op2(&low->b, KRN_EQ, row->m[p], number(low, p, -INFINITY));
    return krn_op3(&low->b, KRN_SELECT, empty, number(low, p, 0), y);
}

static void softmax_step(Low *low, KrnValue *none) {
    (void)none;
    const Row *row = low->data;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue e;
        if (low->layout->passes != 2)
            e = exponential(low, p);
        else if (row->held)
            e = held_value(low, p);
        else
            e = low_load(low, low->out, low->nest->output.stride, &low->piece[p]);
        low_store(low, &low->piece[p], where_allowed(low, p, share(low, p, e), 0));
    }
}

// (e / s − one at the target) ct
static void cross_entropy_vjp_step(Low *low, KrnValue *none) {
    (void)none;
    KrnBuilder *b = &low->b;
    const Row *row = low->data;
    KrnValue index = low_index_value(low, row_axis(low));
    for (uint32_t p = 0; p < low->pieces; p++) {
        uint32_t width = low->piece[p].width;
        KrnValue at = width == 1 ? index : krn_splat(b, index, width);
        KrnValue y = share(low, p, exponential(low, p));
        KrnValue less = krn_op2(b, KRN_SUB, y, number(low, p, 1));
        y = krn_op3(b, KRN_SELECT, krn_op2(b, KRN_IEQ, at, row->target[p]), less, y);
        low_store(low, &low->piece[p], krn_op2(b, KRN_MUL, y, row->ct[p]));
    }
}

static void cross_entropy_vjp(Low *low) {
    Row *row = low->data;
    for (uint32_t p = 0; p < low->pieces; p++) {
        row->target[p] = low_input(low, 1, &low->piece[p]);
        row->ct[p] = low_real(low, 2, &low->piece[p], low->nest->arithmetic);
    }
    low_fold(low, RLZ_REDUCED, 0, NULL, cross_entropy_vjp_step);
}

// (x − m) − log s; row->s holds log s.
static void log_softmax_step(Low *low, KrnValue *none) {
    (void)none;
    const Row *row = low->data;
    for (uint32_t p = 0; p < low->pieces; p++)
        low_store(low, &low->piece[p], krn_op2(&low->b, KRN_SUB, centred(low, p), row->s[p]));
}

static void row_body(Low *low) {
    Row *row = low->data;
    CorePrim prim = low->nest->prim;
    row->held = false;
    if (low->vector >= 0)
        low_pieces(low, low->block[low->vector], low->layout->lanes);
    KrnValue target[LOW_PIECES_MAX];
    bool loads = prim == CORE_cross_entropy && loads_target(low);
    find_max(low, prim == CORE_cross_entropy && !loads, target);
    for (uint32_t p = 0; loads && p < low->pieces; p++)
        target[p] = target_value(low, p);
    bool stores = prim == CORE_softmax && low->layout->passes == 2;
    uint32_t turned = low->turn.lanes;
    low->turn.lanes = row->held ? 0 : turned;
    low_sum(low, low->nest->arithmetic, stores ? stored_exponential : exponential, row->s);
    low->turn.lanes = turned;
    if (prim == CORE_softmax) {
        low_fold(low, RLZ_REDUCED, 0, NULL, softmax_step);
        return;
    }
    if (prim == CORE_cross_entropy_vjp) {
        cross_entropy_vjp(low);
        return;
    }
    for (uint32_t p = 0; p < low->pieces; p++)
        row->s[p] = low_apply(low, &row->log, low->nest->arithmetic, &row->s[p]);
    if (prim == CORE_log_softmax)
        low_fold(low, RLZ_REDUCED, 0, NULL, log_softmax_step);
    else if (prim == CORE_cross_entropy)
        store_cross_entropy(low, target, row->s);
    else
        store_logsumexp(low);
}

// Turned rows are held where a group of them leaves room in a cache.
static void hold_rows(Low *low) {
    enum { BYTES = 512 << 10 };
    Row *row = low->data;
    int64_t size = low->layout->rows * low->nest->extent[row_axis(low)];
    row->holds = low->turn.lanes && size * (int64_t)dtype_size(low->nest->arithmetic) <= BYTES;
    if (row->holds)
        low->scratch = krn_buffer(&low->b, "rows", low->nest->arithmetic, size, 0, KRN_SCRATCH);
}

void low_row(Low *low) {
    Row *row = arena_new_of(low->arena, Row);
    DType arithmetic = low->nest->arithmetic;
    row->max = low_program(low, MTH_max, 0, arithmetic);
    row->exp = low_program(low, MTH_exp, 0, arithmetic);
    if (low->nest->prim != CORE_softmax && low->nest->prim != CORE_cross_entropy_vjp)
        row->log = low_program(low, MTH_log, 0, arithmetic);
    low_prepare_constant(low, arithmetic, 0);
    low_prepare_constant(low, arithmetic, -INFINITY);
    if (low->nest->prim == CORE_logsumexp)
        low_prepare_constant(low, arithmetic, INFINITY);
    if (low->nest->prim == CORE_cross_entropy_vjp)
        low_prepare_constant(low, arithmetic, 1);
    low_turn_rows(low);
    low->data = row;
    hold_rows(low);
    low->body = row_body;
    low_run(low);
}
