// Core programs given as text and run by the reference evaluator.
#ifndef PRESK_TESTS_EVAL_RUN_H
#define PRESK_TESTS_EVAL_RUN_H

#include "core/eval.h"

typedef struct Run {
    Context *context;
    DType storage;             // of every site, parameter and input
    const char *text;          // the last function is the entry
    CoreArithmetic arithmetic; // `storage`, params and inputs are filled in from `storage`
    const char *wide;          // a let of the entry, "%3", whose site is f64; null: none
    const int64_t *dims;       // the entry's own dimensions
    uint32_t pack_rank;
    const int64_t *pack;
    CoreHyper hyper;
    uint64_t launches; // out
} Run;

// Fresh contexts for cmocka's setup and teardown.
int run_setup(void **state);
int run_teardown(void **state);

// f32, fma, sequential, fused.
Run run_new(void **state, const char *text);
// A real tensor of the run's storage type, rounded once; extents end with -1.
CoreValue run_tensor(const Run *run, const int64_t *extents, const double *values);
CoreValue run_index(const Run *run, int64_t bound, const int64_t *extents, const int *values);
#define shape_of(...) ((const int64_t[]){__VA_ARGS__, -1})
#define no_axes       ((const int64_t[]){-1})
#define reals(...)    ((const double[]){__VA_ARGS__})
#define indices(...)  ((const int[]){__VA_ARGS__})

// Reads, verifies, partitions and runs; global dimensions are unbound. An empty value after a
// diagnostic.
CoreValue run(Run *run, const CoreValue *arguments);

// The value has these extents and elements, bit for bit but for the payload of NaN.
void expect_elements(const CoreValue *value, const int64_t *extents, const double *expected);
void expect_near(const CoreValue *value, double tolerance, const double *expected);

#endif
