#include "support/exact_point.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { GUARD = 64, LINE = 64 }; // GUARD as in nest_run.c
static const uint32_t thread_counts[EXACT_THREADS] = {1, 2, 3, 7};

ExactPools exact_pools(void) {
    ExactPools pools = {0};
    for (uint32_t t = 1; t < EXACT_THREADS; t++)
        check_that((pools.pool[t] = pool_new(thread_counts[t])) != NULL);
    return pools;
}

void exact_pools_free(ExactPools *pools) {
    for (uint32_t t = 0; t < EXACT_THREADS; t++)
        pool_free(pools->pool[t]);
}

// ---- data ---------------------------------------------------------------------------------------

// Elements that are all NaN (of indices, the largest), from a cache line's beginning on or not:
// streamed stores need the former, and code that streams has a second body for the rest.
static Data output_data(const Data *like, bool aligned, Arena *arena) {
    Data out = {.type = like->type, .count = like->count};
    size_t size = (size_t)like->count * dtype_size(like->type);
    out.bytes = size + 2 * GUARD;
    uint8_t *at = arena_alloc(arena, out.bytes + 2 * LINE);
    at += LINE - (uintptr_t)at % LINE + (aligned ? 0 : LINE / 4);
    out.block = at;
    memset(out.block, 0xa5, out.bytes);
    out.at = out.block + GUARD;
    memset(out.at, 0xff, size);
    return out;
}

// ---- running ------------------------------------------------------------------------------------

typedef struct Launch {
    const Kernel *kernel;
    const KrnCode *code;
    NatFunction native;
    void *const *buffers; // without scratch
    atomic_bool overrun;
} Launch;

static void run_share(void *data, uint32_t worker, uint32_t workers) {
    Launch *launch = data;
    const Kernel *kernel = launch->kernel;
    size_t size = krn_scratch_size(kernel), all = size + 2 * GUARD;
    uint8_t *block = aligned_alloc(64, (all + 63) / 64 * 64);
    void **buffers = calloc(kernel->buffers.count, sizeof *buffers);
    check_that(block && buffers);
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
            atomic_store(&launch->overrun, true);
    free(buffers);
    free(block);
}

static bool inputs_guarded(const ExactPart *part) {
    for (uint32_t i = 0; i < part->nest->inputs; i++)
        if (part->nest->input[i].source == RLZ_MEMORY && !data_guarded(&part->data[i]))
            return false;
    return true;
}

static Str compare(const ExactPart *part, const Data *out, Arena *arena) {
    const Data *right = &part->output;
    int64_t at;
    if (!data_same(out, right, &at))
        return str_format(arena, "element %lld is %a, not %a", (long long)at,
                          dtype_get(out->type, out->at, at), dtype_get(right->type, right->at, at));
    return data_guarded(out) && inputs_guarded(part) ? STR("")
                                                     : STR("a guard word was overwritten");
}

// Places a part's buffers from number `next` on; the number after them.
static uint32_t place_buffers(const RlzNest *nest, const Data *inputs, const Data *out,
                              void **buffers, uint32_t next) {
    for (uint32_t i = 0; i < nest->inputs; i++)
        if (nest->input[i].source == RLZ_MEMORY)
            buffers[next++] = inputs[i].at;
    buffers[next++] = out->at;
    return next;
}

// On one number of threads, into new outputs.
static Str check_on(const ExactTruth *truth, Pool *pool, uint32_t threads, bool aligned,
                    Launch *launch, Arena *arena) {
    Data *out = arena_array(arena, Data, truth->parts);
    void **buffers = arena_array(arena, void *, launch->kernel->buffers.count);
    for (uint32_t p = 0, next = 0; p < truth->parts; p++) {
        const ExactPart *part = &truth->part[p];
        out[p] = output_data(&part->output, aligned, arena);
        next = place_buffers(part->nest, part->data, &out[p], buffers, next);
    }
    launch->buffers = buffers;
    if (pool)
        pool_run(pool, threads, run_share, launch);
    else
        run_share(launch, 0, 1);
    Str wrong = atomic_load(&launch->overrun) ? STR("scratch memory was overrun") : STR("");
    for (uint32_t p = 0; p < truth->parts && !wrong.size; p++)
        wrong = compare(&truth->part[p], &out[p], arena);
    return wrong;
}

Str exact_check(const ExactTruth *truth, const ExactPools *pools, const Kernel *kernel,
                NatFunction native, Arena *arena) {
    Launch launch = {.kernel = kernel, .native = native};
    if (!native)
        launch.code = krn_code(kernel, arena);
    for (uint32_t t = 0; t < (kernel->split_count ? EXACT_THREADS : 1u); t++) {
        Str wrong = check_on(truth, pools->pool[t], thread_counts[t], t % 2 == 0, &launch, arena);
        if (wrong.size)
            return str_format(arena, "%s on %u threads: %s",
                              native ? "native code" : "the interpreter", thread_counts[t],
                              wrong.at);
    }
    return STR("");
}

// ---- truth --------------------------------------------------------------------------------------

static void run_scalar(const RlzNest *nest, const Data *inputs, const Data *out, Arena *scratch,
                       Names *names) {
    RlzLayout layout = rlz_layout_scalar(nest);
    Kernel *kernel = krn_lower(nest, &layout, scratch, names);
    void **buffers = arena_array(scratch, void *, kernel->buffers.count);
    place_buffers(nest, inputs, out, buffers, 0);
    Launch launch = {.kernel = kernel, .code = krn_code(kernel, scratch), .buffers = buffers};
    run_share(&launch, 0, 1);
}

static void run_product_and_add(const ExactPart *part, Arena *scratch, Names *names) {
    RlzNest product = *part->nest;
    product.inputs = 2;
    product.epilogue = false;
    Data between = data_new(scratch, part->output.type, part->output.count);
    run_scalar(&product, part->data, &between, scratch, names);
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
    run_scalar(&add, (Data[]){between, part->data[2]}, &part->output, scratch, names);
}

static void make_part(ExactPart *part, const RlzNest *nest, Random *random, Arena *arena,
                      Arena *scratch, Names *names) {
    *part = (ExactPart){.nest = nest, .data = arena_array(arena, Data, nest->inputs + 1)};
    for (uint32_t i = 0; i < nest->inputs; i++) {
        const RlzOperand *operand = &nest->input[i];
        if (operand->source != RLZ_MEMORY)
            continue;
        part->data[i] = data_new(arena, operand->type, rlz_operand_span(nest, operand));
        data_fill(&part->data[i], random, MAX(operand->range, 1), nest->kind != RLZ_CONTRACTION);
    }
    Data shape = {.type = nest->output.type, .count = rlz_operand_span(nest, &nest->output)};
    part->output = output_data(&shape, true, arena);
    if (nest->epilogue)
        run_product_and_add(part, scratch, names);
    else
        run_scalar(nest, part->data, &part->output, scratch, names);
}

ExactTruth exact_truth(const RlzNest *nest, Random *random, Arena *arena, Arena *scratch,
                       Names *names) {
    ExactTruth truth = {.parts = MAX(nest->leaves, 1)};
    truth.part = arena_array(arena, ExactPart, truth.parts);
    for (uint32_t i = 0; i < truth.parts; i++)
        make_part(&truth.part[i], nest->leaves ? nest->leaf[i] : nest, random, arena, scratch,
                  names);
    return truth;
}
