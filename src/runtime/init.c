// Initial values, element by element from their counters.
#include "runtime/init.h"

static bool initial_scalar(CoreProgram *program, CoreScalar scalar, const int64_t *by_dim,
                           Span span, double *value) {
    if (scalar == 0) {
        *value = 0;
        return true;
    }
    if (core_scalar_value(program, scalar, by_dim, NULL, NULL, F64, value))
        return true;
    Str text = core_scalar_text(program, scalar, program->arena);
    diag(&program->context->diags, E6003, span, text.at);
    return false;
}

static void fill(Tensor *tensor, int64_t count, double value) {
    for (int64_t i = 0; i < count; i++)
        dtype_set(tensor->type, tensor->data, i, value);
}

static void draw_normal(Heap *heap, Tensor *tensor, int64_t count, uint64_t seed, uint64_t stream,
                        double mean, double deviation) {
    enum { CHUNK = 4096 };
    Arena *scratch = arena_new(heap, "normal values");
    double values[CHUNK];
    for (int64_t first = 0; first < count; first += CHUNK) {
        uint32_t size = (uint32_t)MIN(count - first, CHUNK);
        rt_random_normals(scratch, seed, stream, (uint64_t)first, size, values);
        for (uint32_t i = 0; i < size; i++)
            dtype_set(tensor->type, tensor->data, first + i, mean + deviation * values[i]);
        arena_reset(scratch);
    }
    arena_free(scratch);
}

bool rt_init_leaf(CoreProgram *program, const CoreLeaf *leaf, const int64_t *by_dim, uint64_t seed,
                  Tensor *tensor, Span span) {
    double a, b;
    if (!initial_scalar(program, leaf->init.a, by_dim, span, &a) ||
        !initial_scalar(program, leaf->init.b, by_dim, span, &b))
        return false;
    int64_t count = shape_count(&tensor->shape);
    uint64_t stream = rt_random_stream(leaf->path);
    switch (leaf->init.kind) {
    case CORE_INIT_ZEROS:
        fill(tensor, count, 0);
        break;
    case CORE_INIT_ONES:
        fill(tensor, count, 1);
        break;
    case CORE_INIT_CONSTANT:
        fill(tensor, count, a);
        break;
    case CORE_INIT_NORMAL:
        draw_normal(arena_heap(program->arena), tensor, count, seed, stream, a, b);
        break;
    case CORE_INIT_UNIFORM:
        for (int64_t i = 0; i < count; i++)
            dtype_set(tensor->type, tensor->data, i,
                      a + (b - a) * rt_random_uniform(seed, stream, (uint64_t)i));
        break;
    }
    return true;
}

void rt_init_input(Heap *heap, Str name, uint64_t bound, uint64_t seed, Tensor *tensor) {
    int64_t count = shape_count(&tensor->shape);
    uint64_t stream = rt_random_stream(name);
    if (!bound) {
        draw_normal(heap, tensor, count, seed, stream, 0, 1);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        dtype_set(tensor->type, tensor->data, i,
                  (double)rt_random_index(seed, stream, (uint64_t)i, bound));
}
