#include "support/random_value.h"

#include <math.h>

#include "core/concrete.h"

typedef struct Draw {
    const RandomProgram *program;
    Arena *arena;
    uint64_t state;
    DType params;
} Draw;

static uint64_t next(Draw *s) {
    uint64_t z = s->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

// `wild`: among them large ones, infinities and NaN.
static double real(Draw *s, bool wild) {
    uint64_t kind = next(s) % (wild ? 200 : 185);
    double unit = (double)(next(s) >> 11) * 0x1p-53; // below 1
    if (kind < 150)
        return 4 * unit - 2;
    if (kind < 175)
        return floor(7 * unit) - 3;
    if (kind < 185)
        return kind % 2 ? 0.0 : -0.0;
    if (kind < 191)
        return (2 * unit - 1) * 1e5;
    if (kind < 197)
        return (2 * unit - 1) * 1e-6;
    return kind == 197 ? INFINITY : kind == 198 ? -INFINITY : NAN;
}

static CoreValue tensor(Draw *s, CoreTypeId id, DType storage) {
    const CoreProgram *core = s->program->core;
    CoreFrame frame = {.by_dim = s->program->dims};
    Shape shape;
    int64_t range;
    DimId missing;
    if (core_concrete(core, id, &frame, &shape, &range, &missing) != CORE_CONCRETE_OK)
        bug("an argument of a random program has no shape");
    bool index = core_type(core, id)->kind == CORE_IDX;
    DType type = index ? dtype_of_bound((uint64_t)range) : storage;
    bool wild = next(s) % 4 == 0;
    CoreValue value = {.type = id, .tensor = tensor_new(s->arena, type, shape.rank, shape.extent)};
    for (int64_t i = 0, count = shape_count(&shape); i < count; i++)
        dtype_set(type, value.tensor.data, i,
                  index ? (double)(next(s) % (uint64_t)range) : real(s, wild));
    return value;
}

static CoreValue tree(Draw *s, CoreTypeId id) {
    CoreLeaf *leaves;
    CoreValue value = {.type = id};
    value.count = core_tree_leaves(s->program->core, core_type(s->program->core, id)->tree,
                                   s->arena, &leaves);
    value.parts = arena_array(s->arena, CoreValue, value.count);
    for (uint32_t i = 0; i < value.count; i++)
        value.parts[i] = tensor(s, leaves[i].type, s->params);
    return value;
}

CoreValue *random_arguments(const RandomProgram *program, uint64_t seed, DType inputs, DType params,
                            Arena *arena) {
    const CoreFn *fn = core_fn(program->core, program->entry);
    Draw s = {program, arena, seed, params};
    CoreValue *values = arena_array(arena, CoreValue, fn->params);
    for (CoreLetId let = 0; let < fn->params; let++) {
        CoreTypeId type = core_let(fn, let)->type;
        bool is_tree = core_type(program->core, type)->kind == CORE_PARAMS;
        values[let] = is_tree ? tree(&s, type) : tensor(&s, type, inputs);
    }
    return values;
}

Str value_difference(const CoreValue *a, const CoreValue *b, Arena *arena) {
    int64_t where;
    if (a->count != b->count)
        return str_format(arena, "%u and %u parts", a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        Str part = value_difference(&a->parts[i], &b->parts[i], arena);
        if (part.size)
            return str_format(arena, "part %u, %s", i, part.at);
    }
    if (!a->tensor.data && !b->tensor.data)
        return STR("");
    if (a->tensor.type != b->tensor.type || !shape_same_extents(&a->tensor.shape, &b->tensor.shape))
        return STR("other types or extents");
    if (tensor_same_bits(&a->tensor, &b->tensor, &where))
        return STR("");
    return str_format(arena, "element %lld: %s and %s", (long long)where,
                      str_of_double(arena, tensor_get(&a->tensor, where)).at,
                      str_of_double(arena, tensor_get(&b->tensor, where)).at);
}
