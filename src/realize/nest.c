// Making nests from lets: roles of axes, strides of operands, bodies of groups.
//
// Types may hold one pack of axes, which covers several concrete ones; everything here works on
// concrete axes and finds them through a Spread. What comes out is canonical (simplify.c).
#include "realize/nest.h"
#include "core/concrete.h"
#include "realize/simplify.h"

typedef struct Maker {
    const RlzNestInput *in;
    const CoreFn *fn;
    const CoreLet *let; // the root
    Arena *arena;
    RlzNest *nest;
    Vec(RlzOperand) operands;
    Vec(CoreLetId) lets;
    Vec(RlzNode) nodes;
} Maker;

// Where the axes of a type stand in a concrete shape: axis i covers first[i] … first[i + 1] − 1.
// A leaf of a parameter tree counts each concrete axis as one.
typedef struct Spread {
    const Shape *shape;
    uint32_t rank;
    uint32_t first[RANK_MAX + 2];
} Spread;

static Spread spread(const Maker *m, CoreTypeId id, const Shape *shape) {
    const CoreType *type = core_type(m->in->program, id);
    Spread s = {.shape = shape};
    if (type->kind == CORE_REAL || type->kind == CORE_IDX) {
        s.rank = type->rank;
        core_axis_places(type, shape->rank + 1 - type->rank, s.first);
    } else {
        s.rank = shape->rank;
        for (uint32_t i = 0; i <= s.rank; i++)
            s.first[i] = i;
    }
    check_that(s.first[s.rank] == shape->rank);
    return s;
}

static CoreTypeId type_of(const Maker *m, CoreLetId let) {
    return core_let(m->fn, let)->type;
}

static RlzValue value_of(const Maker *m, CoreLetId let) {
    return m->in->value(m->in->data, let);
}

static RlzOperand operand_of(const Maker *m, const RlzValue *value, DType arithmetic) {
    RlzOperand operand = {.source = value->source, .range = value->range};
    if (value->source == RLZ_MEMORY)
        operand.type = value->type;
    if (value->source == RLZ_CONSTANT)
        operand.constant = m->in->round(m->in->data, value->scalar, arithmetic);
    return operand;
}

static int16_t add_operand(Maker *m, const RlzOperand *operand, CoreLetId let) {
    vec_push(m->arena, &m->operands, *operand);
    vec_push(m->arena, &m->lets, let);
    return (int16_t)(m->operands.count - 1);
}

static uint32_t add_axis(Maker *m, RlzRole role, int64_t extent) {
    RlzNest *nest = m->nest;
    check_that(nest->axes < RLZ_AXES_MAX);
    nest->extent[nest->axes] = extent;
    nest->role[nest->axes] = (uint8_t)role;
    return nest->axes++;
}

// An axis of extent 1 has no stride: the operand is broadcast along it, or it does not matter.
static int64_t stride_at(const Shape *shape, uint32_t axis) {
    return shape->extent[axis] == 1 ? 0 : shape->stride[axis];
}

// Strides of an operand aligned from the right with `to`, by concrete axis of `to`.
static void align(const Spread *from, const Spread *to, int64_t stride[RANK_MAX]) {
    memset(stride, 0, sizeof(int64_t) * RANK_MAX);
    check_that(from->rank <= to->rank);
    for (uint32_t n = 1; n <= from->rank; n++) {
        uint32_t f = from->first[from->rank - n], t = to->first[to->rank - n];
        uint32_t covers = from->first[from->rank - n + 1] - f;
        if (covers != to->first[to->rank - n + 1] - t)
            continue; // one axis of extent 1 against a pack
        for (uint32_t i = 0; i < covers; i++)
            stride[t + i] = stride_at(from->shape, f + i);
    }
}

// ---- groups, permutes, moves by index ---------------------------------------------------------

static void parallel_axes_of(Maker *m, const Shape *result) {
    for (uint32_t i = 0; i < result->rank; i++) {
        uint32_t axis = add_axis(m, RLZ_PARALLEL, result->extent[i]);
        m->nest->output.stride[axis] = stride_at(result, i);
    }
}

// An input of a group: the same let read in the same arithmetic is one input.
static int16_t group_input(Maker *m, CoreLetId let, DType arithmetic, const Spread *result) {
    RlzValue value = value_of(m, let);
    RlzOperand operand = operand_of(m, &value, arithmetic);
    for (uint32_t i = 0; i < m->lets.count; i++) {
        const RlzOperand *old = &m->operands.at[i];
        if (m->lets.at[i] == let &&
            (old->source != RLZ_CONSTANT ||
             memcmp(&old->constant, &operand.constant, sizeof old->constant) == 0))
            return (int16_t)i;
    }
    Spread from = spread(m, type_of(m, let), &value.shape);
    align(&from, result, operand.stride);
    return add_operand(m, &operand, let);
}

static bool is_member(const Maker *m, CoreLetId let) {
    const CoreFn *fn = m->fn;
    return let == m->in->root || (m->in->arithmetic->fusion && fn->group &&
                                  fn->group[let] != CORE_NO_GROUP && fn->group[let] == m->in->root);
}

static void make_group(Maker *m) {
    const Shape *shape = &m->in->output.shape;
    Spread result = spread(m, m->let->type, shape);
    parallel_axes_of(m, shape);
    int16_t *node_of = arena_array(m->arena, int16_t, m->in->root + 1);
    for (CoreLetId id = 0; id <= m->in->root; id++) {
        if (!is_member(m, id))
            continue;
        const CoreLet *let = core_let(m->fn, id);
        RlzNode node = {.prim = let->prim, .number = let->attr ? let->attr->number : 0};
        node.arithmetic =
            core_let_arithmetic(m->in->program, m->fn, id, m->in->arithmetic, m->in->fn);
        check_that(let->count <= COUNT_OF(node.operand));
        for (uint32_t i = 0; i < let->count; i++) {
            CoreLetId operand = core_operand(m->fn, id, i);
            node.operand[i] = is_member(m, operand)
                                  ? (int16_t)(-1 - node_of[operand])
                                  : group_input(m, operand, node.arithmetic, &result);
        }
        node_of[id] = (int16_t)m->nodes.count;
        vec_push(m->arena, &m->nodes, node);
    }
}

static void make_permute(Maker *m) {
    CoreLetId source = core_operand(m->fn, m->in->root, 0);
    RlzValue value = value_of(m, source);
    Spread from = spread(m, type_of(m, source), &value.shape);
    parallel_axes_of(m, &m->in->output.shape);
    RlzOperand operand = operand_of(m, &value, m->nest->arithmetic);
    uint32_t axis = 0;
    for (uint32_t i = 0; i < from.rank; i++) {
        uint32_t moved = m->let->attr->order[i];
        for (uint32_t c = from.first[moved]; c < from.first[moved + 1]; c++)
            operand.stride[axis++] = stride_at(&value.shape, c);
    }
    add_operand(m, &operand, source);
}

// The rows of operand 0 along its first axis, at the indices that operand 1 holds.
static void make_gather(Maker *m) {
    CoreLetId table = core_operand(m->fn, m->in->root, 0), at = core_operand(m->fn, m->in->root, 1);
    RlzValue rows = value_of(m, table), index = value_of(m, at);
    parallel_axes_of(m, &m->in->output.shape);
    RlzOperand operand = operand_of(m, &rows, m->nest->arithmetic);
    operand.indexed_stride = rows.shape.stride[0];
    operand.indexed_extent = rows.shape.extent[0];
    for (uint32_t c = 1; c < rows.shape.rank; c++)
        operand.stride[index.shape.rank + c - 1] = stride_at(&rows.shape, c);
    add_operand(m, &operand, table);
    RlzOperand indices = operand_of(m, &index, m->nest->arithmetic);
    for (uint32_t c = 0; c < index.shape.rank; c++)
        indices.stride[c] = stride_at(&index.shape, c);
    add_operand(m, &indices, at);
}

// ---- reductions and rows ----------------------------------------------------------------------

// The axes of operand 0, the unreduced first, with its strides and those of the output. In the
// result the reduced axes are absent, or have extent 1 where they are kept, or, where the output is
// as wide as the operand, are there.
static void reduced_axes(Maker *m, const RlzValue *value, uint64_t reduced, RlzOperand *operand,
                         uint32_t axis_of[RANK_MAX]) {
    const Shape *out = &m->in->output.shape;
    Spread from = spread(m, type_of(m, core_operand(m->fn, m->in->root, 0)), &value->shape);
    Spread to = spread(m, m->let->type, out);
    bool keeps = to.rank == from.rank;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t place = 0;
        for (uint32_t i = 0; i < from.rank; i++) {
            bool is_reduced = reduced >> i & 1;
            uint32_t t = to.first[place];
            uint32_t wide = keeps || !is_reduced ? to.first[place + 1] - t : 0;
            place += keeps || !is_reduced;
            if (is_reduced != (pass == 1))
                continue;
            for (uint32_t c = from.first[i]; c < from.first[i + 1]; c++) {
                uint32_t axis =
                    add_axis(m, pass ? RLZ_REDUCED : RLZ_PARALLEL, value->shape.extent[c]);
                axis_of[c] = axis;
                operand->stride[axis] = stride_at(&value->shape, c);
                if (wide == from.first[i + 1] - from.first[i])
                    m->nest->output.stride[axis] = stride_at(out, t + c - from.first[i]);
            }
        }
    }
}

// A further operand of a row nest, over the axes of operand 0 without those of a set.
static void row_operand(Maker *m, uint32_t number, const Shape *x, uint64_t without,
                        const uint32_t axis_of[RANK_MAX]) {
    CoreLetId let = core_operand(m->fn, m->in->root, number);
    RlzValue value = value_of(m, let);
    RlzOperand operand = operand_of(m, &value, m->nest->arithmetic);
    uint32_t behind = value.shape.rank; // aligned from the right
    for (uint32_t c = x->rank; c-- > 0 && behind > 0;)
        if (!(without >> c & 1))
            operand.stride[axis_of[c]] = stride_at(&value.shape, --behind);
    add_operand(m, &operand, let);
}

static void make_reduction(Maker *m) {
    CoreLetId source = core_operand(m->fn, m->in->root, 0);
    RlzValue value = value_of(m, source);
    RlzOperand operand = operand_of(m, &value, m->nest->arithmetic);
    const CoreAttr *attr = m->let->attr;
    uint64_t reduced = m->let->prim == CORE_argmax ? (uint64_t)1 << attr->axis : attr->axes;
    uint32_t axis_of[RANK_MAX];
    reduced_axes(m, &value, reduced, &operand, axis_of);
    add_operand(m, &operand, source);
    if (m->let->prim == CORE_square_sum) {
        CoreLetId start = core_operand(m->fn, m->in->root, 1);
        RlzValue begin = value_of(m, start);
        RlzOperand number = operand_of(m, &begin, m->nest->arithmetic);
        add_operand(m, &number, start);
    }
}

// Softmax and its kin, and pick, which is a row nest whose one term is chosen by index.
static void make_row(Maker *m) {
    CoreLetId source = core_operand(m->fn, m->in->root, 0);
    RlzValue value = value_of(m, source);
    RlzOperand operand = operand_of(m, &value, m->nest->arithmetic);
    Spread from = spread(m, type_of(m, source), &value.shape);
    uint32_t at = m->let->attr->axis, axis_of[RANK_MAX];
    reduced_axes(m, &value, (uint64_t)1 << at, &operand, axis_of);
    uint32_t row = from.first[at];
    check_that(from.first[at + 1] == row + 1);
    if (m->let->prim == CORE_pick) {
        m->nest->axes--; // the last one: its index is operand 1's value
        operand.indexed_stride = value.shape.stride[row];
        operand.indexed_extent = value.shape.extent[row];
        operand.stride[axis_of[row]] = 0;
    }
    add_operand(m, &operand, source);
    bool whole = m->let->prim == CORE_softmax || m->let->prim == CORE_softmax_vjp;
    for (uint32_t i = 1; i < m->let->count; i++)
        row_operand(m, i, &value.shape, whole ? 0 : UINT64_C(1) << row, axis_of);
}

// ---- derivatives of maximum, minimum, pick and gather -------------------------------------------

static void make_extreme_vjp(Maker *m) {
    CoreLetId source = core_operand(m->fn, m->in->root, 0);
    RlzValue value = value_of(m, source);
    RlzOperand operand = operand_of(m, &value, m->nest->arithmetic);
    Spread from = spread(m, type_of(m, source), &value.shape);
    uint64_t axes = m->let->attr->axes, concrete = 0;
    uint32_t axis_of[RANK_MAX];
    reduced_axes(m, &value, axes, &operand, axis_of);
    for (uint32_t i = 0; i < from.rank; i++)
        for (uint32_t c = from.first[i]; (axes >> i & 1) && c < from.first[i + 1]; c++)
            concrete |= UINT64_C(1) << c;
    add_operand(m, &operand, source);
    row_operand(m, 1, &value.shape, concrete, axis_of);
    RlzOperand position = {.source = RLZ_IOTA, .range = 1};
    for (uint32_t c = value.shape.rank; c-- > 0;) {
        if (!(concrete >> c & 1))
            continue;
        position.stride[axis_of[c]] = value.shape.extent[c] == 1 ? 0 : position.range;
        position.range *= value.shape.extent[c];
    }
    add_operand(m, &position, source);
}

static void add_node(Maker *m, CorePrim prim, DType arithmetic, int16_t a, int16_t b, int16_t c) {
    RlzNode node = {.prim = prim, .arithmetic = arithmetic, .operand = {a, b, c}};
    vec_push(m->arena, &m->nodes, node);
}

// select(index = position, ct, 0). Indices are compared in a type that holds them.
static void make_pick_vjp(Maker *m) {
    enum { CT, INDEX, POSITION, ZERO };
    const Shape *out = &m->in->output.shape;
    Spread to = spread(m, m->let->type, out);
    parallel_axes_of(m, out);
    uint32_t picked = to.first[m->let->attr->axis], axis_of[RANK_MAX];
    for (uint32_t c = 0; c < out->rank; c++)
        axis_of[c] = c;
    row_operand(m, CT, out, UINT64_C(1) << picked, axis_of);
    row_operand(m, INDEX, out, UINT64_C(1) << picked, axis_of);
    RlzOperand position = {.source = RLZ_IOTA, .range = out->extent[picked]};
    position.stride[picked] = out->extent[picked] == 1 ? 0 : 1;
    add_operand(m, &position, m->lets.at[INDEX]);
    add_operand(m, &(RlzOperand){.source = RLZ_CONSTANT}, m->lets.at[CT]);
    bool narrow = position.range <= 1 << 24;
    add_node(m, CORE_eq, narrow ? m->nest->arithmetic : F64, INDEX, POSITION, 0);
    add_node(m, CORE_select, m->nest->arithmetic, -1, CT, ZERO);
}

// The axes of a row of the table, then those of the indices.
static void make_scatter_add(Maker *m) {
    CoreLetId rows = core_operand(m->fn, m->in->root, 0), at = core_operand(m->fn, m->in->root, 1);
    RlzValue ct = value_of(m, rows), index = value_of(m, at);
    const Shape *out = &m->in->output.shape;
    RlzOperand operand = operand_of(m, &ct, m->nest->arithmetic);
    RlzOperand indices = operand_of(m, &index, m->nest->arithmetic);
    for (uint32_t c = 1; c < out->rank; c++) {
        uint32_t axis = add_axis(m, RLZ_PARALLEL, out->extent[c]);
        m->nest->output.stride[axis] = stride_at(out, c);
        operand.stride[axis] = stride_at(&ct.shape, index.shape.rank + c - 1);
    }
    for (uint32_t c = 0; c < index.shape.rank; c++) {
        uint32_t axis = add_axis(m, RLZ_REDUCED, index.shape.extent[c]);
        operand.stride[axis] = stride_at(&ct.shape, c);
        indices.stride[axis] = stride_at(&index.shape, c);
    }
    m->nest->output.indexed_stride = out->stride[0];
    m->nest->output.indexed_extent = out->extent[0];
    add_operand(m, &operand, rows);
    add_operand(m, &indices, at);
}

// ---- contractions -----------------------------------------------------------------------------

typedef struct Contracted { // an axis of a product, by first appearance in operand 0, then 1
    int64_t extent;
    int64_t stride[3]; // operand 0, operand 1, output
    bool in[3];
} Contracted;

typedef struct Contraction {
    uint32_t count;
    Contracted axis[RLZ_AXES_MAX];
    uint8_t first[UINT8_MAX + 1], covers[UINT8_MAX + 1]; // by label
    uint32_t output[RANK_MAX], outputs;                  // axes in the output's order
} Contraction;

static void label_axes(Contraction *c, const Spread *s, const uint8_t *labels, uint32_t operand) {
    for (uint32_t i = 0; i < s->rank; i++) {
        uint8_t label = labels[i], covers = (uint8_t)(s->first[i + 1] - s->first[i]);
        if (!c->covers[label]) {
            check_that(c->count + covers <= RLZ_AXES_MAX);
            c->first[label] = (uint8_t)c->count;
            c->covers[label] = covers;
            for (uint32_t n = 0; n < covers; n++)
                c->axis[c->count++].extent = 1;
        }
        check_that(c->covers[label] == covers);
        for (uint32_t n = 0; n < covers; n++) {
            Contracted *axis = &c->axis[c->first[label] + n];
            int64_t extent = s->shape->extent[s->first[i] + n];
            if (extent != 1)
                axis->extent = extent;
            axis->in[operand] = true;
            axis->stride[operand] += stride_at(s->shape, s->first[i] + n);
            if (operand == 2)
                c->output[c->outputs++] = c->first[label] + n;
        }
    }
}

static void contraction_axis(Maker *m, RlzRole role, const Contracted *from, RlzOperand *a,
                             RlzOperand *b) {
    uint32_t axis = add_axis(m, role, from->extent);
    a->stride[axis] = from->stride[0];
    b->stride[axis] = from->stride[1];
    m->nest->output.stride[axis] = from->stride[2];
}

// Labels of x · w = y: the last axis of x is the first of w. Of its derivatives the operands are
// y, w and x, y.
static void dot_labels(CorePrim prim, const Spread s[3], uint8_t labels[3][2 * RANK_MAX]) {
    static const uint8_t places[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}}; // of x, w, y
    const uint8_t *at = places[prim == CORE_dot ? 0 : prim == CORE_dot_vjp_l ? 1 : 2];
    uint8_t *x = labels[at[0]], *w = labels[at[1]], *y = labels[at[2]];
    uint32_t x_rank = s[at[0]].rank, w_rank = s[at[1]].rank;
    check_that(x_rank > 0 && w_rank > 0);
    for (uint32_t i = 0; i < x_rank; i++)
        x[i] = (uint8_t)i;
    for (uint32_t i = 0; i < w_rank; i++)
        w[i] = (uint8_t)(x_rank - 1 + i);
    memcpy(y, x, x_rank - 1);
    memcpy(y + x_rank - 1, w + 1, w_rank - 1);
}

// The other operand of an epilogue's add, aligned with the output from the right; `axis_of` gives
// the nest's axis of each of the output's.
static void add_epilogue(Maker *m, uint32_t outputs, const uint32_t axis_of[]) {
    RlzValue value = value_of(m, m->in->epilogue);
    RlzOperand operand = operand_of(m, &value, m->nest->arithmetic);
    check_that(value.shape.rank <= outputs);
    for (uint32_t i = 0; i < value.shape.rank; i++)
        operand.stride[axis_of[outputs - value.shape.rank + i]] = stride_at(&value.shape, i);
    add_operand(m, &operand, m->in->epilogue);
    m->nest->epilogue = true;
}

static void make_contraction(Maker *m) {
    CoreLetId let[2] = {core_operand(m->fn, m->in->root, 0), core_operand(m->fn, m->in->root, 1)};
    RlzValue value[2] = {value_of(m, let[0]), value_of(m, let[1])};
    RlzOperand a = operand_of(m, &value[0], m->nest->arithmetic);
    RlzOperand b = operand_of(m, &value[1], m->nest->arithmetic);
    Spread s[3] = {spread(m, type_of(m, let[0]), &value[0].shape),
                   spread(m, type_of(m, let[1]), &value[1].shape),
                   spread(m, m->let->type, &m->in->output.shape)};
    uint8_t labels[3][2 * RANK_MAX] = {{0}};
    Contraction *c = arena_new_of(m->arena, Contraction);
    bool ein = m->let->prim == CORE_ein;
    if (!ein)
        dot_labels(m->let->prim, s, labels);
    for (uint32_t i = 0; i < 3; i++)
        label_axes(c, &s[i], ein ? m->let->attr->labels[i] : labels[i], i);
    int32_t i_axis = -1, j_axis = -1;
    for (uint32_t o = 0; o < c->outputs; o++) {
        const Contracted *axis = &c->axis[c->output[o]];
        if (axis->in[0] != axis->in[1])
            *(axis->in[0] ? &i_axis : &j_axis) = (int32_t)c->output[o];
    }
    uint32_t axis_of[RANK_MAX]; // by the output's axes
    for (uint32_t pass = RLZ_OUTER; pass <= RLZ_J; pass++)
        for (uint32_t o = 0; o < c->outputs; o++) {
            int32_t at = (int32_t)c->output[o];
            RlzRole role = at == i_axis ? RLZ_I : at == j_axis ? RLZ_J : RLZ_OUTER;
            if (role != pass)
                continue;
            axis_of[o] = m->nest->axes;
            contraction_axis(m, role, &c->axis[at], &a, &b);
        }
    for (uint32_t k = 0; k < c->count; k++)
        if (!c->axis[k].in[2])
            contraction_axis(m, RLZ_K, &c->axis[k], &a, &b);
    add_operand(m, &a, let[0]);
    add_operand(m, &b, let[1]);
    if (m->in->epilogue)
        add_epilogue(m, c->outputs, axis_of);
}

// ---- all ----------------------------------------------------------------------------------------

static RlzKind kind_of(CorePrim prim) {
    if (prim == CORE_pick_vjp)
        return RLZ_GROUP;
    switch (core_prims[prim].class) {
    case CORE_ELEMENTWISE:
        return RLZ_GROUP;
    case CORE_REDUCTION:
        return RLZ_REDUCTION;
    case CORE_ROW:
        return RLZ_ROW;
    case CORE_CONTRACTION:
        return RLZ_CONTRACTION;
    case CORE_INDEXED:
        return RLZ_INDEXED;
    case CORE_PERMUTE:
        return RLZ_PERMUTE;
    case CORE_FREE:
    case CORE_CALL:
        break;
    }
    bug("%s launches nothing", core_prims[prim].text);
}

static bool accumulates(CorePrim prim) {
    return core_prims[prim].class == CORE_CONTRACTION || prim == CORE_sum || prim == CORE_mean;
}

static void (*maker_of(CorePrim prim))(Maker *) {
    static void (*const by_kind[RLZ_KIND_COUNT])(Maker *) = {
        [RLZ_GROUP] = make_group,         [RLZ_CONTRACTION] = make_contraction,
        [RLZ_REDUCTION] = make_reduction, [RLZ_ROW] = make_row,
        [RLZ_INDEXED] = make_gather,      [RLZ_PERMUTE] = make_permute,
    };
    switch (prim) {
    case CORE_pick:
        return make_row;
    case CORE_pick_vjp:
        return make_pick_vjp;
    case CORE_scatter_add:
        return make_scatter_add;
    case CORE_reduce_max_vjp:
    case CORE_reduce_min_vjp:
        return make_extreme_vjp;
    default:
        return by_kind[kind_of(prim)];
    }
}

const RlzNest *rlz_nest_make(const RlzNestInput *input, Arena *arena, const CoreLetId **lets) {
    const CoreFn *fn = core_fn(input->program, input->fn);
    Maker m = {.in = input, .fn = fn, .let = core_let(fn, input->root), .arena = arena};
    RlzNest *nest = m.nest = arena_new_of(arena, RlzNest);
    const CoreArithmetic *arithmetic = input->arithmetic;
    nest->prim = m.let->prim;
    nest->of_tree = input->leaf;
    nest->kind = kind_of(nest->prim);
    nest->arithmetic = core_let_arithmetic(input->program, fn, input->root, arithmetic, input->fn);
    nest->accumulate = arithmetic->has_accumulate && accumulates(nest->prim)
                           ? arithmetic->accumulate
                           : nest->arithmetic;
    nest->multiply_add = nest->kind == RLZ_CONTRACTION && arithmetic->multiply_add;
    if (nest->prim == CORE_sum || nest->prim == CORE_mean || nest->prim == CORE_square_sum ||
        (nest->kind == RLZ_ROW && core_prim_axes(nest->prim) == CORE_ONE_AXIS))
        nest->reduce = arithmetic->reduce;
    nest->output = (RlzOperand){.type = input->output.type, .range = input->output.range};
    maker_of(nest->prim)(&m);
    rlz_simplify(nest, m.operands.at, m.operands.count);
    nest->inputs = m.operands.count;
    nest->input = m.operands.at;
    nest->nodes = m.nodes.count;
    nest->node = m.nodes.at;
    if (lets)
        *lets = m.lets.at;
    return nest;
}
