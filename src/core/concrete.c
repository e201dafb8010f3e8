// Concrete types, frames and places of leaves: shared by every executor.
#include "core/concrete.h"

#include <stdio.h>
#include <stdlib.h>

void core_axis_places(const CoreType *type, uint32_t pack_rank, uint32_t *first) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        first[i] = at;
        at += type->axes[i].extent == EXTENT_PACK ? pack_rank : 1;
    }
    first[type->rank] = at;
}

CoreConcrete core_concrete(const CoreProgram *program, CoreTypeId id, const CoreFrame *frame,
                           Shape *shape, int64_t *range, DimId *missing) {
    const CoreType *type = core_type(program, id);
    check_that(type->kind == CORE_REAL || type->kind == CORE_IDX);
    int64_t extent[RANK_MAX];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        bool pack = type->axes[i].extent == EXTENT_PACK;
        uint32_t axes = pack ? frame->pack_rank : 1;
        if (rank + axes > RANK_MAX)
            return CORE_CONCRETE_RANK;
        if (pack)
            memcpy(extent + rank, frame->pack, axes * sizeof *extent);
        else if (!extent_value(program->extents, type->axes[i].extent, frame->by_dim, extent + rank,
                               missing))
            return missing && *missing ? CORE_CONCRETE_UNBOUND : CORE_CONCRETE_OVERFLOW;
        for (uint32_t j = 0; j < axes; j++)
            if (extent[rank + j] < 0)
                return CORE_CONCRETE_NEGATIVE;
        rank += axes;
    }
    *range = 0;
    if (type->kind == CORE_IDX &&
        !extent_value(program->extents, type->bound, frame->by_dim, range, missing))
        return missing && *missing ? CORE_CONCRETE_UNBOUND : CORE_CONCRETE_OVERFLOW;
    *shape = shape_row_major(rank, extent);
    int64_t count = shape_count(shape);
    // Eight bytes an element must be addressable too.
    return count < 0 || count > INT64_MAX / 8 ? CORE_CONCRETE_OVERFLOW : CORE_CONCRETE_OK;
}

Str core_concrete_text(const CoreProgram *program, CoreConcrete failure, DimId missing,
                       Arena *arena) {
    switch (failure) {
    case CORE_CONCRETE_OK:
        return STR("no failure");
    case CORE_CONCRETE_UNBOUND:
        return str_format(
            arena, "the dimension `%s` has no value",
            name_c(program->context->names, extent_dim_get(program->extents, missing)->name));
    case CORE_CONCRETE_OVERFLOW:
        return STR("its number of elements exceeds 63 bits");
    case CORE_CONCRETE_NEGATIVE:
        return STR("an extent is below zero");
    case CORE_CONCRETE_RANK:
        return str_format(arena, "it has more than %d axes", RANK_MAX);
    }
    bug("a failure of concrete types without words: %d", (int)failure);
}

bool core_callee_frame(const CoreProgram *program, const CoreAttr *attr, const CoreFrame *caller,
                       Arena *arena, CoreFrame *callee) {
    const CoreFn *fn = core_fn(program, attr->callee);
    uint32_t dims = extent_dim_count(program->extents) + 1;
    int64_t *by_dim = arena_copy(arena, caller->by_dim, dims * sizeof *by_dim);
    for (uint32_t i = 0; i < attr->dim_count; i++)
        if (!extent_value(program->extents, attr->dims[i], caller->by_dim, &by_dim[fn->dims.at[i]],
                          NULL))
            return false;
    int64_t *pack = arena_array(arena, int64_t, RANK_MAX + 1);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < attr->pack_count; i++) {
        bool nested = attr->pack[i].extent == EXTENT_PACK;
        uint32_t axes = nested ? caller->pack_rank : 1;
        if (rank + axes > RANK_MAX)
            return false;
        if (nested)
            memcpy(pack + rank, caller->pack, axes * sizeof *pack);
        else if (!extent_value(program->extents, attr->pack[i].extent, caller->by_dim, pack + rank,
                               NULL))
            return false;
        rank += axes;
    }
    *callee = (CoreFrame){by_dim, rank, pack};
    return true;
}

CoreFrame core_entry_frame(const CoreProgram *program, const CoreFn *fn, const int64_t *global,
                           const int64_t *own, uint32_t pack_rank, const int64_t *pack,
                           Arena *arena) {
    uint32_t dims = extent_dim_count(program->extents) + 1;
    int64_t *by_dim = arena_copy(arena, global, dims * sizeof *by_dim);
    for (uint32_t i = 0; i < fn->dims.count; i++)
        by_dim[fn->dims.at[i]] = own[i];
    return (CoreFrame){by_dim, pack_rank, pack};
}

static uint32_t field_leaves(const CoreProgram *program, const CoreField *field) {
    return field->tree ? core_leaf_count(program, field->tree) : 1;
}

uint32_t core_leaf_count(const CoreProgram *program, CoreTree id) {
    const CoreTreeNode *tree = core_tree(program, id);
    uint32_t leaves = 0;
    if (!tree->module) {
        for (uint32_t i = 0; i < tree->count; i++)
            leaves += core_leaf_count(program, tree->items[i]);
        return leaves;
    }
    const CoreModule *module = &program->modules.at[tree->module];
    for (uint32_t i = 0; i < module->fields.count; i++)
        leaves += field_leaves(program, &module->fields.at[i]);
    return leaves;
}

static bool sequence_range(const CoreProgram *program, const CoreTreeNode *tree, uint32_t count,
                           const Name *path, uint32_t *first, uint32_t *leaves) {
    const char *text = name_c(program->context->names, path[0]);
    char *end;
    unsigned long index = strtoul(text, &end, 10);
    if (*end || end == text || index >= tree->count)
        return false;
    for (unsigned long i = 0; i < index; i++)
        *first += core_leaf_count(program, tree->items[i]);
    uint32_t below = 0;
    if (!core_leaf_range(program, tree->items[index], count - 1, path + 1, &below, leaves))
        return false;
    *first += below;
    return true;
}

bool core_leaf_range(const CoreProgram *program, CoreTree id, uint32_t count, const Name *path,
                     uint32_t *first, uint32_t *leaves) {
    const CoreTreeNode *tree = core_tree(program, id);
    *first = 0;
    if (!count) {
        *leaves = core_leaf_count(program, id);
        return true;
    }
    if (!tree->module)
        return sequence_range(program, tree, count, path, first, leaves);
    const CoreModule *module = &program->modules.at[tree->module];
    for (uint32_t i = 0; i < module->fields.count; i++) {
        const CoreField *field = &module->fields.at[i];
        if (field->name != path[0]) {
            *first += field_leaves(program, field);
            continue;
        }
        *leaves = 1;
        if (!field->tree)
            return count == 1;
        uint32_t below;
        if (!core_leaf_range(program, field->tree, count - 1, path + 1, &below, leaves))
            return false;
        *first += below;
        return true;
    }
    return false;
}
