// Calls: arguments, the callee's dimensions and pack inferred from them, λs reduced, module
// expressions applied item by item.
#include "check/internal.h"

// ---- inference ------------------------------------------------------------------------------

typedef struct Infer {
    Chk *chk;
    const ChkFn *fn;
    Extent *by_dim; // by DimId
    bool has_pack;  // the pack is known
    uint32_t pack_count;
    CoreAxis pack[RANK_MAX];
} Infer;

static void infer_extent(Infer *infer, Extent param, Extent given) {
    if (given == EXTENT_PACK)
        return;
    for (uint32_t i = 0; i < infer->fn->dim_count; i++) {
        DimId dim = infer->fn->dims[i];
        if (infer->by_dim[dim] == EXTENT_NONE && extent_dim(infer->chk->extents, dim) == param)
            infer->by_dim[dim] = given;
    }
}

static void infer_axes(Infer *infer, const CoreType *param, const CoreType *given) {
    uint32_t at = 0;
    while (at < param->rank && param->axes[at].extent != EXTENT_PACK)
        at++;
    bool packed = at < param->rank;
    if (given->rank + packed < param->rank || (!packed && given->rank != param->rank))
        return;
    uint32_t held = given->rank + packed - param->rank; // axes that the pack stands for
    for (uint32_t i = 0; i < param->rank; i++)
        if (i != at)
            infer_extent(infer, param->axes[i].extent,
                         given->axes[i < at ? i : i - 1 + held].extent);
    if (!packed || infer->has_pack)
        return;
    infer->has_pack = true;
    infer->pack_count = held;
    memcpy(infer->pack, given->axes + at, sizeof *infer->pack * held);
}

static void infer_tree(Infer *infer, CoreTree param, CoreTree given) {
    const CoreTreeNode *a = core_tree(infer->chk->core, param);
    const CoreTreeNode *b = core_tree(infer->chk->core, given);
    if (a->module != b->module || a->count != b->count)
        return;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->module)
            infer_extent(infer, a->dims[i], b->dims[i]);
        else
            infer_tree(infer, a->items[i], b->items[i]);
    }
}

static void infer_type(Infer *infer, CoreTypeId param, CoreTypeId given);

static void infer_value(Infer *infer, CoreTypeId param, const ChkValue *value) {
    const CoreType *type = core_type(infer->chk->core, param);
    if (value->kind == CHK_LET)
        infer_type(infer, param, value->type);
    else if (value->kind == CHK_TUPLE && type->kind == CORE_TUPLE && type->parts == value->count)
        for (uint32_t i = 0; i < value->count; i++)
            infer_value(infer, type->part[i], &value->parts[i]);
}

static void infer_type(Infer *infer, CoreTypeId param, CoreTypeId given) {
    const CoreType *a = core_type(infer->chk->core, param);
    const CoreType *b = core_type(infer->chk->core, given);
    if (a->kind == CORE_PARAMS && b->kind == CORE_PARAMS)
        infer_tree(infer, a->tree, b->tree);
    if (a->kind == CORE_TUPLE && b->kind == CORE_TUPLE && a->parts == b->parts)
        for (uint32_t i = 0; i < a->parts; i++)
            infer_type(infer, a->part[i], b->part[i]);
    if (a->kind > CORE_IDX || b->kind > CORE_IDX)
        return;
    if (a->kind == CORE_IDX && b->kind == CORE_IDX)
        infer_extent(infer, a->bound, b->bound);
    infer_axes(infer, a, b);
}

// ---- calls of functions ---------------------------------------------------------------------

typedef struct Call {
    ChkFn *fn;
    const ChkMod *mod;  // the instance whose function it is; null: not known (or a free function)
    uint32_t dim_count; // stated own dimensions
    const Extent *dims;
    bool gradient;  // of its gradient
    uint32_t count; // values, the tree first for a module's function
    ChkValue values[64];
    Span span;
} Call;

static bool stated_dims(Infer *infer, const Call *call) {
    const ChkFn *fn = call->fn;
    uint32_t outer = fn->dim_count - fn->own_dims;
    if (call->mod)
        for (uint32_t i = 0; i < outer && i < call->mod->count; i++)
            infer->by_dim[fn->dims[i]] = call->mod->dims[i];
    if (!call->dim_count)
        return true;
    if (call->dim_count != fn->own_dims) {
        Chk *chk = infer->chk;
        diag(chk->diags, E2019, call->span, chk_name(chk, fn->name),
             chk_count(chk, fn->own_dims, "dimension"),
             chk_c(str_format(chk->arena, "%u", call->dim_count)));
        return false;
    }
    for (uint32_t i = 0; i < fn->own_dims; i++)
        infer->by_dim[fn->dims[outer + i]] = call->dims[i];
    return true;
}

static CoreTypeId param_type(const ChkFn *fn, uint32_t index) {
    bool tree = fn->module != NULL;
    return tree && !index ? fn->tree_type : fn->params[index - tree];
}

// All dimensions known, or a diagnostic: a type mismatch if there is one, else the lack itself.
static bool all_inferred(ChkBody *body, const Infer *infer, Call *call) {
    Chk *chk = body->chk;
    for (uint32_t i = 0; i < call->fn->dim_count; i++) {
        if (infer->by_dim[call->fn->dims[i]] != EXTENT_NONE)
            continue;
        uint32_t before = chk->diags->errors + chk->diags->dropped;
        for (uint32_t j = 0; j < call->count; j++) {
            ChkValue *value = &call->values[j];
            const CoreType *type = core_type(chk->core, param_type(call->fn, j));
            bool tensor = type->kind <= CORE_IDX && value->kind == CHK_LET;
            const CoreType *given = tensor ? core_type(chk->core, value->type) : NULL;
            if (!tensor || given->kind > CORE_IDX || given->rank + 1 < type->rank)
                chk_accept(body, value, param_type(call->fn, j), "an argument");
        }
        if (before != chk->diags->errors + chk->diags->dropped)
            return false;
        const char *dim = chk_name(chk, extent_dim_get(chk->extents, call->fn->dims[i])->name);
        Diag *d = diag(chk->diags, E2018, call->span, dim, chk_name(chk, call->fn->name));
        diag_label(d, call->fn->span, "declared here");
        if (call->fn->own_dims)
            diag_help(d, "state it: `%s{…}(…)`", chk_name(chk, call->fn->name));
        return false;
    }
    return true;
}

static const char *argument_text(const Chk *chk, const ChkFn *fn, uint32_t index) {
    if (fn->module && !index)
        return chk_c(str_format(chk->arena, "the first argument of `%s`", chk_name(chk, fn->name)));
    Name name = fn->param_names[index - (fn->module != NULL)];
    return chk_c(str_format(chk->arena, "argument `%s` of `%s`", chk_name(chk, name),
                            chk_name(chk, fn->name)));
}

static void overflow(Chk *chk, const Call *call, CoreTypeId type) {
    Diag *d = diag(chk->diags, E2016, call->span, chk_type_text(chk, type));
    diag_label(d, call->fn->span, "at the dimensions that this call gives %s",
               chk_name(chk, call->fn->name));
}

// What a call gives: the function's result, or its value and gradient, and by what function.
static CoreTypeId called(Chk *chk, const Call *call, CoreFnId *callee) {
    const ChkFn *fn = call->fn;
    *callee = fn->id;
    if (!call->gradient)
        return fn->result;
    CoreTypeId first = core_fn(chk->core, fn->id)->params ? param_type(fn, 0) : 0;
    const CoreType *result = core_type(chk->core, fn->result);
    const CoreType *type = first ? core_type(chk->core, first) : NULL;
    bool real = type && (type->kind == CORE_REAL || type->kind == CORE_PARAMS);
    if (!real || result->kind != CORE_REAL || result->rank) {
        Diag *d = diag(chk->diags, E3003, call->span, chk_name(chk, fn->name));
        diag_label(d, fn->span, "declared here");
        diag_note(d,
                  "its result is %s and its first argument %s; a gradient needs ℝ and one that "
                  "holds reals",
                  chk_type_text(chk, fn->result), first ? chk_type_text(chk, first) : "missing");
        return 0;
    }
    *callee = core_gradient_declare(chk->core, fn->id);
    if (!*callee) {
        diag(chk->diags, E1002, call->span,
             chk_c(str_format(chk->arena, "%s.grad", chk_name(chk, fn->name))));
        return 0;
    }
    return core_fn(chk->core, *callee)->type;
}

static ChkValue emit_call(ChkBody *body, Call *call, const Infer *infer) {
    Chk *chk = body->chk;
    const ChkFn *fn = call->fn;
    static const CoreAxis none;
    const CoreAxis *pack = fn->has_pack ? (infer->pack_count ? infer->pack : &none) : NULL;
    bool good = true;
    for (uint32_t i = 0; i < call->count; i++) {
        CoreTypeId type = core_type_substitute(chk->core, param_type(fn, i), infer->by_dim, pack,
                                               infer->pack_count);
        if (!type)
            overflow(chk, call, param_type(fn, i));
        call->values[i] = chk_accept(body, &call->values[i], type, argument_text(chk, fn, i));
        if (call->values[i].kind == CHK_TUPLE)
            call->values[i] = chk_whole(body, &call->values[i]);
        good = good && !chk_is_poison(&call->values[i]);
    }
    CoreFnId callee;
    CoreTypeId declared = called(chk, call, &callee), result = 0;
    if (declared)
        result = core_type_substitute(chk->core, declared, infer->by_dim, pack, infer->pack_count);
    if (declared && !result)
        overflow(chk, call, declared);
    if (!good || !result)
        return chk_poison(call->span);
    const CoreType *type = core_type(chk->core, result);
    if (type->kind <= CORE_IDX && !chk_axes_distinct(chk, type->rank, type->axes, call->span))
        return chk_poison(call->span);
    Extent *dims = arena_array(chk->arena, Extent, fn->dim_count + 1);
    for (uint32_t i = 0; i < fn->dim_count; i++)
        dims[i] = infer->by_dim[fn->dims[i]];
    CoreAttr attr = {.callee = callee,
                     .dim_count = fn->dim_count,
                     .dims = dims,
                     .pack_count = fn->has_pack ? infer->pack_count : 0,
                     .pack = infer->pack};
    return chk_emit(body, CORE_call, call->span, call->count, call->values, &attr, result);
}

static ChkValue call_function(ChkBody *body, Call *call) {
    Chk *chk = body->chk;
    ChkFn *fn = call->fn;
    if (!body->core) {
        diag(chk->diags, E1009, call->span, "a call of a function");
        return chk_poison(call->span);
    }
    chk_signature(chk, fn);
    uint32_t wanted = fn->param_count + (fn->module != NULL);
    if (call->count != wanted) {
        Diag *d = diag(chk->diags, E2004, call->span, chk_name(chk, fn->name),
                       chk_count(chk, wanted, "argument"),
                       chk_c(str_format(chk->arena, "%u", call->count)));
        diag_label(d, fn->span, "declared here");
        if (fn->module && !call->mod)
            diag_note(d, "outside its module its first argument is the parameter tree");
        return chk_poison(call->span);
    }
    if (fn->body == CHK_OPEN) {
        diag(chk->diags, E1020, call->span, chk_name(chk, fn->name));
        return chk_poison(call->span);
    }
    chk_elaborate(chk, fn);
    Infer infer = {.chk = chk, .fn = fn};
    infer.by_dim = arena_array(chk->arena, Extent, extent_dim_count(chk->extents) + 1);
    bool good = fn->result && stated_dims(&infer, call);
    for (uint32_t i = 0; i < call->count && good; i++) {
        good = param_type(fn, i) && !chk_is_poison(&call->values[i]);
        if (good)
            infer_value(&infer, param_type(fn, i), &call->values[i]);
    }
    if (!good || !all_inferred(body, &infer, call))
        return chk_poison(call->span);
    return emit_call(body, call, &infer);
}

// ---- arguments ------------------------------------------------------------------------------

// Evaluates the arguments of a user's function into the call, named ones at their places.
static bool take_arguments(ChkBody *body, Call *call, uint32_t count, const SynId *args) {
    Chk *chk = body->chk;
    uint32_t first = call->count;
    if (count + first > COUNT_OF(call->values)) {
        diag(chk->diags, E2004, call->span, "a function", "at most 63 arguments",
             chk_c(str_format(chk->arena, "%u", count)));
        return false;
    }
    call->count += count;
    for (uint32_t i = 0; i < count; i++) {
        const SynNode *node = chk_node(body, args[i]);
        uint32_t place = first + i;
        SynId expr = args[i];
        if (node->kind == SYN_NAMED) {
            bool tree = call->fn && call->fn->module && !first;
            uint32_t at = 0, names = call->fn ? call->fn->param_count : 0;
            while (at < names && call->fn->param_names[at] != node->name)
                at++;
            place = first + tree + at;
            expr = chk_child(body, args[i], 0);
            if (at >= names || place >= first + count || call->values[place].span.source) {
                Diag *d = diag(chk->diags, E2020, node->name_span,
                               call->fn ? chk_quoted(chk, call->fn->name) : "the function",
                               chk_name(chk, node->name));
                chk_suggest(chk, d, node->name, names, call->fn ? call->fn->param_names : NULL);
                return false;
            }
        }
        call->values[place] = chk_expr(body, expr);
    }
    return true;
}

static ChkValue call_lambda(ChkBody *body, const ChkValue *lambda, uint32_t count,
                            const SynId *args, Span span) {
    Chk *chk = body->chk;
    ChkValue *values = arena_array(chk->arena, ChkValue, count + 1);
    for (uint32_t i = 0; i < count; i++)
        values[i] = chk_expr(body, args[i]);
    ChkValue whole = {.kind = CHK_TUPLE, .span = span, .count = count, .parts = values};
    ChkBinding *saved = body->scope;
    body->scope = chk_pattern(body, lambda->scope, chk_child(body, lambda->node, 0),
                              count == 1 ? &values[0] : &whole);
    ChkValue result = chk_expr(body, chk_child(body, lambda->node, 1));
    body->scope = saved;
    result.span = span;
    return result;
}

// The tree that a module expression's apply is given from outside, as its first argument.
static ChkValue call_composed(ChkBody *body, const ChkValue *callee, uint32_t count,
                              const SynId *args, Span span) {
    Chk *chk = body->chk;
    Call *call = arena_new_of(chk->arena, Call);
    call->span = span;
    if (!take_arguments(body, call, count, args))
        return chk_poison(span);
    if (callee->bound)
        return chk_apply_mod(body, callee->mod, callee->tree, call->count, call->values, span);
    if (!call->count) {
        diag(chk->diags, E2004, span, "apply", "2 arguments", "0");
        return chk_poison(span);
    }
    ChkValue tree =
        chk_accept(body, &call->values[0], core_type_params(chk->core, callee->mod->tree),
                   "the first argument");
    if (chk_is_poison(&tree))
        return tree;
    return chk_apply_mod(body, callee->mod, (ChkTree){tree.let, 0, NULL}, call->count - 1,
                         call->values + 1, span);
}

static ChkValue call_named(ChkBody *body, const ChkValue *callee, uint32_t count, const SynId *args,
                           Span span) {
    Call *call = arena_new_of(body->chk->arena, Call);
    *call = (Call){.fn = callee->fn,
                   .mod = callee->mod,
                   .dim_count = callee->dim_count,
                   .dims = callee->dims,
                   .gradient = callee->gradient,
                   .span = span};
    chk_signature(body->chk, call->fn);
    if (callee->bound && call->fn->module) {
        call->values[0] = chk_field(body, callee->tree, callee->span);
        call->count = 1;
        if (chk_is_poison(&call->values[0]))
            return chk_poison(span);
    }
    if (!take_arguments(body, call, count, args))
        return chk_poison(span);
    return call_function(body, call);
}

ChkValue chk_call(ChkBody *body, const ChkValue *callee, uint32_t count, const SynId *args,
                  Span span) {
    switch (callee->kind) {
    case CHK_POISON:
        return chk_poison(span);
    case CHK_BUILTIN:
        return chk_builtin_call(body, callee->builtin, count, args, span);
    case CHK_LAMBDA:
        return call_lambda(body, callee, count, args, span);
    case CHK_FUNCTION:
        return callee->fn ? call_named(body, callee, count, args, span)
                          : call_composed(body, callee, count, args, span);
    default: {
        Diag *d = diag(body->chk->diags, E1014, callee->span, "what is called",
                       chk_value_text(body, callee), "a function");
        if (callee->kind == CHK_MOD_VALUE)
            diag_help(d, "call its function, as in `name.apply(x)`");
        return chk_poison(span);
    }
    }
}

// ---- module expressions ---------------------------------------------------------------------

static ChkTree item_tree(Chk *chk, ChkTree tree, uint32_t index) {
    Name *path = arena_array(chk->arena, Name, tree.count + 1);
    if (tree.count)
        memcpy(path, tree.path, sizeof *path * tree.count);
    path[tree.count] = chk_item_name(chk, index);
    return (ChkTree){tree.base, tree.count + 1, path};
}

static ChkValue apply_instance(ChkBody *body, const ChkMod *mod, ChkTree tree, uint32_t count,
                               const ChkValue *args, Span span) {
    Chk *chk = body->chk;
    const ChkMember *member = chk_module_member(mod->module, chk->n_apply);
    if (!member || member->kind != CHK_MEMBER_FN) {
        const char *what =
            chk_c(str_format(chk->arena, "module %s", chk_name(chk, mod->module->decl->name)));
        diag(chk->diags, E1016, span, what, "apply");
        return chk_poison(span);
    }
    Call *call = arena_new_of(chk->arena, Call);
    *call = (Call){.fn = member->fn, .mod = mod, .span = span, .count = 1};
    call->values[0] = chk_field(body, tree, span);
    for (uint32_t i = 0; i < count && call->count < COUNT_OF(call->values); i++)
        call->values[call->count++] = args[i];
    ChkValue result = chk_enter(body, span) ? call_function(body, call) : chk_poison(span);
    chk_leave(body);
    return result;
}

static ChkValue apply_parallel(ChkBody *body, const ChkMod *mod, ChkTree tree, uint32_t count,
                               const ChkValue *args, Span span) {
    Chk *chk = body->chk;
    uint32_t parts = count;
    if (count == 1 && args[0].kind == CHK_TUPLE)
        parts = args[0].count;
    else if (count == 1 && args[0].kind == CHK_LET &&
             core_type(chk->core, args[0].type)->kind == CORE_TUPLE)
        parts = core_type(chk->core, args[0].type)->parts;
    else if (count == 1 && chk_is_poison(&args[0]))
        return args[0];
    if (parts != mod->count) {
        Diag *d =
            diag(chk->diags, E2021, span, chk_c(str_format(chk->arena, "a tuple of %u", parts)));
        diag_note(d, "`⊗` applies its %u modules to a tuple of %u", mod->count, mod->count);
        return chk_poison(span);
    }
    ChkValue *results = arena_array(chk->arena, ChkValue, parts + 1);
    for (uint32_t i = 0; i < parts; i++) {
        ChkValue part = count == 1 && parts != 1 ? chk_part(body, &args[0], i) : args[i];
        results[i] = chk_apply_mod(body, mod->items[i], item_tree(chk, tree, i), 1, &part, span);
        if (chk_is_poison(&results[i]))
            return results[i];
    }
    return (ChkValue){.kind = CHK_TUPLE, .span = span, .count = parts, .parts = results};
}

ChkValue chk_apply_mod(ChkBody *body, const ChkMod *mod, ChkTree tree, uint32_t count,
                       const ChkValue *args, Span span) {
    if (mod->kind == CHK_INSTANCE)
        return apply_instance(body, mod, tree, count, args, span);
    if (mod->kind == CHK_PARALLEL)
        return apply_parallel(body, mod, tree, count, args, span);
    if (!mod->count)
        return count == 1 ? args[0] : chk_poison(span);
    ChkValue value =
        chk_apply_mod(body, mod->items[0], item_tree(body->chk, tree, 0), count, args, span);
    for (uint32_t i = 1; i < mod->count && !chk_is_poison(&value); i++)
        value = chk_apply_mod(body, mod->items[i], item_tree(body->chk, tree, i), 1, &value, span);
    return value;
}
