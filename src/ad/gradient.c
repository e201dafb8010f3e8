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
    AdState *state;
    CoreProgram *program;
    const CoreFn *fn; // whose gradient
    CoreFn *made;
    Extent *by_dim; // from fn's dimensions to those of made
} Gradient;

static CoreLetId add(const Gradient *g, CorePrim prim, CoreTypeId type, uint32_t count,
                     const CoreLetId *operands, const CoreAttr *attr) {
    CoreTypeId own = core_type_substitute(g->program, type, g->by_dim, NULL, 0);
    return core_let_add(g->program, g->made, prim, own, count, operands, attr, 0, g->fn->span);
}

static CoreLetId call(const Gradient *g, CoreFnId callee, uint32_t count,
                      const CoreLetId *operands) {
    CoreAxis pack = {.extent = EXTENT_PACK};
    CoreAttr attr = {.callee = callee,
                     .dim_count = g->made->dims.count,
                     .pack = &pack,
                     .pack_count = g->made->has_pack};
    Extent *dims = arena_array(g->state->arena, Extent, attr.dim_count + 1);
    for (uint32_t i = 0; i < attr.dim_count; i++)
        dims[i] = extent_dim(g->program->extents, g->made->dims.at[i]);
    attr.dims = dims;
    return add(g, CORE_call, core_fn(g->program, callee)->type, count, operands, &attr);
}

static void fill(const Gradient *g, const AdVariant *v) {
    const CoreFn *fn = g->fn;
    CoreLetId *operands = arena_array(g->state->arena, CoreLetId, fn->params + v->saved + 1);
    for (CoreLetId i = 0; i < fn->params; i++)
        operands[i] = i;
    CoreLetId value = call(g, v->forward, fn->params, operands);
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
    CoreLetId gradient = call(g, v->backward, count, operands);
    CoreTypeId type = core_let(fn, 0)->type;
    if (core_fn(g->program, v->backward)->type != type)
        gradient = add(g, CORE_view, type, 1, &gradient, NULL);
    CoreLetId parts[] = {value, gradient};
    g->made->result =
        core_let_add(g->program, g->made, CORE_tuple, g->made->type, 2, parts, NULL, 0, fn->span);
}

bool ad_gradient(AdState *state, CoreFnId id) {
    CoreProgram *program = state->program;
    CoreFn *made = core_fn(program, id);
    CoreFnId of = made->gradient_of;
    if (!of)
        return true;
    const CoreFn *fn = core_fn(program, of);
    const AdVariant *v = can_differentiate(program, fn) ? ad_variant(state, of, 1) : NULL;
    if (!v)
        return false;
    Gradient g = {state, program, fn, made, NULL};
    g.by_dim = arena_array(state->arena, Extent, extent_dim_count(program->extents) + 1);
    for (uint32_t i = 0; i < fn->dims.count; i++)
        g.by_dim[fn->dims.at[i]] = extent_dim(program->extents, made->dims.at[i]);
    fill(&g, v);
    made->gradient_of = 0;
    return true;
}

bool ad_gradients(CoreProgram *program) {
    AdState state = {.program = program, .arena = program->arena};
    bool good = true;
    for (CoreFnId id = 1, count = program->fns.count; id < count; id++)
        good &= ad_gradient(&state, id);
    return good;
}
