// presk eval: the loss and the metric of trained parameters over all samples of a data file.
//
// Batches have the training block's size; what is left over at the end is one smaller batch with a
// program of its own. Both figures are means over samples, added up in F64 in the file's order.
#include "base/file.h"
#include "cli/execute.h"
#include "cli/training.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Figure {
    Str name;
    CliFunction whole, rest; // a full batch; what is left over
    double sum;
} Figure;

typedef struct Evaluation {
    CliTraining training;
    int64_t size; // of a full batch
    uint64_t samples;
    uint32_t figures;
    Figure figure[2]; // the loss, the metric
    double seconds;
} Evaluation;

static CliArgs *args_of(const Evaluation *e) {
    return e->training.entry.args;
}

static int build(Evaluation *e, const Figure *figure, int64_t size, CliFunction *function) {
    CliTraining *training = &e->training;
    RtBinding *b = cli_training_bind(training, figure->name, size);
    if (!b || !rt_bind_batch(b, &training->stream, size, training->entry.arithmetic->inputs))
        return cli_report(args_of(e));
    const CoreType *result = core_type(b->core, b->fn->type);
    if (result->kind != CORE_REAL || result->rank)
        return cli_usage(args_of(e), "%s gives %s, and a loss or metric is one number",
                         figure->name.at, core_type_text(b->core, b->fn->type, b->arena).at);
    RtBinding *first = e->figure[0].whole.binding;
    if (!first) {
        int status = cli_training_parameters(training, b);
        if (status)
            return status;
        training->entry.binding = b;
    } else {
        b->arguments[0] = first->arguments[0];
    }
    return cli_function_build(training, b, function);
}

static int make_figure(Evaluation *e, Str name) {
    Figure *figure = &e->figure[e->figures++];
    figure->name = name;
    int status = build(e, figure, e->size, &figure->whole);
    int64_t rest = (int64_t)(e->samples % (uint64_t)e->size);
    if (!status && rest)
        status = build(e, figure, rest, &figure->rest);
    return status;
}

static Str metric_name(const Evaluation *e) {
    const char *stated = cli_text(args_of(e), "metric");
    if (stated)
        return str_of(stated);
    const ChkTraining *block = e->training.block;
    for (uint32_t i = 0; i < block->settings.count; i++)
        if (str_is(name_str(args_of(e)->context->names, block->settings.at[i].name), "metric"))
            return block->settings.at[i].text;
    return STR("");
}

static bool run_batch(Evaluation *e, uint64_t first, bool whole, Arena *scratch) {
    for (uint32_t i = 0; i < e->figures; i++) {
        Figure *figure = &e->figure[i];
        const CliFunction *function = whole ? &figure->whole : &figure->rest;
        if (!rt_read_batch(function->binding, &e->training.stream, 1, first))
            return false;
        CoreValue value = cli_function_run(function, scratch);
        if (args_of(e)->context->diags.errors)
            return false;
        double count = whole ? (double)e->size : (double)(e->samples % (uint64_t)e->size);
        figure->sum += tensor_get(&value.tensor, 0) * count;
    }
    return true;
}

static int run_all(Evaluation *e) {
    CliArgs *args = args_of(e);
    Progress progress;
    progress_begin(&progress, "evaluating", args->quiet);
    double started = clock_seconds();
    Arena *scratch = arena_new(&args->context->heap, "batch");
    bool good = true;
    for (uint64_t first = 0; first < e->samples && good; first += (uint64_t)e->size) {
        good = run_batch(e, first, e->samples - first >= (uint64_t)e->size, scratch);
        progress_update(&progress, first, e->samples, "");
        arena_reset(scratch);
    }
    arena_free(scratch);
    progress_end(&progress);
    e->seconds = clock_seconds() - started;
    return good ? CLI_FINE : cli_report(args);
}

static void print_json(const Evaluation *e) {
    json_t *object = json_object();
    json_object_set_new(object, "samples", json_integer((json_int_t)e->samples));
    json_object_set_new(object, "realization", json_string(e->training.entry.realization->name.at));
    for (uint32_t i = 0; i < e->figures; i++)
        json_object_set_new(object, e->figure[i].name.at,
                            json_real(e->figure[i].sum / (double)e->samples));
    json_object_set_new(object, "seconds", json_real(e->seconds));
    char *text = json_dumps(object, JSON_INDENT(2));
    puts(text ? text : "null"); // a figure that is no number has no JSON
    free(text);
    json_decref(object);
}

static void print_figures(const Evaluation *e) {
    Arena *arena = args_of(e)->arena;
    printf("%s: %llu samples, %llu batches of %lld", e->training.data_path,
           (unsigned long long)e->samples, (unsigned long long)(e->samples / (uint64_t)e->size),
           (long long)e->size);
    if (e->samples % (uint64_t)e->size)
        printf(" and one of %llu", (unsigned long long)(e->samples % (uint64_t)e->size));
    printf(", in %s\n", cli_seconds_text(arena, e->seconds).at);
    for (uint32_t i = 0; i < e->figures; i++)
        printf("  %-12s %.6f\n", e->figure[i].name.at, e->figure[i].sum / (double)e->samples);
}

static int evaluate(CliArgs *args, Evaluation *e) {
    int status = cli_training_open(args, &e->training);
    if (!status)
        status = cli_training_data(&e->training, true);
    if (status)
        return status;
    e->samples = e->training.stream.samples;
    e->size = (int64_t)MIN((uint64_t)e->training.spec.batch, e->samples);
    CoreProgram *core = e->training.entry.core;
    status = make_figure(
        e, name_str(args->context->names, core_fn(core, e->training.block->loss)->name));
    Str metric = metric_name(e);
    if (!status && metric.size)
        status = make_figure(e, metric);
    if (!status)
        status = run_all(e);
    if (status)
        return status;
    if (cli_flag(args, "json"))
        print_json(e);
    else
        print_figures(e);
    return CLI_FINE;
}

static int run(CliArgs *args) {
    Evaluation *e = arena_new_of(args->arena, Evaluation);
    int status = evaluate(args, e);
    cli_training_close(&e->training);
    return status;
}

static const CliOption options[] = {
    CLI_TRAINING_OPTIONS,
    {"checkpoint", CLI_TEXT, "@F", "the parameters: .psk.d or .safetensors"},
    {"data", CLI_TEXT, "F.psk.d", "another data file than the block's"},
    {"metric", CLI_TEXT, "F", "a function like the loss, in place of the block's metric"},
    {"json", CLI_FLAG, NULL, "one JSON object on stdout"},
    {0},
};

const CliCommand cli_command_eval = {
    .name = "eval",
    .usage = "FILE.psk --checkpoint @C [--data F] [options]",
    .summary = "loss and metric of trained parameters over a data file",
    .details = "Every sample counts once, those of an incomplete last batch too.",
    .examples = "  presk eval corpus/vision/01_mlp.psk --checkpoint @out/mlp.psk.d "
                "--data out/test.psk.d",
    .options = options,
    .min = 1,
    .max = 1,
    .run = run,
};
