// Alignment of the operands of an elementwise operation, so that Core, which aligns from the right,
// means what the language says.
//
// Where every axis of every operand is named, axes are aligned by name: the result has the union in
// order of first appearance, and operands are permuted and viewed to fit. Otherwise they are
// aligned from the right: equal extents or 1, the named side's name; `...` meets only itself. A
// tensor without axes goes with everything.
#include "check/internal.h"

int chk_axis_find(const CoreType *type, Name name) {
    for (uint32_t i = 0; i < type->rank; i++)
        if (name && type->axes[i].name == name)
            return (int)i;
    return -1;
}

static bool is_one(const Chk *chk, Extent extent) {
    int64_t value;
    return extent != EXTENT_PACK && extent_is_int(chk->extents, extent, &value) && value == 1;
}

static bool all_named(const CoreType *type) {
    for (uint32_t i = 0; i < type->rank; i++)
        if (!type->axes[i].name)
            return false;
    return true;
}

static Diag *mismatch(ChkBody *body, Span span, const ChkValue *a, const ChkValue *b, bool names,
                      const char *why) {
    Chk *chk = body->chk;
    const char *left = chk_type_text(chk, a->type), *right = chk_type_text(chk, b->type);
    Diag *d = names ? diag(chk->diags, E2002, span, left, right)
                    : diag(chk->diags, E2001, span, left, right);
    diag_label(d, a->span, "%s", chk_type_text(chk, a->type));
    diag_label(d, b->span, "%s", chk_type_text(chk, b->type));
    diag_note(d, "%s", why);
    return d;
}

// Joins axis b (of operand `value`) into *a. `first` is an operand for the message.
static bool join(ChkBody *body, Span span, const ChkValue *first, const ChkValue *value,
                 CoreAxis *a, CoreAxis b) {
    Chk *chk = body->chk;
    if (a->name && b.name && a->name != b.name) {
        const char *why = chk_c(str_format(chk->arena, "%s stands against %s",
                                           chk_name(chk, a->name), chk_name(chk, b.name)));
        Diag *d = mismatch(body, span, first, value, true, why);
        diag_help(d, "name every axis of both, and they are aligned by name; `view` names axes");
        return false;
    }
    if (a->extent != b.extent && is_one(chk, a->extent) && b.extent != EXTENT_PACK)
        a->extent = b.extent;
    else if (a->extent != b.extent && (!is_one(chk, b.extent) || a->extent == EXTENT_PACK)) {
        Name name = a->name ? a->name : b.name;
        const char *why = chk_c(str_format(
            chk->arena, "extent %s against %s%s%s", chk_extent_text(chk, a->extent),
            chk_extent_text(chk, b.extent), name ? " on axis " : "", chk_name(chk, name)));
        mismatch(body, span, first, value, false, why);
        return false;
    }
    if (!a->name)
        a->name = b.name;
    return true;
}

static bool too_many(ChkBody *body, Span span, uint32_t rank) {
    if (rank <= RANK_MAX)
        return false;
    diag(body->chk->diags, E2022, span, chk_c(str_format(body->chk->arena, "%u", rank)));
    return true;
}

static bool align_right(ChkBody *body, Span span, uint32_t count, const ChkValue *values,
                        uint32_t *rank, CoreAxis *axes) {
    const ChkValue *widest = values;
    for (uint32_t i = 0; i < count; i++)
        if (core_type(body->chk->core, values[i].type)->rank >
            core_type(body->chk->core, widest->type)->rank)
            widest = &values[i];
    CoreType wide = *core_type(body->chk->core, widest->type);
    *rank = wide.rank;
    for (uint32_t i = 0; i < wide.rank; i++)
        axes[i] = wide.axes[i];
    for (uint32_t i = 0; i < count; i++) {
        CoreType type = *core_type(body->chk->core, values[i].type);
        const ChkValue *left = &values[i] < widest ? &values[i] : widest;
        const ChkValue *right = &values[i] < widest ? widest : &values[i];
        for (uint32_t j = 0; j < type.rank; j++)
            if (!join(body, span, left, right, &axes[wide.rank - type.rank + j], type.axes[j]))
                return false;
    }
    return chk_axes_distinct(body->chk, *rank, axes, span);
}

static bool align_names(ChkBody *body, Span span, uint32_t count, ChkValue *values, uint32_t *rank,
                        CoreAxis *axes) {
    Chk *chk = body->chk;
    const ChkValue *owner[RANK_MAX]; // who brought the axis
    *rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        CoreType type = *core_type(chk->core, values[i].type);
        uint32_t before = *rank, shared = 0;
        for (uint32_t j = 0; j < type.rank; j++) {
            uint32_t at = 0;
            while (at < *rank && axes[at].name != type.axes[j].name)
                at++;
            if (at < *rank) {
                shared++;
                if (!join(body, span, owner[at], &values[i], &axes[at], type.axes[j]))
                    return false;
                continue;
            }
            if (too_many(body, span, *rank + 1))
                return false;
            owner[*rank] = &values[i];
            axes[(*rank)++] = type.axes[j];
        }
        if (before && type.rank && !shared && type.kind != CORE_IDX &&
            core_type(chk->core, owner[0]->type)->kind != CORE_IDX) {
            Diag *d = diag(chk->diags, W0002, span, chk_type_text(chk, owner[0]->type),
                           chk_type_text(chk, values[i].type));
            diag_help(d, "an outer product that is meant is spelled `ein[…](a * b)`");
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        values[i] = chk_fit(body, &values[i], *rank, axes);
        if (chk_is_poison(&values[i]))
            return false;
    }
    return true;
}

bool chk_align(ChkBody *body, Span span, uint32_t count, ChkValue *values, uint32_t *rank,
               CoreAxis *axes) {
    bool named = true;
    for (uint32_t i = 0; i < count; i++)
        named = named && all_named(core_type(body->chk->core, values[i].type));
    return named ? align_names(body, span, count, values, rank, axes)
                 : align_right(body, span, count, values, rank, axes);
}

ChkValue chk_fit(ChkBody *body, const ChkValue *value, uint32_t rank, const CoreAxis *axes) {
    Chk *chk = body->chk;
    CoreType type = *core_type(chk->core, value->type);
    if (!type.rank)
        return *value;
    uint8_t order[RANK_MAX];
    CoreAxis permuted[RANK_MAX], fitted[RANK_MAX];
    uint32_t count = 0, first = rank;
    bool in_order = true;
    for (uint32_t i = 0; i < rank; i++) {
        int at = chk_axis_find(&type, axes[i].name);
        if (at >= 0) {
            first = first == rank ? i : first;
            in_order = in_order && (uint32_t)at == count;
            order[count] = (uint8_t)at;
            permuted[count++] = type.axes[at];
        }
        fitted[i] = at >= 0 ? type.axes[at] : (CoreAxis){axes[i].name, extent_int(chk->extents, 1)};
    }
    check_that(count == type.rank);
    ChkValue result = *value;
    if (!in_order) {
        CoreAttr attr = {.order_count = (uint8_t)count, .order = order};
        result = chk_emit(body, CORE_permute, value->span, 1, &result, &attr,
                          chk_with_axes(chk, value->type, count, permuted));
    }
    if (chk_is_poison(&result) || count == rank - first)
        return result;
    return chk_emit(body, CORE_view, value->span, 1, &result, NULL,
                    chk_with_axes(chk, value->type, rank - first, fitted + first));
}

// ---- axis arguments -------------------------------------------------------------------------

static Name axis_word(ChkBody *body, SynId node) {
    const SynNode *path = chk_node(body, node);
    if (path->kind == SYN_NAME)
        return path->name;
    return path->kind == SYN_PATH && path->count == 1
               ? chk_node(body, chk_child(body, node, 0))->name
               : 0;
}

// Whether an argument of `max`, `min` … is an axis of the type rather than a value.
bool chk_is_axis(ChkBody *body, SynId node, CoreTypeId type) {
    Name name = axis_word(body, node);
    if (!name)
        return false;
    if (chk_axis_find(core_type(body->chk->core, type), name) >= 0)
        return true;
    for (const ChkBinding *b = body->scope; b; b = b->next)
        if (b->name == name)
            return false;
    return name == body->chk->n_last;
}

bool chk_axis_argument(ChkBody *body, SynId node, CoreTypeId type, uint32_t *axis) {
    Chk *chk = body->chk;
    const CoreType *tensor = core_type(chk->core, type);
    Name name = axis_word(body, node);
    int at = chk_axis_find(tensor, name);
    if (at < 0 && name && name == chk->n_last)
        at = (int)tensor->rank - 1;
    if (at >= 0 && tensor->axes[at].extent != EXTENT_PACK) {
        *axis = (uint32_t)at;
        return true;
    }
    Span span = chk_node(body, node)->span;
    Diag *d = diag(chk->diags, E2005, span, chk_type_text(chk, type),
                   name ? chk_quoted(chk, name) : "of that form");
    Name names[RANK_MAX + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->axes[i].name)
            names[count++] = tensor->axes[i].name;
    names[count++] = chk->n_last;
    if (name)
        chk_suggest(chk, d, name, count, names);
    diag_note(d, "an axis is given by its name or as `last`, not by a number");
    return false;
}
