// Lowering of the derivatives of softmax, maximum and minimum: a fold over the row, then a second
// pass that stores. What a row has in common with others runs in lanes across them.
#include "kernel/lowering.h"

#include <math.h>

typedef struct Reverse {
    KrnValue found[LOW_PIECES_MAX]; // softmax: the sum; else the position of the extreme
    KrnValue ct[LOW_PIECES_MAX];    // of a maximum or minimum
} Reverse;

static KrnValue real_value(Low *low, uint32_t input, uint32_t piece) {
    return low_real(low, input, &low->piece[piece], low->nest->arithmetic);
}

static KrnValue zero(Low *low, uint32_t piece) {
    return low_constant(low, low->nest->arithmetic, low->piece[piece].width, 0);
}

// ---- softmax: y (ct − Σ ct y) -------------------------------------------------------------------

enum { SOFTMAX_Y, SOFTMAX_CT };

static KrnValue softmax_term(Low *low, uint32_t piece) {
    KrnValue ct = real_value(low, SOFTMAX_CT, piece);
    return krn_op2(&low->b, KRN_MUL, ct, real_value(low, SOFTMAX_Y, piece));
}

static void softmax_step(Low *low, KrnValue *none) {
    (void)none;
    KrnBuilder *b = &low->b;
    const Reverse *reverse = low->data;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue y = real_value(low, SOFTMAX_Y, p);
        KrnValue rest = krn_op2(b, KRN_SUB, real_value(low, SOFTMAX_CT, p), reverse->found[p]);
        KrnValue none_here = krn_op2(b, KRN_EQ, y, zero(low, p));
        low_store(low, &low->piece[p],
                  krn_op3(b, KRN_SELECT, none_here, zero(low, p), krn_op2(b, KRN_MUL, y, rest)));
    }
}

// ---- maximum and minimum ------------------------------------------------------------------------

enum { EXTREME_X, EXTREME_CT, EXTREME_POSITION };

// The first extreme: a later element wins if it is beyond, or the first NaN.
static void extreme_step(Low *low, KrnValue *carried) {
    KrnBuilder *b = &low->b;
    KrnValue *best = carried, *where = carried + low->pieces;
    bool max = low->nest->prim == CORE_reduce_max_vjp;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue x = real_value(low, EXTREME_X, p);
        KrnValue beyond = max ? krn_op2(b, KRN_LT, best[p], x) : krn_op2(b, KRN_LT, x, best[p]);
        KrnValue first_nan =
            krn_op2(b, KRN_AND, krn_op2(b, KRN_NE, x, x), krn_op2(b, KRN_EQ, best[p], best[p]));
        KrnValue wins = krn_op2(b, KRN_OR, beyond, first_nan);
        best[p] = krn_op3(b, KRN_SELECT, wins, x, best[p]);
        where[p] = krn_op3(b, KRN_ISELECT, wins, low_input(low, EXTREME_POSITION, &low->piece[p]),
                           where[p]);
    }
}

static void find_extreme(Low *low) {
    Reverse *reverse = low->data;
    double start = low->nest->prim == CORE_reduce_max_vjp ? -INFINITY : INFINITY;
    KrnValue *carried = arena_array(low->arena, KrnValue, 2 * low->pieces);
    for (uint32_t p = 0; p < low->pieces; p++) {
        uint32_t width = low->piece[p].width;
        carried[p] = low_constant(low, low->nest->arithmetic, width, start);
        carried[low->pieces + p] = krn_const_int(&low->b, krn_type(KRN_I64, width), 0);
    }
    low_fold(low, RLZ_REDUCED, 2 * low->pieces, carried, extreme_step);
    memcpy(reverse->found, carried + low->pieces, low->pieces * sizeof *carried);
}

static void give_step(Low *low, KrnValue *none) {
    (void)none;
    KrnBuilder *b = &low->b;
    const Reverse *reverse = low->data;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue position = low_input(low, EXTREME_POSITION, &low->piece[p]);
        KrnValue here = krn_op2(b, KRN_IEQ, position, reverse->found[p]);
        low_store(low, &low->piece[p], krn_op3(b, KRN_SELECT, here, reverse->ct[p], zero(low, p)));
    }
}

// ---- all ----------------------------------------------------------------------------------------

static void reverse_body(Low *low) {
    Reverse *reverse = low->data;
    if (low->vector >= 0)
        low_pieces(low, low->block[low->vector], low->layout->lanes);
    if (low->nest->prim == CORE_softmax_vjp) {
        low_sum(low, low->nest->arithmetic, softmax_term, reverse->found);
        low_fold(low, RLZ_REDUCED, 0, NULL, softmax_step);
        return;
    }
    find_extreme(low);
    for (uint32_t p = 0; p < low->pieces; p++)
        reverse->ct[p] = real_value(low, EXTREME_CT, p);
    low_fold(low, RLZ_REDUCED, 0, NULL, give_step);
}

void low_reverse_row(Low *low) {
    low->data = arena_new_of(low->arena, Reverse);
    low_prepare_constant(low, low->nest->arithmetic, 0);
    low_turn_rows(low);
    low->body = reverse_body;
    low_run(low);
}
