// Sine and cosine. Coefficients as in exp.c.
//
// The argument is reduced by multiples of π/2 held in three numbers of the type. It is accurate
// for |x| ≤ 2^21 in F32 and 2^48 in F64; from there on neighbouring floats are so far apart, or the
// multiple so large, that no phase is kept: sin is ±0 and cos 1, at every magnitude and on every
// machine. Infinities give NaN.
#include "maths/build.h"

// (sin r − r) / r³ as a polynomial in r², for |r| ≤ 0.87 (F64 0.80): 2^−31.9 and 2^−62.8 of sin r.
static const double sin_f32[] = {-0x1.555556p-3, 0x1.11115p-7, -0x1.a03204p-13, 0x1.71f95cp-19};
static const double sin_f64[] = {
    -0x1.5555555555555p-3,  0x1.111111111108fp-7, -0x1.a01a01a007f31p-13, 0x1.71de3a41d9f97p-19,
    -0x1.ae643fd562548p-26, 0x1.61166a89c3eep-33, -0x1.a64997b42e844p-41};
// (cos r − 1 + r²/2) / r⁴ as a polynomial in r², for |r| ≤ 0.87: 2^−28.7 and 2^−58.4.
static const double cos_f32[] = {0x1.555554p-5, -0x1.6c1148p-10, 0x1.9b008p-16};
static const double cos_f64[] = {0x1.5555555555555p-5,  -0x1.6c16c16c1659ap-10,
                                 0x1.a01a019e6ab7cp-16, -0x1.27e4f90493b87p-22,
                                 0x1.1eea623c00fep-29,  -0x1.8fd144b96ac96p-37};

typedef struct Reduced {
    Val high, low; // the remainder
    Val quadrant;  // an integer whose two lowest bits count quarter turns
} Reduced;

// x ≥ 0 as k π/2 + high + low.
static Reduced reduce(MthBuild *b, Val x) {
    Val rounder = constant(b, 0x1.8p23, 0x1.8p52);
    Val minus1 = constant(b, -0x1.921fb6p0, -0x1.921fb54442d18p0);
    Val minus2 = constant(b, 0x1.777a5cp-25, -0x1.1a62633145c07p-54);
    Val minus3 = constant(b, 0x1.ee59dap-50, 0x1.f1976b7ed8fbcp-110);
    Val shifted = fused(b, x, constant(b, 0x1.45f306p-1, 0x1.45f306dc9c883p-1), rounder);
    Val k = sub(b, shifted, rounder);
    Val first = fused(b, k, minus1, x); // exact
    // first + k · minus2, with the error of the product and of the sum.
    Val second = mul(b, k, minus2);
    Val second_low = fused(b, k, minus2, negated(b, second));
    Val sum = add(b, first, second), back = sub(b, sum, first);
    Val lost = add(b, sub(b, first, sub(b, sum, back)), sub(b, second, back));
    Val low = add(b, lost, fused(b, k, minus3, second_low));
    Val high = add(b, sum, low);
    return (Reduced){high, add(b, sub(b, sum, high), low), bits(b, shifted)};
}

static Val sine_part(MthBuild *b, Reduced r, Val square) {
    Val p = polynomial_by_type(b, square, sin_f32, sin_f64);
    return add(b, r.high, fused(b, mul(b, square, r.high), p, r.low));
}

static Val cosine_part(MthBuild *b, Reduced r, Val square) {
    Val p = polynomial_by_type(b, square, cos_f32, cos_f64), one = number(b, 1);
    Val half = mul(b, square, number(b, 0.5));
    Val whole = sub(b, one, half);
    Val lost = sub(b, sub(b, one, whole), half);
    Val rest = fused(b, mul(b, square, square), p, negated(b, mul(b, r.high, r.low)));
    return add(b, whole, add(b, lost, rest));
}

// The sine of x + turns · π/2, x ≥ 0.
static Val sine_ahead(MthBuild *b, Val x, int64_t turns) {
    Val beyond = less(b, constant(b, 0x1p21, 0x1p48), x);
    Reduced r = reduce(b, choose(b, beyond, sub(b, x, x), x)); // inf − inf is NaN
    Val square = mul(b, r.high, r.high);
    Val quadrant = turns == 0 ? r.quadrant : int_add(b, r.quadrant, mth_int_const(b, turns));
    // The lowest bit, moved into the exponent: a normal number or +0.
    Val odd = left(b, int_and(b, quadrant, mth_int_const(b, 1)), b->type == F32 ? 29 : 61);
    Val is_odd = differ(b, of_bits(b, odd), number(b, 0));
    Val value = choose(b, is_odd, cosine_part(b, r, square), sine_part(b, r, square));
    Val flip = int_and(b, left(b, quadrant, b->type == F32 ? 30 : 62), sign_mask(b));
    return of_bits(b, int_xor(b, bits(b, value), flip));
}

Val mth_build_sin(MthBuild *b, const Val *arg) {
    Val value = sine_ahead(b, magnitude(b, arg[0]), 0);
    Val sign = int_and(b, bits(b, arg[0]), sign_mask(b));
    return of_bits(b, int_xor(b, bits(b, value), sign));
}

Val mth_build_cos(MthBuild *b, const Val *arg) {
    return sine_ahead(b, magnitude(b, arg[0]), 1);
}
