// The training block: model, loss, optimizer, data pipeline and settings, for the commands that
// train. The optimizer's step is made for the block's model.
#include "check/internal.h"

typedef struct Training {
    Chk *chk;
    ChkBody body;
    ChkTraining *out;
    SynId node, model, loss, optimizer, data;
    ChkDecl *optimizer_decl;
    Vec(SynId) others; // settings
} Training;

static const char *const setting_words[] = {"epochs", "steps", "metric"};
static const char *const item_words[] = {"model",  "loss",  "optimizer", "data",
                                         "epochs", "steps", "metric",    "checkpoint"};

static const char *word(const Training *t, Name name) {
    return chk_name(t->chk, name);
}

// ---- items ----------------------------------------------------------------------------------

static void take_once(Training *t, SynId *slot, SynId item) {
    const SynNode *node = chk_node(&t->body, item);
    if (!*slot) {
        *slot = item;
        return;
    }
    Diag *d = diag(t->chk->diags, E1002, node->name_span, word(t, node->name));
    diag_label(d, chk_node(&t->body, *slot)->name_span, "first set here");
}

static void checkpoint(Training *t, SynId item) {
    const SynNode *node = chk_node(&t->body, item);
    int64_t every;
    if (!chk_int_expr(&t->body, chk_child(&t->body, item, 0), &every))
        return;
    if (every < 1)
        diag(t->chk->diags, E1023, node->span, "a checkpoint is made every 1 step or more");
    t->out->checkpoint_every = every;
    t->out->checkpoint_path = node->text;
}

static void sort_items(Training *t) {
    const SynNode *block = chk_node(&t->body, t->node);
    for (uint32_t i = 0; i < block->count; i++) {
        SynId item = chk_child(&t->body, t->node, i);
        const SynNode *node = chk_node(&t->body, item);
        Str name = name_str(t->chk->context->names, node->name);
        if (node->kind == SYN_CHECKPOINT)
            checkpoint(t, item);
        else if (node->kind != SYN_SET)
            diag(t->chk->diags, E1023, node->span, "this is not an item of a training block");
        else if (str_is(name, "model"))
            take_once(t, &t->model, item);
        else if (str_is(name, "loss"))
            take_once(t, &t->loss, item);
        else if (str_is(name, "optimizer"))
            take_once(t, &t->optimizer, item);
        else if (str_is(name, "data"))
            take_once(t, &t->data, item);
        else
            vec_push(t->chk->arena, &t->others, item);
    }
    static const char *const needed[] = {"model", "loss"};
    const SynId got[] = {t->model, t->loss};
    for (uint32_t i = 0; i < COUNT_OF(needed); i++)
        if (!got[i])
            diag(t->chk->diags, E1023, block->span,
                 chk_c(str_format(t->chk->arena, "the training block has no `%s`", needed[i])));
}

// ---- model and loss -------------------------------------------------------------------------

static CoreTypeId model(Training *t) {
    Chk *chk = t->chk;
    if (!t->model)
        return 0;
    const ChkMod *mod = chk_mod_expr(&t->body, chk_child(&t->body, t->model, 0));
    if (!mod)
        return 0;
    t->out->tree = mod->tree;
    t->out->model = core_tree(chk->core, mod->tree)->module;
    if (!t->out->model) {
        Diag *d =
            diag(chk->diags, E1023, chk_node(&t->body, t->model)->span, "the model needs a name");
        diag_help(d, "declare it: `model Net = …`, then `model = Net`");
        return 0;
    }
    return core_type_params(chk->core, mod->tree);
}

static void loss(Training *t, CoreTypeId tree) {
    Chk *chk = t->chk;
    if (!t->loss)
        return;
    SynId expr = chk_child(&t->body, t->loss, 0);
    ChkValue value = chk_expr(&t->body, expr);
    if (value.kind != CHK_FUNCTION || !value.fn) {
        if (!chk_is_poison(&value))
            diag(chk->diags, E1014, value.span, "the loss", chk_value_text(&t->body, &value),
                 "a function");
        return;
    }
    ChkFn *fn = value.fn;
    chk_elaborate(chk, fn);
    t->out->loss = fn->id;
    CoreTypeId first = fn->module ? fn->tree_type : fn->param_count ? fn->params[0] : 0;
    bool takes = fn->param_count && (!first || !tree || first == tree);
    const CoreType *result = fn->result ? core_type(chk->core, fn->result) : NULL;
    bool gives = !result || (result->kind == CORE_REAL && !result->rank);
    if (takes && gives && !fn->dim_count && !fn->has_pack)
        return;
    Diag *d = diag(chk->diags, E1023, value.span, "this function is not a loss");
    diag_label(d, fn->span, "declared here");
    diag_note(d, "a loss is `fn loss(p : %s, …) -> ℝ`, without dimensions of its own",
              tree ? chk_type_text(chk, tree) : "params M");
}

// ---- data -----------------------------------------------------------------------------------

typedef struct StageWord {
    const char *name;
    const char *key; // null: a dimension; "": no name
} StageWord;

static const StageWord stage_words[] = {
    {"windows", NULL}, {"batch", NULL}, {"shuffle", "seed"}, {"take", ""}};

static const char *stage_text(const Training *t, const StageWord *stage) {
    return chk_c(str_format(t->chk->arena, "`%s`", stage->name));
}

static bool stage_key(Training *t, const StageWord *stage, const SynNode *arg, int64_t value) {
    Chk *chk = t->chk;
    if (stage->key) {
        bool named = arg->kind == SYN_NAMED;
        if (stage->key[0] ? named && str_is(name_str(chk->context->names, arg->name), stage->key)
                          : !named)
            return true;
        Diag *d = diag(chk->diags, E1024, arg->span, stage_text(t, stage));
        diag_help(d, "write `%s(%s%sn)`", stage->name, stage->key, stage->key[0] ? " = " : "");
        return false;
    }
    ChkDecl *decl = arg->kind == SYN_NAMED ? chk_find(t->body.unit, arg->name) : NULL;
    if (!decl || decl->kind != CHK_DIM) {
        Diag *d = diag(chk->diags, E1024, arg->span, stage_text(t, stage));
        diag_note(d, "it binds a dimension of the program, as in `%s(T = 128)`", stage->name);
        Vec(Name) dims = {0};
        for (uint32_t i = 0; i < t->body.unit->decls.count; i++)
            if (t->body.unit->decls.at[i]->kind == CHK_DIM)
                vec_push(chk->arena, &dims, t->body.unit->decls.at[i]->name);
        if (arg->name)
            chk_suggest(chk, d, arg->name, dims.count, dims.at);
        return false;
    }
    Extent extent = core_scalar(chk->core, chk_dim(chk, decl))->extent;
    for (DimId i = 1; i <= extent_dim_count(chk->extents); i++) {
        Dim *dim = extent_dim_get(chk->extents, i);
        int64_t bound;
        if (extent_dim(chk->extents, i) != extent || dim->bound == EXTENT_NONE ||
            !extent_is_int(chk->extents, dim->bound, &bound) || value <= bound)
            continue;
        Diag *d = diag(chk->diags, E1024, arg->span, stage_text(t, stage));
        diag_note(d, "%s is at most %lld", word(t, arg->name), (long long)bound);
        diag_label(d, dim->span, "declared here");
        return false;
    }
    return true;
}

static void stage(Training *t, SynId id) {
    Chk *chk = t->chk;
    const SynNode *call = chk_node(&t->body, id);
    SynId callee = call->kind == SYN_CALL ? chk_child(&t->body, id, 0) : 0;
    const SynNode *path = chk_node(&t->body, callee);
    Name name = path->kind == SYN_PATH && path->count == 1
                    ? chk_node(&t->body, chk_child(&t->body, callee, 0))->name
                    : 0;
    const StageWord *found = NULL;
    Name names[COUNT_OF(stage_words)];
    for (uint32_t i = 0; i < COUNT_OF(stage_words); i++) {
        names[i] = name_of_c(chk->context->names, stage_words[i].name);
        if (names[i] == name)
            found = &stage_words[i];
    }
    if (!found || call->count != 2) {
        Diag *d = diag(chk->diags, E1024, call->span, name ? chk_quoted(chk, name) : "this");
        diag_note(d, "stages are windows(T = n), shuffle(seed = n), batch(B = n) and take(n)");
        if (name && !found)
            chk_suggest(chk, d, name, COUNT_OF(names), names);
        return;
    }
    SynId arg = chk_child(&t->body, id, 1);
    const SynNode *node = chk_node(&t->body, arg);
    SynId expr = node->kind == SYN_NAMED ? chk_child(&t->body, arg, 0) : arg;
    int64_t value;
    if (!chk_int_expr(&t->body, expr, &value) || !stage_key(t, found, node, value))
        return;
    const int least = found->key && found->key[0] ? 0 : 1;
    if (value < least) {
        Diag *d = diag(chk->diags, E1024, node->span, stage_text(t, found));
        diag_note(d, "its number is %d or more", least);
        return;
    }
    ChkStage made = {.name = str_of(found->name), .count = 1};
    made.keys[0] = node->kind == SYN_NAMED ? node->name : 0;
    made.values[0] = rational_of_int(chk->arena, value);
    vec_push(chk->arena, &t->out->stages, made);
}

static void data(Training *t) {
    if (!t->data)
        return;
    Vec(SynId) stages = {0};
    SynId node = chk_child(&t->body, t->data, 0);
    for (;;) {
        const SynNode *expr = chk_node(&t->body, node);
        if (expr->kind != SYN_BINARY || expr->op != SYN_OP_PIPE)
            break;
        vec_push(t->chk->arena, &stages, chk_child(&t->body, node, 1));
        node = chk_child(&t->body, node, 0);
    }
    const SynNode *stream = chk_node(&t->body, node);
    if (stream->kind != SYN_STREAM) {
        Diag *d = diag(t->chk->diags, E1024, stream->span, "this");
        diag_note(d, "the data of a training block begins with `stream \"path\"`");
        return;
    }
    t->out->stream = stream->text;
    for (uint32_t i = stages.count; i-- > 0;)
        stage(t, stages.at[i]);
}

// ---- optimizer and settings -----------------------------------------------------------------

static ChkDecl *optimizer_decl(Training *t) {
    Chk *chk = t->chk;
    SynId path = chk_child(&t->body, t->optimizer, 0);
    const SynNode *node = chk_node(&t->body, path);
    ChkDecl *decl = node->kind == SYN_PATH ? chk_path_decl(&t->body, path) : NULL;
    if (node->kind != SYN_PATH)
        diag(chk->diags, E1014, node->span, "this", "an expression", "an optimizer");
    if (!decl || decl->kind == CHK_OPTIMIZER)
        return decl;
    diag(chk->diags, E1014, node->span, chk_quoted(chk, decl->name), chk_decl_kind_text(decl->kind),
         "an optimizer");
    return NULL;
}

static Str source_text(Training *t, SynId expr) {
    const Source *source = source_get(&t->chk->context->sources, t->body.unit->source);
    Span span = chk_node(&t->body, expr)->span;
    return str_copy(t->chk->arena, source->text.at + span.begin, span.end - span.begin);
}

// A hyperparameter's value: a number, or an expression of the step `t`.
static void hyper(Training *t, SynId expr, ChkSetting *made) {
    Chk *chk = t->chk;
    ChkBody body = t->body;
    ChkValue step =
        chk_scalar_value(core_scalar_hyper(chk->core, chk->n_t), chk_node(&t->body, expr)->span);
    body.scope = chk_bind(chk, body.scope, chk->n_t, step);
    CoreScalar scalar = chk_scalar_expr(&body, expr);
    if (!scalar)
        return;
    if (core_scalar(chk->core, scalar)->kind == CORE_SCALAR_RATIONAL) {
        made->value = core_scalar(chk->core, scalar)->rational;
    } else {
        made->schedule = scalar;
        made->text = source_text(t, expr);
    }
}

static void setting(Training *t, SynId item, uint32_t hyper_count, const ChkHyper *hypers) {
    Chk *chk = t->chk;
    const SynNode *node = chk_node(&t->body, item);
    ChkSetting made = {.name = node->name, .span = node->name_span};
    bool known = false, word_of_block = false;
    Vec(Name) names = {0};
    for (uint32_t i = 0; i < COUNT_OF(item_words); i++)
        vec_push(chk->arena, &names, name_of_c(chk->context->names, item_words[i]));
    for (uint32_t i = 0; i < COUNT_OF(setting_words); i++)
        word_of_block =
            word_of_block || str_is(name_str(chk->context->names, node->name), setting_words[i]);
    known = word_of_block;
    for (uint32_t i = 0; i < hyper_count; i++) {
        known = known || hypers[i].name == node->name;
        vec_push(chk->arena, &names, hypers[i].name);
    }
    for (uint32_t i = 0; i < t->out->settings.count; i++)
        if (t->out->settings.at[i].name == node->name) {
            Diag *d = diag(chk->diags, E1002, node->name_span, word(t, node->name));
            diag_label(d, t->out->settings.at[i].span, "first set here");
            return;
        }
    if (!known) {
        Diag *d = diag(chk->diags, E1019, node->name_span, word(t, node->name));
        chk_suggest(chk, d, node->name, names.count, names.at);
        return;
    }
    SynId expr = chk_child(&t->body, item, 0);
    if (str_is(name_str(chk->context->names, node->name), "metric"))
        made.text = source_text(t, expr);
    else if (word_of_block)
        made.value = chk_rational_expr(&t->body, expr);
    else
        hyper(t, expr, &made);
    vec_push(chk->arena, &t->out->settings, made);
}

// Every hyperparameter is in the settings: as the block sets it, or its default.
static void settings(Training *t, uint32_t hyper_count, const ChkHyper *hypers) {
    for (uint32_t i = 0; i < t->others.count; i++)
        setting(t, t->others.at[i], hyper_count, hypers);
    for (uint32_t i = 0; i < hyper_count; i++) {
        bool set = false;
        for (uint32_t j = 0; j < t->out->settings.count; j++)
            set = set || t->out->settings.at[j].name == hypers[i].name;
        if (!set)
            vec_push(t->chk->arena, &t->out->settings,
                     ((ChkSetting){.name = hypers[i].name,
                                   .value = hypers[i].value,
                                   .span = hypers[i].span}));
    }
}

static void optimizers_of_root(Chk *chk, const ChkDecl *done, CoreTypeId type) {
    const ChkUnit *root = chk->units.at[0];
    for (uint32_t i = 0; i < root->decls.count; i++) {
        ChkDecl *decl = root->decls.at[i];
        uint32_t count;
        const ChkHyper *hypers;
        if (decl->kind == CHK_OPTIMIZER && decl != done)
            chk_optimizer(chk, decl, type, &count, &hypers);
    }
}

void chk_training(Chk *chk, ChkUnit *unit, SynId node) {
    CoreTypeId scalar = core_type_real(chk->core, 0, NULL);
    if (!node) {
        optimizers_of_root(chk, NULL, scalar);
        return;
    }
    Training t = {.chk = chk,
                  .body = chk_constant_body(chk, unit),
                  .out = &chk->result->training,
                  .node = node};
    t.out->present = true;
    t.out->span = chk_node(&t.body, node)->span;
    sort_items(&t);
    CoreTypeId tree = model(&t);
    loss(&t, tree);
    data(&t);
    uint32_t count = 0;
    const ChkHyper *hypers = NULL;
    ChkDecl *decl = t.optimizer ? optimizer_decl(&t) : NULL;
    if (decl)
        t.out->step = chk_optimizer(chk, decl, tree ? tree : scalar, &count, &hypers);
    if (decl || !t.optimizer)
        settings(&t, count, hypers);
    optimizers_of_root(chk, decl, tree ? tree : scalar);
}
