// Random lets of the reverse primitives. Each takes the types of a product, row or move that could
// be there, and cotangents of the shapes that these would have.
#include "support/random_program_gen.h"

// A real tensor of these extents: a let that has them, or a scalar copied to them.
static CoreLetId cotangent(Gen *g, uint32_t rank, const CoreAxis *axes) {
    CoreTypeId wanted = core_type_real(g->p, rank, axes);
    for (int i = 0; i < 6; i++) {
        CoreLetId let = gen_find(g, gen_is_tensor);
        if (let != RANDOM_NONE && core_type_same(g->p, core_let(g->fn, let)->type, wanted))
            return let;
    }
    if (gen_elements(g, wanted) > RANDOM_ELEMENTS)
        return RANDOM_NONE;
    CoreAxis plain[RANK_MAX];
    for (uint32_t i = 0; i < rank; i++)
        plain[i] = (CoreAxis){0, axes[i].extent};
    CoreLetId scalar = gen_make_scalar(g);
    return gen_emit(g, CORE_copy, 1, &scalar, NULL, core_type_real(g->p, rank, plain));
}

// The axes of a type that are not in a set.
static uint32_t left_axes(const CoreType *type, uint64_t set, CoreAxis *left) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < type->rank; i++)
        if (!(set >> i & 1))
            left[rank++] = type->axes[i];
    return rank;
}

static CoreTypeId real_like(Gen *g, const CoreType *type) {
    return core_type_real(g->p, type->rank, type->axes);
}

// ---- rows -----------------------------------------------------------------------------------

static CoreLetId make_extreme(Gen *g, CorePrim prim) {
    CoreLetId x = gen_find(g, gen_has_axis);
    if (x == RANDOM_NONE)
        return x;
    CoreAxis left[RANK_MAX];
    const CoreType *type = gen_type(g, x);
    CoreAttr attr = {.axes = 1 + gen_below(g, (1u << type->rank) - 1)};
    CoreLetId ct = cotangent(g, left_axes(type, attr.axes, left), left);
    return gen_emit(g, prim, 2, (CoreLetId[]){x, ct}, &attr, 0);
}

static CoreLetId make_softmax(Gen *g) {
    CoreLetId y = gen_find(g, gen_has_row);
    if (y == RANDOM_NONE)
        return y;
    const CoreType *type = gen_type(g, y);
    CoreAttr attr = {.axis = gen_row_axis(g, type)};
    if (gen_chance(g, 50))
        y = gen_emit(g, CORE_softmax, 1, &y, &attr, 0);
    CoreLetId ct = cotangent(g, type->rank, type->axes);
    return gen_emit(g, CORE_softmax_vjp, 2, (CoreLetId[]){y, ct}, &attr, 0);
}

// An index for each row of x along an axis: one that is there, or argmax.
static CoreLetId row_index(Gen *g, CoreLetId x, const CoreAttr *attr) {
    for (int i = 0; i < 4; i++) {
        CoreLetId index = gen_find(g, gen_is_index);
        CoreLetId operands[2] = {x, index};
        Str why;
        if (index != RANDOM_NONE &&
            core_type_rule(g->p, g->fn, CORE_pick, 2, operands, attr, 0, &why))
            return index;
    }
    return gen_emit(g, CORE_argmax, 1, &x, attr, 0);
}

static CoreLetId make_target(Gen *g, CorePrim prim) {
    CoreLetId x = gen_find(g, gen_has_row);
    if (x == RANDOM_NONE)
        return x;
    const CoreType *type = gen_type(g, x);
    CoreAxis left[RANK_MAX];
    CoreAttr attr = {.axis = gen_row_axis(g, type)};
    CoreLetId index = row_index(g, x, &attr);
    CoreLetId ct = cotangent(g, left_axes(type, UINT64_C(1) << attr.axis, left), left);
    if (index == RANDOM_NONE)
        return index;
    if (prim == CORE_pick_vjp)
        return gen_emit(g, prim, 2, (CoreLetId[]){ct, index}, &attr, real_like(g, type));
    return gen_emit(g, prim, 3, (CoreLetId[]){x, index, ct}, &attr, 0);
}

// ---- products, tables, trees ------------------------------------------------------------------

static CoreLetId make_dot(Gen *g, CorePrim prim) {
    CoreLetId x = gen_find(g, gen_has_axis), w = RANDOM_NONE;
    for (int i = 0; i < 8 && x != RANDOM_NONE; i++) {
        const CoreType *left = gen_type(g, x);
        w = gen_find(g, gen_has_axis);
        const CoreType *right = gen_type(g, w);
        if (left->axes[left->rank - 1].extent == right->axes[0].extent &&
            right->axes[0].extent != EXTENT_PACK && left->rank + right->rank <= 2 + RANDOM_RANK)
            break;
        x = gen_find(g, gen_has_axis);
        w = RANDOM_NONE;
    }
    if (w == RANDOM_NONE)
        return w;
    const CoreType *left = gen_type(g, x), *right = gen_type(g, w);
    CoreAxis axes[2 * RANK_MAX];
    uint32_t packs = 0, rank = left->rank + right->rank - 2;
    memcpy(axes, left->axes, (left->rank - 1) * sizeof *axes);
    memcpy(axes + left->rank - 1, right->axes + 1, (right->rank - 1) * sizeof *axes);
    for (uint32_t i = 0; i < rank; i++) {
        packs += axes[i].extent == EXTENT_PACK;
        axes[i].name = 0; // x and w may have names in common
    }
    CoreLetId ct = packs < 2 ? cotangent(g, rank, axes) : RANDOM_NONE;
    if (ct == RANDOM_NONE ||
        gen_elements(g, core_let(g->fn, ct)->type) * gen_value(g, right->axes[0].extent) >
            RANDOM_WORK)
        return RANDOM_NONE;
    if (prim == CORE_dot_vjp_l)
        return gen_emit(g, prim, 2, (CoreLetId[]){ct, w}, NULL, real_like(g, left));
    return gen_emit(g, prim, 2, (CoreLetId[]){x, ct}, NULL, real_like(g, right));
}

static CoreLetId make_scatter(Gen *g) {
    CoreLetId table = gen_find(g, gen_has_first), index = RANDOM_NONE;
    if (table == RANDOM_NONE)
        return table;
    const CoreType *type = gen_type(g, table);
    for (int i = 0; i < 4 && index == RANDOM_NONE; i++) {
        CoreLetId found = gen_find(g, gen_is_index);
        Str why;
        if (found != RANDOM_NONE &&
            core_type_rule(g->p, g->fn, CORE_gather, 2, (CoreLetId[]){table, found}, NULL, 0, &why))
            index = found;
    }
    if (index == RANDOM_NONE) {
        CoreAxis axis = {0, type->axes[0].extent};
        index = gen_emit(g, CORE_range, 0, NULL, NULL, core_type_idx(g->p, axis.extent, 1, &axis));
    }
    if (index == RANDOM_NONE)
        return index;
    const CoreType *indices = gen_type(g, index);
    CoreAxis axes[2 * RANK_MAX];
    uint32_t rank = indices->rank + type->rank - 1, packs = 0;
    memcpy(axes, indices->axes, indices->rank * sizeof *axes);
    memcpy(axes + indices->rank, type->axes + 1, (type->rank - 1) * sizeof *axes);
    for (uint32_t i = 0; i < rank; i++) {
        packs += axes[i].extent == EXTENT_PACK;
        axes[i].name = 0;
    }
    CoreLetId ct = packs < 2 && rank <= RANDOM_RANK ? cotangent(g, rank, axes) : RANDOM_NONE;
    return gen_emit(g, CORE_scatter_add, 2, (CoreLetId[]){ct, index}, NULL, real_like(g, type));
}

static CoreLetId make_tree(Gen *g) {
    CoreLetId like = gen_find(g, gen_is_tree), field[8];
    if (like == RANDOM_NONE)
        return like;
    CoreTypeId type = core_let(g->fn, like)->type;
    CoreTree tree = core_type(g->p, type)->tree;
    uint32_t count = core_tree_count(g->p, tree);
    check_that(count <= COUNT_OF(field));
    for (uint32_t i = 0; i < count; i++) {
        CoreTypeId part = core_tree_part(g->p, tree, i);
        Name name = core_tree_part_name(g->p, tree, i);
        CoreLetId scalar = gen_make_scalar(g);
        bool copy = gen_chance(g, 50);
        field[i] = copy ? gen_emit(g, CORE_copy, 1, &scalar, NULL, part)
                        : gen_emit(g, CORE_field, 1, &like,
                                   &(CoreAttr){.path_count = 1, .path = &name}, 0);
        if (core_type(g->p, part)->kind == CORE_REAL && core_type(g->p, part)->rank == 0)
            field[i] = scalar;
    }
    return gen_emit(g, CORE_tree, count, field, NULL, type);
}

CoreLetId gen_make_reverse(Gen *g, CorePrim prim) {
    switch (prim) {
    case CORE_tree:
        return make_tree(g);
    case CORE_dot_vjp_l:
    case CORE_dot_vjp_r:
        return make_dot(g, prim);
    case CORE_softmax_vjp:
        return make_softmax(g);
    case CORE_reduce_max_vjp:
    case CORE_reduce_min_vjp:
        return make_extreme(g, prim);
    case CORE_scatter_add:
        return make_scatter(g);
    default:
        return make_target(g, prim);
    }
}
