// The derivative of every primitive. A rule is given the let and the cotangent of its value, emits
// the cotangents of its operands and lets them reach those. The work function's let i stands for
// F's let i, so a rule reads values of the forward pass by their own numbers; what it reads is what
// is saved.
#include "ad/sweep.h"

typedef struct Step {
    AdSweep *s;
    CoreLetId y; // the let; also stands for its value
    const CoreLet *let;
    CoreLetId ct;   // may be smaller than y's type
    CoreLetId x[3]; // operands
} Step;

static void reach(const Step *step, uint32_t operand, CoreLetId cotangent) {
    ad_reach_broadcast(step->s, step->x[operand], cotangent, step->let->type);
}

// A cotangent with the operand's extents, under its names.
static void reach_exactly(const Step *step, uint32_t operand, CoreLetId cotangent) {
    ad_reach(step->s, step->x[operand],
             ad_exact(step->s, cotangent, core_let(step->s->fn, step->x[operand])->type));
}

static bool wanted(const Step *step, uint32_t operand) {
    return step->s->active[step->x[operand]];
}

// The cotangent with its full extents and names.
static CoreLetId full(const Step *step) {
    return ad_exact(step->s, step->ct, step->let->type);
}

static CoreTypeId operand_type(const Step *step, uint32_t operand) {
    return core_let(step->s->fn, step->x[operand])->type;
}

#define ADD(a, b)    ad_emit2(step->s, CORE_add, (a), (b))
#define SUB(a, b)    ad_emit2(step->s, CORE_sub, (a), (b))
#define MUL(a, b)    ad_emit2(step->s, CORE_mul, (a), (b))
#define DIV(a, b)    ad_emit2(step->s, CORE_div, (a), (b))
#define OF(prim, a)  ad_emit1(step->s, CORE_##prim, (a))
#define NUMBER(text) ad_scalar(step->s, (text))

// ---- elementwise ----------------------------------------------------------------------------

static void derive_sum(const Step *step) {
    reach(step, 0, step->ct);
    if (wanted(step, 1))
        reach(step, 1, step->let->prim == CORE_sub ? OF(neg, step->ct) : step->ct);
}

static void derive_mul(const Step *step) {
    if (wanted(step, 0))
        reach(step, 0, MUL(step->ct, step->x[1]));
    if (wanted(step, 1))
        reach(step, 1, MUL(step->ct, step->x[0]));
}

static void derive_div(const Step *step) {
    CoreLetId quotient = DIV(step->ct, step->x[1]);
    reach(step, 0, quotient);
    if (wanted(step, 1))
        reach(step, 1, OF(neg, MUL(quotient, step->y)));
}

// max(a, b) is a where a > b or a is NaN, min(a, b) is b where b < a or b is NaN: that operand has
// the cotangent then, else the other.
static void derive_extreme(const Step *step) {
    bool max = step->let->prim == CORE_max;
    uint32_t number = max ? 0 : 1;
    CoreLetId one = step->x[number], other = step->x[1 - number], zero = NUMBER("0");
    CoreLetId beyond = ad_emit2(step->s, max ? CORE_gt : CORE_lt, one, other);
    CoreLetId no_nan = ad_emit2(step->s, CORE_eq, one, one);
    for (uint32_t i = 0; i < 2; i++) {
        if (!wanted(step, i))
            continue;
        CoreLetId taken = i == number ? step->ct : zero, left = i == number ? zero : step->ct;
        CoreLetId rest = ad_emit3(step->s, CORE_select, no_nan, left, taken);
        reach(step, i, ad_emit3(step->s, CORE_select, beyond, taken, rest));
    }
}

static void derive_abs(const Step *step) {
    CoreLetId x = step->x[0], zero = NUMBER("0");
    CoreLetId above = ad_emit2(step->s, CORE_gt, x, zero);
    CoreLetId below = ad_emit2(step->s, CORE_lt, x, zero);
    CoreLetId falling = ad_emit3(step->s, CORE_select, below, OF(neg, step->ct), zero);
    reach(step, 0, ad_emit3(step->s, CORE_select, above, step->ct, falling));
}

static void derive_relu(const Step *step) {
    CoreLetId zero = NUMBER("0");
    CoreLetId above = ad_emit2(step->s, CORE_gt, step->x[0], zero);
    reach(step, 0, ad_emit3(step->s, CORE_select, above, step->ct, zero));
}

static void derive_select(const Step *step) {
    CoreLetId zero = NUMBER("0"), mask = step->x[0];
    if (wanted(step, 1))
        reach(step, 1, ad_emit3(step->s, CORE_select, mask, step->ct, zero));
    if (wanted(step, 2))
        reach(step, 2, ad_emit3(step->s, CORE_select, mask, zero, step->ct));
}

// n x^(n − 1): finite at 0 for n ≥ 1, and for n = 0 nothing comes back.
static void derive_pow(const Step *step) {
    int64_t n = step->let->attr->number;
    if (n == 0)
        return;
    if (n == 1) {
        reach(step, 0, step->ct);
        return;
    }
    CoreLetId lower = step->x[0];
    if (n > 2) {
        CoreAttr attr = {.number = n - 1};
        lower = ad_emit(step->s, CORE_pow, 1, &lower, &attr, 0);
    }
    CoreLetId factor = NUMBER(str_format(step->s->arena, "%lld", (long long)n).at);
    reach(step, 0, MUL(step->ct, MUL(factor, lower)));
}

// The second derivative of x (1 + tanh u) / 2 with u = c (x + a x³) and T = tanh u:
// (1 − T²) (u' + x (u″ / 2 − T u'²)), where u' = c + 3 a c x² and u″ / 2 = 3 a c x.
static CoreLetId gelu_tanh_bend(const Step *step) {
    CoreLetId x = step->x[0], c = NUMBER("0.79788456080286535587989211986876373695"),
              one = NUMBER("1");
    CoreLetId square = MUL(x, x), a = NUMBER("0.044715");
    CoreLetId t = OF(tanh, MUL(c, MUL(x, ADD(one, MUL(a, square)))));
    CoreLetId three = MUL(NUMBER("3"), MUL(a, c));
    CoreLetId slope = ADD(c, MUL(three, square));
    CoreLetId inner = SUB(MUL(three, x), MUL(t, MUL(slope, slope)));
    return MUL(SUB(one, MUL(t, t)), ADD(slope, MUL(x, inner)));
}

// Functions of one operand: the cotangent times the slope.
static void derive_function(const Step *step) {
    CoreLetId x = step->x[0], y = step->y, ct = step->ct, one = NUMBER("1"), s;
    switch (step->let->prim) {
    case CORE_sqrt: // +inf at 0
        reach(step, 0, DIV(ct, MUL(NUMBER("2"), y)));
        return;
    case CORE_rsqrt:
        reach(step, 0, OF(neg, DIV(MUL(ct, y), MUL(NUMBER("2"), x))));
        return;
    case CORE_exp:
        reach(step, 0, MUL(ct, y));
        return;
    case CORE_log:
        reach(step, 0, DIV(ct, x));
        return;
    case CORE_tanh:
        reach(step, 0, MUL(ct, SUB(one, MUL(y, y))));
        return;
    case CORE_sigmoid:
        reach(step, 0, MUL(ct, MUL(y, SUB(one, y))));
        return;
    case CORE_erf: // 2 / sqrt(pi) exp(−x²)
        s = OF(exp, OF(neg, MUL(x, x)));
        reach(step, 0, MUL(ct, MUL(NUMBER("1.1283791670955125738961589031215451717"), s)));
        return;
    case CORE_gelu:
        reach(step, 0, MUL(ct, OF(gelu_slope, x)));
        return;
    case CORE_gelu_tanh:
        reach(step, 0, MUL(ct, OF(gelu_tanh_slope, x)));
        return;
    case CORE_gelu_slope: // (2 − x²) φ(x), φ the normal density
        s = OF(exp, OF(neg, DIV(MUL(x, x), NUMBER("2"))));
        s = MUL(NUMBER("0.39894228040143267793994605993438186848"), s);
        reach(step, 0, MUL(ct, MUL(s, SUB(NUMBER("2"), MUL(x, x)))));
        return;
    case CORE_gelu_tanh_slope:
        reach(step, 0, MUL(ct, gelu_tanh_bend(step)));
        return;
    case CORE_silu:
        s = OF(sigmoid, x);
        reach(step, 0, MUL(ct, MUL(s, ADD(one, MUL(x, SUB(one, s))))));
        return;
    case CORE_softplus:
        reach(step, 0, MUL(ct, OF(sigmoid, x)));
        return;
    case CORE_sin:
        reach(step, 0, MUL(ct, OF(cos, x)));
        return;
    case CORE_cos:
        reach(step, 0, OF(neg, MUL(ct, OF(sin, x))));
        return;
    default:
        bug("no slope of `%s`", core_prims[step->let->prim].text);
    }
}

static void derive_same(const Step *step) {
    reach(step, 0, step->let->prim == CORE_neg ? OF(neg, step->ct) : step->ct);
}

// ---- reductions and rows --------------------------------------------------------------------

static uint64_t reduced_axes(const CoreLet *let) {
    bool extreme = let->prim == CORE_reduce_max_vjp || let->prim == CORE_reduce_min_vjp;
    bool many = extreme || core_prims[let->prim].class == CORE_REDUCTION;
    return many ? let->attr->axes : UINT64_C(1) << let->attr->axis;
}

// Without the axes of extent 1 that `keep` left.
static CoreLetId unkept(const Step *step, CoreLetId value) {
    AdSweep *s = step->s;
    const CoreType *type = core_type(s->program, operand_type(step, 0));
    CoreAxis axes[RANK_MAX];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < type->rank; i++)
        if (!(reduced_axes(step->let) >> i & 1))
            axes[rank++] = type->axes[i];
    CoreTypeId plain = core_type_real(s->program, rank, axes);
    return ad_type(s, value) == plain ? value : ad_emit(s, CORE_view, 1, &value, NULL, plain);
}

// A value of the type `reduced`, broadcast to the operand's by a product with ones: what a pack
// that does not come first needs, since nothing else has an axis in its place.
static CoreLetId spread_product(const Step *step, CoreLetId value, CoreTypeId reduced) {
    AdSweep *s = step->s;
    const CoreType *type = core_type(s->program, operand_type(step, 0));
    CoreAxis axes[RANK_MAX];
    uint8_t labels[3][RANK_MAX];
    uint32_t rank[3] = {0};
    value = unkept(step, ad_exact(s, value, reduced));
    rank[0] = core_type(s->program, ad_type(s, value))->rank;
    for (uint32_t i = 0, left = 0; i < type->rank; i++) {
        bool gone = reduced_axes(step->let) >> i & 1;
        if (gone)
            axes[rank[1]] = (CoreAxis){0, type->axes[i].extent};
        labels[2][i] = (uint8_t)(gone ? rank[0] + rank[1] : left);
        labels[gone][gone ? rank[1]++ : left] = labels[2][i];
        left += !gone;
    }
    rank[2] = type->rank;
    CoreLetId one = NUMBER("1");
    CoreLetId ones =
        ad_emit(s, CORE_copy, 1, &one, NULL, core_type_real(s->program, rank[1], axes));
    CoreAttr attr = {0};
    for (uint32_t i = 0; i < 3; i++) {
        attr.labels[i] = labels[i];
        attr.label_count[i] = (uint8_t)rank[i];
    }
    return ad_emit(s, CORE_ein, 2, (CoreLetId[]){value, ones}, &attr, 0);
}

// A value of the type `reduced` under the operand's axes, extent 1 where they were reduced, so that
// it broadcasts to the operand. A pack has no such extent: it is left away where it is first.
static CoreLetId spread_of(const Step *step, CoreLetId value, CoreTypeId reduced) {
    AdSweep *s = step->s;
    const CoreType *type = core_type(s->program, operand_type(step, 0));
    if (core_type(s->program, ad_type(s, value))->rank == 0)
        return value;
    CoreAxis axes[RANK_MAX];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        bool gone = reduced_axes(step->let) >> i & 1;
        bool pack = gone && type->axes[i].extent == EXTENT_PACK;
        if (pack && i > 0)
            return spread_product(step, value, reduced);
        if (pack)
            continue;
        axes[rank] = type->axes[i];
        if (gone)
            axes[rank].extent = extent_int(s->program->extents, 1);
        rank++;
    }
    value = ad_exact(s, value, reduced);
    CoreTypeId kept = core_type_real(s->program, rank, axes);
    return ad_type(s, value) == kept ? value : ad_emit(s, CORE_view, 1, &value, NULL, kept);
}

static CoreLetId spread(const Step *step, CoreLetId value) {
    return spread_of(step, value, step->let->type);
}

// The number of elements that a mean divides by.
static CoreLetId element_count(const Step *step) {
    AdSweep *s = step->s;
    const CoreType *type = core_type(s->program, operand_type(step, 0));
    Extent count = extent_int(s->program->extents, 1);
    for (uint32_t i = 0; i < type->rank; i++) {
        if (!(reduced_axes(step->let) >> i & 1))
            continue;
        if (type->axes[i].extent == EXTENT_PACK) {
            // The pack's extents have no name here: ones are counted.
            CoreLetId one = NUMBER("1");
            CoreLetId ones = ad_emit(s, CORE_copy, 1, &one, NULL, operand_type(step, 0));
            return ad_emit(s, CORE_sum, 1, &ones, step->let->attr, 0);
        }
        count = extent_mul(s->program->extents, count, type->axes[i].extent);
    }
    CoreAttr attr = {.scalar = core_scalar_extent(s->program, count)};
    return ad_emit(s, CORE_scalar, 0, NULL, &attr, core_type_real(s->program, 0, NULL));
}

static void derive_reduction(const Step *step) {
    AdSweep *s = step->s;
    CoreLetId x = step->x[0];
    if (step->let->prim == CORE_sum || step->let->prim == CORE_mean) {
        CoreLetId ct = step->let->prim == CORE_mean ? DIV(step->ct, element_count(step)) : step->ct;
        ad_reach(s, x, spread(step, ct));
        return;
    }
    CorePrim prim = step->let->prim == CORE_reduce_max ? CORE_reduce_max_vjp : CORE_reduce_min_vjp;
    CoreLetId operands[] = {x, unkept(step, full(step))};
    CoreAttr attr = {.axes = step->let->attr->axes};
    ad_reach(s, x, ad_emit(s, prim, 2, operands, &attr, 0));
}

static void derive_square_sum(const Step *step) {
    AdSweep *s = step->s;
    CoreLetId x = step->x[0];
    ad_reach(s, x, MUL(spread(step, step->ct), MUL(NUMBER("2"), x)));
    ad_reach(s, step->x[1], step->ct);
}

static void derive_row(const Step *step) {
    AdSweep *s = step->s;
    CoreLetId x = step->x[0], ct = full(step);
    CoreAttr row = {.axis = step->let->attr->axis};
    switch (step->let->prim) {
    case CORE_softmax:
        ct = ad_emit(s, CORE_softmax_vjp, 2, (CoreLetId[]){step->y, ct}, &row, 0);
        break;
    case CORE_logsumexp:
        ct = MUL(spread(step, ct), ad_emit(s, CORE_softmax, 1, &x, &row, 0));
        break;
    case CORE_log_softmax: {
        CoreAttr sum = {.axes = UINT64_C(1) << row.axis, .keep = true};
        ct = SUB(ct, MUL(OF(exp, step->y), ad_emit(s, CORE_sum, 1, &ct, &sum, 0)));
        break;
    }
    case CORE_cross_entropy:
        ct = ad_emit(s, CORE_cross_entropy_vjp, 3, (CoreLetId[]){x, step->x[1], ct}, &row, 0);
        break;
    default:
        bug("no derivative of the row `%s`", core_prims[step->let->prim].text);
    }
    ad_reach(s, x, ct);
}

// ---- products and moves ---------------------------------------------------------------------

static void derive_dot(const Step *step) {
    CoreLetId ct = full(step), x = step->x[0], w = step->x[1];
    if (wanted(step, 0))
        ad_reach(
            step->s, x,
            ad_emit(step->s, CORE_dot_vjp_l, 2, (CoreLetId[]){ct, w}, NULL, operand_type(step, 0)));
    if (wanted(step, 1))
        ad_reach(
            step->s, w,
            ad_emit(step->s, CORE_dot_vjp_r, 2, (CoreLetId[]){x, ct}, NULL, operand_type(step, 1)));
}

// Labels numbered anew by first appearance in the operands.
static void renumber(uint8_t *label, uint8_t *number, uint32_t *next) {
    if (number[*label] == UINT8_MAX)
        number[*label] = (uint8_t)(*next)++;
    *label = number[*label];
}

static bool has_label(const uint8_t *labels, uint32_t rank, uint8_t label) {
    return memchr(labels, label, rank) != NULL;
}

// The cotangent of one operand of an ein is an ein of the cotangent and the other operand. Of
// these, the one that alone carries the result's last axis stands second, so that this axis is the
// product's J and lies as it is stored.
static CoreLetId ein_cotangent(const Step *step, CoreLetId ct, uint32_t operand) {
    AdSweep *s = step->s;
    const CoreAttr *attr = step->let->attr;
    uint32_t other = 1 - operand, rank[3];
    rank[2] = core_type(s->program, operand_type(step, operand))->rank;
    rank[1] = core_type(s->program, operand_type(step, other))->rank;
    rank[0] = core_type(s->program, step->let->type)->rank;
    const uint8_t *from[3] = {attr->labels[2], attr->labels[other], attr->labels[operand]};
    CoreLetId x[2] = {ct, step->x[other]};
    if (rank[2] && !has_label(from[1], rank[1], from[2][rank[2] - 1])) {
        x[0] = step->x[other], x[1] = ct;
        from[0] = attr->labels[other], from[1] = attr->labels[2];
        uint32_t first = rank[0];
        rank[0] = rank[1], rank[1] = first;
    }
    uint8_t number[UINT8_MAX + 1];
    memset(number, UINT8_MAX, sizeof number);
    CoreAttr mine = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < 3; i++) {
        uint8_t *labels = arena_copy(s->arena, from[i], rank[i]);
        for (uint32_t j = 0; j < rank[i]; j++)
            renumber(&labels[j], number, &next);
        mine.labels[i] = labels;
        mine.label_count[i] = (uint8_t)rank[i];
    }
    return ad_emit(s, CORE_ein, 2, x, &mine, 0);
}

static void derive_ein(const Step *step) {
    CoreLetId ct = full(step);
    for (uint32_t i = 0; i < 2; i++)
        if (wanted(step, i))
            ad_reach(step->s, step->x[i], ein_cotangent(step, ct, i));
}

static void derive_permute(const Step *step) {
    CoreLetId ct = full(step);
    uint32_t rank = core_type(step->s->program, step->let->type)->rank;
    uint8_t *order = arena_array(step->s->arena, uint8_t, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        order[step->let->attr->order[i]] = (uint8_t)i;
    CoreAttr attr = {.order_count = (uint8_t)rank, .order = order};
    ad_reach(step->s, step->x[0], ad_emit(step->s, CORE_permute, 1, &ct, &attr, 0));
}

static void derive_indexed(const Step *step) {
    CorePrim prim = step->let->prim == CORE_pick ? CORE_pick_vjp : CORE_scatter_add;
    CoreLetId operands[] = {full(step), step->x[1]};
    ad_reach(step->s, step->x[0],
             ad_emit(step->s, prim, 2, operands, step->let->attr, operand_type(step, 0)));
}

// ---- what backward passes are made of ---------------------------------------------------------

// The value over the operand's reduced axes; `keep`: with extent 1.
static CoreLetId summed(const Step *step, CoreLetId value, bool keep) {
    CoreAttr sum = {.axes = reduced_axes(step->let), .keep = keep};
    return ad_emit(step->s, CORE_sum, 1, &value, &sum, 0);
}

// Linear in both operands, and each derivative is one of the three products again.
static void derive_dot_reverse(const Step *step) {
    bool left = step->let->prim == CORE_dot_vjp_l;
    CoreLetId d = full(step), ct = step->x[left ? 0 : 1], other = step->x[left ? 1 : 0];
    CoreLetId to_ct[] = {left ? d : other, left ? other : d};
    CoreLetId to_other[] = {left ? d : ct, left ? ct : d};
    if (wanted(step, left ? 0 : 1))
        reach_exactly(step, left ? 0 : 1, ad_emit(step->s, CORE_dot, 2, to_ct, NULL, 0));
    if (wanted(step, left ? 1 : 0))
        ad_reach(step->s, other,
                 ad_emit(step->s, left ? CORE_dot_vjp_r : CORE_dot_vjp_l, 2, to_other, NULL,
                         operand_type(step, left ? 1 : 0)));
}

static void derive_indexed_reverse(const Step *step) {
    CorePrim prim = step->let->prim == CORE_pick_vjp ? CORE_pick : CORE_gather;
    CoreLetId operands[] = {full(step), step->x[1]};
    reach_exactly(step, 0, ad_emit(step->s, prim, 2, operands, step->let->attr, 0));
}

// y (ct − Σ ct y): in ct it is its own transpose.
static void derive_softmax_reverse(const Step *step) {
    CoreLetId d = full(step), y = step->x[0], ct = step->x[1];
    if (wanted(step, 0)) {
        CoreLetId rest = SUB(ct, summed(step, MUL(ct, y), true));
        reach(step, 0, SUB(MUL(d, rest), MUL(ct, summed(step, MUL(d, y), true))));
    }
    if (wanted(step, 1))
        reach_exactly(
            step, 1,
            ad_emit(step->s, CORE_softmax_vjp, 2, (CoreLetId[]){y, d}, step->let->attr, 0));
}

// (softmax(x) − one at target) ct
static void derive_cross_entropy_reverse(const Step *step) {
    AdSweep *s = step->s;
    CoreAttr row = {.axis = step->let->attr->axis};
    CoreLetId d = full(step), x = step->x[0], ct = step->x[2];
    CoreLetId y = ad_emit(s, CORE_softmax, 1, &x, &row, 0);
    if (wanted(step, 0)) {
        CoreLetId seen[] = {y, MUL(d, spread_of(step, ct, operand_type(step, 2)))};
        reach_exactly(step, 0, ad_emit(s, CORE_softmax_vjp, 2, seen, &row, 0));
    }
    if (wanted(step, 2)) {
        CoreLetId picked = ad_emit(s, CORE_pick, 2, (CoreLetId[]){d, step->x[1]}, &row, 0);
        reach_exactly(step, 2, SUB(summed(step, MUL(d, y), false), picked));
    }
}

// Linear in ct; x only says where. The place is where a cotangent of ones arrives.
static void derive_extreme_reverse(const Step *step) {
    CoreLetId one = NUMBER("1");
    CoreLetId ones = ad_emit(step->s, CORE_copy, 1, &one, NULL, operand_type(step, 1));
    CoreLetId operands[] = {step->x[0], ones};
    CoreLetId place = ad_emit(step->s, step->let->prim, 2, operands, step->let->attr, 0);
    reach_exactly(step, 1, summed(step, MUL(full(step), place), false));
}

// ---- lets that launch nothing ---------------------------------------------------------------

static void derive_free(const Step *step) {
    AdSweep *s = step->s;
    const CoreAttr *attr = step->let->attr;
    CoreLetId ct = full(step);
    switch (step->let->prim) {
    case CORE_view:
        if (ad_type(s, ct) != operand_type(step, 0))
            ct = ad_emit(s, CORE_view, 1, &ct, NULL, operand_type(step, 0));
        ad_reach(s, step->x[0], ct);
        return;
    case CORE_field:
        ad_reach_field(s, step->x[0], attr->path_count, attr->path, ct);
        return;
    case CORE_item:
        ad_reach_part(s, step->x[0], (uint32_t)attr->number, ct);
        return;
    case CORE_tuple:
        for (uint32_t i = 0; i < step->let->count; i++) {
            CoreLetId operand = core_operand(s->fn, step->y, i);
            CoreAttr part = {.number = i};
            if (s->active[operand])
                ad_reach(s, operand, ad_emit(s, CORE_item, 1, &ct, &part, 0));
        }
        return;
    case CORE_tree:
        for (uint32_t i = 0; i < step->let->count; i++) {
            CoreLetId operand = core_operand(s->fn, step->y, i);
            CoreTree tree = core_type(s->program, step->let->type)->tree;
            Name name = core_tree_part_name(s->program, tree, i);
            CoreAttr part = {.path_count = 1, .path = &name};
            if (s->active[operand])
                ad_reach(s, operand, ad_emit(s, CORE_field, 1, &ct, &part, 0));
        }
        return;
    default:
        return; // parameters, scalars and ranges: the end of the way
    }
}

typedef void (*Derive)(const Step *step);

// Indexed by primitive; null: no derivative. CALL lets are the sweep's own business.
static const Derive derive[CORE_PRIM_COUNT] = {
    [CORE_param] = derive_free,
    [CORE_scalar] = derive_free,
    [CORE_field] = derive_free,
    [CORE_view] = derive_free,
    [CORE_range] = derive_free,
    [CORE_tuple] = derive_free,
    [CORE_item] = derive_free,
    [CORE_tree] = derive_free,
    [CORE_add] = derive_sum,
    [CORE_sub] = derive_sum,
    [CORE_mul] = derive_mul,
    [CORE_div] = derive_div,
    [CORE_neg] = derive_same,
    [CORE_abs] = derive_abs,
    [CORE_min] = derive_extreme,
    [CORE_max] = derive_extreme,
    [CORE_pow] = derive_pow,
    [CORE_sqrt] = derive_function,
    [CORE_rsqrt] = derive_function,
    [CORE_exp] = derive_function,
    [CORE_log] = derive_function,
    [CORE_tanh] = derive_function,
    [CORE_sigmoid] = derive_function,
    [CORE_erf] = derive_function,
    [CORE_gelu] = derive_function,
    [CORE_gelu_tanh] = derive_function,
    [CORE_relu] = derive_relu,
    [CORE_silu] = derive_function,
    [CORE_softplus] = derive_function,
    [CORE_sin] = derive_function,
    [CORE_cos] = derive_function,
    [CORE_select] = derive_select,
    [CORE_copy] = derive_same,
    [CORE_sum] = derive_reduction,
    [CORE_mean] = derive_reduction,
    [CORE_square_sum] = derive_square_sum,
    [CORE_reduce_max] = derive_reduction,
    [CORE_reduce_min] = derive_reduction,
    [CORE_logsumexp] = derive_row,
    [CORE_softmax] = derive_row,
    [CORE_log_softmax] = derive_row,
    [CORE_cross_entropy] = derive_row,
    [CORE_pick] = derive_indexed,
    [CORE_gather] = derive_indexed,
    [CORE_dot] = derive_dot,
    [CORE_ein] = derive_ein,
    [CORE_permute] = derive_permute,
    [CORE_gelu_slope] = derive_function,
    [CORE_gelu_tanh_slope] = derive_function,
    [CORE_dot_vjp_l] = derive_dot_reverse,
    [CORE_dot_vjp_r] = derive_dot_reverse,
    [CORE_pick_vjp] = derive_indexed_reverse,
    [CORE_scatter_add] = derive_indexed_reverse,
    [CORE_softmax_vjp] = derive_softmax_reverse,
    [CORE_cross_entropy_vjp] = derive_cross_entropy_reverse,
    [CORE_reduce_max_vjp] = derive_extreme_reverse,
    [CORE_reduce_min_vjp] = derive_extreme_reverse,
};

// Trees have no comparisons, which these need.
static bool compares_trees(const AdSweep *s, const CoreLet *let) {
    bool compares = let->prim == CORE_relu || let->prim == CORE_abs || let->prim == CORE_min ||
                    let->prim == CORE_max;
    return compares && core_type(s->program, let->type)->kind == CORE_PARAMS;
}

void ad_derive(AdSweep *s, CoreLetId let, CoreLetId ct) {
    Step step = {.s = s, .y = let, .let = core_let(s->fn, let), .ct = ct};
    s->span = step.let->span;
    for (uint32_t i = 0; i < MIN(step.let->count, 3u); i++)
        step.x[i] = core_operand(s->fn, let, i);
    bool trees = compares_trees(s, step.let);
    if (derive[step.let->prim] && !trees) {
        derive[step.let->prim](&step);
        return;
    }
    const Names *names = s->program->context->names;
    Diag *made =
        diag(&s->program->context->diags, E3002, step.let->span, core_prims[step.let->prim].text);
    CoreFnId fn = core_fn_find(s->program, name_str(names, s->fn->name));
    diag_note(made, "the gradient passes through %s%s",
              core_site_text(s->program, fn, let, s->arena).at,
              trees ? ", which works on a parameter tree" : "");
    s->failed = true;
}
