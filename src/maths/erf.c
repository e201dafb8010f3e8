// The error function, gelu and its derivative. Coefficients as in exp.c.
#include "maths/build.h"

// erf(x) / x − 1 as a polynomial in x²: 2^−30.1 of erf for |x| ≤ 0.95 in F32, 2^−56.3 for |x| ≤ 1.
static const double erf_f32[] = {0x1.06eba8p-3, -0x1.812742p-2,  0x1.ce2ddep-4, -0x1.b80ae4p-6,
                                 0x1.54a34p-8,  -0x1.a8f0c8p-11, 0x1.586cfp-14};
static const double erf_f64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379fdp-2,  0x1.ce2f21a04360fp-4,  -0x1.b82ce312ab0a3p-6,
    0x1.565bcd126d6edp-8,  -0x1.c02db49229b1fp-11, 0x1.f9a3342152cf7p-14, -0x1.f4d31d85b4f84p-17,
    0x1.b9ed71fb0fe73p-20, -0x1.5f8e4d2412c71p-23, 0x1.fc0d5c2f2905ap-27, -0x1.452ac54ffba4cp-30,
    0x1.25ec3cb74ee9fp-34};
// −log(erfc(t)) / t − 1 for t in [0.9, 4]: 2^−28.3 of erfc, absolute.
static const double erf_tail_f32[] = {0x1.0769dap-3, 0x1.4542a8p-1,   0x1.b243e8p-4, -0x1.8219ep-6,
                                      0x1.d08536p-9, -0x1.378ab6p-12, 0x1.1d6f62p-17};
// e^(t²) erfc(t) as a polynomial in q = (t − c) / (t + c),
// c = 3: 2^−26.9 for t ≤ 10.5 in F32, 2^−54.8 for t ≤ 27.7 in F64.
static const double scaled_f32[] = {0x1.6e9828p-3,   -0x1.4e102cp-2, 0x1.f6ff1ap-3, -0x1.336fe2p-3,
                                    0x1.258b84p-4,   -0x1.8fad3cp-6, 0x1.17ac1p-8,  0x1.76ff72p-11,
                                    -0x1.36cf44p-11, 0x1.fd52a4p-16, 0x1.d736ap-15};
static const double scaled_f64[] = {
    0x1.6e9827d229d2dp-3,   -0x1.4e102b9cf8513p-2,  0x1.f6ff20410595ap-3,  -0x1.336ffbef08b62p-3,
    0x1.258b13b0182e3p-4,   -0x1.8fa58eb5d84cep-6,  0x1.17c838ede6102p-8,  0x1.73101e76da6dbp-11,
    -0x1.39084c218dc5dp-11, 0x1.7ba104a0603ddp-15,  0x1.0cac2880bd75cp-14, -0x1.af86efd632657p-17,
    -0x1.0bb2106efc5b3p-17, 0x1.1c8c6caf93963p-19,  0x1.501250f5b1637p-20, -0x1.3bae045942e05p-22,
    -0x1.f5ac1e3742c4fp-23, 0x1.e8d169954e553p-26,  0x1.8717ba0485a8fp-25, 0x1.601e6022cefa5p-30,
    -0x1.09ba72e21f6c9p-27, -0x1.84d5f8cc6b8ecp-30, 0x1.b9f45ba39f8f8p-31, 0x1.1f94c7e7ce55bp-32};

// e^(t²) erfc(t), t ≥ 0: from 1 at 0 down to about 0.56 / t.
static Val scaled_complement(MthBuild *b, Val t) {
    Val c = number(b, 3);
    Val q = quotient(b, sub(b, t, c), add(b, t, c));
    return polynomial_by_type(b, q, scaled_f32, scaled_f64);
}

// e^(−(x²) factor) for factor 1 or 1/2, the square carried in two numbers.
static MthExp exp_minus_square(MthBuild *b, Val x, double factor) {
    Val minus = mul(b, x, number(b, -factor));
    Val square = mul(b, minus, x);
    return mth_exp_parts(b, square, fused(b, minus, x, negated(b, square)));
}

// 1 − erfc(x) for x from about 0.9; the result is 1 from the limit on.
static Val erf_large(MthBuild *b, Val x) {
    Val t = at_most(b, x, constant(b, 4, 6)), one = number(b, 1);
    if (b->type == F32) {
        Val p = polynomial(b, t, erf_tail_f32);
        Val power = fused(b, p, t, t);
        Val power_low = fused(b, p, t, sub(b, t, power));
        MthExp e = mth_exp_parts(b, negated(b, power), negated(b, power_low));
        return sub(b, one, mul(b, e.part, e.scale));
    }
    MthExp e = exp_minus_square(b, t, 1);
    return sub(b, one, mul(b, mul(b, e.part, scaled_complement(b, t)), e.scale));
}

Val mth_build_erf(MthBuild *b, const Val *arg) {
    Val x = magnitude(b, arg[0]);
    Val p = polynomial_by_type(b, mul(b, x, x), erf_f32, erf_f64);
    Val small = fused(b, p, x, x);
    Val below = less(b, x, constant(b, 0x1.ep-1, 1));
    return with_sign(b, choose(b, below, small, erf_large(b, x)), arg[0]);
}

// x Φ(x), Φ the normal distribution, as max(x, 0) − |x| Φ(−|x|): nothing cancels in the negative
// tail. There the power of two is applied last, for subnormal results. From the limit on the tail
// is 0, so gelu(x) = −0 for x far below 0 and for −inf.
Val mth_build_gelu(MthBuild *b, const Val *arg) {
    Val x = at_most(b, magnitude(b, arg[0]), constant(b, 14.5, 39));
    MthExp e = exp_minus_square(b, x, 0.5);
    Val t = mul(b, x, constant(b, 0x1.6a09e6p-1, 0x1.6a09e667f3bcdp-1));
    Val half = mul(b, x, number(b, 0.5));
    Val tail = mth_exp_scaled(b, e, mul(b, e.part, mul(b, half, scaled_complement(b, t))));
    Val above = choose(b, less(b, arg[0], number(b, 0)), number(b, -0.0), arg[0]);
    return sub(b, above, tail);
}

// Φ(x) + x φ(x), φ = Φ' being e^(−x²/2) / sqrt(2π). At −x it is D = e^(−x²/2) (e^(x²/2) Φ(−x) −
// x / sqrt(2π)) for x ≥ 0, and 1 − D at x. D changes its sign at 0.75 and is −0 from the limit on.
Val mth_build_gelu_slope(MthBuild *b, const Val *arg) {
    Val x = at_most(b, magnitude(b, arg[0]), constant(b, 15, 39));
    MthExp e = exp_minus_square(b, x, 0.5);
    Val t = mul(b, x, constant(b, 0x1.6a09e6p-1, 0x1.6a09e667f3bcdp-1));
    Val half = mul(b, scaled_complement(b, t), number(b, 0.5));
    Val density = constant(b, 0x1.988454p-2, 0x1.9884533d43651p-2);
    Val density_low = constant(b, -0x1.857936p-27, -0x1.cbc0d30ebfd15p-56);
    Val rest = fused(b, negated(b, x), density_low, half);
    Val both = fused(b, negated(b, x), density, rest);
    Val below = mth_exp_scaled(b, e, mul(b, e.part, both));
    return choose(b, less(b, arg[0], number(b, 0)), below, sub(b, number(b, 1), below));
}
