// Modules, their instances and module expressions.
//
// A module is checked once, in terms of its own dimensions; an instance says what they are. In a
// sequence item 0 is applied first: of `f ∘ g`, g is field 0 and f is field 1, and of `M ^ n` the
// fields are 0 … n − 1. A chain `f ∘ g ∘ h` is one sequence of three. A model that is a sequence
// (or `⊗`) is a module of its own, whose fields are the items' trees.
#include "check/internal.h"

ChkMember *chk_module_member(ChkModule *module, Name name) {
    for (uint32_t i = 0; i < module->members.count; i++)
        if (module->members.at[i].name == name)
            return &module->members.at[i];
    return NULL;
}

Name chk_item_name(Chk *chk, uint32_t index) {
    return name_of(chk->context->names, str_format(chk->arena, "%u", index));
}

ChkBody chk_module_body(Chk *chk, ChkModule *module) {
    ChkBody body = chk_constant_body(chk, module->decl->unit);
    body.module = module;
    for (uint32_t i = 0; i < module->dim_count; i++) {
        DimId dim = module->dims[i];
        CoreScalar scalar = core_scalar_extent(chk->core, extent_dim(chk->extents, dim));
        Dim *info = extent_dim_get(chk->extents, dim);
        body.scope = chk_bind(chk, body.scope, info->name, chk_scalar_value(scalar, info->span));
    }
    return body;
}

static bool tree_fits(Chk *chk, uint64_t size, Span span) {
    if (size <= CHK_TREE_MAX)
        return true;
    diag(chk->diags, E1018, span, "a parameter tree of more than 16,384 modules");
    return false;
}

// ---- members --------------------------------------------------------------------------------

typedef struct InitWord {
    const char *word;
    CoreInitKind kind;
    uint32_t args;
} InitWord;

static const InitWord init_words[] = {{"zeros", CORE_INIT_ZEROS, 0},
                                      {"ones", CORE_INIT_ONES, 0},
                                      {"normal", CORE_INIT_NORMAL, 2},
                                      {"uniform", CORE_INIT_UNIFORM, 2}};

static const InitWord *init_word(const ChkBody *body, SynId node) {
    const SynNode *path = chk_node(body, node);
    if (path->kind != SYN_PATH || path->count != 1)
        return NULL;
    Name name = chk_node(body, chk_child(body, node, 0))->name;
    for (uint32_t i = 0; i < COUNT_OF(init_words); i++)
        if (str_is(name_str(body->chk->context->names, name), init_words[i].word))
            return &init_words[i];
    return NULL;
}

static CoreInit member_init(ChkBody *body, SynId node) {
    CoreInit init = {.kind = CORE_INIT_ZEROS};
    const SynNode *expr = chk_node(body, node);
    if (!node)
        return init;
    bool call = expr->kind == SYN_CALL;
    const InitWord *word = init_word(body, call ? chk_child(body, node, 0) : node);
    if (!word) {
        init.kind = CORE_INIT_CONSTANT;
        init.a = chk_scalar_expr(body, node);
        return init;
    }
    init.kind = word->kind;
    uint32_t args = call ? expr->count - 1 : 0;
    if (args != word->args) {
        diag(body->chk->diags, E2004, expr->span, word->word,
             chk_count(body->chk, word->args, "argument"),
             chk_c(str_format(body->chk->arena, "%u", args)));
        return init;
    }
    if (args) {
        init.a = chk_scalar_expr(body, chk_child(body, node, 1));
        init.b = chk_scalar_expr(body, chk_child(body, node, 2));
    }
    return init;
}

static void member_param(ChkBody *body, ChkMember *member, CoreField *field) {
    Chk *chk = body->chk;
    SynId type = chk_child(body, member->node, 0);
    member->type = chk_type(body, type);
    if (member->type && core_type(chk->core, member->type)->kind != CORE_REAL) {
        diag(chk->diags, E2003, chk_node(body, type)->span, "a parameter", "a real tensor",
             chk_type_text(chk, member->type));
        member->type = 0;
    }
    field->type = member->type;
    field->init = member_init(body, chk_child(body, member->node, 1));
}

// Takes a member's name; false if it is taken.
static bool new_member(Chk *chk, ChkModule *module, const SynNode *node) {
    Span first = {0};
    const ChkMember *other = chk_module_member(module, node->name);
    if (other)
        first = other->span;
    for (uint32_t i = 0; i < module->dim_count; i++) {
        const Dim *dim = extent_dim_get(chk->extents, module->dims[i]);
        if (dim->name == node->name)
            first = dim->span;
    }
    if (!first.source)
        return true;
    Diag *d = diag(chk->diags, E1002, node->name_span, chk_name(chk, node->name));
    diag_label(d, first, "first declared here");
    return false;
}

static void add_member(Chk *chk, ChkModule *module, ChkBody *body, SynId id) {
    const SynNode *node = chk_node(body, id);
    if (node->kind == SYN_ABSENT || !new_member(chk, module, node))
        return;
    ChkMember member = {.name = node->name, .node = id, .span = node->name_span};
    CoreField field = {.name = node->name, .span = node->name_span};
    if (node->kind == SYN_FN) {
        member.kind = CHK_MEMBER_FN;
        Str name = str_format(chk->arena, "%s.%s", chk_name(chk, module->decl->name),
                              chk_name(chk, node->name));
        member.fn = chk_fn_new(chk, module->decl->unit, module, id,
                               name_of(chk->context->names, name), node->name_span);
        vec_push(chk->arena, &module->members, member);
        return;
    }
    if (node->kind == SYN_PARAM) {
        member.kind = CHK_MEMBER_PARAM;
        member_param(body, &member, &field);
    } else {
        member.kind = CHK_MEMBER_USE;
        member.mod = chk_mod_expr(body, chk_child(body, id, 0));
        if (member.mod && !tree_fits(chk, (uint64_t)module->size + member.mod->size, member.span))
            member.mod = NULL;
        module->size += member.mod ? member.mod->size : 0;
        field.tree = member.mod ? member.mod->tree : 0;
    }
    vec_push(chk->arena, &module->members, member);
    if (field.type || field.tree)
        vec_push(chk->arena, &chk->core->modules.at[module->id].fields, field);
    else
        module->poison = true;
}

uint32_t chk_own_dims(Chk *chk, ChkUnit *unit, SynId list, DimId *dims) {
    const SynNode *names = syn_node(unit->tree, list);
    uint32_t count = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        const SynNode *node = syn_node(unit->tree, syn_child(unit->tree, list, i));
        bool fresh = true;
        for (uint32_t j = 0; j < count; j++)
            fresh = fresh && extent_dim_get(chk->extents, dims[j])->name != node->name;
        if (!fresh)
            diag(chk->diags, E1002, node->span, chk_name(chk, node->name));
        Dim dim = {.name = node->name, .span = node->span};
        dims[count++] = extent_dim_add(chk->extents, dim);
    }
    return count;
}

static ChkModule *module_new(Chk *chk, ChkDecl *decl) {
    ChkModule *module = arena_new_of(chk->arena, ChkModule);
    module->decl = decl;
    module->size = 1;
    if (!chk_claim(chk, decl->name, decl->span, "modules"))
        module->poison = true;
    module->id = core_module_add(chk->core, decl->name, decl->span);
    return module;
}

ChkModule *chk_module(Chk *chk, ChkDecl *decl) {
    if (decl->state == CHK_OPEN) {
        diag(chk->diags, E1015, decl->span, chk_name(chk, decl->name));
        decl->state = CHK_FAILED;
        return NULL;
    }
    if (decl->state != CHK_NEW)
        return decl->state == CHK_FAILED ? NULL : decl->module;
    decl->state = CHK_OPEN;
    const SynTree *tree = decl->unit->tree;
    const SynNode *node = syn_node(tree, decl->node);
    SynId dims = syn_child(tree, decl->node, 0);
    ChkModule *module = module_new(chk, decl);
    module->dims = arena_array(chk->arena, DimId, syn_node(tree, dims)->count + 1);
    module->dim_count = chk_own_dims(chk, decl->unit, dims, module->dims);
    for (uint32_t i = 0; i < module->dim_count; i++)
        vec_push(chk->arena, &chk->core->modules.at[module->id].dims, module->dims[i]);
    ChkBody body = chk_module_body(chk, module);
    body.module = NULL;
    for (uint32_t i = 1; i < node->count; i++)
        add_member(chk, module, &body, syn_child(tree, decl->node, i));
    decl->module = module;
    if (decl->state == CHK_FAILED)
        return NULL;
    decl->state = CHK_DONE;
    return module;
}

// ---- instances and expressions --------------------------------------------------------------

const ChkMod *chk_instance_of(Chk *chk, ChkModule *module, uint32_t count, const Extent *dims) {
    ChkMod *mod = arena_new_of(chk->arena, ChkMod);
    *mod = (ChkMod){.kind = CHK_INSTANCE, .module = module, .count = count, .size = module->size};
    mod->dims = arena_copy(chk->arena, dims, sizeof *dims * count);
    mod->tree = core_tree_module(chk->core, module->id, count, mod->dims);
    return mod;
}

const ChkMod *chk_instance(ChkBody *body, ChkModule *module, uint32_t count, const SynId *args,
                           Span span) {
    Chk *chk = body->chk;
    if (count != module->dim_count) {
        Diag *d = diag(chk->diags, E2019, span, chk_name(chk, module->decl->name),
                       chk_count(chk, module->dim_count, "dimension"),
                       chk_c(str_format(chk->arena, "%u", count)));
        diag_label(d, module->decl->span, "declared here");
        return NULL;
    }
    Extent *dims = arena_array(chk->arena, Extent, count + 1);
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        dims[i] = chk_extent_expr(body, args[i]);
        good = good && dims[i] != EXTENT_NONE;
    }
    return good ? chk_instance_of(chk, module, count, dims) : NULL;
}

static const ChkMod *as_mod(ChkBody *body, const ChkValue *value) {
    if (value->kind == CHK_MODULE_NAME)
        return chk_instance(body, value->module, 0, NULL, value->span);
    if (value->kind == CHK_MOD_VALUE)
        return value->mod;
    if (!chk_is_poison(value))
        diag(body->chk->diags, E1014, value->span, "the expression", chk_value_text(body, value),
             "a module");
    return NULL;
}

const ChkMod *chk_mod_expr(ChkBody *body, SynId node) {
    ChkBody constant = *body;
    constant.core = NULL;
    ChkValue value = chk_expr(&constant, node);
    return as_mod(body, &value);
}

// Null, after a diagnostic, where the tree is too large.
static const ChkMod *combined(Chk *chk, ChkModKind kind, uint32_t count, const ChkMod **items,
                              Span span) {
    CoreTree *trees = arena_array(chk->arena, CoreTree, count + 1);
    uint64_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        trees[i] = items[i]->tree;
        size += items[i]->size;
    }
    if (!tree_fits(chk, size, span))
        return NULL;
    ChkMod *mod = arena_new_of(chk->arena, ChkMod);
    *mod = (ChkMod){.kind = kind, .count = count, .items = items, .size = (uint32_t)size};
    mod->tree = core_tree_sequence(chk->core, count, trees);
    return mod;
}

static const ChkMod *copies(ChkBody *body, SynId node, const ChkMod *mod) {
    Chk *chk = body->chk;
    SynId exponent = chk_child(body, node, 1);
    int64_t count;
    if (!chk_int_expr(body, exponent, &count))
        return NULL;
    if (count < 0 || count > CHK_COPIES_MAX) {
        diag(chk->diags, E2015, chk_node(body, exponent)->span,
             chk_c(str_format(chk->arena, "%lld", (long long)count)),
             "not a number of copies from 0 to 1024");
        return NULL;
    }
    const ChkMod **items = arena_array(chk->arena, const ChkMod *, count + 1);
    for (int64_t i = 0; i < count; i++)
        items[i] = mod;
    return combined(chk, CHK_SEQUENCE, (uint32_t)count, items, chk_node(body, node)->span);
}

// Whether a node is itself a chain of the operator, so that its items join the longer chain.
static bool is_chain(const ChkBody *body, SynId node, SynOp op) {
    const SynNode *left = chk_node(body, node);
    return left->kind == SYN_BINARY && left->op == op;
}

ChkValue chk_mod_operator(ChkBody *body, SynId node, const ChkValue *left) {
    Chk *chk = body->chk;
    const SynNode *operation = chk_node(body, node);
    ChkValue result = {.kind = CHK_MOD_VALUE, .span = operation->span};
    const ChkMod *first = as_mod(body, left);
    if (operation->op == SYN_OP_POW) {
        result.mod = first ? copies(body, node, first) : NULL;
        return result.mod ? result : chk_poison(operation->span);
    }
    ChkValue right = chk_expr(body, chk_child(body, node, 1));
    const ChkMod *second = as_mod(body, &right);
    if (!first || !second)
        return chk_poison(operation->span);
    bool compose = operation->op == SYN_OP_COMPOSE;
    bool chain = is_chain(body, chk_child(body, node, 0), (SynOp)operation->op);
    uint32_t held = chain ? first->count : 1;
    const ChkMod **items = arena_array(chk->arena, const ChkMod *, held + 1);
    for (uint32_t i = 0; i < held; i++)
        items[compose + i] = chain ? first->items[i] : first;
    items[compose ? 0 : held] = second;
    result.mod =
        combined(chk, compose ? CHK_SEQUENCE : CHK_PARALLEL, held + 1, items, operation->span);
    return result.mod ? result : chk_poison(operation->span);
}

// ---- models ---------------------------------------------------------------------------------

static ChkModule *model_module(Chk *chk, ChkDecl *decl, const ChkMod *mod) {
    ChkModule *module = module_new(chk, decl);
    module->size += mod->size;
    for (uint32_t i = 0; i < mod->count; i++) {
        CoreField field = {
            .name = chk_item_name(chk, i), .tree = mod->items[i]->tree, .span = decl->span};
        vec_push(chk->arena, &chk->core->modules.at[module->id].fields, field);
    }
    Str name = str_format(chk->arena, "%s.apply", chk_name(chk, decl->name));
    ChkMember member = {.kind = CHK_MEMBER_FN, .name = chk->n_apply, .span = decl->span};
    member.fn =
        chk_fn_new(chk, decl->unit, module, 0, name_of(chk->context->names, name), decl->span);
    member.fn->composite = mod;
    vec_push(chk->arena, &module->members, member);
    return module;
}

const ChkMod *chk_model(Chk *chk, ChkDecl *decl) {
    if (decl->state == CHK_OPEN) {
        diag(chk->diags, E1015, decl->span, chk_name(chk, decl->name));
        decl->state = CHK_FAILED;
    }
    if (decl->state != CHK_NEW)
        return decl->state == CHK_FAILED ? NULL : decl->mod;
    decl->state = CHK_OPEN;
    ChkBody body = chk_constant_body(chk, decl->unit);
    const ChkMod *mod = chk_mod_expr(&body, syn_child(decl->unit->tree, decl->node, 0));
    if (mod && mod->kind != CHK_INSTANCE) {
        decl->module = model_module(chk, decl, mod);
        mod = chk_instance_of(chk, decl->module, 0, NULL);
    }
    decl->mod = mod;
    decl->state = mod && decl->state != CHK_FAILED ? CHK_DONE : CHK_FAILED;
    return decl->state == CHK_DONE ? mod : NULL;
}
