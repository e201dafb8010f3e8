// Types: hash-consed, compared up to axis names, substituted, and spelled as the language does.
#include "core/tables.h"

#define REAL_SIGN "ℝ"

static CoreTypeId intern(CoreProgram *program, const CoreType *type) {
    struct CoreTables *tables = program->tables;
    Arena *arena = program->arena;
    CoreKey *key = &tables->key;
    key->count = 0;
    vec_push(arena, key, (uint32_t)type->kind);
    vec_push(arena, key, type->bound);
    vec_push(arena, key, type->tree);
    vec_push(arena, key, type->rank);
    for (uint32_t i = 0; i < type->rank; i++) {
        vec_push(arena, key, type->axes[i].name);
        vec_push(arena, key, type->axes[i].extent);
    }
    for (uint32_t i = 0; i < type->parts; i++)
        vec_push(arena, key, type->part[i]);
    uint32_t *slot;
    if (core_key_find(tables->type_ids, key, &slot))
        return *slot;
    CoreTypeId id = *slot = tables->types.count;
    CoreType *copy = arena_copy(arena, type, sizeof *type);
    copy->axes = arena_copy(arena, type->axes, type->rank * sizeof *type->axes);
    copy->part = arena_copy(arena, type->part, type->parts * sizeof *type->part);
    vec_push(arena, &tables->types, copy);
    return id;
}

CoreTypeId core_type_real(CoreProgram *program, uint32_t rank, const CoreAxis *axes) {
    return intern(program, &(CoreType){.kind = CORE_REAL, .rank = rank, .axes = axes});
}

CoreTypeId core_type_idx(CoreProgram *program, Extent bound, uint32_t rank, const CoreAxis *axes) {
    return intern(program,
                  &(CoreType){.kind = CORE_IDX, .bound = bound, .rank = rank, .axes = axes});
}

CoreTypeId core_type_params(CoreProgram *program, CoreTree tree) {
    return intern(program, &(CoreType){.kind = CORE_PARAMS, .tree = tree});
}

CoreTypeId core_type_tuple(CoreProgram *program, uint32_t count, const CoreTypeId *parts) {
    return intern(program, &(CoreType){.kind = CORE_TUPLE, .parts = count, .part = parts});
}

const CoreType *core_type(const CoreProgram *program, CoreTypeId type) {
    check_that(type >= 1 && type < program->tables->types.count);
    return program->tables->types.at[type];
}

bool core_bound_fits(const CoreProgram *program, Extent given, Extent wanted) {
    int64_t n, m;
    return given == wanted || (extent_is_int(program->extents, given, &n) &&
                               extent_is_int(program->extents, wanted, &m) && n <= m);
}

static bool axes_same(const CoreType *a, const CoreType *b) {
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->axes[i].extent != b->axes[i].extent)
            return false;
    return true;
}

// `fits`: bounds of a may be smaller than b's; else they are equal.
static bool compare(const CoreProgram *program, CoreTypeId a, CoreTypeId b, bool fits) {
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    const CoreType *x = core_type(program, a), *y = core_type(program, b);
    if (x->kind != y->kind || x->tree != y->tree || !axes_same(x, y) || x->parts != y->parts)
        return false;
    if (fits ? !core_bound_fits(program, x->bound, y->bound) : x->bound != y->bound)
        return false;
    for (uint32_t i = 0; i < x->parts; i++)
        if (!compare(program, x->part[i], y->part[i], fits))
            return false;
    return true;
}

bool core_type_same(const CoreProgram *program, CoreTypeId a, CoreTypeId b) {
    return compare(program, a, b, false);
}

bool core_type_fits(const CoreProgram *program, CoreTypeId given, CoreTypeId wanted) {
    return compare(program, given, wanted, true);
}

static CoreTypeId substitute_axes(CoreProgram *program, const CoreType *type, const Extent *by_dim,
                                  const CoreAxis *pack, uint32_t pack_count) {
    CoreAxis axes[2 * RANK_MAX];
    uint32_t rank = 0;
    Extent bound = extent_substitute(program->extents, type->bound, by_dim);
    if (type->kind == CORE_IDX && bound == EXTENT_NONE)
        return 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        CoreAxis axis = type->axes[i];
        bool expand = axis.extent == EXTENT_PACK && pack;
        uint32_t count = expand ? pack_count : 1;
        if (rank + count > COUNT_OF(axes))
            return 0;
        if (expand) {
            memcpy(axes + rank, pack, count * sizeof *pack);
        } else {
            axis.extent = extent_substitute(program->extents, axis.extent, by_dim);
            if (axis.extent == EXTENT_NONE)
                return 0;
            axes[rank] = axis;
        }
        rank += count;
    }
    return type->kind == CORE_REAL ? core_type_real(program, rank, axes)
                                   : core_type_idx(program, bound, rank, axes);
}

// The type itself where its parts stay what they are.
static CoreTypeId substitute_parts(CoreProgram *program, CoreTypeId id, const Extent *by_dim,
                                   const CoreAxis *pack, uint32_t pack_count) {
    const CoreType *type = core_type(program, id);
    CoreTypeId *parts = NULL; // from the first that changes
    for (uint32_t i = 0; i < type->parts; i++) {
        CoreTypeId part = core_type_substitute(program, type->part[i], by_dim, pack, pack_count);
        if (!part)
            return 0;
        if (!parts && part != type->part[i])
            parts = arena_copy(program->arena, type->part, type->parts * sizeof *parts);
        if (parts)
            parts[i] = part;
    }
    return parts ? core_type_tuple(program, type->parts, parts) : id;
}

CoreTypeId core_type_substitute(CoreProgram *program, CoreTypeId type, const Extent *by_dim,
                                const CoreAxis *pack, uint32_t pack_count) {
    const CoreType *at = core_type(program, type);
    switch (at->kind) {
    case CORE_REAL:
    case CORE_IDX:
        return substitute_axes(program, at, by_dim, pack, pack_count);
    case CORE_PARAMS: {
        CoreTree tree = core_tree_substitute(program, at->tree, by_dim);
        return tree ? core_type_params(program, tree) : 0;
    }
    case CORE_TUPLE:
        return substitute_parts(program, type, by_dim, pack, pack_count);
    }
    bug("a type of unknown kind");
}

static Str axes_fault(const CoreProgram *program, const CoreType *type, Arena *arena) {
    if (type->rank > RANK_MAX)
        return str_format(arena, "it has %u axes; at most %d are possible", type->rank, RANK_MAX);
    if (type->kind == CORE_IDX && (type->bound == EXTENT_NONE || type->bound == EXTENT_PACK))
        return STR("its index bound is no extent");
    uint32_t packs = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        Name name = type->axes[i].name;
        int64_t value;
        if (type->axes[i].extent == EXTENT_NONE ||
            (extent_is_int(program->extents, type->axes[i].extent, &value) && value < 0))
            return STR("an axis has no legal extent");
        if (type->axes[i].extent == EXTENT_PACK && packs++ > 0)
            return STR("`...` stands in it twice");
        for (uint32_t j = 0; name && j < i; j++)
            if (type->axes[j].name == name)
                return str_format(arena, "two of its axes are named `%s`",
                                  name_c(program->context->names, name));
    }
    return STR("");
}

Str core_type_fault(const CoreProgram *program, CoreTypeId type, Arena *arena) {
    if (type == 0 || type >= program->tables->types.count)
        return STR("it is no type");
    struct CoreTables *tables = program->tables;
    while (tables->sound.count < tables->types.count)
        vec_push(program->arena, &tables->sound, false);
    if (tables->sound.at[type])
        return STR("");
    const CoreType *at = core_type(program, type);
    Str fault = STR("");
    if (at->kind == CORE_PARAMS)
        fault = at->tree ? STR("") : STR("its tree is missing");
    else if (at->kind != CORE_TUPLE)
        fault = axes_fault(program, at, arena);
    for (uint32_t i = 0; i < at->parts && !fault.size; i++)
        fault = core_type_fault(program, at->part[i], arena);
    tables->sound.at[type] = !fault.size;
    return fault;
}

void core_axes_write(const CoreProgram *program, uint32_t rank, const CoreAxis *axes,
                     const Name *names, StrBuf *buf) {
    buf_char(buf, '[');
    for (uint32_t i = 0; i < rank; i++) {
        buf_text(buf, i ? ", " : "");
        if (axes[i].name)
            buf_format(buf, "%s: ", name_c(program->context->names, axes[i].name));
        extent_write(program->extents, axes[i].extent, names, buf);
    }
    buf_char(buf, ']');
}

void core_type_write(const CoreProgram *program, CoreTypeId type, const Name *names, StrBuf *buf) {
    if (!type) {
        buf_text(buf, "?");
        return;
    }
    const CoreType *at = core_type(program, type);
    switch (at->kind) {
    case CORE_IDX:
        buf_text(buf, "idx[");
        extent_write(program->extents, at->bound, names, buf);
        buf_char(buf, ']');
        break;
    case CORE_REAL:
        buf_text(buf, REAL_SIGN);
        break;
    case CORE_PARAMS:
        buf_text(buf, "params ");
        core_tree_write(program, at->tree, names, buf);
        return;
    case CORE_TUPLE:
        buf_char(buf, '(');
        for (uint32_t i = 0; i < at->parts; i++) {
            buf_text(buf, i ? ", " : "");
            core_type_write(program, at->part[i], names, buf);
        }
        buf_text(buf, at->parts == 1 ? ",)" : ")");
        return;
    }
    if (at->rank)
        core_axes_write(program, at->rank, at->axes, names, buf);
}

Str core_type_text(const CoreProgram *program, CoreTypeId type, Arena *arena) {
    StrBuf buf = {.arena = arena};
    core_type_write(program, type, NULL, &buf);
    return buf_str(&buf);
}
