// The embedding API (include/presk.h) over the driver, bindings and the runtime.
#include "../include/presk.h"

#include "core/eval.h"
#include "driver.h"
#include "runtime/bind.h"
#include "runtime/runtime.h"

#include <stdlib.h>

_Static_assert((int)PRESK_F64 == F64 && (int)PRESK_BF16 == BF16 && (int)PRESK_U64 == U64,
               "element types have the same numbers inside and outside");

struct PreskProgram {
    Context context;
    jmp_buf rescue;
    bool exhausted; // memory ran out: nothing may be asked of the context any more
    PreskCompiled compiled;
    PreskEntry *entries; // to close
};

struct PreskEntry {
    PreskProgram *program;
    PreskEntry *next;
    RtBinding *binding;
    CoreArithmetic *arithmetic;
    PreskBackend backend;
    RtOptions options;
    RtProgram *built;
    CoreValue result;
    uint32_t count; // of the result's tensors
    const Tensor **tensors;
};

// Runs `work` with the program's rescue point set; false after an error or when memory is out.
typedef bool (*Work)(PreskProgram *program, void *data);

static bool guarded(PreskProgram *program, Work work, void *data) {
    if (program->exhausted)
        return false;
    if (setjmp(program->rescue)) {
        program->exhausted = true;
        return false;
    }
    return work(program, data);
}

// "A=1,B=2": calls `each` for every pair; false at the first that is malformed or refused.
static bool each_pair(Context *context, const char *list,
                      bool (*each)(void *data, Str name, Str value), void *data) {
    for (const char *at = list; at && *at;) {
        const char *end = strchr(at, ',');
        size_t size = end ? (size_t)(end - at) : strlen(at);
        const char *equals = memchr(at, '=', size);
        if (!equals || equals == at) {
            diag(&context->diags, E6016, (Span){0}, str_copy(context->arena, at, size).at);
            return false;
        }
        Str name = str_copy(context->arena, at, (size_t)(equals - at));
        Str value = str_copy(context->arena, equals + 1, size - (size_t)(equals - at) - 1);
        if (!each(data, name, value))
            return false;
        at = end ? end + 1 : NULL;
    }
    return true;
}

// ---- programs -------------------------------------------------------------------------------

typedef struct Opening {
    const char *path, *constants;
    Arena *arena;
    Vec(ChkConst) consts;
} Opening;

static bool add_const(void *data, Str name, Str value) {
    Opening *opening = data;
    vec_push(opening->arena, &opening->consts, ((ChkConst){name, value}));
    return true;
}

static bool open_program(PreskProgram *program, void *data) {
    Opening *opening = data;
    context_init_rescued(&program->context, &program->rescue, 0);
    Context *context = &program->context;
    opening->arena = context->arena;
    return each_pair(context, opening->constants, add_const, opening) &&
           presk_compile(context, context->arena, opening->path, opening->consts.count,
                         opening->consts.at, NULL, &program->compiled);
}

PreskProgram *presk_open(const char *path, const char *constants) {
    PreskProgram *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    Opening opening = {.path = path, .constants = constants};
    guarded(program, open_program, &opening);
    return program;
}

void presk_close(PreskProgram *program) {
    if (!program)
        return;
    for (PreskEntry *entry = program->entries; entry; entry = entry->next) {
        if (entry->options.native)
            nat_free(entry->options.native);
        if (entry->options.pool)
            pool_free(entry->options.pool);
    }
    context_free(&program->context);
    free(program);
}

static bool render(PreskProgram *program, void *data) {
    *(const char **)data =
        diags_render(&program->context.diags, program->context.arena, DIAG_PLAIN).at;
    return true;
}

const char *presk_message(PreskProgram *program) {
    const char *text = "";
    if (!program->exhausted && guarded(program, render, &text))
        return text ? text : "";
    return "error[E6001]: out of memory\n";
}

// ---- entries --------------------------------------------------------------------------------

typedef struct Entering {
    const char *name, *dims;
    PreskOptions options;
    PreskEntry *entry;
} Entering;

static bool bind_dim(void *data, Str name, Str value) {
    RtBinding *binding = data;
    char *end;
    long long number = strtoll(value.at, &end, 10);
    Str text = str_format(binding->arena, "%s=%s", name.at, value.at);
    if (!value.size || *end || number < 0) {
        diag(&binding->core->context->diags, E6016, (Span){0}, text.at);
        return false;
    }
    return rt_bind_dim(binding, name, number, text);
}

static bool realize(PreskEntry *entry, const char *text) {
    Context *context = &entry->program->context;
    CoreProgram *core = entry->binding->core;
    RlzRealization *r = rlz_realization_read(context, context->arena, str_of(text ? text : "f32"));
    if (!r || !rlz_realization_check(core, r))
        return false;
    entry->arithmetic = rlz_arithmetic(core, context->arena, r, true);
    return entry->backend == PRESK_REFERENCE || rlz_realization_lowers(context, r);
}

static bool set_executor(PreskEntry *entry, uint32_t workers) {
    Context *context = &entry->program->context;
    RtOptions *options = &entry->options;
    options->backend = entry->backend == PRESK_NATIVE ? RT_NATIVE : RT_KERNEL;
    options->arithmetic = entry->arithmetic;
    options->dims = entry->binding->by_dim;
    options->target = nat_machine_target();
    options->pool = pool_new(workers ? workers : pool_default_workers());
    if (!options->pool) {
        diag(&context->diags, E6017, (Span){0}, str_format(context->arena, "%u", workers).at);
        return false;
    }
    if (entry->backend != PRESK_NATIVE)
        return true;
    NatOptions native = {.target = options->target};
    options->native = nat_new(context, context->arena, &native);
    return options->native;
}

static bool enter(PreskProgram *program, void *data) {
    Entering *entering = data;
    Context *context = &program->context;
    if (!program->compiled.program || context->diags.errors)
        return false;
    PreskEntry *entry = arena_new_of(context->arena, PreskEntry);
    entry->program = program;
    entry->backend = entering->options.backend;
    entry->binding =
        rt_bind(program->compiled.program->core, context->arena, str_of(entering->name));
    if (!entry->binding || !each_pair(context, entering->dims, bind_dim, entry->binding) ||
        !realize(entry, entering->options.realization))
        return false;
    entry->next = program->entries;
    program->entries = entry; // from here on presk_close frees what it holds
    if (entry->backend != PRESK_REFERENCE && !set_executor(entry, entering->options.workers))
        return false;
    entering->entry = entry;
    return true;
}

PreskEntry *presk_entry(PreskProgram *program, const char *name, const char *dims,
                        const PreskOptions *options) {
    Entering entering = {.name = name, .dims = dims};
    if (options)
        entering.options = *options;
    return guarded(program, enter, &entering) ? entering.entry : NULL;
}

// ---- values ---------------------------------------------------------------------------------

typedef struct Setting {
    PreskEntry *entry;
    const char *name, *path;
    Tensor tensor;
} Setting;

static bool set_input(PreskProgram *program, void *data) {
    (void)program;
    Setting *setting = data;
    Str name = str_of(setting->name);
    return rt_bind_input(setting->entry->binding, name, &setting->tensor,
                         setting->entry->arithmetic->inputs,
                         str_format(setting->entry->binding->arena, "the input %s", name.at));
}

static bool set_parameter(PreskProgram *program, void *data) {
    Setting *setting = data;
    RtBinding *b = setting->entry->binding;
    for (uint32_t i = 0; i < b->fn->params; i++) {
        if (!b->arguments[i].parts)
            continue;
        CoreLeaf *leaves;
        uint32_t count = rt_bind_leaves(b, i, &leaves);
        for (uint32_t leaf = 0; leaf < count; leaf++)
            if (str_is(leaves[leaf].path, setting->path))
                return rt_bind_leaf(b, i, leaf, &setting->tensor,
                                    setting->entry->arithmetic->params,
                                    str_format(b->arena, "the parameter %s", setting->path));
    }
    diag(&program->context.diags, E6008, b->fn->span, setting->path,
         name_c(program->context.names, b->fn->name));
    return false;
}

static int set(PreskEntry *entry, Setting *setting, Work work, PreskType type, uint32_t rank,
               const int64_t *extent, const void *data) {
    if (rank > RANK_MAX)
        return 1;
    setting->entry = entry;
    setting->tensor = (Tensor){(DType)type, shape_row_major(rank, extent), (void *)(uintptr_t)data};
    bool done = shape_count(&setting->tensor.shape) >= 0 && guarded(entry->program, work, setting);
    return done ? 0 : 1;
}

int presk_set(PreskEntry *entry, const char *name, PreskType type, uint32_t rank,
              const int64_t *extent, const void *data) {
    Setting setting = {.name = name};
    return set(entry, &setting, set_input, type, rank, extent, data);
}

int presk_set_parameter(PreskEntry *entry, const char *path, PreskType type, uint32_t rank,
                        const int64_t *extent, const void *data) {
    Setting setting = {.path = path};
    return set(entry, &setting, set_parameter, type, rank, extent, data);
}

typedef struct Filling {
    PreskEntry *entry;
    uint64_t seed;
} Filling;

static bool fill(PreskProgram *program, void *data) {
    (void)program;
    Filling *filling = data;
    RtBinding *b = filling->entry->binding;
    const CoreArithmetic *a = filling->entry->arithmetic;
    if (!rt_bind_dims_done(b))
        return false;
    for (uint32_t i = 0; i < b->fn->params; i++) {
        // A tree may have been given in part: the leaves that were are kept.
        if (b->given[i] && !b->arguments[i].parts)
            continue;
        if (!rt_bind_draw(b, i, a->inputs, a->params, filling->seed))
            return false;
        b->given[i] = true;
    }
    return true;
}

int presk_fill(PreskEntry *entry, uint64_t seed) {
    Filling filling = {entry, seed};
    return guarded(entry->program, fill, &filling) ? 0 : 1;
}

// ---- running --------------------------------------------------------------------------------

static bool all_given(PreskEntry *entry) {
    RtBinding *b = entry->binding;
    for (uint32_t i = 0; i < b->fn->params; i++) {
        bool given = b->given[i];
        for (uint32_t leaf = 0; given && leaf < b->arguments[i].count; leaf++)
            given = !b->arguments[i].parts || b->arguments[i].parts[leaf].tensor.data;
        if (given)
            continue;
        diag(&b->core->context->diags, E6013, core_let(b->fn, i)->span, rt_bind_name(b, i).at);
        return false;
    }
    return rt_bind_dims_done(b);
}

static bool run_reference(PreskEntry *entry) {
    const RtBinding *b = entry->binding;
    CoreEval eval = {
        .program = b->core, .arithmetic = entry->arithmetic, .dims = b->by_dim, .arena = b->arena};
    FloatEnv saved;
    float_env_enter(&saved);
    entry->result = core_eval(&eval, b->id, b->arguments, rt_bind_own(b), b->pack_rank, b->pack);
    float_env_leave(&saved);
    return !b->core->context->diags.errors;
}

static uint32_t flatten(const CoreValue *value, const Tensor **tensors) {
    if (!value->parts) {
        if (tensors)
            *tensors = &value->tensor;
        return 1;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < value->count; i++)
        count += flatten(&value->parts[i], tensors ? tensors + count : NULL);
    return count;
}

static bool run(PreskProgram *program, void *data) {
    PreskEntry *entry = data;
    RtBinding *b = entry->binding;
    if (!entry->built && !all_given(entry))
        return false;
    if (entry->backend == PRESK_REFERENCE) {
        if (!run_reference(entry))
            return false;
    } else {
        if (!entry->built)
            entry->built = rt_build(b->core, b->arena, &entry->options, b->id, b->arguments,
                                    rt_bind_own(b), b->pack_rank, b->pack);
        if (!entry->built)
            return false;
        rt_run(entry->built);
        entry->result = rt_result(entry->built);
    }
    if (!entry->tensors)
        entry->tensors =
            arena_array(program->context.arena, const Tensor *, flatten(&entry->result, NULL) + 1);
    entry->count = flatten(&entry->result, entry->tensors);
    return true;
}

int presk_run(PreskEntry *entry) {
    return guarded(entry->program, run, entry) ? 0 : 1;
}

uint32_t presk_result_count(PreskEntry *entry) {
    return entry->count;
}

PreskTensor presk_result(PreskEntry *entry, uint32_t index) {
    if (index >= entry->count)
        return (PreskTensor){0};
    const Tensor *tensor = entry->tensors[index];
    return (PreskTensor){(PreskType)tensor->type, tensor->shape.rank, tensor->shape.extent,
                         tensor->data};
}
