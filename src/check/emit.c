// Making lets: every let of a function body comes from here, with Core's own type rule.
#include "check/internal.h"

ChkValue chk_let_value(CoreLetId let, CoreTypeId type, Span span) {
    return (ChkValue){.kind = CHK_LET, .span = span, .let = let, .type = type};
}

static bool building(ChkBody *body, Span span, const char *what) {
    if (body->core)
        return true;
    diag(body->chk->diags, E1009, span, what);
    return false;
}

ChkValue chk_emit(ChkBody *body, CorePrim prim, Span span, uint32_t count, const ChkValue *operands,
                  const CoreAttr *attr, CoreTypeId type) {
    Chk *chk = body->chk;
    CoreLetId lets[64];
    check_that(count <= COUNT_OF(lets));
    for (uint32_t i = 0; i < count; i++) {
        if (chk_is_poison(&operands[i]))
            return chk_poison(span);
        lets[i] = operands[i].let;
    }
    if (!building(body, span, "a tensor"))
        return chk_poison(span);
    Str why = STR("");
    CoreTypeId rule = core_type_rule(chk->core, body->core, prim, count, lets, attr, type, &why);
    if (!rule) {
        diag(chk->diags, E2010, span, chk_c(why));
        return chk_poison(span);
    }
    if (type && !core_type_same(chk->core, rule, type))
        bug("`%s` has type %s, not %s", core_prims[prim].text, chk_type_text(chk, rule),
            chk_type_text(chk, type));
    type = type ? type : rule;
    CoreLetId let = core_let_add(chk->core, body->core, prim, type, count, lets, attr, 0, span);
    return chk_let_value(let, type, span);
}

ChkValue chk_tensor(ChkBody *body, const ChkValue *value) {
    switch (value->kind) {
    case CHK_POISON:
    case CHK_LET:
        return *value;
    case CHK_SCALAR: {
        CoreAttr attr = {.scalar = value->scalar};
        return chk_emit(body, CORE_scalar, value->span, 0, NULL, &attr, 0);
    }
    case CHK_TUPLE:
    case CHK_FUNCTION:
    case CHK_BUILTIN:
    case CHK_MODULE_NAME:
    case CHK_MOD_VALUE:
    case CHK_UNIT:
        diag(body->chk->diags, E2009, value->span, chk_value_text(body, value));
        return chk_poison(value->span);
    case CHK_LAMBDA:
        diag(body->chk->diags, E1011, value->span);
        return chk_poison(value->span);
    }
    return chk_poison(value->span);
}

bool chk_operand(ChkBody *body, const ChkValue *value, ChkValue *tensor) {
    *tensor = chk_tensor(body, value);
    if (chk_is_poison(tensor))
        return false;
    if (core_type(body->chk->core, tensor->type)->kind <= CORE_IDX)
        return true;
    diag(body->chk->diags, E2009, value->span, chk_value_text(body, value));
    return false;
}

// A leaf or subtree; made once in a function, at its first use. An empty path is the tree itself.
ChkValue chk_field(ChkBody *body, ChkTree tree, Span span) {
    Chk *chk = body->chk;
    if (!building(body, span, "a parameter"))
        return chk_poison(span);
    if (!tree.count)
        return chk_let_value(tree.base, core_let(body->core, tree.base)->type, span);
    uint32_t size = tree.count + 1;
    uint32_t *key = arena_array(chk->arena, uint32_t, size);
    key[0] = tree.base;
    memcpy(key + 1, tree.path, sizeof(Name) * tree.count);
    bool fresh;
    uint32_t *slot = map_slot(body->fields, key, sizeof *key * size, &fresh);
    if (!fresh)
        return chk_let_value(*slot, core_let(body->core, *slot)->type, span);
    ChkValue base = chk_let_value(tree.base, core_let(body->core, tree.base)->type, span);
    CoreAttr attr = {.path_count = tree.count, .path = tree.path};
    ChkValue field = chk_emit(body, CORE_field, span, 1, &base, &attr, 0);
    *slot = field.let;
    return field;
}

// ---- tuples ---------------------------------------------------------------------------------

ChkValue chk_part(ChkBody *body, const ChkValue *tuple, uint32_t index) {
    if (tuple->kind == CHK_TUPLE)
        return tuple->parts[index];
    CoreAttr attr = {.number = index};
    CoreTypeId type = core_type(body->chk->core, tuple->type)->part[index];
    return chk_emit(body, CORE_item, tuple->span, 1, tuple, &attr, type);
}

ChkValue chk_whole(ChkBody *body, const ChkValue *value) {
    if (value->kind != CHK_TUPLE)
        return chk_tensor(body, value);
    if (value->count > 64) {
        diag(body->chk->diags, E2021, value->span, "a tuple of more than 64 parts");
        return chk_poison(value->span);
    }
    ChkValue parts[64];
    CoreTypeId types[64];
    for (uint32_t i = 0; i < value->count; i++) {
        parts[i] = chk_whole(body, &value->parts[i]);
        if (chk_is_poison(&parts[i]))
            return parts[i];
        types[i] = parts[i].type;
    }
    return chk_emit(body, CORE_tuple, value->span, value->count, parts, NULL,
                    core_type_tuple(body->chk->core, value->count, types));
}
