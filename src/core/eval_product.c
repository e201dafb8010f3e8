// Contractions of the reference evaluator: dot, its derivatives and ein.
//
// One accumulator an output element, from +0; terms in increasing flat index of the summed axes,
// in the order in which these first appear in operand 0. Each step is one fma, or a rounded product
// and a rounded sum, in the accumulation type (the arithmetic type, where none is declared).
#include "core/eval_frame.h"

typedef struct Product {
    Tensor operand[2];
    Shape outer[2], inner[2]; // by output element and by term: where the operands' elements lie
} Product;

typedef struct Labelled {
    const CoreType *type;
    const Shape *shape;
    const uint8_t *labels;
    uint32_t first[RANK_MAX + 1];
} Labelled;

static Labelled labelled(const EvalFrame *frame, CoreLetId let, const Shape *shape,
                         const uint8_t *labels) {
    Labelled l = {
        core_type(frame->eval->program, core_let(frame->fn, let)->type), shape, labels, {0}};
    core_axis_places(l.type, frame->dims.pack_rank, l.first);
    return l;
}

// The axis of `l` with this label, or its rank.
static uint32_t find(const Labelled *l, uint8_t label) {
    uint32_t axis = 0;
    while (axis < l->type->rank && l->labels[axis] != label)
        axis++;
    return axis;
}

// Adds the axes of `from` with a label to the shapes by which the operands are read; an operand
// without the label is read with stride 0.
static void add_axes(const Labelled *from, uint32_t axis, const Labelled operand[2], Shape to[2]) {
    for (uint32_t o = 0; o < 2; o++) {
        uint32_t in = find(&operand[o], from->labels[axis]);
        bool has = in < operand[o].type->rank;
        for (uint32_t c = from->first[axis]; c < from->first[axis + 1]; c++) {
            uint32_t at = operand[o].first[in] + c - from->first[axis];
            to[o].extent[to[o].rank] = from->shape->extent[c];
            to[o].stride[to[o].rank++] = has ? operand[o].shape->stride[at] : 0;
        }
    }
}

// Labels of x · w = y: the last axis of x is the first of w. Of its derivatives the operands are
// y, w and x, y.
static void dot_labels(CorePrim prim, uint32_t x_rank, uint32_t w_rank,
                       uint8_t labels[3][2 * RANK_MAX]) {
    static const uint8_t places[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}}; // of x, w, y
    const uint8_t *at = places[prim == CORE_dot ? 0 : prim == CORE_dot_vjp_l ? 1 : 2];
    uint8_t *x = labels[at[0]], *w = labels[at[1]], *y = labels[at[2]];
    for (uint32_t i = 0; i < x_rank; i++)
        x[i] = (uint8_t)i;
    for (uint32_t i = 0; i < w_rank; i++)
        w[i] = (uint8_t)(x_rank - 1 + i);
    memcpy(y, x, x_rank - 1);
    memcpy(y + x_rank - 1, w + 1, w_rank - 1);
}

static Product make_product(const EvalFrame *frame, CoreLetId let, const Shape *result) {
    const CoreLet *at = core_let(frame->fn, let);
    Product p = {0};
    uint8_t of_dot[3][2 * RANK_MAX] = {{0}};
    const uint8_t *labels[3] = {of_dot[0], of_dot[1], of_dot[2]};
    if (at->prim == CORE_ein)
        memcpy(labels, at->attr->labels, sizeof labels);
    Labelled operand[2];
    Shape row_major[2];
    for (uint32_t o = 0; o < 2; o++) {
        CoreLetId source = core_operand(frame->fn, let, o);
        p.operand[o] = core_eval_tensor(frame, source, EVAL_NO_LEAF);
        row_major[o] = shape_row_major(p.operand[o].shape.rank, p.operand[o].shape.extent);
        operand[o] = labelled(frame, source, &row_major[o], labels[o]);
    }
    Labelled out = labelled(frame, let, result, labels[2]);
    if (at->prim != CORE_ein)
        dot_labels(at->prim, (at->prim == CORE_dot_vjp_l ? out : operand[0]).type->rank,
                   (at->prim == CORE_dot_vjp_r ? out : operand[1]).type->rank, of_dot);
    for (uint32_t i = 0; i < out.type->rank; i++)
        add_axes(&out, i, operand, p.outer);
    for (uint32_t i = 0; i < operand[0].type->rank; i++)
        if (find(&out, operand[0].labels[i]) == out.type->rank)
            add_axes(&operand[0], i, operand, p.inner);
    return p;
}

static int64_t *offsets(const Shape *shape, Arena *arena) {
    int64_t count = shape_count(shape);
    int64_t *at = arena_array(arena, int64_t, count);
    for (int64_t i = 0; i < count; i++)
        at[i] = shape_offset(shape, i);
    return at;
}

// acc + a · b. The accumulation type may be bf16: then each step is rounded to it once more.
static double step(const CoreArithmetic *arithmetic, DType type, double a, double b, double acc) {
    DType steps = dtype_arithmetic(type);
    double sum;
    if (!arithmetic->multiply_add)
        sum = mth_fma(steps, a, b, acc);
    else if (steps == F32)
        sum = (double)((float)a * (float)b + (float)acc);
    else
        sum = a * b + acc;
    return type == BF16 ? (double)f32_of_bf16(bf16_of_f64(sum)) : sum;
}

void core_eval_contraction(const EvalFrame *frame, CoreLetId let, Tensor *out) {
    const CoreArithmetic *arithmetic = frame->eval->arithmetic;
    DType nest = core_eval_arithmetic(frame, let);
    DType running = arithmetic->has_accumulate ? arithmetic->accumulate : nest;
    Product p = make_product(frame, let, &out->shape);
    DType loaded = dtype_arithmetic(running);
    const double *a = core_eval_load(&p.operand[0], loaded, frame->arena);
    const double *b = core_eval_load(&p.operand[1], loaded, frame->arena);
    const int64_t *a_at = offsets(&p.inner[0], frame->arena);
    const int64_t *b_at = offsets(&p.inner[1], frame->arena);
    int64_t results = shape_count(&out->shape), terms = shape_count(&p.inner[0]);
    for (int64_t i = 0; i < results; i++) {
        const double *a_row = a + shape_offset(&p.outer[0], i);
        const double *b_row = b + shape_offset(&p.outer[1], i);
        double acc = 0;
        for (int64_t k = 0; k < terms; k++)
            acc = step(arithmetic, running, a_row[a_at[k]], b_row[b_at[k]], acc);
        tensor_set(out, i, mth_round(nest, acc));
    }
}
