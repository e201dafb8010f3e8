// Transposition in registers. Where the results of a nest lie along the reduced axis in memory, a
// vector across results would gather one element from each. Instead a block of as many indices
// along that axis as a vector has lanes is read as vectors along it, one a result, and turned into
// vectors across results, one an index; stores go the other way. Blocks are read in an order that
// no processor foresees, so the same block of later results is fetched with each.
#include "kernel/lowering.h"

static bool turns(const Low *low, uint32_t buffer, const int64_t *stride, const LowPiece *piece) {
    const LowTurn *turn = &low->turn;
    return turn->open && piece->width == turn->lanes && stride[turn->axis] == 1 &&
           stride[low->vector] != 0 && stride[low->vector] != 1 &&
           (turn->truths || dtype_is_real(low->b.kernel->buffers.at[buffer].type));
}

// In log2(n) steps, each of which zips the lower half of the vectors with the upper one.
static void transpose(Low *low, KrnValue *value) {
    uint32_t count = low->turn.lanes, half = count / 2;
    KrnValue next[LOW_TURN_MAX];
    for (uint32_t step = 1; step < count; step *= 2) {
        for (uint32_t i = 0; i < half; i++) {
            next[2 * i] = krn_op2(&low->b, KRN_ZIP_LOW, value[i], value[half + i]);
            next[2 * i + 1] = krn_op2(&low->b, KRN_ZIP_HIGH, value[i], value[half + i]);
        }
        memcpy(value, next, count * sizeof *value);
    }
}

static LowTurned *find(Low *low, uint32_t buffer, const LowPiece *piece, bool stored) {
    for (uint32_t i = 0; i < low->turn.made.count; i++) {
        LowTurned *made = &low->turn.made.at[i];
        if (made->buffer == buffer && made->offset == piece->offset && made->stored == stored)
            return made;
    }
    LowTurned fresh = {.buffer = buffer, .offset = piece->offset, .stored = stored, .fresh = true};
    vec_push(low->arena, &low->turn.made, fresh);
    return &vec_last(&low->turn.made);
}

// The address of the vector along the axis of one result of a piece, at the block's begin.
static KrnIndex along(Low *low, uint32_t buffer, const int64_t *stride, int64_t result) {
    LowIndex *at = &low->at[low->turn.axis];
    at->offset -= low->turn.column;
    KrnIndex index = low_address(low, buffer, stride, result);
    at->offset += low->turn.column;
    return index;
}

bool low_turned_load(Low *low, uint32_t buffer, const int64_t *stride, const LowPiece *piece,
                     KrnValue *value) {
    if (!turns(low, buffer, stride, piece))
        return false;
    LowTurned *made = find(low, buffer, piece, false);
    if (made->fresh) {
        for (uint32_t i = 0; i < low->turn.lanes; i++) {
            KrnIndex index = along(low, buffer, stride, piece->offset + i);
            made->value[i] = krn_load(&low->b, &index, low->turn.lanes, 1);
            if (low->turn.ahead) {
                index.offset += low->turn.ahead * stride[low->vector];
                krn_prefetch(&low->b, &index);
            }
            if (low->turn.truths)
                made->value[i] = krn_convert(&low->b, KRN_F32, made->value[i]);
        }
        transpose(low, made->value);
        made->fresh = false;
    }
    *value = made->value[low->turn.column];
    return true;
}

bool low_turned_store(Low *low, uint32_t buffer, const int64_t *stride, const LowPiece *piece,
                      KrnValue value) {
    if (!turns(low, buffer, stride, piece))
        return false;
    LowTurned *made = find(low, buffer, piece, true);
    made->value[low->turn.column] = value;
    if (low->turn.column + 1 < low->turn.lanes)
        return true;
    transpose(low, made->value);
    for (uint32_t i = 0; i < low->turn.lanes; i++) {
        KrnIndex index = along(low, buffer, stride, piece->offset + i);
        krn_store(&low->b, &index, 1, made->value[i], low->layout->stream);
    }
    return true;
}

void low_turn_fold(Low *low, uint32_t axis, uint32_t count, KrnValue *carried, LowStep step) {
    int64_t extent = low->block[axis], lanes = low->turn.lanes;
    int64_t whole = extent - extent % lanes;
    if (whole) {
        LowLoop loop = low_open(low, axis, 0, whole, lanes, KRN_WHOLE, count, carried);
        low->turn.open = true;
        low->turn.axis = axis;
        low->turn.made.count = 0;
        for (low->turn.column = 0; low->turn.column < lanes; low->turn.column++) {
            step(low, carried);
            low->at[axis].offset++;
        }
        low->at[axis].offset -= lanes;
        low->turn.open = false;
        low_close(low, &loop, count, carried);
    }
    if (extent > whole) {
        LowLoop loop = low_open(low, axis, whole, extent, 1, KRN_WHOLE, count, carried);
        step(low, carried);
        low_close(low, &loop, count, carried);
    }
}

void low_turn_rows(Low *low) {
    const RlzNest *nest = low->nest;
    const RlzLayout *layout = low->layout;
    uint32_t last = nest->axes - 1;
    if (layout->rows > 1 && layout->lanes > 1 && nest->role[last] == RLZ_REDUCED &&
        nest->input[0].stride[last] == 1)
        low->turn.lanes = layout->lanes;
    low->turn.ahead = layout->rows;
}
