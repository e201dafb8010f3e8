// The natural logarithm and softplus. Coefficients as in exp.c.
#include "maths/build.h"

// (log(1 + f) − f) / f² for f in [−0.293, 0.4143]: 2^−27.8 of the logarithm.
static const double log_f32[] = {-0x1.fffff8p-2, 0x1.55555p-2,   -0x1.000432p-2,
                                 0x1.99a41ep-3,  -0x1.5425bep-3, 0x1.226d64p-3,
                                 -0x1.0f3f68p-3, 0x1.086626p-3,  -0x1.38572ep-4};
// (log((1 + s) / (1 − s)) − 2 s) / s³ as a polynomial in s², for s ≤ 0.1716: 2^−59.5.
static const double log_f64[] = {0x1.5555555555592p-1, 0x1.999999997ff2bp-2, 0x1.24924941e082ap-2,
                                 0x1.c71c521481016p-3, 0x1.74663d045f9e1p-3, 0x1.39a1e2d9e1db5p-3,
                                 0x1.2f041b9b27db2p-3};
// (log(1 + e) − e) / e² for e in [0, 1]: 2^−30.2.
static const double log1p_f32[] = {-0x1.fffff8p-2, 0x1.5553b4p-2, -0x1.ffc552p-3, 0x1.97890ep-3,
                                   -0x1.4a6966p-3, 0x1.fefbf4p-4, -0x1.54af5ap-4, 0x1.588ab6p-5,
                                   -0x1.bfbf76p-7, 0x1.107bacp-9};
// As log_f64 for s ≤ 1/3: 2^−59.4.
static const double log1p_f64[] = {0x1.5555555555535p-1, 0x1.99999999a0728p-2, 0x1.249249208e61cp-2,
                                   0x1.c71c741b2e753p-3, 0x1.745cb434a923p-3,  0x1.3b1dd687968efp-3,
                                   0x1.10680ba90ab1fp-3, 0x1.efd39d29489d1p-4, 0x1.55c6bb8a6b9fdp-4,
                                   0x1.5c63d090d94ap-3};

// log(1 + f) − f. In F64 with s = f / (2 + f) it is s (f²/2 + s² R(s²)) − f²/2.
static Val log_tail(MthBuild *b, Val f, const double *f32, uint32_t count32, const double *f64,
                    uint32_t count64) {
    Val square = mul(b, f, f);
    if (b->type == F32)
        return mul(b, square, mth_polynomial(b, f, count32, f32));
    Val half = mul(b, square, number(b, 0.5));
    Val s = quotient(b, f, add(b, number(b, 2), f));
    Val s2 = mul(b, s, s);
    Val inner = fused(b, s2, mth_polynomial(b, s2, count64, f64), half);
    return fused(b, s, inner, negated(b, half));
}

Val mth_log1p_unit(MthBuild *b, Val e) {
    return add(b, e,
               log_tail(b, e, log1p_f32, COUNT_OF(log1p_f32), log1p_f64, COUNT_OF(log1p_f64)));
}

// x = 2^k (1 + f) with 1 + f in [sqrt 1/2, sqrt 2). The integer k becomes a float by standing in
// the low bits of 1.5·2^23 (1.5·2^52).
static Val log_of_positive(MthBuild *b, Val x) {
    Val rounder = constant(b, 0x1.8p23, 0x1.8p52);
    Val subnormal = less(b, x, constant(b, 0x1p-126, 0x1p-1022));
    Val normal = choose(b, subnormal, mul(b, x, constant(b, 0x1p24, 0x1p54)), x);
    int64_t mantissa = b->type == F32 ? 23 : 52;
    Val least = constant(b, 0x1.6a09e6p-1, 0x1.6a09e667f3bcdp-1);
    Val exponent = right(b, int_sub(b, bits(b, normal), bits(b, least)), mantissa);
    Val m = of_bits(b, int_sub(b, bits(b, normal), left(b, exponent, mantissa)));
    Val f = sub(b, m, number(b, 1));
    Val bias = choose(b, subnormal, constant(b, 0x1.8p23 + 24, 0x1.8p52 + 54), rounder);
    Val k = sub(b, of_bits(b, int_add(b, exponent, bits(b, rounder))), bias);

    Val tail = log_tail(b, f, log_f32, COUNT_OF(log_f32), log_f64, COUNT_OF(log_f64));
    // log 2 in two numbers, the first short enough for exact products with k.
    Val high = mul(b, k, constant(b, 0x1.62e4p-1, 0x1.62e42fefa4p-1));
    Val low = fused(b, k, constant(b, 0x1.7f7d1cp-20, -0x1.8432a1b0e2634p-43), tail);
    Val sum = add(b, high, f);
    Val lost = sub(b, f, sub(b, sum, high));
    return add(b, sum, add(b, lost, low));
}

Val mth_build_log(MthBuild *b, const Val *arg) {
    Val x = arg[0], zero = number(b, 0);
    Val nan = of_bits(b, integer(b, 0x7fc00000, 0x7ff8000000000000));
    Val ordinary = log_of_positive(b, x);
    Val kept = choose(b, less(b, x, infinity(b)), ordinary, x); // +inf and NaN stay
    Val pole = choose(b, equal(b, x, zero), negated(b, infinity(b)), kept);
    return choose(b, less(b, x, zero), nan, pole);
}

// max(x, 0) + log(1 + e^−|x|): no overflow, and e^x itself in the tail.
Val mth_build_softplus(MthBuild *b, const Val *arg) {
    Val x = arg[0], zero = number(b, 0);
    Val minus = at_least(b, negated(b, magnitude(b, x)), constant(b, -104, -746));
    MthExp e = mth_exp_parts(b, minus, MTH_NO_LOW);
    Val more = mth_log1p_unit(b, mth_exp_scaled(b, e, e.part));
    return add(b, choose(b, less(b, zero, x), x, zero), more);
}
