// Values of the reference evaluator: allocation, scalars, alignment, loading.
#include "core/eval_frame.h"

#include <unistd.h>

DType core_eval_storage(const EvalFrame *frame, CoreLetId let) {
    return (DType)frame->eval->arithmetic->storage[frame->id][let];
}

DType core_eval_arithmetic(const EvalFrame *frame, CoreLetId let) {
    return core_let_arithmetic(frame->eval->program, frame->fn, let, frame->eval->arithmetic,
                               frame->id);
}

static Diags *diags_of(const EvalFrame *frame) {
    return &frame->eval->program->context->diags;
}

static bool fits_memory(int64_t count, DType type) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages <= 0 || (double)count * (double)dtype_size(type) < (double)pages * (double)page;
}

static bool fail(const EvalFrame *frame) {
    *frame->failed = true;
    return false;
}

// The shape and the type of the elements in memory of a value at let's site.
static bool layout(const EvalFrame *frame, CoreLetId let, CoreTypeId type, Shape *shape,
                   DType *storage) {
    const CoreProgram *program = frame->eval->program;
    int64_t range;
    DimId missing = 0;
    CoreConcrete result = core_concrete(program, type, &frame->dims, shape, &range, &missing);
    if (result != CORE_CONCRETE_OK) {
        Str why = core_concrete_text(program, result, missing, frame->arena);
        diag(diags_of(frame), E6002, core_let(frame->fn, let)->span, why.at);
        return fail(frame);
    }
    bool index = core_type(program, type)->kind == CORE_IDX;
    *storage = index ? dtype_of_bound((uint64_t)range) : core_eval_storage(frame, let);
    return true;
}

bool core_eval_shape(const EvalFrame *frame, CoreLetId let, Shape *shape) {
    DType storage;
    return layout(frame, let, core_let(frame->fn, let)->type, shape, &storage);
}

bool core_eval_new(const EvalFrame *frame, CoreLetId let, CoreTypeId type, Tensor *tensor) {
    Shape shape;
    DType storage;
    if (!layout(frame, let, type, &shape, &storage))
        return false;
    if (!fits_memory(shape_count(&shape), storage)) {
        diag(diags_of(frame), E6001, core_let(frame->fn, let)->span);
        return fail(frame);
    }
    *tensor = tensor_new(frame->arena, storage, shape.rank, shape.extent);
    return true;
}

double core_eval_scalar(const EvalFrame *frame, CoreLetId let, CoreScalar scalar, DType type) {
    CoreEval *eval = frame->eval;
    double value;
    if (core_scalar_value(eval->program, scalar, frame->dims.by_dim, eval->hyper, eval->hyper_data,
                          type, &value))
        return value;
    diag(diags_of(frame), E6003, core_let(frame->fn, let)->span,
         core_scalar_text(eval->program, scalar, frame->arena).at);
    fail(frame);
    return 0;
}

Tensor core_eval_tensor(const EvalFrame *frame, CoreLetId let, uint32_t leaf) {
    const EvalValue *value = &frame->values[let];
    if (value->kind == EVAL_LIST)
        return value->parts[leaf].tensor;
    if (value->kind == EVAL_TENSOR)
        return value->tensor;
    const Shape *shape = &value->tensor.shape;
    DType storage = core_eval_storage(frame, let);
    Tensor tensor = tensor_new(frame->arena, storage, shape->rank, shape->extent);
    tensor_set(&tensor, 0, core_eval_scalar(frame, let, value->scalar, storage));
    return tensor;
}

void core_eval_align(const EvalFrame *frame, const CoreType *from, const Shape *from_shape,
                     const CoreType *to, int64_t stride[RANK_MAX]) {
    uint32_t from_at[RANK_MAX + 1], to_at[RANK_MAX + 1];
    core_axis_places(from, frame->dims.pack_rank, from_at);
    core_axis_places(to, frame->dims.pack_rank, to_at);
    memset(stride, 0, RANK_MAX * sizeof *stride);
    for (uint32_t n = 1; n <= from->rank; n++) {
        uint32_t f = from_at[from->rank - n], t = to_at[to->rank - n];
        uint32_t covers = from_at[from->rank - n + 1] - f;
        if (covers != to_at[to->rank - n + 1] - t)
            continue; // an axis of extent 1 against the pack
        for (uint32_t i = 0; i < covers; i++)
            stride[t + i] = from_shape->extent[f + i] == 1 ? 0 : from_shape->stride[f + i];
    }
}

double *core_eval_load(const Tensor *tensor, DType type, Arena *arena) {
    int64_t count = shape_count(&tensor->shape);
    double *values = arena_array(arena, double, count);
    for (int64_t i = 0; i < count; i++)
        values[i] = mth_round(type, tensor_get(tensor, i));
    return values;
}

EvalParted core_eval_part(const Shape *shape, const int64_t *stride, uint64_t inner) {
    EvalParted parted = {0};
    for (uint32_t i = 0; i < shape->rank; i++) {
        Shape *to = inner >> i & 1 ? &parted.inner : &parted.outer;
        to->extent[to->rank] = shape->extent[i];
        to->stride[to->rank++] = stride[i];
    }
    return parted;
}

uint64_t core_eval_axes(const EvalFrame *frame, const CoreType *type, uint64_t axes) {
    uint32_t first[RANK_MAX + 1];
    core_axis_places(type, frame->dims.pack_rank, first);
    uint64_t concrete = 0;
    for (uint32_t i = 0; i < type->rank; i++)
        for (uint32_t c = first[i]; (axes >> i & 1) && c < first[i + 1]; c++)
            concrete |= UINT64_C(1) << c;
    return concrete;
}

EvalOperation core_eval_operation(const EvalFrame *frame, MthFunction function, DType type) {
    return (EvalOperation){mth_program(frame->arena, function, 0, type), type};
}

double core_eval_apply(const EvalOperation *operation, double a, double b) {
    double result;
    const double *const args[] = {&a, &b};
    mth_run(&operation->program, operation->type, 1, args, &result);
    return result;
}
