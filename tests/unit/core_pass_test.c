// Host scalars, folding and dead code.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/core_text.h"
#include "support/partition_check.h"

static int setup(void **state) {
    static Context context;
    context_init(&context);
    *state = &context;
    return 0;
}

static int teardown(void **state) {
    context_free(*state);
    return 0;
}

// ---- scalars --------------------------------------------------------------------------------

// The scalar written as `text`, in a program with dim B and D.
static CoreScalar scalar(Context *c, CoreProgram **program, const char *text) {
    Str whole = str_format(c->arena,
                           "dim B\ndim D\nfn f() -> ℝ {\n  %%0 : ℝ = scalar %s\n"
                           "  return %%0\n}\n",
                           text);
    *program = core_of_legal_text(c, whole.at);
    return core_fn(*program, 1)->lets.at[0].attr->scalar;
}

static void exact_folding(void **state) {
    Context *c = *state;
    static const char *const cases[][2] = {
        {"1 / 3", "1/3"},
        {"(1 / 3) * 3", "1"},
        {"2 ^ 10", "1024"},
        {"2 ^ (-2)", "0.25"},
        {"(1 / 8) - (1 / 4)", "-0.125"},
        {"sqrt(16)", "4"},
        {"max(-1/3, min(2, 1/7))", "1/7"},
        {"relu(-2)", "0"},
        {"neg(abs(-5))", "-5"},
        {"[B * D] / D", "B"},
        {"D * 2", "[2 * D]"},
        {"(B + 1) - B", "1"},
        {"D / B", "D / B"},
        {"(D / B) * 1/2", "(D / B) * 0.5"},
        {"sqrt([4 * D])", "sqrt([4 * D])"},
        {"1 - (@beta ^ @t)", "1 - (@beta ^ @t)"},
        {"@beta ^ 2", "@beta ^ 2"},
        {"@beta * (-0.5)", "@beta * (-0.5)"},
    };
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        CoreProgram *p;
        CoreScalar s = scalar(c, &p, cases[i][0]);
        assert_string_equal(core_scalar_text(p, s, c->arena).at, cases[i][1]);
    }
}

static bool hyper(void *data, Name name, double *value) {
    const Context *c = data;
    if (str_is(name_str(c->names, name), "beta"))
        *value = 0.9;
    else if (str_is(name_str(c->names, name), "t"))
        *value = 5;
    else
        return false;
    return true;
}

static void values(void **state) {
    Context *c = *state;
    const int64_t dims[3] = {-1, 3, 16};
    // 0.9^5 by squaring: (0.9 · 0.9⁴), each step rounded.
    const double square = 0.9 * 0.9, fourth = square * square;
    const struct {
        const char *text;
        DType type;
        double value; // NAN: there is none
    } cases[] = {
        {"1/3", F64, 1.0 / 3},
        {"1/3", F32, (double)(1.0f / 3)},
        {"1/3", BF16, 0.333984375}, // 0x3EAB
        {"16777217", F32, 16777216},
        {"1 / sqrt(D)", F64, 0.25},
        {"sqrt(D / B)", F64, sqrt(16.0 / 3)},
        {"[B * D - 1]", F64, 47},
        {"0.1 + 0.2", F64, 0.3}, // exact before it is rounded
        {"@beta ^ @t", F64, 0.9 * fourth},
        {"@beta ^ 3", F64, 0.9 * square},
        {"1 - (@beta ^ @t)", F64, 1 - 0.9 * fourth},
        {"@beta * 1/3", F64, 0.9 * (1.0 / 3)},
        {"@beta", F32, (double)0.9f},
        {"@t ^ @beta", F64, NAN}, // no integer power
        {"@gamma", F64, NAN},
        {"B / [B - 3]", F64, NAN},
        {"B ^ (-2)", F64, 1.0 / 9},
        {"@beta ^ (-2)", F64, NAN},
    };
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        CoreProgram *p;
        CoreScalar s = scalar(c, &p, cases[i].text);
        double value = -1;
        bool ok = core_scalar_value(p, s, dims, hyper, c, cases[i].type, &value);
        if (ok == isnan(cases[i].value) || (ok && value != cases[i].value))
            fail_msg("%s gives %d %.17g", cases[i].text, ok, value);
    }
    CoreProgram *p;
    CoreScalar s = scalar(c, &p, "D");
    double value;
    assert_false(core_scalar_value(p, s, (const int64_t[]){-1, 3, -1}, NULL, NULL, F64, &value));
    s = scalar(c, &p, "@t");
    assert_false(core_scalar_value(p, s, dims, NULL, NULL, F64, &value));
}

static void beyond_the_limit(void **state) {
    Context *c = *state;
    CoreProgram *p = core_program_new(c, c->arena);
    CoreScalar two = core_scalar_rational(p, rational_of_int(c->arena, 2));
    CoreScalar zero = core_scalar_rational(p, rational_of_int(c->arena, 0));
    CoreScalar big = core_scalar_rational(p, rational_of_int(c->arena, 1000000000));
    assert_int_equal(core_scalar_apply(p, MTH_div, 0, two, zero), 0);
    assert_int_equal(core_scalar_power(p, two, big), 0);
    assert_int_equal(core_scalar_power(p, zero, core_scalar_apply(p, MTH_neg, 0, two, 0)), 0);
    assert_int_equal(core_scalar_apply(p, MTH_log, 0, zero, 0), 0);
    assert_int_equal(core_scalar_apply(p, MTH_sqrt, 0, core_scalar_apply(p, MTH_neg, 0, two, 0), 0),
                     0);
    CoreScalar hyper_name = core_scalar_hyper(p, name_of_c(c->names, "lr"));
    assert_int_equal(core_scalar_apply(p, MTH_div, 0, hyper_name, zero), 0);
    // Equal scalars are one.
    assert_int_equal(core_scalar_apply(p, MTH_add, 0, two, two),
                     core_scalar_rational(p, rational_of_int(c->arena, 4)));
    assert_int_equal(hyper_name, core_scalar_hyper(p, name_of_c(c->names, "lr")));
}

static void substitution(void **state) {
    Context *c = *state;
    CoreProgram *p;
    CoreScalar s = scalar(c, &p, "sqrt(D / B) + @lr");
    Extent by[3] = {0, extent_int(p->extents, 4), EXTENT_NONE};
    assert_string_equal(core_scalar_text(p, core_scalar_substitute(p, s, by), c->arena).at,
                        "sqrt(D / 4) + @lr");
    by[2] = extent_int(p->extents, 36);
    assert_string_equal(core_scalar_text(p, core_scalar_substitute(p, s, by), c->arena).at,
                        "3 + @lr");
    by[1] = extent_int(p->extents, 0);
    assert_int_equal(core_scalar_substitute(p, s, by), 0);
}

// ---- folding --------------------------------------------------------------------------------

static void folding(void **state) {
    Context *c = *state;
    CoreProgram *p = core_of_legal_text(
        c, "fn f(%0 : ℝ[2]) -> ℝ[2] {\n  %1 : ℝ = scalar 1/3\n  %2 : ℝ = scalar 0\n"
           "  %3 : ℝ = add %1 %1\n  %4 : ℝ = pow %3 2\n  %5 : ℝ = div %1 %2\n"
           "  %6 : idx[2] = lt %2 %1\n  %7 : ℝ = select %6 %1 %2\n  %8 : ℝ[1] = copy %4\n"
           "  %9 : ℝ[2] = mul %0 %4\n  %10 : ℝ = neg %4\n  %11 : ℝ = scalar @lr\n"
           "  %12 : ℝ = mul %11 %10\n  %13 : ℝ = div %1 %11\n"
           "  %14 : ℝ = sqrt %11\n  return %9\n}\n");
    core_fold(p);
    assert_string_equal(
        core_print(p, c->arena).at,
        "fn f(%0 : ℝ[2]) -> ℝ[2] {\n  %1 : ℝ = scalar 1/3\n  %2 : ℝ = scalar 0\n"
        "  %3 : ℝ = scalar 2/3\n  %4 : ℝ = scalar 4/9\n  %5 : ℝ = div %1 %2\n"
        "  %6 : idx[2] = lt %2 %1\n  %7 : ℝ = select %6 %1 %2\n  %8 : ℝ[1] = copy %4\n"
        "  %9 : ℝ[2] = mul %0 %4\n  %10 : ℝ = scalar -4/9\n  %11 : ℝ = scalar @lr\n"
        "  %12 : ℝ = scalar @lr * (-4/9)\n  %13 : ℝ = div %1 %11\n"
        "  %14 : ℝ = sqrt %11\n  return %9\n}\n");
    Str errors;
    assert_true(core_verify(p, c->arena, &errors));
}

// ---- dead code ------------------------------------------------------------------------------

static void dead_code(void **state) {
    Context *c = *state;
    CoreProgram *p = core_of_legal_text(
        c, "fn f(%0 : ℝ[2], %1 : ℝ[2]) -> ℝ[2] {\n  %2 : ℝ[2] = exp %0\n  %3 : ℝ = sum %2 over 0\n"
           "  %4 : ℝ[2] = neg %2\n  %5 : ℝ[2] = abs %4\n  %6 : ℝ[2] = sqrt %5\n"
           "  %7 : ℝ[2] = cos %6\n  return %6\n}\n");
    core_partition(p);
    core_dce(p);
    // %2 was read by the sum too: dead or not, it stays outside the group.
    const char *expected =
        "fn f(%0 : ℝ[2], %1 : ℝ[2]) -> ℝ[2] grouped {\n  %2 : ℝ[2] = exp %0\n"
        "  %3 : ℝ[2] = neg %2 in %5\n  %4 : ℝ[2] = abs %3 in %5\n  %5 : ℝ[2] = sqrt %4\n"
        "  return %5\n}\n";
    assert_string_equal(core_print(p, c->arena).at, expected);
    CoreFn *fn = core_fn(p, 1);
    assert_int_equal(fn->remarks.count, 1); // the one of %6, whose reader is gone, has gone too
    assert_int_equal(fn->remarks.at[0].let, 2);
    assert_int_equal(fn->remarks.at[0].reader, 3);
    assert_int_equal(fn->remarks.at[0].other, CORE_NO_GROUP);
    assert_int_equal(partition_fault(p, 1, false, c->arena).size, 0);
    core_dce(p);
    assert_string_equal(core_print(p, c->arena).at, expected);
}

static void dead_code_without_partition(void **state) {
    Context *c = *state;
    CoreProgram *p = core_of_legal_text(
        c, "fn f(%0 : ℝ, %1 : ℝ) -> ℝ {\n  %2 : ℝ = scalar 2\n  %3 : ℝ = mul %2 %2\n"
           "  %4 : ℝ = exp %1\n  %5 : ℝ = add %3 %1\n  return %5\n}\n"
           "fn g(%0 : ℝ) -> ℝ {\n  %1 : ℝ = exp %0\n  return %0\n}\n");
    core_fold(p);
    core_dce(p);
    assert_string_equal(core_print(p, c->arena).at,
                        "fn f(%0 : ℝ, %1 : ℝ) -> ℝ {\n  %2 : ℝ = scalar 4\n"
                        "  %3 : ℝ = add %2 %1\n  return %3\n}\n\n"
                        "fn g(%0 : ℝ) -> ℝ {\n  return %0\n}\n");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(exact_folding),
        TEST(values),
        TEST(beyond_the_limit),
        TEST(substitution),
        TEST(folding),
        TEST(dead_code),
        TEST(dead_code_without_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
