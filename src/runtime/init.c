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

bool rt_init_leaf(CoreProgram *program, const CoreLeaf *leaf, const int64_t *by_dim, uint64_t seed,
                  Tensor *tensor, Span span) {
    double a, b;
    if (!initial_scalar(program, leaf->init.a, by_dim, span, &a) ||
        !initial_scalar(program, leaf->init.b, by_dim, span, &b))
        return false;
    int64_t count = shape_count(&tensor->shape);
    uint64_t stream = rt_random_stream(leaf->path);
    for (int64_t i = 0; i < count; i++) {
        double value = 0;
        switch (leaf->init.kind) {
        case CORE_INIT_ZEROS:
            break;
        case CORE_INIT_ONES:
            value = 1;
            break;
        case CORE_INIT_CONSTANT:
            value = a;
            break;
        case CORE_INIT_NORMAL:
            value = a + b * rt_random_normal(seed, stream, (uint64_t)i);
            break;
        case CORE_INIT_UNIFORM:
            value = a + (b - a) * rt_random_uniform(seed, stream, (uint64_t)i);
            break;
        }
        dtype_set(tensor->type, tensor->data, i, value);
    }
    return true;
}

void rt_init_input(Str name, uint64_t bound, uint64_t seed, Tensor *tensor) {
    int64_t count = shape_count(&tensor->shape);
    uint64_t stream = rt_random_stream(name);
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i;
        double value = bound > 0 ? (double)rt_random_index(seed, stream, at, bound)
                                 : rt_random_normal(seed, stream, at);
        dtype_set(tensor->type, tensor->data, i, value);
    }
}
