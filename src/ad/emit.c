// Emitting into the work function, and collecting cotangents.
#include "ad/sweep.h"

CoreTypeId ad_type(const AdSweep *s, CoreLetId let) {
    return core_let(s->work, let)->type;
}

// The tensor under axes without names.
static CoreLetId nameless(AdSweep *s, CoreLetId let) {
    const CoreType *type = core_type(s->program, ad_type(s, let));
    CoreAxis axes[RANK_MAX];
    bool named = false;
    for (uint32_t i = 0; i < type->rank; i++) {
        named = named || type->axes[i].name;
        axes[i] = (CoreAxis){0, type->axes[i].extent};
    }
    if (!named)
        return let;
    CoreTypeId to = type->kind == CORE_IDX
                        ? core_type_idx(s->program, type->bound, type->rank, axes)
                        : core_type_real(s->program, type->rank, axes);
    return core_let_add(s->program, s->work, CORE_view, to, 1, &let, NULL, 0, s->span);
}

// Values bring the names of axes from where they come. Where those do not go together, they are
// left away: extents decide.
CoreLetId ad_emit(AdSweep *s, CorePrim prim, uint32_t count, const CoreLetId *operands,
                  const CoreAttr *attr, CoreTypeId stated) {
    Str why = {0};
    CoreTypeId type =
        core_type_rule(s->program, s->work, prim, count, operands, attr, stated, &why);
    if (!type) {
        CoreLetId *plain = arena_array(s->arena, CoreLetId, count + 1);
        for (uint32_t i = 0; i < count; i++)
            plain[i] = nameless(s, operands[i]);
        operands = plain;
        type = core_type_rule(s->program, s->work, prim, count, operands, attr, stated, &why);
    }
    if (!type)
        bug("a derivative of %s emits an ill-typed %s: %s",
            name_c(s->program->context->names, s->fn->name), core_prims[prim].text, why.at);
    return core_let_add(s->program, s->work, prim, type, count, operands, attr, 0, s->span);
}

CoreLetId ad_emit1(AdSweep *s, CorePrim prim, CoreLetId a) {
    return ad_emit(s, prim, 1, &a, NULL, 0);
}

CoreLetId ad_emit2(AdSweep *s, CorePrim prim, CoreLetId a, CoreLetId b) {
    return ad_emit(s, prim, 2, (CoreLetId[]){a, b}, NULL, 0);
}

CoreLetId ad_emit3(AdSweep *s, CorePrim prim, CoreLetId a, CoreLetId b, CoreLetId c) {
    return ad_emit(s, prim, 3, (CoreLetId[]){a, b, c}, NULL, 0);
}

static CoreLetId emit_scalar(AdSweep *s, CoreScalar scalar) {
    CoreAttr attr = {.scalar = scalar};
    return ad_emit(s, CORE_scalar, 0, NULL, &attr, core_type_real(s->program, 0, NULL));
}

CoreLetId ad_scalar(AdSweep *s, const char *number) {
    const Rational *value = rational_of_text(s->arena, str_of(number));
    check_that(value);
    return emit_scalar(s, core_scalar_rational(s->program, value));
}

CoreTypeId ad_plain(CoreProgram *program, CoreTypeId id) {
    const CoreType *type = core_type(program, id);
    CoreAxis axes[RANK_MAX];
    bool pack = false;
    if (type->kind == CORE_TUPLE) {
        CoreTypeId *parts = arena_array(program->arena, CoreTypeId, type->parts + 1);
        for (uint32_t i = 0; i < type->parts; i++)
            parts[i] = ad_plain(program, type->part[i]);
        return core_type_tuple(program, type->parts, parts);
    }
    if (type->kind == CORE_PARAMS)
        return id;
    for (uint32_t i = 0; i < type->rank; i++) {
        axes[i] = (CoreAxis){0, type->axes[i].extent};
        pack = pack || axes[i].extent == EXTENT_PACK;
    }
    if (!pack)
        return id;
    return type->kind == CORE_IDX ? core_type_idx(program, type->bound, type->rank, axes)
                                  : core_type_real(program, type->rank, axes);
}

CoreLetId ad_viewed(CoreProgram *program, CoreFn *fn, CoreLetId let, CoreTypeId type) {
    const CoreType *to = core_type(program, type);
    CoreTypeId now = core_let(fn, let)->type;
    Name name = core_let(fn, let)->name;
    Span span = core_let(fn, let)->span;
    if (now == type)
        return let;
    if (to->kind != CORE_TUPLE)
        return core_let_add(program, fn, CORE_view, type, 1, &let, NULL, name, span);
    CoreLetId *parts = arena_array(program->arena, CoreLetId, to->parts + 1);
    for (uint32_t i = 0; i < to->parts; i++) {
        CoreAttr item = {.number = i};
        CoreTypeId own = core_type(program, now)->part[i];
        parts[i] = core_let_add(program, fn, CORE_item, own, 1, &let, &item, 0, span);
        parts[i] = ad_viewed(program, fn, parts[i], to->part[i]);
    }
    return core_let_add(program, fn, CORE_tuple, type, to->parts, parts, NULL, name, span);
}

CoreLetId ad_exact(AdSweep *s, CoreLetId let, CoreTypeId type) {
    CoreTypeId now = ad_type(s, let);
    if (now == type || core_type(s->program, type)->kind == CORE_PARAMS)
        return let;
    // Equal extents under other names are a view, anything smaller is broadcast.
    return core_type_same(s->program, now, type) ? ad_viewed(s->program, s->work, let, type)
                                                 : ad_emit(s, CORE_copy, 1, &let, NULL, type);
}

static CoreLetId zero_tree(AdSweep *s, CoreTypeId type) {
    CoreTree tree = core_type(s->program, type)->tree;
    uint32_t count = core_tree_count(s->program, tree);
    CoreLetId *fields = arena_array(s->arena, CoreLetId, count + 1);
    for (uint32_t i = 0; i < count; i++)
        fields[i] = ad_zeros(s, core_tree_part(s->program, tree, i), AD_NONE);
    return ad_emit(s, CORE_tree, count, fields, NULL, type);
}

static bool holds_index(const AdSweep *s, CoreTypeId id) {
    const CoreType *type = core_type(s->program, id);
    bool holds = type->kind == CORE_IDX;
    for (uint32_t i = 0; i < type->parts; i++)
        holds = holds || holds_index(s, type->part[i]);
    return holds;
}

static CoreLetId zero_part(AdSweep *s, const CoreType *type, uint32_t part, CoreLetId value) {
    CoreAttr item = {.number = part};
    if (holds_index(s, type->part[part]))
        value = ad_emit(s, CORE_item, 1, &value, &item, 0);
    return ad_zeros(s, type->part[part], value);
}

CoreLetId ad_zeros(AdSweep *s, CoreTypeId id, CoreLetId value) {
    const CoreType *type = core_type(s->program, id);
    switch (type->kind) {
    case CORE_REAL: {
        CoreLetId zero = ad_scalar(s, "0");
        return ad_emit(s, CORE_copy, 1, &zero, NULL, id);
    }
    case CORE_PARAMS:
        return zero_tree(s, id);
    case CORE_TUPLE: {
        CoreLetId *parts = arena_array(s->arena, CoreLetId, type->parts + 1);
        for (uint32_t i = 0; i < type->parts; i++)
            parts[i] = zero_part(s, type, i, value);
        return ad_emit(s, CORE_tuple, type->parts, parts, NULL, 0);
    }
    case CORE_IDX:
        break;
    }
    return value;
}

// ---- collecting -----------------------------------------------------------------------------

// The sum of two cotangents of one value; of tuples part by part, what is no real staying as it is.
static CoreLetId sum_of(AdSweep *s, CoreLetId a, CoreLetId b) {
    const CoreType *type = core_type(s->program, ad_type(s, a));
    if (type->kind == CORE_IDX)
        return a;
    if (type->kind != CORE_TUPLE)
        return ad_emit2(s, CORE_add, a, b);
    CoreLetId *parts = arena_array(s->arena, CoreLetId, type->parts + 1);
    for (uint32_t i = 0; i < type->parts; i++) {
        CoreAttr item = {.number = i};
        CoreLetId left = ad_emit(s, CORE_item, 1, &a, &item, 0);
        parts[i] = sum_of(s, left, ad_emit(s, CORE_item, 1, &b, &item, 0));
    }
    return ad_emit(s, CORE_tuple, type->parts, parts, NULL, 0);
}

void ad_reach(AdSweep *s, CoreLetId let, CoreLetId cotangent) {
    if (!s->active[let])
        return;
    AdCotangent *at = &s->reached[let];
    at->let = at->let == AD_NONE ? cotangent : sum_of(s, at->let, cotangent);
}

static bool is_one(const AdSweep *s, Extent extent) {
    int64_t value;
    return extent != EXTENT_PACK && extent_is_int(s->program->extents, extent, &value) &&
           value == 1;
}

// The axes of `from` along which `to`, aligned from the right, was broadcast.
static uint64_t broadcast_axes(const AdSweep *s, const CoreType *from, const CoreType *to) {
    uint64_t axes = 0;
    for (uint32_t i = 0; i < from->rank; i++) {
        bool absent = i + to->rank < from->rank;
        uint32_t place = i + to->rank - from->rank;
        if (absent || (is_one(s, to->axes[place].extent) && !is_one(s, from->axes[i].extent)))
            axes |= UINT64_C(1) << i;
    }
    return axes;
}

// The sum of all elements of a tensor or tree.
static CoreLetId total(AdSweep *s, CoreLetId value) {
    const CoreType *type = core_type(s->program, ad_type(s, value));
    if (type->kind == CORE_REAL) {
        CoreAttr all = {.axes = (UINT64_C(1) << type->rank) - 1};
        return type->rank ? ad_emit(s, CORE_sum, 1, &value, &all, 0) : value;
    }
    CoreLetId sum = AD_NONE;
    for (uint32_t i = 0, count = core_tree_count(s->program, type->tree); i < count; i++) {
        Name name = core_tree_part_name(s->program, type->tree, i);
        CoreAttr path = {.path_count = 1, .path = &name};
        CoreLetId part = total(s, ad_emit(s, CORE_field, 1, &value, &path, 0));
        sum = sum == AD_NONE ? part : ad_emit2(s, CORE_add, sum, part);
    }
    return sum == AD_NONE ? ad_scalar(s, "0") : sum;
}

void ad_reach_broadcast(AdSweep *s, CoreLetId let, CoreLetId cotangent, CoreTypeId result) {
    if (!s->active[let])
        return;
    CoreTypeId to = core_let(s->fn, let)->type;
    if (core_type(s->program, result)->kind == CORE_PARAMS) {
        bool scalar = core_type(s->program, to)->kind == CORE_REAL; // it serves every leaf
        ad_reach(s, let, scalar ? total(s, cotangent) : cotangent);
        return;
    }
    uint64_t axes = broadcast_axes(s, core_type(s->program, result), core_type(s->program, to));
    if (axes) {
        // Each place that read the operand contributes, so the cotangent has its full extents here.
        CoreLetId full = ad_exact(s, cotangent, result);
        CoreAttr attr = {.axes = axes};
        cotangent = ad_emit(s, CORE_sum, 1, &full, &attr, 0);
        if (!core_type_same(s->program, ad_type(s, cotangent), to))
            cotangent = ad_emit(s, CORE_view, 1, &cotangent, NULL, to);
    }
    ad_reach(s, let, cotangent);
}

void ad_reach_field(AdSweep *s, CoreLetId tree, uint32_t path_count, const Name *path,
                    CoreLetId cotangent) {
    if (!s->active[tree])
        return;
    AdPart part = {path_count, path, cotangent};
    vec_push(s->arena, &s->reached[tree].fields, part);
}

void ad_reach_part(AdSweep *s, CoreLetId tuple, uint32_t part, CoreLetId cotangent) {
    if (!s->active[tuple])
        return;
    AdCotangent *at = &s->reached[tuple];
    if (!at->parts) {
        at->part_count = core_type(s->program, core_let(s->fn, tuple)->type)->parts;
        at->parts = arena_array(s->arena, CoreLetId, at->part_count + 1);
        for (uint32_t i = 0; i < at->part_count; i++)
            at->parts[i] = AD_NONE;
    }
    CoreLetId *place = &at->parts[part];
    *place = *place == AD_NONE ? cotangent : sum_of(s, *place, cotangent);
}

// ---- putting together -----------------------------------------------------------------------

static CoreLetId collected_tree(AdSweep *s, CoreTree tree, uint32_t count, const AdPart *parts,
                                uint32_t depth);

// The cotangent of one field: the parts that go to it or below it.
static CoreLetId collected_field(AdSweep *s, CoreTypeId type, Name name, uint32_t count,
                                 const AdPart *parts, uint32_t depth) {
    AdPart *below = arena_array(s->arena, AdPart, count + 1);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (parts[i].path_count > depth && parts[i].path[depth] == name)
            below[found++] = parts[i];
    if (!found)
        return ad_zeros(s, type, AD_NONE);
    if (core_type(s->program, type)->kind == CORE_PARAMS)
        return collected_tree(s, core_type(s->program, type)->tree, found, below, depth + 1);
    CoreLetId sum = below[0].cotangent;
    for (uint32_t i = 1; i < found; i++)
        sum = sum_of(s, sum, below[i].cotangent);
    return ad_exact(s, sum, type);
}

static CoreLetId collected_tree(AdSweep *s, CoreTree tree, uint32_t count, const AdPart *parts,
                                uint32_t depth) {
    CoreLetId whole = AD_NONE;
    bool below = false;
    for (uint32_t i = 0; i < count; i++) {
        below = below || parts[i].path_count > depth;
        if (parts[i].path_count == depth)
            whole = whole == AD_NONE ? parts[i].cotangent
                                     : ad_emit2(s, CORE_add, whole, parts[i].cotangent);
    }
    if (!below)
        return whole;
    uint32_t fields = core_tree_count(s->program, tree);
    CoreLetId *field = arena_array(s->arena, CoreLetId, fields + 1);
    for (uint32_t i = 0; i < fields; i++)
        field[i] = collected_field(s, core_tree_part(s->program, tree, i),
                                   core_tree_part_name(s->program, tree, i), count, parts, depth);
    CoreTypeId type = core_type_params(s->program, tree);
    CoreLetId built = ad_emit(s, CORE_tree, fields, field, NULL, type);
    return whole == AD_NONE ? built : ad_emit2(s, CORE_add, whole, built);
}

static CoreLetId collected_tuple(AdSweep *s, CoreLetId let, const CoreType *type) {
    const AdCotangent *at = &s->reached[let];
    CoreLetId *part = arena_array(s->arena, CoreLetId, at->part_count + 1);
    for (uint32_t i = 0; i < at->part_count; i++)
        part[i] = at->parts[i] == AD_NONE ? zero_part(s, type, i, let)
                                          : ad_exact(s, at->parts[i], type->part[i]);
    return ad_emit(s, CORE_tuple, at->part_count, part, NULL, 0);
}

CoreLetId ad_collected(AdSweep *s, CoreLetId let) {
    AdCotangent *at = &s->reached[let];
    const CoreType *type = core_type(s->program, core_let(s->fn, let)->type);
    if (at->fields.count) {
        if (at->let != AD_NONE)
            ad_reach_field(s, let, 0, NULL, at->let);
        at->let = collected_tree(s, type->tree, at->fields.count, at->fields.at, 0);
        at->fields.count = 0;
    } else if (at->parts) {
        CoreLetId tuple = collected_tuple(s, let, type);
        at->let = at->let == AD_NONE ? tuple : sum_of(s, tuple, at->let);
        at->parts = NULL;
    }
    return at->let;
}
