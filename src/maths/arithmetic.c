// Functions of a few exactly rounded steps: arithmetic, comparisons, choices and roots.
#include "maths/build.h"

Val mth_build_add(MthBuild *b, const Val *arg) {
    return add(b, arg[0], arg[1]);
}

Val mth_build_sub(MthBuild *b, const Val *arg) {
    return sub(b, arg[0], arg[1]);
}

Val mth_build_mul(MthBuild *b, const Val *arg) {
    return mul(b, arg[0], arg[1]);
}

Val mth_build_div(MthBuild *b, const Val *arg) {
    return quotient(b, arg[0], arg[1]);
}

Val mth_build_neg(MthBuild *b, const Val *arg) {
    return negated(b, arg[0]);
}

Val mth_build_abs(MthBuild *b, const Val *arg) {
    return magnitude(b, arg[0]);
}

// A NaN in the first operand fails the comparison and is kept; one in the second is taken.
Val mth_build_min(MthBuild *b, const Val *arg) {
    Val second = either(b, less(b, arg[1], arg[0]), is_nan(b, arg[1]));
    return choose(b, second, arg[1], arg[0]);
}

Val mth_build_max(MthBuild *b, const Val *arg) {
    Val first = either(b, less(b, arg[1], arg[0]), is_nan(b, arg[0]));
    return choose(b, first, arg[0], arg[1]);
}

Val mth_build_pow(MthBuild *b, const Val *arg) {
    check_that(b->exponent >= 0 && b->exponent <= 64);
    if (b->exponent == 0)
        return number(b, 1);
    Val power = arg[0];
    for (int64_t i = 1; i < b->exponent; i++)
        power = mul(b, power, arg[0]);
    return power;
}

Val mth_build_sqrt(MthBuild *b, const Val *arg) {
    return root(b, arg[0]);
}

Val mth_build_rsqrt(MthBuild *b, const Val *arg) {
    return quotient(b, number(b, 1), root(b, arg[0]));
}

// max(x, +0): −0 gives +0, and a NaN fails the comparison and stays.
Val mth_build_relu(MthBuild *b, const Val *arg) {
    Val zero = number(b, 0);
    return choose(b, less_equal(b, arg[0], zero), zero, arg[0]);
}

Val mth_build_select(MthBuild *b, const Val *arg) {
    return choose(b, differ(b, arg[0], number(b, 0)), arg[1], arg[2]);
}

Val mth_build_lt(MthBuild *b, const Val *arg) {
    return less(b, arg[0], arg[1]);
}

Val mth_build_le(MthBuild *b, const Val *arg) {
    return less_equal(b, arg[0], arg[1]);
}

Val mth_build_gt(MthBuild *b, const Val *arg) {
    return less(b, arg[1], arg[0]);
}

Val mth_build_ge(MthBuild *b, const Val *arg) {
    return less_equal(b, arg[1], arg[0]);
}

Val mth_build_eq(MthBuild *b, const Val *arg) {
    return equal(b, arg[0], arg[1]);
}

Val mth_build_copy(MthBuild *b, const Val *arg) {
    (void)b;
    return arg[0];
}
