// `ein[out axes](a * b)`: axes are matched by name; those not in the output are summed, in the
// order of their first appearance in operand 0. With one operand it permutes, after summing what
// is missing.
#include "check/internal.h"

typedef struct Ein {
    ChkBody *body;
    Span span;
    uint32_t count; // operands
    ChkValue operands[2];
    CoreType types[2];
    uint32_t out_rank;
    CoreAxis out[RANK_MAX];
    Span out_spans[RANK_MAX];
} Ein;

// The operand and position of an axis; false: nowhere.
static bool find(const Ein *ein, Name name, uint32_t *operand, uint32_t *at) {
    for (uint32_t i = 0; i < ein->count; i++) {
        int found = chk_axis_find(&ein->types[i], name);
        if (found >= 0) {
            *operand = i;
            *at = (uint32_t)found;
            return true;
        }
    }
    return false;
}

static bool operand(Ein *ein, SynId node) {
    ChkBody *body = ein->body;
    Chk *chk = body->chk;
    ChkValue value = chk_expr(body, node);
    ChkValue tensor;
    if (!chk_operand(body, &value, &tensor))
        return false;
    CoreType type = *core_type(chk->core, tensor.type);
    for (uint32_t i = 0; i < type.rank; i++)
        if (!type.axes[i].name) {
            Diag *d = diag(chk->diags, E2007, value.span, "every axis of an operand needs a name");
            diag_here(d, "%s", chk_type_text(chk, tensor.type));
            diag_help(d, "`view(x, [name: extent, …])` names axes");
            return false;
        }
    ein->operands[ein->count] = tensor;
    ein->types[ein->count++] = type;
    return true;
}

static bool output_axis(Ein *ein, const SynNode *name) {
    Chk *chk = ein->body->chk;
    uint32_t operand_index, at;
    for (uint32_t j = 0; j < ein->out_rank; j++)
        if (ein->out[j].name == name->name) {
            diag(chk->diags, E2014, name->span, chk_name(chk, name->name));
            return false;
        }
    if (!find(ein, name->name, &operand_index, &at)) {
        Vec(Name) names = {0};
        for (uint32_t i = 0; i < ein->count; i++)
            for (uint32_t j = 0; j < ein->types[i].rank; j++)
                vec_push(chk->arena, &names, ein->types[i].axes[j].name);
        Diag *d =
            diag(chk->diags, E2005, name->span, ein->count == 2 ? "either operand" : "the operand",
                 chk_quoted(chk, name->name));
        for (uint32_t i = 0; i < ein->count; i++)
            diag_label(d, ein->operands[i].span, "%s", chk_type_text(chk, ein->operands[i].type));
        chk_suggest(chk, d, name->name, names.count, names.at);
        return false;
    }
    ein->out_spans[ein->out_rank] = name->span;
    ein->out[ein->out_rank++] = ein->types[operand_index].axes[at];
    return true;
}

static bool outputs(Ein *ein, SynId list) {
    ChkBody *body = ein->body;
    const SynNode *names = chk_node(body, list);
    if (names->count > RANK_MAX) {
        diag(body->chk->diags, E2022, names->span,
             chk_c(str_format(body->chk->arena, "%u", names->count)));
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; i < names->count; i++)
        good = output_axis(ein, chk_node(body, chk_child(body, list, i))) && good;
    return good;
}

static bool in_output(const Ein *ein, Name name) {
    for (uint32_t i = 0; i < ein->out_rank; i++)
        if (ein->out[i].name == name)
            return true;
    return false;
}

// Shared axes are equally long; an axis of one operand alone is in the output.
static bool shared_axes(const Ein *ein) {
    Chk *chk = ein->body->chk;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t j = 0; j < ein->types[i].rank; j++) {
            CoreAxis axis = ein->types[i].axes[j];
            int other = chk_axis_find(&ein->types[1 - i], axis.name);
            const char *name = chk_name(chk, axis.name);
            if (other < 0 && !in_output(ein, axis.name)) {
                Diag *d = diag(chk->diags, E2012, ein->operands[i].span, name);
                diag_here(d, "%s", chk_type_text(chk, ein->operands[i].type));
                diag_help(d, "sum it before: `sum(…, %s)`", name);
                return false;
            }
            if (other < 0 || ein->types[1 - i].axes[other].extent == axis.extent)
                continue;
            Diag *d = diag(chk->diags, E2006, ein->span, chk_type_text(chk, ein->operands[0].type),
                           chk_type_text(chk, ein->operands[1].type));
            diag_note(d, "axis %s has two extents", name);
            return false;
        }
    return true;
}

static ChkValue contract(const Ein *ein) {
    Chk *chk = ein->body->chk;
    if (!shared_axes(ein))
        return chk_poison(ein->span);
    uint8_t labels[3][RANK_MAX];
    uint32_t fresh = ein->types[0].rank;
    for (uint32_t i = 0; i < ein->types[0].rank; i++)
        labels[0][i] = (uint8_t)i;
    for (uint32_t i = 0; i < ein->types[1].rank; i++) {
        int at = chk_axis_find(&ein->types[0], ein->types[1].axes[i].name);
        labels[1][i] = (uint8_t)(at >= 0 ? (uint32_t)at : fresh++);
    }
    for (uint32_t i = 0; i < ein->out_rank; i++) {
        uint32_t which = 0, at = 0;
        find(ein, ein->out[i].name, &which, &at);
        labels[2][i] = labels[which][at];
    }
    CoreAttr attr = {.labels = {labels[0], labels[1], labels[2]},
                     .label_count = {(uint8_t)ein->types[0].rank, (uint8_t)ein->types[1].rank,
                                     (uint8_t)ein->out_rank}};
    return chk_emit(ein->body, CORE_ein, ein->span, 2, ein->operands, &attr,
                    core_type_real(chk->core, ein->out_rank, ein->out));
}

static ChkValue rearrange(const Ein *ein) {
    Chk *chk = ein->body->chk;
    ChkValue value = ein->operands[0];
    CoreAxis kept[RANK_MAX];
    uint64_t summed = 0;
    uint32_t rank = 0;
    for (uint32_t i = 0; i < ein->types[0].rank; i++) {
        if (in_output(ein, ein->types[0].axes[i].name))
            kept[rank++] = ein->types[0].axes[i];
        else
            summed |= UINT64_C(1) << i;
    }
    if (summed) {
        CoreAttr attr = {.axes = summed};
        value = chk_emit(ein->body, CORE_sum, ein->span, 1, &value, &attr,
                         core_type_real(chk->core, rank, kept));
    }
    uint8_t order[RANK_MAX];
    bool in_order = true;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t at = 0;
        while (kept[at].name != ein->out[i].name)
            at++;
        order[i] = (uint8_t)at;
        in_order = in_order && at == i;
    }
    if (in_order)
        return value;
    CoreAttr attr = {.order_count = (uint8_t)rank, .order = order};
    return chk_emit(ein->body, CORE_permute, ein->span, 1, &value, &attr,
                    chk_with_axes(chk, value.type, rank, ein->out));
}

ChkValue chk_ein(ChkBody *body, SynId node) {
    const SynNode *expr = chk_node(body, node);
    SynId product = chk_child(body, node, 1);
    const SynNode *inner = chk_node(body, product);
    Ein ein = {.body = body, .span = expr->span};
    bool two = inner->kind == SYN_BINARY && inner->op == SYN_OP_MUL;
    bool good = operand(&ein, two ? chk_child(body, product, 0) : product);
    if (two)
        good = operand(&ein, chk_child(body, product, 1)) && good;
    if (!good || !outputs(&ein, chk_child(body, node, 0)))
        return chk_poison(expr->span);
    return two ? contract(&ein) : rearrange(&ein);
}
