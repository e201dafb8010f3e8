// Building step programs: one small function a step, so that a program reads like the formula it
// computes. Internal to src/maths.
//
// Equal steps are made once, so a builder may ask for `one(b)` or `bits(b, x)` as often as it
// likes. Every function returns the number of its step.
#ifndef PRESK_MATHS_BUILD_H
#define PRESK_MATHS_BUILD_H

#include "maths/maths.h"

enum { MTH_STEPS_MAX = 192 }; // no program is longer

typedef uint32_t Val; // a step

typedef struct MthBuild {
    DType type;       // F64 or F32
    int64_t exponent; // of pow
    uint32_t count;
    MthStep steps[MTH_STEPS_MAX];
} MthBuild;

Val mth_step(MthBuild *b, MthOp op, Val x, Val y, Val z);
Val mth_float_const(MthBuild *b, double value); // exactly representable in the type
Val mth_int_const(MthBuild *b, int64_t value);
Val mth_shift(MthBuild *b, MthOp op, Val x, int64_t count);

// A constant by type: the F32 value and the F64 one.
static inline Val constant(MthBuild *b, double f32, double f64) {
    return mth_float_const(b, b->type == F32 ? f32 : f64);
}
static inline Val infinity(MthBuild *b) {
    return mth_float_const(b, __builtin_inf());
}
static inline Val number(MthBuild *b, double value) {
    return mth_float_const(b, value);
}
static inline Val integer(MthBuild *b, int64_t i32, int64_t i64) {
    return mth_int_const(b, b->type == F32 ? i32 : i64);
}
static inline Val add(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_ADD, x, y, 0);
}
static inline Val sub(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_SUB, x, y, 0);
}
static inline Val mul(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_MUL, x, y, 0);
}
static inline Val quotient(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_DIV, x, y, 0);
}
static inline Val root(MthBuild *b, Val x) {
    return mth_step(b, MTH_STEP_SQRT, x, 0, 0);
}
static inline Val fused(MthBuild *b, Val x, Val y, Val z) { // x * y + z, rounded once
    return mth_step(b, MTH_STEP_FMA, x, y, z);
}
static inline Val negated(MthBuild *b, Val x) {
    return mth_step(b, MTH_STEP_NEG, x, 0, 0);
}
static inline Val magnitude(MthBuild *b, Val x) {
    return mth_step(b, MTH_STEP_ABS, x, 0, 0);
}
static inline Val less(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_LT, x, y, 0);
}
static inline Val less_equal(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_LE, x, y, 0);
}
static inline Val equal(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_EQ, x, y, 0);
}
static inline Val differ(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_NE, x, y, 0);
}
static inline Val is_nan(MthBuild *b, Val x) {
    return mth_step(b, MTH_STEP_NE, x, x, 0);
}
static inline Val either(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_OR, x, y, 0);
}
static inline Val choose(MthBuild *b, Val truth, Val x, Val y) { // x where truth, else y
    return mth_step(b, MTH_STEP_SELECT, truth, x, y);
}
static inline Val choose_int(MthBuild *b, Val truth, Val x, Val y) {
    return mth_step(b, MTH_STEP_ISELECT, truth, x, y);
}
static inline Val int_add(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_IADD, x, y, 0);
}
static inline Val int_sub(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_ISUB, x, y, 0);
}
static inline Val int_and(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_IAND, x, y, 0);
}
static inline Val int_or(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_IOR, x, y, 0);
}
static inline Val int_xor(MthBuild *b, Val x, Val y) {
    return mth_step(b, MTH_STEP_IXOR, x, y, 0);
}
static inline Val left(MthBuild *b, Val x, int64_t count) {
    return mth_shift(b, MTH_STEP_SHL, x, count);
}
static inline Val right(MthBuild *b, Val x, int64_t count) {
    return mth_shift(b, MTH_STEP_SHR, x, count);
}
static inline Val bits(MthBuild *b, Val x) {
    return mth_step(b, MTH_STEP_BITS, x, 0, 0);
}
static inline Val of_bits(MthBuild *b, Val x) {
    return mth_step(b, MTH_STEP_FLOAT, x, 0, 0);
}

// x limited to at most (at least) `limit`; a NaN stays.
static inline Val at_most(MthBuild *b, Val x, Val limit) {
    return choose(b, less(b, limit, x), limit, x);
}
static inline Val at_least(MthBuild *b, Val x, Val limit) {
    return choose(b, less(b, x, limit), limit, x);
}

// A polynomial by Horner's rule, one fma a coefficient; coefficients from the constant upwards.
Val mth_polynomial(MthBuild *b, Val x, uint32_t count, const double *coefficients);
#define polynomial(b, x, array) mth_polynomial((b), (x), COUNT_OF(array), (array))
// The same with one table for each type.
#define polynomial_by_type(b, x, f32, f64)                                                         \
    ((b)->type == F32 ? polynomial(b, x, f32) : polynomial(b, x, f64))

static inline Val sign_mask(MthBuild *b) {
    return integer(b, INT32_MIN, INT64_MIN);
}
// |x| with the sign of `from`; x is not negative.
static inline Val with_sign(MthBuild *b, Val x, Val from) {
    return of_bits(b, int_or(b, bits(b, x), int_and(b, bits(b, from), sign_mask(b))));
}

// ---- parts that several functions share -------------------------------------------------------

// e ^ x as `part` · 2^k, part in [0.70, 1.42], and the factors of 2^k, `scale1` · `scale2`: the
// product part · scale1 · scale2, in this order, rounds at most once more (to a subnormal or an
// infinity). Right for k within ±250 (F32) or ±2000 (F64).
typedef struct MthExp {
    Val part, scale1, scale2;
} MthExp;
// e ^ (x + low) where |low| is far below |x|; MTH_NO_LOW: none. The part's error is below 0.53 ulp.
enum { MTH_NO_LOW = UINT32_MAX };
MthExp mth_exp_parts(MthBuild *b, Val x, Val low);
Val mth_exp_scaled(MthBuild *b, MthExp e, Val x); // x · 2^k
// 2^(y + bias) for y = (x + x_low) (factor + factor_low), in fewer steps: the error is below 1 ulp
// where y is known to half an ulp of 1. Either low part may be MTH_NO_LOW. y + bias lies within
// ±126 (F32) or ±1022 (F64).
Val mth_power_of_two(MthBuild *b, Val x, Val x_low, Val factor, Val factor_low, int64_t bias);
// log(1 + e) for e in [0, 1].
Val mth_log1p_unit(MthBuild *b, Val e);

// ---- the functions ------------------------------------------------------------------------------
// Each takes its arguments as an array and gives the step of the result.
#define FUNCTION(name, arity, meaning) Val mth_build_##name(MthBuild *b, const Val *arg);
#include "maths/function.def"
#undef FUNCTION

#endif
