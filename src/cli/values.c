#include "cli/values.h"

#include "base/file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static RtPath path_of(const CliEntry *entry, const char *path) {
    return (RtPath){
        &entry->args->context->diags, entry->args->arena, path[0] == '@' ? path + 1 : path, {0}};
}

static bool ends_with(const char *text, const char *end) {
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

// ---- inputs ---------------------------------------------------------------------------------

static int give_inputs(CliEntry *entry) {
    CliArgs *args = entry->args;
    const char **texts;
    uint32_t count = cli_list(args, "in", args->arena, &texts);
    for (uint32_t i = 0; i < count; i++) {
        Str name, value;
        if (!cli_split(args->arena, texts[i], &name, &value) || !value.size || str_is(value, "@"))
            return cli_usage(args, "--in is NAME=@FILE, not `%s`", texts[i]);
        for (uint32_t j = 0; j < i; j++)
            if (strncmp(texts[i], texts[j], name.size + 1u) == 0)
                return cli_usage(args, "the input %s is given twice", name.at);
        RtPath path = path_of(entry, value.at);
        Tensor tensor;
        Str by = str_format(args->arena, "the input %s from %s", name.at, path.path);
        if (!rt_tensor_read(&path, &tensor) ||
            !rt_bind_input(entry->binding, name, &tensor, entry->arithmetic->inputs, by))
            return cli_report(args);
    }
    return CLI_FINE;
}

// ---- parameters -----------------------------------------------------------------------------

// The one parameter of the entry that is a tree.
static int find_tree(CliEntry *entry, uint32_t *parameter) {
    const RtBinding *b = entry->binding;
    for (uint32_t i = 0; i < b->fn->params; i++)
        if (core_type(entry->core, core_let(b->fn, i)->type)->kind == CORE_PARAMS) {
            *parameter = i;
            return CLI_FINE;
        }
    return cli_usage(entry->args, "--params: the entry %s has no parameter tree",
                     name_c(entry->args->context->names, b->fn->name));
}

// The module of a parameter tree.
static Str model_name(const CliEntry *entry, CoreTypeId type) {
    CoreTree tree = core_type(entry->core, type)->tree;
    CoreModuleId module = core_tree(entry->core, tree)->module;
    return module ? name_str(entry->args->context->names, entry->core->modules.at[module].name)
                  : STR("model");
}

// A checkpoint has no shapes of its own: dimensions come from the command line and other inputs.
static int give_parameters(CliEntry *entry) {
    CliArgs *args = entry->args;
    const char *text = cli_text(args, "params");
    if (!text)
        return CLI_FINE;
    uint32_t parameter = 0;
    int status = find_tree(entry, &parameter);
    if (status)
        return status;
    if (!rt_bind_dims_done(entry->binding))
        return cli_report(args);
    RtPath path = path_of(entry, text);
    CoreLeaf *leaves;
    uint32_t count = rt_bind_leaves(entry->binding, parameter, &leaves);
    RtNamed *named = arena_array(args->arena, RtNamed, count + 1);
    Span span = core_let(entry->binding->fn, parameter)->span;
    for (uint32_t i = 0; i < count; i++) {
        Shape shape;
        if (!rt_bind_leaf_shape(entry->binding, &leaves[i], span, &shape))
            return cli_report(args);
        named[i].name = leaves[i].path;
        named[i].tensor = tensor_new(args->arena, F64, shape.rank, shape.extent);
    }
    if (!rt_checkpoint_read(&path, model_name(entry, core_let(entry->binding->fn, parameter)->type),
                            count, named))
        return cli_report(args);
    Str by = str_format(args->arena, "the parameters from %s", path.path);
    for (uint32_t i = 0; i < count; i++)
        if (!rt_bind_leaf(entry->binding, parameter, i, &named[i].tensor, entry->arithmetic->params,
                          by))
            return cli_report(args);
    return CLI_FINE;
}

// ---- batches --------------------------------------------------------------------------------

static bool stage_number(const ChkStage *stage, const Names *names, const char *key,
                         int64_t *value) {
    for (uint32_t i = 0; i < stage->count; i++)
        if (!stage->keys[i] || strcmp(name_c(names, stage->keys[i]), key) == 0)
            if (stage->values[i] && rational_is_int(stage->values[i], value))
                return true;
    return false;
}

// The stream's stages; `windows` and `batch` also bind the dimensions that they name, unless the
// command line has bound them: then theirs are taken.
static bool stage_dim(CliEntry *entry, const ChkStage *stage, int64_t *value) {
    RtBinding *b = entry->binding;
    Str name = name_str(entry->args->context->names, stage->keys[0]);
    for (DimId dim = 1; dim <= extent_dim_count(entry->core->extents); dim++)
        if (str_equal(name_str(entry->args->context->names,
                               extent_dim_get(entry->core->extents, dim)->name),
                      name) &&
            b->by_dim[dim] >= 0) {
            *value = b->by_dim[dim];
            return true;
        }
    if (!stage->values[0] || !rational_is_int(stage->values[0], value))
        return false;
    return rt_bind_dim(b, name, *value,
                       str_format(b->arena, "%s(%s = …)", stage->name.at, name.at));
}

bool cli_stream_spec(CliEntry *entry, RtStreamSpec *spec) {
    const ChkTraining *training = &entry->compiled.program->training;
    const Names *names = entry->args->context->names;
    *spec = (RtStreamSpec){.batch = 1, .take = -1};
    for (uint32_t i = 0; i < training->stages.count; i++) {
        const ChkStage *stage = &training->stages.at[i];
        int64_t number = 0;
        if (str_is(stage->name, "windows")) {
            if (!stage_dim(entry, stage, &spec->window))
                return false;
        } else if (str_is(stage->name, "batch")) {
            if (!stage_dim(entry, stage, &spec->batch))
                return false;
        } else if (str_is(stage->name, "shuffle")) {
            spec->shuffle = true;
            spec->seed = stage_number(stage, names, "seed", &number) ? (uint64_t)number : 0;
        } else if (str_is(stage->name, "take")) {
            if (!stage_number(stage, names, "n", &spec->take))
                return false;
        }
    }
    return true;
}

// Binds the leaves of a batch to the entry's inputs that are no trees, in order.
static int bind_batch(CliEntry *entry, RtStream *stream, uint64_t number) {
    CliArgs *args = entry->args;
    RtBinding *b = entry->binding;
    Tensor *tensors = arena_array(args->arena, Tensor, stream->leaves + 1);
    for (uint32_t i = 0; i < stream->leaves; i++) {
        RtLeaf leaf = rt_stream_leaf(stream, i);
        int64_t extent[RANK_MAX] = {stream->spec.batch};
        if (leaf.rank + 1 > RANK_MAX)
            return cli_usage(args, "the data's samples have too many axes");
        memcpy(extent + 1, leaf.extent, leaf.rank * sizeof *extent);
        tensors[i] = tensor_new(args->arena, leaf.type, leaf.rank + 1, extent);
    }
    uint64_t epoch = number / stream->batches + 1;
    if (!rt_stream_batch(stream, epoch, number % stream->batches, tensors))
        return cli_report(args);
    uint32_t next = 0;
    for (uint32_t i = 0; i < b->fn->params; i++) {
        CoreKind kind = core_type(entry->core, core_let(b->fn, i)->type)->kind;
        if (kind == CORE_PARAMS || next == stream->leaves)
            continue;
        Str by = str_format(args->arena, "part %u of the batch", next);
        if (!rt_bind_input(b, rt_bind_name(b, i), &tensors[next++], entry->arithmetic->inputs, by))
            return cli_report(args);
    }
    return CLI_FINE;
}

static int give_batch(CliEntry *entry) {
    CliArgs *args = entry->args;
    const ChkTraining *training = &entry->compiled.program->training;
    if (!cli_text(args, "batch"))
        return CLI_FINE;
    if (!training->present)
        return cli_usage(args, "--batch: the program has no training block");
    const char *file = cli_text(args, "data");
    RtPath path = path_of(entry, file ? file : training->stream.at);
    RtData data;
    RtStreamSpec spec;
    RtStream stream;
    int status = cli_must_exist(args, path.path, CLI_DATA_HELP);
    if (status)
        return status;
    if (!cli_stream_spec(entry, &spec) || !rt_data_open(&path, &data))
        return cli_report(args);
    status = rt_data_has_layout(&data) && rt_stream_new(&data, &spec, &stream)
                 ? bind_batch(entry, &stream, (uint64_t)cli_number(args, "batch", 0))
                 : cli_report(args);
    rt_data_close(&data);
    return status;
}

int cli_values_given(CliEntry *entry) {
    int status = give_batch(entry);
    if (!status)
        status = give_inputs(entry);
    return status ? status : give_parameters(entry);
}

// ---- saving ---------------------------------------------------------------------------------

static bool save_tree(CliEntry *entry, uint32_t parameter, const char *stem) {
    Arena *arena = entry->args->arena;
    const CoreValue *argument = &entry->binding->arguments[parameter];
    CoreLeaf *leaves;
    uint32_t count = rt_bind_leaves(entry->binding, parameter, &leaves);
    RtNamed *named = arena_array(arena, RtNamed, count + 1);
    for (uint32_t i = 0; i < count; i++)
        named[i] = (RtNamed){leaves[i].path, argument->parts[i].tensor};
    RtPath path = path_of(entry, str_format(arena, "%s.safetensors", stem).at);
    return rt_safetensors_write(&path, count, named);
}

bool cli_values_save(CliEntry *entry, const char *folder) {
    Arena *arena = entry->args->arena;
    const RtBinding *b = entry->binding;
    if (folder[0] == '@')
        folder++;
    for (uint32_t i = 0; i < b->fn->params; i++) {
        Str stem = str_format(arena, "%s/%s", folder, rt_bind_name(b, i).at);
        RtPath path = path_of(entry, str_format(arena, "%s.npy", stem.at).at);
        if (!file_make_folders(arena, path.path) && !file_exists(folder)) {
            diag(&entry->args->context->diags, E5002, (Span){0}, folder,
                 "the folder cannot be made");
            return false;
        }
        bool saved = b->arguments[i].parts ? save_tree(entry, i, stem.at)
                                           : rt_npy_write(&path, &b->arguments[i].tensor);
        if (!saved)
            return false;
    }
    return true;
}

// ---- results --------------------------------------------------------------------------------

static uint32_t tensors_of_type(const CliEntry *entry, CoreTypeId id) {
    const CoreType *type = core_type(entry->core, id);
    if (type->kind == CORE_PARAMS)
        return core_leaf_count(entry->core, type->tree);
    uint32_t count = type->kind != CORE_TUPLE;
    for (uint32_t i = 0; type->kind == CORE_TUPLE && i < type->parts; i++)
        count += tensors_of_type(entry, type->part[i]);
    return count;
}

int cli_values_can_write(CliEntry *entry, const char *text) {
    CliArgs *args = entry->args;
    RtPath path = path_of(entry, text);
    bool several = ends_with(path.path, ".safetensors");
    if (!several && !ends_with(path.path, ".npy") && !ends_with(path.path, ".psk.d"))
        return cli_usage(args, "a result is written as .npy, .psk.d or .safetensors, not `%s`",
                         path.path);
    CoreTypeId type = entry->binding->fn->type;
    uint32_t count = tensors_of_type(entry, type);
    if (core_type(entry->core, type)->kind == CORE_PARAMS)
        several = several || ends_with(path.path, ".psk.d"); // a checkpoint
    if (count != 1 && !several)
        diag(path.diags, E6015, (Span){0}, path.path, str_format(args->arena, "%u", count).at);
    file_make_folders(args->arena, path.path); // what is wrong is said when the file is written
    return cli_report(args);
}

static bool write_named(CliEntry *entry, const RtPath *path, uint32_t count,
                        const CliNamedTensor *tensors) {
    RtNamed *named = arena_array(entry->args->arena, RtNamed, count + 1);
    for (uint32_t i = 0; i < count; i++)
        named[i] =
            (RtNamed){tensors[i].name.size ? tensors[i].name : STR("result"), *tensors[i].tensor};
    CoreTypeId type = entry->binding->fn->type;
    if (core_type(entry->core, type)->kind == CORE_PARAMS)
        return rt_checkpoint_write(path, model_name(entry, type), count, named);
    return rt_safetensors_write(path, count, named);
}

bool cli_values_write(CliEntry *entry, const char *text, uint32_t count,
                      const CliNamedTensor *tensors) {
    RtPath path = path_of(entry, text);
    bool tree = core_type(entry->core, entry->binding->fn->type)->kind == CORE_PARAMS;
    if (ends_with(path.path, ".safetensors") || (tree && ends_with(path.path, ".psk.d")))
        return write_named(entry, &path, count, tensors);
    check_that(count == 1);
    const Tensor *tensor = tensors[0].tensor;
    uint64_t bound =
        dtype_is_real(tensor->type) ? 0 : (uint64_t)1 << (8 * MIN(7, dtype_size(tensor->type)));
    return rt_tensor_write(&path, tensor, bound);
}

static json_t *number_json(double value) {
    // JSON has no NaN and no infinities: they are strings.
    return isfinite(value) ? json_real(value)
                           : json_string(isnan(value) ? "nan"
                                         : value > 0  ? "inf"
                                                      : "-inf");
}

static json_t *tensor_json(const CliNamedTensor *named) {
    enum { WHOLE = 1000 };
    const Tensor *tensor = named->tensor;
    json_t *object = json_object(), *shape = json_array();
    for (uint32_t i = 0; i < tensor->shape.rank; i++)
        json_array_append_new(shape, json_integer(tensor->shape.extent[i]));
    json_object_set_new(object, "name", json_string(named->name.size ? named->name.at : ""));
    json_object_set_new(object, "type", json_string(dtype_text(tensor->type)));
    json_object_set_new(object, "shape", shape);
    int64_t count = shape_count(&tensor->shape);
    if (count <= WHOLE) {
        json_t *values = json_array();
        for (int64_t i = 0; i < count; i++)
            json_array_append_new(values, number_json(tensor_get(tensor, i)));
        json_object_set_new(object, "values", values);
        return object;
    }
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = tensor_get(tensor, i);
        low = fmin(low, value);
        high = fmax(high, value);
        sum += value;
    }
    json_object_set_new(object, "smallest", number_json(low));
    json_object_set_new(object, "largest", number_json(high));
    json_object_set_new(object, "mean", number_json(sum / (double)count));
    return object;
}

static json_t *difference_json(const CliDifference *d, RtBackend other) {
    json_t *object = json_pack("{s:s, s:b}", "backend", cli_backend_text(other), "same", d->same);
    if (!d->same)
        json_object_update_new(object, json_pack("{s:s, s:I, s:[o, o]}", "name", d->name.at,
                                                 "element", (json_int_t)d->at, "values",
                                                 number_json(d->a), number_json(d->b)));
    return object;
}

void cli_json_result(CliEntry *entry, const CliExecution *execution, uint32_t count,
                     const CliNamedTensor *tensors, const CliDifference *difference,
                     RtBackend other) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, tensor_json(&tensors[i]));
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:I, s:f, s:o}", "entry",
        name_c(entry->args->context->names, entry->binding->fn->name), "backend",
        cli_backend_text(entry->options.backend), "realization", entry->realization->name.at,
        "launches", (json_int_t)execution->launches, "seconds", execution->seconds, "result", list);
    if (execution->program) {
        RtSummary summary = rt_summary(execution->program);
        json_object_set_new(object, "peak_bytes", json_integer((json_int_t)summary.peak_bytes));
        json_object_set_new(object, "compile_seconds", json_real(summary.compile_seconds));
        json_object_set_new(object, "plan",
                            json_string(cli_plan_text(entry, execution->program, NULL).at));
    }
    if (difference)
        json_object_set_new(object, "compare", difference_json(difference, other));
    char *text = json_dumps(object, JSON_INDENT(2));
    puts(text);
    free(text);
    json_decref(object);
}
