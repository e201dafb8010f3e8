// Files of a training run.
//
// The state file is a .psk.d of one sample, a tuple: first a JSON text as idx[256][byte: n] that
// says what it is the state of, then the leaves of the parameters, then those of each state tree,
// each in its storage type. The text's keys: format (1), model, optimizer, states, leaves,
// arithmetic, seed, steps, and stream with samples, window, shuffle, seed, batch, take.
//
// What must be equal for a run to go on is one text each (see `facts`), so that a difference can
// be shown as it is.
#include "runtime/data_file.h"
#include "runtime/train.h"

#include <jansson.h>
#include <stdlib.h>

enum { FORMAT = 1 };

// ---- names of files ---------------------------------------------------------------------------

// The size of the ending; 0: another one.
static size_t ending_of(const char *path) {
    static const char *const endings[] = {".psk.d", ".safetensors"};
    size_t size = strlen(path);
    for (uint32_t i = 0; i < COUNT_OF(endings); i++) {
        size_t tail = strlen(endings[i]);
        if (size > tail && strcmp(path + size - tail, endings[i]) == 0)
            return tail;
    }
    return 0;
}

bool rt_checkpoint_named(const char *path) {
    return ending_of(path) > 0;
}

static Str stem_and(Arena *arena, const char *path, const char *ending) {
    return str_format(arena, "%.*s%s", (int)(strlen(path) - ending_of(path)), path, ending);
}

Str rt_state_path(Arena *arena, const char *checkpoint) {
    return stem_and(arena, checkpoint, ".state.psk.d");
}

Str rt_companion_path(Arena *arena, const char *checkpoint) {
    return stem_and(arena, checkpoint, ".json");
}

// ---- what a state belongs to ------------------------------------------------------------------

// Everything of a realization that decides bits.
static Str arithmetic_text(const RtTrainer *trainer, Arena *arena) {
    const RlzRealization *r = trainer->spec.realization;
    const CoreArithmetic *a = trainer->spec.options.arithmetic;
    StrBuf text = {.arena = arena};
    buf_format(&text, "%s, params %s, state %s, %s, %s", dtype_text(r->uniform),
               dtype_text(r->params), dtype_text(r->state), r->multiply_add ? "mul-add" : "fma",
               r->reduce == CORE_REDUCE_STRIPES16 ? "stripes16" : "sequential");
    if (r->has_accumulate)
        buf_format(&text, ", accumulate %s", dtype_text(r->accumulate));
    if (!a->fusion)
        buf_text(&text, ", fusion off");
    for (uint32_t i = 0; i < r->sites.count; i++)
        buf_format(&text, ", %s %s", r->sites.at[i].site.at, dtype_text(r->sites.at[i].type));
    return buf_str(&text);
}

static Str stream_text(const RtTrainer *trainer, Arena *arena) {
    const RtStream *stream = trainer->spec.stream;
    const RtStreamSpec *spec = &stream->spec;
    StrBuf text = {.arena = arena};
    buf_format(&text, "%llu samples", (unsigned long long)stream->samples);
    if (spec->window)
        buf_format(&text, " of %lld", (long long)spec->window);
    if (spec->shuffle)
        buf_format(&text, ", shuffle %llu", (unsigned long long)spec->seed);
    buf_format(&text, ", batch %lld", (long long)spec->batch);
    if (spec->take >= 0)
        buf_format(&text, ", take %lld", (long long)spec->take);
    return buf_str(&text);
}

typedef struct Fact {
    const char *key, *what;
    Str value;
} Fact;

enum { FACTS = 7 };

static void facts(const RtTrainer *trainer, Arena *arena, Fact fact[FACTS]) {
    const Names *names = trainer->core->context->names;
    StrBuf states = {.arena = arena}, leaves = {.arena = arena};
    for (uint32_t i = 0; i < trainer->states; i++)
        buf_format(&states, "%s%s", i ? " " : "", name_c(names, trainer->state_name[i]));
    for (uint32_t i = 0; i < trainer->leaves; i++)
        buf_format(&leaves, "%s%s", i ? " " : "", trainer->leaf[i].path.at);
    Str optimizer = name_str(names, core_fn(trainer->core, trainer->spec.step)->name);
    const Fact all[FACTS] = {
        {"model", "model", trainer->spec.model},
        {"optimizer", "optimizer", optimizer},
        {"states", "optimizer's state", buf_str(&states)},
        {"leaves", "list of parameters", buf_str(&leaves)},
        {"arithmetic", "arithmetic", arithmetic_text(trainer, arena)},
        {"seed", "seed", str_format(arena, "%llu", (unsigned long long)trainer->spec.seed)},
        {"stream", "data", stream_text(trainer, arena)},
    };
    memcpy(fact, all, sizeof all);
}

// ---- writing ----------------------------------------------------------------------------------

static Str take_dump(Arena *arena, json_t *object, size_t flags) {
    char *text = json_dumps(object, flags);
    json_decref(object);
    check_that(text);
    Str copy = str_copy(arena, text, strlen(text));
    free(text);
    return copy;
}

static Str header_text(const RtTrainer *trainer, Arena *arena) {
    Fact fact[FACTS];
    facts(trainer, arena, fact);
    json_t *object = json_object();
    json_object_set_new(object, "format", json_integer(FORMAT));
    json_object_set_new(object, "steps", json_integer((json_int_t)trainer->steps));
    for (uint32_t i = 0; i < FACTS; i++)
        json_object_set_new(object, fact[i].key, json_string(fact[i].value.at));
    return take_dump(arena, object, JSON_COMPACT);
}

// The trees of the state in the file's order: parameters, then states.
static const CoreValue *tree_at(const RtTrainer *trainer, uint32_t tree) {
    return &trainer->arguments[tree ? tree + 1 : 0];
}

static bool write_state(const RtTrainer *trainer, const RtPath *path) {
    uint32_t trees = trainer->states + 1, count = 1 + trees * trainer->leaves;
    RtLeaf *leaves = arena_array(path->arena, RtLeaf, count);
    Str header = header_text(trainer, path->arena);
    leaves[0] = (RtLeaf){.bound = 256, .type = U8, .rank = 1, .extent = {header.size}};
    leaves[0].axis[0] = STR("byte");
    for (uint32_t i = 1; i < count; i++) {
        const Tensor *tensor =
            &tree_at(trainer, (i - 1) / trainer->leaves)->parts[(i - 1) % trainer->leaves].tensor;
        leaves[i] = (RtLeaf){.type = tensor->type, .rank = tensor->shape.rank};
        memcpy(leaves[i].extent, tensor->shape.extent, sizeof leaves[i].extent);
    }
    RtDataType type;
    RtDataWriter writer;
    if (!rt_data_type_of(path, count, leaves, &type) || !rt_data_begin(path, &type, 1, &writer))
        return false;
    rt_data_put_bytes(&writer, header.at);
    for (uint32_t i = 0; i < trees; i++)
        for (uint32_t j = 0; j < trainer->leaves; j++)
            rt_data_put_bytes(&writer, tree_at(trainer, i)->parts[j].tensor.data);
    return rt_data_commit(&writer);
}

static bool write_checkpoint(const RtTrainer *trainer, const RtPath *path) {
    RtNamed *named = arena_array(path->arena, RtNamed, trainer->leaves + 1);
    for (uint32_t i = 0; i < trainer->leaves; i++)
        named[i] = (RtNamed){trainer->leaf[i].path, trainer->arguments[0].parts[i].tensor};
    return rt_checkpoint_write(path, trainer->spec.model, trainer->leaves, named);
}

static bool write_companion(const RtTrainer *trainer, const RtPath *path, Str plan) {
    Str arithmetic = arithmetic_text(trainer, path->arena);
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:s, s:s, s:s}", "model", trainer->spec.model.at, "step",
                  (json_int_t)trainer->steps, "seed", (json_int_t)trainer->spec.seed, "realization",
                  trainer->spec.realization->name.at, "arithmetic", arithmetic.at, "plan", plan.at);
    check_that(object);
    Str text = take_dump(path->arena, object, JSON_INDENT(2));
    FileWriter file;
    if (!rt_begin(path, &file))
        return false;
    file_put(&file, text.at, text.size);
    file_put(&file, "\n", 1);
    return rt_commit(path, &file);
}

bool rt_trainer_save(RtTrainer *trainer, const RtPath *checkpoint, Str plan) {
    Arena *arena = arena_new(arena_heap(trainer->arena), "checkpoint");
    RtPath whole = *checkpoint, state, companion;
    whole.arena = arena;
    state = companion = whole;
    state.path = rt_state_path(arena, checkpoint->path).at;
    companion.path = rt_companion_path(arena, checkpoint->path).at;
    file_make_folders(arena, checkpoint->path); // what is wrong is said when the file is written
    bool saved = write_state(trainer, &state) && write_checkpoint(trainer, &whole) &&
                 write_companion(trainer, &companion, plan);
    arena_free(arena);
    return saved;
}

void rt_checkpoint_sweep(Arena *arena, const char *checkpoint) {
    file_sweep(arena, checkpoint);
    file_sweep(arena, rt_state_path(arena, checkpoint).at);
    file_sweep(arena, rt_companion_path(arena, checkpoint).at);
}

// ---- reading ----------------------------------------------------------------------------------

static bool refuse(const RtPath *path, const char *why) {
    diag(path->diags, E6202, path->span, path->path, why);
    return false;
}

static bool check_header(const RtTrainer *trainer, const RtPath *path, const json_t *header) {
    const json_t *format = json_object_get(header, "format");
    if (!json_is_integer(format))
        return rt_malformed(path, "it is no training state");
    if (json_integer_value(format) != FORMAT)
        return rt_unsupported(path, "format %lld of training states",
                              (long long)json_integer_value(format));
    Fact fact[FACTS];
    facts(trainer, path->arena, fact);
    for (uint32_t i = 0; i < FACTS; i++) {
        const char *there = json_string_value(json_object_get(header, fact[i].key));
        if (!there)
            return rt_malformed(path, "its text has no `%s`", fact[i].key);
        if (!str_is(fact[i].value, there))
            return refuse(path, str_format(path->arena, "its %s is `%s`, and this run's `%s`",
                                           fact[i].what, there, fact[i].value.at)
                                    .at);
    }
    const json_t *steps = json_object_get(header, "steps");
    return (json_is_integer(steps) && json_integer_value(steps) >= 0) ||
           rt_malformed(path, "its text has no `steps`");
}

static bool check_leaves(const RtTrainer *trainer, const RtPath *path, const RtData *data) {
    for (uint32_t i = 1; i < data->type.count; i++) {
        uint32_t number = (i - 1) % trainer->leaves;
        const Tensor *tensor = &tree_at(trainer, (i - 1) / trainer->leaves)->parts[number].tensor;
        const RtLeaf *leaf = &data->type.leaves[i];
        Shape shape = shape_row_major(leaf->rank, leaf->extent);
        if (leaf->bound || leaf->type != tensor->type ||
            !shape_same_extents(&shape, &tensor->shape))
            return rt_does_not_fit(
                path, rt_extents_text(path->arena, tensor->shape.rank, tensor->shape.extent).at,
                "`%s` with extents %s", trainer->leaf[number].path.at,
                rt_extents_text(path->arena, leaf->rank, leaf->extent).at);
    }
    return true;
}

static json_t *read_header(const RtPath *path, const RtData *data) {
    const RtLeaf *leaf = data->type.count ? &data->type.leaves[0] : NULL;
    if (data->samples != 1 || !leaf || leaf->bound != 256 || leaf->rank != 1) {
        rt_malformed(path, "it is no training state");
        return NULL;
    }
    Tensor text = tensor_new(path->arena, U8, 1, leaf->extent);
    if (!rt_data_get(data, 0, 0, &text))
        return NULL;
    json_t *header = json_loadb(text.data, (size_t)leaf->count, JSON_REJECT_DUPLICATES, NULL);
    if (!header)
        rt_malformed(path, "it is no training state");
    return header;
}

static bool read_state(RtTrainer *trainer, const RtPath *path, const RtData *data) {
    if (!rt_data_has_layout(data))
        return false;
    json_t *header = read_header(path, data);
    if (!header)
        return false;
    bool fits = check_header(trainer, path, header);
    uint64_t steps = (uint64_t)json_integer_value(json_object_get(header, "steps"));
    json_decref(header);
    uint32_t count = 1 + (trainer->states + 1) * trainer->leaves;
    if (fits && data->type.count != count)
        return rt_malformed(path, "it has %u leaves, not %u", data->type.count, count);
    if (!fits || !check_leaves(trainer, path, data))
        return false;
    for (uint32_t i = 1; i < count; i++) {
        const CoreValue *tree = tree_at(trainer, (i - 1) / trainer->leaves);
        if (!rt_data_get(data, 0, i, &tree->parts[(i - 1) % trainer->leaves].tensor))
            bug("reals of a file that has been laid out cannot be read");
    }
    trainer->steps = steps;
    return true;
}

bool rt_trainer_load(RtTrainer *trainer, const RtPath *state) {
    RtData data;
    if (!rt_data_open(state, &data))
        return false;
    bool read = read_state(trainer, state, &data);
    rt_data_close(&data);
    return read;
}
