// True values of the elementwise functions by MPFR, for the unit tests and the error table.
#ifndef PRESK_TESTS_MATHS_TRUTH_H
#define PRESK_TESTS_MATHS_TRUTH_H

#include "maths/maths.h"
#include <math.h>
#include <mpfr.h>

enum { TRUTH_PRECISION = 128 };

// The functions with an error; true value by MPFR.
typedef void (*Truth)(mpfr_t out, double x);
typedef struct Case {
    MthFunction function;
    Truth truth;
    double low, high; // where F64 samples are drawn uniformly, beside all exponents
    Truth term;       // of two terms that may cancel: one, whose size the error is measured by; or
                      // null
} TruthCase;

static void truth_exp(mpfr_t out, double x) {
    mpfr_set_d(out, x, MPFR_RNDN);
    mpfr_exp(out, out, MPFR_RNDN);
}
static void truth_log(mpfr_t out, double x) {
    mpfr_set_d(out, x, MPFR_RNDN);
    mpfr_log(out, out, MPFR_RNDN);
}
static void truth_tanh(mpfr_t out, double x) {
    mpfr_set_d(out, x, MPFR_RNDN);
    mpfr_tanh(out, out, MPFR_RNDN);
}
static void truth_erf(mpfr_t out, double x) {
    mpfr_set_d(out, x, MPFR_RNDN);
    mpfr_erf(out, out, MPFR_RNDN);
}
static void truth_sin(mpfr_t out, double x) {
    mpfr_set_d(out, x, MPFR_RNDN);
    mpfr_sin(out, out, MPFR_RNDN);
}
static void truth_cos(mpfr_t out, double x) {
    mpfr_set_d(out, x, MPFR_RNDN);
    mpfr_cos(out, out, MPFR_RNDN);
}
static void truth_rsqrt(mpfr_t out, double x) {
    mpfr_set_d(out, x, MPFR_RNDN);
    mpfr_rec_sqrt(out, out, MPFR_RNDN);
}
static void truth_sigmoid(mpfr_t out, double x) {
    mpfr_set_d(out, -x, MPFR_RNDN);
    mpfr_exp(out, out, MPFR_RNDN);
    mpfr_add_ui(out, out, 1, MPFR_RNDN);
    mpfr_ui_div(out, 1, out, MPFR_RNDN);
}
static void truth_silu(mpfr_t out, double x) {
    truth_sigmoid(out, x);
    mpfr_mul_d(out, out, x, MPFR_RNDN);
}
static void truth_softplus(mpfr_t out, double x) {
    mpfr_set_d(out, -fabs(x), MPFR_RNDN);
    mpfr_exp(out, out, MPFR_RNDN);
    mpfr_log1p(out, out, MPFR_RNDN);
    mpfr_add_d(out, out, x > 0 ? x : 0, MPFR_RNDN);
}
// x erfc(−x / sqrt 2) / 2
static void truth_gelu(mpfr_t out, double x) {
    mpfr_sqrt_ui(out, 2, MPFR_RNDN);
    mpfr_d_div(out, -x, out, MPFR_RNDN);
    mpfr_erfc(out, out, MPFR_RNDN);
    mpfr_mul_d(out, out, x / 2, MPFR_RNDN);
}
// x exp(−x² / 2) / sqrt(2 π)
static void truth_density_times(mpfr_t out, double x) {
    mpfr_t pi;
    mpfr_init2(pi, mpfr_get_prec(out));
    mpfr_set_d(out, x, MPFR_RNDN);
    mpfr_sqr(out, out, MPFR_RNDN);
    mpfr_div_si(out, out, -2, MPFR_RNDN);
    mpfr_exp(out, out, MPFR_RNDN);
    mpfr_mul_d(out, out, x, MPFR_RNDN);
    mpfr_const_pi(pi, MPFR_RNDN);
    mpfr_mul_ui(pi, pi, 2, MPFR_RNDN);
    mpfr_rec_sqrt(pi, pi, MPFR_RNDN);
    mpfr_mul(out, out, pi, MPFR_RNDN);
    mpfr_clear(pi);
}
// erfc(−x / sqrt 2) / 2 + x exp(−x² / 2) / sqrt(2 π)
static void truth_gelu_slope(mpfr_t out, double x) {
    mpfr_t term;
    mpfr_init2(term, mpfr_get_prec(out));
    truth_density_times(term, x);
    mpfr_sqrt_ui(out, 2, MPFR_RNDN);
    mpfr_d_div(out, -x, out, MPFR_RNDN);
    mpfr_erfc(out, out, MPFR_RNDN);
    mpfr_div_ui(out, out, 2, MPFR_RNDN);
    mpfr_add(out, out, term, MPFR_RNDN);
    mpfr_clear(term);
}
// x / (1 + exp(−2 sqrt(2 / π) (x + 0.044715 x³)))
static void truth_gelu_tanh(mpfr_t out, double x) {
    mpfr_t u, c;
    mpfr_inits2(mpfr_get_prec(out), u, c, (mpfr_ptr)0);
    mpfr_set_d(u, x, MPFR_RNDN);
    mpfr_pow_ui(u, u, 3, MPFR_RNDN);
    mpfr_set_str(c, "0.044715", 10, MPFR_RNDN);
    mpfr_mul(u, u, c, MPFR_RNDN);
    mpfr_add_d(u, u, x, MPFR_RNDN);
    mpfr_const_pi(c, MPFR_RNDN);
    mpfr_ui_div(c, 8, c, MPFR_RNDN);
    mpfr_sqrt(c, c, MPFR_RNDN);
    mpfr_mul(u, u, c, MPFR_RNDN);
    mpfr_neg(u, u, MPFR_RNDN);
    mpfr_exp(u, u, MPFR_RNDN);
    mpfr_add_ui(u, u, 1, MPFR_RNDN);
    mpfr_d_div(out, x, u, MPFR_RNDN);
    mpfr_clears(u, c, (mpfr_ptr)0);
}

// x s (1 − s) w', s = 1 / (1 + exp(−w)), w = 2 sqrt(2 / π) (x + 0.044715 x³)
static void truth_gelu_tanh_term(mpfr_t out, double x) {
    mpfr_t w, d, c;
    mpfr_inits2(mpfr_get_prec(out), w, d, c, (mpfr_ptr)0);
    mpfr_const_pi(c, MPFR_RNDN);
    mpfr_ui_div(c, 8, c, MPFR_RNDN);
    mpfr_sqrt(c, c, MPFR_RNDN);
    mpfr_set_str(w, "0.044715", 10, MPFR_RNDN);
    mpfr_mul_d(w, w, x, MPFR_RNDN);
    mpfr_mul_d(w, w, x, MPFR_RNDN);
    mpfr_mul_ui(d, w, 3, MPFR_RNDN);
    mpfr_add_ui(d, d, 1, MPFR_RNDN);
    mpfr_mul(d, d, c, MPFR_RNDN); // w'
    mpfr_add_ui(w, w, 1, MPFR_RNDN);
    mpfr_mul(w, w, c, MPFR_RNDN);
    mpfr_mul_d(w, w, -fabs(x), MPFR_RNDN); // s (1 − s) is even
    mpfr_exp(w, w, MPFR_RNDN);
    mpfr_add_ui(c, w, 1, MPFR_RNDN);
    mpfr_sqr(c, c, MPFR_RNDN);
    mpfr_div(w, w, c, MPFR_RNDN);
    mpfr_mul(out, w, d, MPFR_RNDN);
    mpfr_mul_d(out, out, x, MPFR_RNDN);
    mpfr_clears(w, d, c, (mpfr_ptr)0);
}
static void truth_gelu_tanh_slope(mpfr_t out, double x) {
    mpfr_t term;
    mpfr_init2(term, mpfr_get_prec(out));
    truth_gelu_tanh_term(term, x);
    truth_gelu_tanh(out, x);
    if (x == 0)
        mpfr_set_d(out, 0.5, MPFR_RNDN);
    else
        mpfr_div_d(out, out, x, MPFR_RNDN);
    mpfr_add(out, out, term, MPFR_RNDN);
    mpfr_clear(term);
}

static const TruthCase truth_cases[] = {
    {MTH_exp, truth_exp, -746, 710, NULL},
    {MTH_log, truth_log, 0, 4, NULL},
    {MTH_tanh, truth_tanh, -20, 20, NULL},
    {MTH_erf, truth_erf, -6, 6, NULL},
    {MTH_sin, truth_sin, -1048576, 1048576, NULL},
    {MTH_cos, truth_cos, -1048576, 1048576, NULL},
    {MTH_sigmoid, truth_sigmoid, -746, 40, NULL},
    {MTH_silu, truth_silu, -750, 40, NULL},
    {MTH_softplus, truth_softplus, -746, 40, NULL},
    {MTH_gelu, truth_gelu, -39, 10, NULL},
    {MTH_gelu_tanh, truth_gelu_tanh, -22, 10, NULL},
    {MTH_rsqrt, truth_rsqrt, 0, 16, NULL},
    {MTH_gelu_slope, truth_gelu_slope, -39, 10, truth_density_times},
    {MTH_gelu_tanh_slope, truth_gelu_tanh_slope, -22, 10, truth_gelu_tanh_term},
};

// The distance of `value` from the true result, in ulp of the type at the true result (or at the
// term, where that is larger).
static double truth_error(const TruthCase *c, double x, double value, DType type) {
    mpfr_t truth, difference;
    mpfr_inits2(TRUTH_PRECISION, truth, difference, (mpfr_ptr)0);
    c->truth(truth, x);
    int64_t digits = type == F32 ? 24 : 53, least = type == F32 ? -149 : -1074;
    int64_t exponent = mpfr_zero_p(truth) ? least : mpfr_get_exp(truth) - digits;
    if (c->term) {
        c->term(difference, x);
        if (!mpfr_zero_p(difference))
            exponent = MAX(exponent, (int64_t)mpfr_get_exp(difference) - digits);
    }
    mpfr_sub_d(difference, truth, value, MPFR_RNDN);
    mpfr_mul_2si(difference, difference, (long)-MAX(exponent, least), MPFR_RNDN);
    double error = fabs(mpfr_get_d(difference, MPFR_RNDA));
    mpfr_clears(truth, difference, (mpfr_ptr)0);
    return error;
}

#endif
