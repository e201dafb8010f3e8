// Parameters that were not given: drawn, zero, or shapes alone.
#include "runtime/bind.h"
#include "runtime/init.h"

typedef struct Fill {
    enum { DRAWN, ZEROS, SHAPES } how;
    uint64_t seed;
    DType inputs, params;
} Fill;

// A shape's data is an address that no other has and that holds nothing.
static Tensor tensor_for(RtBinding *b, const Fill *fill, DType type, const Shape *shape) {
    if (fill->how == SHAPES)
        return (Tensor){.type = type, .shape = *shape, .data = (void *)(b->addresses += 64)};
    return tensor_new(b->arena, type, shape->rank, shape->extent);
}

static bool fill_input(RtBinding *b, uint32_t parameter, const Fill *fill) {
    Shape shape;
    int64_t range;
    if (!rt_bind_shape(b, parameter, &shape, &range))
        return false;
    DType type = range ? dtype_of_bound((uint64_t)range) : fill->inputs;
    Tensor *tensor = &b->arguments[parameter].tensor;
    *tensor = tensor_for(b, fill, type, &shape);
    if (fill->how == DRAWN)
        rt_init_input(arena_heap(b->arena), rt_bind_name(b, parameter), (uint64_t)range, fill->seed,
                      tensor);
    return true;
}

static bool fill_tree(RtBinding *b, uint32_t parameter, const Fill *fill) {
    CoreLeaf *leaves;
    uint32_t count = rt_bind_leaves(b, parameter, &leaves);
    Span span = core_let(b->fn, parameter)->span;
    for (uint32_t i = 0; i < count; i++) {
        Shape shape;
        CoreValue *part = &b->arguments[parameter].parts[i];
        if (part->tensor.data)
            continue; // this leaf was given
        if (!rt_bind_leaf_shape(b, &leaves[i], span, &shape))
            return false;
        part->type = leaves[i].type;
        part->tensor = tensor_for(b, fill, fill->params, &shape);
        if (fill->how == DRAWN &&
            !rt_init_leaf(b->core, &leaves[i], b->by_dim, fill->seed, &part->tensor, span))
            return false;
    }
    return true;
}

static bool fill_parameter(RtBinding *b, uint32_t parameter, const Fill *fill) {
    return b->arguments[parameter].parts ? fill_tree(b, parameter, fill)
                                         : fill_input(b, parameter, fill);
}

bool rt_bind_draw(RtBinding *b, uint32_t parameter, DType inputs, DType params, uint64_t seed) {
    Fill fill = {.how = DRAWN, .seed = seed, .inputs = inputs, .params = params};
    return fill_parameter(b, parameter, &fill);
}

bool rt_bind_zeros(RtBinding *b, uint32_t parameter, DType inputs, DType params) {
    Fill fill = {.how = ZEROS, .inputs = inputs, .params = params};
    return fill_parameter(b, parameter, &fill);
}

bool rt_bind_shapes(RtBinding *b, uint32_t parameter, DType inputs, DType params) {
    Fill fill = {.how = SHAPES, .inputs = inputs, .params = params};
    return fill_parameter(b, parameter, &fill);
}
