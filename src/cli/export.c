// presk export: an entry as one C file and its header.
#include "runtime/export.h"
#include "base/file.h"
#include "cli/execute.h"

#include <stdio.h>

// A name of the language as a C identifier: what C does not allow becomes `_`.
static Str identifier(Arena *arena, Str name, const char *prefix) {
    StrBuf buf = {.arena = arena};
    buf_text(&buf, prefix);
    for (uint32_t i = 0; i < name.size; i++) {
        char c = name.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool digit = c >= '0' && c <= '9';
        if (digit && !buf.size)
            buf_char(&buf, '_');
        buf_char(&buf, letter || digit ? c : '_');
    }
    return buf_str(&buf);
}

static uint32_t list_arguments(CliEntry *entry, RtExported **arguments) {
    Arena *arena = entry->args->arena;
    RtBinding *b = entry->binding;
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->fn->params; i++)
        count += b->arguments[i].parts ? b->arguments[i].count : 1;
    *arguments = arena_array(arena, RtExported, count + 1);
    count = 0;
    for (uint32_t i = 0; i < b->fn->params; i++) {
        const CoreValue *argument = &b->arguments[i];
        Str name = identifier(arena, rt_bind_name(b, i), "");
        if (!argument->parts) {
            (*arguments)[count++] = (RtExported){name, argument->tensor};
            continue;
        }
        CoreLeaf *leaves;
        uint32_t leaf_count = rt_bind_leaves(b, i, &leaves);
        Str prefix = str_format(arena, "%s_", name.at);
        for (uint32_t leaf = 0; leaf < leaf_count; leaf++)
            (*arguments)[count++] = (RtExported){identifier(arena, leaves[leaf].path, prefix.at),
                                                 argument->parts[leaf].tensor};
    }
    return count;
}

static uint32_t list_results(CliEntry *entry, const CoreValue *result, RtExported **results) {
    CliNamedTensor *tensors;
    uint32_t count = cli_result_tensors(entry, result, &tensors);
    *results = arena_array(entry->args->arena, RtExported, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        Str name = tensors[i].name.size ? identifier(entry->args->arena, tensors[i].name, "result_")
                                        : STR("result");
        (*results)[i] = (RtExported){name, *tensors[i].tensor};
    }
    return count;
}

static int write_file(CliArgs *args, Str path, Str text) {
    Str error = STR("its folder cannot be made");
    if (file_make_folders(args->arena, path.at) &&
        file_write(args->arena, path.at, text.at, text.size, &error))
        return CLI_FINE;
    diag(&args->context->diags, E6018, (Span){0}, path.at, error.at);
    return cli_report(args);
}

static int export_entry(CliEntry *entry, const char *folder) {
    CliArgs *args = entry->args;
    RtProgram *program = cli_entry_build(entry);
    if (!program)
        return cli_report(args);
    CoreValue result = rt_result(program);
    RtExported *arguments, *results;
    uint32_t argument_count = list_arguments(entry, &arguments);
    uint32_t result_count = list_results(entry, &result, &results);
    Str name =
        identifier(args->arena, name_str(args->context->names, entry->binding->fn->name), "");
    StrBuf header = {.arena = args->arena}, source = {.arena = args->arena};
    rt_export(program, name, argument_count, arguments, result_count, results, &header, &source);
    Str h = str_format(args->arena, "%s/%s.h", folder, name.at);
    Str c = str_format(args->arena, "%s/%s.c", folder, name.at);
    int status = write_file(args, h, buf_str(&header));
    if (!status)
        status = write_file(args, c, buf_str(&source));
    if (!status)
        printf("%s and %s: %u launches, %s of workspace\n", c.at, h.at, rt_launch_count(program),
               cli_bytes_text(args->arena, (double)rt_summary(program).peak_bytes).at);
    return status;
}

static int run(CliArgs *args) {
    const char *folder = cli_text(args, "out");
    if (!folder)
        return cli_usage(args, "where to? -o FOLDER");
    CliEntry entry = {0};
    int status = cli_entry_open(args, &entry);
    entry.hypers.step = 0; // the file runs at any step
    if (!status)
        status = cli_entry_shapes(&entry);
    if (!status)
        status = cli_entry_backend(&entry, RT_KERNEL, RT_TO_LOOK);
    if (!status)
        status = export_entry(&entry, folder);
    cli_entry_close(&entry);
    return status;
}

static const CliOption options[] = {
    CLI_ENTRY_OPTIONS,
    {"out", CLI_TEXT, "DIR", "the folder for NAME.c and NAME.h (also -o)"},
    {0},
};

const CliCommand cli_command_export = {
    .name = "export",
    .usage = "FILE.psk --entry F -o DIR [options]",
    .summary = "write a function as a C file without dependencies",
    .details =
        "The file is C99, needs libm's fma and sqrt alone, and computes the same bits as every\n"
        "other executor at any optimization level. It runs on one thread.",
    .examples = "  presk export examples/layer.psk --entry score --dim B=32 -o out/score\n"
                "  gcc -O3 -march=native -c out/score/score.c -o out/score/score.o",
    .options = options,
    .min = 1,
    .max = 1,
    .run = run,
};
