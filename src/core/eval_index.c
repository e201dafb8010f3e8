// Gather, pick, their derivatives and permute of the reference evaluator: elements moved by index.
#include "core/eval_frame.h"

// Between two types a real passes through the arithmetic type; an index is moved as it is.
static void move(const EvalFrame *frame, CoreLetId let, const Tensor *from, int64_t offset,
                 Tensor *out, int64_t to) {
    double value = dtype_get(from->type, from->data, offset);
    if (out->type != from->type)
        value = mth_round(core_eval_arithmetic(frame, let), value);
    tensor_set(out, to, value);
}

// out[index axes…, rest…] = table[index[…], rest…]
static void gather(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    Tensor table = core_eval_tensor(frame, core_operand(frame->fn, let, 0), EVAL_NO_LEAF);
    Tensor index = core_eval_tensor(frame, core_operand(frame->fn, let, 1), EVAL_NO_LEAF);
    EvalParted parts = core_eval_part(&table.shape, table.shape.stride, ~UINT64_C(1));
    int64_t rows = shape_count(&index.shape), size = shape_count(&parts.inner);
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = (int64_t)tensor_get(&index, i) * table.shape.stride[0];
        for (int64_t j = 0; j < size; j++)
            move(frame, let, &table, row + shape_offset(&parts.inner, j), out, i * size + j);
    }
}

// out[…] = x[…, index[…], …] along one axis
static void pick(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    CoreLetId source = core_operand(frame->fn, let, 0);
    Tensor x = core_eval_tensor(frame, source, EVAL_NO_LEAF);
    Tensor index = core_eval_tensor(frame, core_operand(frame->fn, let, 1), EVAL_NO_LEAF);
    const CoreType *type = core_type(frame->eval->program, core_let(frame->fn, source)->type);
    uint64_t axis = UINT64_C(1) << core_let(frame->fn, let)->attr->axis;
    EvalParted parts = core_eval_part(&x.shape, x.shape.stride, core_eval_axes(frame, type, axis));
    int64_t rows = shape_count(&parts.outer);
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = (int64_t)tensor_get(&index, i) * parts.inner.stride[0];
        move(frame, let, &x, shape_offset(&parts.outer, i) + at, out, i);
    }
}

// The place that pick read gets the cotangent, the others of its row +0.
static void pick_vjp(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    Tensor ct = core_eval_tensor(frame, core_operand(frame->fn, let, 0), EVAL_NO_LEAF);
    Tensor index = core_eval_tensor(frame, core_operand(frame->fn, let, 1), EVAL_NO_LEAF);
    const CoreType *type = core_type(frame->eval->program, core_let(frame->fn, let)->type);
    uint64_t axis = UINT64_C(1) << core_let(frame->fn, let)->attr->axis;
    EvalParted to =
        core_eval_part(&out->shape, out->shape.stride, core_eval_axes(frame, type, axis));
    int64_t rows = shape_count(&to.outer);
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = (int64_t)tensor_get(&index, i) * to.inner.stride[0];
        double value = mth_round(core_eval_arithmetic(frame, let), tensor_get(&ct, i));
        dtype_set(out->type, out->data, shape_offset(&to.outer, i) + at, value);
    }
}

// out[index[i], …] += ct[i, …] in increasing flat order of i, one accumulator an element from +0.
static void scatter_add(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    Tensor ct = core_eval_tensor(frame, core_operand(frame->fn, let, 0), EVAL_NO_LEAF);
    Tensor index = core_eval_tensor(frame, core_operand(frame->fn, let, 1), EVAL_NO_LEAF);
    DType nest = core_eval_arithmetic(frame, let);
    EvalOperation plus = core_eval_operation(frame, MTH_add, nest);
    int64_t rows = shape_count(&index.shape), size = 1, count = shape_count(&out->shape);
    for (uint32_t i = 1; i < out->shape.rank; i++)
        size *= out->shape.extent[i];
    double *sum = arena_array(frame->arena, double, count);
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = (int64_t)tensor_get(&index, i) * size;
        for (int64_t j = 0; j < size; j++)
            sum[row + j] = core_eval_apply(&plus, sum[row + j],
                                           mth_round(nest, tensor_get(&ct, i * size + j)));
    }
    for (int64_t i = 0; i < count; i++)
        tensor_set(out, i, sum[i]);
}

void core_eval_indexed(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    switch (core_let(frame->fn, let)->prim) {
    case CORE_gather:
        gather(frame, let, out);
        return;
    case CORE_pick:
        pick(frame, let, out);
        return;
    case CORE_pick_vjp:
        pick_vjp(frame, let, out);
        return;
    case CORE_scatter_add:
        scatter_add(frame, let, out);
        return;
    default:
        bug("no move by index: %s", core_prims[core_let(frame->fn, let)->prim].text);
    }
}

void core_eval_permute(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    CoreLetId source = core_operand(frame->fn, let, 0);
    Tensor x = core_eval_tensor(frame, source, EVAL_NO_LEAF);
    const CoreType *type = core_type(frame->eval->program, core_let(frame->fn, source)->type);
    uint32_t first[RANK_MAX + 1], axis = 0;
    core_axis_places(type, frame->dims.pack_rank, first);
    Shape read = out->shape;
    for (uint32_t i = 0; i < type->rank; i++) {
        uint32_t moved = core_let(frame->fn, let)->attr->order[i];
        for (uint32_t c = first[moved]; c < first[moved + 1]; c++)
            read.stride[axis++] = x.shape.stride[c];
    }
    int64_t count = shape_count(&read);
    for (int64_t i = 0; i < count; i++)
        move(frame, let, &x, shape_offset(&read, i), out, i);
}
