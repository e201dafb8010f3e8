#include "runtime/bind.h"

#include <math.h>
#include <stdio.h>

static Diags *diags_of(const RtBinding *b) {
    return &b->core->context->diags;
}

static const char *text_of(const RtBinding *b, int64_t value) {
    return str_format(b->arena, "%lld", (long long)value).at;
}

static Str shape_text(Arena *arena, const Shape *shape) {
    StrBuf buf = {.arena = arena};
    buf_char(&buf, '[');
    for (uint32_t i = 0; i < shape->rank; i++)
        buf_format(&buf, "%s%lld", i ? ", " : "", (long long)shape->extent[i]);
    buf_char(&buf, ']');
    return buf_str(&buf);
}

// ---- the entry ------------------------------------------------------------------------------

static CoreFnId find_entry(CoreProgram *core, Arena *arena, Str entry) {
    CoreFnId id = core_fn_find(core, entry);
    if (id)
        return id;
    Diag *made = diag(&core->context->diags, E6004, (Span){0}, entry.at);
    uint32_t count = core->fns.count - 1;
    Str *names = arena_array(arena, Str, count + 1);
    StrBuf list = {.arena = arena};
    for (uint32_t i = 0; i < count; i++) {
        names[i] = name_str(core->context->names, core->fns.at[i + 1]->name);
        if (i < 12)
            buf_format(&list, "%s%s", i ? ", " : "", names[i].at);
    }
    if (count > 12)
        buf_format(&list, " and %u more", count - 12);
    if (count)
        diag_note(made, "the program's functions are %s", buf_str(&list).at);
    Str near = nearest_spelling(arena, entry, names, count);
    if (near.size)
        diag_help(made, "did you mean `%s`?", near.at);
    return 0;
}

RtBinding *rt_bind(CoreProgram *core, Arena *arena, Str entry) {
    CoreFnId id = find_entry(core, arena, entry);
    if (!id)
        return NULL;
    RtBinding *b = arena_new_of(arena, RtBinding);
    *b = (RtBinding){.core = core, .arena = arena, .id = id, .fn = core_fn(core, id)};
    uint32_t dims = extent_dim_count(core->extents) + 1;
    b->by_dim = arena_array(arena, int64_t, dims);
    b->by = arena_array(arena, Str, dims);
    for (uint32_t i = 0; i < dims; i++)
        b->by_dim[i] = -1;
    b->arguments = arena_array(arena, CoreValue, b->fn->params + 1);
    b->given = arena_array(arena, bool, b->fn->params + 1);
    for (uint32_t i = 0; i < b->fn->params; i++) {
        CoreValue *argument = &b->arguments[i];
        argument->type = core_let(b->fn, i)->type;
        const CoreType *type = core_type(core, argument->type);
        if (type->kind == CORE_PARAMS) {
            argument->count = core_leaf_count(core, type->tree);
            argument->parts = arena_array(arena, CoreValue, argument->count + 1);
        }
    }
    return b;
}

Str rt_bind_name(const RtBinding *b, uint32_t parameter) {
    Name name = core_let(b->fn, parameter)->name;
    return name ? name_str(b->core->context->names, name) : STR("params");
}

// ---- dimensions -----------------------------------------------------------------------------

static bool is_own(const RtBinding *b, DimId dim) {
    for (uint32_t i = 0; i < b->fn->dims.count; i++)
        if (b->fn->dims.at[i] == dim)
            return true;
    return false;
}

// The entry's own dimension of this name, else the global one; 0: none.
static DimId find_dim(const RtBinding *b, Str name) {
    DimId found = 0;
    for (DimId dim = 1; dim <= extent_dim_count(b->core->extents); dim++) {
        const Dim *at = extent_dim_get(b->core->extents, dim);
        if (!str_equal(name_str(b->core->context->names, at->name), name))
            continue;
        if (is_own(b, dim))
            return dim;
        if (at->global)
            found = dim;
    }
    return found;
}

static bool set_dim(RtBinding *b, DimId dim, int64_t value, Str by) {
    const Dim *at = extent_dim_get(b->core->extents, dim);
    const char *name = name_c(b->core->context->names, at->name);
    if (b->by_dim[dim] >= 0 && b->by_dim[dim] != value) {
        diag(diags_of(b), E6005, at->span, name, text_of(b, b->by_dim[dim]), b->by[dim].at,
             text_of(b, value), by.at);
        return false;
    }
    int64_t bound;
    if (at->bound && extent_value(b->core->extents, at->bound, b->by_dim, &bound, NULL) &&
        value > bound) {
        Diag *made =
            diag(diags_of(b), E6006, at->span, name, text_of(b, value), text_of(b, bound), by.at);
        diag_here(made, "the bound stands here");
        return false;
    }
    b->by_dim[dim] = value;
    b->by[dim] = by;
    return true;
}

bool rt_bind_dim(RtBinding *b, Str name, int64_t value, Str by) {
    DimId dim = find_dim(b, name);
    if (dim)
        return set_dim(b, dim, value, by);
    Diag *made = diag(diags_of(b), E6012, (Span){0}, name.at);
    uint32_t count = 0;
    Str *names = arena_array(b->arena, Str, extent_dim_count(b->core->extents) + 1);
    StrBuf list = {.arena = b->arena};
    for (DimId d = 1; d <= extent_dim_count(b->core->extents); d++) {
        const Dim *at = extent_dim_get(b->core->extents, d);
        if (!at->global && !is_own(b, d))
            continue;
        names[count] = name_str(b->core->context->names, at->name);
        buf_format(&list, "%s%s", count ? ", " : "", names[count].at);
        count++;
    }
    if (count)
        diag_note(made, "its dimensions are %s", buf_str(&list).at);
    Str near = nearest_spelling(b->arena, name, names, count);
    if (near.size)
        diag_help(made, "did you mean `%s`? A constant is set with --const.", near.at);
    else
        diag_help(made, "a constant is set with --const");
    return false;
}

bool rt_bind_pack(RtBinding *b, uint32_t rank, const int64_t *extent, Str by) {
    Shape now = shape_row_major(rank, extent);
    if (!b->pack_bound) {
        b->pack_bound = true;
        b->pack_rank = rank;
        memcpy(b->pack, extent, rank * sizeof *extent);
        return true;
    }
    Shape before = shape_row_major(b->pack_rank, b->pack);
    if (shape_same_extents(&now, &before))
        return true;
    diag(diags_of(b), E6005, b->fn->span, "...", shape_text(b->arena, &before).at,
         "an earlier input", shape_text(b->arena, &now).at, by.at);
    return false;
}

// The dimension that an extent is, 0 where it is anything more.
static DimId bare_dim(const RtBinding *b, Extent extent) {
    for (DimId dim = 1; dim <= extent_dim_count(b->core->extents); dim++)
        if (extent == extent_dim(b->core->extents, dim))
            return dim;
    return 0;
}

static bool refuse_shape(RtBinding *b, CoreTypeId type, const Shape *shape, Span span, Str by) {
    Diag *made = diag(diags_of(b), E6009, span, by.at, shape_text(b->arena, shape).at,
                      core_type_text(b->core, type, b->arena).at);
    StrBuf known = {.arena = b->arena};
    for (DimId dim = 1; dim <= extent_dim_count(b->core->extents); dim++)
        if (b->by_dim[dim] >= 0) {
            const Dim *at = extent_dim_get(b->core->extents, dim);
            buf_format(&known, "%s%s = %lld (%s)", known.size ? ", " : "",
                       name_c(b->core->context->names, at->name), (long long)b->by_dim[dim],
                       b->by[dim].at);
        }
    if (known.size)
        diag_note(made, "%s", buf_str(&known).at);
    return false;
}

// Binds the dimensions of a type to a tensor's extents.
static bool unify(RtBinding *b, CoreTypeId id, const Shape *shape, Span span, Str by) {
    const CoreType *type = core_type(b->core, id);
    uint32_t plain = 0;
    bool pack = false;
    for (uint32_t i = 0; i < type->rank; i++) {
        pack = pack || type->axes[i].extent == EXTENT_PACK;
        plain += type->axes[i].extent != EXTENT_PACK;
    }
    if (shape->rank < plain || (!pack && shape->rank != plain))
        return refuse_shape(b, id, shape, span, by);
    uint32_t places[RANK_MAX + 2];
    core_axis_places(type, shape->rank - plain, places);
    for (uint32_t i = 0; i < type->rank; i++) {
        Extent extent = type->axes[i].extent;
        const int64_t *actual = shape->extent + places[i];
        if (extent == EXTENT_PACK) {
            if (!rt_bind_pack(b, shape->rank - plain, actual, by))
                return false;
            continue;
        }
        DimId dim = bare_dim(b, extent);
        int64_t wanted;
        if (dim && (b->by_dim[dim] < 0 || b->by_dim[dim] != *actual)) {
            if (!set_dim(b, dim, *actual, by))
                return false;
        } else if (extent_value(b->core->extents, extent, b->by_dim, &wanted, NULL) &&
                   wanted != *actual) {
            return refuse_shape(b, id, shape, span, by);
        }
    }
    return true;
}

// ---- values ---------------------------------------------------------------------------------

static bool convert_indices(RtBinding *b, const Tensor *from, int64_t range, Tensor *to, Span span,
                            Str by) {
    int64_t count = shape_count(&from->shape);
    for (int64_t i = 0; i < count; i++) {
        double value = tensor_get(from, i);
        if (value < 0 || value >= (double)range || value != floor(value)) {
            diag(diags_of(b), E6011, span, by.at, str_of_double(b->arena, value).at, text_of(b, i),
                 text_of(b, range));
            return false;
        }
        tensor_set(to, i, value);
    }
    return true;
}

// The values of a tensor in the storage of the entry; into the old tensor where there is one of
// these extents, since a program may be built over it.
static bool convert(RtBinding *b, CoreTypeId id, const Tensor *tensor, DType real, CoreValue *value,
                    Span span, Str by) {
    const CoreType *type = core_type(b->core, id);
    int64_t range = 0;
    if (type->kind == CORE_IDX &&
        !extent_value(b->core->extents, type->bound, b->by_dim, &range, NULL)) {
        diag(diags_of(b), E6002, span, "the bound of its indices is not known");
        return false;
    }
    DType storage = type->kind == CORE_IDX ? dtype_of_bound((uint64_t)range) : real;
    Tensor *to = &value->tensor;
    if (!to->data || !shape_same_extents(&to->shape, &tensor->shape) || to->type != storage)
        *to = tensor_new(b->arena, storage, tensor->shape.rank, tensor->shape.extent);
    if (type->kind == CORE_IDX)
        return convert_indices(b, tensor, range, to, span, by);
    int64_t count = shape_count(&tensor->shape);
    for (int64_t i = 0; i < count; i++)
        tensor_set(to, i, tensor_get(tensor, i));
    return true;
}

uint32_t rt_bind_find(RtBinding *b, Str name) {
    Str *names = arena_array(b->arena, Str, b->fn->params + 1);
    for (uint32_t i = 0; i < b->fn->params; i++) {
        names[i] = rt_bind_name(b, i);
        if (str_equal(names[i], name))
            return i;
    }
    Diag *made = diag(diags_of(b), E6008, b->fn->span, name.at,
                      name_c(b->core->context->names, b->fn->name));
    Str near = nearest_spelling(b->arena, name, names, b->fn->params);
    StrBuf all = {.arena = b->arena};
    for (uint32_t i = 0; i < b->fn->params; i++)
        buf_format(&all, "%s%s", i ? ", " : "", names[i].at);
    if (b->fn->params)
        diag_note(made, "its inputs are %s", buf_str(&all).at);
    if (near.size)
        diag_help(made, "did you mean `%s`?", near.at);
    return b->fn->params;
}

bool rt_bind_input(RtBinding *b, Str name, const Tensor *tensor, DType real, Str by) {
    uint32_t i = rt_bind_find(b, name);
    if (i == b->fn->params)
        return false;
    const CoreLet *param = core_let(b->fn, i);
    const CoreType *type = core_type(b->core, param->type);
    if (type->kind != CORE_REAL && type->kind != CORE_IDX) {
        Diag *made = diag(diags_of(b), E6010, param->span, name.at,
                          core_type_text(b->core, param->type, b->arena).at);
        if (type->kind == CORE_PARAMS)
            diag_help(made, "a parameter tree is given with --params @FILE");
        return false;
    }
    b->given[i] = true;
    return unify(b, param->type, &tensor->shape, param->span, by) &&
           convert(b, param->type, tensor, real, &b->arguments[i], param->span, by);
}

bool rt_bind_leaf(RtBinding *b, uint32_t parameter, uint32_t leaf, const Tensor *tensor, DType real,
                  Str by) {
    CoreLeaf *leaves;
    uint32_t count = rt_bind_leaves(b, parameter, &leaves);
    check_that(leaf < count);
    Span span = core_let(b->fn, parameter)->span;
    CoreValue *value = &b->arguments[parameter].parts[leaf];
    value->type = leaves[leaf].type;
    b->given[parameter] = true;
    return unify(b, leaves[leaf].type, &tensor->shape, span, by) &&
           convert(b, leaves[leaf].type, tensor, real, value, span, by);
}

// ---- completeness ---------------------------------------------------------------------------

static bool dims_of_type(RtBinding *b, CoreTypeId id, Span span) {
    const CoreType *type = core_type(b->core, id);
    CoreFrame frame = {b->by_dim, b->pack_rank, b->pack};
    if (type->kind == CORE_REAL || type->kind == CORE_IDX) {
        Shape shape;
        int64_t range;
        DimId missing = 0;
        CoreConcrete result = core_concrete(b->core, id, &frame, &shape, &range, &missing);
        if (result == CORE_CONCRETE_OK)
            return true;
        if (result != CORE_CONCRETE_UNBOUND) {
            diag(diags_of(b), E6002, span,
                 core_concrete_text(b->core, result, missing, b->arena).at);
            return false;
        }
        const Dim *dim = extent_dim_get(b->core->extents, missing);
        const char *name = name_c(b->core->context->names, dim->name);
        Diag *made = diag(diags_of(b), E6007, dim->span, name);
        diag_help(made, "state it: --dim %s=16, or give an input that has it", name);
        return false;
    }
    if (type->kind == CORE_TUPLE) {
        for (uint32_t i = 0; i < type->parts; i++)
            if (!dims_of_type(b, type->part[i], span))
                return false;
        return true;
    }
    CoreLeaf *leaves;
    uint32_t count = core_tree_leaves(b->core, type->tree, b->arena, &leaves);
    for (uint32_t i = 0; i < count; i++)
        if (!dims_of_type(b, leaves[i].type, span))
            return false;
    return true;
}

bool rt_bind_dims_done(RtBinding *b) {
    for (uint32_t i = 0; i < b->fn->params; i++)
        if (!dims_of_type(b, core_let(b->fn, i)->type, core_let(b->fn, i)->span))
            return false;
    // Given shapes whose extents were not yet known when they were read.
    for (uint32_t i = 0; i < b->fn->params; i++) {
        const CoreValue *argument = &b->arguments[i];
        if (!b->given[i] || argument->parts)
            continue;
        Str by = str_format(b->arena, "the input %s", rt_bind_name(b, i).at);
        if (!unify(b, argument->type, &argument->tensor.shape, core_let(b->fn, i)->span, by))
            return false;
    }
    return true;
}

bool rt_bind_shape(RtBinding *b, uint32_t parameter, Shape *shape, int64_t *range) {
    const CoreLet *param = core_let(b->fn, parameter);
    CoreFrame frame = {b->by_dim, b->pack_rank, b->pack};
    DimId missing = 0;
    CoreConcrete result = core_concrete(b->core, param->type, &frame, shape, range, &missing);
    if (result == CORE_CONCRETE_OK)
        return true;
    diag(diags_of(b), E6002, param->span,
         core_concrete_text(b->core, result, missing, b->arena).at);
    return false;
}

uint32_t rt_bind_leaves(RtBinding *b, uint32_t parameter, CoreLeaf **leaves) {
    const CoreType *type = core_type(b->core, core_let(b->fn, parameter)->type);
    check_that(type->kind == CORE_PARAMS);
    return core_tree_leaves(b->core, type->tree, b->arena, leaves);
}

bool rt_bind_leaf_shape(RtBinding *b, const CoreLeaf *leaf, Span span, Shape *shape) {
    CoreFrame frame = {b->by_dim, b->pack_rank, b->pack};
    int64_t range;
    DimId missing = 0;
    CoreConcrete result = core_concrete(b->core, leaf->type, &frame, shape, &range, &missing);
    if (result == CORE_CONCRETE_OK)
        return true;
    diag(diags_of(b), E6002, span, core_concrete_text(b->core, result, missing, b->arena).at);
    return false;
}

const int64_t *rt_bind_own(const RtBinding *b) {
    int64_t *own = arena_array(b->arena, int64_t, b->fn->dims.count + 1);
    for (uint32_t i = 0; i < b->fn->dims.count; i++)
        own[i] = b->by_dim[b->fn->dims.at[i]];
    return own;
}
