// Lowering of reductions: sum, mean, square_sum, reduce_max, reduce_min, argmax over the REDUCED
// axes.
//
// A maximum starts at −inf and a minimum at +inf, which leaves the first element as it is, NaN and
// signed zeros included; so an empty one is that start.
#include "kernel/lowering.h"

#include <math.h>

typedef struct Reduction {
    MthProgram step; // of a maximum or minimum
} Reduction;

static KrnValue input_term(Low *low, uint32_t piece) {
    return low_real(low, 0, &low->piece[piece], low->nest->accumulate);
}

static void extreme_step(Low *low, KrnValue *best) {
    const Reduction *reduction = low->data;
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue args[2] = {best[p], low_real(low, 0, &low->piece[p], low->nest->arithmetic)};
        best[p] = low_apply(low, &reduction->step, low->nest->arithmetic, args);
    }
}

// The first maximum: a later element wins if it is larger, or the first NaN.
static void argmax_step(Low *low, KrnValue *carried) {
    KrnBuilder *b = &low->b;
    KrnValue *best = carried, *where = carried + low->pieces;
    KrnValue index = low_index_value(low, (uint32_t)rlz_nest_axis(low->nest, RLZ_REDUCED));
    for (uint32_t p = 0; p < low->pieces; p++) {
        KrnValue x = low_real(low, 0, &low->piece[p], low->nest->arithmetic);
        KrnValue wins = krn_op2(b, KRN_LT, best[p], x);
        KrnValue first_nan =
            krn_op2(b, KRN_AND, krn_op2(b, KRN_NE, x, x), krn_op2(b, KRN_EQ, best[p], best[p]));
        wins = krn_op2(b, KRN_OR, wins, first_nan);
        uint32_t width = low->piece[p].width;
        KrnValue at = width == 1 ? index : krn_splat(b, index, width);
        best[p] = krn_op3(b, KRN_SELECT, wins, x, best[p]);
        where[p] = krn_op3(b, KRN_ISELECT, wins, at, where[p]);
    }
}

static void reduce_argmax(Low *low, KrnValue *result) {
    KrnValue *carried = arena_array(low->arena, KrnValue, 2 * low->pieces);
    for (uint32_t p = 0; p < low->pieces; p++) {
        uint32_t width = low->piece[p].width;
        carried[p] = low_constant(low, low->nest->arithmetic, width, -INFINITY);
        carried[low->pieces + p] = krn_const_int(&low->b, krn_type(KRN_I64, width), 0);
    }
    low_fold(low, RLZ_REDUCED, 2 * low->pieces, carried, argmax_step);
    memcpy(result, carried + low->pieces, low->pieces * sizeof *result);
}

static double elements(const RlzNest *nest) {
    double count = 1;
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_REDUCED)
            count *= (double)nest->extent[i];
    return count;
}

// The running sum rounded once to the arithmetic type, then divided by the count for a mean.
static void finish_sum(Low *low, KrnValue *result) {
    DType arithmetic = low->nest->arithmetic;
    double count = mth_round(arithmetic, elements(low->nest));
    for (uint32_t p = 0; p < low->pieces; p++) {
        result[p] = low_float(low, result[p], arithmetic);
        if (low->nest->prim == CORE_mean)
            result[p] = krn_op2(&low->b, KRN_DIV, result[p],
                                low_constant(low, arithmetic, low->piece[p].width, count));
    }
}

static KrnValue square_term(Low *low, uint32_t piece) {
    KrnValue x = low_real(low, 0, &low->piece[piece], low->nest->arithmetic);
    return krn_op2(&low->b, KRN_MUL, x, x);
}

static void square_step(Low *low, KrnValue *sum) {
    for (uint32_t p = 0; p < low->pieces; p++)
        sum[p] = krn_op2(&low->b, KRN_ADD, sum[p], square_term(low, p));
}

// From the second operand on: one running sum, or that of the stripes added at the end.
static void reduce_squares(Low *low, KrnValue *result) {
    const RlzNest *nest = low->nest;
    KrnValue start[LOW_PIECES_MAX];
    for (uint32_t p = 0; p < low->pieces; p++)
        result[p] = start[p] = low_real(low, 1, &low->piece[p], nest->arithmetic);
    if (nest->reduce == CORE_REDUCE_SEQUENTIAL) {
        low_fold(low, RLZ_REDUCED, low->pieces, result, square_step);
        return;
    }
    low_sum(low, nest->arithmetic, square_term, result);
    for (uint32_t p = 0; p < low->pieces; p++)
        result[p] = krn_op2(&low->b, KRN_ADD, start[p], result[p]);
}

static void reduction_body(Low *low) {
    const RlzNest *nest = low->nest;
    bool along = rlz_runs_along(nest);
    if (!along && low->vector >= 0)
        low_pieces(low, low->block[low->vector], low->layout->lanes);
    KrnValue result[LOW_PIECES_MAX];
    if (nest->prim == CORE_argmax) {
        reduce_argmax(low, result);
    } else if (nest->prim == CORE_square_sum) {
        reduce_squares(low, result);
    } else if (nest->prim == CORE_reduce_max || nest->prim == CORE_reduce_min) {
        double start = nest->prim == CORE_reduce_max ? -INFINITY : INFINITY;
        for (uint32_t p = 0; p < low->pieces; p++)
            result[p] = low_constant(low, nest->arithmetic, low->piece[p].width, start);
        low_fold(low, RLZ_REDUCED, low->pieces, result, extreme_step);
    } else {
        if (along)
            result[0] = low_sum_along(low, nest->accumulate);
        else
            low_sum(low, nest->accumulate, input_term, result);
        finish_sum(low, result);
    }
    for (uint32_t p = 0; p < low->pieces; p++)
        low_store(low, &low->piece[p], result[p]);
}

// Where results lie beside each other in the input, several vectors of them make chains enough to
// hide the latency of an addition, and use whole cache lines.
static int64_t interleaved(const Low *low) {
    int64_t lanes = low->layout->lanes;
    bool contiguous = low->nest->input[0].stride[low->vector] == 1;
    int64_t vectors =
        lanes > 1 && contiguous && low->nest->reduce == CORE_REDUCE_SEQUENTIAL ? 4 : 1;
    while (vectors > 1 && low->nest->extent[low->vector] < 2 * vectors * lanes)
        vectors /= 2;
    return vectors * lanes;
}

void low_reduction(Low *low) {
    const RlzNest *nest = low->nest;
    Reduction *reduction = arena_new_of(low->arena, Reduction);
    if (nest->prim == CORE_reduce_max || nest->prim == CORE_reduce_min)
        reduction->step = low_program(low, nest->prim == CORE_reduce_max ? MTH_max : MTH_min, 0,
                                      nest->arithmetic);
    if (rlz_runs_along(nest))
        low->scratch = krn_buffer(&low->b, "stripes", nest->accumulate, 16, 0, KRN_SCRATCH);
    else if (low->loops && low->layout->rows == 1)
        low->loop[low->loops - 1].step = interleaved(low);
    low_turn_rows(low);
    low_prepare_constant(low, nest->accumulate, 0);
    low->data = reduction;
    low->body = reduction_body;
    low_run(low);
}
