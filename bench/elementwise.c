// Elementwise groups against copies of equal traffic, natively in the default layouts, on one and
// two threads: build/bench/elementwise [MEGABYTES of a tensor] [ROUNDS].
//
// A group that reads r tensors and writes one is held against copying (r + 1) / 2 of their bytes
// with ordinary stores, as the default layouts have them; the same group with stores past the
// caches (bench/plans/stream.json, from 256-bit vectors on) against that copy and against one whose
// stores go there too. It is held as well against its own arithmetic: the same kernel on tensors
// that lie in the first-level cache. The gate: 70 % of the ordinary copy in one of the two layouts,
// or 80 % of the arithmetic where that is the bound.
#include "copy.h"

enum { ROUNDS_MAX = 101 };
static const double copy_gate = 0.70, arithmetic_gate = 0.80;

static const struct {
    const char *entry;
    uint32_t reads; // tensors of N elements
} groups[] = {{"f_relu", 1},      {"f_exp", 1},     {"f_log", 1},     {"f_tanh", 1},
              {"f_erf", 1},       {"f_gelu", 1},    {"f_sigmoid", 1}, {"f_chain", 2},
              {"f_bias_gelu", 1}, {"f_adamw_m", 2}, {"f_adamw_v", 2}, {"f_adamw_p", 3}};

// ---- races ------------------------------------------------------------------------------------

enum { COLUMNS = 2000, CACHED = 2 * COLUMNS, REPEAT = 200 };

// In the default layout, or in the plan's, whose stores go past the caches.
static RtProgram *build_group(Bench *bench, uint32_t group, int64_t count, Pool *pool,
                              RlzPlan *plan) {
    const BenchDim flat[] = {{"N", count}, {NULL, 0}};
    const BenchDim rows[] = {{"R", count / COLUMNS}, {"C", COLUMNS}, {NULL, 0}};
    const char *entry = groups[group].entry;
    bench->plan = plan;
    return bench_build(bench, entry, strcmp(entry, "f_bias_gelu") ? flat : rows, pool);
}

// Seconds that a small program would take for `count` elements.
static double cached_seconds(RtProgram *program, double count) {
    double started = bench_own_seconds();
    for (uint32_t i = 0; i < REPEAT; i++)
        rt_run(program);
    return (bench_own_seconds() - started) / REPEAT / CACHED * count;
}

static bool race(Bench *bench, Pool *pool, uint32_t group, int64_t count, uint32_t rounds) {
    uint32_t workers = pool_workers(pool);
    RtProgram *cached = build_group(bench, group, CACHED, NULL, NULL);
    RtProgram *program = build_group(bench, group, count, pool, NULL), *streaming = program;
    if (bench->target > 128) {
        bench_plan(bench, "bench/plans/stream.json");
        streaming = build_group(bench, group, count, pool, bench->plan);
    }
    int64_t copied = count * (groups[group].reads + 1) / 2 / 16 * 16;
    Copy plain = copy_new(bench, copied, false), stream = copy_new(bench, copied, true);
    double own[ROUNDS_MAX], to_plain[ROUNDS_MAX], past_plain[ROUNDS_MAX], past_stream[ROUNDS_MAX],
        to_cached[ROUNDS_MAX];
    // The first round brings the pages.
    for (uint32_t round = 0; round <= rounds; round++) {
        uint32_t r = round ? round - 1 : 0;
        copy_seconds(pool, &stream);
        double copy = copy_seconds(pool, &plain);
        copy_seconds(pool, &stream);
        own[r] = run_seconds(program, workers);
        copy_seconds(pool, &stream);
        double past_copy = copy_seconds(pool, &stream), past = run_seconds(streaming, workers);
        to_plain[r] = copy / own[r];
        past_plain[r] = copy / past;
        past_stream[r] = past_copy / past;
        to_cached[r] = cached_seconds(cached, (double)count / workers) / own[r];
    }
    double seconds = bench_median(own, rounds), share = bench_median(to_plain, rounds);
    double arithmetic = bench_median(to_cached, rounds), past = bench_median(past_plain, rounds);
    bool good = MAX(share, past) >= copy_gate || arithmetic >= arithmetic_gate;
    printf("%-12s %7u %8.2f %8.1f %8.0f%% %12.0f%% %10.0f%% %12.0f%%%s\n", groups[group].entry + 2,
           workers, seconds * 1e3, (double)copied * 8 / seconds * 1e-9, share * 100, past * 100,
           bench_median(past_stream, rounds) * 100, arithmetic * 100, good ? "" : "  missed");
    fflush(stdout);
    return good;
}

int main(int count, char **argument) {
    int64_t megabytes = count > 1 ? atoll(argument[1]) : 40;
    uint32_t rounds = count > 2 ? (uint32_t)atoi(argument[2]) : 31;
    rounds = MAX(1u, MIN(rounds, (uint32_t)ROUNDS_MAX));
    uint32_t threads = MIN(2u, pool_default_workers());
    printf("elementwise groups over %lld MB of f32, against copies of equal traffic\n"
           "(processor time a thread, medians of %u interleaved rounds)\n"
           "%-12s %7s %8s %8s %9s %13s %11s %13s\n",
           (long long)megabytes, rounds, "group", "threads", "ms", "GB/s", "of a copy",
           "past caches:", "of theirs", "in cache");
    bool good = true;
    for (uint32_t workers = 1; workers <= threads; workers++)
        for (uint32_t g = 0; g < COUNT_OF(groups); g++) {
            Bench bench;
            bench_open(&bench, "bench/elementwise.psk");
            Pool *pool = pool_new(workers);
            good =
                race(&bench, pool, g, megabytes * 1000000 / 4 / COLUMNS * COLUMNS, rounds) && good;
            pool_free(pool);
            bench_close(&bench);
        }
    return good ? 0 : 3;
}
