// Types as written, and passing a value where a type is declared.
//
// A value passes where kind, rank and extents are the declared ones. An unnamed axis is compatible
// with a named one, and the declared names are the ones that go on; two different names are not
// compatible. An `idx[n]` passes for `idx[m]` where n ≤ m and for ℝ (it is injected exactly).
#include "check/internal.h"

const char *chk_type_text(const Chk *chk, CoreTypeId type) {
    return chk_c(core_type_text(chk->core, type, chk->arena));
}

const char *chk_extent_text(const Chk *chk, Extent extent) {
    return chk_c(extent_text(chk->extents, extent, chk->arena));
}

// ---- axes -----------------------------------------------------------------------------------

bool chk_axes_distinct(Chk *chk, uint32_t rank, const CoreAxis *axes, Span span) {
    for (uint32_t i = 0; i < rank; i++)
        for (uint32_t j = i + 1; j < rank; j++) {
            bool packs = axes[i].extent == EXTENT_PACK && axes[j].extent == EXTENT_PACK;
            if (!packs && (!axes[i].name || axes[i].name != axes[j].name))
                continue;
            diag(chk->diags, E2014, span, packs ? "..." : chk_name(chk, axes[i].name));
            return false;
        }
    return true;
}

static bool one_axis(ChkBody *body, SynId id, CoreAxis *axis) {
    const SynNode *node = chk_node(body, id);
    if (node->kind == SYN_ELLIPSIS) {
        *axis = (CoreAxis){0, EXTENT_PACK};
        if (body->has_pack)
            return true;
        Diag *d = diag(body->chk->diags, E2017, node->span);
        diag_note(d, "`...` stands for axes that a parameter of the function has, as in "
                     "`fn f(x : ℝ[..., 3])`");
        return false;
    }
    axis->name = node->name;
    axis->extent = chk_extent_expr(body, chk_child(body, id, 0));
    return axis->extent != EXTENT_NONE;
}

bool chk_axes(ChkBody *body, SynId node, uint32_t *rank, CoreAxis *axes) {
    const SynNode *list = chk_node(body, node);
    if (list->count > RANK_MAX) {
        diag(body->chk->diags, E2022, list->span,
             chk_c(str_format(body->chk->arena, "%u", list->count)));
        return false;
    }
    bool good = true;
    *rank = list->count;
    for (uint32_t i = 0; i < list->count; i++)
        good = one_axis(body, chk_child(body, node, i), &axes[i]) && good;
    return good && chk_axes_distinct(body->chk, *rank, axes, list->span);
}

CoreTypeId chk_with_axes(Chk *chk, CoreTypeId like, uint32_t rank, const CoreAxis *axes) {
    const CoreType *type = core_type(chk->core, like);
    return type->kind == CORE_IDX ? core_type_idx(chk->core, type->bound, rank, axes)
                                  : core_type_real(chk->core, rank, axes);
}

// ---- type nodes -----------------------------------------------------------------------------

ChkDecl *chk_path_decl(ChkBody *body, SynId path) {
    Chk *chk = body->chk;
    const SynNode *node = chk_node(body, path);
    ChkUnit *unit = body->unit;
    ChkDecl *decl = NULL;
    for (uint32_t i = 0; i < node->count; i++) {
        const SynNode *part = chk_node(body, chk_child(body, path, i));
        decl = chk_find(unit, part->name);
        if (!decl) {
            Vec(Name) names = {0};
            for (uint32_t j = 0; j < unit->decls.count; j++)
                vec_push(chk->arena, &names, unit->decls.at[j]->name);
            Diag *d = diag(chk->diags, E1001, part->span, chk_name(chk, part->name));
            chk_suggest(chk, d, part->name, names.count, names.at);
            return NULL;
        }
        if (i + 1 == node->count)
            break;
        if (decl->kind != CHK_IMPORT) {
            diag(chk->diags, E1014, part->span, chk_quoted(chk, part->name),
                 chk_decl_kind_text(decl->kind), "an import");
            return NULL;
        }
        if (!decl->target)
            return NULL;
        unit = decl->target;
    }
    return decl;
}

CoreTypeId chk_alias(Chk *chk, ChkDecl *decl) {
    if (decl->state == CHK_OPEN) {
        diag(chk->diags, E1007, decl->span, chk_name(chk, decl->name));
        decl->state = CHK_FAILED;
        return 0;
    }
    if (decl->state == CHK_NEW) {
        decl->state = CHK_OPEN;
        ChkBody outside = chk_constant_body(chk, decl->unit);
        CoreTypeId type = chk_type(&outside, syn_child(decl->unit->tree, decl->node, 0));
        decl->type = decl->state == CHK_FAILED ? 0 : type;
        decl->state = decl->type ? CHK_DONE : CHK_FAILED;
    }
    return decl->type;
}

static CoreTypeId named_type(ChkBody *body, SynId node) {
    Chk *chk = body->chk;
    ChkDecl *decl = chk_path_decl(body, chk_child(body, node, 0));
    if (!decl)
        return 0;
    if (decl->kind != CHK_ALIAS) {
        Diag *d = diag(chk->diags, E1014, chk_node(body, node)->span, chk_quoted(chk, decl->name),
                       chk_decl_kind_text(decl->kind), "a type");
        if (decl->kind == CHK_MODULE || decl->kind == CHK_MODEL)
            diag_help(d, "the tree of its parameters is `params %s`", chk_name(chk, decl->name));
        return 0;
    }
    return chk_alias(chk, decl);
}

static CoreTypeId params_type(ChkBody *body, SynId node) {
    SynId model = chk_child(body, node, 0);
    if (!model) {
        diag(body->chk->diags, E2023, chk_node(body, node)->span);
        return 0;
    }
    const ChkMod *mod = chk_mod_expr(body, model);
    return mod ? core_type_params(body->chk->core, mod->tree) : 0;
}

static CoreTypeId tuple_type(ChkBody *body, SynId node) {
    const SynNode *tuple = chk_node(body, node);
    CoreTypeId *parts = arena_array(body->chk->arena, CoreTypeId, tuple->count + 1);
    bool good = true;
    for (uint32_t i = 0; i < tuple->count; i++) {
        parts[i] = chk_type(body, chk_child(body, node, i));
        good = good && parts[i];
    }
    return good ? core_type_tuple(body->chk->core, tuple->count, parts) : 0;
}

CoreTypeId chk_type(ChkBody *body, SynId node) {
    Chk *chk = body->chk;
    uint32_t rank = 0;
    CoreAxis axes[RANK_MAX];
    SynId list;
    switch (chk_node(body, node)->kind) {
    case SYN_TYPE_REAL:
        list = chk_child(body, node, 0);
        if (list && !chk_axes(body, list, &rank, axes))
            return 0;
        return core_type_real(chk->core, rank, axes);
    case SYN_TYPE_IDX: {
        Extent bound = chk_extent_expr(body, chk_child(body, node, 0));
        list = chk_child(body, node, 1);
        bool good = !list || chk_axes(body, list, &rank, axes);
        return bound != EXTENT_NONE && good ? core_type_idx(chk->core, bound, rank, axes) : 0;
    }
    case SYN_TYPE_PARAM:
        return chk_type(body, chk_child(body, node, 0));
    case SYN_TYPE_PARAMS:
        return params_type(body, node);
    case SYN_TYPE_TUPLE:
        return tuple_type(body, node);
    case SYN_TYPE_NAME:
        return named_type(body, node);
    default:
        return 0;
    }
}

// ---- passing --------------------------------------------------------------------------------

// Whether 0 … bound − 1 are values of idx[limit].
bool chk_bound_fits(Chk *chk, Extent bound, Extent limit) {
    if (bound == limit)
        return true;
    int64_t room;
    Extent difference = extent_sub(chk->extents, limit, bound);
    return difference != EXTENT_NONE && extent_is_int(chk->extents, difference, &room) && room >= 0;
}

static bool axes_pass(const CoreType *from, const CoreType *to) {
    if (from->rank != to->rank)
        return false;
    for (uint32_t i = 0; i < to->rank; i++) {
        Name a = from->axes[i].name, b = to->axes[i].name;
        if (from->axes[i].extent != to->axes[i].extent || (a && b && a != b))
            return false;
    }
    return true;
}

static ChkValue refuse(ChkBody *body, const ChkValue *value, CoreTypeId type, const char *what) {
    Chk *chk = body->chk;
    Diag *d = diag(chk->diags, E2003, value->span, what, chk_type_text(chk, type),
                   chk_value_text(body, value));
    if (value->kind != CHK_LET)
        return chk_poison(value->span);
    const CoreType *from = core_type(chk->core, value->type), *to = core_type(chk->core, type);
    if (from->kind == CORE_IDX && to->kind == CORE_IDX &&
        !chk_bound_fits(chk, from->bound, to->bound))
        diag_note(d, "`idx[n]` passes for `idx[m]` where n ≤ m: here n = %s and m = %s",
                  chk_extent_text(chk, from->bound), chk_extent_text(chk, to->bound));
    if (from->kind > CORE_IDX || to->kind > CORE_IDX)
        return chk_poison(value->span);
    if (from->rank != to->rank) {
        diag_note(d, "it has %s, and %u %s expected",
                  from->rank == 1 ? "1 axis" : chk_c(str_format(chk->arena, "%u axes", from->rank)),
                  to->rank, to->rank == 1 ? "is" : "are");
        return chk_poison(value->span);
    }
    for (uint32_t i = 0; i < to->rank; i++) {
        CoreAxis a = from->axes[i], b = to->axes[i];
        if (a.extent != b.extent)
            diag_note(d, "axis %u has extent %s where %s is expected", i,
                      chk_extent_text(chk, a.extent), chk_extent_text(chk, b.extent));
        else if (a.name && b.name && a.name != b.name)
            diag_help(d, "axis %u is named %s where %s is expected; `view` renames axes", i,
                      chk_name(chk, a.name), chk_name(chk, b.name));
    }
    return chk_poison(value->span);
}

static ChkValue accept_tuple(ChkBody *body, const ChkValue *value, CoreTypeId type,
                             const char *what) {
    Chk *chk = body->chk;
    CoreType tuple = *core_type(chk->core, type);
    uint32_t count = value->count;
    if (value->kind == CHK_LET) {
        const CoreType *from = core_type(chk->core, value->type);
        count = from->kind == CORE_TUPLE ? from->parts : UINT32_MAX;
    } else if (value->kind != CHK_TUPLE) {
        count = UINT32_MAX;
    }
    if (count != tuple.parts)
        return refuse(body, value, type, what);
    if (value->kind == CHK_LET && core_type_same(chk->core, value->type, type)) {
        ChkValue same = *value;
        same.type = type;
        return same;
    }
    ChkValue *parts = arena_array(chk->arena, ChkValue, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        ChkValue part = chk_part(body, value, i);
        parts[i] = chk_accept(body, &part, tuple.part[i], what);
        if (chk_is_poison(&parts[i]))
            return parts[i];
    }
    return (ChkValue){.kind = CHK_TUPLE, .span = value->span, .count = count, .parts = parts};
}

static ChkValue accept_tensor(ChkBody *body, ChkValue value, CoreTypeId type, const char *what) {
    Chk *chk = body->chk;
    CoreType from = *core_type(chk->core, value.type), to = *core_type(chk->core, type);
    if (to.kind == CORE_PARAMS || from.kind == CORE_PARAMS) {
        if (from.kind != to.kind || from.tree != to.tree)
            return refuse(body, &value, type, what);
        return value;
    }
    bool kinds = from.kind == to.kind || (from.kind == CORE_IDX && to.kind == CORE_REAL);
    if (!kinds || from.kind == CORE_TUPLE || !axes_pass(&from, &to) ||
        (to.kind == CORE_IDX && !chk_bound_fits(chk, from.bound, to.bound)))
        return refuse(body, &value, type, what);
    if (from.kind != to.kind || from.bound != to.bound)
        return chk_emit(body, CORE_copy, value.span, 1, &value, NULL, type);
    value.type = type;
    return value;
}

ChkValue chk_accept(ChkBody *body, const ChkValue *value, CoreTypeId type, const char *what) {
    if (chk_is_poison(value) || !type)
        return chk_poison(value->span);
    const CoreType *to = core_type(body->chk->core, type);
    if (to->kind == CORE_TUPLE)
        return accept_tuple(body, value, type, what);
    if (value->kind == CHK_SCALAR && to->kind == CORE_REAL && to->rank == 0)
        return chk_tensor(body, value);
    if (value->kind == CHK_LAMBDA)
        return chk_tensor(body, value);
    if (value->kind != CHK_LET)
        return refuse(body, value, type, what);
    return accept_tensor(body, *value, type, what);
}
