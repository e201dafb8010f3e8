#include "cli/entry.h"

#include "base/file.h"
#include "cli/values.h"

#include <stdlib.h>

static const char *const backend_text[] = {"ref", "kernel", "native"};

const char *cli_backend_text(RtBackend backend) {
    return backend_text[backend];
}

bool cli_backend_of_text(const char *text, RtBackend *backend) {
    for (uint32_t i = 0; i < COUNT_OF(backend_text); i++)
        if (strcmp(text, backend_text[i]) == 0) {
            *backend = (RtBackend)i;
            return true;
        }
    return false;
}

static int bind_dims(CliEntry *entry) {
    CliArgs *args = entry->args;
    const char **texts;
    uint32_t count = cli_list(args, "dim", args->arena, &texts);
    for (uint32_t i = 0; i < count; i++) {
        Str name, value;
        char *end;
        if (!cli_split(args->arena, texts[i], &name, &value))
            return cli_usage(args, "--dim is NAME=number, not `%s`", texts[i]);
        long long number = strtoll(value.at, &end, 10);
        if (!value.size || *end || number < 0 || value.size > 18)
            return cli_usage(args, "--dim %s needs a whole number, not `%s`", name.at, value.at);
        Str by = str_format(args->arena, "--dim %s", texts[i]);
        if (!rt_bind_dim(entry->binding, name, number, by))
            return cli_report(args);
    }
    return CLI_FINE;
}

static int bind_pack(CliEntry *entry) {
    CliArgs *args = entry->args;
    const char *text = cli_text(args, "pack");
    if (!text)
        return CLI_FINE;
    if (!entry->binding->fn->has_pack)
        return cli_usage(args, "--pack: the entry has no `...`");
    int64_t extent[RANK_MAX];
    uint32_t rank = 0;
    for (const char *at = text; *at;) {
        char *end;
        extent[rank] = strtoll(at, &end, 10);
        if (end == at || extent[rank] < 0 || (*end && *end != ',') || (*end && !end[1]) ||
            rank + 1 == RANK_MAX)
            return cli_usage(args, "--pack is a list of extents, not `%s`", text);
        rank++;
        at = *end ? end + 1 : end;
    }
    return rt_bind_pack(entry->binding, rank, extent, STR("--pack")) ? CLI_FINE : cli_report(args);
}

// The entry that is meant when none is named: the training block's loss, or the only function.
static const char *default_entry(const CliEntry *entry) {
    const CoreProgram *core = entry->core;
    const ChkTraining *training = &entry->compiled.program->training;
    if (training->present && training->loss)
        return name_c(core->context->names, core_fn(core, training->loss)->name);
    return core->fns.count == 2 ? name_c(core->context->names, core->fns.at[1]->name) : NULL;
}

static int choose_entry(CliEntry *entry) {
    CliArgs *args = entry->args;
    const char *name = cli_text(args, "entry");
    if (!name)
        name = default_entry(entry);
    if (!name) {
        StrBuf list = {.arena = args->arena};
        for (uint32_t i = 1; i < entry->core->fns.count; i++)
            buf_format(&list, "%s%s", i > 1 ? ", " : "",
                       name_c(args->context->names, entry->core->fns.at[i]->name));
        return cli_usage(args, "which function? --entry names one of: %s", buf_str(&list).at);
    }
    entry->binding = rt_bind(entry->core, args->arena, str_of(name));
    return entry->binding ? CLI_FINE : cli_report(args);
}

// `option` is how the plan was asked for.
static int read_plan(CliEntry *entry, const char *option, const char *text) {
    CliArgs *args = entry->args;
    entry->plan = NULL;
    if (strcmp(text, "default") == 0)
        return CLI_FINE;
    if (text[0] != '@' || !text[1])
        return cli_usage(args, "%s is @FILE or default, not `%s`", option, text);
    entry->plan = rlz_plan_read(args->context, args->arena, str_of(text + 1));
    return entry->plan ? CLI_FINE : cli_report(args);
}

static int choose_plan(CliEntry *entry) {
    CliArgs *args = entry->args;
    const char *text = cli_text(args, "plan");
    if (text && cli_text(args, "realize"))
        return cli_usage(args,
                         "--plan states the realization, so --realize cannot stand beside it");
    return text ? read_plan(entry, "--plan", text) : CLI_FINE;
}

// The realization of the plan, or of `otherwise` where there is none.
static int realize(CliEntry *entry, Str otherwise) {
    CliArgs *args = entry->args;
    const char *fusion = cli_text(args, "fusion");
    if (fusion && strcmp(fusion, "on") && strcmp(fusion, "off"))
        return cli_usage(args, "--fusion is on or off, not `%s`", fusion);
    entry->realization = entry->plan ? entry->plan->realization
                                     : rlz_realization_read(args->context, args->arena, otherwise);
    if (!entry->realization || !rlz_realization_check(entry->core, entry->realization))
        return cli_report(args);
    entry->arithmetic = rlz_arithmetic(entry->core, args->arena, entry->realization,
                                       !fusion || strcmp(fusion, "on") == 0);
    return CLI_FINE;
}

static int choose_realization(CliEntry *entry) {
    const char *text = cli_text(entry->args, "realize");
    int status = choose_plan(entry);
    return status ? status : realize(entry, str_of(text ? text : "f32"));
}

uint32_t cli_hypers(CliArgs *args, const ChkTraining *block, RtHyper **hypers) {
    static const char *const others[] = {"epochs", "steps", "metric"};
    uint32_t count = 0;
    *hypers = arena_array(args->arena, RtHyper, block->settings.count + 1);
    for (uint32_t i = 0; i < block->settings.count; i++) {
        const ChkSetting *setting = &block->settings.at[i];
        bool hyper = true;
        for (uint32_t j = 0; j < COUNT_OF(others); j++)
            hyper = hyper && !str_is(name_str(args->context->names, setting->name), others[j]);
        if (!hyper)
            continue;
        (*hypers)[count++] = (RtHyper){
            .name = setting->name,
            .value = setting->value ? rational_round(setting->value, F64) : 0,
            .schedule = setting->schedule,
            .text = setting->text,
            .span = setting->span,
        };
    }
    return count;
}

// A step outside training is the first.
static void set_hypers(CliEntry *entry) {
    const ChkTraining *block = &entry->compiled.program->training;
    RtHyper *hypers = NULL;
    bool step = block->present && block->step == entry->binding->id;
    entry->hypers = (RtHypers){.core = entry->core, .dims = entry->binding->by_dim, .step = 1};
    entry->hypers.count = step ? cli_hypers(entry->args, block, &hypers) : 0;
    entry->hypers.at = hypers;
}

int cli_entry_compile(CliArgs *args, CliEntry *entry) {
    *entry = (CliEntry){.args = args};
    uint32_t count;
    ChkConst *consts;
    if (!cli_consts(args, &count, &consts))
        return CLI_USAGE;
    if (!presk_compile(args->context, args->arena, args->positional[0], count, consts,
                       cli_text(args, "entry"), &entry->compiled))
        return cli_report(args);
    entry->core = entry->compiled.program->core;
    return CLI_FINE;
}

int cli_entry_bind(CliEntry *entry) {
    int status = choose_entry(entry);
    if (status)
        return status;
    set_hypers(entry);
    status = choose_realization(entry);
    if (!status)
        status = bind_dims(entry);
    return status ? status : bind_pack(entry);
}

int cli_entry_open(CliArgs *args, CliEntry *entry) {
    int status = cli_entry_compile(args, entry);
    return status ? status : cli_entry_bind(entry);
}

static int choose_target(CliEntry *entry) {
    CliArgs *args = entry->args;
    uint32_t widest = nat_machine_target();
    int64_t target = cli_number(args, "target", widest);
    if (target != 128 && target != 256 && target != 512)
        return cli_usage(args, "--target is 128, 256 or 512, not %lld", (long long)target);
    if (target > widest && entry->options.backend == RT_NATIVE)
        return cli_usage(args, "this machine's widest target is %u", widest);
    entry->options.target = (RlzTarget)target;
    return CLI_FINE;
}

// The plan's target, if it states one, and what can be checked before anything runs.
static int check_plan(CliEntry *entry) {
    RtOptions *options = &entry->options;
    options->plan = entry->plan;
    if (!entry->plan)
        return CLI_FINE;
    options->target =
        rlz_plan_target(entry->plan, options->target, cli_flag(entry->args, "retarget"));
    bool fine = options->target &&
                rlz_plan_check(entry->core, entry->plan, entry->arithmetic, options->target);
    return fine ? CLI_FINE : cli_report(entry->args);
}

int cli_entry_plan(CliEntry *entry) {
    int status = choose_realization(entry);
    if (!status && entry->plan)
        status = choose_target(entry);
    return status ? status : check_plan(entry);
}

static int make_native(CliEntry *entry) {
    CliArgs *args = entry->args;
    NatOptions native = {.target = entry->options.target, .threads = pool_default_workers()};
    entry->options.native = nat_new(args->context, args->arena, &native);
    return entry->options.native ? CLI_FINE : cli_report(args);
}

int cli_entry_replan(CliEntry *entry, const char *option, const char *text) {
    CliArgs *args = entry->args;
    const CoreArithmetic *before = entry->arithmetic;
    const RlzTarget target = entry->options.target;
    Str uniform = str_of(dtype_text(entry->realization->uniform));
    int status = read_plan(entry, option, text);
    if (!status)
        status = realize(entry, uniform);
    if (status)
        return status;
    const CoreArithmetic *now = entry->arithmetic;
    if (now->inputs != before->inputs || now->params != before->params)
        return cli_usage(args,
                         "%s %s: its inputs are %s and its parameters %s, the others' %s "
                         "and %s",
                         option, text, dtype_text(now->inputs), dtype_text(now->params),
                         dtype_text(before->inputs), dtype_text(before->params));
    entry->options.arithmetic = entry->arithmetic;
    status = check_plan(entry);
    if (!status && entry->options.target != target && entry->options.native) {
        entry->options.native = NULL;
        status = make_native(entry);
    }
    return status;
}

static int make_pool(CliEntry *entry) {
    CliArgs *args = entry->args;
    int64_t workers = cli_number(args, "threads", pool_default_workers());
    if (workers < 1 || workers > 1024)
        return cli_usage(args, "--threads is 1 to 1024, not %lld", (long long)workers);
    entry->options.pool = pool_new((uint32_t)workers);
    if (!entry->options.pool)
        diag(&args->context->diags, E6017, (Span){0},
             str_format(args->arena, "%lld", (long long)workers).at);
    return cli_report(args);
}

int cli_entry_backend(CliEntry *entry, RtBackend backend, RtDepth depth) {
    CliArgs *args = entry->args;
    RtOptions *options = &entry->options;
    options->backend = backend;
    options->depth = depth;
    options->arithmetic = entry->arithmetic;
    options->dims = entry->binding->by_dim;
    options->hyper = rt_hyper_value;
    options->hyper_data = &entry->hypers;
    if (backend != RT_REF && !rlz_realization_lowers(args->context, entry->realization))
        return cli_report(args);
    int status = choose_target(entry);
    if (!status)
        status = check_plan(entry);
    if (!status && !options->pool)
        status = make_pool(entry);
    return status || backend != RT_NATIVE || options->native ? status : make_native(entry);
}

void cli_entry_close(CliEntry *entry) {
    if (entry->options.native)
        nat_free(entry->options.native);
    if (entry->options.pool)
        pool_free(entry->options.pool);
    entry->options.native = NULL;
    entry->options.pool = NULL;
}

RtProgram *cli_entry_build(CliEntry *entry) {
    const RtBinding *b = entry->binding;
    RtProgram *program = rt_build(entry->core, entry->args->arena, &entry->options, b->id,
                                  b->arguments, rt_bind_own(b), b->pack_rank, b->pack);
    cli_report(entry->args); // what a plan for another target has lost
    return program;
}

// ---- values ---------------------------------------------------------------------------------

// Makes a parameter that was not given.
static int fill(CliEntry *entry, uint32_t parameter, bool zeros, uint64_t seed) {
    const CoreArithmetic *a = entry->arithmetic;
    RtBinding *b = entry->binding;
    bool made = zeros ? rt_bind_zeros(b, parameter, a->inputs, a->params)
                      : rt_bind_draw(b, parameter, a->inputs, a->params, seed);
    return made ? CLI_FINE : cli_report(entry->args);
}

int cli_entry_shapes(CliEntry *entry) {
    if (!rt_bind_dims_done(entry->binding))
        return cli_report(entry->args);
    for (uint32_t i = 0; i < entry->binding->fn->params; i++)
        if (!rt_bind_shapes(entry->binding, i, entry->arithmetic->inputs,
                            entry->arithmetic->params))
            return cli_report(entry->args);
    entry->values = STR("shapes");
    return CLI_FINE;
}

// Files for some and a silent draw for the rest would look like a result.
static int refuse_partial(CliEntry *entry) {
    const RtBinding *b = entry->binding;
    for (uint32_t i = 0; i < b->fn->params; i++)
        if (!b->given[i]) {
            Diag *made = diag(&entry->args->context->diags, E6013, core_let(b->fn, i)->span,
                              rt_bind_name(b, i).at);
            diag_help(made, "give it with %s, or draw the rest with --seed 0, or use --zeros",
                      b->arguments[i].parts ? "--params @FILE" : "--in NAME=@FILE");
        }
    return cli_report(entry->args);
}

int cli_entry_values(CliEntry *entry) {
    RtBinding *b = entry->binding;
    int status = cli_values_given(entry);
    if (status)
        return status;
    if (!rt_bind_dims_done(b))
        return cli_report(entry->args);
    bool any = false, all = true;
    for (uint32_t i = 0; i < b->fn->params; i++) {
        any = any || b->given[i];
        all = all && b->given[i];
    }
    bool zeros = cli_flag(entry->args, "zeros");
    if (any && !all && !zeros && !cli_flag(entry->args, "seed"))
        return refuse_partial(entry);
    uint64_t seed = (uint64_t)cli_number(entry->args, "seed", 0);
    for (uint32_t i = 0; i < b->fn->params; i++) {
        if (b->given[i])
            continue;
        status = fill(entry, i, zeros, seed);
        if (status)
            return status;
    }
    const char *drawn = zeros ? "zeros" : "random values";
    if (all)
        entry->values = STR("files");
    else if (zeros)
        entry->values = str_of(any ? "files and zeros" : drawn);
    else
        entry->values = str_format(b->arena, "%s%s of seed %llu", any ? "files and " : "", drawn,
                                   (unsigned long long)seed);
    return CLI_FINE;
}
