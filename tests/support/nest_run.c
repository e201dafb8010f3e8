#include "support/nest_run.h"

#include "native/native.h"

#include <math.h>
#include <stdlib.h>

uint32_t random_below(Random *random, uint32_t bound) {
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random->state >> 33) % bound);
}

double random_value(Random *random, bool special) {
    uint32_t kind = random_below(random, 24);
    if (kind == 0)
        return random_below(random, 2) ? -0.0 : 0.0;
    if (kind == 1 && special)
        return (double[]){INFINITY, -INFINITY, (double)NAN}[random_below(random, 3)];
    double value = random_below(random, 1u << 31), low = random_below(random, 1u << 31);
    value = (value + low * 0x1p-31) * 0x1p-30 - 1; // all bits of the significand
    return ldexp(value, (int)random_below(random, 7) - 3);
}

// ---- data ---------------------------------------------------------------------------------------

enum { GUARD = 64 };

Data data_new(Arena *arena, DType type, int64_t count) {
    Data data = {.type = type, .count = count};
    data.bytes = (size_t)count * dtype_size(type) + 2 * GUARD;
    data.block = arena_alloc(arena, data.bytes);
    memset(data.block, 0xa5, data.bytes);
    data.at = data.block + GUARD;
    return data;
}

void data_fill(Data *data, Random *random, int64_t range, bool special) {
    for (int64_t i = 0; i < data->count; i++)
        dtype_set(data->type, data->at, i,
                  dtype_is_real(data->type) ? random_value(random, special)
                                            : random_below(random, (uint32_t)range));
}

bool data_guarded(const Data *data) {
    for (size_t i = 0; i < GUARD; i++)
        if (data->block[i] != 0xa5 || data->block[data->bytes - 1 - i] != 0xa5)
            return false;
    return true;
}

static bool same_element(const Data *a, const Data *b, int64_t i) {
    size_t size = dtype_size(a->type);
    if (memcmp((char *)a->at + (size_t)i * size, (char *)b->at + (size_t)i * size, size) == 0)
        return true;
    return isnan(dtype_get(a->type, a->at, i)) && isnan(dtype_get(b->type, b->at, i));
}

bool data_same(const Data *a, const Data *b, int64_t *at) {
    for (*at = 0; *at < a->count; ++*at)
        if (!same_element(a, b, *at))
            return false;
    return true;
}

// ---- nests --------------------------------------------------------------------------------------

TestNest *nest_new(Arena *arena, RlzKind kind, CorePrim prim, DType storage) {
    TestNest *test = arena_new_of(arena, TestNest);
    DType arithmetic = dtype_arithmetic(storage);
    test->nest =
        (RlzNest){.kind = kind, .prim = prim, .arithmetic = arithmetic, .accumulate = arithmetic};
    test->nest.input = test->input;
    test->nest.node = test->node;
    return test;
}

void nest_axis(TestNest *test, RlzRole role, int64_t extent) {
    test->nest.extent[test->nest.axes] = extent;
    test->nest.role[test->nest.axes++] = (uint8_t)role;
}

static void set_strides(const RlzNest *nest, RlzOperand *operand, const char *axes) {
    int64_t size = 1;
    for (size_t i = strlen(axes); i-- > 0;) {
        operand->stride[axes[i] - 'a'] = size;
        size *= nest->extent[axes[i] - 'a'];
    }
}

RlzOperand *nest_input(TestNest *test, DType type, const char *axes) {
    RlzOperand *operand = &test->input[test->nest.inputs++];
    operand->type = type;
    if (axes)
        set_strides(&test->nest, operand, axes);
    return operand;
}

void nest_output(TestNest *test, Arena *arena, DType type, const char *axes) {
    test->nest.output.type = type;
    set_strides(&test->nest, &test->nest.output, axes);
    test->out = data_new(arena, type, rlz_operand_span(&test->nest, &test->nest.output));
}

void nest_fill(TestNest *test, Arena *arena, Random *random, bool special) {
    for (uint32_t i = 0; i < test->nest.inputs; i++) {
        const RlzOperand *operand = &test->input[i];
        if (operand->source != RLZ_MEMORY)
            continue;
        test->data[i] = data_new(arena, operand->type, rlz_operand_span(&test->nest, operand));
        data_fill(&test->data[i], random, operand->range, special);
    }
}

bool nest_next(const RlzNest *nest, uint32_t first, uint32_t count, int64_t *index, bool fresh) {
    if (fresh) {
        bool any = true;
        for (uint32_t i = first; i < first + count; i++) {
            index[i] = 0;
            any = any && nest->extent[i] > 0;
        }
        return any;
    }
    for (uint32_t i = first + count; i-- > first;) {
        if (++index[i] < nest->extent[i])
            return true;
        index[i] = 0;
    }
    return false;
}

int64_t nest_offset(const RlzNest *nest, const RlzOperand *operand, const int64_t *index) {
    int64_t offset = 0;
    for (uint32_t i = 0; i < nest->axes; i++)
        offset += operand->stride[i] * index[i];
    return offset;
}

double nest_get(const TestNest *test, uint32_t input, const int64_t *index) {
    const RlzOperand *operand = &test->input[input];
    int64_t offset = nest_offset(&test->nest, operand, index);
    if (operand->source == RLZ_CONSTANT)
        return operand->constant;
    if (operand->source == RLZ_IOTA)
        return (double)offset;
    return dtype_get(operand->type, test->data[input].at, offset);
}

void nest_set(TestNest *test, const int64_t *index, double value) {
    dtype_set(test->out.type, test->out.at, nest_offset(&test->nest, &test->nest.output, index),
              value);
}

double to_type(DType arithmetic, double value) {
    return arithmetic == F64 ? value : (double)(float)value;
}

// ---- running ------------------------------------------------------------------------------------

// Interpreted, unless there is native code.
typedef struct Executor {
    const KrnCode *code;
    NatFunction native;
} Executor;

static void run_part(const Executor *executor, const Kernel *kernel, void **buffers, int64_t begin,
                     int64_t end) {
    size_t size = krn_scratch_size(kernel);
    void *scratch = aligned_alloc(64, (size + 64) / 64 * 64);
    memset(scratch, 0xff, size);
    krn_scratch_place(kernel, scratch, buffers);
    if (executor->native)
        executor->native(buffers, begin, end);
    else
        krn_interpret(executor->code, buffers, begin, end);
    free(scratch);
}

static void run_kernel(const Executor *executor, const Kernel *kernel, void **buffers,
                       Random *random) {
    if (!kernel->split_count) {
        run_part(executor, kernel, buffers, 0, 0);
        return;
    }
    for (int64_t begin = 0, end; begin < kernel->split_count; begin = end) {
        end = begin + 1 + random_below(random, (uint32_t)(kernel->split_count - begin));
        run_part(executor, kernel, buffers, begin, end);
    }
}

// Runs into an output full of NaN and compares.
static void check_run(Arena *arena, const TestNest *test, const Executor *executor,
                      const Kernel *kernel, const char *what, Random *random) {
    const RlzNest *nest = &test->nest;
    Data out = data_new(arena, test->out.type, test->out.count);
    memset(out.at, 0xff, (size_t)out.count * dtype_size(out.type));
    void **buffers = arena_array(arena, void *, kernel->buffers.count);
    uint32_t number = 0;
    for (uint32_t i = 0; i < nest->inputs; i++)
        if (nest->input[i].source == RLZ_MEMORY)
            buffers[number++] = test->data[i].at;
    buffers[number] = out.at;
    run_kernel(executor, kernel, buffers, random);
    const char *by = executor->native ? "native code" : "the interpreter";
    for (int64_t i = 0; i < out.count; i++)
        if (!same_element(&out, &test->out, i))
            bug("%s\nelement %lld by %s is %a, not %a", what, (long long)i, by,
                dtype_get(out.type, out.at, i), dtype_get(out.type, test->out.at, i));
    bool guarded = data_guarded(&out);
    for (uint32_t i = 0; i < nest->inputs; i++)
        guarded = guarded && (nest->input[i].source != RLZ_MEMORY || data_guarded(&test->data[i]));
    if (!guarded)
        bug("%s\na guard word was overwritten by %s", what, by);
}

int64_t nest_run(Context *context, const TestNest *test, const RlzLayout *layout, Random *random) {
    Arena *arena = arena_new(&context->heap, "run");
    const RlzNest *nest = &test->nest;
    Kernel *kernel = krn_lower(nest, layout, arena, context->names);
    Str errors;
    Str what = str_format(arena, "%s%s\n%s", rlz_nest_text(nest, arena).at,
                          rlz_layout_text(nest, layout, arena).at, krn_print(kernel, arena).at);
    if (!krn_verify(kernel, arena, &errors))
        bug("%s\n%s", what.at, errors.at);
    Executor executor = {.code = krn_code(kernel, arena)};
    check_run(arena, test, &executor, kernel, what.at, random);
    if (hash_bytes(what.at, what.size, 0) % NATIVE_SHARE == 0) {
        NatOptions options = {.no_cache = true, .threads = 1};
        Native *native = nat_new(context, arena, &options);
        if (!native || !nat_compile(native, 1, &kernel, &executor.native))
            bug("%s\n%s", what.at, diags_render(&context->diags, arena, DIAG_PLAIN).at);
        check_run(arena, test, &executor, kernel, what.at, random);
        nat_free(native);
    }
    int64_t split = kernel->split_count;
    arena_free(arena);
    return split;
}
