// Expressions: one value for each node.
#include "check/internal.h"

bool chk_enter(ChkBody *body, Span span) {
    Chk *chk = body->chk;
    chk->steps++;
    if (++chk->depth <= CHK_DEPTH_MAX && chk->steps <= CHK_STEPS_MAX)
        return true;
    if (!chk->exhausted)
        diag(chk->diags, E1018, span,
             chk->steps > CHK_STEPS_MAX ? "it elaborates to more than 1,000,000 expressions"
                                        : "expressions and calls nest more than 600 deep");
    chk->exhausted = true;
    return false;
}

void chk_leave(ChkBody *body) {
    body->chk->depth--;
}

// ---- patterns -------------------------------------------------------------------------------

ChkBinding *chk_pattern(ChkBody *body, ChkBinding *scope, SynId pattern, const ChkValue *value) {
    Chk *chk = body->chk;
    const SynNode *node = chk_node(body, pattern);
    if (node->kind == SYN_NAME)
        return chk_bind(chk, scope, node->name, *value);
    if (node->kind == SYN_PATH && node->count == 1)
        return chk_bind(chk, scope, chk_node(body, chk_child(body, pattern, 0))->name, *value);
    if (node->kind != SYN_TUPLE)
        return scope;
    uint32_t parts = value->kind == CHK_TUPLE ? value->count : UINT32_MAX;
    if (value->kind == CHK_LET && core_type(chk->core, value->type)->kind == CORE_TUPLE)
        parts = core_type(chk->core, value->type)->parts;
    bool fits = parts == node->count;
    if (!fits && !chk_is_poison(value)) {
        const char *what = parts == UINT32_MAX
                               ? chk_value_text(body, value)
                               : chk_c(str_format(chk->arena, "a tuple of %u", parts));
        Diag *d = diag(chk->diags, E2021, node->span, what);
        diag_note(d, "the pattern has %u parts", node->count);
    }
    for (uint32_t i = 0; i < node->count; i++) {
        ChkValue part = fits ? chk_part(body, value, i) : chk_poison(node->span);
        scope = chk_pattern(body, scope, chk_child(body, pattern, i), &part);
    }
    return scope;
}

// The let that a source name stands for prints with that name.
static void give_name(ChkBody *body, SynId pattern, const ChkValue *value, uint32_t before) {
    const SynNode *node = chk_node(body, pattern);
    if (node->kind == SYN_PATH && node->count == 1)
        node = chk_node(body, chk_child(body, pattern, 0));
    if (node->kind != SYN_NAME || value->kind != CHK_LET || !body->core || value->let < before)
        return;
    CoreLet *let = &body->core->lets.at[value->let];
    if (!let->name)
        let->name = node->name;
}

static ChkValue lets(ChkBody *body, SynId node) {
    ChkBinding *saved = body->scope;
    while (chk_node(body, node)->kind == SYN_LET) {
        uint32_t before = body->core ? body->core->lets.count : 0;
        SynId pattern = chk_child(body, node, 0);
        ChkValue value = chk_expr(body, chk_child(body, node, 1));
        give_name(body, pattern, &value, before);
        body->scope = chk_pattern(body, body->scope, pattern, &value);
        node = chk_child(body, node, 2);
    }
    ChkValue result = chk_expr(body, node);
    body->scope = saved;
    return result;
}

// ---- operators ------------------------------------------------------------------------------

static bool operator_prim(SynOp op, CorePrim *prim) {
    static const struct {
        SynOp op;
        CorePrim prim;
    } table[] = {{SYN_OP_EQ, CORE_eq},   {SYN_OP_LE, CORE_le},   {SYN_OP_GE, CORE_ge},
                 {SYN_OP_LT, CORE_lt},   {SYN_OP_GT, CORE_gt},   {SYN_OP_ADD, CORE_add},
                 {SYN_OP_SUB, CORE_sub}, {SYN_OP_MUL, CORE_mul}, {SYN_OP_DIV, CORE_div}};
    for (uint32_t i = 0; i < COUNT_OF(table); i++)
        if (table[i].op == op) {
            *prim = table[i].prim;
            return true;
        }
    return false;
}

// `x |> f` is f(x), `x |> f(a)` is f(x, a).
static ChkValue pipe(ChkBody *body, SynId node) {
    SynId right = chk_child(body, node, 1);
    const SynNode *call = chk_node(body, right);
    bool is_call = call->kind == SYN_CALL;
    uint32_t count = is_call ? call->count : 1;
    SynId *args = arena_array(body->chk->arena, SynId, count);
    args[0] = chk_child(body, node, 0);
    for (uint32_t i = 1; i < count; i++)
        args[i] = chk_child(body, right, i);
    ChkValue callee = chk_expr(body, is_call ? chk_child(body, right, 0) : right);
    return chk_call(body, &callee, count, args, chk_node(body, node)->span);
}

// The rational that an operand of `%` is; null after a diagnostic.
static const Rational *rational_operand(ChkBody *body, const ChkValue *value) {
    if (value->kind == CHK_SCALAR) {
        const CoreScalarNode *node = core_scalar(body->chk->core, value->scalar);
        if (node->kind == CORE_SCALAR_RATIONAL)
            return node->rational;
    }
    if (!chk_is_poison(value))
        diag(body->chk->diags, E1009, value->span,
             value->kind == CHK_SCALAR ? "a value that depends on a dimension"
                                       : chk_value_text(body, value));
    return NULL;
}

static ChkValue remainder_of(ChkBody *body, const ChkValue *a, const ChkValue *b, Span span) {
    Chk *chk = body->chk;
    const Rational *left = rational_operand(body, a), *right = rational_operand(body, b);
    if (!left || !right)
        return chk_poison(span);
    const Rational *value = rational_mod(chk->arena, left, right);
    if (!value) {
        diag(chk->diags, E1010, span, "division by zero");
        return chk_poison(span);
    }
    return chk_scalar_value(core_scalar_rational(chk->core, value), span);
}

static ChkValue binary(ChkBody *body, SynId node) {
    const SynNode *operation = chk_node(body, node);
    Span span = operation->span;
    SynOp op = operation->op;
    if (op == SYN_OP_PIPE)
        return pipe(body, node);
    if (op == SYN_OP_ALT) {
        diag(body->chk->diags, E1013, span, "the operator `|`");
        return chk_poison(span);
    }
    ChkValue operands[2] = {chk_expr(body, chk_child(body, node, 0)), {0}};
    bool module = operands[0].kind == CHK_MOD_VALUE || operands[0].kind == CHK_MODULE_NAME;
    if (op == SYN_OP_TENSOR || op == SYN_OP_COMPOSE || (op == SYN_OP_POW && module))
        return chk_mod_operator(body, node, &operands[0]);
    operands[1] = chk_expr(body, chk_child(body, node, 1));
    CorePrim prim;
    if (operator_prim(op, &prim))
        return chk_elementwise(body, prim, 2, operands, span);
    if (op == SYN_OP_POW)
        return chk_power(body, &operands[0], &operands[1], span);
    if (op == SYN_OP_DOT)
        return chk_dot(body, &operands[0], &operands[1], span);
    return remainder_of(body, &operands[0], &operands[1], span);
}

// ---- other forms ----------------------------------------------------------------------------

static ChkValue number(ChkBody *body, SynId node) {
    const SynNode *literal = chk_node(body, node);
    const Rational *value = rational_of_decimal(body->chk->arena, literal->text);
    if (!value) {
        diag(body->chk->diags, E1010, literal->span, "its exponent is beyond ±4096");
        return chk_poison(literal->span);
    }
    return chk_scalar_value(core_scalar_rational(body->chk->core, value), literal->span);
}

static ChkValue tuple(ChkBody *body, SynId node) {
    const SynNode *list = chk_node(body, node);
    ChkValue *parts = arena_array(body->chk->arena, ChkValue, list->count + 1);
    for (uint32_t i = 0; i < list->count; i++)
        parts[i] = chk_expr(body, chk_child(body, node, i));
    return (ChkValue){.kind = CHK_TUPLE, .span = list->span, .count = list->count, .parts = parts};
}

// `M{a, b}`: an instance of a module; `f{n}`: a function at stated dimensions.
static ChkValue instance(ChkBody *body, SynId node) {
    Chk *chk = body->chk;
    const SynNode *inst = chk_node(body, node);
    ChkValue base = chk_expr(body, chk_child(body, node, 0));
    uint32_t count = inst->count - 1;
    SynId *args = arena_array(chk->arena, SynId, count + 1);
    for (uint32_t i = 0; i < count; i++)
        args[i] = chk_child(body, node, i + 1);
    if (base.kind == CHK_MODULE_NAME) {
        const ChkMod *mod = chk_instance(body, base.module, count, args, inst->span);
        return mod ? (ChkValue){.kind = CHK_MOD_VALUE, .span = inst->span, .mod = mod}
                   : chk_poison(inst->span);
    }
    if (base.kind != CHK_FUNCTION || !base.fn) {
        if (!chk_is_poison(&base))
            diag(chk->diags, E1014, base.span, "what stands before `{`",
                 chk_value_text(body, &base), "a module or a function with dimensions");
        return chk_poison(inst->span);
    }
    Extent *dims = arena_array(chk->arena, Extent, count + 1);
    for (uint32_t i = 0; i < count; i++)
        if ((dims[i] = chk_extent_expr(body, args[i])) == EXTENT_NONE)
            return chk_poison(inst->span);
    base.dim_count = count;
    base.dims = dims;
    base.span = inst->span;
    return base;
}

static ChkValue ascription(ChkBody *body, SynId node) {
    Chk *chk = body->chk;
    ChkValue value = chk_expr(body, chk_child(body, node, 0));
    CoreTypeId type = chk_type(body, chk_child(body, node, 1));
    value = chk_accept(body, &value, type, "the expression");
    if (value.kind != CHK_LET || core_type(chk->core, value.type)->kind > CORE_IDX)
        return value;
    // Where the type drops a name, the let must drop it too.
    CoreType own = *core_type(chk->core, core_let(body->core, value.let)->type);
    CoreType now = *core_type(chk->core, value.type);
    for (uint32_t i = 0; i < own.rank; i++)
        if (own.axes[i].name && !now.axes[i].name)
            return chk_emit(body, CORE_view, value.span, 1, &value, NULL, value.type);
    return value;
}

static ChkValue lambda(ChkBody *body, SynId node) {
    return (ChkValue){.kind = CHK_LAMBDA,
                      .span = chk_node(body, node)->span,
                      .node = node,
                      .scope = body->scope,
                      .unit = body->unit};
}

static ChkValue call(ChkBody *body, SynId node) {
    const SynNode *expr = chk_node(body, node);
    SynId *args = arena_array(body->chk->arena, SynId, expr->count);
    for (uint32_t i = 1; i < expr->count; i++)
        args[i - 1] = chk_child(body, node, i);
    ChkValue callee = chk_expr(body, chk_child(body, node, 0));
    return chk_call(body, &callee, expr->count - 1, args, expr->span);
}

static ChkValue field(ChkBody *body, SynId node) {
    const SynNode *expr = chk_node(body, node);
    ChkValue base = chk_expr(body, chk_child(body, node, 0));
    ChkValue value = chk_member(body, &base, expr->name, expr->name_span);
    value.span = expr->span;
    return value;
}

static ChkValue expression(ChkBody *body, SynId node) {
    const SynNode *expr = chk_node(body, node);
    switch (expr->kind) {
    case SYN_NUMBER:
        return number(body, node);
    case SYN_PATH:
        return chk_path(body, node);
    case SYN_NAME:
        return chk_lookup(body, expr->name, expr->span);
    case SYN_LET:
        return lets(body, node);
    case SYN_LAMBDA:
        return lambda(body, node);
    case SYN_CALL:
        return call(body, node);
    case SYN_FIELD:
        return field(body, node);
    case SYN_INDEX:
        return chk_gather(body, node);
    case SYN_INST:
        return instance(body, node);
    case SYN_EIN:
        return chk_ein(body, node);
    case SYN_BINARY:
        return binary(body, node);
    case SYN_UNARY: {
        ChkValue operand = chk_expr(body, chk_child(body, node, 0));
        return chk_elementwise(body, CORE_neg, 1, &operand, expr->span);
    }
    case SYN_ASCRIBE:
        return ascription(body, node);
    case SYN_TUPLE:
        return tuple(body, node);
    case SYN_ABSENT:
        return chk_poison(expr->span);
    default:
        diag(body->chk->diags, E1012, expr->span,
             expr->kind == SYN_STRING || expr->kind == SYN_STREAM ? "a string" : "an axis list");
        return chk_poison(expr->span);
    }
}

ChkValue chk_expr(ChkBody *body, SynId node) {
    Span span = chk_node(body, node)->span;
    ChkValue value = chk_enter(body, span) ? expression(body, node) : chk_poison(span);
    chk_leave(body);
    return value;
}
