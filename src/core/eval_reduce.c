// Reductions and row primitives of the reference evaluator.
//
// Policies: a sum starts at +0, so an empty one is +0; an empty maximum is −inf, minimum +inf, mean
// NaN (0 / 0). Maximum and minimum keep a NaN. argmax is the first maximum; a NaN is larger than
// every number, and the first NaN wins; of an empty row it is 0. A softmax row with no allowed
// position, or of −inf scores alone, is all +0; refused positions are +0.
#include "core/eval_frame.h"

#include <math.h>

// One function of two operands in one arithmetic type.
typedef struct Operation {
    MthProgram program;
    DType type;
} Operation;

static Operation operation(const EvalFrame *frame, MthFunction function, DType type) {
    return (Operation){mth_program(frame->arena, function, 0, type), type};
}

static double apply(const Operation *operation, double a, double b) {
    double result;
    const double *const args[] = {&a, &b};
    mth_run(&operation->program, operation->type, 1, args, &result);
    return result;
}

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

static double fold(const Operation *with, double start, int64_t count, const double *terms) {
    double result = start;
    for (int64_t i = 0; i < count; i++)
        result = apply(with, result, terms[i]);
    return result;
}

static double first_maximum(int64_t count, const double *terms) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (terms[i] > terms[best] || (isnan(terms[i]) && !isnan(terms[best])))
            best = i;
    return (double)best;
}

// `with` is the maximum, the minimum, or the division of a mean.
static double reduce(const CoreArithmetic *arithmetic, CorePrim prim, const Operation *with,
                     DType running, int64_t count, const double *terms) {
    if (prim == CORE_argmax)
        return first_maximum(count, terms);
    if (prim == CORE_reduce_max || prim == CORE_reduce_min)
        return fold(with, prim == CORE_reduce_max ? -INFINITY : INFINITY, count, terms);
    double sum = mth_round(with->type, core_eval_sum(arithmetic, running, count, terms));
    return prim == CORE_mean ? apply(with, sum, mth_round(with->type, (double)count)) : sum;
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
    Operation with = operation(frame,
                               at->prim == CORE_reduce_max   ? MTH_max
                               : at->prim == CORE_reduce_min ? MTH_min
                                                             : MTH_div,
                               nest);
    int64_t results = shape_count(&parts.outer), count = shape_count(&parts.inner);
    double *terms = arena_array(frame->arena, double, count);
    for (int64_t i = 0; i < results; i++) {
        int64_t origin = shape_offset(&parts.outer, i);
        for (int64_t j = 0; j < count; j++)
            terms[j] = round_to(running,
                                dtype_get(x.type, x.data, origin + shape_offset(&parts.inner, j)));
        tensor_set(out, i, reduce(arithmetic, at->prim, &with, running, count, terms));
    }
}

// ---- rows -------------------------------------------------------------------------------------

// One row: x in the arithmetic type, which positions are allowed, and what is computed from them.
typedef struct Row {
    DType type;
    int64_t count;
    double *x, *e, *y;
    bool *allowed;
    double max, sum;
    Operation larger, plus, minus, over, exp, log;
} Row;

static Row row_new(const EvalFrame *frame, DType type, int64_t count) {
    Row row = {.type = type,
               .count = count,
               .larger = operation(frame, MTH_max, type),
               .plus = operation(frame, MTH_add, type),
               .minus = operation(frame, MTH_sub, type),
               .over = operation(frame, MTH_div, type),
               .exp = operation(frame, MTH_exp, type),
               .log = operation(frame, MTH_log, type)};
    row.x = arena_array(frame->arena, double, count);
    row.e = arena_array(frame->arena, double, count);
    row.y = arena_array(frame->arena, double, count);
    row.allowed = arena_array(frame->arena, bool, count);
    return row;
}

static double centred(const Row *row, double x) {
    return apply(&row->minus, x, row->max);
}

static double log_sum(const Row *row) {
    return apply(&row->log, row->sum, 0);
}

// The maximum, the exponentials e = exp(x − max) and their sum, over allowed positions.
static void exponentials(Row *row, const CoreArithmetic *arithmetic) {
    row->max = -INFINITY;
    for (int64_t i = 0; i < row->count; i++)
        if (row->allowed[i])
            row->max = apply(&row->larger, row->max, row->x[i]);
    for (int64_t i = 0; i < row->count; i++)
        row->e[i] = row->allowed[i] ? apply(&row->exp, centred(row, row->x[i]), 0) : 0;
    row->sum = core_eval_sum(arithmetic, row->type, row->count, row->e);
}

static void softmax(Row *row) {
    for (int64_t i = 0; i < row->count; i++) {
        bool zero = !row->allowed[i] || row->max == -INFINITY;
        row->y[i] = zero ? 0 : apply(&row->over, row->e[i], row->sum);
    }
}

static void log_softmax(Row *row) {
    double log = log_sum(row);
    for (int64_t i = 0; i < row->count; i++)
        row->y[i] = apply(&row->minus, centred(row, row->x[i]), log);
}

static double cross_entropy(const Row *row, int64_t target) {
    double x = row->count ? row->x[target] : 0;
    return apply(&row->minus, log_sum(row), centred(row, x));
}

// A row whose maximum is infinite has that as its value.
static double logsumexp(const Row *row) {
    if (isinf(row->max))
        return row->max;
    return apply(&row->plus, row->max, log_sum(row));
}

typedef struct RowSources {
    Tensor x, second; // second: a mask or target
    uint64_t axis;    // the row's, as a bit
    EvalParted parts, mask;
    bool has_mask;
} RowSources;

static RowSources row_sources(const EvalFrame *frame, CoreLetId let) {
    const CoreLet *at = core_let(frame->fn, let);
    const CoreProgram *program = frame->eval->program;
    CoreLetId source = core_operand(frame->fn, let, 0);
    const CoreType *type = core_type(program, core_let(frame->fn, source)->type);
    RowSources s = {.x = core_eval_tensor(frame, source, EVAL_NO_LEAF),
                    .has_mask = at->prim == CORE_softmax && at->count == 2};
    s.axis = core_eval_axes(frame, type, UINT64_C(1) << at->attr->axis);
    s.parts = core_eval_part(&s.x.shape, s.x.shape.stride, s.axis);
    if (at->count < 2)
        return s;
    CoreLetId second = core_operand(frame->fn, let, 1);
    s.second = core_eval_tensor(frame, second, EVAL_NO_LEAF);
    if (s.has_mask) {
        int64_t stride[RANK_MAX];
        core_eval_align(frame, core_type(program, core_let(frame->fn, second)->type),
                        &s.second.shape, type, stride);
        s.mask = core_eval_part(&s.x.shape, stride, s.axis);
    }
    return s;
}

static void read_row(const RowSources *s, Row *row, int64_t i) {
    int64_t origin = shape_offset(&s->parts.outer, i);
    for (int64_t j = 0; j < row->count; j++) {
        int64_t at = origin + shape_offset(&s->parts.inner, j);
        row->x[j] = mth_round(row->type, dtype_get(s->x.type, s->x.data, at));
        row->allowed[j] = true;
        if (s->has_mask)
            row->allowed[j] =
                dtype_get(s->second.type, s->second.data,
                          shape_offset(&s->mask.outer, i) + shape_offset(&s->mask.inner, j)) != 0;
    }
}

void core_eval_row(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    CorePrim prim = core_let(frame->fn, let)->prim;
    RowSources s = row_sources(frame, let);
    DType type = core_eval_arithmetic(frame, let);
    Row row = row_new(frame, type, shape_count(&s.parts.inner));
    bool wide = prim == CORE_softmax || prim == CORE_log_softmax;
    EvalParted to = {0};
    if (wide)
        to = core_eval_part(&out->shape, out->shape.stride, s.axis);
    int64_t rows = shape_count(&s.parts.outer);
    for (int64_t i = 0; i < rows; i++) {
        read_row(&s, &row, i);
        exponentials(&row, frame->eval->arithmetic);
        if (prim == CORE_softmax)
            softmax(&row);
        else if (prim == CORE_log_softmax)
            log_softmax(&row);
        else if (prim == CORE_logsumexp)
            tensor_set(out, i, logsumexp(&row));
        else
            tensor_set(out, i, cross_entropy(&row, (int64_t)tensor_get(&s.second, i)));
        for (int64_t j = 0; wide && j < row.count; j++)
            dtype_set(out->type, out->data, shape_offset(&to.outer, i) + shape_offset(&to.inner, j),
                      row.y[j]);
    }
}
