// Exact rationals: arithmetic against GMP's mpq, rounding against MPFR at the formats' precision
// and exponent range, ties and neighbours by construction.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rational.h"

#include <mpfr.h>

typedef struct Test {
    Heap heap;
    Arena *arena;
    uint64_t random;
} Test;

static int setup(void **state) {
    Test *test = calloc(1, sizeof *test);
    test->arena = arena_new(&test->heap, "test");
    test->random = 20240229;
    *state = test;
    return 0;
}

static int teardown(void **state) {
    Test *test = *state;
    heap_free(&test->heap);
    free(test);
    return 0;
}

static uint64_t next(Test *test) { // splitmix64
    uint64_t z = test->random += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static void assert_text(Test *test, const Rational *value, const char *expected) {
    assert_non_null(value);
    assert_string_equal(rational_text(test->arena, value).at, expected);
}

static const Rational *of(Test *test, const char *text) {
    const Rational *value = rational_of_text(test->arena, str_of(text));
    assert_non_null(value);
    return value;
}

static const Rational *decimal(Test *test, const char *text) {
    return rational_of_decimal(test->arena, str_of(text));
}

static void decimals(void **state) {
    Test *test = *state;
    assert_text(test, decimal(test, "0"), "0");
    assert_text(test, decimal(test, "1_000"), "1000");
    assert_text(test, decimal(test, "0.00001"), "0.00001");
    assert_text(test, decimal(test, "1e-8"), "0.00000001");
    assert_text(test, decimal(test, "0.02"), "0.02");
    assert_text(test, decimal(test, "12.50"), "12.5");
    assert_text(test, decimal(test, "1.5E+3"), "1500");
    assert_text(test, decimal(test, "2.5e1_0"), "25000000000");
    assert_text(test, decimal(test, "000.125"), "0.125");
    assert_text(test, decimal(test, "123456789012345678901234567890.5"),
                "123456789012345678901234567890.5");
    assert_non_null(decimal(test, "1e4096"));
    assert_non_null(decimal(test, "1e-4096"));
    static const char *const refused[] = {
        "1e4097", "1e-4097", "1e99999999999999999999", "", ".5", "1.", "1e", "1e+", "x", "1x",
        "_1",     "-1"};
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        assert_null(decimal(test, refused[i]));
    static char digits[40001];
    memset(digits, '7', 40000);
    assert_null(decimal(test, digits));
}

static void texts(void **state) {
    Test *test = *state;
    assert_text(test, of(test, "6/4"), "1.5");
    assert_text(test, of(test, "-1/3"), "-1/3");
    assert_text(test, of(test, "-0"), "0");
    assert_text(test, of(test, "10/5"), "2");
    assert_text(test, of(test, "0.50"), "0.5");
    assert_text(test, of(test, "-12.25"), "-12.25");
    // A decimal of up to twenty places is short; beyond it the fraction is written.
    assert_text(test, decimal(test, "1e-20"), "0.00000000000000000001");
    assert_text(test, decimal(test, "1e-21"), "1/1000000000000000000000");
    static const char *const refused[] = {"",     "-",   "1/0", "1/", "/2",  "1.5/2", "+1",
                                          "1/-2", "1_0", "1.",  ".5", "1e3", "1/2 ",  " 1"};
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        assert_null(rational_of_text(test->arena, str_of(refused[i])));
}

static void small_arithmetic(void **state) {
    Test *test = *state;
    Arena *a = test->arena;
    assert_text(test, rational_add(a, of(test, "1/3"), of(test, "1/6")), "0.5");
    assert_text(test, rational_sub(a, of(test, "1/3"), of(test, "1/3")), "0");
    assert_text(test, rational_sub(a, of(test, "1/3"), of(test, "1/2")), "-1/6");
    assert_text(test, rational_mul(a, of(test, "-2/3"), of(test, "3/4")), "-0.5");
    assert_text(test, rational_div(a, of(test, "1"), of(test, "-3")), "-1/3");
    assert_null(rational_div(a, of(test, "1"), of(test, "0")));
    assert_text(test, rational_neg(a, of(test, "0")), "0");
    assert_text(test, rational_neg(a, of(test, "2")), "-2");
    assert_text(test, rational_abs(a, of(test, "-2/7")), "2/7");
    assert_text(test, rational_mod(a, of(test, "7"), of(test, "3")), "1");
    assert_text(test, rational_mod(a, of(test, "-7"), of(test, "3")), "2");
    assert_text(test, rational_mod(a, of(test, "7"), of(test, "-3")), "-2");
    assert_text(test, rational_mod(a, of(test, "-7"), of(test, "-3")), "-1");
    assert_text(test, rational_mod(a, of(test, "-6"), of(test, "3")), "0");
    assert_text(test, rational_mod(a, of(test, "7.5"), of(test, "2")), "1.5");
    assert_text(test, rational_mod(a, of(test, "2"), of(test, "7")), "2");
    assert_null(rational_mod(a, of(test, "2"), of(test, "0")));
    assert_int_equal(rational_compare(of(test, "1/3"), of(test, "0.333")), 1);
    assert_int_equal(rational_compare(of(test, "-1/3"), of(test, "-0.333")), -1);
    assert_int_equal(rational_compare(of(test, "-1"), of(test, "0")), -1);
    assert_int_equal(rational_compare(of(test, "0"), of(test, "-1")), 1);
    assert_int_equal(rational_compare(of(test, "2/6"), of(test, "1/3")), 0);
    assert_int_equal(rational_compare(of(test, "0"), of(test, "-0")), 0);
}

static void powers(void **state) {
    Test *test = *state;
    Arena *a = test->arena;
    assert_text(test, rational_pow(a, of(test, "-2/3"), 3), "-8/27");
    assert_text(test, rational_pow(a, of(test, "-2/3"), -2), "2.25");
    assert_text(test, rational_pow(a, of(test, "0"), 0), "1");
    assert_text(test, rational_pow(a, of(test, "0"), 5), "0");
    assert_null(rational_pow(a, of(test, "0"), -1));
    assert_text(test, rational_pow(a, of(test, "-1"), INT64_MAX), "-1");
    assert_text(test, rational_pow(a, of(test, "-1"), INT64_MIN), "1");
    assert_text(test, rational_pow(a, of(test, "10"), 25), "10000000000000000000000000");
    assert_non_null(rational_pow(a, of(test, "2"), 16383)); // 16,384 bits
    assert_null(rational_pow(a, of(test, "2"), 16384));
    assert_null(rational_pow(a, of(test, "2"), INT64_MAX));
    assert_null(rational_pow(a, of(test, "3/2"), INT64_MIN));
    assert_null(rational_pow(a, of(test, "3"), 11000)); // 17,435 bits
    const Rational *large = rational_pow(a, of(test, "2"), 16383);
    assert_true(rational_size_ok(large));
    assert_false(rational_size_ok(rational_add(a, large, large)));
    assert_false(rational_size_ok(rational_div(a, of(test, "1"), rational_add(a, large, large))));
}

static void integers(void **state) {
    Test *test = *state;
    int64_t value = 0;
    static const int64_t edges[] = {0, 1, -1, INT64_MAX, INT64_MIN, 42};
    for (size_t i = 0; i < COUNT_OF(edges); i++) {
        assert_true(rational_is_int(rational_of_int(test->arena, edges[i]), &value));
        assert_true(value == edges[i]);
    }
    assert_text(test, rational_of_int(test->arena, INT64_MIN), "-9223372036854775808");
    assert_false(rational_is_int(of(test, "9223372036854775808"), &value));
    assert_false(rational_is_int(of(test, "-9223372036854775809"), NULL));
    assert_false(rational_is_int(of(test, "18446744073709551617"), NULL));
    assert_false(rational_is_int(of(test, "1/2"), NULL));
    assert_true(rational_is_int(of(test, "4/2"), NULL));
}

// A random fraction whose parts have up to `bits` bits each.
static void random_fraction(Test *test, mpq_t value, unsigned bits) {
    mpz_ptr part[2] = {mpq_numref(value), mpq_denref(value)};
    for (int i = 0; i < 2; i++) {
        mpz_set_ui(part[i], 0);
        unsigned size = 1 + (unsigned)(next(test) % bits);
        for (unsigned done = 0; done < size; done += 64) {
            mpz_mul_2exp(part[i], part[i], 64);
            mpz_add_ui(part[i], part[i], next(test));
        }
        mpz_fdiv_r_2exp(part[i], part[i], size);
        mpz_setbit(part[i], size - 1);
    }
    if (next(test) & 1)
        mpz_neg(part[0], part[0]);
    mpq_canonicalize(value);
}

static const Rational *of_mpq(Test *test, const mpq_t value) {
    char *text = mpq_get_str(NULL, 10, value);
    const Rational *result = of(test, text);
    free(text);
    return result;
}

static void assert_is(Test *test, const Rational *value, const mpq_t expected) {
    assert_int_equal(rational_compare(value, of_mpq(test, expected)), 0);
    Str text = rational_text(test->arena, value);
    assert_int_equal(rational_compare(rational_of_text(test->arena, text), value), 0);
}

static void random_arithmetic(void **state) {
    Test *test = *state;
    mpq_t x, y, z;
    mpq_inits(x, y, z, NULL);
    for (int i = 0; i < 600; i++) {
        random_fraction(test, x, i % 2 ? 64 : 700);
        random_fraction(test, y, i % 3 ? 130 : 1000);
        const Rational *a = of_mpq(test, x), *b = of_mpq(test, y);
        mpq_add(z, x, y);
        assert_is(test, rational_add(test->arena, a, b), z);
        mpq_sub(z, x, y);
        assert_is(test, rational_sub(test->arena, a, b), z);
        mpq_mul(z, x, y);
        assert_is(test, rational_mul(test->arena, a, b), z);
        mpq_div(z, x, y);
        assert_is(test, rational_div(test->arena, a, b), z);
        int order = mpq_cmp(x, y);
        assert_int_equal(rational_compare(a, b), (order > 0) - (order < 0));
        arena_reset(test->arena);
    }
    mpq_clears(x, y, z, NULL);
}

// Correctly rounded by MPFR in the format's precision and exponent range.
static double mpfr_rounded(const mpq_t value, DType type) {
    mpfr_prec_t precision = type == F64 ? 53 : type == F32 ? 24 : 8;
    mpfr_exp_t low = mpfr_get_emin(), high = mpfr_get_emax();
    mpfr_t x;
    mpfr_init2(x, precision);
    // MPFR's significand lies in [1/2, 1).
    mpfr_set_emin(type == F64 ? -1073 : type == F32 ? -148 : -132);
    mpfr_set_emax(type == F64 ? 1024 : 128);
    int ternary = mpfr_set_q(x, value, MPFR_RNDN);
    mpfr_subnormalize(x, ternary, MPFR_RNDN);
    double result = mpfr_get_d(x, MPFR_RNDN);
    mpfr_set_emin(low);
    mpfr_set_emax(high);
    mpfr_clear(x);
    return result;
}

// Values at every scale of the formats: around 1, among the subnormals, beyond the range.
static void random_rounding(void **state) {
    Test *test = *state;
    mpq_t x;
    mpq_init(x);
    for (int i = 0; i < 12000; i++) {
        random_fraction(test, x, 120);
        static const int scales[] = {0, 130, -130, 150, 1024, -1030, -1074, 128, -149, -133};
        int scale = scales[i % 10] + (int)(next(test) % 9) - 4;
        // First to about 1, so that the scale decides where it lies.
        scale -= (int)mpz_sizeinbase(mpq_numref(x), 2) - (int)mpz_sizeinbase(mpq_denref(x), 2);
        if (scale >= 0)
            mpq_mul_2exp(x, x, (mp_bitcnt_t)scale);
        else
            mpq_div_2exp(x, x, (mp_bitcnt_t)-scale);
        const Rational *a = of_mpq(test, x);
        for (DType type = F64; type <= BF16; type++) {
            double got = rational_round(a, type), expected = mpfr_rounded(x, type);
            if (memcmp(&got, &expected, sizeof got) != 0)
                fail_msg("%s to %s: %a, not %a", rational_text(test->arena, a).at, dtype_text(type),
                         got, expected);
        }
        arena_reset(test->arena);
    }
    mpq_clear(x);
}

static double neighbour(double value, DType type) {
    if (type == F64)
        return nextafter(value, INFINITY);
    if (type == F32)
        return (double)nextafterf((float)value, INFINITY);
    return (double)f32_of_bf16((uint16_t)(bf16_of_f32((float)value) + 1));
}

// Halfway between neighbours the even one is taken; a hair beside it the nearer one.
static void ties(void **state) {
    Test *test = *state;
    const Rational *two = rational_of_int(test->arena, 2), *hair = decimal(test, "1e-2000");
    Arena *arena = arena_new(&test->heap, "step");
    for (int i = 0; i < 3000; i++) {
        DType type = (DType)(i % 3);
        int lowest = type == F64 ? -1074 : type == F32 ? -149 : -133;
        int precision = type == F64 ? 53 : type == F32 ? 24 : 8;
        int range = type == F64 ? 1023 - 53 - lowest : 127 - precision - lowest;
        uint64_t kept = next(test) >> (64 - precision);
        int place = lowest + (i % 4 ? (int)(next(test) % (uint64_t)range) : 0);
        double low = ldexp((double)kept, place), high = neighbour(low, type);
        bool even = fmod(low / (high - low), 2) == 0;
        const Rational *middle = rational_div(
            arena,
            rational_add(arena, rational_of_double(arena, low), rational_of_double(arena, high)),
            two);
        assert_true(rational_round(middle, type) == (even ? low : high));
        assert_true(rational_round(rational_neg(arena, middle), type) == (even ? -low : -high));
        assert_true(rational_round(rational_add(arena, middle, hair), type) == high);
        assert_true(rational_round(rational_sub(arena, middle, hair), type) == low);
        arena_reset(arena);
    }
}

static void extremes(void **state) {
    Test *test = *state;
    const Rational *zero = rational_of_int(test->arena, 0);
    assert_true(rational_round(zero, F64) == 0 && !signbit(rational_round(zero, F64)));
    static const struct {
        const char *text;
        double f64, f32, bf16;
    } rows[] = {
        {"0.1", 0.1, 0x1.99999ap-4, 0x1.9ap-4},
        {"1e38", 1e38, 0x1.2ced32p126, 0x1.2cp126},
        {"1e39", 1e39, INFINITY, INFINITY},
        {"1e309", INFINITY, INFINITY, INFINITY},
        {"1e4096", INFINITY, INFINITY, INFINITY},
        {"1e-4096", 0, 0, 0},
        {"1e-300", 1e-300, 0, 0},
        {"1e-40", 1e-40, 0x1.16c2p-133, 0x1p-133},
        {"5e-324", 0x1p-1074, 0, 0},
        {"2.4e-324", 0, 0, 0},         // below half of the smallest
        {"2.5e-324", 0x1p-1074, 0, 0}, // above
        {"0.999", 0.999, 0x1.ff7ceep-1, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const Rational *a = decimal(test, rows[i].text);
        assert_true(rational_round(a, F64) == rows[i].f64);
        assert_true(rational_round(a, F32) == rows[i].f32);
        assert_true(rational_round(a, BF16) == rows[i].bf16);
    }
    // The last finite value and the tie beyond it, which overflows.
    for (DType type = F64; type <= BF16; type++) {
        double largest = type == F64   ? 0x1.fffffffffffffp1023
                         : type == F32 ? 0x1.fffffep127
                                       : 0x1.fep127;
        double half = type == F64 ? 0x1p970 : type == F32 ? 0x1p103 : 0x1p119;
        const Rational *tie = rational_add(test->arena, rational_of_double(test->arena, largest),
                                           rational_of_double(test->arena, half));
        assert_true(rational_round(tie, type) == INFINITY);
        assert_true(rational_round(rational_neg(test->arena, tie), type) == -INFINITY);
        const Rational *below =
            rational_sub(test->arena, tie, rational_of_double(test->arena, 0x1p-99));
        assert_true(rational_round(below, type) == largest);
    }
}

static void doubles(void **state) {
    Test *test = *state;
    assert_text(test, rational_of_double(test->arena, 0.75), "0.75");
    assert_text(test, rational_of_double(test->arena, -0.0), "0");
    assert_text(test, rational_of_double(test->arena, 0x1p70), "1180591620717411303424");
    for (int i = 0; i < 3000; i++) {
        uint64_t bits = next(test);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value) || value == 0)
            continue;
        assert_true(rational_round(rational_of_double(test->arena, value), F64) == value);
        arena_reset(test->arena);
    }
    assert_true(rational_round(rational_of_double(test->arena, 0x1p-1074), F64) == 0x1p-1074);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(decimals),        TEST(texts),    TEST(small_arithmetic),
        TEST(powers),          TEST(integers), TEST(random_arithmetic),
        TEST(random_rounding), TEST(ties),     TEST(extremes),
        TEST(doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
