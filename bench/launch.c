// What a launch costs beyond its kernel: build/bench/launch [ROUNDS].
//
// A thousand launches of kernels over a few numbers, through rt_run, against bare calls of the same
// functions on the same buffers, in turn. The difference is ours: reading the launch, choosing
// where it runs, the floating-point environment. On one thread; the gate is 0.1 µs.
#include "bench.h"

enum { REPEAT = 100, ROUNDS_MAX = 1001 };
static const double gate = 1e-7;

typedef struct Call {
    NatFunction function;
    void **buffers;
    int64_t end;
} Call;

static double through_runtime(RtProgram *program) {
    double started = bench_seconds();
    for (uint32_t i = 0; i < REPEAT; i++)
        rt_run(program);
    return (bench_seconds() - started) / REPEAT;
}

static double bare(const Call *calls, uint32_t count) {
    double started = bench_seconds();
    for (uint32_t i = 0; i < REPEAT; i++)
        for (uint32_t c = 0; c < count; c++)
            calls[c].function(calls[c].buffers, 0, calls[c].end);
    return (bench_seconds() - started) / REPEAT;
}

static bool measure(Bench *bench, int64_t extent, uint32_t rounds) {
    RtProgram *program =
        bench_build(bench, "thousand", (BenchDim[]){{"N", extent}, {NULL, 0}}, NULL);
    uint32_t count = rt_launch_count(program);
    Call *calls = arena_array(bench->arena, Call, count);
    for (uint32_t i = 0; i < count; i++) {
        const RtLaunch *launch = rt_launch_at(program, i);
        calls[i] = (Call){launch->kernel->function, launch->buffers[0],
                          launch->kernel->kernel->split_count};
    }
    double whole[ROUNDS_MAX], kernels[ROUNDS_MAX], own[ROUNDS_MAX];
    through_runtime(program);
    for (uint32_t r = 0; r < rounds; r++) {
        kernels[r] = bare(calls, count) / count;
        whole[r] = through_runtime(program) / count;
        own[r] = whole[r] - kernels[r];
    }
    double overhead = bench_median(own, rounds);
    printf("%9lld %9u %12.1f %12.1f %12.1f%s\n", (long long)extent, count,
           bench_median(whole, rounds) * 1e9, bench_median(kernels, rounds) * 1e9, overhead * 1e9,
           overhead > gate ? "  above 100 ns" : "");
    return overhead <= gate;
}

int main(int count, char **argument) {
    uint32_t rounds = count > 1 ? (uint32_t)atoi(argument[1]) : 101;
    rounds = MAX(1u, MIN(rounds, (uint32_t)ROUNDS_MAX));
    Bench bench;
    bench_open(&bench, "bench/launch.psk");
    bench.arithmetic = rlz_arithmetic(bench.core, bench.arena, bench.realization, false);
    printf("launches on one thread, ns each (processor time, medians of %u interleaved rounds)\n"
           "%9s %9s %12s %12s %12s\n",
           rounds, "elements", "launches", "rt_run", "bare calls", "overhead");
    bool good = true;
    static const int64_t extents[] = {1, 16, 64, 256};
    for (uint32_t i = 0; i < COUNT_OF(extents); i++)
        good = measure(&bench, extents[i], rounds) && good;
    bench_close(&bench);
    return good ? 0 : 3;
}
