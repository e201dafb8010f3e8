#include "support/gradient.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/concrete.h"
#include "driver.h"
#include "support/core_text.h"

#include <math.h>

static void fail_with(Gradient *g, const char *what) {
    fail_msg("%s: %s", what, diags_render(&g->context.diags, g->context.arena, DIAG_PLAIN).at);
}

static void finish(Gradient *g, CoreProgram *core, const char *fn) {
    uint32_t count = extent_dim_count(core->extents) + 1;
    g->fn = core_fn_find(core, str_of(fn));
    g->program = (RandomProgram){.core = core};
    g->program.entry = core_fn_find(core, str_format(g->context.arena, "%s.grad", fn));
    int64_t *dims = arena_array(g->context.arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        dims[i] = -1;
    g->program.dims = dims;
    g->low = -1;
    g->high = 1;
    assert_true(g->fn && g->program.entry);
}

static void differentiate(Gradient *g, CoreProgram *core, const char *fn) {
    core_gradient_declare(core, core_fn_find(core, str_of(fn)));
    PreskCompiled compiled = {0};
    if (!presk_passes(core, g->context.arena, &compiled))
        fail_with(g, fn);
    finish(g, core, fn);
}

void gradient_of_text(Gradient *g, const char *text, const char *fn) {
    *g = (Gradient){0};
    context_init(&g->context);
    Context *context = &g->context;
    uint32_t source = source_add(&context->sources, STR("test.psk"), str_of(text));
    ChkProgram *program = chk_source(context, context->arena, source, 0, NULL);
    if (!program)
        fail_with(g, text);
    differentiate(g, program->core, fn);
}

void gradient_of_core(Gradient *g, const char *text, const char *fn) {
    *g = (Gradient){0};
    context_init(&g->context);
    differentiate(g, core_of_legal_text(&g->context, text), fn);
}

// "D=4 H=2"
static uint32_t pairs(Arena *arena, const char *text, ChkConst **list) {
    Vec(ChkConst) all = {0};
    while (*text) {
        size_t name = strcspn(text, "="), value = strcspn(text + name + 1, " ");
        ChkConst one = {str_copy(arena, text, name), str_copy(arena, text + name + 1, value)};
        vec_push(arena, &all, one);
        text += name + 1 + value;
        text += *text == ' ';
    }
    *list = all.at;
    return all.count;
}

void gradient_of_file(Gradient *g, const char *path, const char *fn, const char *constants,
                      const char *dims) {
    *g = (Gradient){0};
    context_init(&g->context);
    Arena *arena = g->context.arena;
    ChkConst *consts, *values;
    uint32_t count = pairs(arena, constants, &consts);
    PreskCompiled compiled;
    Str entry = str_format(arena, "%s.grad", fn);
    if (!presk_compile(&g->context, arena, path, count, consts, entry.at, &compiled))
        fail_with(g, path);
    CoreProgram *core = compiled.program->core;
    finish(g, core, fn);
    count = pairs(arena, dims, &values);
    for (DimId dim = 1; dim <= extent_dim_count(core->extents); dim++)
        for (uint32_t i = 0; i < count; i++)
            if (extent_dim_get(core->extents, dim)->global &&
                str_equal(name_str(g->context.names, extent_dim_get(core->extents, dim)->name),
                          values[i].name))
                ((int64_t *)g->program.dims)[dim] = atoi(values[i].value.at);
}

void gradient_end(Gradient *g) {
    context_free(&g->context);
}

// ---- values -----------------------------------------------------------------------------------

static CoreValue draw(Gradient *g, CoreTypeId id, uint64_t *state) {
    Arena *arena = g->context.arena;
    CoreProgram *core = g->program.core;
    CoreValue value = {.type = id};
    const CoreType *type = core_type(core, id);
    if (type->kind == CORE_PARAMS) {
        CoreLeaf *leaves;
        value.count = core_tree_leaves(core, type->tree, arena, &leaves);
        value.parts = arena_array(arena, CoreValue, value.count);
        for (uint32_t i = 0; i < value.count; i++)
            value.parts[i] = draw(g, leaves[i].type, state);
        return value;
    }
    CoreFrame frame = {.by_dim = g->program.dims};
    Shape shape;
    int64_t range;
    assert_int_equal(core_concrete(core, id, &frame, &shape, &range, NULL), CORE_CONCRETE_OK);
    DType storage = type->kind == CORE_IDX ? dtype_of_bound((uint64_t)range) : F64;
    value.tensor = tensor_new(arena, storage, shape.rank, shape.extent);
    for (int64_t i = 0, count = shape_count(&shape); i < count; i++) {
        ++*state;
        uint64_t random = hash_bytes(state, sizeof *state, 7);
        double share = (double)(random >> 11) * 0x1p-53;
        bool index = type->kind == CORE_IDX;
        tensor_set(&value.tensor, i,
                   index ? floor(share * (double)range) : g->low + share * (g->high - g->low));
    }
    return value;
}

CoreValue *gradient_arguments(Gradient *g, uint64_t seed) {
    const CoreFn *fn = core_fn(g->program.core, g->fn);
    CoreValue *values = arena_array(g->context.arena, CoreValue, fn->params + 1);
    uint64_t state = seed << 32;
    for (CoreLetId i = 0; i < fn->params; i++)
        values[i] = draw(g, core_let(fn, i)->type, &state);
    return values;
}

static CoreValue evaluate(Gradient *g, CoreFnId fn, const CoreValue *arguments, Arena *arena) {
    RlzRealization *record = rlz_realization_read(&g->context, arena, STR("f64"));
    CoreEval eval = {.program = g->program.core,
                     .arithmetic = rlz_arithmetic(g->program.core, arena, record, true),
                     .dims = g->program.dims,
                     .arena = arena};
    CoreValue value = core_eval(&eval, fn, arguments, NULL, 0, NULL);
    if (g->context.diags.errors)
        fail_with(g, "evaluation");
    return value;
}

CoreValue gradient_value(Gradient *g, const CoreValue *arguments) {
    return evaluate(g, g->program.entry, arguments, g->context.arena);
}

// ---- differences --------------------------------------------------------------------------------

static double at(Gradient *g, const CoreValue *arguments, Tensor *x, int64_t i, double value) {
    Arena *arena = arena_new(arena_heap(g->context.arena), "difference");
    double saved = tensor_get(x, i);
    tensor_set(x, i, value);
    CoreValue result = evaluate(g, g->fn, arguments, arena);
    double number = tensor_get(&result.tensor, 0);
    tensor_set(x, i, saved);
    arena_free(arena);
    return number;
}

// Exact for polynomials of the fourth degree, but for rounding.
static double slope(Gradient *g, const CoreValue *arguments, Tensor *x, int64_t i) {
    double h = 0x1p-10, a = tensor_get(x, i);
    double near = at(g, arguments, x, i, a + h) - at(g, arguments, x, i, a - h);
    double far = at(g, arguments, x, i, a + 2 * h) - at(g, arguments, x, i, a - 2 * h);
    return (8 * near - far) / (12 * h);
}

static double largest(const Tensor *tensor) {
    double size = 0;
    for (int64_t i = 0, count = shape_count(&tensor->shape); i < count; i++)
        size = fmax(size, fabs(tensor_get(tensor, i)));
    return size;
}

uint32_t gradient_check(Gradient *g, const char *what, double tolerance) {
    CoreValue *arguments = gradient_arguments(g, 1);
    CoreValue both = gradient_value(g, arguments);
    CoreValue value = evaluate(g, g->fn, arguments, g->context.arena);
    assert_true(tensor_get(&both.parts[0].tensor, 0) == tensor_get(&value.tensor, 0));
    CoreValue *x = &arguments[0], *gradient = &both.parts[1];
    uint32_t tensors = x->parts ? x->count : 1, zeros = 0;
    double all = 0;
    for (uint32_t t = 0; t < tensors; t++)
        all = fmax(all, largest(x->parts ? &gradient->parts[t].tensor : &gradient->tensor));
    for (uint32_t t = 0; t < tensors; t++) {
        Tensor *in = x->parts ? &x->parts[t].tensor : &x->tensor;
        const Tensor *out = x->parts ? &gradient->parts[t].tensor : &gradient->tensor;
        assert_true(shape_same_extents(&in->shape, &out->shape));
        double unit = fmax(largest(out), 1e-3 * all);
        zeros += largest(out) == 0;
        for (int64_t i = 0, count = shape_count(&in->shape); i < count; i++) {
            double expected = slope(g, arguments, in, i), got = tensor_get(out, i);
            if (!(fabs(got - expected) <= tolerance * unit + 1e-12))
                fail_msg("%s: tensor %u, element %lld: %.12g, the differences say %.12g", what, t,
                         (long long)i, got, expected);
        }
    }
    return zeros;
}

// ---- executors ----------------------------------------------------------------------------------

static void expect_same(Gradient *g, const char *what, const ExecutorsOptions *options) {
    Str difference = executors_difference(&g->context, &g->program, options);
    if (difference.size)
        fail_msg("%s, %s%s: %s", what, options->realization,
                 options->backend == RT_NATIVE ? ", native" : "", difference.at);
}

void gradient_executors(Gradient *g, const char *what, const char *native, const char *folder) {
    static const char *const realizations[] = {"f64", "f32", "bf16"};
    static const RlzTarget targets[] = {128, 256, 512};
    for (uint32_t i = 0; i < COUNT_OF(realizations); i++)
        expect_same(
            g, what,
            &(ExecutorsOptions){RT_KERNEL, realizations[i], targets[i], true, 1 + i, NULL, NULL});
    if (!folder)
        return;
    NatOptions options = {.cache_folder = folder, .target = nat_machine_target()};
    ExecutorsOptions given = {RT_NATIVE, native, options.target, true, 2, NULL, NULL};
    given.native = nat_new(&g->context, g->context.arena, &options);
    assert_non_null(given.native);
    expect_same(g, what, &given);
    nat_free(given.native);
}
