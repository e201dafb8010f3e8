// Names: declarations of a unit, what is in scope, and the nearest spelling of what is not.
//
// A name is looked up among, in this order: parameters and lets (innermost first), dimensions of
// the function and its module, members of the module, declarations of the unit, builtins.
#include "check/internal.h"

const char *chk_name(const Chk *chk, Name name) {
    return name_c(chk->context->names, name);
}

const char *chk_c(Str text) {
    return text.at;
}

const char *chk_quoted(const Chk *chk, Name name) {
    return chk_c(str_format(chk->arena, "`%s`", chk_name(chk, name)));
}

const char *chk_count(const Chk *chk, uint32_t n, const char *word) {
    return chk_c(str_format(chk->arena, "%u %s%s", n, word, n == 1 ? "" : "s"));
}

ChkValue chk_poison(Span span) {
    return (ChkValue){.kind = CHK_POISON, .span = span};
}

const char *chk_decl_kind_text(ChkDeclKind kind) {
    static const char *const text[] = {"a constant", "a dimension", "a type",       "a module",
                                       "a function", "a model",     "an optimizer", "an import"};
    return text[kind];
}

const char *chk_value_text(const ChkBody *body, const ChkValue *value) {
    switch (value->kind) {
    case CHK_POISON:
        return "an error";
    case CHK_SCALAR:
        return "a constant";
    case CHK_LET:
        return chk_type_text(body->chk, value->type);
    case CHK_TUPLE:
        return chk_c(str_format(body->chk->arena, "a tuple of %u", value->count));
    case CHK_LAMBDA:
        return "a λ";
    case CHK_FUNCTION:
    case CHK_BUILTIN:
        return "a function";
    case CHK_MODULE_NAME:
    case CHK_MOD_VALUE:
        return "a module";
    case CHK_UNIT:
        return "an import";
    }
    return "nothing";
}

bool chk_claim(Chk *chk, Name name, Span span, const char *what) {
    bool fresh;
    uint32_t *slot = map_slot(chk->core_names, &name, sizeof name, &fresh);
    if (fresh) {
        *slot = chk->core_spans.count;
        vec_push(chk->arena, &chk->core_spans, span);
        return true;
    }
    Diag *d = diag(chk->diags, E1005, span, what, chk_name(chk, name));
    diag_label(d, chk->core_spans.at[*slot], "the other one");
    diag_help(d, "dumps and plans name things without import aliases; rename one of them");
    return false;
}

void chk_suggest(Chk *chk, Diag *d, Name name, uint32_t count, const Name *candidates) {
    Str *texts = arena_array(chk->arena, Str, count + 1);
    for (uint32_t i = 0; i < count; i++)
        texts[i] = name_str(chk->context->names, candidates[i]);
    Str best = nearest_spelling(chk->arena, name_str(chk->context->names, name), texts, count);
    if (best.size)
        diag_help(d, "did you mean `%s`?", best.at);
}

// ---- declarations ---------------------------------------------------------------------------

static bool decl_kind(SynKind kind, ChkDeclKind *out) {
    static const struct {
        SynKind syn;
        ChkDeclKind decl;
    } kinds[] = {{SYN_IMPORT, CHK_IMPORT},    {SYN_CONST, CHK_CONST},        {SYN_DIM, CHK_DIM},
                 {SYN_TYPE_ALIAS, CHK_ALIAS}, {SYN_MODULE, CHK_MODULE},      {SYN_FN, CHK_FN},
                 {SYN_MODEL, CHK_MODEL},      {SYN_OPTIMIZER, CHK_OPTIMIZER}};
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++)
        if (kinds[i].syn == kind) {
            *out = kinds[i].decl;
            return true;
        }
    return false;
}

void chk_collect(Chk *chk, ChkUnit *unit) {
    const SynTree *tree = unit->tree;
    const SynNode *program = syn_node(tree, tree->program);
    for (uint32_t i = 0; i < program->count; i++) {
        SynId id = syn_child(tree, tree->program, i);
        const SynNode *node = syn_node(tree, id);
        ChkDeclKind kind;
        if (!decl_kind(node->kind, &kind) || !node->name)
            continue;
        bool fresh;
        uint32_t *slot = map_slot(unit->names, &node->name, sizeof node->name, &fresh);
        if (!fresh) {
            Diag *d = diag(chk->diags, E1002, node->name_span, chk_name(chk, node->name));
            diag_label(d, unit->decls.at[*slot]->span, "first declared here");
            continue;
        }
        ChkDecl *decl = arena_new_of(chk->arena, ChkDecl);
        *decl = (ChkDecl){
            .kind = kind, .name = node->name, .span = node->name_span, .unit = unit, .node = id};
        *slot = unit->decls.count;
        vec_push(chk->arena, &unit->decls, decl);
    }
}

ChkDecl *chk_find(const ChkUnit *unit, Name name) {
    const uint32_t *slot = map_find(unit->names, &name, sizeof name);
    return slot ? unit->decls.at[*slot] : NULL;
}

// ---- lookup ---------------------------------------------------------------------------------

ChkBinding *chk_bind(Chk *chk, ChkBinding *scope, Name name, ChkValue value) {
    ChkBinding *binding = arena_new_of(chk->arena, ChkBinding);
    *binding = (ChkBinding){name, value, scope};
    return binding;
}

// A member of a module, reached from outside (no tree), from inside, or through a subtree.
static ChkValue member_value(ChkBody *body, const ChkMember *member, bool bound, ChkTree tree,
                             const ChkMod *mod, ChkModule *module, Span span) {
    switch (member->kind) {
    case CHK_MEMBER_FN:
        return (ChkValue){.kind = CHK_FUNCTION,
                          .span = span,
                          .fn = member->fn,
                          .mod = mod,
                          .module = module,
                          .bound = bound,
                          .tree = tree};
    case CHK_MEMBER_PARAM:
        if (!member->type)
            return chk_poison(span);
        break;
    case CHK_MEMBER_USE:
        if (!member->mod)
            return chk_poison(span);
        break;
    }
    Name *path = arena_array(body->chk->arena, Name, tree.count + 1);
    if (tree.count)
        memcpy(path, tree.path, sizeof(Name) * tree.count);
    path[tree.count] = member->name;
    ChkTree inner = {tree.base, tree.count + 1, path};
    if (member->kind == CHK_MEMBER_PARAM)
        return chk_field(body, inner, span);
    return (ChkValue){
        .kind = CHK_MOD_VALUE, .span = span, .mod = member->mod, .bound = true, .tree = inner};
}

static ChkValue decl_value(ChkBody *body, ChkDecl *decl, Span span) {
    Chk *chk = body->chk;
    switch (decl->kind) {
    case CHK_CONST:
        return chk_scalar_value(chk_const(chk, decl), span);
    case CHK_DIM:
        return chk_scalar_value(chk_dim(chk, decl), span);
    case CHK_MODULE: {
        ChkModule *module = chk_module(chk, decl);
        return module ? (ChkValue){.kind = CHK_MODULE_NAME, .span = span, .module = module}
                      : chk_poison(span);
    }
    case CHK_MODEL: {
        const ChkMod *mod = chk_model(chk, decl);
        return mod ? (ChkValue){.kind = CHK_MOD_VALUE, .span = span, .mod = mod} : chk_poison(span);
    }
    case CHK_FN:
        if (!decl->fn)
            decl->fn = chk_fn_new(chk, decl->unit, NULL, decl->node, decl->name, decl->span);
        return (ChkValue){.kind = CHK_FUNCTION, .span = span, .fn = decl->fn};
    case CHK_IMPORT:
        return decl->target ? (ChkValue){.kind = CHK_UNIT, .span = span, .unit = decl->target}
                            : chk_poison(span);
    case CHK_ALIAS:
    case CHK_OPTIMIZER:
        break;
    }
    diag(chk->diags, E1014, span, chk_quoted(chk, decl->name), chk_decl_kind_text(decl->kind),
         "a value");
    return chk_poison(span);
}

void chk_unknown_name(ChkBody *body, Name name, Span span) {
    Chk *chk = body->chk;
    Vec(Name) names = {0};
    for (const ChkBinding *b = body->scope; b; b = b->next)
        vec_push(chk->arena, &names, b->name);
    if (body->module) {
        if (body->module->poison)
            return;
        for (uint32_t i = 0; i < body->module->members.count; i++)
            vec_push(chk->arena, &names, body->module->members.at[i].name);
    }
    for (uint32_t i = 0; i < body->unit->decls.count; i++)
        vec_push(chk->arena, &names, body->unit->decls.at[i]->name);
    Name *builtins;
    uint32_t count = chk_builtin_names(chk, &builtins);
    for (uint32_t i = 0; i < count; i++)
        vec_push(chk->arena, &names, builtins[i]);
    Diag *d = diag(chk->diags, E1001, span, chk_name(chk, name));
    chk_suggest(chk, d, name, names.count, names.at);
}

ChkValue chk_lookup(ChkBody *body, Name name, Span span) {
    Chk *chk = body->chk;
    for (const ChkBinding *b = body->scope; b; b = b->next)
        if (b->name == name) {
            ChkValue value = b->value;
            value.span = span;
            return value;
        }
    if (body->module) {
        const ChkMember *member = chk_module_member(body->module, name);
        if (member && body->bound)
            return member_value(body, member, true, (ChkTree){0, 0, NULL}, NULL, body->module,
                                span);
    }
    ChkDecl *decl = chk_find(body->unit, name);
    if (decl)
        return decl_value(body, decl, span);
    const ChkBuiltin *builtin = chk_builtin_find(chk, name);
    if (builtin)
        return (ChkValue){.kind = CHK_BUILTIN, .span = span, .builtin = builtin};
    chk_unknown_name(body, name, span);
    return chk_poison(span);
}

ChkValue chk_path(ChkBody *body, SynId node) {
    const SynNode *path = chk_node(body, node);
    const SynNode *first = chk_node(body, chk_child(body, node, 0));
    ChkValue value = chk_lookup(body, first->name, first->span);
    for (uint32_t i = 1; i < path->count && !chk_is_poison(&value); i++) {
        const SynNode *part = chk_node(body, chk_child(body, node, i));
        value = chk_member(body, &value, part->name, part->span);
    }
    value.span = path->span;
    return value;
}

static ChkValue unit_member(ChkBody *body, const ChkValue *base, Name name, Span span) {
    ChkDecl *decl = chk_find(base->unit, name);
    if (decl)
        return decl_value(body, decl, span);
    Chk *chk = body->chk;
    Name *names = arena_array(chk->arena, Name, base->unit->decls.count);
    for (uint32_t i = 0; i < base->unit->decls.count; i++)
        names[i] = base->unit->decls.at[i]->name;
    Diag *d = diag(chk->diags, E1016, span, chk_c(base->unit->path), chk_name(chk, name));
    chk_suggest(chk, d, name, base->unit->decls.count, names);
    return chk_poison(span);
}

static ChkValue module_member(ChkBody *body, const ChkValue *base, Name name, Span span) {
    Chk *chk = body->chk;
    ChkModule *module = base->kind == CHK_MODULE_NAME ? base->module : base->mod->module;
    if (base->kind == CHK_MOD_VALUE && base->mod->kind != CHK_INSTANCE) {
        if (name == chk->n_apply)
            return (ChkValue){.kind = CHK_FUNCTION,
                              .span = span,
                              .mod = base->mod,
                              .bound = base->bound,
                              .tree = base->tree};
        Diag *d = diag(chk->diags, E1016, span, "a composed module", chk_name(chk, name));
        diag_help(d, "a composed module has `apply` only");
        return chk_poison(span);
    }
    const ChkMember *member = chk_module_member(module, name);
    if (member && (base->bound || member->kind == CHK_MEMBER_FN))
        return member_value(body, member, base->bound, base->tree, base->mod, module, span);
    if (module->poison)
        return chk_poison(span);
    if (member) {
        Diag *d =
            diag(chk->diags, E1017, span, chk_name(chk, module->decl->name), chk_name(chk, name));
        diag_help(d, "take it from a value `p : params %s`, as `p.%s`",
                  chk_name(chk, module->decl->name), chk_name(chk, name));
        return chk_poison(span);
    }
    Name *names = arena_array(chk->arena, Name, module->members.count);
    for (uint32_t i = 0; i < module->members.count; i++)
        names[i] = module->members.at[i].name;
    const char *what =
        chk_c(str_format(chk->arena, "module %s", chk_name(chk, module->decl->name)));
    Diag *d = diag(chk->diags, E1016, span, what, chk_name(chk, name));
    chk_suggest(chk, d, name, module->members.count, names);
    return chk_poison(span);
}

// A field of a tree that is a value: `p.token` with p : params M.
static ChkValue tree_member(ChkBody *body, const ChkValue *base, Name name, Span span) {
    Chk *chk = body->chk;
    CoreTree tree = core_type(chk->core, base->type)->tree;
    if (core_tree_field(chk->core, tree, 1, &name)) {
        Name *path = arena_new_of(chk->arena, Name);
        *path = name;
        return chk_field(body, (ChkTree){base->let, 1, path}, span);
    }
    const CoreTreeNode *node = core_tree(chk->core, tree);
    Diag *d = diag(chk->diags, E1016, span, chk_type_text(chk, base->type), chk_name(chk, name));
    if (node->module) {
        const CoreModule *module = &chk->core->modules.at[node->module];
        Name *names = arena_array(chk->arena, Name, module->fields.count);
        for (uint32_t i = 0; i < module->fields.count; i++)
            names[i] = module->fields.at[i].name;
        chk_suggest(chk, d, name, module->fields.count, names);
    }
    return chk_poison(span);
}

ChkValue chk_member(ChkBody *body, const ChkValue *base, Name name, Span span) {
    Chk *chk = body->chk;
    switch (base->kind) {
    case CHK_POISON:
        return chk_poison(span);
    case CHK_UNIT:
        return unit_member(body, base, name, span);
    case CHK_MODULE_NAME:
    case CHK_MOD_VALUE:
        return module_member(body, base, name, span);
    case CHK_LET:
        if (core_type(chk->core, base->type)->kind == CORE_PARAMS)
            return tree_member(body, base, name, span);
        break;
    default:
        break;
    }
    diag(chk->diags, E1016, span, chk_value_text(body, base), chk_name(chk, name));
    return chk_poison(span);
}
