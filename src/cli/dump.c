// presk dump: a program at each stage of the compiler, as text.
#include "base/file.h"
#include "cli/entry.h"
#include "kernel/c_text.h"
#include "syntax/tree.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum Stage {
    TOKENS,
    TREE,
    CORE,
    REALIZE,
    PLAN,
    SPACE,
    KERNEL,
    C_TEXT,
    LLVM,
    ASM,
    STAGES
} Stage;
static const char *const stage_text[STAGES] = {"tokens", "tree",   "core", "realize", "plan",
                                               "space",  "kernel", "c",    "llvm",    "asm"};

static bool stage_of_text(const char *text, Stage *stage) {
    if (strcmp(text, "sched") == 0)
        text = "realize"; // its name until the representation was renamed
    for (uint32_t i = 0; i < STAGES; i++)
        if (strcmp(text, stage_text[i]) == 0) {
            *stage = (Stage)i;
            return true;
        }
    return false;
}

static int unknown_stage(CliArgs *args, const char *text) {
    Str names[STAGES];
    for (uint32_t i = 0; i < STAGES; i++)
        names[i] = str_of(stage_text[i]);
    Str near = nearest_spelling(args->arena, str_of(text), names, STAGES);
    return cli_usage(args,
                     "there is no stage `%s`%s%s%s\nthe stages are tokens, tree, core, realize (or "
                     "sched), plan, space, kernel, c, llvm, asm",
                     text, near.size ? "; did you mean `" : "", near.at, near.size ? "`?" : "");
}

static void put(Str text) {
    fwrite(text.at, 1, text.size, stdout);
}

// ---- stages of the source -------------------------------------------------------------------

static int dump_source(CliArgs *args, Stage stage) {
    Str text, error;
    const char *path = args->positional[0];
    if (!file_read(args->arena, path, &text, &error)) {
        diag(&args->context->diags, E6014, (Span){0}, path, error.at);
        return cli_report(args);
    }
    uint32_t source = source_add(&args->context->sources, str_of(path), text);
    if (stage == TOKENS)
        put(syn_print_tokens(args->context, args->arena, source));
    else
        put(syn_print_tree(syn_parse(args->context, args->arena, source), args->context,
                           args->arena));
    return cli_report(args);
}

static int dump_core(CliArgs *args) {
    uint32_t count;
    ChkConst *consts;
    PreskCompiled compiled;
    if (!cli_consts(args, &count, &consts))
        return CLI_USAGE;
    if (!presk_compile(args->context, args->arena, args->positional[0], count, consts,
                       cli_text(args, "entry"), &compiled))
        return cli_report(args);
    const char *entry = cli_text(args, "entry");
    if (!entry) {
        put(core_print(compiled.program->core, args->arena));
        return cli_report(args);
    }
    RtBinding *binding = rt_bind(compiled.program->core, args->arena, str_of(entry));
    if (binding)
        put(core_print_fn(compiled.program->core, binding->id, args->arena));
    return cli_report(args);
}

// ---- stages of a bound entry ----------------------------------------------------------------

static void put_kernel(CliEntry *entry, const RtLaunch *launch, uint32_t launches, Stage stage) {
    Arena *arena = entry->args->arena;
    const char *comment = stage == KERNEL || stage == C_TEXT ? "//" : ";";
    printf("%s %s  %u launch%s\n", comment,
           core_site_text(entry->core, launch->fn, launch->let, arena).at, launches,
           launches == 1 ? "" : "es");
    printf("%s %s\n", comment, rlz_layout_text(launch->nest, &launch->layout, arena).at);
    const Kernel *kernel = launch->kernel->kernel;
    StrBuf c = {.arena = arena};
    if (stage == C_TEXT) {
        krn_c_function(kernel, "kernel", &c);
        put(buf_str(&c));
    } else if (stage == KERNEL)
        put(krn_print(kernel, arena));
    else
        put(nat_text(entry->options.native, kernel, stage == LLVM ? NAT_LLVM : NAT_ASSEMBLY,
                     arena));
    putchar('\n');
}

// Each distinct kernel once, at its first site, in the order of launches.
static void put_kernels(CliEntry *entry, const RtProgram *program, Stage stage) {
    for (uint32_t i = 0; i < rt_launch_count(program); i++) {
        const RtLaunch *launch = rt_launch_at(program, i);
        uint32_t launches = 0, first = rt_launch_count(program);
        for (uint32_t j = rt_launch_count(program); j-- > 0;)
            if (rt_launch_at(program, j)->kernel == launch->kernel) {
                launches++;
                first = j;
            }
        if (first == i)
            put_kernel(entry, launch, launches, stage);
    }
}

static int dump_kernels(CliArgs *args, Stage stage) {
    CliEntry entry = {0};
    int status = cli_entry_open(args, &entry);
    if (!status)
        status = cli_entry_shapes(&entry);
    if (!status)
        status = cli_entry_backend(
            &entry, stage == KERNEL || stage == C_TEXT ? RT_KERNEL : RT_NATIVE, RT_TO_LOOK);
    if (!status) {
        RtProgram *program = cli_entry_build(&entry);
        if (program)
            put_kernels(&entry, program, stage);
        status = cli_report(args);
    }
    cli_entry_close(&entry);
    return status;
}

static int run(CliArgs *args) {
    const char *text = cli_text(args, "stage");
    Stage stage;
    if (!text)
        return cli_usage(
            args,
            "which stage? --stage tokens, tree, core, realize, plan, space, kernel, c, llvm, asm");
    if (!stage_of_text(text, &stage))
        return unknown_stage(args, text);
    switch (stage) {
    case TOKENS:
    case TREE:
        return dump_source(args, stage);
    case CORE:
        return dump_core(args);
    case REALIZE:
        return cli_dump_realize(args);
    case PLAN:
        return cli_dump_plan(args);
    case SPACE:
        return cli_dump_space(args);
    default:
        return dump_kernels(args, stage);
    }
}

static const CliOption options[] = {
    {"stage", CLI_TEXT, "STAGE",
     "tokens, tree, core, realize (or sched), plan, space, kernel, c, llvm, asm"},
    CLI_ENTRY_OPTIONS,
    {"explain", CLI_FLAG, NULL, "realize: why values did not join a fusion group"},
    {"nest", CLI_TEXT, "NEST", "space: the nest whose layouts are listed"},
    {"native", CLI_FLAG, NULL, "plan: the layouts of native code, not of the interpreter"},
    {"format", CLI_TEXT, "F", "realize: text (default), dot or json"},
    {0},
};

const CliCommand cli_command_dump = {
    .name = "dump",
    .usage = "FILE.psk --stage STAGE [--entry F] [options]",
    .summary = "show a program at a stage of the compiler",
    .details =
        "tokens, tree and core need the source alone. realize shows fusion groups and nests,\n"
        "with layouts where the entry's dimensions are given; plan writes them as a plan,\n"
        "space lists the layouts that a nest can have.\n"
        "kernel, c, llvm and asm show the\n"
        "kernels of an entry at given dimensions: kernel as the interpreter runs them, llvm and\n"
        "asm as this machine does.",
    .examples =
        "  presk dump corpus/nlp/05_gpt.psk --stage core --entry SelfAttention.apply\n"
        "  presk dump corpus/nlp/05_gpt.psk --stage realize --const D=64 --const H=2 --const L=2\n"
        "  presk dump corpus/nlp/05_gpt.psk --stage kernel --entry Mlp.apply --pack 2,32",
    .options = options,
    .min = 1,
    .max = 1,
    .run = run,
};
