// The exponential, and what is an exponential and one division: sigmoid, silu, gelu_tanh, tanh.
//
// Coefficients are minimax polynomials computed with Sollya's fpminimax
// (scripts/coefficients.sollya); the comments give the error of the polynomial alone. π and log 2
// are split into constants of the type, the first of them rounded to nearest.
#include "maths/build.h"

// (e^r − 1 − r) / r² for |r| ≤ 0.348: 2^−28.2 of e^r in F32, 2^−57.9 in F64.
static const double exp_f32[] = {0x1.fffffcp-2, 0x1.55548ep-3, 0x1.5558ap-5, 0x1.123c5ep-7,
                                 0x1.6a6316p-10};
static const double exp_f64[] = {
    0x1.000000000000ap-1,  0x1.55555555554f6p-3,  0x1.55555555505d6p-5,  0x1.11111111287bp-7,
    0x1.6c16c184c6689p-10, 0x1.a01a012783e6dp-13, 0x1.a0199851bc815p-16, 0x1.71df28fc9ddb8p-19,
    0x1.28af1b211f4b3p-22, 0x1.ad7dda9143fb8p-26};

// (2^r − 1) / r for |r| ≤ 0.502: 2^−28.0 of 2^r in F32, 2^−57.3 in F64.
static const double power_f32[] = {0x1.62e43p-1,  0x1.ebfbd8p-3,  0x1.c6af7p-5,
                                   0x1.3b308cp-7, 0x1.5f0f82p-10, 0x1.3fbc78p-13};
static const double power_f64[] = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5a6p-3,  0x1.c6b08d704a123p-5,  0x1.3b2ab6fb9fcedp-7,
    0x1.5d87fe78a0b72p-10, 0x1.4309130faa988p-13, 0x1.ffcbfc5be5f3dp-17, 0x1.62bfc58ea759p-20,
    0x1.b525384e73782p-24, 0x1.e61ee361ec4d3p-28, 0x1.e9546d9be0d06p-32};

// x = k log 2 + r. Adding 1.5·2^23 (1.5·2^52) rounds k to an integer and leaves it in the low bits
// of the sum, from where shifts carry it into exponents; the other bits fall off.
MthExp mth_exp_parts(MthBuild *b, Val x, Val low) {
    Val rounder = constant(b, 0x1.8p23, 0x1.8p52), one = number(b, 1);
    Val shifted = fused(b, x, constant(b, 0x1.715476p0, 0x1.71547652b82fep0), rounder);
    Val k = sub(b, shifted, rounder);
    Val log2_high = constant(b, -0x1.62e43p-1, -0x1.62e42fefa39efp-1);
    Val log2_low = constant(b, 0x1.05c61p-29, -0x1.abc9e3b39803fp-56);
    Val high = fused(b, k, log2_high, x); // exact
    Val rest = low == MTH_NO_LOW ? mul(b, k, log2_low) : fused(b, k, log2_low, low);
    Val r = add(b, high, rest);
    Val tail = fused(b, mul(b, r, r), polynomial_by_type(b, r, exp_f32, exp_f64), rest);
    // 1 + high + tail with the rounding error of 1 + high put back.
    Val whole = add(b, one, high);
    Val lost = sub(b, high, sub(b, whole, one));
    MthExp e = {.part = add(b, whole, add(b, lost, tail))};

    int64_t mantissa = b->type == F32 ? 23 : 52;
    Val exponent = left(b, bits(b, shifted), mantissa);
    Val half = left(b, right(b, bits(b, shifted), 1), mantissa);
    e.scale1 = of_bits(b, int_add(b, half, bits(b, one)));
    e.scale2 = of_bits(b, int_add(b, int_sub(b, exponent, half), bits(b, one)));
    return e;
}

Val mth_exp_scaled(MthBuild *b, MthExp e, Val x) {
    return mul(b, mul(b, x, e.scale1), e.scale2);
}

// y = k + r. k + bias comes into the low bits of a sum as above, and from there into the exponent.
Val mth_power_of_two(MthBuild *b, Val x, Val x_low, Val factor, Val factor_low, int64_t bias) {
    double offset = (double)bias;
    Val rounder = constant(b, 0x1.8p23 + offset, 0x1.8p52 + offset);
    Val shifted = fused(b, x, factor, rounder);
    Val r = fused(b, x, factor, sub(b, rounder, shifted));
    if (factor_low != MTH_NO_LOW)
        r = fused(b, x, factor_low, r);
    if (x_low != MTH_NO_LOW)
        r = fused(b, x_low, factor, r);
    Val part = fused(b, polynomial_by_type(b, r, power_f32, power_f64), r, number(b, 1));
    Val exponent = left(b, bits(b, shifted), b->type == F32 ? 23 : 52);
    return of_bits(b, int_add(b, bits(b, part), exponent));
}

// Beyond the limits the result is +inf and +0 in any case.
Val mth_build_exp(MthBuild *b, const Val *arg) {
    Val x = at_most(b, arg[0], constant(b, 89, 710));
    x = at_least(b, x, constant(b, -104, -746));
    MthExp e = mth_exp_parts(b, x, MTH_NO_LOW);
    return mth_exp_scaled(b, e, e.part);
}

// factor / (1 + e^−(y + low)). For y < 0 it is factor · e^y / (1 + e^y), whose power of two is
// applied last, so that the tail keeps its accuracy down to subnormal results.
static Val logistic_times(MthBuild *b, Val factor, Val y, Val low) {
    Val one = number(b, 1), below = less(b, y, number(b, 0));
    Val minus = at_least(b, negated(b, magnitude(b, y)), constant(b, -110, -760));
    if (low != MTH_NO_LOW)
        low = choose(b, below, low, negated(b, low));
    MthExp e = mth_exp_parts(b, minus, low);
    Val denominator = add(b, one, mth_exp_scaled(b, e, e.part));
    Val fraction = quotient(b, mul(b, factor, choose(b, below, e.part, one)), denominator);
    e.scale1 = choose(b, below, e.scale1, one);
    e.scale2 = choose(b, below, e.scale2, one);
    return mth_exp_scaled(b, e, fraction);
}

Val mth_build_sigmoid(MthBuild *b, const Val *arg) {
    return logistic_times(b, number(b, 1), arg[0], MTH_NO_LOW);
}

// Where x is limited from below the result is −0; so silu(−inf) = −0.
Val mth_build_silu(MthBuild *b, const Val *arg) {
    Val factor = at_least(b, arg[0], constant(b, -110, -760));
    return logistic_times(b, factor, arg[0], MTH_NO_LOW);
}

// 2u = 2 sqrt(2/π) (x + 0.044715 x³) = x (c + d x²) in two numbers.
typedef struct TanhArgument {
    Val square; // x²
    Val y, y_low;
} TanhArgument;

static Val tanh_c(MthBuild *b) {
    return constant(b, 0x1.988454p0, 0x1.9884533d43651p0);
}

static TanhArgument tanh_argument(MthBuild *b, Val x) {
    Val c = tanh_c(b);
    Val c_low = constant(b, -0x1.857936p-25, -0x1.cbc0d30ebfd15p-54);
    Val d = constant(b, 0x1.2444f2p-4, 0x1.2444f2a4d8b4bp-4);
    Val d_low = constant(b, 0x1.49b16ap-29, -0x1.6c843a29d1c7p-61);

    Val square = mul(b, x, x);
    Val square_low = fused(b, x, x, negated(b, square));
    Val cubic = mul(b, d, square);
    Val cubic_low = fused(b, d, square, negated(b, cubic));
    cubic_low = fused(b, d, square_low, fused(b, d_low, square, cubic_low));
    // c + cubic with its rounding error; either may be the larger.
    Val sum = add(b, c, cubic), back = sub(b, sum, c);
    Val lost = add(b, sub(b, c, sub(b, sum, back)), sub(b, cubic, back));
    Val sum_low = add(b, lost, add(b, cubic_low, c_low));
    Val y = mul(b, x, sum);
    Val y_low = fused(b, x, sum_low, fused(b, x, sum, negated(b, y)));
    return (TanhArgument){square, y, y_low};
}

// x (1 + tanh u) / 2 = x / (1 + e^−2u), u = sqrt(2/π) (x + 0.044715 x³).
Val mth_build_gelu_tanh(MthBuild *b, const Val *arg) {
    Val limit = constant(b, 14, 30);
    Val x = at_least(b, at_most(b, arg[0], limit), negated(b, limit));
    TanhArgument a = tanh_argument(b, x);
    return logistic_times(b, at_least(b, arg[0], negated(b, limit)), a.y, a.y_low);
}

// With e = e^−2u and y' = (2u)' = c + 3 d x² the derivative is D = e (1 + e − x y') / (1 + e)² at
// −x and 1 − D at x, for x ≥ 0. D changes its sign at 0.75 and is −0 from the limit on.
Val mth_build_gelu_tanh_slope(MthBuild *b, const Val *arg) {
    Val x = at_most(b, magnitude(b, arg[0]), constant(b, 14, 30)), one = number(b, 1);
    TanhArgument a = tanh_argument(b, x);
    Val minus = at_least(b, negated(b, a.y), constant(b, -120, -780));
    MthExp e = mth_exp_parts(b, minus, negated(b, a.y_low));
    Val denominator = add(b, one, mth_exp_scaled(b, e, e.part));
    Val three_d = constant(b, 0x1.b6676cp-3, 0x1.b6676bf7450fp-3);
    Val slope = fused(b, three_d, a.square, tanh_c(b));
    Val both = fused(b, negated(b, x), slope, denominator);
    Val fraction = quotient(b, both, mul(b, denominator, denominator));
    Val below = mth_exp_scaled(b, e, mul(b, e.part, fraction));
    return choose(b, less(b, arg[0], number(b, 0)), below, sub(b, one, below));
}

// (tanh x − x) / x³ as a polynomial in x² for |x| ≤ 1: 2^−27.7 of tanh in F32, 2^−59.8 in F64.
static const double tanh_f32[] = {-0x1.55553cp-2, 0x1.110be6p-3, -0x1.b96288p-5, 0x1.600bd6p-6,
                                  -0x1.04675p-7,  0x1.2db79ep-9, -0x1.7806d8p-12};
static const double tanh_f64[] = {
    -0x1.555555555554fp-2,  0x1.1111111110b23p-3,  -0x1.ba1ba1b9dd9c7p-5,  0x1.664f4878775c3p-6,
    -0x1.226e345914f35p-7,  0x1.d6d3aedc90b9ep-9,  -0x1.7da1da8afa141p-10, 0x1.354b4ba34fdfbp-11,
    -0x1.f4dea8f8bcc81p-13, 0x1.939baa0db747cp-14, -0x1.3f4c41b6dc1e2p-15, 0x1.df2057cec519ap-17,
    -0x1.3f43cf5d821e2p-18, 0x1.553301f1e6e0ap-20, -0x1.f442e4092b924p-23, 0x1.6deadb45e80ap-26};

// Below 1 the polynomial, above it 1 − 2 / (e^2|x| + 1), which is 1 from the limit on.
Val mth_build_tanh(MthBuild *b, const Val *arg) {
    Val x = magnitude(b, arg[0]), one = number(b, 1);
    Val square = mul(b, x, x);
    Val p = polynomial_by_type(b, square, tanh_f32, tanh_f64);
    Val small = fused(b, mul(b, x, square), p, x);
    Val limited = at_most(b, x, constant(b, 10, 20));
    Val factor = constant(b, 0x1.715476p1, 0x1.71547652b82fep1); // 2 / log 2
    Val factor_low = constant(b, 0x1.4ae0cp-25, 0x1.777d0ffda0d24p-55);
    Val power = mth_power_of_two(b, limited, MTH_NO_LOW, factor, factor_low, 0);
    Val large = sub(b, one, quotient(b, number(b, 2), add(b, power, one)));
    Val above = less(b, one, x); // a NaN is not, and stays
    return with_sign(b, choose(b, above, large, small), arg[0]);
}
