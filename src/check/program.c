// The checker's entry: units are loaded, the root's declarations checked in order, its functions
// and those they call elaborated, the training block read.
#include "base/file.h"
#include "check/internal.h"

static Chk open_chk(Context *context, Arena *arena, uint32_t const_count, const ChkConst *consts) {
    Chk chk = {.context = context,
               .diags = &context->diags,
               .arena = arena,
               .const_count = const_count,
               .consts = consts,
               .core_names = map_new(arena)};
    chk.core = core_program_new(context, arena);
    chk.extents = chk.core->extents;
    chk.result = arena_new_of(arena, ChkProgram);
    chk.result->core = chk.core;
    chk.n_last = name_of_c(context->names, "last");
    chk.n_apply = name_of_c(context->names, "apply");
    chk.n_zeros = name_of_c(context->names, "zeros");
    chk.n_p = name_of_c(context->names, "p");
    chk.n_g = name_of_c(context->names, "g");
    chk.n_t = name_of_c(context->names, "t");
    return chk;
}

static void asserts(Chk *chk) {
    for (uint32_t i = 0; i < chk->units.count; i++) {
        ChkUnit *unit = chk->units.at[i];
        const SynNode *program = syn_node(unit->tree, unit->tree->program);
        for (uint32_t j = 0; j < program->count; j++) {
            SynId node = syn_child(unit->tree, unit->tree->program, j);
            if (syn_node(unit->tree, node)->kind == SYN_STATIC_ASSERT)
                chk_static_assert(chk, unit, node);
        }
    }
}

static void module_functions(Chk *chk, ChkModule *module) {
    for (uint32_t i = 0; module && i < module->members.count; i++)
        if (module->members.at[i].fn)
            chk_elaborate(chk, module->members.at[i].fn);
}

static void declaration(Chk *chk, ChkDecl *decl) {
    switch (decl->kind) {
    case CHK_CONST:
        chk_const(chk, decl);
        break;
    case CHK_ALIAS:
        chk_alias(chk, decl);
        break;
    case CHK_MODULE:
        module_functions(chk, chk_module(chk, decl));
        break;
    case CHK_MODEL:
        chk_model(chk, decl);
        module_functions(chk, decl->module);
        break;
    case CHK_FN:
        if (!decl->fn)
            decl->fn = chk_fn_new(chk, decl->unit, NULL, decl->node, decl->name, decl->span);
        chk_elaborate(chk, decl->fn);
        break;
    case CHK_DIM:
    case CHK_OPTIMIZER:
    case CHK_IMPORT:
        break;
    }
}

// What is parsed and not supported; and the training block, 0: none.
static SynId blocks(Chk *chk, const ChkUnit *root) {
    const SynNode *program = syn_node(root->tree, root->tree->program);
    SynId training = 0;
    for (uint32_t i = 0; i < program->count; i++) {
        SynId id = syn_child(root->tree, root->tree->program, i);
        const SynNode *node = syn_node(root->tree, id);
        if (node->kind == SYN_INFERENCE)
            diag(chk->diags, E1013, node->span, "`inference serve`");
        else if (node->kind == SYN_EFFECT)
            diag(chk->diags, E4001, node->span, "effects");
        else if (node->kind == SYN_TRAINING && training)
            diag(chk->diags, E1002, node->span, "training run");
        else if (node->kind == SYN_TRAINING)
            training = id;
    }
    return training;
}

ChkProgram *chk_source(Context *context, Arena *arena, uint32_t source, uint32_t const_count,
                       const ChkConst *consts) {
    uint32_t before = context->diags.errors;
    Chk chk = open_chk(context, arena, const_count, consts);
    chk.result->source = source;
    ChkUnit *root = chk_load(&chk, source, source_get(&context->sources, source)->path, false);
    if (chk.bad_syntax)
        return NULL;
    chk_command_line(&chk);
    for (uint32_t i = 0; i < root->decls.count; i++)
        if (root->decls.at[i]->kind == CHK_DIM)
            chk_dim(&chk, root->decls.at[i]);
    asserts(&chk);
    for (uint32_t i = 0; i < root->decls.count; i++)
        declaration(&chk, root->decls.at[i]);
    chk_training(&chk, root, blocks(&chk, root));
    return context->diags.errors == before ? chk.result : NULL;
}

ChkProgram *chk_program(Context *context, Arena *arena, const char *path, uint32_t const_count,
                        const ChkConst *consts) {
    Str text, error;
    if (!file_read(arena, path, &text, &error)) {
        diag(&context->diags, E1003, (Span){0}, path, error.at);
        return NULL;
    }
    uint32_t source = source_add(&context->sources, str_of(path), text);
    return chk_source(context, arena, source, const_count, consts);
}
