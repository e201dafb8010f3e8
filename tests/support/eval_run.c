#include "support/eval_run.h"
#include "support/core_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

int run_setup(void **state) {
    Context *context = malloc(sizeof *context);
    context_init(context);
    *state = context;
    return 0;
}

int run_teardown(void **state) {
    context_free(*state);
    free(*state);
    return 0;
}

Run run_new(void **state, const char *text) {
    return (Run){.context = *state, .storage = F32, .text = text, .arithmetic = {.fusion = true}};
}

static CoreValue tensor(const Run *run, DType type, const int64_t *extents) {
    uint32_t rank = 0;
    while (extents[rank] >= 0)
        rank++;
    return (CoreValue){.tensor = tensor_new(run->context->arena, type, rank, extents)};
}

CoreValue run_tensor(const Run *run, const int64_t *extents, const double *values) {
    CoreValue value = tensor(run, run->storage, extents);
    int64_t count = shape_count(&value.tensor.shape);
    for (int64_t i = 0; i < count; i++)
        tensor_set(&value.tensor, i, values[i]);
    return value;
}

CoreValue run_index(const Run *run, int64_t bound, const int64_t *extents, const int *values) {
    CoreValue value = tensor(run, dtype_of_bound((uint64_t)bound), extents);
    int64_t count = shape_count(&value.tensor.shape);
    for (int64_t i = 0; i < count; i++)
        tensor_set(&value.tensor, i, values[i]);
    return value;
}

static const uint8_t *const *storage_table(const Run *run, const CoreProgram *program) {
    Arena *arena = run->context->arena;
    uint8_t **table = arena_array(arena, uint8_t *, program->fns.count);
    for (CoreFnId id = 1; id < program->fns.count; id++) {
        uint32_t lets = core_fn(program, id)->lets.count;
        table[id] = arena_alloc(arena, lets);
        memset(table[id], run->storage, lets);
    }
    if (run->wide)
        table[program->fns.count - 1][atoi(run->wide + 1)] = F64;
    return (const uint8_t *const *)table;
}

CoreValue run(Run *run, const CoreValue *arguments) {
    CoreProgram *program = core_of_legal_text(run->context, run->text);
    core_partition(program);
    run->arithmetic.storage = storage_table(run, program);
    run->arithmetic.params = run->arithmetic.inputs = run->storage;
    uint32_t dims = extent_dim_count(program->extents) + 1;
    int64_t *global = arena_array(run->context->arena, int64_t, dims);
    memset(global, 0xff, dims * sizeof *global);
    CoreEval eval = {.program = program,
                     .arithmetic = &run->arithmetic,
                     .dims = global,
                     .arena = run->context->arena,
                     .hyper = run->hyper};
    CoreValue value =
        core_eval(&eval, program->fns.count - 1, arguments, run->dims, run->pack_rank, run->pack);
    run->launches = eval.launches;
    return value;
}

static void expect_shape(const Tensor *tensor, const int64_t *extents) {
    uint32_t rank = 0;
    while (extents[rank] >= 0)
        rank++;
    assert_int_equal(tensor->shape.rank, rank);
    for (uint32_t i = 0; i < rank; i++)
        assert_int_equal(tensor->shape.extent[i], extents[i]);
}

void expect_elements(const CoreValue *value, const int64_t *extents, const double *expected) {
    expect_shape(&value->tensor, extents);
    int64_t count = shape_count(&value->tensor.shape);
    for (int64_t i = 0; i < count; i++) {
        double got = tensor_get(&value->tensor, i);
        bool same = (isnan(got) && isnan(expected[i])) ||
                    (got == expected[i] && !signbit(got) == !signbit(expected[i]));
        if (!same)
            fail_msg("element %lld is %a, not %a", (long long)i, got, expected[i]);
    }
}

void expect_near(const CoreValue *value, double tolerance, const double *expected) {
    int64_t count = shape_count(&value->tensor.shape);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(tensor_get(&value->tensor, i) - expected[i]) <= tolerance))
            fail_msg("element %lld is %g, not %g", (long long)i, tensor_get(&value->tensor, i),
                     expected[i]);
}
