// Row primitives of the reference evaluator: softmax and its kin, and their derivatives.
//
// Policies: a softmax row with no allowed position, or of −inf scores alone, is all +0; refused
// positions are +0, and so is the derivative where softmax is 0.
#include "core/eval_frame.h"

#include <math.h>

// One row: x in the arithmetic type, which positions are allowed, and what is computed from them.
typedef struct Row {
    DType type;
    int64_t count;
    double *x, *e, *y, *ct;
    bool *allowed;
    double max, sum;
    EvalOperation larger, plus, minus, times, over, exp, log;
} Row;

static Row row_new(const EvalFrame *frame, DType type, int64_t count) {
    Row row = {.type = type,
               .count = count,
               .larger = core_eval_operation(frame, MTH_max, type),
               .plus = core_eval_operation(frame, MTH_add, type),
               .minus = core_eval_operation(frame, MTH_sub, type),
               .times = core_eval_operation(frame, MTH_mul, type),
               .over = core_eval_operation(frame, MTH_div, type),
               .exp = core_eval_operation(frame, MTH_exp, type),
               .log = core_eval_operation(frame, MTH_log, type)};
    row.x = arena_array(frame->arena, double, count);
    row.e = arena_array(frame->arena, double, count);
    row.y = arena_array(frame->arena, double, count);
    row.ct = arena_array(frame->arena, double, count);
    row.allowed = arena_array(frame->arena, bool, count);
    return row;
}

static double centred(const Row *row, double x) {
    return core_eval_apply(&row->minus, x, row->max);
}

static double log_sum(const Row *row) {
    return core_eval_apply(&row->log, row->sum, 0);
}

// The maximum, the exponentials e = exp(x − max) and their sum, over allowed positions.
static void exponentials(Row *row, const CoreArithmetic *arithmetic) {
    row->max = -INFINITY;
    for (int64_t i = 0; i < row->count; i++)
        if (row->allowed[i])
            row->max = core_eval_apply(&row->larger, row->max, row->x[i]);
    for (int64_t i = 0; i < row->count; i++)
        row->e[i] = row->allowed[i] ? core_eval_apply(&row->exp, centred(row, row->x[i]), 0) : 0;
    row->sum = core_eval_sum(arithmetic, row->type, row->count, row->e);
}

static void softmax(Row *row) {
    for (int64_t i = 0; i < row->count; i++) {
        bool zero = !row->allowed[i] || row->max == -INFINITY;
        row->y[i] = zero ? 0 : core_eval_apply(&row->over, row->e[i], row->sum);
    }
}

static void log_softmax(Row *row) {
    double log = log_sum(row);
    for (int64_t i = 0; i < row->count; i++)
        row->y[i] = core_eval_apply(&row->minus, centred(row, row->x[i]), log);
}

static double cross_entropy(const Row *row, int64_t target) {
    double x = row->count ? row->x[target] : 0;
    return core_eval_apply(&row->minus, log_sum(row), centred(row, x));
}

// y (ct − Σ ct y) of y in row->x; +0 where y is 0.
static void softmax_vjp(Row *row, const CoreArithmetic *arithmetic) {
    for (int64_t i = 0; i < row->count; i++)
        row->e[i] = core_eval_apply(&row->times, row->ct[i], row->x[i]);
    row->sum = core_eval_sum(arithmetic, row->type, row->count, row->e);
    for (int64_t i = 0; i < row->count; i++) {
        double rest = core_eval_apply(&row->minus, row->ct[i], row->sum);
        row->y[i] = row->x[i] == 0 ? 0 : core_eval_apply(&row->times, row->x[i], rest);
    }
}

// (softmax(x) − one at the target) ct
static void cross_entropy_vjp(Row *row, int64_t target, double ct) {
    softmax(row);
    for (int64_t i = 0; i < row->count; i++) {
        double y = i == target ? core_eval_apply(&row->minus, row->y[i], 1) : row->y[i];
        row->y[i] = core_eval_apply(&row->times, y, ct);
    }
}

// A row whose maximum is infinite has that as its value.
static double logsumexp(const Row *row) {
    if (isinf(row->max))
        return row->max;
    return core_eval_apply(&row->plus, row->max, log_sum(row));
}

typedef struct RowSources {
    Tensor x, second; // second: a mask, target or cotangent
    Tensor third;     // cross_entropy_vjp: the cotangent
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
    if (at->count == 3)
        s.third = core_eval_tensor(frame, core_operand(frame->fn, let, 2), EVAL_NO_LEAF);
    if (s.has_mask || at->prim == CORE_softmax_vjp) {
        int64_t stride[RANK_MAX];
        core_eval_align(frame, core_type(program, core_let(frame->fn, second)->type),
                        &s.second.shape, type, stride);
        s.mask = core_eval_part(&s.x.shape, stride, s.axis);
    }
    return s;
}

// Element j of row i of the second operand, which has x's axes.
static double second_at(const RowSources *s, int64_t i, int64_t j) {
    int64_t at = shape_offset(&s->mask.outer, i) + shape_offset(&s->mask.inner, j);
    return dtype_get(s->second.type, s->second.data, at);
}

static void read_row(const RowSources *s, CorePrim prim, Row *row, int64_t i) {
    int64_t origin = shape_offset(&s->parts.outer, i);
    for (int64_t j = 0; j < row->count; j++) {
        int64_t at = origin + shape_offset(&s->parts.inner, j);
        row->x[j] = mth_round(row->type, dtype_get(s->x.type, s->x.data, at));
        row->allowed[j] = !s->has_mask || second_at(s, i, j) != 0;
        if (prim == CORE_softmax_vjp)
            row->ct[j] = mth_round(row->type, second_at(s, i, j));
    }
}

// The results of row i; false: they are one value, *value.
static bool run_row(const RowSources *s, CorePrim prim, const CoreArithmetic *arithmetic, Row *row,
                    int64_t i, double *value) {
    if (prim == CORE_softmax_vjp) {
        softmax_vjp(row, arithmetic);
        return true;
    }
    exponentials(row, arithmetic);
    switch (prim) {
    case CORE_softmax:
        softmax(row);
        return true;
    case CORE_log_softmax:
        log_softmax(row);
        return true;
    case CORE_cross_entropy_vjp:
        cross_entropy_vjp(row, (int64_t)tensor_get(&s->second, i),
                          mth_round(row->type, tensor_get(&s->third, i)));
        return true;
    case CORE_cross_entropy:
        *value = cross_entropy(row, (int64_t)tensor_get(&s->second, i));
        return false;
    default:
        *value = logsumexp(row);
        return false;
    }
}

void core_eval_row(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    CorePrim prim = core_let(frame->fn, let)->prim;
    if (prim == CORE_reduce_max_vjp || prim == CORE_reduce_min_vjp) {
        core_eval_extreme_vjp(frame, let, out);
        return;
    }
    RowSources s = row_sources(frame, let);
    DType type = core_eval_arithmetic(frame, let);
    Row row = row_new(frame, type, shape_count(&s.parts.inner));
    EvalParted to = {0};
    if (out->shape.rank == s.x.shape.rank)
        to = core_eval_part(&out->shape, out->shape.stride, s.axis);
    int64_t rows = shape_count(&s.parts.outer);
    for (int64_t i = 0; i < rows; i++) {
        double value;
        read_row(&s, prim, &row, i);
        if (!run_row(&s, prim, frame->eval->arithmetic, &row, i, &value)) {
            tensor_set(out, i, value);
            continue;
        }
        for (int64_t j = 0; j < row.count; j++)
            dtype_set(out->type, out->data, shape_offset(&to.outer, i) + shape_offset(&to.inner, j),
                      row.y[j]);
    }
}
