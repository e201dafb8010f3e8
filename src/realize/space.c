// Enumeration of spaces: decision by decision, illegal points dropped at the end of each.
#include "realize/space.h"

typedef struct Space {
    const RlzNest *nest;
    const RlzMachine *machine;
    Arena *arena, *scratch; // scratch: reasons that nobody reads
    Vec(RlzLayout) points;
} Space;

// ---- values -------------------------------------------------------------------------------------

// Values of a decision on the machine's target; of the tile, pairs.
static uint32_t values_of(const Space *s, RlzDecision decision, uint32_t values[]) {
    RlzWord words[RLZ_WORDS_MAX], columns[RLZ_WORDS_MAX];
    uint32_t count = rlz_decision_words(decision, false, words), found = 0;
    uint32_t widths = rlz_decision_words(decision, true, columns);
    if (decision == RLZ_DECISION_TILE)
        values[found++] = rlz_pair(1, 1);
    for (uint32_t i = 0; i < count; i++) {
        if (words[i].target > s->machine->target)
            continue;
        if (decision != RLZ_DECISION_TILE)
            values[found++] = words[i].value;
        else
            for (uint32_t j = 0; j < widths; j++)
                if (columns[j].target <= s->machine->target)
                    values[found++] = rlz_pair(words[i].value, columns[j].value);
    }
    return found;
}
enum { VALUES_MAX = 1 + RLZ_WORDS_MAX * RLZ_WORDS_MAX };

// One lane, and the widest count that is legal there.
static uint32_t lane_values(const Space *s, const RlzLayout *layout, uint32_t values[]) {
    RlzLayout widest = rlz_layout_complete(s->nest, s->machine->target, 1, false,
                                           UINT32_MAX & ~RLZ_BIT(LANES), layout);
    values[0] = 1;
    values[1] = widest.lanes;
    return widest.lanes > 1 ? 2 : 1;
}

// Does a loop outside of all loops over k run over this axis?
static bool runs_outside(const RlzLoop *loops, uint32_t axis) {
    for (; loops->parallel; loops++)
        if (loops->axis == axis)
            return true;
    return false;
}

// Depths whose loop is parallel, runs twice or more and stands in no loop with a tail (but loops
// over k and those within them, outside of which a split loop is divided), over all workers and
// half of them.
static uint32_t split_values(const Space *s, const RlzLayout *layout, uint32_t values[]) {
    RlzMerged merged;
    const RlzNest *nest = rlz_layout_nest(s->nest, layout, &merged);
    RlzLoop loops[RLZ_LOOPS_MAX];
    uint32_t count = rlz_layout_loops(nest, layout, loops), found = 0;
    uint32_t all = s->machine->workers, half = MAX(all / 2, 1);
    bool within = false, divides = true;
    values[found++] = RLZ_NO_SPLIT;
    for (uint32_t depth = 0; depth < MIN(count, RLZ_DEPTH_MAX + 1) && divides; depth++) {
        int64_t extent = nest->extent[loops[depth].axis], step = loops[depth].step;
        within = within || !loops[depth].parallel;
        if (within && layout->row_wise)
            break;
        bool divided = within && runs_outside(loops, loops[depth].axis);
        if (loops[depth].parallel && !divided && extent >= 2 * step && all > 1) {
            values[found++] = rlz_pair(depth, all);
            if (half > 1)
                values[found++] = rlz_pair(depth, half);
        }
        divides = within || extent % step == 0;
    }
    return found;
}

// ---- the core -----------------------------------------------------------------------------------

// A tail is stated where something has one, and nothing is longer than its axis.
static bool is_distinct(const RlzNest *nest, const RlzLayout *layout) {
    if (nest->kind != RLZ_CONTRACTION || layout->row_wise)
        return true;
    int64_t i = rlz_nest_extent(nest, RLZ_I), j = rlz_nest_extent(nest, RLZ_J);
    int64_t k =
        nest->axes && nest->role[nest->axes - 1] == RLZ_K ? nest->extent[nest->axes - 1] : 1;
    if (!layout->peel)
        return true;
    bool longer = layout->tile[0] > i || layout->tile[1] > j || layout->kblock > k;
    bool divides = i % layout->tile[0] == 0 && j % layout->tile[1] == 0 &&
                   (!layout->kblock || k % layout->kblock == 0);
    return !longer && !divides;
}

static bool is_legal(Space *s, const RlzLayout *layout) {
    bool ordered =
        (rlz_layout_get(layout, RLZ_DECISION_ORDER) >= RLZ_ORDER_IJK) == (layout->kblock > 0);
    bool legal = ordered && is_distinct(s->nest, layout) &&
                 !rlz_layout_fault(s->nest, layout, s->machine->target, s->scratch).condition;
    arena_reset(s->scratch);
    return legal;
}

// In the order in which they depend on each other: lanes on the tile and the pack, splits on all.
static const RlzDecision core[] = {RLZ_DECISION_FORM,   RLZ_DECISION_TAIL,  RLZ_DECISION_TILE,
                                   RLZ_DECISION_KBLOCK, RLZ_DECISION_ORDER, RLZ_DECISION_PACK,
                                   RLZ_DECISION_PASSES, RLZ_DECISION_ROWS,  RLZ_DECISION_LANES,
                                   RLZ_DECISION_SPLIT};

static void choose(Space *s, uint32_t depth, const RlzLayout *layout) {
    if (depth == COUNT_OF(core)) {
        vec_push(s->arena, &s->points, *layout);
        return;
    }
    RlzDecision decision = core[depth];
    uint32_t values[VALUES_MAX], count;
    if (!rlz_decision_applies(decision, s->nest, layout)) {
        choose(s, depth + 1, layout);
        return;
    }
    if (decision == RLZ_DECISION_SPLIT && !is_legal(s, layout))
        return;
    if (decision == RLZ_DECISION_LANES)
        count = lane_values(s, layout, values);
    else if (decision == RLZ_DECISION_SPLIT)
        count = split_values(s, layout, values);
    else
        count = values_of(s, decision, values);
    for (uint32_t i = 0; i < count; i++) {
        RlzLayout next = *layout;
        if (decision == RLZ_DECISION_ORDER && (values[i] >= RLZ_ORDER_IJK) != (layout->kblock > 0))
            continue;
        rlz_layout_set(&next, decision, values[i]);
        choose(s, depth + 1, &next);
    }
}

uint32_t rlz_space_core(const RlzNest *nest, const RlzMachine *machine, Arena *arena,
                        RlzLayout **points) {
    Space s = {nest, machine, arena, arena_new(arena_heap(arena), "space"), {0}};
    RlzLayout first = rlz_layout_scalar(nest);
    choose(&s, 0, &first);
    arena_free(s.scratch);
    *points = s.points.at;
    return s.points.count;
}

// ---- modifiers ----------------------------------------------------------------------------------

static const RlzDecision modifiers[] = {RLZ_DECISION_IBLOCK,    RLZ_DECISION_UNROLL,
                                        RLZ_DECISION_PACK_LEFT, RLZ_DECISION_PREFETCH,
                                        RLZ_DECISION_MERGE,     RLZ_DECISION_STREAM};
enum { MODIFIERS = COUNT_OF(modifiers), CHOICES = 5 };

typedef struct Cover {
    uint32_t factors;
    RlzDecision decision[MODIFIERS];
    uint32_t count[MODIFIERS], value[MODIFIERS][VALUES_MAX];
    bool met[MODIFIERS][CHOICES][MODIFIERS][CHOICES];
} Cover;

// Does a modifier make a difference to the nest?
static bool has_modifier(const Space *s, const RlzLayout *point, RlzDecision decision) {
    RlzLayout merges = *point;
    RlzMerged merged;
    merges.merge = true;
    switch (decision) {
    case RLZ_DECISION_IBLOCK:
    case RLZ_DECISION_PREFETCH:
        return rlz_nest_axis(s->nest, RLZ_I) >= 0;
    case RLZ_DECISION_UNROLL:
        return rlz_nest_axis(s->nest, RLZ_K) >= 0;
    case RLZ_DECISION_MERGE:
        return rlz_layout_nest(s->nest, &merges, &merged) != s->nest;
    default:
        return true;
    }
}

static void find_factors(Space *s, const RlzLayout *point, Cover *c) {
    for (uint32_t i = 0; i < MODIFIERS; i++) {
        RlzDecision decision = modifiers[i];
        if (!rlz_decision_applies(decision, s->nest, point) || !has_modifier(s, point, decision))
            continue;
        c->decision[c->factors] = decision;
        c->count[c->factors] = values_of(s, decision, c->value[c->factors]);
        check_that(c->count[c->factors] <= CHOICES);
        if (c->count[c->factors] > 1)
            c->factors++;
    }
}

// How many pairs of this choice with those made before are new.
static uint32_t news(const Cover *c, const uint32_t *row, uint32_t factor, uint32_t choice) {
    uint32_t count = 0;
    for (uint32_t f = 0; f < factor; f++)
        count += !c->met[f][row[f]][factor][choice];
    return count;
}

static uint32_t meet(Cover *c, const uint32_t *row) {
    uint32_t count = 0;
    for (uint32_t a = 0; a < c->factors; a++)
        for (uint32_t b = a + 1; b < c->factors; b++) {
            count += !c->met[a][row[a]][b][row[b]];
            c->met[a][row[a]][b][row[b]] = true;
        }
    return count;
}

// A row that begins with a pair still to be met; each further choice meets the most.
static bool next_row(const Cover *c, uint32_t *row) {
    for (uint32_t a = 0; a < c->factors; a++)
        for (uint32_t b = a + 1; b < c->factors; b++)
            for (uint32_t n = 0; n < c->count[a] * c->count[b]; n++) {
                uint32_t x = n / c->count[b], y = n % c->count[b];
                if (c->met[a][x][b][y])
                    continue;
                for (uint32_t f = 0; f < c->factors; f++) {
                    uint32_t best = 0;
                    for (uint32_t v = 1; v < c->count[f]; v++)
                        if (news(c, row, f, v) > news(c, row, f, best))
                            best = v;
                    row[f] = f == a ? x : f == b ? y : best;
                }
                return true;
            }
    return false;
}

uint32_t rlz_space_modified(const RlzNest *nest, const RlzMachine *machine, const RlzLayout *point,
                            Arena *arena, RlzLayout **points) {
    Space s = {nest, machine, arena, arena_new(arena_heap(arena), "space"), {0}};
    Cover *c = arena_new_of(s.arena, Cover);
    uint32_t row[MODIFIERS] = {0};
    find_factors(&s, point, c);
    vec_push(arena, &s.points, *point);
    meet(c, row); // the first value of each is the default
    if (c->factors == 1)
        for (uint32_t v = 1; v < c->count[0]; v++) {
            RlzLayout layout = *point;
            rlz_layout_set(&layout, c->decision[0], c->value[0][v]);
            vec_push(arena, &s.points, layout);
        }
    while (next_row(c, row)) {
        meet(c, row);
        RlzLayout layout = *point;
        for (uint32_t f = 0; f < c->factors; f++)
            rlz_layout_set(&layout, c->decision[f], c->value[f][row[f]]);
        if (is_legal(&s, &layout))
            vec_push(arena, &s.points, layout);
    }
    arena_free(s.scratch);
    *points = s.points.at;
    return s.points.count;
}
