// Element types: expected values come from the definition of the formats (sign, exponent,
// fraction) and from exact midpoints computed in double.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"

// A finite bf16 by its definition: 8 exponent bits, 7 fraction bits.
static double bf16_value(unsigned bits) {
    int exponent = bits >> 7 & 255;
    double fraction = bits & 127;
    double magnitude =
        exponent == 0 ? ldexp(fraction, -126 - 7) : ldexp(128 + fraction, exponent - 127 - 7);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static void sizes_and_names(void **state) {
    (void)state;
    static const struct {
        DType type;
        size_t size;
        const char *text;
        bool real;
        DType arithmetic;
    } rows[] = {{F64, 8, "f64", true, F64},   {F32, 4, "f32", true, F32},
                {BF16, 2, "bf16", true, F32}, {U8, 1, "u8", false, U8},
                {U16, 2, "u16", false, U16},  {U32, 4, "u32", false, U32},
                {U64, 8, "u64", false, U64}};
    assert_int_equal(sizeof rows / sizeof *rows, DTYPE_COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        DType read = DTYPE_COUNT;
        assert_int_equal(dtype_size(rows[i].type), rows[i].size);
        assert_string_equal(dtype_text(rows[i].type), rows[i].text);
        assert_true(dtype_of_text(rows[i].text, strlen(rows[i].text), &read));
        assert_int_equal(read, rows[i].type);
        assert_int_equal(dtype_is_real(rows[i].type), rows[i].real);
        assert_int_equal(dtype_arithmetic(rows[i].type), rows[i].arithmetic);
    }
    DType type = U16;
    assert_false(dtype_of_text("f16", 3, &type));
    assert_false(dtype_of_text("f6", 2, &type));
    assert_false(dtype_of_text("", 0, &type));
    assert_int_equal(type, U16);
}

static void smallest_index_type(void **state) {
    (void)state;
    assert_int_equal(dtype_of_bound(0), U8);
    assert_int_equal(dtype_of_bound(1), U8);
    assert_int_equal(dtype_of_bound(2), U8);
    assert_int_equal(dtype_of_bound(256), U8);
    assert_int_equal(dtype_of_bound(257), U16);
    assert_int_equal(dtype_of_bound(65536), U16);
    assert_int_equal(dtype_of_bound(65537), U32);
    assert_int_equal(dtype_of_bound(UINT64_C(1) << 32), U32);
    assert_int_equal(dtype_of_bound((UINT64_C(1) << 32) + 1), U64);
    assert_int_equal(dtype_of_bound(UINT64_MAX), U64);
}

static void bf16_round_trip(void **state) {
    (void)state;
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = f32_of_bf16((uint16_t)bits);
        if ((bits & 0x7FFF) > 0x7F80) {
            assert_true(isnan(value));
            assert_true(isnan(f32_of_bf16(bf16_of_f32(value))));
            assert_true(isnan(f32_of_bf16(bf16_of_f64((double)value))));
            continue;
        }
        if ((bits & 0x7FFF) == 0x7F80)
            assert_true(isinf(value) && !signbit(value) == !(bits >> 15));
        else
            assert_true((double)value == bf16_value(bits) && !signbit(value) == !(bits >> 15));
        assert_int_equal(bf16_of_f32(value), bits);
        assert_int_equal(bf16_of_f64((double)value), bits);
    }
}

// Between every two neighbours: the midpoint goes to the even one, and the doubles just beside the
// midpoint, which a rounding through f32 would first pull onto it, go to the nearer one.
static void bf16_midpoints(void **state) {
    (void)state;
    for (unsigned low = 0; low <= 0x7F7F; low++) {
        unsigned high = low + 1, even = low & 1 ? high : low;
        double a = bf16_value(low);
        double b = high == 0x7F80 ? 0x1p128 : bf16_value(high); // the next value, were there one
        double middle = a / 2 + b / 2;
        for (unsigned sign = 0; sign < 2; sign++) {
            double s = sign ? -1 : 1;
            unsigned bit = sign << 15;
            assert_int_equal(bf16_of_f64(s * middle), even | bit);
            assert_int_equal(bf16_of_f64(s * nextafter(middle, 0)), low | bit);
            assert_int_equal(bf16_of_f64(s * nextafter(middle, INFINITY)), high | bit);
            float near = (float)middle; // exact
            assert_int_equal(bf16_of_f32((float)s * near), even | bit);
            assert_int_equal(bf16_of_f32((float)s * nextafterf(near, 0)), low | bit);
            assert_int_equal(bf16_of_f32((float)s * nextafterf(near, INFINITY)), high | bit);
        }
    }
}

static void bf16_extremes(void **state) {
    (void)state;
    assert_int_equal(bf16_of_f64(1e300), 0x7F80);
    assert_int_equal(bf16_of_f64(-1e300), 0xFF80);
    assert_int_equal(bf16_of_f64(INFINITY), 0x7F80);
    assert_int_equal(bf16_of_f64(0x1p-1074), 0);
    assert_int_equal(bf16_of_f64(-0x1p-1074), 0x8000);
    assert_int_equal(bf16_of_f64(-0.0), 0x8000);
    assert_int_equal(bf16_of_f64(0x1p-134), 0); // half of the smallest: to even
    assert_int_equal(bf16_of_f64(0x1.8p-134), 1);
    assert_int_equal(bf16_of_f64(0.999), 0x3F80); // as the design notes say
    assert_true(isnan(f32_of_bf16(bf16_of_f64(NAN))));
    // A NaN whose fraction lies in the lower half only must not become an infinity.
    uint32_t bits = 0x7F800001;
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    assert_true(isnan(f32_of_bf16(bf16_of_f32(nan))));
}

static void elements(void **state) {
    (void)state;
    for (DType type = 0; type < DTYPE_COUNT; type++) {
        uint64_t data[8];
        memset(data, 0xA5, sizeof data);
        dtype_set(type, data, 3, 200);
        dtype_set(type, data, 5, 7);
        assert_true(dtype_get(type, data, 3) == 200);
        assert_true(dtype_get(type, data, 5) == 7);
        size_t size = dtype_size(type); // neighbours are untouched
        const unsigned char *bytes = (const unsigned char *)data;
        for (size_t i = 0; i < 3 * size; i++)
            assert_int_equal(bytes[i], 0xA5);
        for (size_t i = 4 * size; i < 5 * size; i++)
            assert_int_equal(bytes[i], 0xA5);
    }
    double wide[1];
    dtype_set(F64, wide, 0, 0.1);
    assert_true(dtype_get(F64, wide, 0) == 0.1);
    dtype_set(F32, wide, 0, 0.1);
    assert_true(dtype_get(F32, wide, 0) == 0x1.99999ap-4);
    dtype_set(BF16, wide, 0, 0.1);
    assert_true(dtype_get(BF16, wide, 0) == 0x1.9ap-4);
    dtype_set(F32, wide, 0, 1e39);
    assert_true(isinf(dtype_get(F32, wide, 0)));
    dtype_set(U32, wide, 0, 4294967295.0);
    assert_true(dtype_get(U32, wide, 0) == 4294967295.0);
    dtype_set(U64, wide, 0, 0x1p63);
    assert_true(dtype_get(U64, wide, 0) == 0x1p63);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_names), cmocka_unit_test(smallest_index_type),
        cmocka_unit_test(bf16_round_trip), cmocka_unit_test(bf16_midpoints),
        cmocka_unit_test(bf16_extremes),   cmocka_unit_test(elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
