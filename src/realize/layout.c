// Layouts: defaults, the loops they make, their text.
#include "realize/decision.h"

// ---- lanes --------------------------------------------------------------------------------------

typedef enum LaneType { LANES_F32, LANES_F64, LANES_BF16 } LaneType;

// bf16 is converted on load, so half a register of bf16 is a whole one of f32.
static LaneType lane_type(const RlzNest *nest) {
    bool wide = nest->arithmetic == F64 || nest->accumulate == F64;
    bool narrow = nest->output.type == BF16;
    for (uint32_t i = 0; i < nest->nodes; i++)
        wide = wide || nest->node[i].arithmetic == F64;
    for (uint32_t i = 0; i < nest->inputs; i++)
        narrow = narrow || (nest->input[i].source == RLZ_MEMORY && nest->input[i].type == BF16);
    return wide ? LANES_F64 : narrow ? LANES_BF16 : LANES_F32;
}

uint32_t rlz_lanes_legal(const RlzNest *nest, RlzTarget target, uint32_t lanes[RLZ_LANES_CHOICES]) {
    static const uint32_t first[] = {[LANES_F32] = 4, [LANES_F64] = 2, [LANES_BF16] = 8};
    LaneType type = lane_type(nest);
    uint32_t widest = target / (type == LANES_F64 ? 64 : 32), count = 0;
    lanes[count++] = 1;
    for (uint32_t width = first[type]; width <= widest; width *= 2)
        lanes[count++] = width;
    return count;
}

// The widest legal count that divides or, where a tail can be peeled, does not exceed `extent`.
static uint32_t widest(const RlzNest *nest, RlzTarget target, int64_t extent, bool divides) {
    uint32_t lanes[RLZ_LANES_CHOICES], found = 1;
    uint32_t count = rlz_lanes_legal(nest, target, lanes);
    for (uint32_t i = 0; i < count; i++)
        if (lanes[i] <= extent && (!divides || extent % lanes[i] == 0))
            found = lanes[i];
    return found;
}

static int32_t last_parallel(const RlzNest *nest) {
    int32_t last = -1;
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_PARALLEL)
            last = (int32_t)i;
    return last;
}

// Each lane of a gather would need an address of its own where the index varies along the lanes.
static bool index_varies(const RlzNest *nest, int32_t axis) {
    return nest->kind == RLZ_INDEXED && nest->input[1].source == RLZ_MEMORY &&
           nest->input[1].stride[axis] != 0;
}

bool rlz_runs_along(const RlzNest *nest) {
    int32_t across = last_parallel(nest), along = rlz_nest_axis(nest, RLZ_REDUCED);
    return nest->kind == RLZ_REDUCTION && nest->prim != CORE_square_sum &&
           nest->reduce == CORE_REDUCE_STRIPES16 && along >= 0 &&
           (uint32_t)along + 1 == nest->axes && nest->input[0].source == RLZ_MEMORY &&
           nest->input[0].stride[along] == 1 && (across < 0 || nest->input[0].stride[across] != 1);
}

bool rlz_right_along_j(const RlzNest *nest) {
    int32_t j = rlz_nest_axis(nest, RLZ_J);
    return j >= 0 && nest->input[1].stride[j] == 1;
}

static uint32_t default_lanes(const RlzNest *nest, const RlzLayout *layout, RlzTarget target) {
    int32_t axis = last_parallel(nest);
    if (nest->kind == RLZ_CONTRACTION) {
        int32_t j = rlz_nest_axis(nest, RLZ_J);
        if (j < 0 || (!layout->pack && !rlz_right_along_j(nest)))
            return 1;
        return layout->row_wise ? widest(nest, target, nest->extent[j], false)
                                : widest(nest, target, layout->tile[1], true);
    }
    if (rlz_runs_along(nest))
        return widest(nest, target, INT64_MAX, false);
    if (axis < 0 || index_varies(nest, axis))
        return 1;
    return layout->rows > 1 ? widest(nest, target, layout->rows, true)
                            : widest(nest, target, nest->extent[axis], false);
}

// ---- loops --------------------------------------------------------------------------------------

static void add_loop(RlzLoop loops[], uint32_t *count, uint32_t axis, int64_t step, bool parallel) {
    loops[(*count)++] = (RlzLoop){axis, step, parallel};
}

// The K axes as a block loop: those but the last one whole, the last in blocks.
static void add_k_loops(const RlzNest *nest, int64_t block, RlzLoop loops[], uint32_t *count) {
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_K)
            add_loop(loops, count, i, i + 1 == nest->axes ? block : 1, false);
}

// Several tiles of rows a block: the loop over them stands within the other block loops, but
// outside K's where that is the last one.
static void add_rows_of_block(const RlzNest *nest, const RlzLayout *layout, RlzLoop loops[],
                              uint32_t *count) {
    int32_t axis = rlz_nest_axis(nest, RLZ_I);
    if (layout->iblock && axis >= 0)
        add_loop(loops, count, (uint32_t)axis, layout->tile[0], true);
}

static void block_loop(const RlzNest *nest, const RlzLayout *layout, RlzRole role, RlzLoop loops[],
                       uint32_t *count) {
    int32_t axis = rlz_nest_axis(nest, role);
    int64_t step = layout->tile[role == RLZ_J];
    if (role == RLZ_I && layout->iblock)
        step *= layout->iblock;
    if (role == RLZ_K)
        add_k_loops(nest, layout->kblock, loops, count);
    else if (axis >= 0)
        add_loop(loops, count, (uint32_t)axis, step, true);
}

uint32_t rlz_layout_loops(const RlzNest *nest, const RlzLayout *layout,
                          RlzLoop loops[RLZ_LOOPS_MAX]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < nest->axes; i++)
        if (nest->role[i] == RLZ_OUTER || nest->role[i] == RLZ_PARALLEL)
            add_loop(loops, &count, i, 1, true);
    if (nest->kind != RLZ_CONTRACTION) {
        if (count && !rlz_runs_along(nest))
            loops[count - 1].step = layout->rows > 1 ? layout->rows : layout->lanes;
        return count;
    }
    if (layout->row_wise) {
        block_loop(nest, layout, RLZ_I, loops, &count);
        add_k_loops(nest, 1, loops, &count);
        int32_t j = rlz_nest_axis(nest, RLZ_J);
        if (j >= 0)
            add_loop(loops, &count, (uint32_t)j, layout->lanes, true);
        return count;
    }
    for (uint32_t i = 0; i < 2; i++)
        block_loop(nest, layout, layout->order[i], loops, &count);
    if (layout->kblock && layout->order[2] != RLZ_K)
        block_loop(nest, layout, layout->order[2], loops, &count);
    add_rows_of_block(nest, layout, loops, &count);
    if (layout->kblock && layout->order[2] == RLZ_K)
        block_loop(nest, layout, RLZ_K, loops, &count);
    return count;
}

// ---- defaults -----------------------------------------------------------------------------------

// Nests below this many weighted operations are not worth a second worker.
static const double split_weight = 4e6;

// The outermost loop that has anything to divide.
static void default_split(const RlzNest *nest, RlzLayout *layout, uint32_t workers) {
    if (workers < 2 || rlz_nest_weight(nest) <= split_weight)
        return;
    RlzLoop loops[RLZ_LOOPS_MAX];
    uint32_t count = rlz_layout_loops(nest, layout, loops);
    for (uint32_t depth = 0; depth < count; depth++) {
        if (!loops[depth].parallel && layout->row_wise)
            return;
        if (loops[depth].parallel && nest->extent[loops[depth].axis] >= 2 * loops[depth].step) {
            layout->split_depth = (int32_t)depth;
            layout->split_workers = workers;
            return;
        }
    }
}

static void default_form(const RlzNest *nest, RlzLayout *layout) {
    int32_t j = rlz_nest_axis(nest, RLZ_J);
    if (nest->prim != CORE_dot || j < 0)
        return;
    if (nest->extent[j] % 8 == 0)
        layout->tile[1] = 8;
    else // a running sum in the output needs the output to hold it
        layout->row_wise = nest->output.type == nest->accumulate;
}

RlzLayout rlz_layout_scalar(const RlzNest *nest) {
    RlzLayout layout = {.tile = {1, 1},
                        .order = {RLZ_I, RLZ_J, RLZ_K},
                        .lanes = 1,
                        .split_depth = -1,
                        .passes = nest->prim == CORE_softmax ? 3 : 0,
                        .epilogue = nest->epilogue,
                        .unroll = 1,
                        .rows = 1,
                        .all_leaves = nest->leaves > 0};
    return layout;
}

RlzLayout rlz_layout_complete(const RlzNest *nest, RlzTarget target, uint32_t workers,
                              bool lanes_one, uint32_t decisions, const RlzLayout *stated) {
    RlzLayout layout = rlz_layout_scalar(nest);
    if (nest->kind == RLZ_CONTRACTION)
        default_form(nest, &layout);
    if (decisions & RLZ_BIT(FORM) && layout.row_wise != stated->row_wise) {
        layout.row_wise = stated->row_wise;
        layout.tile[1] = 1;
    }
    uint32_t later =
        RLZ_BIT(FORM) | RLZ_BIT(LANES) | RLZ_BIT(SPLIT) | RLZ_BIT(EPILOGUE) | RLZ_BIT(LEAVES);
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++)
        if (decisions & ~later & (1u << d))
            rlz_layout_set(&layout, d, rlz_layout_get(stated, d));
    RlzMerged merged;
    const RlzNest *runs = rlz_layout_nest(nest, &layout, &merged);
    if (decisions & RLZ_BIT(LANES))
        layout.lanes = stated->lanes;
    else if (!lanes_one)
        layout.lanes = default_lanes(runs, &layout, target);
    if (decisions & RLZ_BIT(SPLIT))
        rlz_layout_set(&layout, RLZ_DECISION_SPLIT, rlz_layout_get(stated, RLZ_DECISION_SPLIT));
    else
        default_split(runs, &layout, workers);
    return layout;
}

RlzLayout rlz_layout_default(const RlzNest *nest, RlzTarget target, uint32_t workers,
                             bool lanes_one) {
    return rlz_layout_complete(nest, target, workers, lanes_one, 0, NULL);
}

// ---- merged axes --------------------------------------------------------------------------------

static void drop_axis(RlzNest *nest, RlzOperand *input, uint32_t axis) {
    nest->axes--;
    for (uint32_t i = axis; i < nest->axes; i++) {
        nest->extent[i] = nest->extent[i + 1];
        nest->role[i] = nest->role[i + 1];
        nest->output.stride[i] = nest->output.stride[i + 1];
        for (uint32_t n = 0; n < nest->inputs; n++)
            input[n].stride[i] = input[n].stride[i + 1];
    }
    nest->output.stride[nest->axes] = 0;
    for (uint32_t n = 0; n < nest->inputs; n++)
        input[n].stride[nest->axes] = 0;
}

static bool continues(const RlzOperand *operand, uint32_t outer, uint32_t inner, int64_t extent) {
    return operand->stride[outer] == operand->stride[inner] * extent;
}

// Operand 1 does not carry it; the others, an epilogue's among them, walk both axes as one.
static bool merges(const RlzNest *nest, uint32_t outer, uint32_t inner) {
    int64_t extent = nest->extent[inner];
    bool fits = nest->input[1].stride[outer] == 0 && nest->input[0].stride[outer] != 0 &&
                continues(&nest->output, outer, inner, extent);
    for (uint32_t n = 0; n < nest->inputs; n++)
        fits = fits && (n == 1 || continues(&nest->input[n], outer, inner, extent));
    return fits;
}

// The summed axes' order is that of their flat index, so one axis visits the same terms.
static bool merges_terms(const RlzNest *nest, uint32_t outer, uint32_t inner) {
    return nest->role[outer] == RLZ_K &&
           continues(&nest->input[0], outer, inner, nest->extent[inner]) &&
           continues(&nest->input[1], outer, inner, nest->extent[inner]);
}

const RlzNest *rlz_layout_nest(const RlzNest *nest, const RlzLayout *layout, RlzMerged *merged) {
    if (!layout->merge || nest->kind != RLZ_CONTRACTION)
        return nest;
    merged->nest = *nest;
    memcpy(merged->input, nest->input, nest->inputs * sizeof *nest->input);
    merged->nest.input = merged->input;
    for (uint32_t axis = nest->axes - 1; axis-- > 0;) {
        int32_t i = rlz_nest_axis(&merged->nest, RLZ_I);
        bool rows = i > (int32_t)axis && merges(&merged->nest, axis, (uint32_t)i);
        uint32_t inner = rows ? (uint32_t)i : merged->nest.axes - 1;
        if (!rows && (axis >= inner || !merges_terms(&merged->nest, axis, inner)))
            continue;
        merged->nest.extent[inner] *= merged->nest.extent[axis];
        drop_axis(&merged->nest, merged->input, axis);
    }
    return merged->nest.axes == nest->axes ? nest : &merged->nest;
}

// ---- text ---------------------------------------------------------------------------------------

static void contraction_text(const RlzLayout *layout, StrBuf *buf) {
    if (layout->row_wise) {
        buf_text(buf, "row-wise ");
        return;
    }
    buf_format(buf, "tile [%u, %u] order ", layout->tile[0], layout->tile[1]);
    for (uint32_t i = 0; i < (layout->kblock ? 3u : 2u); i++)
        buf_text(buf, rlz_role_text(layout->order[i]));
    if (layout->kblock)
        buf_format(buf, " kblock %u", layout->kblock);
    if (layout->pack)
        buf_text(buf, layout->pack == RLZ_PACK_ROWS ? " pack" : " pack panel");
    buf_char(buf, ' ');
}

// Decisions that seldom leave their defaults.
static void further_text(const RlzLayout *layout, StrBuf *buf) {
    if (layout->rows > 1)
        buf_format(buf, " rows %u", layout->rows);
    if (layout->iblock)
        buf_format(buf, " iblock %u", layout->iblock);
    if (layout->unroll > 1)
        buf_format(buf, " unroll %u", layout->unroll);
    const bool flag[] = {layout->peel,   layout->pack_left, layout->prefetch,  layout->merge,
                         layout->stream, layout->epilogue,  layout->all_leaves};
    static const char *const text[] = {"peel",   "pack-left", "prefetch",  "merge",
                                       "stream", "epilogue",  "leaves one"};
    for (uint32_t i = 0; i < COUNT_OF(flag); i++)
        if (flag[i])
            buf_format(buf, " %s", text[i]);
}

Str rlz_layout_text(const RlzNest *nest, const RlzLayout *layout, Arena *arena) {
    StrBuf buf = {.arena = arena};
    if (nest->kind == RLZ_CONTRACTION)
        contraction_text(layout, &buf);
    if (nest->prim == CORE_softmax)
        buf_format(&buf, "passes %u ", layout->passes);
    buf_format(&buf, "lanes %u", layout->lanes);
    further_text(layout, &buf);
    if (layout->split_depth >= 0)
        buf_format(&buf, " split %d over %u", layout->split_depth, layout->split_workers);
    return buf_str(&buf);
}
