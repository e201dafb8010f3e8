// Lowering: buffers, loops and operands, shared by all kinds of nests.
#include "kernel/lowering.h"

// ---- loops ----------------------------------------------------------------------------------

LowLoop low_open(Low *low, uint32_t axis, int64_t begin, int64_t end, int64_t step, KrnShare share,
                 uint32_t count, KrnValue *carried) {
    LowIndex *at = &low->at[axis];
    LowLoop loop = {.axis = axis, .offset = at->offset};
    check_that(begin < end);
    loop.emitted = share != KRN_WHOLE || end - begin > step;
    if (!loop.emitted) {
        at->offset += begin;
        return loop;
    }
    check_that(at->count < COUNT_OF(at->term));
    KrnValue value = krn_loop(&low->b, begin, end, step, share, count, carried, carried);
    at->term[at->count++] = (KrnTerm){1, value};
    return loop;
}

void low_close(Low *low, const LowLoop *loop, uint32_t count, KrnValue *values) {
    LowIndex *at = &low->at[loop->axis];
    if (loop->emitted) {
        krn_end(&low->b, count, values, values);
        at->count--;
    }
    at->offset = loop->offset;
}

static void nest_part(Low *low, uint32_t level, int64_t begin, int64_t end, int64_t step,
                      KrnShare share) {
    uint32_t axis = low->loop[level].axis;
    int64_t block = low->block[axis];
    LowLoop loop = low_open(low, axis, begin, end, step, share, 0, NULL);
    low->block[axis] = step;
    low_nest(low, level + 1);
    low->block[axis] = block;
    low_close(low, &loop, 0, NULL);
}

// A loop over k whose last iteration stands apart: the epilogue belongs to it.
static void nest_to_last(Low *low, uint32_t level, int64_t extent, int64_t step) {
    int64_t end = extent ? (extent - 1) / step * step : 0;
    bool last = low->last;
    low->last = false;
    if (end > 0)
        nest_part(low, level, 0, end, step, KRN_WHOLE);
    low->last = last;
    if (extent > end)
        nest_part(low, level, end, extent, extent - end, KRN_WHOLE);
}

static void nest_loop(Low *low, uint32_t level) {
    const RlzLoop *loop = &low->loop[level];
    int64_t extent = low->block[loop->axis], rest = extent % loop->step;
    bool split = (int32_t)level == low->split;
    if (!loop->parallel && low->nest->epilogue && !low->layout->row_wise) {
        nest_to_last(low, level, extent, loop->step);
        return;
    }
    if (extent > rest)
        nest_part(low, level, 0, extent - rest, loop->step, split ? KRN_SPLIT : KRN_WHOLE);
    if (rest)
        nest_part(low, level, extent - rest, extent, rest, split ? KRN_TAIL : KRN_WHOLE);
}

void low_nest(Low *low, uint32_t level) {
    if (low->enter)
        low->enter(low, level);
    if (level < low->loops)
        nest_loop(low, level);
    else
        low->body(low);
    if (low->leave)
        low->leave(low, level);
}

// A loop can be split where it has two iterations (of one leaf of several, or of parts: one),
// stands in no loop over k, and is emitted once: no loop around it has a tail.
static int32_t split_level(const Low *low) {
    int32_t depth = low->divided ? low->split : low->layout->split_depth;
    if (depth < 0 || depth >= (int32_t)low->loops)
        return -1;
    for (int32_t level = 0; level < depth; level++) {
        const RlzLoop *loop = &low->loop[level];
        if (!loop->parallel || low->nest->extent[loop->axis] % loop->step != 0)
            return -1;
    }
    const RlzLoop *loop = &low->loop[depth];
    int64_t least = low->of_leaves || low->divided ? loop->step : 2 * loop->step;
    return loop->parallel && low->nest->extent[loop->axis] >= least ? depth : -1;
}

void low_run(Low *low) {
    low->split = split_level(low);
    // A leaf that cannot be divided, beside others that are, runs in the last launch alone.
    bool apart = low->of_leaves && low->layout->split_depth >= 0 && low->split < 0;
    if (apart)
        krn_loop(&low->b, 0, 1, 1, KRN_TAIL, 0, NULL, NULL);
    low_nest(low, 0);
    if (apart)
        krn_end(&low->b, 0, NULL, NULL);
}

void low_pieces(Low *low, int64_t extent, uint32_t lanes) {
    low->pieces = 0;
    for (int64_t offset = 0; offset < extent;) {
        while (lanes > extent - offset)
            lanes /= 2;
        check_that(low->pieces < LOW_PIECES_MAX);
        low->piece[low->pieces++] = (LowPiece){offset, lanes};
        offset += lanes;
    }
}

uint32_t low_widths(const Low *low, uint32_t widths[8]) {
    uint32_t count = 0;
    int64_t extent = low->vector < 0 ? 1 : low->nest->extent[low->vector];
    for (uint32_t width = low->layout->lanes; width > 0; width /= 2)
        if (width == 1 || width == low->layout->lanes || extent % low->layout->lanes & width)
            widths[count++] = width;
    return count;
}

static void fold_axis(Low *low, RlzRole role, uint32_t axis, uint32_t count, KrnValue *carried,
                      LowStep step) {
    const RlzNest *nest = low->nest;
    while (axis < nest->axes && nest->role[axis] != role)
        axis++;
    if (axis == nest->axes) {
        step(low, carried);
        return;
    }
    if (low->block[axis] == 0)
        return;
    if (low->turn.lanes && axis + 1 == nest->axes) {
        low_turn_fold(low, axis, count, carried, step);
        return;
    }
    LowLoop loop = low_open(low, axis, 0, low->block[axis], 1, KRN_WHOLE, count, carried);
    fold_axis(low, role, axis + 1, count, carried, step);
    low_close(low, &loop, count, carried);
}

void low_fold(Low *low, RlzRole role, uint32_t count, KrnValue *carried, LowStep step) {
    for (uint32_t i = 0; i < low->nest->axes; i++)
        if (low->nest->role[i] == role && low->block[i] == 0)
            return;
    fold_axis(low, role, 0, count, carried, step);
}

// ---- operands ---------------------------------------------------------------------------------

KrnIndex low_address(const Low *low, uint32_t buffer, const int64_t *stride, int64_t offset) {
    KrnIndex index = krn_index(buffer, low->vector < 0 ? 0 : stride[low->vector] * offset);
    for (uint32_t axis = 0; axis < low->nest->axes; axis++) {
        index.offset += stride[axis] * low->at[axis].offset;
        for (uint32_t i = 0; i < low->at[axis].count; i++)
            krn_index_add(&index, stride[axis] * low->at[axis].term[i].coefficient,
                          low->at[axis].term[i].value);
    }
    return index;
}

static KrnValue load_at(Low *low, const KrnIndex *index, int64_t lane_stride, uint32_t width) {
    if (width == 1)
        return krn_load(&low->b, index, 1, 1);
    if (lane_stride == 0)
        return krn_splat(&low->b, krn_load(&low->b, index, 1, 1), width);
    return krn_load(&low->b, index, width, lane_stride);
}

static int64_t lane_stride_of(const Low *low, const int64_t *stride) {
    return low->vector < 0 ? 0 : stride[low->vector];
}

KrnValue low_load(Low *low, uint32_t buffer, const int64_t *stride, const LowPiece *piece) {
    KrnValue turned;
    if (low_turned_load(low, buffer, stride, piece, &turned))
        return turned;
    KrnIndex index = low_address(low, buffer, stride, piece->offset);
    return load_at(low, &index, lane_stride_of(low, stride), piece->width);
}

// The sum of stride times index, as an i64 in each lane.
static KrnValue iota_value(Low *low, const RlzOperand *operand, const LowPiece *piece) {
    KrnBuilder *b = &low->b;
    KrnType scalar = krn_type(KRN_I64, 1);
    KrnIndex index = low_address(low, 0, operand->stride, piece->offset);
    KrnValue sum = krn_const_int(b, scalar, index.offset);
    for (uint32_t i = 0; i < index.count; i++) {
        KrnValue term = index.term[i].value;
        if (index.term[i].coefficient != 1)
            term = krn_op2(b, KRN_IMUL, term, krn_const_int(b, scalar, index.term[i].coefficient));
        sum = krn_op2(b, KRN_IADD, sum, term);
    }
    int64_t stride = lane_stride_of(low, operand->stride);
    if (piece->width == 1)
        return sum;
    sum = krn_splat(b, sum, piece->width);
    if (stride == 0)
        return sum;
    KrnValue lanes = krn_iota(b, piece->width);
    if (stride != 1)
        lanes =
            krn_op2(b, KRN_IMUL, lanes, krn_const_int(b, krn_type(KRN_I64, piece->width), stride));
    return krn_op2(b, KRN_IADD, sum, lanes);
}

// Operand 0 at the index that operand 1 holds: a range's index is one more stride, one from memory
// a loaded scalar.
static KrnValue indexed_value(Low *low, const LowPiece *piece) {
    const RlzOperand *table = &low->nest->input[0], *indices = &low->nest->input[1];
    int64_t stride[RLZ_AXES_MAX];
    memcpy(stride, table->stride, sizeof stride);
    if (indices->source == RLZ_IOTA) {
        for (uint32_t axis = 0; axis < low->nest->axes; axis++)
            stride[axis] += table->indexed_stride * indices->stride[axis];
        return low_load(low, low->buffer[0], stride, piece);
    }
    LowPiece one = {piece->offset, 1};
    KrnValue at = low_input(low, 1, &one);
    KrnIndex index = low_address(low, low->buffer[0], stride, piece->offset);
    krn_index_add(&index, table->indexed_stride, at);
    return load_at(low, &index, lane_stride_of(low, stride), piece->width);
}

KrnValue low_input(Low *low, uint32_t input, const LowPiece *piece) {
    const RlzOperand *operand = &low->nest->input[input];
    switch (operand->source) {
    case RLZ_MEMORY:
        if (low->nest->kind == RLZ_INDEXED && input == 0)
            return indexed_value(low, piece);
        return low_load(low, low->buffer[input], operand->stride, piece);
    case RLZ_IOTA:
        return iota_value(low, operand, piece);
    case RLZ_CONSTANT:
        break;
    }
    return low_constant(low, low->nest->arithmetic, piece->width, operand->constant);
}

KrnValue low_float(Low *low, KrnValue value, DType arithmetic) {
    KrnScalar want = krn_float_of(arithmetic);
    bool is = krn_type_of(low->b.kernel, value).scalar == want;
    return is ? value : krn_convert(&low->b, want, value);
}

KrnValue low_real(Low *low, uint32_t input, const LowPiece *piece, DType arithmetic) {
    return low_float(low, low_input(low, input, piece), arithmetic);
}

KrnValue low_truth(Low *low, uint32_t input, const LowPiece *piece) {
    KrnBuilder *b = &low->b;
    low->turn.truths = true;
    KrnValue value = low_input(low, input, piece);
    low->turn.truths = false;
    KrnType type = krn_type_of(b->kernel, value);
    if (type.scalar == KRN_F32)
        return krn_op2(b, KRN_NE, value, low_constant(low, F32, type.lanes, 0));
    return krn_convert(b, KRN_I1, value);
}

KrnValue low_index_value(Low *low, uint32_t axis) {
    RlzOperand operand = {.stride = {0}};
    operand.stride[axis] = 1;
    const LowIndex *at = &low->at[axis];
    if (at->offset == 0 && at->count == 1)
        return at->term[0].value;
    int32_t vector = low->vector;
    low->vector = -1;
    KrnValue value = iota_value(low, &operand, &(LowPiece){0, 1});
    low->vector = vector;
    return value;
}

void low_store(Low *low, const LowPiece *piece, KrnValue value) {
    const RlzOperand *out = &low->nest->output;
    if (dtype_is_real(out->type))
        value = low_float(low, value, out->type);
    if (low_turned_store(low, low->out, out->stride, piece, value))
        return;
    KrnIndex index = low_address(low, low->out, out->stride, piece->offset);
    krn_store(&low->b, &index, lane_stride_of(low, out->stride), value, low->layout->stream);
}

KrnValue low_constant(Low *low, DType arithmetic, uint32_t width, double value) {
    return krn_const_float(&low->b, krn_type(krn_float_of(arithmetic), width), value);
}

void low_prepare_constant(Low *low, DType arithmetic, double value) {
    uint32_t widths[8], count = low_widths(low, widths);
    for (uint32_t i = 0; i < count; i++)
        low_constant(low, arithmetic, widths[i], value);
}

// ---- kernels ----------------------------------------------------------------------------------

static const char *kernel_name(const RlzNest *nest) {
    bool group = core_prims[nest->prim].class == CORE_ELEMENTWISE && nest->nodes > 1;
    return group ? "group" : core_prims[nest->prim].text;
}

// A nest's inputs and output; of several nests they are numbered on.
static void make_buffers(Low *low) {
    const RlzNest *nest = low->nest;
    low->buffer = arena_array(low->arena, uint32_t, nest->inputs);
    for (uint32_t i = 0; i < nest->inputs; i++) {
        const RlzOperand *operand = &nest->input[i];
        if (operand->source != RLZ_MEMORY)
            continue;
        Str name = str_format(low->arena, "in%u", low->ins++);
        int64_t range = dtype_is_real(operand->type) ? 0 : operand->range;
        low->buffer[i] = krn_buffer(&low->b, name.at, operand->type,
                                    rlz_operand_span(nest, operand), range, KRN_IN);
    }
    const char *name = low->of_leaves ? str_format(low->arena, "out%u", low->outs++).at : "out";
    low->out = krn_buffer(&low->b, name, nest->output.type, rlz_operand_span(nest, &nest->output),
                          0, KRN_OUT);
}

// Is there any result?
static bool has_results(const RlzNest *nest) {
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->extent[i] == 0 && nest->role[i] != RLZ_K && nest->role[i] != RLZ_REDUCED)
            return false;
    return true;
}

static int32_t vector_axis(const RlzNest *nest) {
    int32_t axis = -1;
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_PARALLEL || nest->role[i] == RLZ_J)
            axis = (int32_t)i;
    return axis;
}

static void (*lowering_of(const RlzNest *nest))(Low *) {
    static void (*const by_kind[RLZ_KIND_COUNT])(Low *) = {
        [RLZ_GROUP] = low_map,           [RLZ_CONTRACTION] = low_contraction,
        [RLZ_REDUCTION] = low_reduction, [RLZ_ROW] = low_row,
        [RLZ_INDEXED] = low_map,         [RLZ_PERMUTE] = low_map,
    };
    switch (nest->prim) {
    case CORE_softmax_vjp:
    case CORE_reduce_max_vjp:
    case CORE_reduce_min_vjp:
        return low_reverse_row;
    case CORE_scatter_add:
        return low_scatter;
    default:
        return by_kind[nest->kind];
    }
}

static void lower_nest(Low *low, const RlzNest *nest) {
    low->nest = nest;
    low->vector = vector_axis(nest);
    memcpy(low->block, nest->extent, sizeof low->block);
    memset(low->at, 0, sizeof low->at);
    make_buffers(low);
    if (!has_results(nest))
        return;
    low->loops = rlz_layout_loops(nest, low->layout, low->loop);
    low_pieces(low, 1, 1);
    lowering_of(nest)(low);
}

static Low *new_low(const RlzLayout *layout, Arena *arena, Names *names, const char *name) {
    Low *low = arena_new_of(arena, Low);
    *low = (Low){.layout = layout, .arena = arena, .last = true};
    low->b = krn_builder(krn_new(arena, names, name), names);
    return low;
}

// The nests of all leaves, one after the other, each with a split loop whether or not the layout
// divides it among threads, so that any part can run; where there is too little, whole.
static Kernel *lower_leaves(const RlzNest *nest, const RlzLayout *layout, Arena *arena,
                            Names *names) {
    RlzLayout *split = arena_copy(arena, layout, sizeof *layout);
    RlzLayout *whole = arena_copy(arena, layout, sizeof *layout);
    split->split_depth = MAX(layout->split_depth, 0);
    whole->split_depth = -1;
    for (int pass = 0; pass < 2; pass++) {
        Low *low = new_low(pass ? whole : split, arena, names, kernel_name(nest));
        low->of_leaves = true;
        for (uint32_t i = 0; i < nest->leaves; i++)
            lower_nest(low, nest->leaf[i]);
        if (pass || low->b.kernel->split_count >= 2)
            return low->b.kernel;
    }
    bug("a group of leaves without a kernel");
}

Kernel *krn_lower(const RlzNest *nest, const RlzLayout *layout, Arena *arena, Names *names) {
    if (nest->leaves)
        return lower_leaves(nest, layout, arena, names);
    nest = rlz_layout_nest(nest, layout, arena_new_of(arena, RlzMerged));
    const char *name = kernel_name(nest);
    if (nest->epilogue)
        name = str_format(arena, "%s+add", name).at;
    Low *low = new_low(layout, arena, names, name);
    lower_nest(low, nest);
    return low->b.kernel;
}
