// How long native compilation takes for each kind of kernel: build/bench/native_compile.
// One kernel at a time on one thread, then a batch of 40 kernels like those of a small model's
// forward pass, cold and from the cache.
#include "base/file.h"
#include "native/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 9, BATCH = 40 };

typedef struct Bench {
    Context context;
    Arena *arena;
    char folder[64];
    int64_t serial; // makes every kernel's text new
} Bench;

typedef struct Tile {
    uint32_t rows, columns, unroll, lanes; // columns in vectors
} Tile;

// out[4096 + s, 1536] = x · y, in tiles of rows × columns·lanes with the sum unrolled.
static Kernel *product(Bench *bench, Tile t) {
    enum { N = 1536 };
    const int64_t depth = 384 + 4 * bench->serial++;
    Kernel *kernel = krn_new(bench->arena, bench->context.names, "dot");
    KrnBuilder b = krn_builder(kernel, bench->context.names);
    int64_t m = 4096 / t.rows * t.rows;
    uint32_t x = krn_buffer(&b, "x", F32, m * depth, 0, KRN_IN);
    uint32_t y = krn_buffer(&b, "y", F32, depth * N, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", F32, m * N, 0, KRN_OUT);
    KrnValue sums[64], ys[8];
    KrnValue zero = krn_const_float(&b, krn_type(KRN_F32, t.lanes), 0);
    KrnValue i = krn_loop(&b, 0, m, t.rows, KRN_SPLIT, 0, NULL, NULL);
    KrnValue j = krn_loop(&b, 0, N, t.columns * t.lanes, KRN_WHOLE, 0, NULL, NULL);
    for (uint32_t s = 0; s < t.rows * t.columns; s++)
        sums[s] = zero;
    KrnValue k = krn_loop(&b, 0, depth, t.unroll, KRN_WHOLE, t.rows * t.columns, sums, sums);
    for (uint32_t u = 0; u < t.unroll; u++) {
        for (uint32_t c = 0; c < t.columns; c++) {
            KrnIndex at = krn_index(y, u * N + c * t.lanes);
            krn_index_add(&at, N, k);
            krn_index_add(&at, 1, j);
            ys[c] = krn_load(&b, &at, t.lanes, 1);
        }
        for (uint32_t r = 0; r < t.rows; r++) {
            KrnIndex at = krn_index(x, r * depth + u);
            krn_index_add(&at, depth, i);
            krn_index_add(&at, 1, k);
            KrnValue one = krn_load(&b, &at, 1, 1);
            one = t.lanes == 1 ? one : krn_splat(&b, one, t.lanes);
            for (uint32_t c = 0; c < t.columns; c++) {
                KrnValue *sum = &sums[r * t.columns + c];
                *sum = krn_op3(&b, KRN_FMA, one, ys[c], *sum);
            }
        }
    }
    krn_end(&b, t.rows * t.columns, sums, sums);
    for (uint32_t r = 0; r < t.rows; r++)
        for (uint32_t c = 0; c < t.columns; c++) {
            KrnIndex at = krn_index(out, r * N + c * t.lanes);
            krn_index_add(&at, N, i);
            krn_index_add(&at, 1, j);
            krn_store(&b, &at, 1, sums[r * t.columns + c], false);
        }
    krn_end(&b, 0, NULL, NULL);
    krn_end(&b, 0, NULL, NULL);
    return kernel;
}

// out = a chain of operations over x and y, as a fusion group of an activation is.
static Kernel *group(Bench *bench, Tile t) {
    Kernel *kernel = krn_new(bench->arena, bench->context.names, "group");
    KrnBuilder b = krn_builder(kernel, bench->context.names);
    int64_t n = (65536 + bench->serial++) * t.lanes;
    uint32_t x = krn_buffer(&b, "x", F32, n, 0, KRN_IN), y = krn_buffer(&b, "y", F32, n, 0, KRN_IN);
    uint32_t out = krn_buffer(&b, "out", F32, n, 0, KRN_OUT);
    KrnValue i = krn_loop(&b, 0, n, t.lanes, KRN_SPLIT, 0, NULL, NULL);
    KrnIndex from[2] = {krn_index(x, 0), krn_index(y, 0)}, to = krn_index(out, 0);
    krn_index_add(&from[0], 1, i);
    krn_index_add(&from[1], 1, i);
    krn_index_add(&to, 1, i);
    KrnValue v = krn_load(&b, &from[0], t.lanes, 1), w = krn_load(&b, &from[1], t.lanes, 1);
    KrnType type = krn_type(KRN_F32, t.lanes);
    for (uint32_t u = 0; u < t.unroll; u++) {
        KrnValue c = krn_const_float(&b, type, 1.0 / (1 << u % 20) + 1);
        KrnValue p = krn_op3(&b, KRN_FMA, v, w, c);
        KrnValue less = krn_op2(&b, KRN_LT, p, c);
        v = krn_op3(&b, KRN_SELECT, less, krn_op2(&b, KRN_MUL, p, v), krn_op2(&b, KRN_ADD, p, w));
    }
    krn_store(&b, &to, 1, v, false);
    krn_end(&b, 0, NULL, NULL);
    return kernel;
}

static const struct {
    const char *name;
    Kernel *(*make)(Bench *bench, Tile tile);
    Tile tile;
} kinds[] = {
    {"product, scalar", product, {1, 1, 1, 1}},
    {"product, tile 4x16", product, {4, 1, 1, 16}},
    {"product, tile 8x32, unrolled by 4", product, {8, 2, 4, 16}},
    {"product, tile 6x64, unrolled by 4", product, {6, 4, 4, 16}},
    {"group of 5 operations, 16 lanes", group, {1, 1, 1, 16}},
    {"group of 80 operations, 16 lanes", group, {1, 1, 16, 16}},
    {"group of 80 operations, scalar", group, {1, 1, 16, 1}},
};

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static Native *open_native(Bench *bench, uint32_t threads, bool no_cache) {
    NatOptions options = {.cache_folder = bench->folder, .no_cache = no_cache, .threads = threads};
    return nat_new(&bench->context, bench->arena, &options);
}

static void one_by_one(Bench *bench) {
    Native *native = open_native(bench, 1, true);
    double seconds[ROUNDS];
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        Kernel *kernel = NULL;
        for (int r = -1; r < ROUNDS; r++) { // the first round warms up
            kernel = kinds[k].make(bench, kinds[k].tile);
            NatFunction code;
            double start = cpu_seconds();
            if (!nat_compile(native, 1, &kernel, &code))
                bug("a kernel does not compile");
            if (r >= 0)
                seconds[r] = cpu_seconds() - start;
        }
        qsort(seconds, ROUNDS, sizeof *seconds, by_value);
        printf("%-36s %5u instructions %7.2f ms\n", kinds[k].name, kernel->insts.count,
               1e3 * seconds[ROUNDS / 2]);
    }
    nat_free(native);
}

static void batches(Bench *bench) {
    Kernel *kernels[BATCH];
    NatFunction code[BATCH];
    for (int i = 0; i < BATCH; i++)
        kernels[i] = kinds[i % COUNT_OF(kinds)].make(bench, kinds[i % COUNT_OF(kinds)].tile);
    for (int r = 0; r < 3; r++) {
        Native *native = open_native(bench, r == 0 ? 2 : 1, false);
        double start = cpu_seconds();
        if (!nat_compile(native, BATCH, kernels, code))
            bug("a kernel does not compile");
        double seconds = cpu_seconds() - start;
        NatStatistics s = nat_statistics(native);
        printf("%d kernels, %u compiled, %u loaded: %7.2f ms\n", BATCH, s.compiled, s.loaded,
               1e3 * seconds);
        nat_free(native);
    }
}

int main(void) {
    Bench bench = {.folder = "/tmp/presk-bench-XXXXXX"};
    context_init(&bench.context);
    bench.arena = arena_new(&bench.context.heap, "bench");
    if (!mkdtemp(bench.folder))
        return 1;
    batches(&bench);
    one_by_one(&bench);
    Str command = str_format(bench.arena, "rm -rf %s", bench.folder);
    if (system(command.at) != 0)
        return 1;
    context_free(&bench.context);
    return 0;
}
