// The conditions of a layout, one function each.
#include "realize/legal.h"

typedef struct Check {
    const RlzNest *nest;
    const RlzLayout *layout;
    RlzTarget target;
    Arena *arena;
    RlzFault fault;
} Check;

// The first fault stays.
static void refuse(Check *c, uint32_t condition, RlzDecision decision, Str why) {
    if (!c->fault.condition)
        c->fault = (RlzFault){condition, decision, why};
}

#define REFUSE(c, condition, decision, ...)                                                        \
    refuse((c), (condition), RLZ_DECISION_##decision, str_format((c)->arena, __VA_ARGS__))

// ---- 3: division --------------------------------------------------------------------------------

static void check_divides(Check *c, RlzDecision decision, int64_t step, int64_t extent,
                          const char *axis) {
    if (extent % step == 0 || c->layout->peel)
        return;
    refuse(c, 3, decision,
           str_format(c->arena, "%lld does not divide %s = %lld; a divisor is legal%s",
                      (long long)step, axis, (long long)extent,
                      c->target > 128 ? ", or \"tail\": \"peel\"" : ""));
}

// `tail` speaks of axes that exist: without one, steps are one.
static void check_axis(Check *c, RlzRole role, RlzDecision decision, int64_t step) {
    if (step > 1 && rlz_nest_axis(c->nest, role) < 0)
        refuse(c, 3, decision,
               str_format(c->arena, "the nest has no axis %s, so that only the default is legal",
                          rlz_role_text(role)));
}

static int64_t innermost_k(const RlzNest *nest) {
    return nest->axes && nest->role[nest->axes - 1] == RLZ_K ? nest->extent[nest->axes - 1] : 1;
}

static void check_division(Check *c) {
    const RlzLayout *layout = c->layout;
    check_axis(c, RLZ_I, RLZ_DECISION_TILE, layout->tile[0]);
    check_axis(c, RLZ_J, RLZ_DECISION_TILE, layout->tile[1]);
    check_axis(c, RLZ_K, RLZ_DECISION_KBLOCK, layout->kblock);
    check_axis(c, RLZ_I, RLZ_DECISION_IBLOCK, layout->iblock);
    check_axis(c, RLZ_I, RLZ_DECISION_PREFETCH, layout->prefetch ? 2 : 1);
    check_axis(c, RLZ_K, RLZ_DECISION_UNROLL, layout->unroll);
    check_divides(c, RLZ_DECISION_TILE, layout->tile[0], rlz_nest_extent(c->nest, RLZ_I), "I");
    check_divides(c, RLZ_DECISION_TILE, layout->tile[1], rlz_nest_extent(c->nest, RLZ_J), "J");
    if (layout->kblock)
        check_divides(c, RLZ_DECISION_KBLOCK, layout->kblock, innermost_k(c->nest), "K");
}

// ---- 4: lanes -----------------------------------------------------------------------------------

static void check_lane_count(Check *c) {
    uint32_t lanes[RLZ_LANES_CHOICES], count = rlz_lanes_legal(c->nest, c->target, lanes);
    StrBuf legal = {.arena = c->arena};
    for (uint32_t i = 0; i < count; i++) {
        if (lanes[i] == c->layout->lanes)
            return;
        buf_format(&legal, "%s%u", i ? ", " : "", lanes[i]);
    }
    REFUSE(c, 4, LANES, "%u lanes of this nest's types are not legal on target %u; legal are %s",
           c->layout->lanes, c->target, buf_str(&legal).at);
}

static void check_tile_lanes(Check *c) {
    const RlzLayout *layout = c->layout;
    uint32_t columns = layout->tile[1];
    if (!layout->row_wise && columns % layout->lanes)
        REFUSE(c, 4, LANES, "%u lanes do not divide the tile's columns, %u", layout->lanes,
               columns);
    if (layout->lanes > 1 && !layout->pack && !rlz_right_along_j(c->nest))
        REFUSE(c, 4, LANES,
               "operand 1 is not contiguous along J: lanes need a pack, or 1 is legal");
}

static bool lies_across(const RlzNest *nest, int32_t axis) {
    return nest->kind != RLZ_INDEXED || nest->input[1].source != RLZ_MEMORY ||
           nest->input[1].stride[axis] == 0;
}

static void check_across(Check *c) {
    const RlzLayout *layout = c->layout;
    int32_t axis = -1;
    for (uint32_t i = 0; i < c->nest->axes; i++)
        if (c->nest->role[i] == RLZ_PARALLEL)
            axis = (int32_t)i;
    bool along = rlz_runs_along(c->nest);
    if (layout->lanes > 1 && !along && (axis < 0 || !lies_across(c->nest, axis)))
        REFUSE(c, 4, LANES, "the nest has one result, so that only 1 is legal");
    if (layout->rows > 1 && (along || axis < 0))
        REFUSE(c, 4, ROWS, "results are computed one by one here, so that only 1 is legal");
    if (layout->rows > 1 && layout->rows % layout->lanes)
        REFUSE(c, 4, LANES, "%u lanes do not divide the %u rows of a group", layout->lanes,
               layout->rows);
}

// ---- 7: storage and accumulation ----------------------------------------------------------------

// A K loop encloses one of I or J.
static bool spills(const Check *c) {
    RlzLoop loops[RLZ_LOOPS_MAX];
    uint32_t count = rlz_layout_loops(c->nest, c->layout, loops);
    bool summed = false;
    for (uint32_t i = 0; i < count; i++) {
        if (summed && loops[i].parallel)
            return true;
        summed = summed || !loops[i].parallel;
    }
    return false;
}

static void check_storage(Check *c) {
    const RlzLayout *layout = c->layout;
    const RlzNest *nest = c->nest;
    if (nest->output.type == nest->accumulate)
        return;
    const char *types = str_format(c->arena, "%s, but sums are %s", dtype_text(nest->output.type),
                                   dtype_text(nest->accumulate))
                            .at;
    if (nest->kind == RLZ_CONTRACTION && layout->row_wise)
        REFUSE(c, 7, FORM, "the output that would hold running sums is %s; \"tiled\" is legal",
               types);
    else if (nest->kind == RLZ_CONTRACTION && spills(c))
        REFUSE(c, 7, ORDER,
               "the output that would hold running sums is %s; orders with K last are legal",
               types);
    if (nest->prim == CORE_softmax && layout->passes == 2)
        REFUSE(c, 7, PASSES, "the output that would hold exponentials is %s; 3 is legal", types);
}

// ---- 6, 9, and the form -------------------------------------------------------------------------

static void check_epilogue(Check *c) {
    int32_t j = rlz_nest_axis(c->nest, RLZ_J);
    if (!c->nest->epilogue || c->layout->lanes == 1 || j < 0)
        return;
    int64_t stride = c->nest->input[2].stride[j];
    if (stride != 0 && stride != 1)
        REFUSE(c, 6, EPILOGUE,
               "with lanes, the other operand of the add must run along J as its innermost axis or "
               "not at all; false, or 1 lane, is legal");
}

static void check_pack(Check *c) {
    if (!c->layout->pack)
        return;
    if (rlz_nest_axis(c->nest, RLZ_J) < 0)
        REFUSE(c, 9, PACK, "the nest has no axis J: false is legal");
    else if (c->layout->pack == RLZ_PACK_ROWS && rlz_right_along_j(c->nest))
        REFUSE(c, 9, PACK, "operand 1 is contiguous along J already: false%s is legal",
               c->target > 128 ? " or \"panel\"" : "");
}

static void check_order(Check *c) {
    if (!c->layout->kblock && c->layout->order[2] != RLZ_K)
        REFUSE(c, 3, ORDER, "without a k-block, \"IJ\" and \"JI\" are legal");
}

static void check_contraction(Check *c) {
    if (!c->layout->row_wise) {
        check_division(c);
        check_order(c);
        check_pack(c);
    } else if (rlz_nest_axis(c->nest, RLZ_J) < 0 || rlz_nest_axis(c->nest, RLZ_K) < 0) {
        REFUSE(c, 3, FORM, "a row-wise contraction needs the axes J and K; \"tiled\" is legal");
    }
    check_lane_count(c);
    check_tile_lanes(c);
    check_epilogue(c);
}

// ---- 10: the target -----------------------------------------------------------------------------

static void check_word(Check *c, RlzDecision decision, bool columns, uint32_t value) {
    RlzWord words[RLZ_WORDS_MAX];
    uint32_t count = rlz_decision_words(decision, columns, words);
    for (uint32_t i = 0; i < count; i++)
        if (words[i].value == value && words[i].target > c->target)
            refuse(c, 10, decision,
                   str_format(c->arena, "%.*s needs target %u; target %u has %s",
                              (int)words[i].text.size, words[i].text.at, words[i].target, c->target,
                              rlz_decision_legal(decision, c->target, c->arena).at));
}

static void check_target(Check *c) {
    for (RlzDecision d = 0; d < RLZ_DECISION_COUNT; d++) {
        if (d == RLZ_DECISION_SPLIT || !rlz_decision_applies(d, c->nest, c->layout))
            continue;
        uint32_t value = rlz_layout_get(c->layout, d);
        if (d != RLZ_DECISION_TILE) {
            check_word(c, d, false, value);
            continue;
        }
        check_word(c, d, false, value >> 16);
        check_word(c, d, true, value & 0xFFFF);
    }
}

RlzFault rlz_layout_fault(const RlzNest *nest, const RlzLayout *layout, RlzTarget target,
                          Arena *arena) {
    RlzMerged merged;
    Check c = {.nest = rlz_layout_nest(nest, layout, &merged),
               .layout = layout,
               .target = target,
               .arena = arena};
    check_target(&c);
    if (nest->kind == RLZ_CONTRACTION) {
        check_contraction(&c);
    } else if (nest->kind != RLZ_INDEXED && nest->kind != RLZ_PERMUTE) {
        check_lane_count(&c);
        check_across(&c);
    }
    check_storage(&c);
    return c.fault;
}

// ---- 5, 8: splits -------------------------------------------------------------------------------

RlzFault rlz_split_fault(const RlzLayout *layout, int64_t iterations, Arena *arena) {
    if (layout->split_depth < 0 || iterations >= MIN(layout->split_workers, 2))
        return (RlzFault){0};
    return (RlzFault){8, RLZ_DECISION_SPLIT,
                      str_format(arena,
                                 "the loop at depth %d is not parallel or has fewer than two "
                                 "iterations, or a loop around it has a tail",
                                 layout->split_depth)};
}

RlzFault rlz_workers_fault(const RlzLayout *layout, const RlzMachine *machine, Arena *arena) {
    uint32_t all = machine->workers, half = MAX(all / 2, 1);
    if (!machine->native || layout->split_depth < 0 || layout->split_workers == all ||
        layout->split_workers == half)
        return (RlzFault){0};
    return (RlzFault){5, RLZ_DECISION_SPLIT,
                      str_format(arena,
                                 "%u workers are not those of the machine: %u, or half of them, "
                                 "%u, are legal (--threads or PRESK_THREADS set them)",
                                 layout->split_workers, all, half)};
}
