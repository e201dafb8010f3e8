// Reductions of the reference evaluator, and the derivatives of maximum and minimum.
//
// Policies: a sum starts at +0, so an empty one is +0; an empty maximum is −inf, minimum +inf, mean
// NaN (0 / 0). Maximum and minimum keep a NaN. argmax is the first maximum; a NaN is larger than
// every number, and the first NaN wins; of an empty row it is 0. The whole cotangent of a maximum
// or minimum goes to the position that argmax (or its mirror image) finds; all others are +0.
#include "core/eval_frame.h"

#include <math.h>

// ---- sums -------------------------------------------------------------------------------------

static double round_to(DType type, double value) {
    return type == BF16 ? (double)f32_of_bf16(bf16_of_f64(value)) : mth_round(type, value);
}

// a + b rounded once in the arithmetic type of `type`, and then to it (a running sum may be
// declared in bf16).
static double plus(DType type, double a, double b) {
    double sum = type == F64 ? a + b : (double)((float)a + (float)b);
    return round_to(type, sum);
}

double core_eval_sum(const CoreArithmetic *arithmetic, DType type, int64_t count,
                     const double *terms) {
    if (arithmetic->reduce == CORE_REDUCE_SEQUENTIAL) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum = plus(type, sum, terms[i]);
        return sum;
    }
    double stripe[16] = {0};
    for (int64_t i = 0; i < count; i++)
        stripe[i % 16] = plus(type, stripe[i % 16], terms[i]);
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            stripe[i] = plus(type, stripe[i], stripe[i + half]);
    return stripe[0];
}

// ---- reductions -------------------------------------------------------------------------------

static double fold(const EvalOperation *with, double start, int64_t count, const double *terms) {
    double result = start;
    for (int64_t i = 0; i < count; i++)
        result = core_eval_apply(with, result, terms[i]);
    return result;
}

// start + x₀² + x₁² + …: each square rounded, then added. In stripes the squares have a sum of
// their own, which is added to the start.
static double square_sum(const CoreArithmetic *arithmetic, DType type, double start, int64_t count,
                         double *terms) {
    for (int64_t i = 0; i < count; i++)
        terms[i] = round_to(type, terms[i] * terms[i]);
    if (arithmetic->reduce == CORE_REDUCE_STRIPES16)
        return plus(type, start, core_eval_sum(arithmetic, type, count, terms));
    for (int64_t i = 0; i < count; i++)
        start = plus(type, start, terms[i]);
    return start;
}

static int64_t first_extreme(bool max, int64_t count, const double *terms) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++) {
        bool beyond = max ? terms[i] > terms[best] : terms[i] < terms[best];
        if (beyond || (isnan(terms[i]) && !isnan(terms[best])))
            best = i;
    }
    return best;
}

// `with` is the maximum, the minimum, or the division of a mean.
static double reduce(const CoreArithmetic *arithmetic, CorePrim prim, const EvalOperation *with,
                     DType running, int64_t count, const double *terms) {
    if (prim == CORE_argmax)
        return (double)first_extreme(true, count, terms);
    if (prim == CORE_reduce_max || prim == CORE_reduce_min)
        return fold(with, prim == CORE_reduce_max ? -INFINITY : INFINITY, count, terms);
    double sum = mth_round(with->type, core_eval_sum(arithmetic, running, count, terms));
    return prim == CORE_mean ? core_eval_apply(with, sum, mth_round(with->type, (double)count))
                             : sum;
}

void core_eval_reduction(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    const CoreArithmetic *arithmetic = frame->eval->arithmetic;
    const CoreLet *at = core_let(frame->fn, let);
    CoreLetId source = core_operand(frame->fn, let, 0);
    Tensor x = core_eval_tensor(frame, source, EVAL_NO_LEAF);
    const CoreType *type = core_type(frame->eval->program, core_let(frame->fn, source)->type);
    uint64_t axes = at->prim == CORE_argmax ? UINT64_C(1) << at->attr->axis : at->attr->axes;
    EvalParted parts = core_eval_part(&x.shape, x.shape.stride, core_eval_axes(frame, type, axes));
    DType nest = core_eval_arithmetic(frame, let), running = nest;
    if (arithmetic->has_accumulate && (at->prim == CORE_sum || at->prim == CORE_mean))
        running = arithmetic->accumulate;
    EvalOperation with = core_eval_operation(frame,
                                             at->prim == CORE_reduce_max   ? MTH_max
                                             : at->prim == CORE_reduce_min ? MTH_min
                                                                           : MTH_div,
                                             nest);
    double start = 0;
    if (at->prim == CORE_square_sum) {
        Tensor begin = core_eval_tensor(frame, core_operand(frame->fn, let, 1), EVAL_NO_LEAF);
        start = mth_round(nest, tensor_get(&begin, 0));
    }
    int64_t results = shape_count(&parts.outer), count = shape_count(&parts.inner);
    double *terms = arena_array(frame->arena, double, count);
    for (int64_t i = 0; i < results; i++) {
        int64_t origin = shape_offset(&parts.outer, i);
        for (int64_t j = 0; j < count; j++)
            terms[j] = round_to(running,
                                dtype_get(x.type, x.data, origin + shape_offset(&parts.inner, j)));
        double value = at->prim == CORE_square_sum
                           ? square_sum(arithmetic, nest, start, count, terms)
                           : reduce(arithmetic, at->prim, &with, running, count, terms);
        tensor_set(out, i, value);
    }
}

void core_eval_extreme_vjp(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    const CoreLet *at = core_let(frame->fn, let);
    CoreLetId source = core_operand(frame->fn, let, 0);
    Tensor x = core_eval_tensor(frame, source, EVAL_NO_LEAF);
    Tensor ct = core_eval_tensor(frame, core_operand(frame->fn, let, 1), EVAL_NO_LEAF);
    const CoreType *type = core_type(frame->eval->program, core_let(frame->fn, source)->type);
    uint64_t axes = core_eval_axes(frame, type, at->attr->axes);
    EvalParted from = core_eval_part(&x.shape, x.shape.stride, axes);
    EvalParted to = core_eval_part(&out->shape, out->shape.stride, axes);
    DType nest = core_eval_arithmetic(frame, let);
    int64_t results = shape_count(&from.outer), count = shape_count(&from.inner);
    double *terms = arena_array(frame->arena, double, count);
    for (int64_t i = 0; i < results; i++) {
        for (int64_t j = 0; j < count; j++)
            terms[j] = mth_round(
                nest, dtype_get(x.type, x.data,
                                shape_offset(&from.outer, i) + shape_offset(&from.inner, j)));
        int64_t first = first_extreme(at->prim == CORE_reduce_max_vjp, count, terms);
        for (int64_t j = 0; j < count; j++)
            dtype_set(out->type, out->data, shape_offset(&to.outer, i) + shape_offset(&to.inner, j),
                      j == first ? mth_round(nest, tensor_get(&ct, i)) : 0);
    }
}
