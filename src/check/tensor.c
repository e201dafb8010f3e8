// Views, positions, gathers and contractions.
#include "check/internal.h"

// ---- view and range -------------------------------------------------------------------------

// Elements on each side of the pack: [0] before it (or all, without one), [1] after it.
static bool counts(Chk *chk, const CoreType *type, Extent sides[2]) {
    bool pack = false;
    sides[0] = sides[1] = extent_int(chk->extents, 1);
    for (uint32_t i = 0; i < type->rank; i++) {
        if (type->axes[i].extent == EXTENT_PACK)
            pack = true;
        else
            sides[pack] = extent_mul(chk->extents, sides[pack], type->axes[i].extent);
    }
    return pack;
}

static const char *count_text(const Chk *chk, bool pack, const Extent sides[2]) {
    if (!pack)
        return chk_extent_text(chk, sides[0]);
    return chk_c(str_format(chk->arena, "%s × ... × %s", chk_extent_text(chk, sides[0]),
                            chk_extent_text(chk, sides[1])));
}

ChkValue chk_view(ChkBody *body, uint32_t count, const SynId *args, Span span) {
    Chk *chk = body->chk;
    ChkValue value = chk_expr(body, args[0]);
    ChkValue x = chk_tensor(body, &value);
    const SynNode *list = chk_node(body, args[count - 1]);
    if (list->kind != SYN_AXES) {
        diag(chk->diags, E1014, list->span, "the second argument of `view`", "an expression",
             "an axis list, `[name: extent, …]`");
        return chk_poison(span);
    }
    uint32_t rank;
    CoreAxis axes[RANK_MAX];
    bool good = chk_axes(body, args[1], &rank, axes);
    if (chk_is_poison(&x) || !good)
        return chk_poison(span);
    if (core_type(chk->core, x.type)->kind > CORE_IDX) {
        diag(chk->diags, E2009, x.span, chk_value_text(body, &x));
        return chk_poison(span);
    }
    CoreTypeId type = chk_with_axes(chk, x.type, rank, axes);
    Extent from[2], to[2];
    CoreType old = *core_type(chk->core, x.type), new = *core_type(chk->core, type);
    bool from_pack = counts(chk, &old, from), to_pack = counts(chk, &new, to);
    if (!from[0] || !from[1] || !to[0] || !to[1]) {
        diag(chk->diags, E2016, span, chk_type_text(chk, to[0] && to[1] ? x.type : type));
        return chk_poison(span);
    }
    if (from_pack != to_pack || from[0] != to[0] || from[1] != to[1]) {
        Diag *d =
            diag(chk->diags, E2008, span, chk_type_text(chk, x.type), chk_type_text(chk, type));
        diag_label(d, x.span, "%s elements", count_text(chk, from_pack, from));
        diag_label(d, list->span, "%s elements", count_text(chk, to_pack, to));
        return chk_poison(span);
    }
    return chk_emit(body, CORE_view, span, 1, &x, NULL, type);
}

ChkValue chk_range(ChkBody *body, uint32_t count, const SynId *args, Span span) {
    Chk *chk = body->chk;
    const SynNode *list = chk_node(body, args[count - 1]);
    uint32_t rank;
    CoreAxis axes[RANK_MAX];
    if (list->kind != SYN_AXES || list->count != 1) {
        const char *what = list->kind == SYN_AXES ? "a list of several axes" : "an expression";
        diag(chk->diags, E1014, list->span, "the argument of `range`", what,
             "one axis, `[name: extent]`");
        return chk_poison(span);
    }
    if (!chk_axes(body, args[0], &rank, axes))
        return chk_poison(span);
    if (axes[0].extent == EXTENT_PACK) {
        diag(chk->diags, E2017, list->span);
        return chk_poison(span);
    }
    CoreTypeId type = core_type_idx(chk->core, axes[0].extent, 1, axes);
    return chk_emit(body, CORE_range, span, 0, NULL, NULL, type);
}

// ---- gather ---------------------------------------------------------------------------------

ChkValue chk_gather(ChkBody *body, SynId node) {
    Chk *chk = body->chk;
    const SynNode *index = chk_node(body, node);
    ChkValue base = chk_expr(body, chk_child(body, node, 0));
    ChkValue operands[2] = {chk_tensor(body, &base), {0}};
    if (index->count != 2) {
        diag(chk->diags, E2011, index->span, "one index in `[…]`",
             chk_c(str_format(chk->arena, "%u", index->count - 1)));
        return chk_poison(index->span);
    }
    operands[1] = chk_expr(body, chk_child(body, node, 1));
    if (chk_is_poison(&operands[0]) || chk_is_poison(&operands[1]))
        return chk_poison(index->span);
    CoreType table = *core_type(chk->core, operands[0].type);
    bool good = table.kind <= CORE_IDX && table.rank && table.axes[0].extent != EXTENT_PACK;
    if (!good) {
        diag(chk->diags, E2011, base.span, "a table with a first axis",
             chk_value_text(body, &base));
        return chk_poison(index->span);
    }
    bool is_let = operands[1].kind == CHK_LET;
    CoreType at = is_let ? *core_type(chk->core, operands[1].type) : (CoreType){.kind = CORE_REAL};
    if (at.kind != CORE_IDX || !chk_bound_fits(chk, at.bound, table.axes[0].extent)) {
        const char *wanted = chk_c(str_format(chk->arena, "an index of type idx[%s]",
                                              chk_extent_text(chk, table.axes[0].extent)));
        Diag *d =
            diag(chk->diags, E2011, operands[1].span, wanted, chk_value_text(body, &operands[1]));
        diag_label(d, base.span, "%s", chk_type_text(chk, operands[0].type));
        return chk_poison(index->span);
    }
    uint32_t rank = at.rank + table.rank - 1;
    CoreAxis axes[2 * RANK_MAX];
    memcpy(axes, at.axes, sizeof *axes * at.rank);
    memcpy(axes + at.rank, table.axes + 1, sizeof *axes * (table.rank - 1));
    if (rank > RANK_MAX)
        diag(chk->diags, E2022, index->span, chk_c(str_format(chk->arena, "%u", rank)));
    if (rank > RANK_MAX || !chk_axes_distinct(chk, rank, axes, index->span))
        return chk_poison(index->span);
    return chk_emit(body, CORE_gather, index->span, 2, operands, NULL,
                    chk_with_axes(chk, operands[0].type, rank, axes));
}

// ---- dot ------------------------------------------------------------------------------------

ChkValue chk_dot(ChkBody *body, const ChkValue *left, const ChkValue *right, Span span) {
    Chk *chk = body->chk;
    ChkValue operands[2];
    bool good = chk_operand(body, left, &operands[0]);
    if (!chk_operand(body, right, &operands[1]) || !good)
        return chk_poison(span);
    CoreType x = *core_type(chk->core, operands[0].type),
             w = *core_type(chk->core, operands[1].type);
    Extent last = x.rank ? x.axes[x.rank - 1].extent : EXTENT_NONE;
    Extent first = w.rank ? w.axes[0].extent : EXTENT_NONE;
    if (last != first || last == EXTENT_NONE || last == EXTENT_PACK) {
        Diag *d = diag(chk->diags, E2006, span, chk_type_text(chk, operands[0].type),
                       chk_type_text(chk, operands[1].type));
        diag_label(d, left->span, "last axis: %s", last ? chk_extent_text(chk, last) : "none");
        diag_label(d, right->span, "first axis: %s", first ? chk_extent_text(chk, first) : "none");
        return chk_poison(span);
    }
    uint32_t rank = x.rank + w.rank - 2;
    CoreAxis axes[2 * RANK_MAX];
    memcpy(axes, x.axes, sizeof *axes * (x.rank - 1));
    memcpy(axes + x.rank - 1, w.axes + 1, sizeof *axes * (w.rank - 1));
    if (rank > RANK_MAX)
        diag(chk->diags, E2022, span, chk_c(str_format(chk->arena, "%u", rank)));
    if (rank > RANK_MAX || !chk_axes_distinct(chk, rank, axes, span))
        return chk_poison(span);
    return chk_emit(body, CORE_dot, span, 2, operands, NULL, core_type_real(chk->core, rank, axes));
}
