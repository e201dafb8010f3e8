#include "cli/training.h"

#include "cli/values.h"

// ---- opening ----------------------------------------------------------------------------------

static int lacks(CliTraining *training, const char *what) {
    diag(&training->entry.args->context->diags, E6203, training->block->span, what);
    return cli_report(training->entry.args);
}

static int choose_backend(CliTraining *training) {
    CliArgs *args = training->entry.args;
    const char *text = cli_text(args, "backend");
    training->backend = RT_NATIVE;
    if (text && !cli_backend_of_text(text, &training->backend))
        return cli_usage(args, "--backend is ref, kernel or native, not `%s`", text);
    return cli_entry_backend(&training->entry, training->backend, RT_TO_RUN);
}

int cli_training_open(CliArgs *args, CliTraining *training) {
    *training = (CliTraining){0};
    CliEntry *entry = &training->entry;
    int status = cli_entry_compile(args, entry);
    if (status)
        return status;
    training->block = &entry->compiled.program->training;
    if (!training->block->present)
        return cli_usage(args, "%s has no training block", args->positional[0]);
    status = cli_entry_bind(entry);
    if (status)
        return status;
    if (!training->block->loss || !training->block->model)
        return lacks(training, "needs a model and a loss");
    Name name = entry->core->modules.at[training->block->model].name;
    training->model = name_str(args->context->names, name);
    status = choose_backend(training);
    if (!status && !cli_stream_spec(entry, &training->spec))
        status = cli_report(args);
    return status;
}

int cli_training_data(CliTraining *training, bool whole) {
    CliArgs *args = training->entry.args;
    const char *file = cli_text(args, "data");
    if (!file && !training->block->stream.size)
        return lacks(training, "has no data");
    training->data_path = !file ? training->block->stream.at : file[0] == '@' ? file + 1 : file;
    RtPath path = {&args->context->diags, args->arena, training->data_path, {0}};
    int status = cli_must_exist(args, path.path, CLI_DATA_HELP);
    if (status)
        return status;
    if (!rt_data_open(&path, &training->data))
        return cli_report(args);
    RtStreamSpec spec = training->spec;
    if (whole) {
        spec.shuffle = false;
        spec.take = -1;
        spec.batch = 1;
    }
    if (!rt_data_has_layout(&training->data) ||
        !rt_stream_new(&training->data, &spec, &training->stream))
        return cli_report(args);
    return CLI_FINE;
}

void cli_training_close(CliTraining *training) {
    rt_data_close(&training->data);
    cli_entry_close(&training->entry);
}

// ---- functions --------------------------------------------------------------------------------

// The name of the dimension that the stage `batch` binds; empty: there is none.
static Str batch_dim(const CliTraining *training) {
    for (uint32_t i = 0; i < training->block->stages.count; i++) {
        const ChkStage *stage = &training->block->stages.at[i];
        if (str_is(stage->name, "batch"))
            return name_str(training->entry.args->context->names, stage->keys[0]);
    }
    return STR("");
}

RtBinding *cli_training_bind(CliTraining *training, Str function, int64_t size) {
    CliEntry *entry = &training->entry;
    RtBinding *b = rt_bind(entry->core, entry->args->arena, function);
    if (!b)
        return NULL;
    Str batch = batch_dim(training);
    for (DimId dim = 1; dim <= extent_dim_count(entry->core->extents); dim++) {
        const Dim *at = extent_dim_get(entry->core->extents, dim);
        if (at->global && !str_equal(name_str(entry->args->context->names, at->name), batch)) {
            b->by_dim[dim] = entry->binding->by_dim[dim];
            b->by[dim] = entry->binding->by[dim];
        }
    }
    Str by = str_format(entry->args->arena, "a batch of %lld", (long long)size);
    return !batch.size || rt_bind_dim(b, batch, size, by) ? b : NULL;
}

int cli_training_parameters(CliTraining *training, RtBinding *b) {
    CliArgs *args = training->entry.args;
    const char *text = cli_text(args, "checkpoint");
    if (!text)
        return cli_usage(args, "--checkpoint @FILE says which parameters");
    RtPath path = {&args->context->diags, args->arena, text[0] == '@' ? text + 1 : text, {0}};
    if (!b->fn->params || core_type(b->core, core_let(b->fn, 0)->type)->kind != CORE_PARAMS)
        return cli_usage(args, "%s does not take the model's parameters first",
                         name_c(args->context->names, b->fn->name));
    CoreLeaf *leaves;
    uint32_t count = rt_bind_leaves(b, 0, &leaves);
    RtNamed *named = arena_array(args->arena, RtNamed, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        Shape shape;
        if (!rt_bind_leaf_shape(b, &leaves[i], core_let(b->fn, 0)->span, &shape))
            return cli_report(args);
        named[i].name = leaves[i].path;
        named[i].tensor =
            tensor_new(args->arena, training->entry.arithmetic->params, shape.rank, shape.extent);
    }
    if (!rt_checkpoint_read(&path, training->model, count, named))
        return cli_report(args);
    for (uint32_t i = 0; i < count; i++)
        b->arguments[0].parts[i] = (CoreValue){leaves[i].type, named[i].tensor, 0, NULL};
    return CLI_FINE;
}

int cli_function_build(CliTraining *training, RtBinding *b, CliFunction *function) {
    CliEntry *entry = &training->entry;
    *function = (CliFunction){training, b, NULL};
    if (!rt_bind_dims_done(b))
        return cli_report(entry->args);
    if (training->backend == RT_REF)
        return CLI_FINE;
    RtOptions options = entry->options;
    options.dims = b->by_dim;
    function->program = rt_build(entry->core, entry->args->arena, &options, b->id, b->arguments,
                                 rt_bind_own(b), b->pack_rank, b->pack);
    return function->program ? CLI_FINE : cli_report(entry->args);
}

CoreValue cli_function_run(const CliFunction *function, Arena *scratch) {
    const RtBinding *b = function->binding;
    if (function->program) {
        rt_run(function->program);
        return rt_result(function->program);
    }
    CoreEval eval = {.program = b->core,
                     .arithmetic = function->training->entry.arithmetic,
                     .dims = b->by_dim,
                     .arena = scratch};
    FloatEnv saved;
    float_env_enter(&saved);
    CoreValue result = core_eval(&eval, b->id, b->arguments, rt_bind_own(b), b->pack_rank, b->pack);
    float_env_leave(&saved);
    return result;
}
