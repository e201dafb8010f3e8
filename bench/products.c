// One contestant of bench/products.py, which starts several and gives them turns:
//   products CONTESTANT ENTRY B M N K THREADS
// CONTESTANT: a plan file of bench/products.psk, `default` (its default layouts), or a library's
// name (products_peers.c). When it is ready it prints `ready`; for each byte that it reads it
// computes the product for some milliseconds and prints the seconds of one. On one thread these are
// processor time, on more the clock's.
//
// Each contestant computes on the same numbers and checks some results: ours against one fused
// multiplication and addition a term, in order, to the bit; the libraries' within a tolerance.
#include "products.h"
#include "bench.h"

#include <math.h>
#include <sched.h>
#include <unistd.h>

enum { SAMPLES = 200 };
static const double burst = 4e-3; // seconds

static void fill(float *data, int64_t count, uint32_t seed) {
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) * 0x1p-24f - 0.5f;
    }
}

static float in_order(const Product *p, int64_t b, int64_t i, int64_t j) {
    const float *x = p->x + b * p->m * p->k, *y = p->y + b * p->k * p->n;
    float sum = 0;
    for (int64_t k = 0; k < p->k; k++)
        sum = fmaf(x[p->left_turned ? k * p->m + i : i * p->k + k],
                   y[p->right_turned ? j * p->k + k : k * p->n + j], sum);
    return sum;
}

static void check(const Product *p, bool exact) {
    for (int64_t s = 0; s < SAMPLES; s++) {
        int64_t b = s % p->batch, i = s * 7919 % p->m, j = s * 104729 % p->n;
        float want = in_order(p, b, i, j), have = p->z[(b * p->m + i) * p->n + j];
        double error = fabs((double)want - (double)have);
        if (exact ? memcmp(&want, &have, sizeof want) != 0 : !(error < 1e-3)) {
            fprintf(stderr, "wrong: %.9g instead of %.9g\n", (double)have, (double)want);
            exit(1);
        }
    }
}

static double seconds(const Product *p) {
    struct timespec now;
    clock_gettime(p->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void serve(Product *p, Contestant run) {
    double started = seconds(p), one;
    run(p);
    one = seconds(p) - started;
    int64_t repeat = 1 + (int64_t)(burst / one);
    for (int64_t i = 0; i < repeat; i++)
        run(p);
    started = seconds(p);
    run(p);
    one = MIN(one, seconds(p) - started);
    repeat = 1 + (int64_t)(burst / one);
    dprintf(1, "ready\n");
    for (char byte; read(0, &byte, 1) == 1;) {
        if (one < burst)
            run(p); // what the others have displaced comes back into the caches
        started = seconds(p);
        for (int64_t i = 0; i < repeat; i++)
            run(p);
        dprintf(1, "%.9g\n", (seconds(p) - started) / (double)repeat);
    }
}

// Each thread of the pool on a processor of its own, as OMP_PROC_BIND has those of libraries.
static void bind_thread(void *data, uint32_t worker, uint32_t workers) {
    (void)workers;
    const cpu_set_t *all = data;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0, number = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, all) && number++ == (int)worker)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static RtProgram *program;

static void run_program(Product *p) {
    (void)p;
    rt_run(program);
}

static void build(Bench *bench, Product *p, const char *entry, const char *plan) {
    bench_open(bench, "bench/products.psk");
    if (strcmp(plan, "default") != 0)
        bench_plan(bench, plan);
    bool batched = !strcmp(entry, "scores") || !strcmp(entry, "values");
    BenchDim dims[] = {
        {"M", p->m}, {"N", p->n}, {"K", p->k}, {batched ? "B" : NULL, p->batch}, {NULL, 0}};
    program = bench_build(bench, entry, dims, p->pool);
    p->x = bench->arguments[0].tensor.data;
    p->y = bench->arguments[1].tensor.data;
    p->z = rt_result(program).tensor.data;
}

static void allocate(Arena *arena, Product *p) {
    int64_t x = p->batch * p->m * p->k, y = p->batch * p->k * p->n, z = p->batch * p->m * p->n;
    p->x = tensor_new(arena, F32, 1, &x).data;
    p->y = tensor_new(arena, F32, 1, &y).data;
    p->z = tensor_new(arena, F32, 1, &z).data;
}

int main(int count, char **argument) {
    if (count != 8) {
        fprintf(stderr, "usage: products CONTESTANT ENTRY B M N K THREADS\n");
        return 2;
    }
    const char *name = argument[1], *entry = argument[2];
    Product p = {.batch = atoll(argument[3]),
                 .m = atoll(argument[4]),
                 .n = atoll(argument[5]),
                 .k = atoll(argument[6]),
                 .threads = (uint32_t)atoi(argument[7])};
    p.left_turned = strcmp(entry, "tn") == 0;
    p.right_turned = strcmp(entry, "nt") == 0 || strcmp(entry, "scores") == 0;
    p.pool = pool_new(p.threads);
    bool ours = strstr(name, ".json") || strcmp(name, "default") == 0;
    Bench bench;
    Contestant run = run_program;
    Context context;
    if (ours) {
        build(&bench, &p, entry, name);
    } else {
        context_init(&context);
        allocate(arena_new(&context.heap, "operands"), &p);
    }
    fill((float *)p.x, p.batch * p.m * p.k, 1);
    fill((float *)p.y, p.batch * p.k * p.n, 2);
    if (!ours && !(run = products_peer(name, &p)))
        return 1;
    bool own_threads =
        !ours && (strstr(name, "onednn") || (p.batch == 1 && strcmp(name, "libxsmm")));
    cpu_set_t all;
    if (p.threads > 1 && !own_threads && sched_getaffinity(0, sizeof all, &all) == 0)
        pool_run(p.pool, p.threads, bind_thread, &all);
    run(&p);
    check(&p, ours);
    serve(&p, run);
    return 0;
}
