// Optimizers: `optimizer NAME { … }` becomes the Core function NAME.step(p, g, states…),
// elementwise over the parameter tree, that gives the new parameters and the new states.
//
// A `name = expr` is a hyperparameter if its value is a constant; if it depends on other
// hyperparameters or on the step `t` it is a schedule, a host scalar put in where it is named. A
// later `next` line sees the new states of earlier ones; `next g` is a gradient put in place of g
// for the lines that follow (clipped, say), and no state.
#include "check/internal.h"

typedef struct State {
    Name name;
    Span span;
    ChkValue new_value; // the old one until its `next` line
    bool updated;
} State;

typedef struct Optimizer {
    Chk *chk;
    ChkDecl *decl;
    ChkBody body;
    CoreTypeId type;
    Vec(State) states; // at[0] is p
    Vec(ChkHyper) hypers;
} Optimizer;

static bool is_word(const Chk *chk, Name name, const char *const *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (str_is(name_str(chk->context->names, name), words[i]))
            return true;
    return false;
}

// A name for a hyperparameter or a state: not taken, and no word of the training block.
static bool new_name(Optimizer *o, const SynNode *node) {
    static const char *const taken[] = {"p",    "g",          "t",     "model",
                                        "loss", "optimizer",  "steps", "epochs",
                                        "data", "checkpoint", "metric"};
    bool known = is_word(o->chk, node->name, taken, COUNT_OF(taken));
    for (const ChkBinding *b = o->body.scope; b && !known; b = b->next)
        known = b->name == node->name;
    if (known)
        diag(o->chk->diags, E1002, node->name_span, chk_name(o->chk, node->name));
    return !known;
}

static void bind(Optimizer *o, Name name, ChkValue value) {
    o->body.scope = chk_bind(o->chk, o->body.scope, name, value);
}

static void hyper(Optimizer *o, SynId item) {
    Chk *chk = o->chk;
    const SynNode *node = chk_node(&o->body, item);
    if (!new_name(o, node))
        return;
    CoreScalar scalar = chk_scalar_expr(&o->body, chk_child(&o->body, item, 0));
    if (scalar && core_scalar(chk->core, scalar)->kind == CORE_SCALAR_RATIONAL) {
        ChkHyper entry = {node->name, core_scalar(chk->core, scalar)->rational, node->name_span};
        vec_push(chk->arena, &o->hypers, entry);
        scalar = core_scalar_hyper(chk->core, node->name);
    }
    bind(o, node->name, chk_scalar_value(scalar, node->name_span));
}

static bool is_zeros(const Optimizer *o, SynId node) {
    const SynNode *path = chk_node(&o->body, node);
    return path->kind == SYN_PATH && path->count == 1 &&
           chk_node(&o->body, chk_child(&o->body, node, 0))->name == o->chk->n_zeros;
}

// `name : params = zeros`
static void state(Optimizer *o, SynId item) {
    Chk *chk = o->chk;
    const SynNode *node = chk_node(&o->body, item);
    SynId type = chk_child(&o->body, item, 0), init = chk_child(&o->body, item, 1);
    const SynNode *stated = chk_node(&o->body, type);
    bool tree = stated->kind == SYN_TYPE_PARAMS && !chk_child(&o->body, type, 0);
    if (node->kind != SYN_SET_TYPED || !tree || !is_zeros(o, init)) {
        Diag *d = diag(chk->diags, E1023, node->span, "this is not a state of an optimizer");
        diag_note(d, "a state is a tree like the parameters that starts at zero");
        diag_help(d, "write `%s : params = zeros`", chk_name(chk, node->name));
    }
    if (!new_name(o, node))
        return;
    if (o->states.count == 62) {
        diag(chk->diags, E1023, node->span, "an optimizer has at most 61 states");
        return;
    }
    vec_push(chk->arena, &o->states, ((State){.name = node->name, .span = node->name_span}));
    bind(o, node->name, chk_poison(node->name_span));
}

static void declare(Optimizer *o) {
    Chk *chk = o->chk;
    const SynNode *decl = chk_node(&o->body, o->decl->node);
    CoreScalar t = core_scalar_hyper(chk->core, chk->n_t);
    bind(o, chk->n_t, chk_scalar_value(t, decl->span));
    vec_push(chk->arena, &o->states, ((State){.name = chk->n_p, .span = o->decl->span}));
    for (uint32_t i = 0; i < decl->count; i++) {
        SynId item = chk_child(&o->body, o->decl->node, i);
        const SynNode *node = chk_node(&o->body, item);
        if (node->kind == SYN_SET)
            hyper(o, item);
        else if (node->kind == SYN_SET_TYPED || node->kind == SYN_FIELD_ITEM)
            state(o, item);
        else if (node->kind != SYN_NEXT && node->kind != SYN_ABSENT)
            diag(chk->diags, E1023, node->span, "this is not an item of an optimizer");
    }
}

static void next(Optimizer *o, SynId item) {
    Chk *chk = o->chk;
    const SynNode *node = chk_node(&o->body, item);
    State *found = NULL;
    for (uint32_t i = 0; i < o->states.count; i++)
        if (o->states.at[i].name == node->name)
            found = &o->states.at[i];
    if (!found && node->name == chk->n_g) { // a new gradient, for the lines that follow
        ChkValue gradient = chk_expr(&o->body, chk_child(&o->body, item, 0));
        bind(o, node->name, chk_accept(&o->body, &gradient, o->type, "the new gradient"));
        return;
    }
    if (!found) {
        Name *names = arena_array(chk->arena, Name, o->states.count);
        for (uint32_t i = 0; i < o->states.count; i++)
            names[i] = o->states.at[i].name;
        Diag *d = diag(chk->diags, E1001, node->name_span, chk_name(chk, node->name));
        chk_suggest(chk, d, node->name, o->states.count, names);
        return;
    }
    if (found->updated) {
        Diag *d = diag(chk->diags, E1002, node->name_span, chk_name(chk, node->name));
        diag_label(d, found->span, "first updated here");
        return;
    }
    uint32_t before = o->body.core->lets.count;
    ChkValue value = chk_expr(&o->body, chk_child(&o->body, item, 0));
    value = chk_accept(&o->body, &value, o->type, "the new value");
    if (value.kind == CHK_LET && value.let >= before && !core_let(o->body.core, value.let)->name)
        o->body.core->lets.at[value.let].name = node->name;
    found->updated = true;
    found->span = node->name_span;
    found->new_value = value;
    bind(o, node->name, value);
}

static CoreFnId step(Optimizer *o, Name name) {
    Chk *chk = o->chk;
    CoreFnId id = core_fn_add(chk->core, name, o->decl->span);
    CoreFn *core = core_fn(chk->core, id);
    Name names[64] = {chk->n_p, chk->n_g};
    for (uint32_t i = 1; i < o->states.count; i++)
        names[i + 1] = o->states.at[i].name;
    for (uint32_t i = 0; i <= o->states.count; i++) {
        CoreLetId let = core_let_add(chk->core, core, CORE_param, o->type, 0, NULL, NULL, names[i],
                                     o->decl->span);
        bind(o, names[i], chk_let_value(let, o->type, o->decl->span));
        if (i != 1)
            o->states.at[i ? i - 1 : 0].new_value = o->body.scope->value;
    }
    core->params = core->lets.count;
    o->body.core = core;
    o->body.fields = map_new(chk->arena);
    const SynNode *decl = chk_node(&o->body, o->decl->node);
    for (uint32_t i = 0; i < decl->count; i++) {
        SynId item = chk_child(&o->body, o->decl->node, i);
        if (chk_node(&o->body, item)->kind == SYN_NEXT)
            next(o, item);
    }
    if (!o->states.at[0].updated) {
        Diag *d = diag(chk->diags, E1023, o->decl->span, "the optimizer has no `next p`");
        diag_note(d, "the line `next p : …` gives the new parameters");
    }
    ChkValue parts[64];
    for (uint32_t i = 0; i < o->states.count; i++)
        parts[i] = o->states.at[i].new_value;
    ChkValue all = {
        .kind = CHK_TUPLE, .span = decl->span, .count = o->states.count, .parts = parts};
    ChkValue result = chk_whole(&o->body, &all);
    core->result = result.let;
    core->type = result.type;
    return id;
}

CoreFnId chk_optimizer(Chk *chk, ChkDecl *decl, CoreTypeId type, uint32_t *hyper_count,
                       const ChkHyper **hypers) {
    Optimizer o = {
        .chk = chk, .decl = decl, .body = chk_constant_body(chk, decl->unit), .type = type};
    declare(&o);
    Name name =
        name_of(chk->context->names, str_format(chk->arena, "%s.step", chk_name(chk, decl->name)));
    chk_claim(chk, name, decl->span, "functions");
    *hyper_count = o.hypers.count;
    *hypers = o.hypers.at;
    return step(&o, name);
}
