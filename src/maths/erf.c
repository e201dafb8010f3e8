// The error function, gelu and its derivative. Coefficients as in exp.c, but for the tails
// (scripts/tail_coefficients.py).
#include "maths/build.h"

// erf(x) / x − 1 as a polynomial in x² for |x| ≤ 1: 2^−29.3 of erf in F32, 2^−56.3 in F64.
static const double erf_f32[] = {0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2cf2p-4, -0x1.b7f88cp-6,
                                 0x1.540172p-8, -0x1.a3d812p-11, 0x1.4917a4p-14};
static const double erf_f64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379fdp-2,  0x1.ce2f21a04360fp-4,  -0x1.b82ce312ab0a3p-6,
    0x1.565bcd126d6edp-8,  -0x1.c02db49229b1fp-11, 0x1.f9a3342152cf7p-14, -0x1.f4d31d85b4f84p-17,
    0x1.b9ed71fb0fe73p-20, -0x1.5f8e4d2412c71p-23, 0x1.fc0d5c2f2905ap-27, -0x1.452ac54ffba4cp-30,
    0x1.25ec3cb74ee9fp-34};
// log2(erfc(t)) / t for t in [1, 4]: 2^−28.6 of erfc, absolute.
static const double erf_tail_f32[] = {-0x1.a0c7bp0,  -0x1.d5ac3ap-1, -0x1.3687bap-3,
                                      0x1.0d5134p-5, -0x1.2d010ap-8, 0x1.3e0b68p-12};
// e^(t²) erfc(t) for t in [1, 6] as a polynomial in (t − 2.5) / (t + 2.5): 2^−53.0.
static const double scaled_f64[] = {
    0x1.afbb3f3b7343ap-3,  -0x1.7ca88dec217a9p-2,  0x1.01c11a735ce45p-2,   -0x1.00115437168a1p-3,
    0x1.470ba1f65b6f7p-5,  -0x1.05bb2fe78373bp-8,  -0x1.5a57167007568p-9,  0x1.cb3b6325e3ecdp-11,
    0x1.def24ae46ba2ap-13, -0x1.0e46b78a3cf89p-13, -0x1.1ea69e737ef69p-15, 0x1.38605bc7c3914p-16,
    0x1.f611dc863119fp-18, -0x1.375cce0bee1b1p-19, -0x1.a1e2c3eed46dp-20,  0x1.230dfa8910186p-23};
// e^(t²/2) Φ(−t), Φ the normal distribution, as a quotient of two polynomials in t ≥ 0: 2^−26.5
// for t ≤ 14.6 in F32, 2^−56.8 for t ≤ 39.5 in F64. No coefficient is negative: nothing cancels.
static const double tail_above_f32[] = {0.5, 0x1.c064a6p-2, 0x1.76982ep-3, 0x1.4be824p-5,
                                        0x1.0c7e1cp-8};
static const double tail_below_f32[] = {
    1, 0x1.ac7482p+0, 0x1.33815ap+0, 0x1.dfd886p-2, 0x1.a00294p-4, 0x1.50806cp-7};
static const double tail_above_f64[] = {0.5,
                                        0x1.a7fb2a33edd83p-1,
                                        0x1.5c169e65f8c93p-1,
                                        0x1.6e1ddfe50e49bp-2,
                                        0x1.0e9e94758a21dp-3,
                                        0x1.2471789bfdae2p-5,
                                        0x1.d34992082e6dep-8,
                                        0x1.10e24f6451226p-10,
                                        0x1.bf9dcaf18c8f2p-14,
                                        0x1.d4e1636fcdacep-18,
                                        0x1.e2447932282cap-23};
static const double tail_below_f64[] = {1,
                                        0x1.3a1ea9e947c56p+1,
                                        0x1.68aced923e450p+1,
                                        0x1.004a2e7d5f466p+1,
                                        0x1.f617a99a4951ep-1,
                                        0x1.64ee4f3ca3ffcp-2,
                                        0x1.79114cedb4fddp-4,
                                        0x1.29317eb8e3ec5p-6,
                                        0x1.584e0fe9992ffp-9,
                                        0x1.19179c9dbadbdp-12,
                                        0x1.25d3c575f9eddp-16,
                                        0x1.2e3760dcd201cp-21};

// e^(−t²/2) · 2^bias, the square carried in two numbers.
static Val exp_minus_half_square(MthBuild *b, Val t, int64_t bias) {
    Val square = mul(b, t, t);
    Val square_low = fused(b, t, t, negated(b, square));
    Val factor = constant(b, -0x1.715476p-1, -0x1.71547652b82fep-1); // −1 / (2 log 2)
    Val factor_low = constant(b, -0x1.4ae0cp-27, -0x1.777d0ffda0d24p-57);
    return mth_power_of_two(b, square, square_low, factor, factor_low, bias);
}

static Val tail_above(MthBuild *b, Val t) {
    return polynomial_by_type(b, t, tail_above_f32, tail_above_f64);
}
static Val tail_below(MthBuild *b, Val t) {
    return polynomial_by_type(b, t, tail_below_f32, tail_below_f64);
}

static int64_t tail_bias(MthBuild *b) {
    return b->type == F32 ? 64 : 512;
}

// 1 − erfc(x) for x from about 1; the result is 1 from the limit on.
static Val erf_large(MthBuild *b, Val x) {
    Val t = at_most(b, x, constant(b, 4, 6)), one = number(b, 1);
    if (b->type == F32)
        return sub(
            b, one,
            mth_power_of_two(b, t, MTH_NO_LOW, polynomial(b, t, erf_tail_f32), MTH_NO_LOW, 0));
    Val minus = negated(b, t), square = mul(b, minus, t);
    MthExp e = mth_exp_parts(b, square, fused(b, minus, t, negated(b, square)));
    Val centre = number(b, 2.5);
    Val q = quotient(b, sub(b, t, centre), add(b, t, centre));
    return sub(b, one, mth_exp_scaled(b, e, mul(b, e.part, polynomial(b, q, scaled_f64))));
}

Val mth_build_erf(MthBuild *b, const Val *arg) {
    Val x = magnitude(b, arg[0]);
    Val p = polynomial_by_type(b, mul(b, x, x), erf_f32, erf_f64);
    Val small = fused(b, p, x, x);
    Val above = less(b, number(b, 1), x); // a NaN is not, and stays
    return with_sign(b, choose(b, above, erf_large(b, x), small), arg[0]);
}

// x Φ(x) as max(x, 0) − |x| Φ(−|x|): nothing cancels in the negative tail. There the power of two
// is larger than it should be by 2^bias until the end, where subnormal results are rounded once.
// From the limit on the tail is 0, so gelu(x) = −0 for x far below 0 and for −inf.
Val mth_build_gelu(MthBuild *b, const Val *arg) {
    Val t = at_most(b, magnitude(b, arg[0]), constant(b, 14.5, 39));
    Val e = exp_minus_half_square(b, t, tail_bias(b));
    Val above = mul(b, mul(b, e, tail_above(b, t)), t);
    Val tail = mul(b, quotient(b, above, tail_below(b, t)), constant(b, 0x1p-64, 0x1p-512));
    return sub(b, choose(b, less(b, arg[0], number(b, 0)), number(b, -0.0), arg[0]), tail);
}

// Φ(x) + x φ(x), φ = Φ' being e^(−x²/2) / sqrt(2π). At −t it is D = e^(−t²/2) (e^(t²/2) Φ(−t) −
// t / sqrt(2π)) for t ≥ 0, and 1 − D at t. D changes its sign at 0.75 and is −0 from the limit on.
Val mth_build_gelu_slope(MthBuild *b, const Val *arg) {
    Val t = at_most(b, magnitude(b, arg[0]), constant(b, 15, 39.5));
    Val e = exp_minus_half_square(b, t, tail_bias(b));
    Val tail = quotient(b, tail_above(b, t), tail_below(b, t));
    Val density = constant(b, 0x1.988454p-2, 0x1.9884533d43651p-2);
    Val density_low = constant(b, -0x1.857936p-27, -0x1.cbc0d30ebfd15p-56);
    Val minus = negated(b, t);
    Val both = fused(b, minus, density, fused(b, minus, density_low, tail));
    Val below = mul(b, mul(b, e, both), constant(b, 0x1p-64, 0x1p-512));
    return choose(b, less(b, arg[0], number(b, 0)), below, sub(b, number(b, 1), below));
}
