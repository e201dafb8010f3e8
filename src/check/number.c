// Numbers known before a run: constants (exact rationals), dimensions, and extents made of them.
//
// A constant expression gives a host scalar (core_scalar_…). Where an extent is wanted, the scalar
// is read back as a polynomial: sums and products of integers and dimensions, division where exact.
#include "check/internal.h"

ChkBody chk_constant_body(Chk *chk, ChkUnit *unit) {
    return (ChkBody){.chk = chk, .unit = unit};
}

ChkValue chk_scalar_value(CoreScalar scalar, Span span) {
    if (!scalar)
        return chk_poison(span);
    return (ChkValue){.kind = CHK_SCALAR, .span = span, .scalar = scalar};
}

// ---- declarations ---------------------------------------------------------------------------

// The text of --const NAME=…: an optional sign and a decimal. Null: malformed.
static const Rational *command_line_value(Chk *chk, Str text) {
    bool negative = text.size && text.at[0] == '-';
    Str digits = negative ? str_copy(chk->arena, text.at + 1, text.size - 1) : text;
    bool point = false, exponent = false;
    for (uint32_t i = 0; i < digits.size; i++) {
        char c = digits.at[i];
        bool digit = c >= '0' && c <= '9';
        bool after_e = i && (digits.at[i - 1] == 'e' || digits.at[i - 1] == 'E');
        if (digit || (c == '_' && i) || ((c == '+' || c == '-') && after_e))
            continue;
        if (c == '.' && i && !point && !exponent)
            point = true;
        else if ((c == 'e' || c == 'E') && i && !exponent)
            exponent = true;
        else
            return NULL;
    }
    char last = digits.size ? digits.at[digits.size - 1] : 'e';
    if (last < '0' || last > '9')
        return NULL;
    const Rational *value = rational_of_decimal(chk->arena, digits);
    return value && negative ? rational_neg(chk->arena, value) : value;
}

void chk_command_line(Chk *chk) {
    const ChkUnit *root = chk->units.at[0];
    Names *names = chk->context->names;
    for (uint32_t i = 0; i < chk->const_count; i++) {
        const ChkConst *given = &chk->consts[i];
        Name name = name_of(names, given->name);
        ChkDecl *decl = chk_find(root, name);
        if (decl && decl->kind == CHK_CONST) {
            const Rational *value = command_line_value(chk, given->value);
            if (!value)
                diag(chk->diags, E1021, (Span){0}, chk_c(given->name), chk_c(given->value));
            decl->state = value ? CHK_DONE : CHK_FAILED;
            decl->scalar = value ? core_scalar_rational(chk->core, value) : 0;
            continue;
        }
        Diag *d = diag(chk->diags, E1006, (Span){0}, chk_c(given->name));
        Vec(Name) candidates = {0};
        for (uint32_t j = 0; j < root->decls.count; j++)
            if (root->decls.at[j]->kind == CHK_CONST)
                vec_push(chk->arena, &candidates, root->decls.at[j]->name);
        if (decl && decl->kind == CHK_DIM)
            diag_help(d, "it is a dimension: --dim %s=%s", chk_c(given->name), chk_c(given->value));
        else
            chk_suggest(chk, d, name, candidates.count, candidates.at);
    }
}

CoreScalar chk_const(Chk *chk, ChkDecl *decl) {
    if (decl->state == CHK_DONE || decl->state == CHK_FAILED)
        return decl->scalar;
    if (decl->state == CHK_OPEN) {
        diag(chk->diags, E1007, decl->span, chk_name(chk, decl->name));
        decl->state = CHK_FAILED;
        return 0;
    }
    decl->state = CHK_OPEN;
    ChkBody body = chk_constant_body(chk, decl->unit);
    SynId init = syn_child(decl->unit->tree, decl->node, 1);
    const Rational *value = chk_rational_expr(&body, init);
    if (decl->state == CHK_FAILED)
        return 0;
    decl->scalar = value ? core_scalar_rational(chk->core, value) : 0;
    SynId type = syn_child(decl->unit->tree, decl->node, 0);
    const SynNode *stated = syn_node(decl->unit->tree, type);
    if (value && (stated->kind == SYN_TYPE_NAME || stated->kind == SYN_TYPE_IDX) &&
        (!rational_is_int(value, NULL) ||
         rational_compare(value, rational_of_int(chk->arena, 0)) < 0)) {
        diag(chk->diags, E2015, stated->span, chk_c(rational_text(chk->arena, value)),
             "not a natural number");
        decl->scalar = 0;
    }
    decl->state = decl->scalar ? CHK_DONE : CHK_FAILED;
    return decl->scalar;
}

CoreScalar chk_dim(Chk *chk, ChkDecl *decl) {
    if (decl->state != CHK_NEW)
        return decl->scalar;
    decl->state = CHK_DONE;
    SynId node = syn_child(decl->unit->tree, decl->node, 0);
    Extent bound = EXTENT_NONE;
    if (node) {
        ChkBody body = chk_constant_body(chk, decl->unit);
        bound = chk_extent_expr(&body, node);
        int64_t value;
        if (bound != EXTENT_NONE && !extent_is_int(chk->extents, bound, &value)) {
            diag(chk->diags, E1009, syn_node(decl->unit->tree, node)->span,
                 "a value that depends on a dimension");
            bound = EXTENT_NONE;
        }
    }
    Dim dim = {.name = decl->name, .bound = bound, .global = true, .span = decl->span};
    decl->scalar =
        core_scalar_extent(chk->core, extent_dim(chk->extents, extent_dim_add(chk->extents, dim)));
    return decl->scalar;
}

void chk_static_assert(Chk *chk, ChkUnit *unit, SynId node) {
    ChkBody body = chk_constant_body(chk, unit);
    SynId condition = syn_child(unit->tree, node, 0);
    const Rational *value = chk_rational_expr(&body, condition);
    if (value && rational_compare(value, rational_of_int(chk->arena, 0)) == 0) {
        const SynNode *test = syn_node(unit->tree, condition);
        Diag *d = diag(chk->diags, E1008, test->span);
        if (test->kind != SYN_BINARY)
            return;
        const Rational *left = chk_rational_expr(&body, syn_child(unit->tree, condition, 0));
        const Rational *right = chk_rational_expr(&body, syn_child(unit->tree, condition, 1));
        if (left && right)
            diag_here(d, "%s on the left, %s on the right", chk_c(rational_text(chk->arena, left)),
                      chk_c(rational_text(chk->arena, right)));
    }
}

// ---- constant expressions -------------------------------------------------------------------

CoreScalar chk_scalar_expr(ChkBody *body, SynId node) {
    ChkBody constant = *body;
    constant.core = NULL;
    ChkValue value = chk_expr(&constant, node);
    if (value.kind == CHK_SCALAR)
        return value.scalar;
    if (!chk_is_poison(&value))
        diag(body->chk->diags, E1009, value.span, chk_value_text(body, &value));
    return 0;
}

const Rational *chk_rational_expr(ChkBody *body, SynId node) {
    CoreScalar scalar = chk_scalar_expr(body, node);
    if (!scalar)
        return NULL;
    const CoreScalarNode *value = core_scalar(body->chk->core, scalar);
    if (value->kind == CORE_SCALAR_RATIONAL)
        return value->rational;
    Diag *d = diag(body->chk->diags, E1009, chk_node(body, node)->span,
                   "a value that depends on a dimension");
    diag_here(d, "%s", chk_c(core_scalar_text(body->chk->core, scalar, body->chk->arena)));
    return NULL;
}

bool chk_int_expr(ChkBody *body, SynId node, int64_t *value) {
    const Rational *rational = chk_rational_expr(body, node);
    if (!rational)
        return false;
    if (rational_is_int(rational, value))
        return true;
    diag(body->chk->diags, E2015, chk_node(body, node)->span,
         chk_c(rational_text(body->chk->arena, rational)), "not an integer");
    return false;
}

static Extent polynomial(Chk *chk, CoreScalar scalar, const char **why);

static Extent power_of(Chk *chk, Extent base, int64_t power) {
    Extent product = extent_int(chk->extents, 1);
    for (int64_t i = 0; i < power && product != EXTENT_NONE; i++)
        product = extent_mul(chk->extents, product, base);
    return product;
}

// Arithmetic of polynomials; NONE with *why.
static Extent polynomial_apply(Chk *chk, const CoreScalarNode *node, const char **why) {
    bool binary = node->function == MTH_add || node->function == MTH_sub ||
                  node->function == MTH_mul || node->function == MTH_div;
    if (!binary && node->function != MTH_neg && node->function != MTH_pow) {
        *why = "not a polynomial of dimensions";
        return EXTENT_NONE;
    }
    Extent a = polynomial(chk, node->a, why);
    Extent b = binary ? polynomial(chk, node->b, why) : extent_int(chk->extents, 0);
    if (a == EXTENT_NONE || b == EXTENT_NONE)
        return EXTENT_NONE;
    *why = node->function == MTH_div ? "not an exact division"
                                     : "too large: its coefficients exceed 63 bits";
    if (node->function == MTH_add)
        return extent_add(chk->extents, a, b);
    if (node->function == MTH_sub)
        return extent_sub(chk->extents, a, b);
    if (node->function == MTH_mul)
        return extent_mul(chk->extents, a, b);
    if (node->function == MTH_div)
        return extent_div(chk->extents, a, b);
    if (node->function == MTH_neg)
        return extent_sub(chk->extents, b, a);
    return power_of(chk, a, node->power);
}

// NONE: not a polynomial; *why then says so.
static Extent polynomial(Chk *chk, CoreScalar scalar, const char **why) {
    CoreScalarNode node = *core_scalar(chk->core, scalar);
    int64_t integer;
    switch (node.kind) {
    case CORE_SCALAR_RATIONAL:
        if (rational_is_int(node.rational, &integer))
            return extent_int(chk->extents, integer);
        *why = "not an integer";
        return EXTENT_NONE;
    case CORE_SCALAR_EXTENT:
        return node.extent;
    case CORE_SCALAR_APPLY:
        return polynomial_apply(chk, &node, why);
    case CORE_SCALAR_HYPER:
    case CORE_SCALAR_POWER:
        break;
    }
    *why = "not known before the run";
    return EXTENT_NONE;
}

Extent chk_extent_of(ChkBody *body, CoreScalar scalar, Span span) {
    Chk *chk = body->chk;
    const char *why = "not an integer";
    Extent extent = polynomial(chk, scalar, &why);
    int64_t value;
    if (extent != EXTENT_NONE && extent_is_int(chk->extents, extent, &value) && value < 0) {
        why = "negative";
        extent = EXTENT_NONE;
    }
    if (extent == EXTENT_NONE)
        diag(chk->diags, E2015, span, chk_c(core_scalar_text(chk->core, scalar, chk->arena)), why);
    return extent;
}

Extent chk_extent_expr(ChkBody *body, SynId node) {
    CoreScalar scalar = chk_scalar_expr(body, node);
    return scalar ? chk_extent_of(body, scalar, chk_node(body, node)->span) : EXTENT_NONE;
}

// ---- arithmetic -----------------------------------------------------------------------------

ChkValue chk_scalar_apply(ChkBody *body, MthFunction function, int64_t power, CoreScalar a,
                          CoreScalar b, Span span) {
    CoreScalar result = core_scalar_apply(body->chk->core, function, power, a, b);
    if (!result) {
        const CoreScalarNode *divisor = b ? core_scalar(body->chk->core, b) : NULL;
        bool zero = function == MTH_div && divisor && divisor->kind == CORE_SCALAR_RATIONAL &&
                    rational_compare(divisor->rational, rational_of_int(body->chk->arena, 0)) == 0;
        diag(body->chk->diags, E1010, span,
             zero ? "division by zero" : "it is not finite, or needs more than 16,384 bits");
    }
    return chk_scalar_value(result, span);
}

// 1 or 0 where the order is known from the constants alone; else POISON without a word.
ChkValue chk_scalar_compare(ChkBody *body, CorePrim prim, CoreScalar a, CoreScalar b, Span span) {
    Chk *chk = body->chk;
    const CoreScalarNode *left = core_scalar(chk->core, a);
    const CoreScalarNode *right = core_scalar(chk->core, b);
    if (left->kind != CORE_SCALAR_RATIONAL || right->kind != CORE_SCALAR_RATIONAL)
        return chk_poison(span);
    int order = rational_compare(left->rational, right->rational);
    bool truth = prim == CORE_lt   ? order < 0
                 : prim == CORE_le ? order <= 0
                 : prim == CORE_gt ? order > 0
                 : prim == CORE_ge ? order >= 0
                                   : order == 0;
    const Rational *value = rational_of_int(chk->arena, truth);
    return chk_scalar_value(core_scalar_rational(chk->core, value), span);
}
