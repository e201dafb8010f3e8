// Sums in order with lanes across rows, against the same kernels with sums in trees:
// build/bench/rows [ROUNDS].
//
// Ours are bench/rows.psk in the layouts of bench/plans/rows-TARGET.json. The others are C,
// compiled for this machine: a row at a time, in lanes along it, where the compiler may add in any
// order; of softmax they take our exponential. On one thread, in turns; the gate is 1.6 times their
// time.
#include "bench.h"
#include "steps.h"

enum { ROUNDS_MAX = 1001 };
static const double gate = 1.6;

typedef void (*Rows)(int64_t rows, int64_t columns, const float *in, float *out);

static void print_rows(FILE *out, Arena *arena) {
    steps_print(out, arena, MTH_exp, F32, "one_exp");
    fputs("void f_sum(int64_t rows, int64_t columns, const float *in, float *out) {\n"
          "  for (int64_t r = 0; r < rows; r++) {\n"
          "    const float *x = in + r * columns;\n"
          "    float s = 0;\n"
          "    _Pragma(\"omp simd reduction(+:s)\")\n"
          "    for (int64_t k = 0; k < columns; k++) s += x[k];\n"
          "    out[r] = s;\n"
          "  }\n"
          "}\n"
          "void f_softmax(int64_t rows, int64_t columns, const float *in, float *out) {\n"
          "  for (int64_t r = 0; r < rows; r++) {\n"
          "    const float *x = in + r * columns;\n"
          "    float *restrict y = out + r * columns;\n"
          "    float m = -__builtin_inff(), s = 0;\n"
          "    _Pragma(\"omp simd reduction(max:m)\")\n"
          "    for (int64_t k = 0; k < columns; k++) m = x[k] > m ? x[k] : m;\n"
          "    _Pragma(\"omp simd reduction(+:s)\")\n"
          "    for (int64_t k = 0; k < columns; k++) {\n"
          "      y[k] = one_exp(x[k] - m);\n"
          "      s += y[k];\n"
          "    }\n"
          "    _Pragma(\"omp simd\")\n"
          "    for (int64_t k = 0; k < columns; k++) y[k] = y[k] / s;\n"
          "  }\n"
          "}\n",
          out);
}

static double seconds_of(Rows rows, int64_t count, int64_t columns, const float *in, float *out) {
    double started = bench_seconds();
    rows(count, columns, in, out);
    return bench_seconds() - started;
}

static double seconds_of_program(RtProgram *program) {
    double started = bench_seconds();
    rt_run(program);
    return bench_seconds() - started;
}

static bool race(Bench *bench, void *library, const char *entry, int64_t rows, int64_t columns,
                 uint32_t rounds) {
    RlzPlan *plan = bench->plan;
    BenchDim dims[] = {{"R", rows}, {"C", columns}, {NULL, 0}};
    RtProgram *planned = bench_build(bench, entry, dims, NULL);
    const float *in = bench->arguments[0].tensor.data;
    bench->plan = NULL;
    RtProgram *plain = bench_build(bench, entry, dims, NULL);
    bench->plan = plan;
    Tensor out = tensor_new(bench->arena, F32, 2, (int64_t[]){rows, columns});
    Rows tree;
    *(void **)&tree = dlsym(library, entry);
    double ours[ROUNDS_MAX], trees[ROUNDS_MAX], ratio[ROUNDS_MAX], to_plain[ROUNDS_MAX];
    seconds_of(tree, rows, columns, in, out.data);
    rt_run(planned);
    for (uint32_t r = 0; r < rounds; r++) {
        double before = seconds_of(tree, rows, columns, in, out.data);
        ours[r] = seconds_of_program(planned);
        trees[r] = (before + seconds_of(tree, rows, columns, in, out.data)) / 2;
        to_plain[r] = seconds_of_program(plain) / ours[r];
        ratio[r] = ours[r] / trees[r];
    }
    double value = bench_median(ratio, rounds);
    printf("%-10s %6lld x %-4lld %9.3f %9.3f %8.2f %8.2f%s\n", entry + 2, (long long)rows,
           (long long)columns, bench_median(trees, rounds) * 1e3, bench_median(ours, rounds) * 1e3,
           value, bench_median(to_plain, rounds), value <= gate ? "" : "  missed");
    fflush(stdout);
    return value <= gate;
}

int main(int count, char **argument) {
    uint32_t rounds = count > 1 ? (uint32_t)atoi(argument[1]) : 31;
    rounds = MAX(1u, MIN(rounds, (uint32_t)ROUNDS_MAX));
    Bench bench;
    bench_open(&bench, "bench/rows.psk");
    bench_plan(&bench, str_format(bench.arena, "bench/plans/rows-%u.json", bench.target).at);
    void *library =
        steps_compile(bench.arena, print_rows, "-fopenmp-simd -mprefer-vector-width=512");
    printf("sums in order, lanes across rows, against sums in trees, on one thread\n"
           "(processor time in ms, medians of %u interleaved rounds)\n"
           "%-10s %13s %9s %9s %8s %8s\n",
           rounds, "nest", "rows", "trees", "in order", "ratio", "default");
    bool good = race(&bench, library, "f_sum", 4096, 384, rounds);
    good = race(&bench, library, "f_softmax", 24576, 256, rounds) && good;
    bench_close(&bench);
    return good ? 0 : 3;
}
