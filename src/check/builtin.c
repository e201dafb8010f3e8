// The functions of the language (builtin.def): elementwise, reductions, and along an axis.
#include "check/internal.h"

typedef enum Form { ELEMENTWISE, EXTREME, REDUCE, ROW, TARGET, VIEW, RANGE, NORM, GRAD } Form;

struct ChkBuiltin {
    const char *name;
    Form form;
    CorePrim prim;
    uint32_t min, max;
    const char *named;
};

static const ChkBuiltin builtins[] = {
#define BUILTIN(name, form, prim, min, max, named) {#name, form, CORE_##prim, min, max, named},
#include "check/builtin.def"
#undef BUILTIN
};

const ChkBuiltin *chk_builtin_find(const Chk *chk, Name name) {
    for (uint32_t i = 0; i < COUNT_OF(builtins); i++)
        if (str_is(name_str(chk->context->names, name), builtins[i].name))
            return &builtins[i];
    return NULL;
}

uint32_t chk_builtin_names(Chk *chk, Name **names) {
    *names = arena_array(chk->arena, Name, COUNT_OF(builtins));
    for (uint32_t i = 0; i < COUNT_OF(builtins); i++)
        (*names)[i] = name_of_c(chk->context->names, builtins[i].name);
    return COUNT_OF(builtins);
}

// ---- elementwise ----------------------------------------------------------------------------

static bool is_comparison(CorePrim prim) {
    return prim == CORE_lt || prim == CORE_le || prim == CORE_gt || prim == CORE_ge ||
           prim == CORE_eq;
}

static bool is_tree(const Chk *chk, const ChkValue *value) {
    return value->kind == CHK_LET && core_type(chk->core, value->type)->kind == CORE_PARAMS;
}

// Host scalars alone. NULL kind (POISON) without `*done`: it takes lets.
static ChkValue scalars(ChkBody *body, CorePrim prim, uint32_t count, const ChkValue *values,
                        Span span, bool *done) {
    CoreScalar second = count > 1 ? values[1].scalar : 0;
    *done = true;
    if (prim != CORE_select && !is_comparison(prim))
        return chk_scalar_apply(body, core_prim_function(prim), 0, values[0].scalar, second, span);
    ChkValue truth = chk_poison(span);
    if (prim != CORE_select)
        truth = chk_scalar_compare(body, prim, values[0].scalar, second, span);
    *done = !chk_is_poison(&truth);
    return truth;
}

static ChkValue aligned(ChkBody *body, CorePrim prim, uint32_t count, ChkValue *tensors, Span span,
                        const CoreAttr *attr) {
    Chk *chk = body->chk;
    uint32_t rank;
    CoreAxis axes[RANK_MAX];
    for (uint32_t i = 0; i < count; i++)
        if (core_type(chk->core, tensors[i].type)->kind > CORE_IDX)
            return chk_emit(body, prim, span, count, tensors, attr, 0);
    if (!chk_align(body, span, count, tensors, &rank, axes))
        return chk_poison(span);
    CoreTypeId type = is_comparison(prim)
                          ? core_type_idx(chk->core, extent_int(chk->extents, 2), rank, axes)
                          : core_type_real(chk->core, rank, axes);
    return chk_emit(body, prim, span, count, tensors, attr, type);
}

// Whether a value is an idx[2]; else a diagnostic.
static bool is_mask(ChkBody *body, const ChkValue *value, const char *whose) {
    Chk *chk = body->chk;
    int64_t bound;
    if (value->kind == CHK_LET) {
        const CoreType *type = core_type(chk->core, value->type);
        if (type->kind == CORE_IDX && extent_is_int(chk->extents, type->bound, &bound) &&
            bound == 2)
            return true;
    }
    const char *what = chk_c(str_format(chk->arena, "the mask of %s", whose));
    Diag *d = diag(chk->diags, E2003, value->span, what, "idx[2], as comparisons give",
                   chk_value_text(body, value));
    if (value->kind == CHK_LET)
        diag_help(
            d, "compare it, as in `x > 0`; `m * n == 1` is the mask where both `m` and `n` hold");
    return false;
}

// log(softmax(x)) is −inf where log_softmax(x) is finite.
static void warn_log(ChkBody *body, CorePrim prim, const ChkValue *value, Span span) {
    if (prim != CORE_log || value->kind != CHK_LET || !body->core)
        return;
    if (core_let(body->core, value->let)->prim != CORE_softmax)
        return;
    Diag *d = diag(body->chk->diags, W0001, span);
    diag_help(d, "`log_softmax` gives the same without overflow");
}

ChkValue chk_elementwise(ChkBody *body, CorePrim prim, uint32_t count, const ChkValue *values,
                         Span span) {
    ChkValue tensors[3];
    bool all_scalars = true, any_poison = false;
    for (uint32_t i = 0; i < count; i++) {
        all_scalars = all_scalars && values[i].kind == CHK_SCALAR;
        any_poison = any_poison || chk_is_poison(&values[i]);
    }
    if (any_poison)
        return chk_poison(span);
    if (all_scalars) {
        bool done;
        ChkValue result = scalars(body, prim, count, values, span, &done);
        if (done)
            return result;
    }
    warn_log(body, prim, &values[0], span);
    if (prim == CORE_select && !is_mask(body, &values[0], "`where`"))
        return chk_poison(span);
    for (uint32_t i = 0; i < count; i++) {
        tensors[i] = chk_tensor(body, &values[i]);
        if (chk_is_poison(&tensors[i]))
            return chk_poison(span);
    }
    return aligned(body, prim, count, tensors, span, NULL);
}

ChkValue chk_power(ChkBody *body, const ChkValue *base, const ChkValue *exponent, Span span) {
    Chk *chk = body->chk;
    if (chk_is_poison(base) || chk_is_poison(exponent))
        return chk_poison(span);
    const CoreScalarNode *node =
        exponent->kind == CHK_SCALAR ? core_scalar(chk->core, exponent->scalar) : NULL;
    const Rational *value = node && node->kind == CORE_SCALAR_RATIONAL ? node->rational : NULL;
    int64_t power = 0;
    bool integer = value && rational_is_int(value, &power);
    if (base->kind == CHK_SCALAR && exponent->kind == CHK_SCALAR) {
        if (integer)
            return chk_scalar_apply(body, MTH_pow, power, base->scalar, 0, span);
        CoreScalar result = core_scalar_power(chk->core, base->scalar, exponent->scalar);
        if (!result)
            diag(chk->diags, E1010, span, "only whole powers are exact");
        return chk_scalar_value(result, span);
    }
    if (!integer || power < 0 || power > CHK_POWER_MAX) {
        const char *text =
            value ? chk_c(rational_text(chk->arena, value)) : chk_value_text(body, exponent);
        diag(chk->diags, E2013, exponent->span, text);
        return chk_poison(span);
    }
    ChkValue tensor = chk_tensor(body, base);
    CoreAttr attr = {.number = power};
    return chk_is_poison(&tensor) ? tensor : aligned(body, CORE_pow, 1, &tensor, span, &attr);
}

// ---- arguments ------------------------------------------------------------------------------

typedef struct Args {
    const ChkBuiltin *builtin;
    Span span;
    uint32_t count;
    SynId at[12];
    bool keep;
    SynId mask;
} Args;

static bool truth(ChkBody *body, SynId node, bool *value) {
    const SynNode *path = chk_node(body, node);
    Name name = path->kind == SYN_PATH && path->count == 1
                    ? chk_node(body, chk_child(body, node, 0))->name
                    : 0;
    Str word = name_str(body->chk->context->names, name);
    *value = str_is(word, "true");
    if (*value || str_is(word, "false"))
        return true;
    diag(body->chk->diags, E1014, path->span, "`keep`", "an expression", "`true` or `false`");
    return false;
}

static bool named(ChkBody *body, Args *args, SynId id) {
    Chk *chk = body->chk;
    const SynNode *node = chk_node(body, id);
    Str name = name_str(chk->context->names, node->name);
    bool takes = args->builtin->named[0] && str_is(name, args->builtin->named);
    if (takes && str_is(name, "keep"))
        return truth(body, chk_child(body, id, 0), &args->keep);
    if (takes) {
        args->mask = chk_child(body, id, 0);
        return true;
    }
    Diag *d = diag(chk->diags, E2020, node->name_span,
                   chk_c(str_format(chk->arena, "`%s`", args->builtin->name)), name.at);
    if (args->builtin->named[0])
        diag_help(d, "it takes `%s`", args->builtin->named);
    return false;
}

static bool take(ChkBody *body, Args *args, const ChkBuiltin *builtin, uint32_t count,
                 const SynId *nodes, Span span) {
    *args = (Args){.builtin = builtin, .span = span};
    uint32_t plain = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (chk_node(body, nodes[i])->kind == SYN_NAMED) {
            if (!named(body, args, nodes[i]))
                return false;
        } else if (plain++ < COUNT_OF(args->at)) {
            args->at[args->count++] = nodes[i];
        }
    }
    if (plain >= builtin->min && plain <= builtin->max)
        return true;
    Arena *arena = body->chk->arena;
    Str wanted = str_format(arena, "%u to %u arguments", builtin->min, builtin->max);
    diag(body->chk->diags, E2004, span, builtin->name,
         builtin->min == builtin->max ? chk_count(body->chk, builtin->min, "argument")
                                      : chk_c(wanted),
         chk_c(str_format(arena, "%u", plain)));
    return false;
}

// ---- reductions -----------------------------------------------------------------------------

static uint32_t without(const Chk *chk, CoreTypeId id, uint64_t axes, bool keep, CoreAxis *left) {
    const CoreType *type = core_type(chk->core, id);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < type->rank; i++) {
        bool reduced = axes >> i & 1;
        if (reduced && !keep)
            continue;
        left[rank] = type->axes[i];
        if (reduced)
            left[rank].extent = extent_int(chk->extents, 1);
        rank++;
    }
    return rank;
}

static ChkValue reduce(ChkBody *body, const Args *args, const ChkValue *value) {
    Chk *chk = body->chk;
    ChkValue x;
    if (!chk_operand(body, value, &x))
        return chk_poison(args->span);
    CoreType type = *core_type(chk->core, x.type);
    uint64_t axes = args->count > 1 ? 0 : (UINT64_C(1) << type.rank) - 1;
    for (uint32_t i = 1; i < args->count; i++) {
        uint32_t axis;
        if (!chk_axis_argument(body, args->at[i], x.type, &axis))
            return chk_poison(args->span);
        axes |= UINT64_C(1) << axis;
    }
    if (!type.rank)
        return x;
    CoreAxis left[RANK_MAX];
    uint32_t rank = without(chk, x.type, axes, args->keep, left);
    CoreAttr attr = {.axes = axes, .keep = args->keep};
    for (uint32_t i = 0; args->keep && i < type.rank; i++)
        if (type.axes[i].extent == EXTENT_PACK && axes >> i & 1)
            return chk_emit(body, args->builtin->prim, args->span, 1, &x, &attr, 0);
    return chk_emit(body, args->builtin->prim, args->span, 1, &x, &attr,
                    core_type_real(chk->core, rank, left));
}

static ChkValue extreme(ChkBody *body, const Args *args) {
    ChkValue first = chk_expr(body, args->at[0]);
    bool two = args->count == 2 && !args->keep &&
               (first.kind != CHK_LET || is_tree(body->chk, &first) ||
                !chk_is_axis(body, args->at[1], first.type));
    if (!two)
        return chk_is_poison(&first) ? first : reduce(body, args, &first);
    ChkValue values[2] = {first, chk_expr(body, args->at[1])};
    CorePrim prim = args->builtin->prim == CORE_reduce_max ? CORE_max : CORE_min;
    return chk_elementwise(body, prim, 2, values, args->span);
}

// ---- along one axis -------------------------------------------------------------------------

static bool row_axis(ChkBody *body, const Args *args, bool stated, const ChkValue *x,
                     uint32_t *axis) {
    if (stated)
        return chk_axis_argument(body, args->at[1], x->type, axis);
    const CoreType *type = core_type(body->chk->core, x->type);
    *axis = type->rank - 1;
    if (type->rank && type->axes[*axis].extent != EXTENT_PACK)
        return true;
    diag(body->chk->diags, E2005, args->span, chk_type_text(body->chk, x->type), "`last`");
    return false;
}

static bool mask_operand(ChkBody *body, const Args *args, const ChkValue *x, ChkValue *mask) {
    Chk *chk = body->chk;
    ChkValue pair[2] = {*x, chk_expr(body, args->mask)};
    if (chk_is_poison(&pair[1]) || !is_mask(body, &pair[1], "`softmax`"))
        return false;
    CoreTypeId stated = pair[1].type;
    uint32_t rank;
    CoreAxis axes[RANK_MAX];
    if (!chk_align(body, args->span, 2, pair, &rank, axes))
        return false;
    const CoreType *wide = core_type(chk->core, x->type);
    bool same = wide->rank == rank;
    for (uint32_t i = 0; i < rank && same; i++)
        same = wide->axes[i].extent == axes[i].extent;
    if (!same) {
        Diag *d = diag(chk->diags, E2001, args->span, chk_type_text(chk, x->type),
                       chk_type_text(chk, stated));
        diag_note(d, "a mask may not widen what it masks");
        return false;
    }
    *mask = pair[1];
    return true;
}

static ChkValue row(ChkBody *body, const Args *args) {
    Chk *chk = body->chk;
    ChkValue value = chk_expr(body, args->at[0]), operands[2];
    uint32_t axis;
    if (chk_is_poison(&value) || !chk_operand(body, &value, &operands[0]) ||
        !row_axis(body, args, args->count > 1, &operands[0], &axis))
        return chk_poison(args->span);
    if (args->mask && !mask_operand(body, args, &operands[0], &operands[1]))
        return chk_poison(args->span);
    CorePrim prim = args->builtin->prim;
    const CoreType *whole = core_type(chk->core, operands[0].type);
    CoreTypeId type = core_type_real(chk->core, whole->rank, whole->axes);
    if (prim == CORE_logsumexp || prim == CORE_argmax) {
        CoreAxis left[RANK_MAX];
        uint32_t rank = without(chk, type, UINT64_C(1) << axis, args->keep, left);
        Extent extent = core_type(chk->core, type)->axes[axis].extent;
        type = prim == CORE_argmax ? core_type_idx(chk->core, extent, rank, left)
                                   : core_type_real(chk->core, rank, left);
    }
    CoreAttr attr = {.axis = axis, .keep = args->keep};
    return chk_emit(body, prim, args->span, args->mask ? 2 : 1, operands, &attr, type);
}

static ChkValue target(ChkBody *body, const Args *args) {
    Chk *chk = body->chk;
    ChkValue value = chk_expr(body, args->at[0]), operands[2];
    uint32_t axis;
    if (chk_is_poison(&value) || !chk_operand(body, &value, &operands[0]) ||
        !row_axis(body, args, args->count == 3, &operands[0], &axis))
        return chk_poison(args->span);
    ChkValue index = chk_expr(body, args->at[args->count - 1]);
    Extent extent = core_type(chk->core, operands[0].type)->axes[axis].extent;
    CoreAxis left[RANK_MAX];
    uint32_t rank = without(chk, operands[0].type, UINT64_C(1) << axis, false, left);
    CoreTypeId wanted = core_type_idx(chk->core, extent, rank, left);
    const char *what = chk_c(str_format(chk->arena, "the indices of %s", args->builtin->name));
    operands[1] = chk_accept(body, &index, wanted, what);
    CoreAttr attr = {.axis = axis};
    CoreTypeId type = args->builtin->prim == CORE_pick
                          ? chk_with_axes(chk, operands[0].type, rank, left)
                          : core_type_real(chk->core, rank, left);
    return chk_emit(body, args->builtin->prim, args->span, 2, operands, &attr, type);
}

// grad(f): f itself, marked; its call becomes one of the gradient.
static ChkValue gradient(ChkBody *body, const Args *args) {
    ChkValue value = chk_expr(body, args->at[0]);
    if (chk_is_poison(&value))
        return value;
    bool function = value.kind == CHK_FUNCTION && value.fn && !value.gradient && !value.bound;
    if (function) {
        value.gradient = true;
        value.span = args->span;
        return value;
    }
    const char *what = value.gradient ? "a gradient"
                       : value.bound  ? "a function of this module"
                                      : chk_value_text(body, &value);
    Diag *d = diag(body->chk->diags, E3001, value.span, what);
    if (value.bound)
        diag_note(d, "inside its module a function's parameter tree is no argument; outside it is "
                     "the first");
    return chk_poison(args->span);
}

// ---- dispatch -------------------------------------------------------------------------------

// One leaf of a tree as a value.
static ChkValue leaf_of(ChkBody *body, CoreLetId base, Str path, Span span) {
    Vec(Name) names = {0};
    for (const char *at = path.at, *end = path.at + path.size; at < end;) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        size_t size = (size_t)((dot ? dot : end) - at);
        vec_push(body->chk->arena, &names,
                 name_of(body->chk->context->names, (Str){at, (uint32_t)size}));
        at += size + 1;
    }
    return chk_field(body, (ChkTree){base, names.count, names.at}, span);
}

// The root of one running sum of squares: over the leaves of a tree in order, or of one tensor.
static ChkValue norm(ChkBody *body, const Args *args) {
    Chk *chk = body->chk;
    ChkValue value = chk_expr(body, args->at[0]);
    bool tree = is_tree(chk, &value);
    CoreScalar zero = core_scalar_rational(chk->core, rational_of_int(chk->arena, 0));
    ChkValue pair[2], start = chk_scalar_value(zero, args->span);
    if (chk_is_poison(&value) || (!tree && !chk_operand(body, &value, &pair[0])))
        return chk_poison(args->span);
    CoreLeaf *leaves = NULL;
    CoreTree of = core_type(chk->core, value.type)->tree;
    uint32_t count = tree ? core_tree_leaves(chk->core, of, chk->arena, &leaves) : 1;
    pair[1] = chk_tensor(body, &start);
    for (uint32_t i = 0; i < count && !chk_is_poison(&pair[1]); i++) {
        if (tree)
            pair[0] = leaf_of(body, value.let, leaves[i].path, args->span);
        CoreAttr attr = {.axes = (UINT64_C(1) << core_type(chk->core, pair[0].type)->rank) - 1};
        pair[1] = chk_emit(body, CORE_square_sum, args->span, 2, pair, &attr, 0);
    }
    return chk_elementwise(body, CORE_sqrt, 1, &pair[1], args->span);
}

ChkValue chk_builtin_call(ChkBody *body, const ChkBuiltin *builtin, uint32_t count,
                          const SynId *nodes, Span span) {
    Args args;
    if (!take(body, &args, builtin, count, nodes, span))
        return chk_poison(span);
    switch (builtin->form) {
    case ELEMENTWISE: {
        ChkValue values[3];
        for (uint32_t i = 0; i < args.count; i++)
            values[i] = chk_expr(body, args.at[i]);
        return chk_elementwise(body, builtin->prim, args.count, values, span);
    }
    case EXTREME:
        return extreme(body, &args);
    case REDUCE: {
        ChkValue value = chk_expr(body, args.at[0]);
        return chk_is_poison(&value) ? value : reduce(body, &args, &value);
    }
    case ROW:
        return row(body, &args);
    case TARGET:
        return target(body, &args);
    case VIEW:
        return chk_view(body, args.count, args.at, span);
    case RANGE:
        return chk_range(body, args.count, args.at, span);
    case NORM:
        return norm(body, &args);
    case GRAD:
        return gradient(body, &args);
    }
    return chk_poison(span);
}
