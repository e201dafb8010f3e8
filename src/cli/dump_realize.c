// presk dump --stage realize: the partition of every function and, where the entry's dimensions are
// known, its nests with their layouts.
#include "cli/entry.h"
#include "cli/execute.h"
#include "core/dump.h"
#include "realize/dump.h"
#include "realize/space.h"

#include <stdio.h>

static void put(Str text) {
    fwrite(text.at, 1, text.size, stdout);
}

// The launch's site and shape, as a plan names them; false: an earlier launch has the same.
static bool launch_key(CliEntry *entry, const RtLaunch *launch, Map *seen, Str *key) {
    Arena *arena = entry->args->arena;
    *key =
        str_format(arena, "%s@%s", core_site_text(entry->core, launch->fn, launch->let, arena).at,
                   rlz_nest_shape(launch->nest, arena).at);
    bool fresh;
    *map_slot(seen, key->at, key->size, &fresh) = 1;
    return fresh;
}

// Each site at each shape once, in the order of launches.
static void put_nests(CliEntry *entry, const RtProgram *program) {
    Arena *arena = entry->args->arena;
    Map *seen = map_new(arena);
    Str key;
    RtSummary summary = rt_summary(program);
    printf("nests of %s: %u launches, %u kernels, plan %s\n",
           name_c(entry->args->context->names, entry->binding->fn->name), summary.launches,
           summary.kernels, cli_plan_text(entry, program, NULL).at);
    if (entry->plan && entry->plan->profile.size)
        printf("  profile %s\n", entry->plan->profile.at);
    for (uint32_t i = 0; i < rt_launch_count(program); i++) {
        const RtLaunch *launch = rt_launch_at(program, i);
        if (launch_key(entry, launch, seen, &key))
            printf("  %-44s %s\n", key.at, rlz_nest_line(launch->nest, &launch->layout, arena).at);
    }
}

static void put_plan(CliEntry *entry, const RtProgram *program) {
    Arena *arena = entry->args->arena;
    const char *realization =
        entry->plan ? entry->plan->realization->name.at : cli_text(entry->args, "realize");
    Map *seen = map_new(arena);
    Str key;
    printf("{\n  \"realization\": \"%s\",\n  \"target\": %u,\n  \"layout\": {",
           realization ? realization : "f32", entry->options.target);
    for (uint32_t i = 0, put = 0; i < rt_launch_count(program); i++) {
        const RtLaunch *launch = rt_launch_at(program, i);
        if (launch_key(entry, launch, seen, &key))
            printf("%s\n    %s", put++ ? "," : "",
                   rlz_plan_record(key, launch->nest, &launch->layout, arena).at);
    }
    printf("\n  }\n}\n");
}

// The nests of an entry that was named; without --entry the partition alone is shown.
static int dump_nests(CliEntry *entry) {
    int status = cli_entry_shapes(entry);
    if (!status)
        status = cli_entry_backend(entry, RT_KERNEL, RT_TO_COUNT);
    if (status)
        return status;
    RtProgram *program = cli_entry_build(entry);
    if (program)
        put_nests(entry, program);
    return cli_report(entry->args);
}

static int dump_program(CliArgs *args, const CoreProgram *core, CoreFnId fn) {
    const char *format = cli_text(args, "format");
    if (!format || strcmp(format, "text") == 0)
        put(core_dump_groups(core, fn, cli_flag(args, "explain"), args->arena));
    else if (strcmp(format, "json") == 0)
        put(core_dump_groups_json(core, fn, args->arena));
    else if (strcmp(format, "dot") == 0)
        put(core_dump_groups_dot(core, fn, args->arena));
    else
        return cli_usage(args, "--format is text, dot or json, not `%s`", format);
    return CLI_FINE;
}

// A plan as far as it can be checked and shown without shapes.
static int dump_plan(CliArgs *args, const CoreProgram *core) {
    CliEntry entry = {.args = args, .core = (CoreProgram *)core};
    int status = cli_entry_plan(&entry);
    if (status || !entry.plan)
        return status;
    const RlzPlan *plan = entry.plan;
    printf("plan %s: arithmetic %s", plan->path.at, plan->realization->name.at);
    if (plan->target)
        printf(", target %u", plan->target);
    if (plan->profile.size)
        printf(", profile %s", plan->profile.at);
    putchar('\n');
    for (uint32_t i = 0; i < plan->nests.count; i++)
        printf("  %s\n", rlz_stated_text(&plan->nests.at[i], args->arena).at);
    return CLI_FINE;
}

static int dump_whole(CliArgs *args) {
    uint32_t count;
    ChkConst *consts;
    PreskCompiled compiled;
    if (!cli_consts(args, &count, &consts))
        return CLI_USAGE;
    if (!presk_compile(args->context, args->arena, args->positional[0], count, consts, NULL,
                       &compiled))
        return cli_report(args);
    int status = dump_program(args, compiled.program->core, 0);
    if (!status)
        status = dump_plan(args, compiled.program->core);
    return status ? status : cli_report(args);
}

// A plan that states every decision of every nest of an entry, as the present one resolves it.
int cli_dump_plan(CliArgs *args) {
    CliEntry entry;
    int status = cli_entry_open(args, &entry);
    if (!status)
        status = cli_entry_shapes(&entry);
    if (!status)
        status = cli_entry_backend(&entry, cli_flag(args, "native") ? RT_NATIVE : RT_KERNEL,
                                   RT_TO_COUNT);
    RtProgram *program = status ? NULL : cli_entry_build(&entry);
    if (program)
        put_plan(&entry, program);
    cli_entry_close(&entry);
    return status ? status : cli_report(args);
}

// ---- spaces -------------------------------------------------------------------------------------

static void put_space(CliEntry *entry, Str key, const RtLaunch *launch) {
    Arena *arena = entry->args->arena;
    const RtOptions *options = &entry->options;
    RlzMachine machine = {options->target, pool_workers(options->pool), true};
    RlzLayout *points, *modified;
    uint32_t count = rlz_space_core(launch->nest, &machine, arena, &points);
    uint32_t last = count - 1;
    while (last > 0 && points[last].row_wise)
        last--;
    uint32_t more = rlz_space_modified(launch->nest, &machine, &points[last], arena, &modified);
    printf("%s: %u points on target %u with %u workers\n", key.at, count, machine.target,
           machine.workers);
    for (uint32_t i = 0; i < count; i++)
        printf("  %s\n", rlz_layout_text(launch->nest, &points[i], arena).at);
    printf("%s with modifiers, each two values of which meet: %u\n",
           rlz_layout_text(launch->nest, &points[last], arena).at, more);
    for (uint32_t i = 0; i < more; i++)
        printf("  %s\n", rlz_layout_text(launch->nest, &modified[i], arena).at);
}

// The launch that --nest names, at its shape or the first one.
static int dump_space(CliEntry *entry, const RtProgram *program) {
    CliArgs *args = entry->args;
    const char *wanted = cli_text(args, "nest");
    Map *seen = map_new(args->arena);
    Vec(Str) keys = {0};
    for (uint32_t i = 0; i < rt_launch_count(program); i++) {
        const RtLaunch *launch = rt_launch_at(program, i);
        Str key, site = core_site_text(entry->core, launch->fn, launch->let, args->arena);
        launch_key(entry, launch, seen, &key);
        if (str_is(site, wanted) || str_is(key, wanted)) {
            put_space(entry, key, launch);
            return CLI_FINE;
        }
        vec_push(args->arena, &keys, site);
    }
    Str near = nearest_spelling(args->arena, str_of(wanted), keys.at, keys.count);
    return cli_usage(args, "the entry launches no nest `%s`%s%s%s", wanted,
                     near.size ? "; did you mean `" : "", near.at, near.size ? "`?" : "");
}

int cli_dump_space(CliArgs *args) {
    if (!cli_text(args, "nest"))
        return cli_usage(args, "which nest? --nest NAME, as --stage realize prints it");
    CliEntry entry;
    int status = cli_entry_open(args, &entry);
    if (!status)
        status = cli_entry_shapes(&entry);
    if (!status)
        status = cli_entry_backend(&entry, RT_KERNEL, RT_TO_COUNT);
    RtProgram *program = status ? NULL : cli_entry_build(&entry);
    if (program)
        status = dump_space(&entry, program);
    cli_entry_close(&entry);
    return status ? status : cli_report(args);
}

int cli_dump_realize(CliArgs *args) {
    const char *format = cli_text(args, "format");
    if (cli_text(args, "entry")) {
        CliEntry entry = {0};
        int status = cli_entry_open(args, &entry);
        if (!status)
            status = dump_program(args, entry.core, entry.binding->id);
        bool nests = cli_text(args, "dim") || cli_text(args, "pack");
        if (!status && nests && (!format || strcmp(format, "text") == 0))
            status = dump_nests(&entry);
        cli_entry_close(&entry);
        return status;
    }
    return dump_whole(args);
}
