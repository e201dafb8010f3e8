// Sums in the orders that a realization may have.
//
// Sequential: one running sum from +0, terms in increasing flat index. Stripes16: sixteen running
// sums from +0, of the terms with flat index ≡ i (mod 16); then s_i += s_{i+8}, i+4, i+2, i+1.
#include "kernel/lowering.h"

enum { STRIPES = 16 };

static void add_term(Low *low, KrnValue *sum) {
    for (uint32_t p = 0; p < low->pieces; p++)
        sum[p] = krn_op2(&low->b, KRN_ADD, sum[p], low->term(low, p));
}

static void stripes_part(Low *low, uint32_t axis, int64_t begin, int64_t count, int64_t size,
                         int64_t phase, KrnValue *sum);

// The terms below an axis: `phase` is the flat index of the first one, mod 16. A loop runs as many
// indices an iteration as it takes until the phase is the same again.
static void stripes_level(Low *low, uint32_t axis, int64_t phase, KrnValue *sum) {
    while (axis < low->nest->axes && low->nest->role[axis] != RLZ_REDUCED)
        axis++;
    if (axis == low->nest->axes) {
        add_term(low, sum + phase % STRIPES * low->pieces);
        return;
    }
    int64_t size = 1, period = STRIPES, extent = low->nest->extent[axis];
    for (uint32_t inner = axis + 1; inner < low->nest->axes; inner++)
        if (low->nest->role[inner] == RLZ_REDUCED)
            size = size * (low->nest->extent[inner] % STRIPES) % STRIPES;
    while (period > 1 && size * (period / 2) % STRIPES == 0)
        period /= 2;
    int64_t whole = extent - extent % period;
    if (whole) {
        uint32_t count = STRIPES * low->pieces;
        LowLoop loop = low_open(low, axis, 0, whole, period, KRN_WHOLE, count, sum);
        stripes_part(low, axis, 0, period, size, phase, sum);
        low_close(low, &loop, count, sum);
    }
    stripes_part(low, axis, whole, extent - whole, size, phase, sum);
}

static void stripes_part(Low *low, uint32_t axis, int64_t begin, int64_t count, int64_t size,
                         int64_t phase, KrnValue *sum) {
    int64_t offset = low->at[axis].offset;
    for (int64_t i = begin; i < begin + count; i++) {
        low->at[axis].offset = offset + i;
        stripes_level(low, axis + 1, (phase + i * size) % STRIPES, sum);
    }
    low->at[axis].offset = offset;
}

// Adds the stripes of each piece pairwise; the result is stripe 0's.
static void join_stripes(Low *low, uint32_t pieces, KrnValue *sum) {
    for (uint32_t half = STRIPES / 2; half > 0; half /= 2)
        for (uint32_t i = 0; i < half * pieces; i++)
            sum[i] = krn_op2(&low->b, KRN_ADD, sum[i], sum[i + half * pieces]);
}

static bool has_terms(const RlzNest *nest) {
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_REDUCED && nest->extent[i] == 0)
            return false;
    return true;
}

void low_sum(Low *low, DType type, LowTerm term, KrnValue *sum) {
    low->term = term;
    for (uint32_t p = 0; p < low->pieces; p++)
        sum[p] = low_constant(low, type, low->piece[p].width, 0);
    if (low->nest->reduce == CORE_REDUCE_SEQUENTIAL) {
        low_fold(low, RLZ_REDUCED, low->pieces, sum, add_term);
        return;
    }
    KrnValue *stripes = arena_array(low->arena, KrnValue, STRIPES * low->pieces);
    for (uint32_t i = 0; i < STRIPES * low->pieces; i++)
        stripes[i] = sum[i % low->pieces];
    if (has_terms(low->nest))
        stripes_level(low, 0, 0, stripes);
    join_stripes(low, low->pieces, stripes);
    memcpy(sum, stripes, low->pieces * sizeof *sum);
}

// ---- along the reduced axis -------------------------------------------------------------------

static KrnValue along_term(Low *low, uint32_t piece, DType type) {
    return low_real(low, 0, &low->piece[piece], type);
}

// Vectors of stripes for all but the last few elements; then each stripe as a scalar, through
// scratch memory, takes its share of those.
KrnValue low_sum_along(Low *low, DType type) {
    uint32_t axis = (uint32_t)rlz_nest_axis(low->nest, RLZ_REDUCED);
    int32_t across = low->vector;
    int64_t extent = low->nest->extent[axis], whole = extent - extent % STRIPES;
    int64_t one[RLZ_AXES_MAX] = {0};
    one[axis] = 1;
    low->vector = (int32_t)axis;
    low_pieces(low, STRIPES, MIN(low->layout->lanes, STRIPES));
    KrnValue sum[STRIPES];
    for (uint32_t p = 0; p < low->pieces; p++)
        sum[p] = low_constant(low, type, low->piece[p].width, 0);
    if (whole) {
        LowLoop loop = low_open(low, axis, 0, whole, STRIPES, KRN_WHOLE, low->pieces, sum);
        for (uint32_t p = 0; p < low->pieces; p++)
            sum[p] = krn_op2(&low->b, KRN_ADD, sum[p], along_term(low, p, type));
        low_close(low, &loop, low->pieces, sum);
    }
    if (low->pieces < STRIPES) {
        for (uint32_t p = 0; p < low->pieces; p++) {
            KrnIndex index = low_address(low, low->scratch, one, low->piece[p].offset);
            krn_store(&low->b, &index, 1, sum[p], false);
        }
        low_pieces(low, STRIPES, 1);
        for (uint32_t p = 0; p < low->pieces; p++)
            sum[p] = low_load(low, low->scratch, one, &low->piece[p]);
    }
    low->at[axis].offset += whole;
    for (uint32_t p = 0; p < extent - whole; p++)
        sum[p] = krn_op2(&low->b, KRN_ADD, sum[p], along_term(low, p, type));
    low->at[axis].offset -= whole;
    join_stripes(low, 1, sum);
    low->vector = across;
    low_pieces(low, 1, 1);
    return sum[0];
}
