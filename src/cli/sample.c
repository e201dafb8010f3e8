// presk sample: text from a trained character model.
//
// The model reads as many characters as its sequence is long: the text so far, or its end, padded
// on the right; a causal model's logits at the last real position do not depend on the padding.
// The next character is drawn from softmax(logits / temperature), computed in F64 by the maths
// sequences, by one uniform value a character: the same text on every machine.
#include "base/file.h"
#include "cli/execute.h"
#include "cli/training.h"
#include "runtime/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unistr.h>

typedef struct Sampler {
    CliTraining training;
    CliFunction model;
    RtCharacters characters;
    Tensor input;          // of the model: one sequence
    int64_t window, vocab; // positions of the sequence; logits a position
    double temperature;
    uint64_t seed, drawn;
    Vec(uint32_t) text; // indices of characters
} Sampler;

static CliArgs *args_of(const Sampler *s) {
    return s->training.entry.args;
}

// ---- the model --------------------------------------------------------------------------------

static int unfit(Sampler *s, const char *why) {
    return cli_usage(args_of(s), "%s is no model of text: %s",
                     name_c(args_of(s)->context->names, s->model.binding->fn->name), why);
}

// The input is an index with one axis or more, the last of which is the sequence; one sequence is
// sampled, so the others have extent 1.
static int bind_input(Sampler *s, RtBinding *b) {
    Shape shape;
    int64_t range;
    if (b->fn->params != 2 || core_type(b->core, core_let(b->fn, 1)->type)->kind != CORE_IDX)
        return unfit(s, "it must take parameters and one index tensor");
    if (!rt_bind_dims_done(b) || !rt_bind_shape(b, 1, &shape, &range))
        return cli_report(args_of(s));
    s->window = shape.rank ? shape.extent[shape.rank - 1] : 0;
    if (s->window < 1 || shape_count(&shape) != s->window)
        return unfit(s, "its input must be one sequence");
    s->input =
        tensor_new(args_of(s)->arena, dtype_of_bound((uint64_t)range), shape.rank, shape.extent);
    b->arguments[1].tensor = s->input;
    if (s->characters.count > (uint64_t)range)
        return unfit(s, "its indices are fewer than the characters of the table");
    return CLI_FINE;
}

static int open_model(Sampler *s) {
    CliArgs *args = args_of(s);
    const char *entry = cli_text(args, "entry");
    Str name = entry ? str_of(entry) : str_format(args->arena, "%s.apply", s->training.model.at);
    RtBinding *b = s->model.binding = cli_training_bind(&s->training, name, 1);
    if (!b)
        return cli_report(args);
    int status = bind_input(s, b);
    if (!status)
        status = cli_training_parameters(&s->training, b);
    if (!status)
        status = cli_function_build(&s->training, b, &s->model);
    if (status)
        return status;
    const CoreType *type = core_type(b->core, b->fn->type);
    CoreFrame frame = {b->by_dim, b->pack_rank, b->pack};
    Shape shape;
    int64_t range;
    if (type->kind != CORE_REAL ||
        core_concrete(b->core, b->fn->type, &frame, &shape, &range, NULL) != CORE_CONCRETE_OK ||
        shape.rank < 1 || shape_count(&shape) != s->window * shape.extent[shape.rank - 1])
        return unfit(s, "it must give logits for each position");
    s->vocab = shape.extent[shape.rank - 1];
    return s->vocab >= s->characters.count
               ? CLI_FINE
               : unfit(s, "its logits are fewer than the characters of the table");
}

// ---- characters -------------------------------------------------------------------------------

static int open_characters(Sampler *s) {
    CliArgs *args = args_of(s);
    const char *data = cli_text(args, "data");
    if (!data)
        data = s->training.block->stream.at;
    if (!data)
        return cli_usage(args, "--data F.psk.d says whose characters the model knows");
    RtPath path = {&args->context->diags,
                   args->arena,
                   rt_characters_path(args->arena, data[0] == '@' ? data + 1 : data).at,
                   {0}};
    if (!rt_characters_read(&path, &s->characters))
        return cli_report(args);
    return s->characters.count ? CLI_FINE : cli_usage(args, "%s has no characters", path.path);
}

static int read_prompt(Sampler *s, const char *prompt) {
    CliArgs *args = args_of(s);
    const uint8_t *at = (const uint8_t *)prompt;
    for (size_t left = strlen(prompt); left;) {
        ucs4_t code;
        int size = u8_mbtoucr(&code, at, left);
        if (size <= 0)
            return cli_usage(args, "the prompt is not UTF-8");
        uint32_t index = rt_character_index(&s->characters, code);
        if (index == UINT32_MAX)
            return cli_usage(args, "the model knows no character `%.*s`", size, (const char *)at);
        vec_push(args->arena, &s->text, index);
        at += size;
        left -= (size_t)size;
    }
    uint32_t line_break = rt_character_index(&s->characters, '\n');
    if (!s->text.count) // something must be read: a line break, else the first character
        vec_push(args->arena, &s->text, line_break == UINT32_MAX ? 0 : line_break);
    return CLI_FINE;
}

static void put_character(const Sampler *s, uint32_t index) {
    uint8_t bytes[8];
    int size = u8_uctomb(bytes, s->characters.code[index], sizeof bytes);
    fwrite(bytes, 1, (size_t)MAX(size, 0), stdout);
}

// ---- drawing ----------------------------------------------------------------------------------

// The index at which the running sum of exp((x − largest) / temperature) first exceeds u times the
// whole; the largest itself at temperature 0.
static uint32_t draw(Sampler *s, Arena *scratch, const double *logit) {
    uint32_t count = s->characters.count, best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (logit[i] > logit[best])
            best = i;
    if (s->temperature == 0)
        return best;
    double *weight = arena_array(scratch, double, count), sum = 0, running = 0;
    for (uint32_t i = 0; i < count; i++) {
        double x = (logit[i] - logit[best]) / s->temperature;
        sum += weight[i] = mth_apply(MTH_exp, 0, F64, &x);
    }
    double bar = rt_random_uniform(s->seed, rt_random_stream(STR("sample")), s->drawn++) * sum;
    for (uint32_t i = 0; i < count; i++) {
        running += weight[i];
        if (running > bar)
            return i;
    }
    return best;
}

static uint32_t next(Sampler *s, Arena *scratch) {
    uint32_t known = (uint32_t)MIN((int64_t)s->text.count, s->window);
    for (int64_t i = 0; i < s->window; i++)
        tensor_set(&s->input, i,
                   i < known ? (double)s->text.at[s->text.count - known + (uint32_t)i] : 0);
    CoreValue logits = cli_function_run(&s->model, scratch);
    double *row = arena_array(scratch, double, s->vocab);
    for (int64_t i = 0; i < s->vocab; i++)
        row[i] = tensor_get(&logits.tensor, (int64_t)(known - 1) * s->vocab + i);
    return draw(s, scratch, row);
}

static int write_text(Sampler *s, int64_t length) {
    CliArgs *args = args_of(s);
    Arena *scratch = arena_new(&args->context->heap, "character");
    FloatEnv saved;
    float_env_enter(&saved);
    fputs(cli_text(args, "prompt") ? cli_text(args, "prompt") : "", stdout);
    for (int64_t i = 0; i < length && !args->context->diags.errors; i++) {
        uint32_t index = next(s, scratch);
        vec_push(args->arena, &s->text, index);
        put_character(s, index);
        if (isatty(STDOUT_FILENO))
            fflush(stdout);
        arena_reset(scratch);
    }
    putchar('\n');
    float_env_leave(&saved);
    arena_free(scratch);
    return cli_report(args);
}

static int choose_temperature(Sampler *s) {
    const char *text = cli_text(args_of(s), "temperature");
    char *end;
    s->temperature = text ? strtod(text, &end) : 1;
    if (text && (end == text || *end || !(s->temperature >= 0) || !isfinite(s->temperature)))
        return cli_usage(args_of(s), "--temperature is a number from 0 on, not `%s`", text);
    return CLI_FINE;
}

static int run(CliArgs *args) {
    Sampler *s = arena_new_of(args->arena, Sampler);
    int status = cli_training_open(args, &s->training);
    if (!status)
        status = choose_temperature(s);
    if (!status)
        status = open_characters(s);
    if (!status)
        status = open_model(s);
    s->seed = (uint64_t)cli_number(args, "seed", 0);
    const char *prompt = cli_text(args, "prompt");
    if (!status)
        status = read_prompt(s, prompt ? prompt : "");
    if (!status)
        status = write_text(s, cli_number(args, "length", 500));
    cli_training_close(&s->training);
    return status;
}

static const CliOption options[] = {
    CLI_TRAINING_OPTIONS,
    {"checkpoint", CLI_TEXT, "@F", "the parameters: .psk.d or .safetensors"},
    {"prompt", CLI_TEXT, "TEXT", "how the text begins"},
    {"length", CLI_NUMBER, "N", "characters to add (default 500)"},
    {"temperature", CLI_TEXT, "X", "1 (default) draws as the model says, 0 takes the likeliest"},
    {"seed", CLI_NUMBER, "N", "of the draws (default 0)"},
    {"data", CLI_TEXT, "F.psk.d", "the data whose characters the model knows"},
    {"entry", CLI_TEXT, "F", "the function that gives logits (default MODEL.apply)"},
    {0},
};

const CliCommand cli_command_sample = {
    .name = "sample",
    .usage = "FILE.psk --checkpoint @C [--prompt TEXT] [options]",
    .summary = "write text with a trained character model",
    .examples = "  presk sample corpus/nlp/05_gpt.psk --const D=64 --const H=2 --const L=2 \\\n"
                "      --checkpoint @out/gpt.psk.d --prompt \"You may\" --temperature 0.8 --seed 7",
    .options = options,
    .min = 1,
    .max = 1,
    .run = run,
};
