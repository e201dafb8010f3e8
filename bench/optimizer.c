// A step of AdamW over ten million parameters in place, as training runs it, against copies:
// build/bench/optimizer [ROUNDS].
//
// The step reads p, g, m and v and writes p, m and v: 28 bytes a parameter are what any step has to
// move. The groups of `adamw.step` (m, v, p) together read and write 40: with a launch a leaf each
// reads its operands from memory again, with one launch of all leaves they run piece by piece. Both
// figures are held against the bandwidth of a copy, with ordinary stores and with stores past the
// caches, on one and two threads. The gate: with all leaves in one launch (where the target has
// that), 80 % of the ordinary copy for what the step has to move.
#include "copy.h"

enum { ROUNDS_MAX = 101 };
static const double gate = 0.80;
static const double least_bytes = 28;

static bool hyper_value(void *data, Name name, double *value) {
    static const struct {
        const char *name;
        double value;
    } known[] = {{"lr", 0.001}, {"beta1", 0.9},  {"beta2", 0.999},
                 {"eps", 1e-8}, {"decay", 0.01}, {"t", 3}};
    for (uint32_t i = 0; i < COUNT_OF(known); i++)
        if (str_is(name_str(data, name), known[i].name)) {
            *value = known[i].value;
            return true;
        }
    return false;
}

// Numbers as they are in training: parameters and moments of moderate size, no special ones.
static int64_t fill_tree(CoreValue *tree) {
    int64_t count = 0;
    for (uint32_t i = 0; i < tree->count; i++) {
        bench_fill(&tree->parts[i].tensor);
        count += shape_count(&tree->parts[i].tensor.shape);
    }
    return count;
}

static RtProgram *build_step(Bench *bench, Pool *pool, int64_t *parameters) {
    static const uint32_t update[] = {0, 2, 3};
    RtBinding *binding = rt_bind(bench->core, bench->arena, STR("adamw.step"));
    if (!binding || !rt_bind_dims_done(binding))
        bench_fail(bench);
    for (uint32_t i = 0; i < binding->fn->params; i++) {
        if (!rt_bind_zeros(binding, i, F32, F32))
            bench_fail(bench);
        *parameters = fill_tree(&binding->arguments[i]);
    }
    RtOptions options = bench_options(bench, binding, pool);
    options.hyper = hyper_value;
    options.hyper_data = bench->context.names;
    options.update = update;
    return bench_bound(bench, binding, &options);
}

static bool race(Bench *bench, Pool *pool, bool gated, uint32_t rounds) {
    uint32_t workers = pool_workers(pool);
    int64_t parameters = 0;
    RtProgram *program = build_step(bench, pool, &parameters);
    int64_t copied = (int64_t)(least_bytes * (double)parameters / 8) / 16 * 16;
    Copy plain = copy_new(bench, copied, false), stream = copy_new(bench, copied, true);
    double own[ROUNDS_MAX], to_plain[ROUNDS_MAX], to_stream[ROUNDS_MAX];
    // The first round brings the pages.
    for (uint32_t round = 0; round <= rounds; round++) {
        uint32_t r = round ? round - 1 : 0;
        copy_seconds(pool, &stream);
        double ordinary = copy_seconds(pool, &plain);
        copy_seconds(pool, &stream);
        own[r] = run_seconds(program, workers);
        copy_seconds(pool, &stream);
        double streamed = copy_seconds(pool, &stream), copy = (double)copied * 8;
        double rate = least_bytes * (double)parameters / own[r];
        to_plain[r] = rate / (copy / ordinary);
        to_stream[r] = rate / (copy / streamed);
    }
    double seconds = bench_median(own, rounds), share = bench_median(to_plain, rounds);
    double past = bench_median(to_stream, rounds);
    double moved = rt_summary(program).bytes / (double)parameters / least_bytes;
    printf("%-6s %8u %8u %8.2f %8.1f %10.0f%% %9.0f%% %14.0f%%%s\n", bench->plan ? "one" : "each",
           workers, rt_launch_count(program), seconds * 1e3,
           least_bytes * (double)parameters / seconds * 1e-9, share * 100, past * 100,
           share * moved * 100, gated && share < gate ? "  missed" : "");
    fflush(stdout);
    return !gated || share >= gate;
}

int main(int count, char **argument) {
    uint32_t rounds = count > 1 ? (uint32_t)atoi(argument[1]) : 31;
    rounds = MAX(1u, MIN(rounds, (uint32_t)ROUNDS_MAX));
    uint32_t threads = MIN(2u, pool_default_workers());
    printf("a step of AdamW in place over ten million f32 parameters in 20 leaves, against copies\n"
           "(processor time a thread, medians of %u interleaved rounds)\n"
           "%-6s %8s %8s %8s %8s %11s %10s %15s\n",
           rounds, "leaves", "threads", "launches", "ms", "GB/s", "of a copy", "streamed",
           "by its groups");
    bool good = true;
    for (uint32_t workers = 1; workers <= threads; workers++)
        for (uint32_t one = 0; one < 2; one++) {
            Bench bench;
            bench_open(&bench, "bench/optimizer.psk");
            Pool *pool = pool_new(workers);
            if (one && bench.target > 128)
                bench_plan(&bench, "tests/plan/leaves.json");
            if (!one || bench.plan)
                good = race(&bench, pool, one || bench.target == 128, rounds) && good;
            pool_free(pool);
            bench_close(&bench);
        }
    return good ? 0 : 3;
}
