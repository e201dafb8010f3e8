// Random lets: for each primitive, operands that fit it, found among the lets there are or made.
#include "support/random_program_gen.h"

const CoreType *gen_type(const Gen *g, CoreLetId let) {
    return core_type(g->p, core_let(g->fn, let)->type);
}

bool gen_is_tensor(const Gen *g, const CoreType *type) {
    (void)g;
    return type->kind == CORE_REAL || type->kind == CORE_IDX;
}

bool gen_has_axis(const Gen *g, const CoreType *type) {
    return gen_is_tensor(g, type) && type->rank > 0;
}

bool gen_is_index(const Gen *g, const CoreType *type) {
    (void)g;
    return type->kind == CORE_IDX;
}

static bool is_mask(const Gen *g, const CoreType *type) {
    int64_t bound;
    return type->kind == CORE_IDX && extent_is_int(g->p->extents, type->bound, &bound) &&
           bound == 2;
}

bool gen_is_tree(const Gen *g, const CoreType *type) {
    (void)g;
    return type->kind == CORE_PARAMS;
}

static bool is_tuple(const Gen *g, const CoreType *type) {
    (void)g;
    return type->kind == CORE_TUPLE && type->parts > 0;
}

static bool is_elementwise_operand(const Gen *g, const CoreType *type) {
    return gen_is_tensor(g, type) || type->kind == CORE_PARAMS;
}

static bool indexable(const Gen *g, Extent extent) {
    return extent != EXTENT_PACK && gen_value(g, extent) > 0;
}

bool gen_has_row(const Gen *g, const CoreType *type) {
    for (uint32_t i = 0; gen_is_tensor(g, type) && i < type->rank; i++)
        if (indexable(g, type->axes[i].extent))
            return true;
    return false;
}

bool gen_has_first(const Gen *g, const CoreType *type) {
    return gen_has_axis(g, type) && indexable(g, type->axes[0].extent);
}

static bool ends_in_axis(const Gen *g, const CoreType *type) {
    return gen_has_axis(g, type) && type->axes[type->rank - 1].extent != EXTENT_PACK;
}

uint32_t gen_row_axis(Gen *g, const CoreType *type) {
    uint32_t axis = gen_below(g, type->rank);
    while (!indexable(g, type->axes[axis].extent))
        axis = (axis + 1) % type->rank;
    return axis;
}

// ---- elementwise ----------------------------------------------------------------------------

static CoreLetId make_compare(Gen *g, CoreLetId x) {
    static const CorePrim prims[] = {CORE_lt, CORE_le, CORE_gt, CORE_ge, CORE_eq};
    CoreLetId y = gen_make_scalar(g);
    return gen_emit(g, prims[gen_below(g, 5)], 2, (CoreLetId[]){x, y}, NULL, 0);
}

static CoreLetId make_select(Gen *g) {
    CoreLetId x = gen_find(g, is_elementwise_operand);
    if (x == RANDOM_NONE)
        return x;
    for (int i = 0; i < 4; i++) {
        CoreLetId mask = gen_find(g, is_mask), y = gen_find(g, is_elementwise_operand);
        if (mask == RANDOM_NONE)
            break;
        CoreLetId let = gen_emit(g, CORE_select, 3, (CoreLetId[]){mask, x, y}, NULL, 0);
        if (let != RANDOM_NONE)
            return let;
    }
    bool tree = gen_type(g, x)->kind == CORE_PARAMS;
    CoreLetId scalar = gen_make_scalar(g);
    CoreLetId mask = make_compare(g, tree ? scalar : x);
    CoreLetId operands[3] = {mask, x, gen_chance(g, 50) ? scalar : x};
    return mask == RANDOM_NONE ? mask : gen_emit(g, CORE_select, 3, operands, NULL, 0);
}

static CoreLetId make_copy(Gen *g) {
    CoreLetId x = gen_find(g, is_elementwise_operand);
    if (x == RANDOM_NONE)
        return x;
    const CoreType *type = gen_type(g, x);
    if (type->kind == CORE_PARAMS)
        return gen_emit(g, CORE_copy, 1, &x, NULL, core_let(g->fn, x)->type);
    CoreLetId tree = gen_find(g, gen_is_tree);
    if (type->rank == 0 && tree != RANDOM_NONE && gen_chance(g, 50))
        return gen_emit(g, CORE_copy, 1, &x, NULL, core_let(g->fn, tree)->type);
    CoreAxis axes[RANDOM_RANK + 1];
    uint32_t rank = 0;
    if (type->rank < RANDOM_RANK && gen_chance(g, 50))
        axes[rank++] = (CoreAxis){0, extent_dim(g->p->extents, g->global[gen_below(g, 5)])};
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t extent;
        axes[rank] = type->axes[i];
        if (extent_is_int(g->p->extents, axes[rank].extent, &extent) && extent == 1)
            axes[rank].extent = extent_dim(g->p->extents, g->global[gen_below(g, 5)]);
        rank++;
    }
    bool index = type->kind == CORE_IDX && gen_chance(g, 50);
    CoreTypeId to =
        index ? core_type_idx(g->p, type->bound, rank, axes) : core_type_real(g->p, rank, axes);
    return gen_emit(g, CORE_copy, 1, &x, NULL, to);
}

static CoreLetId make_elementwise(Gen *g, CorePrim prim) {
    CoreLetId operands[2] = {gen_find(g, is_elementwise_operand)};
    CoreAttr attr = {.number = gen_below(g, 6)};
    if (operands[0] == RANDOM_NONE)
        return RANDOM_NONE;
    if (core_prims[prim].max == 1)
        return gen_emit(g, prim, 1, operands, prim == CORE_pow ? &attr : NULL, 0);
    for (int i = 0; i < 5; i++) {
        operands[1] = gen_find(g, is_elementwise_operand);
        if (gen_chance(g, 30)) {
            CoreLetId swap = operands[0];
            operands[0] = operands[1];
            operands[1] = swap;
        }
        CoreLetId let = gen_emit(g, prim, 2, operands, NULL, 0);
        if (let != RANDOM_NONE)
            return let;
    }
    operands[1] = gen_chance(g, 50) ? gen_make_scalar(g) : operands[0];
    return gen_emit(g, prim, 2, operands, NULL, 0);
}

// ---- free -----------------------------------------------------------------------------------

CoreLetId gen_make_scalar(Gen *g) {
    static const int64_t numbers[] = {0, 1, -1, 2, 3, -7, 10};
    Arena *arena = g->arena;
    const Rational *above = rational_of_int(arena, numbers[gen_below(g, COUNT_OF(numbers))]);
    const Rational *below = rational_of_int(arena, 1 + gen_below(g, 9));
    CoreScalar scalar = core_scalar_rational(g->p, rational_div(arena, above, below));
    if (gen_chance(g, 25)) {
        Extent extent = extent_dim(g->p->extents, g->global[gen_below(g, 4)]);
        CoreScalar root = core_scalar_apply(g->p, MTH_sqrt, 0, core_scalar_extent(g->p, extent), 0);
        CoreScalar product = core_scalar_apply(g->p, MTH_div, 0, scalar, root);
        scalar = product ? product : scalar;
    }
    return gen_emit(g, CORE_scalar, 0, NULL, &(CoreAttr){.scalar = scalar}, 0);
}

static CoreLetId make_field(Gen *g) {
    CoreLetId tree = gen_find(g, gen_is_tree);
    Name path[4];
    uint32_t count = 0;
    if (tree == RANDOM_NONE)
        return tree;
    const CoreTreeNode *node = core_tree(g->p, gen_type(g, tree)->tree);
    while (count < COUNT_OF(path)) {
        if (node->module) {
            const CoreModule *module = &g->p->modules.at[node->module];
            path[count++] = module->fields.at[gen_below(g, module->fields.count)].name;
        } else {
            Str text = str_format(g->arena, "%u", gen_below(g, node->count));
            path[count++] = name_of(g->context->names, text);
        }
        CoreTypeId type = core_tree_field(g->p, gen_type(g, tree)->tree, count, path);
        if (core_type(g->p, type)->kind != CORE_PARAMS || gen_chance(g, 25))
            break;
        node = core_tree(g->p, core_type(g->p, type)->tree);
    }
    return gen_emit(g, CORE_field, 1, &tree, &(CoreAttr){.path_count = count, .path = path}, 0);
}

// One step of reshaping: merge two axes, split one, put in or take out one of extent 1.
static uint32_t reshape(Gen *g, uint32_t rank, CoreAxis *axes) {
    ExtentTable *extents = g->p->extents;
    uint32_t at = rank ? gen_below(g, rank) : 0;
    int64_t extent;
    bool pack = rank && axes[at].extent == EXTENT_PACK;
    Extent by = extent_dim(extents, g->global[gen_below(g, 5)]);
    Extent quotient = rank && !pack ? extent_div(extents, axes[at].extent, by) : EXTENT_NONE;
    if (at + 1 < rank && !pack && axes[at + 1].extent != EXTENT_PACK && gen_chance(g, 50)) {
        axes[at] = (CoreAxis){0, extent_mul(extents, axes[at].extent, axes[at + 1].extent)};
        memmove(axes + at + 1, axes + at + 2, (rank - at - 2) * sizeof *axes);
        return rank - 1;
    }
    if (rank && !pack && extent_is_int(extents, axes[at].extent, &extent) && extent == 1) {
        memmove(axes + at, axes + at + 1, (rank - at - 1) * sizeof *axes);
        return rank - 1;
    }
    bool split = quotient != EXTENT_NONE && quotient != axes[at].extent;
    if (rank >= RANDOM_RANK)
        return rank;
    memmove(axes + at + 1, axes + at, (rank - at) * sizeof *axes);
    axes[at] = (CoreAxis){0, split ? by : extent_int(extents, 1)};
    if (split)
        axes[at + 1] = (CoreAxis){0, quotient};
    return rank + 1;
}

static CoreLetId make_view(Gen *g) {
    CoreLetId x = gen_find(g, gen_is_tensor);
    if (x == RANDOM_NONE || gen_type(g, x)->rank > RANDOM_RANK)
        return RANDOM_NONE;
    const CoreType *type = gen_type(g, x);
    CoreAxis axes[RANDOM_RANK + 1];
    uint32_t rank = type->rank;
    memcpy(axes, type->axes, rank * sizeof *axes);
    for (uint32_t steps = 1 + gen_below(g, 2); steps > 0; steps--)
        rank = reshape(g, rank, axes);
    for (uint32_t i = 0; i < rank; i++)
        if (axes[i].extent != EXTENT_PACK && gen_chance(g, 10))
            axes[i].name = gen_axis_name(g);
    CoreTypeId to = type->kind == CORE_IDX ? core_type_idx(g->p, type->bound, rank, axes)
                                           : core_type_real(g->p, rank, axes);
    return gen_emit(g, CORE_view, 1, &x, NULL, to);
}

static CoreLetId make_range(Gen *g, Extent extent) {
    CoreAxis axis = {gen_chance(g, 20) ? gen_axis_name(g) : 0, extent};
    return gen_emit(g, CORE_range, 0, NULL, NULL, core_type_idx(g->p, extent, 1, &axis));
}

static CoreLetId make_tuple(Gen *g) {
    CoreLetId parts[3];
    uint32_t count = 1 + gen_below(g, 3);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = gen_below(g, g->fn->lets.count);
    return g->fn->lets.count ? gen_emit(g, CORE_tuple, count, parts, NULL, 0) : RANDOM_NONE;
}

static CoreLetId make_item(Gen *g) {
    CoreLetId tuple = gen_find(g, is_tuple);
    if (tuple == RANDOM_NONE)
        return tuple;
    CoreAttr attr = {.number = gen_below(g, gen_type(g, tuple)->parts)};
    return gen_emit(g, CORE_item, 1, &tuple, &attr, 0);
}

// ---- reductions and rows --------------------------------------------------------------------

static CoreLetId make_reduction(Gen *g, CorePrim prim) {
    CoreLetId x = gen_find(g, gen_has_axis);
    if (x == RANDOM_NONE)
        return x;
    const CoreType *type = gen_type(g, x);
    CoreAttr attr = {.axes = 1 + gen_below(g, (1u << type->rank) - 1), .keep = gen_chance(g, 40)};
    for (uint32_t i = 0; i < type->rank; i++)
        if (type->axes[i].extent == EXTENT_PACK && attr.axes >> i & 1)
            attr.keep = false;
    return gen_emit(g, prim, 1, &x, &attr, 0);
}

static bool is_number(const Gen *g, const CoreType *type) {
    (void)g;
    return type->kind == CORE_REAL && type->rank == 0;
}

static CoreLetId make_square_sum(Gen *g) {
    CoreLetId operands[2] = {gen_find(g, gen_is_tensor), gen_find(g, is_number)};
    if (operands[1] == RANDOM_NONE)
        operands[1] = gen_make_scalar(g);
    if (operands[0] == RANDOM_NONE || operands[1] == RANDOM_NONE)
        return RANDOM_NONE;
    CoreAttr attr = {.axes = (UINT64_C(1) << gen_type(g, operands[0])->rank) - 1};
    return gen_emit(g, CORE_square_sum, 2, operands, &attr, 0);
}

static CoreLetId make_argmax(Gen *g, CoreLetId x, uint32_t axis) {
    return gen_emit(g, CORE_argmax, 1, &x, &(CoreAttr){.axis = axis}, 0);
}

static CoreLetId make_row(Gen *g, CorePrim prim) {
    CoreLetId operands[2] = {gen_find(g, gen_has_row)};
    if (operands[0] == RANDOM_NONE)
        return RANDOM_NONE;
    CoreAttr attr = {.axis = gen_row_axis(g, gen_type(g, operands[0]))};
    if (prim == CORE_logsumexp)
        attr.keep = gen_chance(g, 50);
    if (prim == CORE_argmax)
        return make_argmax(g, operands[0], attr.axis);
    if (prim == CORE_softmax && gen_chance(g, 50)) {
        operands[1] = gen_chance(g, 30) ? make_compare(g, operands[0]) : gen_find(g, is_mask);
        CoreLetId let =
            operands[1] == RANDOM_NONE ? RANDOM_NONE : gen_emit(g, prim, 2, operands, &attr, 0);
        if (let != RANDOM_NONE)
            return let;
    }
    return gen_emit(g, prim, 1, operands, &attr, 0);
}

static CoreLetId make_pick(Gen *g, CorePrim prim) {
    CoreLetId operands[2] = {gen_find(g, gen_has_row)};
    if (operands[0] == RANDOM_NONE)
        return RANDOM_NONE;
    CoreAttr attr = {.axis = gen_row_axis(g, gen_type(g, operands[0]))};
    for (int i = 0; i < 4; i++) {
        operands[1] = gen_find(g, gen_is_index);
        CoreLetId let =
            operands[1] == RANDOM_NONE ? RANDOM_NONE : gen_emit(g, prim, 2, operands, &attr, 0);
        if (let != RANDOM_NONE)
            return let;
    }
    operands[1] = make_argmax(g, operands[0], attr.axis);
    return operands[1] == RANDOM_NONE ? RANDOM_NONE : gen_emit(g, prim, 2, operands, &attr, 0);
}

static CoreLetId make_gather(Gen *g) {
    CoreLetId operands[2] = {gen_find(g, gen_has_first)};
    if (operands[0] == RANDOM_NONE)
        return RANDOM_NONE;
    for (int i = 0; i < 4; i++) {
        operands[1] = gen_find(g, gen_is_index);
        CoreLetId let = operands[1] == RANDOM_NONE ? RANDOM_NONE
                                                   : gen_emit(g, CORE_gather, 2, operands, NULL, 0);
        if (let != RANDOM_NONE)
            return let;
    }
    operands[1] = gen_chance(g, 50) ? make_argmax(g, operands[0], 0)
                                    : make_range(g, gen_type(g, operands[0])->axes[0].extent);
    return operands[1] == RANDOM_NONE ? RANDOM_NONE
                                      : gen_emit(g, CORE_gather, 2, operands, NULL, 0);
}

// ---- contractions and permutations ----------------------------------------------------------

// The view of x without axis names, so that x can meet itself.
static CoreLetId unnamed(Gen *g, CoreLetId x) {
    const CoreType *type = gen_type(g, x);
    CoreAxis axes[RANK_MAX];
    bool any = false;
    for (uint32_t i = 0; i < type->rank; i++) {
        any = any || type->axes[i].name;
        axes[i] = (CoreAxis){0, type->axes[i].extent};
    }
    if (!any)
        return x;
    CoreTypeId to = type->kind == CORE_IDX ? core_type_idx(g->p, type->bound, type->rank, axes)
                                           : core_type_real(g->p, type->rank, axes);
    return gen_emit(g, CORE_view, 1, &x, NULL, to);
}

static CoreLetId make_permute(Gen *g, CoreLetId x, bool last_first) {
    uint32_t rank = gen_type(g, x)->rank;
    uint8_t order[RANK_MAX];
    for (uint32_t i = 0; i < rank; i++)
        order[i] = (uint8_t)(last_first ? (i + rank - 1) % rank : i);
    for (uint32_t i = rank; i-- > 1 && !last_first;) {
        uint32_t other = gen_below(g, i + 1);
        uint8_t swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
    CoreAttr attr = {.order_count = (uint8_t)rank, .order = order};
    return gen_emit(g, CORE_permute, 1, &x, &attr, 0);
}

static CoreLetId make_dot(Gen *g) {
    CoreLetId x = gen_find(g, ends_in_axis);
    if (x == RANDOM_NONE)
        return x;
    for (int i = 0; i < 8; i++) {
        CoreLetId w = gen_find(g, gen_has_axis);
        CoreLetId let = gen_emit(g, CORE_dot, 2, (CoreLetId[]){x, w}, NULL, 0);
        if (let != RANDOM_NONE)
            return let;
    }
    const CoreType *type = gen_type(g, x);
    for (uint32_t i = 0; i < type->rank; i++)
        if (type->axes[i].extent == EXTENT_PACK)
            return RANDOM_NONE; // `...` would stand twice
    CoreLetId w = unnamed(g, x);
    w = w == RANDOM_NONE ? w : make_permute(g, w, true);
    return w == RANDOM_NONE ? w : gen_emit(g, CORE_dot, 2, (CoreLetId[]){x, w}, NULL, 0);
}

// Labels for the axes of y: some of x's where the extents agree, the others new.
static uint32_t label_second(Gen *g, const CoreType *x, const CoreType *y, uint8_t *labels,
                             bool *shared) {
    uint32_t count = x->rank;
    for (uint32_t j = 0; j < y->rank; j++) {
        labels[j] = UINT8_MAX;
        uint32_t start = x->rank ? gen_below(g, x->rank) : 0;
        for (uint32_t k = 0; k < x->rank && labels[j] == UINT8_MAX; k++) {
            uint32_t i = (start + k) % x->rank;
            if (!shared[i] && x->axes[i].extent == y->axes[j].extent && gen_chance(g, 85)) {
                labels[j] = (uint8_t)i;
                shared[i] = true;
            }
        }
        if (labels[j] == UINT8_MAX)
            labels[j] = (uint8_t)count++;
    }
    return count;
}

static bool share_extent(const CoreType *x, const CoreType *y) {
    for (uint32_t i = 0; i < x->rank; i++)
        for (uint32_t j = 0; j < y->rank; j++)
            if (x->axes[i].extent == y->axes[j].extent)
                return true;
    return false;
}

static CoreLetId make_ein(Gen *g) {
    CoreLetId operands[2] = {gen_find(g, gen_is_tensor), gen_find(g, gen_is_tensor)};
    if (operands[0] == RANDOM_NONE)
        return RANDOM_NONE;
    for (int i = 0; i < 6 && !share_extent(gen_type(g, operands[0]), gen_type(g, operands[1])); i++)
        operands[1] = gen_find(g, gen_is_tensor);
    if (gen_chance(g, 20))
        operands[1] = operands[0];
    const CoreType *x = gen_type(g, operands[0]), *y = gen_type(g, operands[1]);
    uint8_t first[RANK_MAX], second[RANK_MAX], out[2 * RANK_MAX];
    bool shared[RANK_MAX] = {false};
    for (uint32_t i = 0; i < x->rank; i++)
        first[i] = (uint8_t)i;
    uint32_t count = label_second(g, x, y, second, shared), rank = 0;
    int64_t work = gen_elements(g, core_let(g->fn, operands[0])->type);
    for (uint32_t j = 0; j < y->rank; j++)
        if (second[j] >= x->rank)
            work *= gen_value(g, y->axes[j].extent);
    for (uint32_t label = 0; label < count; label++) {
        if (label < x->rank && shared[label] && gen_chance(g, 65))
            continue;
        uint32_t at = gen_below(g, ++rank);
        out[rank - 1] = out[at];
        out[at] = (uint8_t)label;
    }
    CoreAttr attr = {.labels = {first, second, out},
                     .label_count = {(uint8_t)x->rank, (uint8_t)y->rank, (uint8_t)rank}};
    return work > RANDOM_WORK ? RANDOM_NONE : gen_emit(g, CORE_ein, 2, operands, &attr, 0);
}

// ---- all ------------------------------------------------------------------------------------

CoreLetId gen_make(Gen *g, CorePrim prim) {
    CoreLetId x;
    switch (prim) {
    case CORE_param:
        return RANDOM_NONE; // the signature has them
    case CORE_scalar:
        return gen_make_scalar(g);
    case CORE_field:
        return make_field(g);
    case CORE_view:
        return make_view(g);
    case CORE_range:
        return make_range(g, extent_dim(g->p->extents, g->global[gen_below(g, 5)]));
    case CORE_tuple:
        return make_tuple(g);
    case CORE_item:
        return make_item(g);
    case CORE_call:
        return gen_make_call(g);
    case CORE_select:
        return make_select(g);
    case CORE_copy:
        return make_copy(g);
    case CORE_cross_entropy:
    case CORE_pick:
        return make_pick(g, prim);
    case CORE_gather:
        return make_gather(g);
    case CORE_dot:
        return make_dot(g);
    case CORE_ein:
        return make_ein(g);
    case CORE_permute:
        x = gen_find(g, gen_has_axis);
        return x == RANDOM_NONE ? x : make_permute(g, x, false);
    case CORE_argmax:
        return make_row(g, prim);
    case CORE_square_sum:
        return make_square_sum(g);
    case CORE_tree:
    case CORE_dot_vjp_l:
    case CORE_dot_vjp_r:
    case CORE_softmax_vjp:
    case CORE_cross_entropy_vjp:
    case CORE_reduce_max_vjp:
    case CORE_reduce_min_vjp:
    case CORE_pick_vjp:
    case CORE_scatter_add:
        return gen_make_reverse(g, prim);
    default:
        break;
    }
    switch (core_prims[prim].class) {
    case CORE_REDUCTION:
        return make_reduction(g, prim);
    case CORE_ROW:
        return make_row(g, prim);
    default:
        return make_elementwise(g, prim);
    }
}
