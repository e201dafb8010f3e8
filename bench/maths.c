// Measures the elementwise functions: the largest error in units in the last place.
//   maths [STRIDE]      prints a Markdown table; STRIDE 1 (the default) takes every float
// F32: all inputs against our F64 program, whose error is some 2^-29 of an F32 ulp; where the
// difference is the largest seen so far, MPFR decides. F64: random inputs
// over all exponents and over the range where the function varies, against MPFR. The programs run
// as C that is printed from their steps and compiled with all optimizations, so this also tests
// that compiled steps give the bits of mth_run.
#include "base/file.h"
#include "base/pool.h"
#include "maths_truth.h"
#include "steps.h"

// ---- programs as C --------------------------------------------------------------------------

static void print_function(FILE *out, Arena *arena, MthFunction function, DType type) {
    const char *real = type == F32 ? "float" : "double";
    Str name = str_format(arena, "%s_%s", mth_function_text(function), dtype_text(type));
    steps_print(out, arena, function, type, str_format(arena, "one_%s", name.at).at);
    fprintf(out,
            "void %s(unsigned n, const %s *restrict in, %s *restrict out) {\n"
            "  for (unsigned e = 0; e < n; e++)\n    out[e] = one_%s(in[e]);\n}\n",
            name.at, real, real, name.at);
}

// What measure32 does with most blocks, vectorised: the largest error in ulp against `truth` among
// arguments up to `limit`, and the number of NaN and infinities where there should be none, or the
// reverse.
static const char *const block_error =
    "double block_error(unsigned n, const float *x, const float *value, const double *truth,\n"
    "                   double limit, unsigned *wrong) {\n"
    "  double largest = 0; unsigned count = 0;\n"
    "  for (unsigned e = 0; e < n; e++) {\n"
    "    double v = value[e], t = truth[e];\n"
    "    union { double f; int64_t i; } u = {t};\n"
    "    int64_t i = (u.i & 0x7ff0000000000000) - (23ll << 52), least = (1023ll - 149) << 52;\n"
    "    u.i = i > least ? i : least;\n"
    "    int finite = __builtin_fabs(v) < __builtin_inf() && __builtin_fabs(t) < __builtin_inf();\n"
    "    int alike = (v != v && t != t) || v == (double)(float)t;\n"
    "    double error = __builtin_fabs(v - t) / u.f;\n"
    "    error = finite && __builtin_fabs((double)x[e]) <= limit ? error : 0;\n"
    "    largest = error > largest ? error : largest;\n"
    "    count += !(finite | alike);\n"
    "  }\n"
    "  *wrong = count;\n"
    "  return largest;\n"
    "}\n";

static void print_all(FILE *out, Arena *arena) {
    fputs(block_error, out);
    for (uint32_t i = 0; i < COUNT_OF(truth_cases); i++) {
        print_function(out, arena, truth_cases[i].function, F32);
        print_function(out, arena, truth_cases[i].function, F64);
    }
}

typedef void (*Run32)(unsigned, const float *, float *);
typedef void (*Run64)(unsigned, const double *, double *);
typedef double (*BlockError)(unsigned, const float *, const float *, const double *, double,
                             unsigned *);

// ---- errors ---------------------------------------------------------------------------------

enum { BLOCK = 4096 };

typedef struct Job {
    const TruthCase *c;
    Run32 run32;
    Run64 run64;
    BlockError block_error;
    uint64_t stride;
    struct {
        double error, at;
        uint64_t wrong; // NaN and infinities where none belongs, and the reverse
    } worst[64];
} Job;

static double ulp32(double truth) {
    int exponent;
    frexp(truth, &exponent);
    return ldexp(1, MAX(exponent - 24, -149));
}

static void measure32(void *data, uint32_t worker, uint32_t workers) {
    Job *job = data;
    float in[BLOCK], out[BLOCK];
    double wide[BLOCK], truth[BLOCK];
    uint64_t count = (((uint64_t)1 << 32) + job->stride - 1) / job->stride;
    for (uint64_t at = (uint64_t)worker * BLOCK; at < count; at += (uint64_t)workers * BLOCK) {
        uint32_t n = (uint32_t)MIN((uint64_t)BLOCK, count - at);
        for (uint32_t e = 0; e < n; e++) {
            uint32_t pattern = (uint32_t)((at + e) * job->stride);
            memcpy(&in[e], &pattern, sizeof pattern);
            wide[e] = (double)in[e];
        }
        job->run32(n, in, out);
        job->run64(n, wide, truth);
        bool periodic = job->c->function == MTH_sin || job->c->function == MTH_cos;
        unsigned wrong;
        double limit = periodic ? 0x1p20 : INFINITY, *worst = &job->worst[worker].error;
        double error = job->block_error(n, in, out, truth, limit, &wrong);
        job->worst[worker].wrong += wrong;
        for (uint32_t e = 0; error > *worst && e < n; e++) {
            if (!(fabs(wide[e]) <= limit) || !isfinite(out[e]) || !isfinite(truth[e]) ||
                fabs((double)out[e] - truth[e]) / ulp32(truth[e]) <= *worst)
                continue;
            double exact = truth_error(job->c, wide[e], (double)out[e], F32);
            if (exact > *worst) {
                *worst = exact;
                job->worst[worker].at = wide[e];
            }
        }
    }
}

static uint64_t next_random(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15u;
    return hash_bytes(state, sizeof *state, 1);
}

static void measure64(void *data, uint32_t worker, uint32_t workers) {
    Job *job = data;
    double in[BLOCK], out[BLOCK];
    uint64_t state = worker, count = (uint64_t)1000000 / job->stride / workers;
    for (uint64_t at = 0; at < count; at += BLOCK) {
        for (uint32_t e = 0; e < BLOCK; e++) {
            uint64_t pattern = next_random(&state);
            double share = (double)(pattern >> 11) * 0x1p-53;
            in[e] = job->c->low + share * (job->c->high - job->c->low);
            if (e % 4 == 1) // every exponent
                memcpy(&in[e], &pattern, sizeof pattern);
            if (e % 4 == 2) // small arguments
                in[e] = ldexp(share * 2 - 1, (int)(pattern % 12) - 8);
        }
        job->run64(BLOCK, in, out);
        bool periodic = job->c->function == MTH_sin || job->c->function == MTH_cos;
        for (uint32_t e = 0; e < BLOCK; e++) {
            if (!isfinite(in[e]) || (periodic && fabs(in[e]) > 1048576) || isnan(out[e]))
                continue;
            if (isinf(out[e]))
                continue;
            double error = truth_error(job->c, in[e], out[e], F64);
            if (error > job->worst[worker].error) {
                job->worst[worker].error = error;
                job->worst[worker].at = in[e];
            }
        }
    }
}

static double largest(const Job *job, double *at) {
    double error = 0;
    for (uint32_t i = 0; i < COUNT_OF(job->worst); i++) {
        if (job->worst[i].wrong)
            fprintf(stderr, "%s: %llu wrong special values\n", mth_function_text(job->c->function),
                    (unsigned long long)job->worst[i].wrong);
        if (job->worst[i].error > error) {
            error = job->worst[i].error;
            *at = job->worst[i].at;
        }
    }
    return error;
}

// Compiled steps and the interpreter agree bit for bit.
static void compare_interpreter(Arena *arena, const Job *job) {
    MthProgram program = mth_program(arena, job->c->function, 0, F32);
    float in[BLOCK], out[BLOCK];
    double wide[BLOCK], value[BLOCK];
    uint64_t state = 7;
    for (uint32_t e = 0; e < BLOCK; e++) {
        uint32_t pattern = (uint32_t)next_random(&state);
        memcpy(&in[e], &pattern, sizeof pattern);
        wide[e] = (double)in[e];
    }
    job->run32(BLOCK, in, out);
    const double *const args[] = {wide};
    mth_run(&program, F32, BLOCK, args, value);
    for (uint32_t e = 0; e < BLOCK; e++)
        if (!(isnan(out[e]) && isnan(value[e])) &&
            ((double)out[e] != value[e] || !signbit(out[e]) != !signbit(value[e])))
            bug("%s(%a): compiled %a, interpreted %a", mth_function_text(job->c->function), wide[e],
                (double)out[e], value[e]);
}

int main(int argc, char **argv) {
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "bench");
    uint64_t stride = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const char *only = argc > 2 ? argv[2] : NULL;
    void *library = steps_compile(arena, print_all, "");
    Pool *pool = pool_new(pool_default_workers());
    printf("| function | steps F32 | F32 error | at | steps F64 | F64 error | at |\n"
           "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < COUNT_OF(truth_cases); i++) {
        const char *name = mth_function_text(truth_cases[i].function);
        if (only && strcmp(only, name) != 0)
            continue;
        Job job = {.c = &truth_cases[i], .stride = MAX(stride, (uint64_t)1)};
        *(void **)&job.run32 = dlsym(library, str_format(arena, "%s_f32", name).at);
        *(void **)&job.run64 = dlsym(library, str_format(arena, "%s_f64", name).at);
        *(void **)&job.block_error = dlsym(library, "block_error");
        compare_interpreter(arena, &job);
        double at32 = 0, at64 = 0;
        pool_run(pool, pool_workers(pool), measure32, &job);
        double error32 = largest(&job, &at32);
        memset(job.worst, 0, sizeof job.worst);
        pool_run(pool, pool_workers(pool), measure64, &job);
        double error64 = largest(&job, &at64);
        printf("| %s | %u | %.4f | %.9g | %u | %.4f | %.17g |\n", name,
               mth_program(arena, truth_cases[i].function, 0, F32).count, error32, at32,
               mth_program(arena, truth_cases[i].function, 0, F64).count, error64, at64);
        fflush(stdout);
    }
    pool_free(pool);
    heap_free(&heap);
    return 0;
}
