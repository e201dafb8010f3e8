// Compiling, caching and loading kernels. See native.h.
//
// A batch goes through four steps: kernels whose text this Native has seen share its code; the
// disk cache gives the objects it has; the rest is compiled, each thread with an LLVM context of
// its own; and every object, fresh or cached, goes through the loader.
#include "base/file.h"
#include "base/pool.h"
#include "native/internal.h"
#include "native/loader.h"

#include <stdatomic.h>
#include <stdlib.h>

struct Native {
    Context *context;
    Arena *arena;
    Arena *batch; // what one nat_compile needs
    EmitTarget target;
    Str cache;    // folder; empty: none
    Str identity; // first lines of every key
    uint32_t threads;
    Pool *pool;             // null until several kernels are compiled at once
    const Emitter *emitter; // null until something is compiled
    EmitUnit **units;       // by thread, null until needed
    Map *seen;              // kernel text → index in `code`
    Vec(NatCode) code;
    NatStatistics statistics;
    bool warned;
};

// A kernel on its way to code.
typedef struct Job {
    const Kernel *kernel;
    Str text, key;
    Str object; // from the cache; empty: to be compiled
    EmitRequest request;
    EmitResult result;
    uint32_t code; // index
} Job;

typedef struct Batch {
    Native *native;
    Vec(Job) jobs;
    Vec(uint32_t) missing; // jobs to be compiled, the longest first
    atomic_uint next;
    char error[256]; // of opening a unit; guarded by `failed`
    atomic_bool failed;
} Batch;

// ---- life ---------------------------------------------------------------------------------------

Native *nat_new(Context *context, Arena *arena, const NatOptions *options) {
    uint32_t widest = nat_machine_target();
    uint32_t bits = options->target ? options->target : widest;
    if (bits > widest && !options->cpu) {
        Str text = str_format(arena, "%u", bits), own = str_format(arena, "%u", widest);
        diag(&context->diags, E6103, (Span){0}, text.at, own.at);
        return NULL;
    }
    Native *native = arena_new_of(arena, Native);
    native->context = context;
    native->arena = arena;
    native->batch = arena_new(arena_heap(arena), "native batch");
    native->target = (EmitTarget){bits, options->cpu};
    native->cache = nat_cache_folder(arena, options);
    native->threads = options->threads ? options->threads : pool_default_workers();
    native->units = arena_array(arena, EmitUnit *, native->threads);
    native->seen = map_new(arena);
    Str machine = options->cpu ? str_of(options->cpu) : nat_machine_identity(arena);
    native->identity = str_format(arena, "presk object 1\nbuild %s\ntarget %u\nmachine %s\n",
                                  PRESK_EMIT_BUILD, bits, machine.at);
    return native;
}

void nat_free(Native *native) {
    if (!native)
        return;
    for (uint32_t i = 0; i < native->code.count; i++)
        nat_unload(&native->code.at[i]);
    for (uint32_t i = 0; i < native->threads; i++)
        if (native->units[i])
            native->emitter->close(native->units[i]);
    if (native->pool)
        pool_free(native->pool);
    arena_free(native->batch);
    native->threads = native->code.count = 0;
}

NatStatistics nat_statistics(const Native *native) {
    return native->statistics;
}

static bool open_emitter(Native *native) {
    Str error = {0};
    if (!native->emitter)
        native->emitter = nat_open_emitter(native->arena, &error);
    if (!native->emitter)
        diag(&native->context->diags, E6101, (Span){0}, error.at);
    return native->emitter != NULL;
}

// ---- compiling ----------------------------------------------------------------------------------

static const char *kernel_name(const Kernel *kernel) {
    return name_c(kernel->names, kernel->name);
}

static EmitRequest request_of(Arena *arena, const Kernel *kernel, EmitWhat what) {
    const char **names = arena_array(arena, const char *, kernel->buffers.count);
    for (uint32_t i = 0; i < kernel->buffers.count; i++)
        names[i] = name_c(kernel->names, kernel->buffers.at[i].name);
    // The prefix keeps a kernel called `fma` apart from libm's.
    Str name = str_format(arena, "kernel.%s", kernel_name(kernel));
    return (EmitRequest){kernel, name.at, names, what};
}

// One thread's share of a batch. Nothing here touches an arena.
static void compile_share(void *data, uint32_t worker, uint32_t workers) {
    (void)workers;
    Batch *batch = data;
    Native *native = batch->native;
    EmitUnit **unit = &native->units[worker];
    char error[sizeof batch->error];
    if (!*unit)
        *unit = native->emitter->open(&native->target, error, sizeof error);
    if (!*unit) {
        if (!atomic_exchange(&batch->failed, true))
            memcpy(batch->error, error, sizeof error);
        return;
    }
    for (;;) {
        uint32_t i = atomic_fetch_add(&batch->next, 1);
        if (i >= batch->missing.count)
            return;
        Job *job = &batch->jobs.at[batch->missing.at[i]];
        native->emitter->emit(*unit, &job->request, &job->result);
    }
}

static int longer_first(const void *a, const void *b) {
    const Kernel *left = *(const Kernel *const *)a, *right = *(const Kernel *const *)b;
    return left->insts.count < right->insts.count   ? 1
           : left->insts.count > right->insts.count ? -1
                                                    : 0;
}

// The longest kernels first, so that the threads end together.
static void order_missing(Batch *batch) {
    Native *native = batch->native;
    typedef struct Entry {
        const Kernel *kernel;
        uint32_t job;
    } Entry;
    Entry *entries = arena_array(native->batch, Entry, batch->jobs.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->jobs.count; i++)
        if (batch->jobs.at[i].object.size == 0)
            entries[count++] = (Entry){batch->jobs.at[i].kernel, i};
    qsort(entries, count, sizeof *entries, longer_first);
    batch->missing.count = 0;
    for (uint32_t i = 0; i < count; i++)
        vec_push(native->batch, &batch->missing, entries[i].job);
}

static void store_object(Native *native, const Job *job) {
    Str object = {job->result.bytes, (uint32_t)job->result.size}, error;
    if (native->cache.size == 0 || native->warned ||
        nat_cache_store(native->batch, native->cache, job->key, object, &error))
        return;
    native->warned = true;
    diag(&native->context->diags, W0601, (Span){0}, native->cache.at, error.at);
}

static bool compile_missing(Batch *batch) {
    Native *native = batch->native;
    order_missing(batch);
    if (batch->missing.count == 0)
        return true;
    if (!open_emitter(native))
        return false;
    for (uint32_t i = 0; i < batch->missing.count; i++) {
        Job *job = &batch->jobs.at[batch->missing.at[i]];
        job->request = request_of(native->batch, job->kernel, EMIT_OBJECT);
    }
    atomic_store(&batch->next, 0);
    uint32_t workers = MIN(native->threads, batch->missing.count);
    if (workers > 1 && !native->pool && !(native->pool = pool_new(native->threads)))
        workers = 1;
    if (workers > 1)
        pool_run(native->pool, workers, compile_share, batch);
    else
        compile_share(batch, 0, 1);
    for (uint32_t i = 0; i < batch->missing.count; i++) {
        Job *job = &batch->jobs.at[batch->missing.at[i]];
        if (!job->result.bytes) {
            const char *why = job->result.error[0] ? job->result.error : batch->error;
            diag(&native->context->diags, E6102, (Span){0}, kernel_name(job->kernel), why);
            return false;
        }
        store_object(native, job);
    }
    native->statistics.compiled += batch->missing.count;
    return true;
}

// ---- loading ------------------------------------------------------------------------------------

static bool load_job(Native *native, const Job *job, char *error, size_t size) {
    const void *object = job->object.size ? job->object.at : job->result.bytes;
    size_t bytes = job->object.size ? job->object.size : job->result.size;
    return nat_load(object, bytes, &native->code.at[job->code], error, size);
}

// Loads what came from the cache; an object that does not load is compiled anew.
static void load_cached(Batch *batch) {
    Native *native = batch->native;
    for (uint32_t i = 0; i < batch->jobs.count; i++) {
        Job *job = &batch->jobs.at[i];
        char error[256];
        if (native->cache.size == 0 ||
            !nat_cache_find(native->batch, native->cache, job->key, &job->object))
            continue;
        if (load_job(native, job, error, sizeof error))
            native->statistics.loaded++;
        else
            job->object = (Str){0};
    }
}

static bool load_fresh(Batch *batch) {
    Native *native = batch->native;
    for (uint32_t i = 0; i < batch->missing.count; i++) {
        Job *job = &batch->jobs.at[batch->missing.at[i]];
        char error[256];
        if (!load_job(native, job, error, sizeof error)) {
            diag(&native->context->diags, E6102, (Span){0}, kernel_name(job->kernel), error);
            return false;
        }
    }
    return true;
}

// ---- batches ------------------------------------------------------------------------------------

// Makes a job of each kernel that this Native has not seen, and finds the code of each.
static void collect_jobs(Batch *batch, uint32_t count, Kernel *const *kernels, uint32_t *code) {
    Native *native = batch->native;
    for (uint32_t i = 0; i < count; i++) {
        Str text = krn_print(kernels[i], native->batch);
        bool fresh;
        uint32_t *slot = map_slot(native->seen, text.at, text.size, &fresh);
        if (fresh) {
            *slot = native->code.count;
            vec_push(native->arena, &native->code, ((NatCode){0}));
        }
        code[i] = *slot;
        if (native->code.at[*slot].function)
            continue;
        bool listed = false;
        for (uint32_t j = 0; j < batch->jobs.count && !listed; j++)
            listed = batch->jobs.at[j].code == *slot;
        if (listed)
            continue;
        StrBuf key = {.arena = native->batch};
        buf_add(&key, native->identity);
        buf_add(&key, text);
        Job job = {.kernel = kernels[i], .text = text, .key = buf_str(&key), .code = *slot};
        vec_push(native->batch, &batch->jobs, job);
    }
}

bool nat_compile(Native *native, uint32_t count, Kernel *const *kernels, NatFunction *functions) {
    Batch batch = {.native = native};
    uint32_t *code = arena_array(native->batch, uint32_t, count);
    double start = clock_seconds();
    collect_jobs(&batch, count, kernels, code);
    load_cached(&batch);
    double loaded = clock_seconds();
    bool done = compile_missing(&batch) && load_fresh(&batch);
    native->statistics.load_seconds += loaded - start;
    native->statistics.compile_seconds += clock_seconds() - loaded;
    for (uint32_t i = 0; i < batch.jobs.count; i++)
        if (batch.jobs.at[i].result.bytes)
            native->emitter->release(&batch.jobs.at[i].result);
    for (uint32_t i = 0; i < count; i++)
        functions[i] = done ? native->code.at[code[i]].function : NULL;
    arena_reset(native->batch);
    return done;
}

Str nat_text(Native *native, const Kernel *kernel, NatText what, Arena *arena) {
    if (!open_emitter(native))
        return STR("");
    EmitRequest request =
        request_of(native->batch, kernel, what == NAT_LLVM ? EMIT_IR : EMIT_ASSEMBLY);
    EmitResult result = {0};
    if (!native->units[0])
        native->units[0] =
            native->emitter->open(&native->target, result.error, sizeof result.error);
    Str text = STR("");
    if (native->units[0] && native->emitter->emit(native->units[0], &request, &result)) {
        text = str_copy(arena, result.bytes, result.size);
        native->emitter->release(&result);
    } else {
        diag(&native->context->diags, E6102, (Span){0}, kernel_name(kernel), result.error);
    }
    arena_reset(native->batch);
    return text;
}
