// The gradient of a function: its value and the cotangent of its first parameter from one.
#include "ad/variant.h"

static bool holds_reals(CoreProgram *program, CoreTypeId type) {
    CoreKind kind = core_type(program, type)->kind;
    return kind == CORE_REAL || kind == CORE_PARAMS;
}

static bool can_differentiate(CoreProgram *program, const CoreFn *fn) {
    const CoreType *result = core_type(program, fn->type);
    const char *name = name_c(program->context->names, fn->name);
    if (result->kind != CORE_REAL || result->rank != 0) {
        Diag *made = diag(&program->context->diags, E3003, fn->span, name);
        diag_note(made, "its result is %s, and a gradient needs a real scalar ℝ",
                  core_type_text(program, fn->type, program->arena).at);
        return false;
    }
    if (fn->params && holds_reals(program, core_let(fn, 0)->type))
        return true;
    Diag *made = diag(&program->context->diags, E3003, fn->span, name);
    diag_note(made, "the gradient is taken in the first parameter, which must hold reals");
    return false;
}

typedef struct Gradient {
    CoreProgram *program;
    const CoreFn *fn;
    CoreFn *made;
} Gradient;

static CoreLetId add(const Gradient *g, CorePrim prim, CoreTypeId type, uint32_t count,
                     const CoreLetId *operands, const CoreAttr *attr) {
    return core_let_add(g->program, g->made, prim, type, count, operands, attr, 0, g->fn->span);
}

static CoreLetId call(const Gradient *g, Arena *arena, CoreFnId callee, uint32_t count,
                      const CoreLetId *operands) {
    CoreAttr attr = {.callee = callee, .dim_count = g->fn->dims.count};
    Extent *dims = arena_array(arena, Extent, attr.dim_count + 1);
    for (uint32_t i = 0; i < attr.dim_count; i++)
        dims[i] = extent_dim(g->program->extents, g->fn->dims.at[i]);
    CoreAxis pack = {.extent = EXTENT_PACK};
    attr.dims = dims;
    attr.pack = &pack;
    attr.pack_count = g->fn->has_pack;
    return add(g, CORE_call, core_fn(g->program, callee)->type, count, operands, &attr);
}

static void fill(Gradient *g, Arena *arena, const AdVariant *v) {
    const CoreFn *fn = g->fn;
    CoreLetId *operands = arena_array(arena, CoreLetId, fn->params + v->saved + 1);
    for (CoreLetId i = 0; i < fn->params; i++)
        operands[i] = i;
    CoreLetId value = call(g, arena, v->forward, fn->params, operands);
    CoreLetId whole = value;
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->params.count; i++)
        operands[count++] = v->params.at[i];
    for (uint32_t i = 0; i < v->saved; i++) {
        CoreAttr item = {.number = i + 1};
        operands[count++] = add(g, CORE_item, v->saved_type[i], 1, &whole, &item);
    }
    if (v->saved) {
        CoreAttr item = {.number = 0};
        value = add(g, CORE_item, fn->type, 1, &whole, &item);
    }
    CoreAttr one = {.scalar =
                        core_scalar_rational(g->program, rational_of_int(g->program->arena, 1))};
    operands[count++] = add(g, CORE_scalar, core_type_real(g->program, 0, NULL), 0, NULL, &one);
    CoreLetId parts[] = {value, call(g, arena, v->backward, count, operands)};
    g->made->result = add(g, CORE_tuple, g->made->type, 2, parts, NULL);
}

CoreFnId ad_gradient(CoreProgram *program, CoreFnId id) {
    const CoreFn *fn = core_fn(program, id);
    Name name =
        name_of(program->context->names,
                str_format(program->arena, "%s.grad", name_c(program->context->names, fn->name)));
    CoreFnId there = core_fn_find(program, name_str(program->context->names, name));
    if (there)
        return there;
    if (!can_differentiate(program, fn))
        return 0;
    AdState state = {.program = program, .arena = program->arena};
    const AdVariant *v = ad_variant(&state, id, 1);
    if (!v)
        return 0;
    CoreFnId made = core_fn_add(program, name, fn->span);
    fn = core_fn(program, id);
    Gradient g = {program, fn, core_fn(program, made)};
    for (CoreLetId i = 0; i < fn->params; i++) {
        const CoreLet *param = core_let(fn, i);
        core_let_add(program, g.made, CORE_param, param->type, 0, NULL, NULL, param->name,
                     param->span);
    }
    g.made->params = fn->params;
    for (uint32_t i = 0; i < fn->dims.count; i++)
        vec_push(program->arena, &g.made->dims, fn->dims.at[i]);
    g.made->has_pack = fn->has_pack;
    CoreTypeId parts[] = {fn->type, core_let(fn, 0)->type};
    g.made->type = core_type_tuple(program, 2, parts);
    fill(&g, program->arena, v);
    return made;
}
