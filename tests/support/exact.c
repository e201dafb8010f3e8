#include "support/exact.h"

#include "base/pool.h"
#include "native/native.h"
#include "realize/space.h"
#include "support/exact_nests.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 192, MODIFIED_EVERY = 29, WORKERS = 3, GUARD = 64 };
static const uint32_t thread_counts[] = {1, 2, 3, 7};
enum { THREADS = COUNT_OF(thread_counts) };

// Kernels with more accumulators than this spend minutes in LLVM; one in NATIVE_SHARE of them runs
// as native code, every one in the interpreter.
enum { ACCUMULATORS_MAX = 64 };

typedef struct Point {
    Kernel *kernel;
    Str what; // nest and layout, for messages
    bool native;
} Point;

// What a kernel of the nest reads and writes: of one nest of several leaves, each has a part.
typedef struct Part {
    const RlzNest *nest;
    Data *data; // by input
    Data truth;
} Part;

typedef struct Exact {
    Context *context;
    Arena *arena; // of one nest
    Arena *batch;
    Pool *pool[THREADS]; // by thread_counts; null for one
    const RlzNest *nest;
    uint32_t parts;
    Part *part;
    RlzTarget target;
    Map *seen; // kernel text and target
    Map *texts;
    Point points[BATCH];
    uint32_t count;
    Random random;
    ExactReport report;
} Exact;

// ---- running ------------------------------------------------------------------------------------

typedef struct Launch {
    const Kernel *kernel;
    const KrnCode *code;
    NatFunction native;
    void *const *buffers; // without scratch
    bool overrun;
} Launch;

static void run_share(void *data, uint32_t worker, uint32_t workers) {
    Launch *launch = data;
    const Kernel *kernel = launch->kernel;
    size_t size = krn_scratch_size(kernel), all = size + 2 * GUARD;
    uint8_t *block = aligned_alloc(64, (all + 63) / 64 * 64);
    void **buffers = calloc(kernel->buffers.count, sizeof *buffers);
    memset(block, 0xff, all);
    memcpy(buffers, launch->buffers, kernel->buffers.count * sizeof *buffers);
    krn_scratch_place(kernel, block + GUARD, buffers);
    int64_t begin = kernel->split_count * worker / workers;
    int64_t end = kernel->split_count * (worker + 1) / workers;
    if (launch->native)
        launch->native(buffers, begin, end);
    else
        krn_interpret(launch->code, buffers, begin, end);
    for (size_t i = 0; i < GUARD; i++)
        if (block[i] != 0xff || block[GUARD + size + i] != 0xff)
            launch->overrun = true;
    free(buffers);
    free(block);
}

static void fail(Exact *e, const char *what, const char *by, uint32_t threads, Str why) {
    if (!e->report.failure.size)
        e->report.failure =
            str_format(e->context->arena, "%s\nby %s on %u threads: %s", what, by, threads, why.at);
}

static bool inputs_guarded(const Part *part) {
    for (uint32_t i = 0; i < part->nest->inputs; i++)
        if (part->nest->input[i].source == RLZ_MEMORY && !data_guarded(&part->data[i]))
            return false;
    return true;
}

// The kernel's buffers, the outputs full of NaN.
static void **make_buffers(Exact *e, const Kernel *kernel, Data *out) {
    void **buffers = arena_array(e->batch, void *, kernel->buffers.count);
    uint32_t number = 0;
    for (uint32_t p = 0; p < e->parts; p++) {
        const Part *part = &e->part[p];
        out[p] = data_new(e->batch, part->truth.type, part->truth.count);
        memset(out[p].at, 0xff, (size_t)out[p].count * dtype_size(out[p].type));
        for (uint32_t i = 0; i < part->nest->inputs; i++)
            if (part->nest->input[i].source == RLZ_MEMORY)
                buffers[number++] = part->data[i].at;
        buffers[number++] = out[p].at;
    }
    return buffers;
}

// What is wrong with a part's output; the empty string where nothing is.
static Str fault_of(Exact *e, const Part *part, const Data *out) {
    int64_t at;
    if (!data_same(out, &part->truth, &at))
        return str_format(e->batch, "element %lld is %a, not %a", (long long)at,
                          dtype_get(out->type, out->at, at),
                          dtype_get(out->type, part->truth.at, at));
    return data_guarded(out) && inputs_guarded(part) ? STR("")
                                                     : STR("a guard word was overwritten");
}

// On each number of threads.
static void check_point(Exact *e, const Point *point, NatFunction native) {
    const Kernel *kernel = point->kernel;
    const char *by = native ? "native code" : "the interpreter";
    Launch launch = {.kernel = kernel, .native = native};
    if (!native)
        launch.code = krn_code(kernel, e->batch);
    for (uint32_t t = 0; t < (kernel->split_count ? THREADS : 1u); t++) {
        Data *out = arena_array(e->batch, Data, e->parts);
        launch.buffers = make_buffers(e, kernel, out);
        if (e->pool[t])
            pool_run(e->pool[t], thread_counts[t], run_share, &launch);
        else
            run_share(&launch, 0, 1);
        for (uint32_t p = 0; p < e->parts; p++) {
            Str fault = fault_of(e, &e->part[p], &out[p]);
            if (fault.size)
                fail(e, point->what.at, by, thread_counts[t], fault);
        }
        if (launch.overrun)
            fail(e, point->what.at, by, thread_counts[t], STR("scratch memory was overrun"));
    }
}

static void flush(Exact *e) {
    Kernel *kernels[BATCH];
    NatFunction functions[BATCH];
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        check_point(e, &e->points[i], NULL);
        if (e->points[i].native)
            kernels[count++] = e->points[i].kernel;
    }
    NatOptions options = {.no_cache = true, .target = e->target};
    Native *native = count ? nat_new(e->context, e->batch, &options) : NULL;
    if (count && (!native || !nat_compile(native, count, kernels, functions)))
        fail(e, "a batch", "LLVM", 1, diags_render(&e->context->diags, e->batch, DIAG_PLAIN));
    else
        for (uint32_t i = 0, n = 0; i < e->count; i++)
            if (e->points[i].native)
                check_point(e, &e->points[i], functions[n++]);
    nat_free(native);
    e->report.native += count;
    e->count = 0;
    arena_reset(e->batch);
}

// ---- points -------------------------------------------------------------------------------------

static bool mark(Map *map, Str text, RlzTarget target) {
    uint64_t key[2] = {hash_bytes(text.at, text.size, target), hash_bytes(text.at, text.size, 1)};
    bool fresh;
    map_slot(map, key, sizeof key, &fresh);
    return fresh;
}

static bool runs_native(const RlzLayout *layout, Str text) {
    uint64_t accumulators = (uint64_t)layout->tile[0] * layout->tile[1] * layout->unroll;
    return accumulators / layout->lanes <= ACCUMULATORS_MAX ||
           hash_bytes(text.at, text.size, 0) % NATIVE_SHARE == 0;
}

static void add_point(Exact *e, const RlzLayout *layout) {
    if (e->report.failure.size)
        return;
    Kernel *kernel = krn_lower(e->nest, layout, e->batch, e->context->names);
    Str text = krn_print(kernel, e->batch), errors;
    Str nest = rlz_nest_text(e->nest, e->batch);
    // Two nests may share a kernel's text and not its truth: indices below another bound.
    Str key = str_format(e->batch, "%s%s", nest.at, text.at);
    if (!mark(e->seen, key, e->target))
        return;
    e->report.texts += mark(e->texts, key, 0);
    e->report.split += kernel->split_count > 0;
    Str what = str_format(e->batch, "%starget %u: %s\n%s", nest.at, e->target,
                          rlz_layout_text(e->nest, layout, e->batch).at, text.at);
    if (!krn_verify(kernel, e->batch, &errors))
        fail(e, what.at, "the verifier", 1, errors);
    e->points[e->count++] = (Point){kernel, what, runs_native(layout, text)};
    if (e->count == BATCH)
        flush(e);
}

// At most `limit` points, evenly spaced; 0: all.
static void add_points(Exact *e, uint32_t count, const RlzLayout *points, uint64_t limit) {
    uint64_t step = limit && count > limit ? (count + limit - 1) / limit : 1;
    uint32_t first = (uint32_t)(step > 1 ? random_below(&e->random, (uint32_t)step) : 0);
    for (uint64_t i = first; i < count; i += step)
        add_point(e, &points[i]);
}

static void run_space(Exact *e, uint64_t limit) {
    RlzMachine machine = {e->target, WORKERS, true};
    RlzLayout *points, *modified;
    uint32_t count = rlz_space_core(e->nest, &machine, e->arena, &points);
    e->report.points += count;
    add_points(e, count, points, limit ? MAX(limit / 2, 1) : 0);
    uint32_t every = limit ? MAX(count / 4, 1) : MODIFIED_EVERY;
    for (uint32_t i = count ? random_below(&e->random, MIN(every, count)) : 0; i < count;
         i += every) {
        uint32_t more = rlz_space_modified(e->nest, &machine, &points[i], e->arena, &modified);
        e->report.points += more - 1;
        add_points(e, more, modified, limit ? MAX(limit / 8, 1) : 0);
    }
    flush(e);
}

// ---- truth --------------------------------------------------------------------------------------

static void run_scalar(Exact *e, const RlzNest *nest, void *const *inputs, const Data *out) {
    RlzLayout layout = rlz_layout_scalar(nest);
    Kernel *kernel = krn_lower(nest, &layout, e->batch, e->context->names);
    void **buffers = arena_array(e->batch, void *, kernel->buffers.count);
    uint32_t number = 0;
    for (uint32_t i = 0; i < nest->inputs; i++)
        if (nest->input[i].source == RLZ_MEMORY)
            buffers[number++] = inputs[i];
    buffers[number] = out->at;
    Launch launch = {.kernel = kernel, .code = krn_code(kernel, e->batch), .buffers = buffers};
    run_share(&launch, 0, 1);
}

// The product's kernel, then the add's.
static void run_product_and_add(Exact *e, const Part *part, void **inputs) {
    RlzNest product = *part->nest;
    product.inputs = 2;
    product.epilogue = false;
    Data between = data_new(e->batch, part->truth.type, part->truth.count);
    run_scalar(e, &product, inputs, &between);
    RlzNode node = {.prim = CORE_add, .arithmetic = product.arithmetic, .operand = {0, 1}};
    RlzOperand operands[2] = {product.output, part->nest->input[2]};
    RlzNest add = {.kind = RLZ_GROUP,
                   .prim = CORE_add,
                   .arithmetic = product.arithmetic,
                   .accumulate = product.arithmetic,
                   .inputs = 2,
                   .input = operands,
                   .nodes = 1,
                   .node = &node,
                   .output = product.output};
    for (uint32_t i = 0; i < product.axes && product.role[i] != RLZ_K; i++, add.axes++) {
        add.extent[i] = product.extent[i];
        add.role[i] = RLZ_PARALLEL;
    }
    run_scalar(e, &add, (void *[]){between.at, inputs[2]}, &part->truth);
}

static void prepare_part(Exact *e, Part *part, const RlzNest *nest) {
    part->nest = nest;
    part->data = arena_array(e->arena, Data, nest->inputs + 1);
    void **inputs = arena_array(e->arena, void *, nest->inputs + 1);
    for (uint32_t i = 0; i < nest->inputs; i++) {
        if (nest->input[i].source != RLZ_MEMORY)
            continue;
        const RlzOperand *operand = &nest->input[i];
        part->data[i] = data_new(e->arena, operand->type, rlz_operand_span(nest, operand));
        data_fill(&part->data[i], &e->random, MAX(operand->range, 1),
                  nest->kind != RLZ_CONTRACTION);
        inputs[i] = part->data[i].at;
    }
    part->truth = data_new(e->arena, nest->output.type, rlz_operand_span(nest, &nest->output));
    memset(part->truth.at, 0xff, (size_t)part->truth.count * dtype_size(part->truth.type));
    if (nest->epilogue)
        run_product_and_add(e, part, inputs);
    else
        run_scalar(e, nest, inputs, &part->truth);
    arena_reset(e->batch);
}

// Of all leaves in one nest, each leaf's own kernel says what is right.
static void prepare(Exact *e, const RlzNest *nest) {
    e->nest = nest;
    e->parts = MAX(nest->leaves, 1);
    e->part = arena_array(e->arena, Part, e->parts);
    for (uint32_t i = 0; i < e->parts; i++)
        prepare_part(e, &e->part[i], nest->leaves ? nest->leaf[i] : nest);
}

// ---- all ----------------------------------------------------------------------------------------

static bool collect(Exact *e, ExactNests *all) {
    static const DType types[] = {F32, F64, BF16};
    static const char *const names[] = {"f32", "f64", "bf16"};
    for (uint32_t t = 0; t < COUNT_OF(types); t++) {
        exact_nests_by_hand(all, types[t]);
        exact_leaves_by_hand(all, types[t]);
        if (!exact_nests_of_programs(e->context, all, names[t])) {
            fail(e, "a program", "the compiler", 1,
                 diags_render(&e->context->diags, all->arena, DIAG_PLAIN));
            return false;
        }
    }
    return true;
}

static void run_nest(Exact *e, const RlzNest *nest, uint32_t number, uint64_t limit) {
    prepare(e, nest);
    uint32_t targets = 1;
    while (targets < 3 && 128u << targets <= nat_machine_target())
        targets++;
    for (uint32_t t = 0; t < targets && !e->report.failure.size; t++) {
        if (limit && t != number % targets)
            continue; // a sample takes one target a nest
        e->target = 128u << t;
        run_space(e, limit);
    }
    arena_reset(e->arena);
}

ExactReport exact_run(Context *context, uint64_t sample, bool progress) {
    Exact *e = calloc(1, sizeof *e);
    e->context = context;
    e->arena = arena_new(&context->heap, "exact");
    e->batch = arena_new(&context->heap, "exact batch");
    e->seen = map_new(context->arena);
    e->texts = map_new(context->arena);
    e->random.state = 17;
    for (uint32_t t = 0; t < THREADS; t++)
        e->pool[t] = thread_counts[t] > 1 ? pool_new(thread_counts[t]) : NULL;
    ExactNests all = {.arena = context->arena, .seen = map_new(context->arena)};
    if (collect(e, &all))
        for (uint32_t i = 0; i < all.nests.count && !e->report.failure.size; i++) {
            uint64_t limit = sample ? MAX(sample / all.nests.count, 2) : 0;
            run_nest(e, all.nests.at[i], i, limit);
            if (progress)
                printf("%3u of %u nests, %llu kernels, %llu native\n", i + 1, all.nests.count,
                       (unsigned long long)e->report.texts, (unsigned long long)e->report.native);
            if (progress)
                fflush(stdout);
        }
    ExactReport report = e->report;
    report.nests = all.nests.count;
    for (uint32_t t = 0; t < THREADS; t++)
        if (e->pool[t])
            pool_free(e->pool[t]);
    arena_free(e->arena);
    arena_free(e->batch);
    free(e);
    return report;
}
