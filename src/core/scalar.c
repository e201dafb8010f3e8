// Host scalars: hash-consed expressions that are known before anything is launched.
//
// Two kinds of value. Without a hyperparameter in it a scalar is an exact rational: `+ - * / ^`,
// neg, abs, min, max, relu, copy and comparisons are exact, and what another function (maths)
// gives for its operands rounded once to f64 is from there on exact. With a hyperparameter in it a
// scalar is an f64, every operation rounding once; a ^ n is then computed by squaring, from the
// lowest bit of n. Extents fold among themselves, so an expression of dimensions that is a
// polynomial is always a single extent.
#include "core/tables.h"

enum { SCALAR_POWER_MAX = 1 << 20 };

static CoreScalar intern(CoreProgram *program, const CoreScalarNode *node) {
    struct CoreTables *tables = program->tables;
    Arena *arena = program->arena;
    CoreKey *key = &tables->key;
    key->count = 0;
    vec_push(arena, key, (uint32_t)node->kind);
    if (node->kind == CORE_SCALAR_RATIONAL) {
        Str text = rational_text(arena, node->rational);
        for (uint32_t i = 0; i < text.size; i++)
            vec_push(arena, key, (uint8_t)text.at[i]);
    } else {
        uint64_t power = (uint64_t)node->power;
        const uint32_t words[] = {
            node->extent, node->name, node->function, (uint32_t)power, (uint32_t)(power >> 32),
            node->a,      node->b};
        for (uint32_t i = 0; i < COUNT_OF(words); i++)
            vec_push(arena, key, words[i]);
    }
    uint32_t *slot;
    if (core_key_find(tables->scalar_ids, key, &slot))
        return *slot;
    CoreScalar id = *slot = tables->scalars.count;
    CoreScalarNode *copy = arena_copy(arena, node, sizeof *node);
    if (node->kind == CORE_SCALAR_RATIONAL)
        copy->number = rational_round(node->rational, F64);
    vec_push(arena, &tables->scalars, copy);
    return id;
}

const CoreScalarNode *core_scalar(const CoreProgram *program, CoreScalar scalar) {
    check_that(scalar >= 1 && scalar < program->tables->scalars.count);
    return program->tables->scalars.at[scalar];
}

CoreScalar core_scalar_rational(CoreProgram *program, const Rational *value) {
    return intern(program, &(CoreScalarNode){.kind = CORE_SCALAR_RATIONAL, .rational = value});
}

CoreScalar core_scalar_extent(CoreProgram *program, Extent extent) {
    check_that(extent != EXTENT_NONE && extent != EXTENT_PACK);
    int64_t value;
    if (extent_is_int(program->extents, extent, &value))
        return core_scalar_rational(program, rational_of_int(program->arena, value));
    return intern(program, &(CoreScalarNode){.kind = CORE_SCALAR_EXTENT, .extent = extent});
}

CoreScalar core_scalar_hyper(CoreProgram *program, Name name) {
    return intern(program, &(CoreScalarNode){.kind = CORE_SCALAR_HYPER, .name = name});
}

static const Rational *truth(Arena *arena, bool value) {
    return rational_of_int(arena, value);
}

// The function of exact operands; null: none (division by zero, not finite, too large).
static const Rational *apply_exact(Arena *arena, MthFunction function, int64_t power,
                                   const Rational *a, const Rational *b) {
    int order = b ? rational_compare(a, b) : 0;
    switch (function) {
    case MTH_add:
        return rational_add(arena, a, b);
    case MTH_sub:
        return rational_sub(arena, a, b);
    case MTH_mul:
        return rational_mul(arena, a, b);
    case MTH_div:
        return rational_div(arena, a, b);
    case MTH_neg:
        return rational_neg(arena, a);
    case MTH_abs:
        return rational_abs(arena, a);
    case MTH_copy:
        return a;
    case MTH_pow:
        return rational_pow(arena, a, power);
    case MTH_min:
        return order <= 0 ? a : b;
    case MTH_max:
        return order >= 0 ? a : b;
    case MTH_relu:
        return rational_compare(a, rational_of_int(arena, 0)) > 0 ? a : rational_of_int(arena, 0);
    case MTH_lt:
        return truth(arena, order < 0);
    case MTH_le:
        return truth(arena, order <= 0);
    case MTH_gt:
        return truth(arena, order > 0);
    case MTH_ge:
        return truth(arena, order >= 0);
    case MTH_eq:
        return truth(arena, order == 0);
    default:
        break;
    }
    if (mth_function_arity(function) != 1)
        return NULL;
    double argument = rational_round(a, F64);
    double value = mth_apply(function, 0, F64, &argument);
    return __builtin_isfinite(value) ? rational_of_double(arena, value) : NULL;
}

static const Rational *sized(const Rational *value) {
    return value && rational_size_ok(value) ? value : NULL;
}

static const Rational *power_exact(Arena *arena, const Rational *a, const Rational *b) {
    int64_t exponent;
    return rational_is_int(b, &exponent) ? sized(rational_pow(arena, a, exponent)) : NULL;
}

// Polynomials of dimensions stay extents; 0: not one.
static CoreScalar apply_extents(CoreProgram *program, MthFunction function, CoreScalar a,
                                CoreScalar b) {
    Extent side[2];
    const CoreScalar given[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const CoreScalarNode *node = core_scalar(program, given[i]);
        int64_t value;
        if (node->kind == CORE_SCALAR_EXTENT)
            side[i] = node->extent;
        else if (node->kind == CORE_SCALAR_RATIONAL && rational_is_int(node->rational, &value))
            side[i] = extent_int(program->extents, value);
        else
            return 0;
    }
    Extent result = function == MTH_add   ? extent_add(program->extents, side[0], side[1])
                    : function == MTH_sub ? extent_sub(program->extents, side[0], side[1])
                    : function == MTH_mul ? extent_mul(program->extents, side[0], side[1])
                    : function == MTH_div ? extent_div(program->extents, side[0], side[1])
                                          : EXTENT_NONE;
    return result ? core_scalar_extent(program, result) : 0;
}

static bool is_zero(const CoreScalarNode *node) {
    int64_t value;
    return node->kind == CORE_SCALAR_RATIONAL && rational_is_int(node->rational, &value) &&
           value == 0;
}

CoreScalar core_scalar_apply(CoreProgram *program, MthFunction function, int64_t power,
                             CoreScalar a, CoreScalar b) {
    const CoreScalarNode *left = core_scalar(program, a);
    const CoreScalarNode *right = b ? core_scalar(program, b) : NULL;
    uint32_t arity = mth_function_arity(function);
    check_that(arity == (b ? 2u : 1u));
    if (function == MTH_copy)
        return a;
    if (function == MTH_div && is_zero(right))
        return 0;
    if (left->kind == CORE_SCALAR_RATIONAL && (!b || right->kind == CORE_SCALAR_RATIONAL)) {
        const Rational *value = sized(apply_exact(program->arena, function, power, left->rational,
                                                  b ? right->rational : NULL));
        return value ? core_scalar_rational(program, value) : 0;
    }
    CoreScalar extent = b ? apply_extents(program, function, a, b) : 0;
    if (extent)
        return extent;
    return intern(program, &(CoreScalarNode){.kind = CORE_SCALAR_APPLY,
                                             .function = function,
                                             .power = function == MTH_pow ? power : 0,
                                             .a = a,
                                             .b = b});
}

CoreScalar core_scalar_power(CoreProgram *program, CoreScalar a, CoreScalar b) {
    const CoreScalarNode *left = core_scalar(program, a), *right = core_scalar(program, b);
    if (left->kind == CORE_SCALAR_RATIONAL && right->kind == CORE_SCALAR_RATIONAL) {
        const Rational *value = power_exact(program->arena, left->rational, right->rational);
        return value ? core_scalar_rational(program, value) : 0;
    }
    int64_t power;
    if (right->kind == CORE_SCALAR_RATIONAL && rational_is_int(right->rational, &power))
        return core_scalar_apply(program, MTH_pow, power, a, 0);
    return intern(program, &(CoreScalarNode){.kind = CORE_SCALAR_POWER, .a = a, .b = b});
}

CoreScalar core_scalar_substitute(CoreProgram *program, CoreScalar scalar, const Extent *by_dim) {
    CoreScalarNode node = *core_scalar(program, scalar);
    CoreScalar a = 0, b = 0;
    switch (node.kind) {
    case CORE_SCALAR_RATIONAL:
    case CORE_SCALAR_HYPER:
        return scalar;
    case CORE_SCALAR_EXTENT: {
        Extent extent = extent_substitute(program->extents, node.extent, by_dim);
        return extent ? core_scalar_extent(program, extent) : 0;
    }
    case CORE_SCALAR_APPLY:
    case CORE_SCALAR_POWER:
        a = core_scalar_substitute(program, node.a, by_dim);
        b = node.b ? core_scalar_substitute(program, node.b, by_dim) : 0;
        if (!a || (node.b && !b))
            return 0;
        return node.kind == CORE_SCALAR_APPLY
                   ? core_scalar_apply(program, node.function, node.power, a, b)
                   : core_scalar_power(program, a, b);
    }
    bug("a scalar of unknown kind");
}

// ---- values ---------------------------------------------------------------------------------

// Exact where `exact` is set; `number` is the f64, or what the exact value rounds to.
typedef struct Value {
    const Rational *exact;
    double number;
} Value;

typedef struct Evaluation {
    CoreProgram *program;
    Arena *arena; // of exact values on the way; null until there is one
    const int64_t *by_dim;
    CoreHyper hyper;
    void *data;
} Evaluation;

static bool evaluate(Evaluation *e, CoreScalar scalar, Value *value);

// From those that lie idle: a hyperparameter's value may ask for another scalar meanwhile.
static Arena *arena_of(Evaluation *e) {
    CoreProgram *program = e->program;
    if (!e->arena && program->idle.count)
        e->arena = program->idle.at[--program->idle.count];
    else if (!e->arena)
        e->arena = arena_new(arena_heap(program->arena), "scalar");
    return e->arena;
}

static bool set_exact(Value *value, const Rational *exact) {
    value->exact = exact;
    value->number = exact ? rational_round(exact, F64) : 0;
    return exact != NULL;
}

// a ^ n in f64 by squaring, from the lowest bit of n.
static double power_number(double a, int64_t n) {
    double result = 1;
    for (double square = a; n; n >>= 1) {
        if (n & 1)
            result *= square;
        if (n > 1)
            square *= square;
    }
    return result;
}

static bool evaluate_power(Evaluation *e, const Value *a, const Value *b, Value *value) {
    if (a->exact && b->exact)
        return set_exact(value, power_exact(arena_of(e), a->exact, b->exact));
    double exponent = b->number;
    if (!(exponent >= 0 && exponent <= (double)SCALAR_POWER_MAX) ||
        exponent != (double)(int64_t)exponent)
        return false;
    value->number = power_number(a->number, (int64_t)exponent);
    return true;
}

static bool evaluate_apply(Evaluation *e, const CoreScalarNode *node, const Value *a,
                           const Value *b, Value *value) {
    if (a->exact && (!node->b || b->exact))
        return set_exact(value, sized(apply_exact(arena_of(e), node->function, node->power,
                                                  a->exact, node->b ? b->exact : NULL)));
    if (node->function == MTH_pow) {
        if (node->power < 0)
            return false;
        value->number = power_number(a->number, node->power);
        return true;
    }
    const double arguments[2] = {a->number, node->b ? b->number : 0};
    value->number = mth_apply(node->function, 0, F64, arguments);
    return true;
}

static bool evaluate(Evaluation *e, CoreScalar scalar, Value *value) {
    const CoreScalarNode *node = core_scalar(e->program, scalar);
    Value a = {0}, b = {0};
    int64_t extent;
    *value = (Value){0};
    switch (node->kind) {
    case CORE_SCALAR_RATIONAL:
        *value = (Value){node->rational, node->number};
        return true;
    case CORE_SCALAR_EXTENT:
        if (!extent_value(e->program->extents, node->extent, e->by_dim, &extent, NULL))
            return false;
        return set_exact(value, rational_of_int(arena_of(e), extent));
    case CORE_SCALAR_HYPER:
        return e->hyper && e->hyper(e->data, node->name, &value->number);
    case CORE_SCALAR_APPLY:
    case CORE_SCALAR_POWER:
        if (!evaluate(e, node->a, &a) || (node->b && !evaluate(e, node->b, &b)))
            return false;
        return node->kind == CORE_SCALAR_POWER ? evaluate_power(e, &a, &b, value)
                                               : evaluate_apply(e, node, &a, &b, value);
    }
    bug("a scalar of unknown kind");
}

bool core_scalar_value(CoreProgram *program, CoreScalar scalar, const int64_t *by_dim,
                       CoreHyper hyper, void *data, DType type, double *value) {
    Evaluation e = {program, NULL, by_dim, hyper, data};
    Value result;
    bool ok = evaluate(&e, scalar, &result);
    if (ok && result.exact)
        *value = rational_round(result.exact, type);
    else if (ok)
        *value = type == F32    ? (double)(float)result.number
                 : type == BF16 ? (double)f32_of_bf16(bf16_of_f64(result.number))
                                : result.number;
    if (e.arena) {
        arena_reset(e.arena);
        vec_push(program->arena, &program->idle, e.arena);
    }
    return ok;
}

// ---- text -----------------------------------------------------------------------------------

static const char *infix(const CoreScalarNode *node) {
    if (node->kind == CORE_SCALAR_POWER)
        return " ^ ";
    if (node->kind != CORE_SCALAR_APPLY)
        return NULL;
    switch (node->function) {
    case MTH_add:
        return " + ";
    case MTH_sub:
        return " - ";
    case MTH_mul:
        return " * ";
    case MTH_div:
        return " / ";
    case MTH_pow:
        return " ^ ";
    default:
        return NULL;
    }
}

// An operand of an infix operator: in parentheses where it is one itself, or is negative and does
// not begin a sum or product.
static void operand_write(const CoreProgram *program, CoreScalar scalar, bool begins,
                          const Name *names, StrBuf *buf) {
    const CoreScalarNode *node = core_scalar(program, scalar);
    const Rational *zero = rational_of_int(program->arena, 0);
    bool wrap = infix(node) || (!begins && node->kind == CORE_SCALAR_RATIONAL &&
                                rational_compare(node->rational, zero) < 0);
    buf_text(buf, wrap ? "(" : "");
    core_scalar_write(program, scalar, names, buf);
    buf_text(buf, wrap ? ")" : "");
}

static void apply_write(const CoreProgram *program, const CoreScalarNode *node, const Name *names,
                        StrBuf *buf) {
    const char *symbol = infix(node);
    if (!symbol) {
        buf_format(buf, "%s(", mth_function_text(node->function));
        core_scalar_write(program, node->a, names, buf);
        if (node->b) {
            buf_text(buf, ", ");
            core_scalar_write(program, node->b, names, buf);
        }
        buf_char(buf, ')');
        return;
    }
    operand_write(program, node->a, symbol[1] != '^', names, buf);
    buf_text(buf, symbol);
    if (node->b)
        operand_write(program, node->b, false, names, buf);
    else if (node->power < 0)
        buf_format(buf, "(%lld)", (long long)node->power);
    else
        buf_format(buf, "%lld", (long long)node->power);
}

// Rationals as they are ("1/8"), one dimension bare, a polynomial in brackets, a hyperparameter
// after "@".
void core_scalar_write(const CoreProgram *program, CoreScalar scalar, const Name *names,
                       StrBuf *buf) {
    const CoreScalarNode *node = core_scalar(program, scalar);
    switch (node->kind) {
    case CORE_SCALAR_RATIONAL:
        buf_add(buf, rational_text(program->arena, node->rational));
        return;
    case CORE_SCALAR_EXTENT: {
        StrBuf extent = {.arena = program->arena};
        extent_write(program->extents, node->extent, names, &extent);
        bool simple = !memchr(extent.at, ' ', extent.size) && extent.at[0] != '-';
        buf_format(buf, simple ? "%s" : "[%s]", buf_str(&extent).at);
        return;
    }
    case CORE_SCALAR_HYPER:
        buf_format(buf, "@%s", name_c(program->context->names, node->name));
        return;
    case CORE_SCALAR_APPLY:
    case CORE_SCALAR_POWER:
        apply_write(program, node, names, buf);
        return;
    }
}

Str core_scalar_text(const CoreProgram *program, CoreScalar scalar, Arena *arena) {
    StrBuf buf = {.arena = arena};
    core_scalar_write(program, scalar, NULL, &buf);
    return buf_str(&buf);
}
