// What the benchmarks in C share: an entry of a program as a native program on given dimensions,
// processor time, medians.
//
// Times are processor time, divided among the threads, so that other work on the machine does not
// count; what still does (a shared cache, shared memory) is met by taking turns: what is compared
// runs in bursts side by side, and the ratio is taken within each round.
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "driver.h"
#include "runtime/bind.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct BenchDim {
    const char *name;
    int64_t value;
} BenchDim;

typedef struct Bench {
    Context context;
    Arena *arena;
    Native *native;
    CoreProgram *core;
    RlzRealization *realization;
    CoreArithmetic *arithmetic;
    RlzTarget target;
    RlzPlan *plan;        // null: default layouts
    CoreValue *arguments; // of the program built last
} Bench;

// Seconds of processor time of all threads so far.
static inline double bench_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// The same of the calling thread alone: waiting threads of a pool do not count.
static inline double bench_own_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int bench_ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double bench_median(double *values, uint32_t count) {
    qsort(values, count, sizeof *values, bench_ascending);
    return values[count / 2];
}

_Noreturn static inline void bench_fail(Bench *bench) {
    fputs(diags_render(&bench->context.diags, bench->arena, DIAG_PLAIN).at, stderr);
    exit(1);
}

static inline void bench_open(Bench *bench, const char *path) {
    *bench = (Bench){0};
    context_init(&bench->context);
    bench->arena = arena_new(&bench->context.heap, "bench");
    PreskCompiled compiled;
    NatOptions native = {.threads = 1};
    if (!presk_compile(&bench->context, bench->arena, path, 0, NULL, NULL, &compiled) ||
        !(bench->native = nat_new(&bench->context, bench->arena, &native)))
        bench_fail(bench);
    bench->target = (RlzTarget)nat_machine_target();
    bench->core = compiled.program->core;
    bench->realization = rlz_realization_read(&bench->context, bench->arena, STR("f32"));
    bench->arithmetic = rlz_arithmetic(bench->core, bench->arena, bench->realization, true);
}

// Programs built after this follow a plan file.
static inline void bench_plan(Bench *bench, const char *path) {
    bench->plan = rlz_plan_read(&bench->context, bench->arena, str_of(path));
    if (bench->plan)
        bench->target = rlz_plan_target(bench->plan, bench->target, false);
    if (!bench->plan || !bench->target ||
        !rlz_plan_check(bench->core, bench->plan, bench->arithmetic, bench->target))
        bench_fail(bench);
}

static inline void bench_close(Bench *bench) {
    nat_free(bench->native);
    context_free(&bench->context);
}

// An input of positive numbers of moderate size, none of them special.
static inline void bench_fill(Tensor *tensor) {
    int64_t count = shape_count(&tensor->shape);
    for (int64_t i = 0; i < count; i++)
        tensor_set(tensor, i, (double)(i * 7919 % 2001 + 100) / 700);
}

static inline RtOptions bench_options(const Bench *bench, const RtBinding *binding, Pool *pool) {
    return (RtOptions){.backend = RT_NATIVE,
                       .arithmetic = bench->arithmetic,
                       .plan = bench->plan,
                       .target = bench->target,
                       .pool = pool,
                       .native = bench->native,
                       .dims = binding->by_dim};
}

// The program of an entry whose dimensions and parameters are bound.
static inline RtProgram *bench_bound(Bench *bench, const RtBinding *binding,
                                     const RtOptions *options) {
    RtProgram *program = rt_build(bench->core, bench->arena, options, binding->id,
                                  binding->arguments, rt_bind_own(binding), 0, NULL);
    if (!program)
        bench_fail(bench);
    return program;
}

// Builds an entry whose parameters are tensors of reals. Dimensions end with a null name.
static inline RtProgram *bench_build(Bench *bench, const char *entry, const BenchDim *dims,
                                     Pool *pool) {
    RtBinding *binding = rt_bind(bench->core, bench->arena, str_of(entry));
    if (!binding)
        bench_fail(bench);
    for (; dims->name; dims++)
        if (!rt_bind_dim(binding, str_of(dims->name), dims->value, STR("the benchmark")))
            bench_fail(bench);
    if (!rt_bind_dims_done(binding))
        bench_fail(bench);
    for (uint32_t i = 0; i < binding->fn->params; i++) {
        Shape shape;
        int64_t range;
        if (!rt_bind_shape(binding, i, &shape, &range))
            bench_fail(bench);
        binding->arguments[i].tensor = tensor_new(bench->arena, F32, shape.rank, shape.extent);
        bench_fill(&binding->arguments[i].tensor);
    }
    bench->arguments = binding->arguments;
    RtOptions options = bench_options(bench, binding, pool);
    return bench_bound(bench, binding, &options);
}

#endif
