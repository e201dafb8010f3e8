// presk data: makes data files from texts, arrays and the MNIST container, and shows what a file
// holds.
#include "runtime/data.h"
#include "cli/cli.h"

#include <stdio.h>

static RtPath path_of(CliArgs *args, const char *path) {
    return (RtPath){.diags = &args->context->diags, .arena = args->arena, .path = path};
}

static void make_folders(CliArgs *args, const char *path) {
    file_make_folders(args->arena, path); // what is wrong is said when the file is written
}

// ---- text, npy, idx -------------------------------------------------------------------------

static int run_text(CliArgs *args, const char *out) {
    if (args->count != 2)
        return cli_usage(args, "one text at a time");
    RtPath text = path_of(args, args->positional[1]), data = path_of(args, out);
    uint64_t tokens, vocab = (uint64_t)cli_number(args, "vocab", 0);
    RtCharacters characters;
    make_folders(args, out);
    if (rt_text_convert(&text, &data, vocab, &tokens, &characters))
        printf("%s: %llu tokens of type idx[%llu], %u characters in %s\n", out,
               (unsigned long long)tokens, (unsigned long long)(vocab ? vocab : characters.count),
               characters.count, rt_characters_path(args->arena, out).at);
    return cli_report(args);
}

// The type of images and labels as networks of dense layers take them.
static Str pictures_type(Arena *arena, uint32_t count, const Tensor *arrays) {
    if (count != 2 || arrays[0].shape.rank < 2 || arrays[1].shape.rank != 1)
        return STR("");
    int64_t pixels = 1;
    for (uint32_t i = 1; i < arrays[0].shape.rank; i++)
        pixels *= arrays[0].shape.extent[i];
    double classes = 0;
    for (int64_t i = 0; i < shape_count(&arrays[1].shape); i++)
        classes = MAX(classes, tensor_get(&arrays[1], i) + 1);
    return str_format(arena, "(idx[256][pixel: %lld], idx[%.0f])", (long long)pixels, classes);
}

static int run_arrays(CliArgs *args, const char *out,
                      bool (*read)(const RtPath *path, Tensor *tensor)) {
    DType real = F64;
    const char *text = cli_text(args, "real"), *type = cli_text(args, "type");
    if (text && !(dtype_of_text(text, strlen(text), &real) && dtype_is_real(real)))
        return cli_usage(args, "--real is f64, f32 or bf16, not `%s`", text);
    uint32_t count = args->count - 1;
    Tensor *arrays = arena_array(args->arena, Tensor, count);
    for (uint32_t i = 0; i < count; i++) {
        RtPath path = path_of(args, args->positional[i + 1]);
        if (!read(&path, &arrays[i]))
            return cli_report(args);
    }
    RtPath path = path_of(args, out);
    RtDataType written;
    make_folders(args, out);
    Str stated = type                  ? str_of(type)
                 : read == rt_idx_read ? pictures_type(args->arena, count, arrays)
                                       : STR("");
    if (rt_arrays_write(&path, count, arrays, stated, real, &written))
        printf("%s: %lld samples of type %s, %llu bytes each\n", out,
               (long long)arrays[0].shape.extent[0], written.text.at,
               (unsigned long long)written.bytes);
    return cli_report(args);
}

static int run_npy(CliArgs *args, const char *out) {
    return run_arrays(args, out, rt_npy_read);
}

static int run_idx(CliArgs *args, const char *out) {
    return run_arrays(args, out, rt_idx_read);
}

// ---- info -----------------------------------------------------------------------------------

static bool ends_with(const char *path, const char *ending) {
    size_t size = strlen(path), tail = strlen(ending);
    return size >= tail && strcmp(path + size - tail, ending) == 0;
}

static void print_tensor(const char *name, const Tensor *tensor) {
    printf("  %s%s%s[", name, *name ? " : " : "", dtype_text(tensor->type));
    for (uint32_t i = 0; i < tensor->shape.rank; i++)
        printf("%s%lld", i ? ", " : "", (long long)tensor->shape.extent[i]);
    printf("]\n");
}

static void print_values(CliArgs *args, const Tensor *tensor) {
    enum { SHOWN = 1000 };
    int64_t count = shape_count(&tensor->shape);
    for (int64_t i = 0; i < MIN(count, (int64_t)SHOWN); i++)
        printf("%s%s", i % 16 ? " " : "\n    ",
               str_of_double(args->arena, tensor_get(tensor, i)).at);
    printf(count > SHOWN ? " …\n" : "\n");
}

static int print_sample(CliArgs *args, const RtData *data, uint64_t sample) {
    if (!rt_data_has_layout(data))
        return cli_report(args);
    if (sample >= data->samples)
        return cli_usage(args, "there are %llu samples, numbered from 0",
                         (unsigned long long)data->samples);
    for (uint32_t i = 0; i < data->type.count; i++) {
        const RtLeaf *leaf = &data->type.leaves[i];
        Tensor tensor =
            tensor_new(args->arena, leaf->bound ? leaf->type : F64, leaf->rank, leaf->extent);
        if (!rt_data_get(data, sample, i, &tensor))
            return cli_report(args);
        printf("  %s", rt_leaf_text(args->arena, leaf).at);
        print_values(args, &tensor);
    }
    return CLI_FINE;
}

static void print_data_json(Arena *arena, const RtData *data) {
    char *type = arena_copy(arena, data->type.text.at, data->type.text.size + 1u);
    for (char *c = type; *c; c++)
        *c = *c < ' ' && *c >= 0 ? ' ' : *c; // line breaks between marks
    printf("{\"version\": %u, \"type\": \"%s\", \"samples\": %llu, \"sample_bytes\": %llu, "
           "\"file_bytes\": %llu, \"encodings\": [",
           data->version, type, (unsigned long long)data->samples,
           (unsigned long long)(data->laid_out ? data->type.bytes
                                               : data->data_size / MAX(data->samples, 1u)),
           (unsigned long long)data->bytes.size);
    for (uint32_t i = 0; i < data->type.count; i++)
        printf("%s\"%s\"", i ? ", " : "", dtype_text(data->type.leaves[i].type));
    printf("]}\n");
}

static void print_data(const char *path, const RtData *data) {
    printf("%s: Presk data, version %u, %llu bytes\n  type     %s\n  samples  %llu\n", path,
           data->version, (unsigned long long)data->bytes.size, data->type.text.at,
           (unsigned long long)data->samples);
    if (!data->laid_out) {
        printf("  shapes   those of the program\n");
        return;
    }
    printf("  bytes    %llu a sample:", (unsigned long long)data->type.bytes);
    for (uint32_t i = 0; i < data->type.count; i++)
        printf("%s %lld %s", i ? "," : "", (long long)data->type.leaves[i].count,
               dtype_text(data->type.leaves[i].type));
    printf("\n");
}

static int info_psk(CliArgs *args, const RtPath *path) {
    RtData data;
    if (!rt_data_open(path, &data))
        return cli_report(args);
    if (cli_flag(args, "json"))
        print_data_json(args->arena, &data);
    else
        print_data(path->path, &data);
    int64_t sample = cli_number(args, "sample", -1);
    int status = sample < 0 ? CLI_FINE : print_sample(args, &data, (uint64_t)sample);
    rt_data_close(&data);
    return status;
}

static int info_tensors(CliArgs *args, const RtPath *path) {
    uint32_t count = 1;
    RtNamed one = {0}, *tensors = &one;
    bool read = ends_with(path->path, ".safetensors") ? rt_safetensors_read(path, &count, &tensors)
                : ends_with(path->path, ".npy")       ? rt_npy_read(path, &one.tensor)
                                                      : rt_idx_read(path, &one.tensor);
    if (!read)
        return cli_report(args);
    printf("%s: %u tensor%s\n", path->path, count, count == 1 ? "" : "s");
    for (uint32_t i = 0; i < count; i++)
        print_tensor(tensors[i].name.size ? tensors[i].name.at : "", &tensors[i].tensor);
    return CLI_FINE;
}

static int run_info(CliArgs *args, const char *out) {
    (void)out;
    for (uint32_t i = 1; i < args->count; i++) {
        RtPath path = path_of(args, args->positional[i]);
        int status =
            ends_with(path.path, ".psk.d") ? info_psk(args, &path) : info_tensors(args, &path);
        if (status)
            return status;
    }
    return CLI_FINE;
}

// ---- diff -----------------------------------------------------------------------------------

static int print_difference(CliArgs *args, const RtData *a, const RtData *b) {
    RtDifference d;
    if (!rt_data_diff(a, b, &d))
        return cli_report(args);
    if (d.different == 0) {
        printf("all %llu values are equal\n", (unsigned long long)d.values);
        return CLI_FINE;
    }
    printf("%llu of %llu values differ, by at most %s\n", (unsigned long long)d.different,
           (unsigned long long)d.values, str_of_double(args->arena, d.largest).at);
    printf("the first: %s and %s at sample %llu, part %llu, element %llu\n",
           str_of_double(args->arena, d.a).at, str_of_double(args->arena, d.b).at,
           (unsigned long long)d.sample, (unsigned long long)d.leaf, (unsigned long long)d.element);
    return CLI_GATE;
}

static int run_diff(CliArgs *args, const char *out) {
    (void)out;
    if (args->count != 3)
        return cli_usage(args, "two files are compared");
    RtPath left = path_of(args, args->positional[1]), right = path_of(args, args->positional[2]);
    RtData a, b;
    if (!rt_data_open(&left, &a))
        return cli_report(args);
    int status = CLI_DIAGNOSTICS;
    if (rt_data_open(&right, &b)) {
        status = print_difference(args, &a, &b);
        rt_data_close(&b);
    } else {
        cli_report(args);
    }
    rt_data_close(&a);
    return status;
}

// ---- the command ----------------------------------------------------------------------------

typedef struct Action {
    const char *name;
    bool writes; // needs --out
    int (*run)(CliArgs *args, const char *out);
} Action;

static const Action actions[] = {{"text", true, run_text},
                                 {"npy", true, run_npy},
                                 {"idx", true, run_idx},
                                 {"info", false, run_info},
                                 {"diff", false, run_diff}};

static int run(CliArgs *args) {
    Str names[COUNT_OF(actions)];
    for (uint32_t i = 0; i < COUNT_OF(actions); i++) {
        const Action *action = &actions[i];
        names[i] = str_of(action->name);
        if (strcmp(action->name, args->positional[0]) != 0)
            continue;
        const char *out = cli_text(args, "out");
        if (args->count < 2)
            return cli_usage(args, "which file?");
        if (action->writes && !out)
            return cli_usage(args, "`%s` writes a file: -o F.psk.d", action->name);
        return action->run(args, out);
    }
    Str near = nearest_spelling(args->arena, str_of(args->positional[0]), names, COUNT_OF(names));
    return cli_usage(args, "there is no `data %s`%s%s%s", args->positional[0],
                     near.size ? "; did you mean `" : "", near.at, near.size ? "`?" : "");
}

static const CliOption options[] = {
    {"out", CLI_TEXT, "F.psk.d", "the file to write (also -o)"},
    {"vocab", CLI_NUMBER, "N", "text: tokens of type idx[N] (default: as many as characters)"},
    {"type", CLI_TEXT, "TYPE", "npy, idx: the sample's type, such as \"(ℝ[4], idx[3])\""},
    {"real", CLI_TEXT, "R", "npy: how reals are stored: f64 (default), f32, bf16"},
    {"sample", CLI_NUMBER, "K", "info: the values of sample K"},
    {"json", CLI_FLAG, NULL, "info: as JSON"},
    {0},
};

const CliCommand cli_command_data = {
    .name = "data",
    .usage = "text|npy|idx|info|diff FILE … [-o F.psk.d] [options]",
    .summary = "make data files and look at them",
    .details =
        "text  the characters of a UTF-8 text as tokens, one a sample, in order of code point;\n"
        "      the table of characters is written beside, as F.chars.json\n"
        "npy   NumPy arrays side by side: their first axis counts the samples\n"
        "idx   images and labels of the MNIST family, gzipped or not, as\n"
        "      (idx[256][pixel: N], idx[classes])\n"
        "info  what a .psk.d, .npy, .safetensors or idx file holds\n"
        "diff  two .psk.d files of one type, value by value; the exit status is 3 if they differ",
    .examples = "  presk data text book.txt -o out/text.psk.d --vocab 92\n"
                "  presk data npy x.npy y.npy -o out/pairs.psk.d --type \"(ℝ[4], idx[3])\"\n"
                "  presk data idx train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz "
                "-o out/digits.psk.d\n"
                "  presk data info out/digits.psk.d --sample 0\n"
                "  presk data diff out/a.psk.d out/b.psk.d",
    .options = options,
    .min = 1,
    .max = 64,
    .run = run,
};
