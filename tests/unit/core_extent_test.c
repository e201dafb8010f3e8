// Extents: one id for each polynomial, exact division, no silent overflow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/extent.h"

typedef struct Fixture {
    Context context;
    ExtentTable *table;
    DimId b, t, d;
    Extent B, T, D;
} Fixture;

static int setup(void **state) {
    static Fixture f;
    context_init(&f.context);
    f.table = extent_table_new(f.context.arena, f.context.names);
    f.b = extent_dim_add(f.table, (Dim){.name = name_of_c(f.context.names, "B"), .global = true});
    f.t = extent_dim_add(f.table, (Dim){.name = name_of_c(f.context.names, "T"), .global = true});
    f.d = extent_dim_add(f.table, (Dim){.name = name_of_c(f.context.names, "D"), .global = true});
    f.B = extent_dim(f.table, f.b);
    f.T = extent_dim(f.table, f.t);
    f.D = extent_dim(f.table, f.d);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    context_free(&((Fixture *)*state)->context);
    return 0;
}

#define N(value)  extent_int(f->table, (value))
#define ADD(a, b) extent_add(f->table, (a), (b))
#define SUB(a, b) extent_sub(f->table, (a), (b))
#define MUL(a, b) extent_mul(f->table, (a), (b))
#define DIV(a, b) extent_div(f->table, (a), (b))

static const char *text(Fixture *f, Extent a) {
    return extent_text(f->table, a, f->context.arena).at;
}

static void equal_polynomials_have_one_id(void **state) {
    Fixture *f = *state;
    assert_int_equal(MUL(f->B, f->T), MUL(f->T, f->B));
    // (B + T)^2 = B^2 + 2BT + T^2
    Extent sum = ADD(f->B, f->T);
    Extent parts = ADD(ADD(MUL(f->B, f->B), MUL(N(2), MUL(f->B, f->T))), MUL(f->T, f->T));
    assert_int_equal(MUL(sum, sum), parts);
    // (B - 1)(B + 1) - B^2 + 1 = 0
    Extent product = MUL(SUB(f->B, N(1)), ADD(f->B, N(1)));
    assert_int_equal(ADD(SUB(product, MUL(f->B, f->B)), N(1)), N(0));
    assert_int_equal(SUB(f->B, f->B), N(0));
    assert_int_not_equal(f->B, f->T);
    assert_int_not_equal(ADD(f->B, N(1)), f->B);
}

static void integers(void **state) {
    Fixture *f = *state;
    int64_t value;
    assert_true(extent_is_int(f->table, N(-7), &value));
    assert_int_equal(value, -7);
    assert_true(extent_is_int(f->table, N(0), &value));
    assert_int_equal(value, 0);
    assert_true(extent_is_int(f->table, DIV(MUL(N(6), f->B), f->B), &value));
    assert_int_equal(value, 6);
    assert_false(extent_is_int(f->table, f->B, NULL));
    assert_false(extent_is_int(f->table, EXTENT_PACK, NULL));
}

static void exact_division(void **state) {
    Fixture *f = *state;
    Extent merged = MUL(MUL(f->B, f->T), MUL(N(4), f->D));
    assert_int_equal(DIV(merged, MUL(N(2), f->T)), MUL(N(2), MUL(f->B, f->D)));
    Extent sum = ADD(MUL(N(6), f->B), MUL(N(9), MUL(f->B, f->T)));
    assert_int_equal(DIV(sum, MUL(N(3), f->B)), ADD(N(2), MUL(N(3), f->T)));
    assert_int_equal(DIV(N(0), f->B), N(0));
    assert_int_equal(DIV(N(-6), N(-2)), N(3));
    // Where it is not exact there is none.
    assert_int_equal(DIV(f->D, N(2)), EXTENT_NONE);
    assert_int_equal(DIV(f->B, f->T), EXTENT_NONE);
    assert_int_equal(DIV(ADD(f->B, N(1)), f->B), EXTENT_NONE);
    assert_int_equal(DIV(f->B, ADD(f->B, N(1))), EXTENT_NONE);
    assert_int_equal(DIV(f->B, MUL(f->B, f->B)), EXTENT_NONE);
    assert_int_equal(DIV(f->B, N(0)), EXTENT_NONE);
}

static void overflow_is_none(void **state) {
    Fixture *f = *state;
    Extent big = N(INT64_MAX);
    assert_int_equal(ADD(big, N(1)), EXTENT_NONE);
    assert_int_not_equal(ADD(big, N(-1)), EXTENT_NONE);
    assert_int_equal(MUL(big, N(2)), EXTENT_NONE);
    assert_int_equal(SUB(N(-2), big), EXTENT_NONE);
    assert_int_equal(SUB(N(0), N(INT64_MIN)), EXTENT_NONE);
    assert_int_equal(DIV(N(INT64_MIN), N(-1)), EXTENT_NONE);
    assert_int_equal(MUL(MUL(N(INT64_C(1) << 32), f->B), MUL(N(INT64_C(1) << 31), f->T)),
                     EXTENT_NONE);
    assert_int_equal(ADD(EXTENT_NONE, f->B), EXTENT_NONE);
    assert_int_equal(MUL(EXTENT_PACK, f->B), EXTENT_NONE);
    Extent power = f->B;
    for (int i = 0; i < 6; i++)
        power = MUL(power, power);
    assert_int_not_equal(power, EXTENT_NONE); // B^64
    assert_int_equal(MUL(power, f->B), EXTENT_NONE);
}

static void substitution(void **state) {
    Fixture *f = *state;
    Extent by[4] = {0};
    by[f->b] = ADD(f->T, N(1));
    // B * T + B with B = T + 1: T^2 + 2T + 1
    Extent a = ADD(MUL(f->B, f->T), f->B);
    assert_int_equal(extent_substitute(f->table, a, by),
                     ADD(ADD(MUL(f->T, f->T), MUL(N(2), f->T)), N(1)));
    assert_int_equal(extent_substitute(f->table, f->T, by), f->T);
    assert_int_equal(extent_substitute(f->table, EXTENT_PACK, by), EXTENT_PACK);
    by[f->b] = N(INT64_MAX);
    assert_int_equal(extent_substitute(f->table, MUL(N(2), f->B), by), EXTENT_NONE);
}

static void values(void **state) {
    Fixture *f = *state;
    int64_t by[4] = {-1, 3, 5, -1}, value;
    DimId missing;
    Extent a = SUB(MUL(N(4), MUL(f->B, f->T)), N(1));
    assert_true(extent_value(f->table, a, by, &value, &missing));
    assert_int_equal(value, 59);
    assert_false(extent_value(f->table, MUL(f->B, f->D), by, &value, &missing));
    assert_int_equal(missing, f->d);
    by[f->b] = INT64_MAX;
    assert_false(extent_value(f->table, a, by, &value, &missing));
    assert_int_equal(missing, 0);
    assert_true(extent_value(f->table, f->B, by, &value, NULL));
    assert_int_equal(value, INT64_MAX);
    bool set[4] = {false, true, false, true};
    assert_int_equal(extent_dim_outside(f->table, a, set), f->t);
    assert_int_equal(extent_dim_outside(f->table, MUL(f->B, f->D), set), 0);
    assert_true(extent_has_dim(f->table, a, f->b));
    assert_false(extent_has_dim(f->table, a, f->d));
}

static void spelling(void **state) {
    Fixture *f = *state;
    assert_string_equal(text(f, MUL(f->T, MUL(N(4), f->B))), "4 * B * T");
    assert_string_equal(text(f, SUB(f->T, N(1))), "T - 1");
    assert_string_equal(text(f, SUB(N(1), f->T)), "-T + 1");
    assert_string_equal(text(f, ADD(MUL(f->B, f->B), MUL(N(-2), f->D))), "B * B - 2 * D");
    assert_string_equal(text(f, N(0)), "0");
    assert_string_equal(text(f, N(INT64_MIN)), "-9223372036854775808");
    assert_string_equal(text(f, EXTENT_PACK), "...");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(equal_polynomials_have_one_id),
        TEST(integers),
        TEST(exact_division),
        TEST(overflow_is_none),
        TEST(substitution),
        TEST(values),
        TEST(spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
