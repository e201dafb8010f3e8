#include "cli/execute.h"

#include "base/file.h"
#include "realize/dump.h"

#include <stdio.h>

Str cli_seconds_text(Arena *arena, double seconds) {
    if (seconds < 1e-3)
        return str_format(arena, "%.3g us", seconds * 1e6);
    if (seconds < 1)
        return str_format(arena, "%.3g ms", seconds * 1e3);
    return str_format(arena, "%.3g s", seconds);
}

Str cli_bytes_text(Arena *arena, double bytes) {
    static const char *const unit[] = {"B", "KB", "MB", "GB", "TB"};
    uint32_t u = 0;
    for (; bytes >= 1000 && u + 1 < COUNT_OF(unit); u++)
        bytes /= 1000;
    return str_format(arena, "%.3g %s", bytes, unit[u]);
}

void cli_print_header(const CliEntry *entry) {
    const RtOptions *options = &entry->options;
    const RtBinding *b = entry->binding;
    const Names *names = entry->args->context->names;
    printf("%s: %s\n", entry->args->positional[0], name_c(names, b->fn->name));
    printf("  arithmetic  %s%s\n", entry->realization->name.at,
           entry->arithmetic->fusion ? "" : ", fusion off");
    printf("  executor    %s", cli_backend_text(options->backend));
    if (options->backend == RT_NATIVE)
        printf(", %u-bit vectors", options->target);
    if (options->backend != RT_REF)
        printf(", %u worker%s", pool_workers(options->pool),
               pool_workers(options->pool) == 1 ? "" : "s");
    putchar('\n');
    const char *before = "  dimensions  ";
    for (DimId dim = 1; dim <= extent_dim_count(entry->core->extents); dim++) {
        if (b->by_dim[dim] < 0)
            continue;
        printf("%s%s = %lld", before,
               name_c(names, extent_dim_get(entry->core->extents, dim)->name),
               (long long)b->by_dim[dim]);
        before = ", ";
    }
    printf("%s  values      %s\n", *before == ',' ? "\n" : "", entry->values.at);
}

static uint64_t hash_layouts(CliEntry *entry, const RtProgram *program, uint64_t hash) {
    Arena *arena = entry->args->arena;
    for (uint32_t i = 0; i < rt_launch_count(program); i++) {
        const RtLaunch *launch = rt_launch_at(program, i);
        Str site = core_site_text(entry->core, launch->fn, launch->let, arena);
        Str shape = rlz_nest_shape(launch->nest, arena);
        Str layout = rlz_layout_text(launch->nest, &launch->layout, arena);
        hash = hash_bytes(site.at, site.size, hash);
        hash = hash_bytes(shape.at, shape.size, hash);
        hash = hash_bytes(layout.at, layout.size, hash);
    }
    return hash;
}

Str cli_plan_text(CliEntry *entry, const RtProgram *program, const RtProgram *other) {
    Arena *arena = entry->args->arena;
    uint64_t hash = hash_layouts(entry, program, entry->options.target);
    if (other)
        hash = hash_layouts(entry, other, hash);
    return str_format(arena, "%s %016llx", entry->plan ? entry->plan->path.at : "default",
                      (unsigned long long)hash);
}

// ---- running --------------------------------------------------------------------------------

typedef struct Shown {
    Progress progress;
    CliEntry *entry;
} Shown;

static void show_launched(void *data, CoreFnId fn, CoreLetId let) {
    Shown *shown = data;
    Arena *arena = arena_new(arena_heap(shown->entry->args->arena), "progress");
    progress_update(&shown->progress, 0, 0, core_site_text(shown->entry->core, fn, let, arena).at);
    arena_free(arena);
}

static int execute_reference(CliEntry *entry, CliExecution *execution) {
    const RtBinding *b = entry->binding;
    CoreEval eval = {.program = entry->core,
                     .arithmetic = entry->arithmetic,
                     .dims = b->by_dim,
                     .arena = entry->args->arena,
                     .hyper = entry->options.hyper,
                     .hyper_data = entry->options.hyper_data};
    Shown shown = {.entry = entry};
    progress_begin(&shown.progress, "evaluating", entry->args->quiet);
    if (shown.progress.enabled) {
        eval.launched = show_launched;
        eval.launched_data = &shown;
    }
    FloatEnv saved;
    float_env_enter(&saved);
    double started = clock_seconds();
    execution->result =
        core_eval(&eval, b->id, b->arguments, rt_bind_own(b), b->pack_rank, b->pack);
    execution->seconds = clock_seconds() - started;
    float_env_leave(&saved);
    progress_end(&shown.progress);
    execution->launches = eval.launches;
    return cli_report(entry->args);
}

// Launch by launch under a progress line, where there is one to show; its measure is the work that
// the launches do.
static void run_shown(CliEntry *entry, RtProgram *program) {
    Progress progress;
    progress_begin(&progress, "running", entry->args->quiet);
    if (!progress.enabled) {
        rt_run(program);
        return;
    }
    uint32_t launches = rt_launch_count(program);
    double all = 0, done = 0;
    for (uint32_t i = 0; i < launches; i++)
        all += rlz_nest_weight(rt_launch_at(program, i)->nest);
    for (uint32_t i = 0; i < launches; i++) {
        const RtLaunch *launch = rt_launch_at(program, i);
        rt_run_launch(program, i);
        done += rlz_nest_weight(launch->nest);
        progress_update(
            &progress, (uint64_t)done, (uint64_t)all,
            core_site_text(entry->core, launch->fn, launch->let, entry->args->arena).at);
    }
    progress_end(&progress);
}

int cli_execute(CliEntry *entry, CliExecution *execution) {
    *execution = (CliExecution){0};
    if (entry->options.backend == RT_REF)
        return execute_reference(entry, execution);
    execution->program = cli_entry_build(entry);
    if (!execution->program)
        return cli_report(entry->args);
    double started = clock_seconds();
    run_shown(entry, execution->program);
    execution->seconds = clock_seconds() - started;
    execution->result = rt_result(execution->program);
    execution->launches = rt_launch_count(execution->program);
    return CLI_FINE;
}

// ---- results --------------------------------------------------------------------------------

static uint32_t count_tensors(const CoreValue *value) {
    if (!value->parts)
        return 1;
    uint32_t count = 0;
    for (uint32_t i = 0; i < value->count; i++)
        count += count_tensors(&value->parts[i]);
    return count;
}

static Str join(Arena *arena, Str prefix, Str name) {
    return prefix.size ? str_format(arena, "%s.%s", prefix.at, name.at) : name;
}

static void list_tensors(CliEntry *entry, const CoreValue *value, Str prefix, CliNamedTensor *list,
                         uint32_t *count) {
    Arena *arena = entry->args->arena;
    if (!value->parts) {
        list[(*count)++] = (CliNamedTensor){prefix, &value->tensor};
        return;
    }
    const CoreType *type = core_type(entry->core, value->type);
    CoreLeaf *leaves = NULL;
    if (type->kind == CORE_PARAMS)
        core_tree_leaves(entry->core, type->tree, arena, &leaves);
    for (uint32_t i = 0; i < value->count; i++)
        list_tensors(entry, &value->parts[i],
                     join(arena, prefix, leaves ? leaves[i].path : str_format(arena, "%u", i)),
                     list, count);
}

uint32_t cli_result_tensors(CliEntry *entry, const CoreValue *result, CliNamedTensor **tensors) {
    *tensors = arena_array(entry->args->arena, CliNamedTensor, count_tensors(result) + 1);
    uint32_t count = 0;
    list_tensors(entry, result, STR(""), *tensors, &count);
    return count;
}

CliDifference cli_compare_results(CliEntry *entry, const CoreValue *a, const CoreValue *b) {
    CliNamedTensor *left, *right;
    uint32_t count = cli_result_tensors(entry, a, &left);
    check_that(cli_result_tensors(entry, b, &right) == count);
    CliDifference result = {.same = true};
    for (uint32_t i = 0; i < count; i++) {
        int64_t at;
        result.elements += shape_count(&left[i].tensor->shape);
        if (!result.same || tensor_same_bits(left[i].tensor, right[i].tensor, &at))
            continue;
        result.same = false;
        result.name = left[i].name;
        result.at = at;
        result.a = tensor_get(left[i].tensor, at);
        result.b = tensor_get(right[i].tensor, at);
    }
    return result;
}

void cli_print_difference(const CliDifference *d, const char *name_a, const char *name_b) {
    if (d->same)
        printf("the same bits by %s and %s in %lld element%s\n", name_a, name_b,
               (long long)d->elements, d->elements == 1 ? "" : "s");
    else
        printf("different: %s%s at element %lld is %.17g by %s and %.17g by %s\n",
               d->name.size ? "part " : "the result", d->name.size ? d->name.at : "",
               (long long)d->at, d->a, name_a, d->b, name_b);
}
