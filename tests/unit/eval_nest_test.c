// Nests in the reference evaluator: orders of sums, roundings, NaN, infinities and empty axes, and
// programs that have gone wrong in other compilers. Expected values are exact arithmetic
// (support/eval_expected.py) or small numbers worked out by hand.
#include "support/eval_expected.h"
#include "support/eval_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const double inf = INFINITY, nan_ = NAN;

// ---- products -----------------------------------------------------------------------------------

static const char *const product = "fn f(%0 : ℝ[3, 7], %1 : ℝ[7, 5]) -> ℝ[3, 5] {\n"
                                   "  %2 : ℝ[3, 5] = dot %0 %1\n  return %2\n}\n";

static void expect_product(Run r, const double *a, const double *b, const double *expected) {
    CoreValue in[] = {run_tensor(&r, shape_of(3, 7), a), run_tensor(&r, shape_of(7, 5), b)};
    CoreValue out = run(&r, in);
    expect_elements(&out, shape_of(3, 5), expected);
    assert_int_equal(r.launches, 1);
}

static void products_by_fma(void **state) {
    Run r = run_new(state, product);
    expect_product(r, product_a, product_b, product_fma_f32);
    r.storage = F64;
    expect_product(r, product_a, product_b, product_fma_f64);
    r.storage = BF16;
    expect_product(r, product_a_bf16, product_b_bf16, product_bf16);
}

static void products_of_two_roundings(void **state) {
    Run r = run_new(state, product);
    r.arithmetic.multiply_add = true;
    expect_product(r, product_a, product_b, product_mul_add_f32);
}

static void products_with_a_declared_accumulation(void **state) {
    Run r = run_new(state, product);
    r.arithmetic.has_accumulate = true;
    r.arithmetic.accumulate = F64;
    expect_product(r, product_a, product_b, product_in_f64);
    r.arithmetic.accumulate = BF16;
    r.storage = BF16;
    expect_product(r, product_a_bf16, product_b_bf16, product_in_bf16);
}

// The same terms in the same order, whatever the order of axes: ein, transposed operands.
static void products_as_ein(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[3, 7], %1 : ℝ[7, 5]) -> ℝ[5, 3] {\n"
                           "  %2 : ℝ[7, 3] = permute %0 [1, 0]\n"
                           "  %3 : ℝ[5, 3] = ein %2 %1 [ab, ac -> cb]\n  return %3\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(3, 7), product_a),
                      run_tensor(&r, shape_of(7, 5), product_b)};
    CoreValue out = run(&r, in);
    double expected[15];
    for (int i = 0; i < 15; i++)
        expected[i] = product_fma_f32[i % 3 * 5 + i / 3];
    expect_elements(&out, shape_of(5, 3), expected);
    assert_int_equal(r.launches, 1); // the permute is a view of its operand
}

// Two summed axes: the first in operand 0 is the outer one. With terms 2^24, 1, 1, −2^24 in f32
// the order shows: here it is operand 0's.
static void order_of_summed_axes(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[2, 2], %1 : ℝ[2, 2]) -> ℝ {\n"
                           "  %2 : ℝ = ein %0 %1 [ab, ba -> ]\n  return %2\n}\n");
    CoreValue ones = run_tensor(&r, shape_of(2, 2), reals(1, 1, 1, 1));
    CoreValue terms = run_tensor(&r, shape_of(2, 2), reals(0x1p24, 1, -0x1p24, 1));
    CoreValue out = run(&r, (CoreValue[]){terms, ones});
    expect_elements(&out, no_axes, reals(1)); // ((2^24 + 1) − 2^24) + 1, 2^24 + 1 = 2^24
    out = run(&r, (CoreValue[]){ones, terms});
    expect_elements(&out, no_axes, reals(2)); // ((2^24 − 2^24) + 1) + 1
}

// B04: a window of 25, whose length is a multiple of no block.
static void window_of_25(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[2, 25], %1 : ℝ[25]) -> ℝ[2] {\n"
                           "  %2 : ℝ[2] = dot %0 %1\n  %3 : ℝ = scalar 25\n"
                           "  %4 : ℝ[2] = div %2 %3\n  return %4\n}\n");
    double x[50], ones[25];
    for (int y = 0; y < 2; y++)
        for (int k = 0; k < 25; k++) {
            x[y * 25 + k] = 2 * (7 + k % 5 - 2) + 5 * (y + k / 5 - 2);
            ones[k] = 1;
        }
    CoreValue in[] = {run_tensor(&r, shape_of(2, 25), x), run_tensor(&r, shape_of(25), ones)};
    CoreValue out = run(&r, in);
    expect_elements(&out, shape_of(2), reals(14, 19)); // 2·7 + 5·y
}

// B09: an outer product, and its derivative, which has one summed axis.
static void outer_product(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[3], %1 : ℝ[4]) -> ℝ[4] {\n"
                           "  %2 : ℝ[3, 4] = ein %0 %1 [a, b -> ab]\n"
                           "  %3 : ℝ[4] = ein %0 %2 [a, ab -> b]\n  return %3\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(3), reals(1, 1, 1)),
                      run_tensor(&r, shape_of(4), reals(1, 1, 1, 1))};
    CoreValue out = run(&r, in);
    expect_elements(&out, shape_of(4), reals(3, 3, 3, 3));
}

// B10: nothing summed, and nothing to sum into.
static void empty_products(void **state) {
    Run r = run_new(state, "fn f{I, K, J}(%0 : ℝ[I, K], %1 : ℝ[K, J], %2 : ℝ[J]) -> ℝ[I, J] {\n"
                           "  %3 : ℝ[I, J] = dot %0 %1\n  %4 : ℝ[I, J] = add %3 %2\n"
                           "  return %4\n}\n");
    CoreValue c = run_tensor(&r, shape_of(3), reals(5, 6, 7));
    r.dims = (const int64_t[]){2, 0, 3};
    CoreValue out = run(&r, (CoreValue[]){run_tensor(&r, shape_of(2, 0), NULL),
                                          run_tensor(&r, shape_of(0, 3), NULL), c});
    expect_elements(&out, shape_of(2, 3), reals(5, 6, 7, 5, 6, 7));
    r.dims = (const int64_t[]){0, 2, 3};
    out = run(&r, (CoreValue[]){run_tensor(&r, shape_of(0, 2), NULL),
                                run_tensor(&r, shape_of(2, 3), reals(1, 2, 3, 4, 5, 6)), c});
    expect_elements(&out, shape_of(0, 3), NULL);
    r.dims = (const int64_t[]){2, 1, 0};
    out = run(&r, (CoreValue[]){run_tensor(&r, shape_of(2, 1), reals(1, 2)),
                                run_tensor(&r, shape_of(1, 0), NULL),
                                run_tensor(&r, shape_of(0), NULL)});
    expect_elements(&out, shape_of(2, 0), NULL);
}

// ---- reductions ---------------------------------------------------------------------------------

static void expect_sum(Run r, int64_t count, const double *x, double sum, double mean) {
    r.text = "fn f{N}(%0 : ℝ[N]) -> (ℝ, ℝ) {\n  %1 : ℝ = sum %0 over 0\n"
             "  %2 : ℝ = mean %0 over 0\n  %3 : (ℝ, ℝ) = tuple %1 %2\n  return %3\n}\n";
    r.dims = &count;
    CoreValue in = run_tensor(&r, shape_of(count), x);
    CoreValue out = run(&r, &in);
    expect_elements(&out.parts[0], no_axes, &sum);
    expect_elements(&out.parts[1], no_axes, &mean);
}

static void sums(void **state) {
    Run r = run_new(state, NULL);
    expect_sum(r, 53, sum_x, *sum_sequential, *mean_sequential);
    expect_sum(r, 0, NULL, 0, nan_);
    expect_sum(r, 1, reals(-0.0), 0, 0); // from +0
    expect_sum(r, 2, reals(inf, -inf), nan_, nan_);
    r.arithmetic.reduce = CORE_REDUCE_STRIPES16;
    expect_sum(r, 53, sum_x, *sum_stripes, *mean_stripes);
    expect_sum(r, 0, NULL, 0, nan_);
    r.arithmetic.reduce = CORE_REDUCE_SEQUENTIAL;
    r.arithmetic.has_accumulate = true;
    r.arithmetic.accumulate = F64;
    expect_sum(r, 53, sum_x, *sum_in_f64, mth_round(F32, *sum_in_f64 / 53));
}

// B36: 1, 1e8, −1e8, …: the fixed order decides the value.
static void order_of_a_sum(void **state) {
    double x[1000];
    for (int i = 0; i < 999; i++)
        x[i] = i % 3 == 0 ? 1 : i % 3 == 1 ? 1e8 : -1e8;
    x[999] = 1;
    Run r = run_new(state, NULL);
    expect_sum(r, 1000, x, *order_sequential, mth_round(F32, *order_sequential / 1000));
    r.arithmetic.reduce = CORE_REDUCE_STRIPES16;
    expect_sum(r, 1000, x, *order_stripes, mth_round(F32, *order_stripes / 1000));
}

static void axes_of_reductions(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[2, 3, 2]) -> (ℝ[3], ℝ[2, 1, 2], ℝ[2, 3], ℝ) {\n"
                           "  %1 : ℝ[3] = sum %0 over 0 2\n"
                           "  %2 : ℝ[2, 1, 2] = reduce_max %0 over 1 keep\n"
                           "  %3 : ℝ[2, 3] = reduce_min %0 over 2\n"
                           "  %4 : ℝ = mean %0 over 0 1 2\n"
                           "  %5 : (ℝ[3], ℝ[2, 1, 2], ℝ[2, 3], ℝ) = tuple %1 %2 %3 %4\n"
                           "  return %5\n}\n");
    CoreValue in = run_tensor(&r, shape_of(2, 3, 2), reals(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    CoreValue out = run(&r, &in);
    expect_elements(&out.parts[0], shape_of(3), reals(18, 26, 34));
    expect_elements(&out.parts[1], shape_of(2, 1, 2), reals(5, 6, 11, 12));
    expect_elements(&out.parts[2], shape_of(2, 3), reals(1, 3, 5, 7, 9, 11));
    expect_elements(&out.parts[3], no_axes, reals(6.5));
}

// B16, and the policies for empty axes and for argmax.
static void extremes(void **state) {
    Run r = run_new(state, "fn f{N}(%0 : ℝ[2, N]) -> (ℝ[2], ℝ[2], idx[N][2]) {\n"
                           "  %1 : ℝ[2] = reduce_max %0 over 1\n"
                           "  %2 : ℝ[2] = reduce_min %0 over 1\n"
                           "  %3 : idx[N][2] = argmax %0 over 1\n"
                           "  %4 : (ℝ[2], ℝ[2], idx[N][2]) = tuple %1 %2 %3\n  return %4\n}\n");
    r.dims = (const int64_t[]){4};
    CoreValue in = run_tensor(&r, shape_of(2, 4), reals(nan_, 1, 3, 2, -1, 7, -2, 7));
    CoreValue out = run(&r, &in);
    expect_elements(&out.parts[0], shape_of(2), reals(nan_, 7));
    expect_elements(&out.parts[1], shape_of(2), reals(nan_, -2));
    expect_elements(&out.parts[2], shape_of(2), reals(0, 1)); // the first maximum; a NaN is one
    in = run_tensor(&r, shape_of(2, 4), reals(5, nan_, nan_, 9, -inf, -inf, -inf, -inf));
    out = run(&r, &in);
    expect_elements(&out.parts[0], shape_of(2), reals(nan_, -inf));
    expect_elements(&out.parts[2], shape_of(2), reals(1, 0));
    r.dims = (const int64_t[]){0};
    in = run_tensor(&r, shape_of(2, 0), NULL);
    out = run(&r, &in);
    expect_elements(&out.parts[0], shape_of(2), reals(-inf, -inf));
    expect_elements(&out.parts[1], shape_of(2), reals(inf, inf));
}

// ---- rows ---------------------------------------------------------------------------------------

// B18: rows of −inf scores and rows without an allowed position, among normal ones.
static void softmax_of_refused_rows(void **state) {
    Run r = run_new(state,
                    "fn f(%0 : ℝ[3, 3], %1 : idx[2][3, 3], %2 : ℝ[3, 3]) -> (ℝ[3, 3], ℝ[3, 3]) {\n"
                    "  %3 : ℝ[3, 3] = softmax %0 %1 over 1\n  %4 : ℝ[3, 3] = softmax %2 over 1\n"
                    "  %5 : (ℝ[3, 3], ℝ[3, 3]) = tuple %3 %4\n  return %5\n}\n");
    CoreValue in[] = {
        run_tensor(&r, shape_of(3, 3), reals(1, 2, 3, 4, nan_, 6, 7, 8, 9)),
        run_index(&r, 2, shape_of(3, 3), indices(1, 1, 0, 0, 0, 0, 1, 0, 1)),
        run_tensor(&r, shape_of(3, 3), reals(1, 2, -inf, -inf, -inf, -inf, 7, -inf, 9))};
    CoreValue out = run(&r, in);
    int64_t where;
    assert_true(tensor_same_bits(&out.parts[0].tensor, &out.parts[1].tensor, &where));
    expect_near(&out.parts[0], 1e-7,
                reals(0.2689414213699951, 0.7310585786300049, 0, 0, 0, 0, 0.11920292202211755, 0,
                      0.8807970779778823));
    for (int i = 2; i < 6; i++)
        assert_true(tensor_get(&out.parts[0].tensor, i) == 0);
}

// The mask is broadcast; the axis need not be the last.
static void softmax_over_another_axis(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[2, 3], %1 : idx[2][2, 1]) -> ℝ[2, 3] {\n"
                           "  %2 : ℝ[2, 3] = softmax %0 %1 over 0\n  return %2\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(2, 3), reals(1, 2, 3, 4, 5, 6)),
                      run_index(&r, 2, shape_of(2, 1), indices(1, 0))};
    CoreValue out = run(&r, in);
    expect_elements(&out, shape_of(2, 3), reals(1, 1, 1, 0, 0, 0));
    in[1] = run_index(&r, 2, shape_of(2, 1), indices(1, 1));
    out = run(&r, in);
    expect_near(&out, 1e-7,
                reals(0.04742587317756678, 0.04742587317756678, 0.04742587317756678,
                      0.9525741268224334, 0.9525741268224334, 0.9525741268224334));
}

static void empty_rows(void **state) {
    Run r = run_new(state, "fn f{N}(%0 : ℝ[2, N]) -> (ℝ[2, N], ℝ[2]) {\n"
                           "  %1 : ℝ[2, N] = softmax %0 over 1\n"
                           "  %2 : ℝ[2] = logsumexp %0 over 1\n"
                           "  %3 : (ℝ[2, N], ℝ[2]) = tuple %1 %2\n  return %3\n}\n");
    r.dims = (const int64_t[]){0};
    CoreValue in = run_tensor(&r, shape_of(2, 0), NULL);
    CoreValue out = run(&r, &in);
    expect_elements(&out.parts[0], shape_of(2, 0), NULL);
    expect_elements(&out.parts[1], shape_of(2), reals(-inf, -inf));
}

static void logsumexp_of_infinite_rows(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[3, 2]) -> ℝ[3] {\n"
                           "  %1 : ℝ[3] = logsumexp %0 over 1\n  return %1\n}\n");
    CoreValue in = run_tensor(&r, shape_of(3, 2), reals(-inf, -inf, inf, 1, nan_, inf));
    CoreValue out = run(&r, &in);
    expect_elements(&out, shape_of(3), reals(-inf, inf, nan_));
}

// B32: log-softmax of large scores is finite.
static void log_softmax_of_large_scores(void **state) {
    static const double x[] = {-781.1664,  -1043.7303, 890.2518,   -1234.9999, -1622.5167,
                               -2174.6855, -1304.8042, -1730.8314, -1072.6201, -1899.7662};
    static const double expected[] = {-1671.4182, -1933.9821, 0,          -2125.2517, -2512.7685,
                                      -3064.9373, -2195.056,  -2621.0832, -1962.8719, -2790.018};
    Run r = run_new(state, "fn f(%0 : ℝ[10]) -> ℝ[10] {\n"
                           "  %1 : ℝ[10] = log_softmax %0 over 0\n  return %1\n}\n");
    CoreValue in = run_tensor(&r, shape_of(10), x);
    CoreValue out = run(&r, &in);
    expect_near(&out, 3e-4, expected);
}

// log s − (x_t − m), logsumexp and pick agree where nothing is rounded away.
static void cross_entropy_of_rows(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[2, 3], %1 : idx[3][2]) -> (ℝ[2], ℝ[2, 1], ℝ[2]) {\n"
                           "  %2 : ℝ[2] = cross_entropy %0 %1 over 1\n"
                           "  %3 : ℝ[2, 1] = logsumexp %0 over 1 keep\n"
                           "  %4 : ℝ[2] = pick %0 %1 over 1\n"
                           "  %5 : (ℝ[2], ℝ[2, 1], ℝ[2]) = tuple %2 %3 %4\n  return %5\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(2, 3), reals(1, 2, 3, 1000, 0, -1000)),
                      run_index(&r, 3, shape_of(2), indices(0, 1))};
    CoreValue out = run(&r, in);
    expect_near(&out.parts[0], 1e-6, reals(2.4076059644443806, 1000));
    expect_near(&out.parts[1], 1e-6, reals(3.4076059644443806, 1000));
    expect_elements(&out.parts[2], shape_of(2), reals(1, 0));
}

// B41: no scale moves through the maximum, so nothing overflows.
static void negative_scale_before_softmax(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[3, 2]) -> (ℝ[3, 3], ℝ[3, 2]) {\n"
                           "  %1 : ℝ[3, 3] = ein %0 %0 [ab, cb -> ac]\n"
                           "  %2 : ℝ = scalar neg(1/10000)\n  %3 : ℝ[3, 3] = div %1 %2\n"
                           "  %4 : ℝ[3, 3] = softmax %3 over 1\n  %5 : ℝ[3, 2] = dot %4 %0\n"
                           "  %6 : (ℝ[3, 3], ℝ[3, 2]) = tuple %4 %5\n  return %6\n}\n");
    // The first row of x·xᵀ is [2, 1, −2].
    CoreValue in = run_tensor(&r, shape_of(3, 2), reals(1, 1, 1, 0, -1, -1));
    CoreValue out = run(&r, &in);
    expect_elements(&out.parts[0], shape_of(3, 3), reals(0, 0, 1, 0, 0, 1, 1, 0, 0));
    expect_elements(&out.parts[1], shape_of(3, 2), reals(-1, -1, -1, -1, 1, 1));
}

// ---- compositions -------------------------------------------------------------------------------

static const char *const layer_norm = "fn f(%0 : ℝ[16]) -> ℝ[16] {\n"
                                      "  %1 : ℝ[1] = mean %0 over 0 keep\n"
                                      "  %2 : ℝ[16] = sub %0 %1\n  %3 : ℝ[16] = pow %2 2\n"
                                      "  %4 : ℝ[1] = mean %3 over 0 keep\n"
                                      "  %5 : ℝ = scalar 0.00001\n  %6 : ℝ[1] = add %4 %5\n"
                                      "  %7 : ℝ[1] = sqrt %6\n  %8 : ℝ[16] = div %2 %7\n"
                                      "  return %8\n}\n";

// B19: bit for bit what exact arithmetic gives in two passes.
static void layer_norm_of_a_large_mean(void **state) {
    const double *const x[] = {norm_x_100, norm_x_1000, norm_x_10000};
    const double *const f32[] = {norm_f32_100, norm_f32_1000, norm_f32_10000};
    const double *const f64[] = {norm_f64_100, norm_f64_1000, norm_f64_10000};
    for (int i = 0; i < 3; i++) {
        Run r = run_new(state, layer_norm);
        CoreValue in = run_tensor(&r, shape_of(16), x[i]);
        CoreValue out = run(&r, &in);
        expect_elements(&out, shape_of(16), f32[i]);
        r.storage = F64;
        in = run_tensor(&r, shape_of(16), x[i]);
        out = run(&r, &in);
        expect_elements(&out, shape_of(16), f64[i]);
    }
}

// B12: two products and a sum, never contracted.
static void sums_of_products_are_not_contracted(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[1], %1 : ℝ[1], %2 : ℝ[1]) -> ℝ[1] {\n"
                           "  %3 : ℝ[1] = mul %0 %2\n  %4 : ℝ[1] = mul %1 %2\n"
                           "  %5 : ℝ[1] = add %3 %4\n  return %5\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(1), reals(1e20)),
                      run_tensor(&r, shape_of(1), reals(-1e20)),
                      run_tensor(&r, shape_of(1), reals(1e10))};
    CoreValue out = run(&r, in);
    expect_elements(&out, shape_of(1), reals(0));
    assert_int_equal(r.launches, 1);
}

// B14: never reassociated.
static void order_of_operations(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[2], %1 : ℝ[1]) -> ℝ[2] {\n"
                           "  %2 : ℝ = scalar 1\n  %3 : ℝ[1] = sub %2 %1\n"
                           "  %4 : ℝ = scalar neg(1000000000000000000000000000000)\n"
                           "  %5 : ℝ[1] = mul %4 %3\n  %6 : ℝ[2] = add %0 %5\n"
                           "  %7 : ℝ = reduce_max %6 over 0\n  %8 : ℝ[2] = sub %6 %7\n"
                           "  return %8\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(2), reals(0.7, 0.5)),
                      run_tensor(&r, shape_of(1), reals(1))};
    CoreValue out = run(&r, in);
    expect_elements(&out, shape_of(2), reals(0, -0x1.999998p-3)); // −0.19999999
    r.text = "fn f(%0 : ℝ[1], %1 : ℝ[1]) -> ℝ[1] {\n  %2 : ℝ[1] = add %0 %1\n"
             "  %3 : ℝ[1] = sub %0 %2\n  %4 : ℝ[1] = add %3 %1\n  return %4\n}\n";
    CoreValue large[] = {run_tensor(&r, shape_of(1), reals(1e30)),
                         run_tensor(&r, shape_of(1), reals(1))};
    out = run(&r, large);
    expect_elements(&out, shape_of(1), reals(1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(products_by_fma),
        TEST(products_of_two_roundings),
        TEST(products_with_a_declared_accumulation),
        TEST(products_as_ein),
        TEST(order_of_summed_axes),
        TEST(window_of_25),
        TEST(outer_product),
        TEST(empty_products),
        TEST(sums),
        TEST(order_of_a_sum),
        TEST(axes_of_reductions),
        TEST(extremes),
        TEST(softmax_of_refused_rows),
        TEST(softmax_over_another_axis),
        TEST(empty_rows),
        TEST(logsumexp_of_infinite_rows),
        TEST(log_softmax_of_large_scores),
        TEST(cross_entropy_of_rows),
        TEST(negative_scale_before_softmax),
        TEST(layer_norm_of_a_large_mean),
        TEST(sums_of_products_are_not_contracted),
        TEST(order_of_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
