// Functions: signatures and bodies.
//
// A function is elaborated once, in terms of its dimensions (its module's, then its own) and of
// the pack `...`, when it is first called or when the program lists it. A function that is called
// while its own body is open is recursive, which is refused.
#include "check/internal.h"

enum { PARAMS_MAX = 63 }; // operands of a call, with the tree

ChkFn *chk_fn_new(Chk *chk, ChkUnit *unit, ChkModule *module, SynId node, Name name, Span span) {
    ChkFn *fn = arena_new_of(chk->arena, ChkFn);
    *fn = (ChkFn){.unit = unit, .module = module, .node = node, .name = name, .span = span};
    return fn;
}

static bool has_pack(const Chk *chk, CoreTypeId id) {
    if (!id)
        return false;
    const CoreType *type = core_type(chk->core, id);
    if (type->kind == CORE_TUPLE) {
        for (uint32_t i = 0; i < type->parts; i++)
            if (has_pack(chk, type->part[i]))
                return true;
        return false;
    }
    for (uint32_t i = 0; type->kind <= CORE_IDX && i < type->rank; i++)
        if (type->axes[i].extent == EXTENT_PACK)
            return true;
    return false;
}

// Dimensions of the module and of the function in scope, nothing else.
static ChkBody signature_body(Chk *chk, ChkFn *fn) {
    ChkBody body = fn->module ? chk_module_body(chk, fn->module) : chk_constant_body(chk, fn->unit);
    body.module = NULL;
    for (uint32_t i = fn->dim_count - fn->own_dims; i < fn->dim_count; i++) {
        const Dim *dim = extent_dim_get(chk->extents, fn->dims[i]);
        CoreScalar scalar = core_scalar_extent(chk->core, extent_dim(chk->extents, fn->dims[i]));
        body.scope = chk_bind(chk, body.scope, dim->name, chk_scalar_value(scalar, dim->span));
    }
    return body;
}

static void take_dims(Chk *chk, ChkFn *fn) {
    uint32_t outer = fn->module ? fn->module->dim_count : 0;
    SynId names = fn->node ? syn_child(fn->unit->tree, fn->node, 0) : 0;
    uint32_t room = outer + syn_node(fn->unit->tree, names)->count;
    fn->dims = arena_array(chk->arena, DimId, room + 1);
    if (outer)
        memcpy(fn->dims, fn->module->dims, sizeof *fn->dims * outer);
    fn->own_dims = names ? chk_own_dims(chk, fn->unit, names, fn->dims + outer) : 0;
    fn->dim_count = outer + fn->own_dims;
}

static void declared_params(Chk *chk, ChkFn *fn, ChkBody *body) {
    const SynTree *tree = fn->unit->tree;
    SynId list = syn_child(tree, fn->node, 1);
    uint32_t count = syn_node(tree, list)->count;
    if (count > PARAMS_MAX) {
        diag(chk->diags, E2004, syn_node(tree, list)->span, chk_name(chk, fn->name),
             "at most 63 arguments", chk_c(str_format(chk->arena, "%u", count)));
        count = PARAMS_MAX;
    }
    fn->param_count = count;
    fn->params = arena_array(chk->arena, CoreTypeId, count + 1);
    fn->param_names = arena_array(chk->arena, Name, count + 1);
    fn->param_spans = arena_array(chk->arena, Span, count + 1);
    body->has_pack = true;
    for (uint32_t i = 0; i < count; i++) {
        SynId param = syn_child(tree, list, i);
        const SynNode *node = syn_node(tree, param);
        for (uint32_t j = 0; j < i; j++)
            if (fn->param_names[j] == node->name)
                diag(chk->diags, E1002, node->name_span, chk_name(chk, node->name));
        fn->param_names[i] = node->name;
        fn->param_spans[i] = node->span;
        fn->params[i] = chk_type(body, syn_child(tree, param, 0));
        fn->has_pack = fn->has_pack || has_pack(chk, fn->params[i]);
    }
}

// The type that a module expression's apply takes, in terms of what surrounds it.
static CoreTypeId applied_type(Chk *chk, const ChkMod *mod) {
    if (mod->kind == CHK_SEQUENCE)
        return mod->count ? applied_type(chk, mod->items[0]) : 0;
    if (mod->kind == CHK_PARALLEL) {
        CoreTypeId *parts = arena_array(chk->arena, CoreTypeId, mod->count);
        for (uint32_t i = 0; i < mod->count; i++)
            if (!(parts[i] = applied_type(chk, mod->items[i])))
                return 0;
        return core_type_tuple(chk->core, mod->count, parts);
    }
    ChkMember *member = chk_module_member(mod->module, chk->n_apply);
    if (!member || member->kind != CHK_MEMBER_FN)
        return 0;
    ChkFn *fn = member->fn;
    if (!chk_signature(chk, fn) || fn->param_count != 1 || fn->own_dims || !fn->params[0])
        return 0;
    Extent *by_dim = arena_array(chk->arena, Extent, extent_dim_count(chk->extents) + 1);
    for (uint32_t i = 0; i < fn->dim_count; i++)
        by_dim[fn->dims[i]] = mod->dims[i];
    return core_type_substitute(chk->core, fn->params[0], by_dim, NULL, 0);
}

static void composite_params(Chk *chk, ChkFn *fn) {
    fn->param_count = 1;
    fn->params = arena_array(chk->arena, CoreTypeId, 1);
    fn->param_names = arena_array(chk->arena, Name, 1);
    fn->param_names[0] = name_of_c(chk->context->names, "x");
    fn->param_spans = arena_array(chk->arena, Span, 1);
    fn->param_spans[0] = fn->span;
    fn->params[0] = applied_type(chk, fn->composite);
    fn->has_pack = has_pack(chk, fn->params[0]);
    if (!fn->params[0])
        diag_note(
            diag(chk->diags, E1022, fn->span, chk_name(chk, fn->module->decl->name)),
            "each module in it needs `fn apply` with one argument and no dimensions of its own");
}

// The Core function with its parameters.
static void open_core(Chk *chk, ChkFn *fn) {
    chk_claim(chk, fn->name, fn->span, "functions");
    fn->id = core_fn_add(chk->core, fn->name, fn->span);
    CoreFn *core = core_fn(chk->core, fn->id);
    for (uint32_t i = 0; i < fn->dim_count; i++)
        vec_push(chk->arena, &core->dims, fn->dims[i]);
    core->has_pack = fn->has_pack;
    if (fn->module) {
        Extent *dims = arena_array(chk->arena, Extent, fn->module->dim_count + 1);
        for (uint32_t i = 0; i < fn->module->dim_count; i++)
            dims[i] = extent_dim(chk->extents, fn->module->dims[i]);
        fn->tree_type = core_type_params(
            chk->core, core_tree_module(chk->core, fn->module->id, fn->module->dim_count, dims));
        core_let_add(chk->core, core, CORE_param, fn->tree_type, 0, NULL, NULL, 0, fn->span);
    }
    CoreTypeId poison = core_type_real(chk->core, 0, NULL);
    for (uint32_t i = 0; i < fn->param_count; i++) {
        CoreTypeId type = fn->params[i] ? fn->params[i] : poison;
        core_let_add(chk->core, core, CORE_param, type, 0, NULL, NULL, fn->param_names[i],
                     fn->param_spans[i]);
    }
    core->params = core->lets.count;
    core->type = fn->result;
}

static void refuse_effects(Chk *chk, const ChkFn *fn) {
    const SynTree *tree = fn->unit->tree;
    SynId effects = syn_child(tree, fn->node, 3);
    if (syn_node(tree, effects)->count)
        diag(chk->diags, E4001, syn_node(tree, effects)->span, "effects (`uses`)");
}

bool chk_signature(Chk *chk, ChkFn *fn) {
    if (fn->signature != CHK_NEW)
        return fn->signature == CHK_DONE;
    fn->signature = CHK_OPEN;
    take_dims(chk, fn);
    if (fn->node) {
        ChkBody body = signature_body(chk, fn);
        declared_params(chk, fn, &body);
        body.has_pack = fn->has_pack;
        SynId result = syn_child(fn->unit->tree, fn->node, 2);
        fn->result = result ? chk_type(&body, result) : 0;
        fn->signature = result && !fn->result ? CHK_FAILED : CHK_DONE;
        refuse_effects(chk, fn);
    } else {
        composite_params(chk, fn);
        fn->signature = fn->params[0] ? CHK_DONE : CHK_FAILED;
    }
    open_core(chk, fn);
    return fn->signature == CHK_DONE;
}

// ---- bodies ---------------------------------------------------------------------------------

static ChkBody function_body(Chk *chk, ChkFn *fn) {
    ChkBody body = signature_body(chk, fn);
    body.module = fn->module;
    body.bound = fn->module != NULL;
    body.core = core_fn(chk->core, fn->id);
    body.has_pack = fn->has_pack;
    body.fields = map_new(chk->arena);
    CoreLetId let = fn->module ? 1 : 0;
    for (uint32_t i = 0; i < fn->param_count; i++, let++) {
        ChkValue value =
            fn->params[i] ? chk_let_value(let, fn->params[i], fn->span) : chk_poison(fn->span);
        body.scope = chk_bind(chk, body.scope, fn->param_names[i], value);
    }
    return body;
}

static ChkValue body_value(ChkFn *fn, ChkBody *body) {
    if (fn->node)
        return chk_expr(body, syn_child(fn->unit->tree, fn->node, 4));
    ChkValue argument = body->scope->value;
    return chk_apply_mod(body, fn->composite, (ChkTree){0, 0, NULL}, 1, &argument, fn->span);
}

void chk_elaborate(Chk *chk, ChkFn *fn) {
    bool good = chk_signature(chk, fn);
    if (fn->body != CHK_NEW || (!good && !fn->node))
        return;
    fn->body = CHK_OPEN;
    ChkBody body = function_body(chk, fn);
    ChkValue value = body_value(fn, &body);
    bool declared = fn->node && syn_child(fn->unit->tree, fn->node, 2);
    if (declared && good)
        value = chk_accept(&body, &value, fn->result, "the result");
    value = chk_whole(&body, &value);
    fn->body = chk_is_poison(&value) ? CHK_FAILED : CHK_DONE;
    if (chk_is_poison(&value))
        return;
    fn->result = declared && good ? fn->result : value.type;
    body.core->result = value.let;
    body.core->type = fn->result;
}
