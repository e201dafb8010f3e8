// Elementwise functions against MPFR, their special values, monotone pieces, and operands that
// have broken other compilers.
#include "base/text.h"
#include "maths/maths.h"
#include "maths_truth.h"
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static double f32(MthFunction function, double x) {
    return mth_apply(function, 0, F32, &x);
}

static double f64(MthFunction function, double x) {
    return mth_apply(function, 0, F64, &x);
}

static double two(MthFunction function, DType type, double x, double y) {
    return mth_apply(function, 0, type, (const double[]){x, y});
}

static bool same(double a, double b) { // bits, any NaN
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

static void expect(MthFunction function, DType type, double x, double wanted) {
    double value = type == F32 ? f32(function, x) : f64(function, x);
    if (!same(value, wanted))
        fail_msg("%s %s(%a) is %a, not %a", dtype_text(type), mth_function_text(function), x, value,
                 wanted);
}

static void expect_both(MthFunction function, double x, double wanted) {
    expect(function, F32, x, wanted);
    expect(function, F64, x, wanted);
}

// Limits in ulp, a little above the table in docs/numerics-errors.md.
static double limit_of(MthFunction function, DType type) {
    switch (function) {
    case MTH_exp:
    case MTH_log:
    case MTH_tanh:
    case MTH_erf:
    case MTH_sin:
    case MTH_cos:
        return 1;
    case MTH_gelu_slope:
    case MTH_gelu_tanh_slope:
        return 6;
    case MTH_gelu:
        return type == F32 ? 6 : 12;
    default:
        return 3;
    }
}

// Arguments spread over the range of interest and over all exponents.
static double sample(const TruthCase *c, DType type, uint32_t i) {
    uint64_t random = hash_bytes(&i, sizeof i, 42);
    double share = (double)(random >> 11) * 0x1p-53;
    double x = c->low + share * (c->high - c->low);
    if (i % 4 == 1)
        x = ldexp(share * 2 - 1, (int)(random % 16) - 10);
    if (i % 4 == 2)
        x = ldexp(share * 2 - 1, (int)(random % 2200) - 1100);
    return mth_round(type, x);
}

static void check_errors(DType type) {
    for (uint32_t k = 0; k < COUNT_OF(truth_cases); k++) {
        const TruthCase *c = &truth_cases[k];
        bool periodic = c->function == MTH_sin || c->function == MTH_cos;
        for (uint32_t i = 0; i < 4000; i++) {
            double x = sample(c, type, i);
            double value = type == F32 ? f32(c->function, x) : f64(c->function, x);
            if (!isfinite(x) || !isfinite(value) || (periodic && fabs(x) > 0x1p20))
                continue;
            double error = truth_error(c, x, value, type);
            if (!(error <= limit_of(c->function, type)))
                fail_msg("%s %s(%a): %g ulp", dtype_text(type), mth_function_text(c->function), x,
                         error);
        }
    }
}

static void errors_f32(void **state) {
    (void)state;
    check_errors(F32);
}

static void errors_f64(void **state) {
    (void)state;
    check_errors(F64);
}

static void nan_stays(void **state) {
    (void)state;
    for (uint32_t f = 0; f < MTH_FUNCTION_COUNT; f++)
        if (mth_function_arity((MthFunction)f) == 1 && f != MTH_pow)
            expect_both((MthFunction)f, NAN, NAN);
}

static void infinities(void **state) {
    (void)state;
    static const struct {
        MthFunction function;
        double at_minus, at_plus;
    } limits[] = {{MTH_exp, 0, INFINITY},
                  {MTH_log, NAN, INFINITY},
                  {MTH_tanh, -1, 1},
                  {MTH_erf, -1, 1},
                  {MTH_sigmoid, 0, 1},
                  {MTH_silu, -0.0, INFINITY},
                  {MTH_softplus, 0, INFINITY},
                  {MTH_gelu, -0.0, INFINITY},
                  {MTH_gelu_slope, -0.0, 1},
                  {MTH_gelu_tanh_slope, -0.0, 1},
                  {MTH_sin, NAN, NAN},
                  {MTH_gelu_tanh, -0.0, INFINITY},
                  {MTH_cos, NAN, NAN},
                  {MTH_relu, 0, INFINITY},
                  {MTH_sqrt, NAN, INFINITY},
                  {MTH_rsqrt, NAN, 0},
                  {MTH_abs, INFINITY, INFINITY}};
    for (uint32_t i = 0; i < COUNT_OF(limits); i++) {
        expect_both(limits[i].function, -INFINITY, limits[i].at_minus);
        expect_both(limits[i].function, INFINITY, limits[i].at_plus);
    }
}

static void zeros(void **state) {
    (void)state;
    static const MthFunction odd[] = {MTH_tanh,      MTH_erf,  MTH_sin,  MTH_gelu,
                                      MTH_gelu_tanh, MTH_silu, MTH_sqrt, MTH_copy};
    for (uint32_t i = 0; i < COUNT_OF(odd); i++) {
        expect_both(odd[i], 0.0, 0.0);
        expect_both(odd[i], -0.0, -0.0);
    }
    for (int sign = -1; sign <= 1; sign += 2) {
        expect_both(MTH_exp, sign * 0.0, 1);
        expect_both(MTH_cos, sign * 0.0, 1);
        expect_both(MTH_log, sign * 0.0, -INFINITY);
        expect_both(MTH_sigmoid, sign * 0.0, 0.5);
        expect_both(MTH_gelu_slope, sign * 0.0, 0.5);
        expect_both(MTH_gelu_tanh_slope, sign * 0.0, 0.5);
        expect_both(MTH_relu, sign * 0.0, 0.0);
        expect_both(MTH_abs, sign * 0.0, 0.0);
    }
    expect_both(MTH_rsqrt, -0.0, -INFINITY);
    expect_both(MTH_neg, 0.0, -0.0);
    expect_both(MTH_log, 1, 0.0);
}

// Rounded once, also where the result is subnormal or about to overflow.
static void edges_of_the_range(void **state) {
    (void)state;
    expect(MTH_exp, F32, -103.5, 0x1p-149);
    expect(MTH_exp, F32, -104, 0);
    expect(MTH_exp, F32, 0x1.62e42ep6, 0x1.ffff08p127);
    expect(MTH_exp, F32, 0x1.62e43p6, INFINITY);
    expect(MTH_exp, F64, -745, 0x1p-1074);
    expect(MTH_exp, F64, -746, 0);
    expect(MTH_exp, F64, 709.8, INFINITY);
    expect(MTH_log, F32, 0x1p-149, mth_round(F32, -149 * 0x1.62e42fefa39efp-1));
    expect(MTH_log, F64, 0x1p-1074, -0x1.74385446d71c3p9);
    expect(MTH_log, F32, -0x1p-149, NAN);
    expect(MTH_log, F32, FLT_MAX, mth_round(F32, 128 * 0x1.62e42fefa39efp-1));
    expect(MTH_sigmoid, F32, -103.5, 0x1p-149);
    expect(MTH_softplus, F32, -103.5, 0x1p-149);
    expect(MTH_tanh, F32, 0x1p-149, 0x1p-149);
    expect(MTH_erf, F32, 100, 1);
    expect(MTH_sqrt, F32, 0x1p-148, 0x1p-74);
}

static void sine_of_anything_is_bounded(void **state) {
    (void)state;
    for (int exponent = -1074; exponent < 1024; exponent++) {
        double x = ldexp(1.618, exponent);
        for (int type = 0; type < 2; type++) {
            double at = mth_round(type ? F32 : F64, x);
            if (isinf(at))
                continue;
            double sine = type ? f32(MTH_sin, at) : f64(MTH_sin, at);
            double cosine = type ? f32(MTH_cos, at) : f64(MTH_cos, at);
            assert_true(fabs(sine * sine + cosine * cosine - 1) < 1e-6);
        }
    }
}

static void check_monotone(MthFunction function, float from, float to, bool rising) {
    for (float x = from, step = (to - from) / 3000; x < to; x += step) {
        float next = nextafterf(x, INFINITY);
        double a = f32(function, (double)x), b = f32(function, (double)next);
        double c = f32(function, (double)(x + step));
        // Neighbours may differ by the error of each; a step apart the order is strict.
        bool ordered = rising ? c >= a && b >= a - 4 * fabs(a) * 0x1p-23
                              : c <= a && b <= a + 4 * fabs(a) * 0x1p-23;
        if (!ordered)
            fail_msg("%s(%a) = %a, then %a, a step on %a", mth_function_text(function), (double)x,
                     a, b, c);
    }
}

static void monotone_pieces(void **state) {
    (void)state;
    check_monotone(MTH_exp, -110, 88, true);
    check_monotone(MTH_log, 0x1p-130f, 9, true);
    check_monotone(MTH_tanh, -12, 12, true);
    check_monotone(MTH_erf, -5, 5, true);
    check_monotone(MTH_sigmoid, -110, 20, true);
    check_monotone(MTH_softplus, -110, 20, true);
    check_monotone(MTH_gelu, -0.7F, 10, true);
    check_monotone(MTH_gelu, -16, -0.8F, false);
}

// B12: never contracted: the two products cancel exactly.
static void products_are_rounded_before_the_sum(void **state) {
    (void)state;
    double a = mth_round(F32, 1e20), x = mth_round(F32, 1e10);
    double p = two(MTH_mul, F32, a, x), q = two(MTH_mul, F32, -a, x);
    assert_true(two(MTH_add, F32, p, q) == 0);
    assert_true(mth_fma(F32, a, x, q) != 0); // what a contraction would give
}

// B16: a NaN survives in either operand.
static void minimum_and_maximum(void **state) {
    (void)state;
    for (int type = 0; type < 2; type++) {
        DType t = type ? F32 : F64;
        assert_true(same(two(MTH_max, t, NAN, 1), NAN));
        assert_true(same(two(MTH_max, t, 1, NAN), NAN));
        assert_true(same(two(MTH_max, t, NAN, NAN), NAN));
        assert_true(same(two(MTH_max, t, 0, 2), 2));
        assert_true(same(two(MTH_max, t, 0.0, -0.0), -0.0));
        assert_true(same(two(MTH_max, t, -0.0, 0.0), 0.0));
        assert_true(same(two(MTH_min, t, NAN, 1), NAN));
        assert_true(same(two(MTH_min, t, 1, NAN), NAN));
        assert_true(same(two(MTH_min, t, 3, 2), 2));
        assert_true(same(two(MTH_min, t, 0.0, -0.0), 0.0));
        assert_true(same(two(MTH_min, t, -0.0, 0.0), -0.0));
    }
    expect_both(MTH_relu, 1, 1);
    expect_both(MTH_relu, -2, 0);
}

// B27: softplus does not overflow.
static void softplus_of_large_values(void **state) {
    (void)state;
    expect(MTH_softplus, F32, 20, 20);
    expect_both(MTH_softplus, 50, 50);
    expect_both(MTH_softplus, 100, 100);
    expect_both(MTH_softplus, 0x1p100, 0x1p100);
}

// B37: the two gelus, and their tails.
static void two_gelus(void **state) {
    (void)state;
    assert_true(fabs(f32(MTH_gelu, 1) - 0.8413447460685429) < 0x1p-23);
    assert_true(fabs(f32(MTH_gelu_tanh, 1) - 0.8411919906082768) < 0x1p-23);
    static const MthFunction gelus[] = {MTH_gelu, MTH_gelu_tanh};
    for (int i = 0; i < 2; i++) {
        expect_both(gelus[i], 40, 40);
        expect_both(gelus[i], 11, 11);
        expect_both(gelus[i], -40, -0.0);
    }
    // gelu(−11) = −11 Φ(−11), Φ(−11) = 1.910659574498674e−28: nothing cancels.
    assert_true(fabs(f64(MTH_gelu, -11) / -2.1017255319485414e-27 - 1) < 1e-14);
    assert_true(fabs(f32(MTH_gelu, -11) / -2.1017255319485414e-27 - 1) < 1e-6);
    assert_true(f64(MTH_gelu, -1) < 0 && f64(MTH_gelu_tanh, -1) < 0);
    double gap = f64(MTH_gelu, 2.7) - f64(MTH_gelu_tanh, 2.7);
    assert_true(fabs(fabs(gap) - 4.7e-4) < 0.1e-4);
}

// Large arguments, and Φ(1) + φ(1).
static void slopes_of_gelu(void **state) {
    (void)state;
    static const MthFunction slopes[] = {MTH_gelu_slope, MTH_gelu_tanh_slope};
    for (int i = 0; i < 2; i++) {
        static const double far[] = {41, 100, 0x1p100};
        for (uint32_t k = 0; k < COUNT_OF(far); k++) {
            expect_both(slopes[i], far[k], 1);
            expect_both(slopes[i], -far[k], -0.0);
        }
        assert_true(f64(slopes[i], -0.76) < 0 && f64(slopes[i], -0.74) > 0);
    }
    assert_true(fabs(f64(MTH_gelu_slope, 1) - 1.0833154705876863) < 0x1p-51);
    assert_true(fabs(f64(MTH_gelu_tanh_slope, 1) - 1.0829640838457826) < 0x1p-51);
}

// B39: an invalid operand gives NaN.
static void invalid_operands(void **state) {
    (void)state;
    expect_both(MTH_sqrt, -1, NAN);
    expect_both(MTH_log, -1, NAN);
    expect_both(MTH_rsqrt, -1, NAN);
    expect_both(MTH_sin, INFINITY, NAN);
}

static void powers_multiply_from_the_left(void **state) {
    (void)state;
    double x = mth_round(F32, 1.1);
    double square = mth_round(F32, x * x), cube = mth_round(F32, square * x);
    assert_true(mth_apply(MTH_pow, 0, F32, &x) == 1);
    assert_true(mth_apply(MTH_pow, 1, F32, &x) == x);
    assert_true(mth_apply(MTH_pow, 2, F32, &x) == square);
    assert_true(mth_apply(MTH_pow, 5, F32, &x) == mth_round(F32, mth_round(F32, cube * x) * x));
    double nan = NAN, zero = 0;
    assert_true(mth_apply(MTH_pow, 0, F32, &nan) == 1);
    assert_true(mth_apply(MTH_pow, 0, F64, &zero) == 1);
}

static void comparisons_and_choices(void **state) {
    (void)state;
    static const MthFunction all[] = {MTH_lt, MTH_le, MTH_gt, MTH_ge, MTH_eq};
    static const int wanted[][5] = {{1, 1, 0, 0, 0}, {0, 0, 1, 1, 0}, {0, 1, 0, 1, 1}};
    static const double pairs[][2] = {{1, 2}, {2, 1}, {0.0, -0.0}};
    for (uint32_t p = 0; p < 3; p++)
        for (uint32_t i = 0; i < 5; i++)
            assert_true(two(all[i], F32, pairs[p][0], pairs[p][1]) == wanted[p][i]);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(two(all[i], F64, NAN, 1) == 0 && two(all[i], F64, NAN, NAN) == 0);
    double yes[] = {1, 5, 6}, no[] = {-0.0, 5, 6};
    assert_true(mth_apply(MTH_select, 0, F32, yes) == 5);
    assert_true(mth_apply(MTH_select, 0, F32, no) == 6);
}

// Blocks of any size give what single elements give.
static void runs_of_many_elements(void **state) {
    (void)state;
    Heap heap = {0};
    Arena *arena = arena_new(&heap, "test");
    double in[101], out[101];
    for (uint32_t i = 0; i < 101; i++)
        in[i] = mth_round(F32, (double)i / 7 - 6);
    MthProgram program = mth_program(arena, MTH_gelu, 0, F32);
    const double *const args[] = {in};
    mth_run(&program, F32, 101, args, out);
    for (uint32_t i = 0; i < 101; i++)
        assert_true(same(out[i], f32(MTH_gelu, in[i])));
    heap_free(&heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_f32),
        cmocka_unit_test(errors_f64),
        cmocka_unit_test(nan_stays),
        cmocka_unit_test(infinities),
        cmocka_unit_test(zeros),
        cmocka_unit_test(edges_of_the_range),
        cmocka_unit_test(sine_of_anything_is_bounded),
        cmocka_unit_test(monotone_pieces),
        cmocka_unit_test(products_are_rounded_before_the_sum),
        cmocka_unit_test(minimum_and_maximum),
        cmocka_unit_test(softplus_of_large_values),
        cmocka_unit_test(two_gelus),
        cmocka_unit_test(slopes_of_gelu),
        cmocka_unit_test(invalid_operands),
        cmocka_unit_test(powers_multiply_from_the_left),
        cmocka_unit_test(comparisons_and_choices),
        cmocka_unit_test(runs_of_many_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
