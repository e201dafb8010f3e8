// Programs, modules, functions and lets: the tables and the two lists that all passes walk.
#include "core/tables.h"

const CorePrimInfo core_prims[CORE_PRIM_COUNT] = {
#define PRIM(name, text, class, min, max, weight, meaning)                                         \
    [CORE_##name] = {text, CORE_##class, min, max, weight},
#include "core/prim.def"
#undef PRIM
};

// Elementwise primitives carry the names of the maths functions; the tables are joined by name.
#define CORE_FUNCTION_FREE(name)        MTH_FUNCTION_COUNT
#define CORE_FUNCTION_CALL(name)        MTH_FUNCTION_COUNT
#define CORE_FUNCTION_REDUCTION(name)   MTH_FUNCTION_COUNT
#define CORE_FUNCTION_ROW(name)         MTH_FUNCTION_COUNT
#define CORE_FUNCTION_CONTRACTION(name) MTH_FUNCTION_COUNT
#define CORE_FUNCTION_INDEXED(name)     MTH_FUNCTION_COUNT
#define CORE_FUNCTION_PERMUTE(name)     MTH_FUNCTION_COUNT
#define CORE_FUNCTION_ELEMENTWISE(name) MTH_##name

static const uint8_t functions[CORE_PRIM_COUNT] = {
#define PRIM(name, text, class, min, max, weight, meaning)                                         \
    [CORE_##name] = CORE_FUNCTION_##class(name),
#include "core/prim.def"
#undef PRIM
};

// Labels, orders and masks of axes are bytes and 64-bit sets.
_Static_assert(RANK_MAX <= 64, "a set of axes fits 64 bits");
_Static_assert(2 * RANK_MAX <= 26, "the labels of an ein are letters");
_Static_assert(MTH_FUNCTION_COUNT < 256, "a function fits a byte");

bool core_prim_of_text(Str text, CorePrim *prim) {
    for (uint32_t i = 0; i < CORE_PRIM_COUNT; i++)
        if (str_is(text, core_prims[i].text)) {
            *prim = (CorePrim)i;
            return true;
        }
    return false;
}

MthFunction core_prim_function(CorePrim prim) {
    check_that(core_prims[prim].class == CORE_ELEMENTWISE);
    return (MthFunction)functions[prim];
}

bool core_prim_has_attr(CorePrim prim) {
    switch (prim) {
    case CORE_scalar:
    case CORE_field:
    case CORE_item:
    case CORE_call:
    case CORE_pow:
    case CORE_ein:
    case CORE_permute:
        return true;
    default:
        return core_prim_axes(prim) != CORE_NO_AXES;
    }
}

CoreAxes core_prim_axes(CorePrim prim) {
    CoreClass class = core_prims[prim].class;
    switch (prim) {
    case CORE_argmax:
    case CORE_pick:
    case CORE_pick_vjp:
        return CORE_ONE_AXIS;
    case CORE_reduce_max_vjp:
    case CORE_reduce_min_vjp:
        return CORE_SET_OF_AXES;
    default:
        return class == CORE_ROW         ? CORE_ONE_AXIS
               : class == CORE_REDUCTION ? CORE_SET_OF_AXES
                                         : CORE_NO_AXES;
    }
}

const char *core_remark_text(CoreRemarkKind kind) {
    static const char *const texts[CORE_REMARK_COUNT] = {
#define REMARK(name, text) [CORE_REMARK_##name] = text,
#include "core/remark.def"
#undef REMARK
    };
    return texts[kind];
}

uint32_t core_key_find(Map *ids, const CoreKey *key, uint32_t **slot) {
    *slot = map_slot(ids, key->at, key->count * sizeof *key->at, NULL);
    return **slot;
}

CoreProgram *core_program_new(Context *context, Arena *arena) {
    CoreProgram *program = arena_new_of(arena, CoreProgram);
    program->context = context;
    program->arena = arena;
    program->extents = extent_table_new(arena, context->names);
    vec_push(arena, &program->fns, NULL);
    vec_push(arena, &program->modules, ((CoreModule){0}));
    struct CoreTables *tables = arena_new_of(arena, struct CoreTables);
    tables->type_ids = map_new(arena);
    tables->tree_ids = map_new(arena);
    tables->scalar_ids = map_new(arena);
    vec_push(arena, &tables->types, NULL);
    vec_push(arena, &tables->trees, NULL);
    vec_push(arena, &tables->scalars, NULL);
    program->tables = tables;
    return program;
}

CoreModuleId core_module_add(CoreProgram *program, Name name, Span span) {
    vec_push(program->arena, &program->modules, ((CoreModule){.name = name, .span = span}));
    return program->modules.count - 1;
}

CoreFnId core_fn_add(CoreProgram *program, Name name, Span span) {
    CoreFn *fn = arena_new_of(program->arena, CoreFn);
    fn->name = name;
    fn->span = span;
    vec_push(program->arena, &program->fns, fn);
    return program->fns.count - 1;
}

CoreFnId core_fn_find(const CoreProgram *program, Str name) {
    for (CoreFnId id = 1; id < program->fns.count; id++)
        if (str_equal(name_str(program->context->names, program->fns.at[id]->name), name))
            return id;
    return 0;
}

CoreFnId core_gradient_declare(CoreProgram *program, CoreFnId id) {
    const CoreFn *fn = core_fn(program, id);
    check_that(fn->params && fn->type);
    Name name =
        name_of(program->context->names,
                str_format(program->arena, "%s.grad", name_c(program->context->names, fn->name)));
    CoreFnId made = core_fn_find(program, name_str(program->context->names, name));
    if (made)
        return core_fn(program, made)->gradient_of == id ? made : 0;
    made = core_fn_add(program, name, fn->span);
    CoreFn *gradient = core_fn(program, made);
    gradient->gradient_of = id;
    for (uint32_t i = 0; i < fn->dims.count; i++)
        vec_push(program->arena, &gradient->dims, fn->dims.at[i]);
    gradient->has_pack = fn->has_pack;
    for (CoreLetId i = 0; i < fn->params; i++) {
        const CoreLet *param = core_let(fn, i);
        core_let_add(program, gradient, CORE_param, param->type, 0, NULL, NULL, param->name,
                     param->span);
    }
    gradient->params = fn->params;
    CoreTypeId parts[] = {fn->type, core_let(fn, 0)->type};
    gradient->type = core_type_tuple(program, 2, parts);
    return made;
}

CoreFn *core_fn(const CoreProgram *program, CoreFnId fn) {
    check_that(fn >= 1 && fn < program->fns.count);
    return program->fns.at[fn];
}

static const CoreAttr *attr_copy(Arena *arena, const CoreAttr *attr) {
    if (!attr)
        return NULL;
    CoreAttr *copy = arena_copy(arena, attr, sizeof *attr);
    copy->path = arena_copy(arena, attr->path, attr->path_count * sizeof *attr->path);
    copy->dims = arena_copy(arena, attr->dims, attr->dim_count * sizeof *attr->dims);
    copy->pack = arena_copy(arena, attr->pack, attr->pack_count * sizeof *attr->pack);
    for (int i = 0; i < 3; i++)
        copy->labels[i] = arena_copy(arena, attr->labels[i], attr->label_count[i]);
    copy->order = arena_copy(arena, attr->order, attr->order_count);
    return copy;
}

CoreLetId core_let_add(CoreProgram *program, CoreFn *fn, CorePrim prim, CoreTypeId type,
                       uint32_t count, const CoreLetId *operands, const CoreAttr *attr, Name name,
                       Span span) {
    check_that(!fn->group);
    CoreLet let = {.prim = prim,
                   .type = type,
                   .first = fn->operands.count,
                   .count = count,
                   .attr = attr_copy(program->arena, attr),
                   .name = name,
                   .span = span};
    for (uint32_t i = 0; i < count; i++)
        vec_push(program->arena, &fn->operands, operands[i]);
    vec_push(program->arena, &fn->lets, let);
    return fn->lets.count - 1;
}

Str core_site_text(const CoreProgram *program, CoreFnId fn, CoreLetId let, Arena *arena) {
    return str_format(arena, "%s/%%%u", name_c(program->context->names, core_fn(program, fn)->name),
                      let);
}
