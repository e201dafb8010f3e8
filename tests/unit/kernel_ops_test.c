// Every operation of kop.def that works lane by lane: values at the corners by hand, float
// arithmetic on random numbers against MPFR, and lanes against scalars.
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const rules[] = {
#define KOP(name, text, arity, rule, lane, meaning) [KRN_##name] = #rule,
#include "kernel/kop.def"
#undef KOP
};

// ---- one operation as a kernel --------------------------------------------------------------

// A kernel out[i] = op(a[i], b[i], c[i]) for i below `count`, with the operands' bits in u64, i1 as
// 0 or 1; floats travel by FLOAT and BITS, so those two are tested by everything else here.
typedef struct Bench {
    Context context;
    KrnCode *code;
    uint32_t lanes, count;
} Bench;

static KrnValue unpack(KrnBuilder *b, char sort, bool wide, KrnValue bits) {
    KrnScalar integer = wide ? KRN_I64 : KRN_I32;
    if (sort == 'T')
        return krn_convert(b, KRN_I1, bits);
    KrnValue value = wide ? bits : krn_convert(b, integer, bits);
    return sort == 'F' ? krn_op1(b, KRN_FLOAT, value) : value;
}

static KrnValue pack(KrnBuilder *b, KrnValue value) {
    KrnScalar scalar = krn_type_of(b->kernel, value).scalar;
    if (scalar == KRN_F32 || scalar == KRN_F64)
        value = krn_op1(b, KRN_BITS, value);
    scalar = krn_type_of(b->kernel, value).scalar;
    return scalar == KRN_I64 ? value : krn_convert(b, KRN_I64, value);
}

static void bench_open(Bench *bench, KrnOp op, bool wide, int64_t shift, uint32_t lanes,
                       uint32_t count) {
    *bench = (Bench){0};
    memset(bench, 0, sizeof *bench);
    context_init(&bench->context);
    Arena *arena = bench->context.arena;
    Kernel *kernel = krn_new(arena, bench->context.names, krn_op_text[op]);
    KrnBuilder b = krn_builder(kernel, bench->context.names);
    KrnValue value[3] = {0};
    static const char *const names[] = {"a", "b", "c", "out"};
    uint32_t buffer[4];
    for (uint32_t i = 0; i < 4; i++)
        buffer[i] = krn_buffer(&b, names[i], U64, count, 0, i < 3 ? KRN_IN : KRN_OUT);
    KrnValue index = krn_loop(&b, 0, count, lanes, KRN_WHOLE, 0, NULL, NULL);
    for (uint32_t i = 0; i < krn_arity(op); i++) {
        KrnIndex at = krn_index(buffer[i], 0);
        krn_index_add(&at, 1, index);
        value[i] =
            unpack(&b, op >= KRN_ZIP_LOW ? 'F' : rules[op][i], wide, krn_load(&b, &at, lanes, 1));
    }
    bool shifts = op == KRN_SHL || op == KRN_SHR;
    KrnValue result = shifts               ? krn_shift(&b, op, value[0], shift)
                      : krn_arity(op) == 1 ? krn_op1(&b, op, value[0])
                      : krn_arity(op) == 2 ? krn_op2(&b, op, value[0], value[1])
                                           : krn_op3(&b, op, value[0], value[1], value[2]);
    KrnIndex at = krn_index(buffer[3], 0);
    krn_index_add(&at, 1, index);
    krn_store(&b, &at, 1, pack(&b, result), false);
    krn_end(&b, 0, NULL, NULL);
    Str errors;
    if (!krn_verify(kernel, arena, &errors))
        fail_msg("%s", errors.at);
    bench->code = krn_code(kernel, arena);
}

static void bench_close(Bench *bench) {
    context_free(&bench->context);
}

static void bench_run(const Bench *bench, uint64_t *const *in, uint64_t *out) {
    krn_interpret(bench->code, (void *[]){in[0], in[1], in[2], out}, 0, 0);
}

// ---- by hand --------------------------------------------------------------------------------

enum { NARROW = 1, WIDE = 2, BOTH = 3 };

typedef struct Row {
    KrnOp op;
    int width;
    int64_t shift;
    double f[4]; // operands that are floats and a float result, by position
    int64_t i[4];
} Row;

#define FLOATS(op, ...)                                                                            \
    {                                                                                              \
        KRN_##op, BOTH, 0, {__VA_ARGS__}, {                                                        \
            0                                                                                      \
        }                                                                                          \
    }
#define FLOATS32(op, ...)                                                                          \
    {                                                                                              \
        KRN_##op, NARROW, 0, {__VA_ARGS__}, {                                                      \
            0                                                                                      \
        }                                                                                          \
    }
#define FLOATS64(op, ...)                                                                          \
    {                                                                                              \
        KRN_##op, WIDE, 0, {__VA_ARGS__}, {                                                        \
            0                                                                                      \
        }                                                                                          \
    }
#define COMPARE(op, a, b, t)                                                                       \
    {                                                                                              \
        KRN_##op, BOTH, 0, {a, b}, {                                                               \
            0, 0, t, 0                                                                             \
        }                                                                                          \
    }
#define INTS(op, ...)                                                                              \
    {                                                                                              \
        KRN_##op, BOTH, 0, {0}, {                                                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define INTS32(op, ...)                                                                            \
    {                                                                                              \
        KRN_##op, NARROW, 0, {0}, {                                                                \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define INTS64(op, ...)                                                                            \
    {                                                                                              \
        KRN_##op, WIDE, 0, {0}, {                                                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define SHIFT(op, w, n, ...)                                                                       \
    {                                                                                              \
        KRN_##op, w, n, {0}, {                                                                     \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define MIX(op, w, f, i)                                                                           \
    { KRN_##op, w, 0, f, i }
#define LIST(...)                                                                                  \
    { __VA_ARGS__ }

static const Row rows[] = {
    // Unary results stand at position 1, binary ones at 2, those of three operands at 3.
    FLOATS(ADD, 0.0, -0.0, 0.0),
    FLOATS(ADD, -0.0, -0.0, -0.0),
    FLOATS(ADD, INFINITY, -INFINITY, NAN),
    FLOATS(ADD, NAN, 1, NAN),
    FLOATS32(ADD, 16777216, 1, 16777216),
    FLOATS32(ADD, 16777216, 3, 16777220),
    FLOATS64(ADD, 16777216, 1, 16777217),
    FLOATS32(ADD, 0x1p-149, 0x1p-149, 0x1p-148),
    FLOATS64(ADD, 0x1p-1074, 0x1p-1074, 0x1p-1073),
    FLOATS32(ADD, 0x1.fffffep127, 0x1p103, INFINITY),
    FLOATS32(ADD, 0x1.fffffep127, 0x1p102, 0x1.fffffep127),
    FLOATS(SUB, 1, 1, 0.0),
    FLOATS(SUB, -0.0, 0.0, -0.0),
    FLOATS(SUB, INFINITY, INFINITY, NAN),
    FLOATS32(SUB, 0x1p-126, 0x1p-149, 0x1.fffffcp-127),
    FLOATS(MUL, 0.0, -3, -0.0),
    FLOATS(MUL, 0.0, INFINITY, NAN),
    FLOATS32(MUL, 0x1p-75, 0x1p-75, 0.0),
    FLOATS32(MUL, 0x1.000002p-75, 0x1p-75, 0x1p-149),
    FLOATS32(MUL, 1e20, 1e20, INFINITY),
    FLOATS(DIV, 1, 0.0, INFINITY),
    FLOATS(DIV, 1, -0.0, -INFINITY),
    FLOATS(DIV, 0.0, 0.0, NAN),
    FLOATS(DIV, -1, INFINITY, -0.0),
    FLOATS32(DIV, 1, 3, 0x1.555556p-2),
    FLOATS64(DIV, 1, 3, 0x1.5555555555555p-2),
    FLOATS(SQRT, 4, 2),
    FLOATS(SQRT, -0.0, -0.0),
    FLOATS(SQRT, -1, NAN),
    FLOATS(SQRT, INFINITY, INFINITY),
    FLOATS32(SQRT, 2, 0x1.6a09e6p0),
    FLOATS64(SQRT, 2, 0x1.6a09e667f3bcdp0),
    FLOATS32(SQRT, 0x1p-148, 0x1p-74),
    // (1 + 2⁻¹²)² = 1 + 2⁻¹¹ + 2⁻²⁴: the last bit is lost by a rounded product only.
    FLOATS32(FMA, 0x1.001p0, 0x1.001p0, -0x1.002p0, 0x1p-24),
    FLOATS64(FMA, 0x1.000001p0, 0x1.000001p0, -0x1.000002p0, 0x1p-48),
    FLOATS64(FMA, 0x1.00000001p0, 0x1.00000001p0, -0x1.00000002p0, 0x1p-64),
    FLOATS(FMA, 0.0, INFINITY, 1, NAN),
    FLOATS(FMA, 0.0, 1, -0.0, 0.0),
    FLOATS(FMA, -0.0, 1, -0.0, -0.0),
    FLOATS(NEG, 0.0, -0.0),
    FLOATS(NEG, INFINITY, -INFINITY),
    FLOATS(ABS, -0.0, 0.0),
    FLOATS(ABS, -3, 3),
    COMPARE(LT, 1, 2, 1),
    COMPARE(LT, 2, 2, 0),
    COMPARE(LT, -0.0, 0.0, 0),
    COMPARE(LT, NAN, 1, 0),
    COMPARE(LT, 1, NAN, 0),
    COMPARE(LT, -INFINITY, -1, 1),
    COMPARE(LE, 2, 2, 1),
    COMPARE(LE, 3, 2, 0),
    COMPARE(LE, 0.0, -0.0, 1),
    COMPARE(LE, NAN, NAN, 0),
    COMPARE(EQ, 0.0, -0.0, 1),
    COMPARE(EQ, NAN, NAN, 0),
    COMPARE(EQ, INFINITY, INFINITY, 1),
    COMPARE(EQ, 1, 2, 0),
    COMPARE(NE, NAN, NAN, 1),
    COMPARE(NE, 0.0, -0.0, 0),
    COMPARE(NE, 1, 2, 1),
    INTS(AND, 1, 1, 1),
    INTS(AND, 1, 0, 0),
    INTS(AND, 0, 0, 0),
    INTS(OR, 0, 0, 0),
    INTS(OR, 1, 0, 1),
    INTS(OR, 1, 1, 1),
    INTS(NOT, 0, 1),
    INTS(NOT, 1, 0),
    MIX(SELECT, BOTH, LIST(0, -0.0, 1, -0.0), LIST(1)),
    MIX(SELECT, BOTH, LIST(0, NAN, 1, 1), LIST(0)),
    INTS(ISELECT, 1, -7, 8, -7),
    INTS(ISELECT, 0, -7, 8, 8),
    INTS(IADD, -1, 1, 0),
    INTS32(IADD, INT32_MAX, 1, INT32_MIN),
    INTS64(IADD, INT64_MAX, 1, INT64_MIN),
    INTS32(ISUB, INT32_MIN, 1, INT32_MAX),
    INTS64(ISUB, INT64_MIN, 1, INT64_MAX),
    INTS(ISUB, 0, 5, -5),
    INTS(IMUL, -3, 7, -21),
    INTS32(IMUL, 65536, 65536, 0),
    INTS32(IMUL, INT32_MIN, -1, INT32_MIN),
    INTS64(IMUL, INT64_MIN, -1, INT64_MIN),
    INTS64(IMUL, INT64_C(1) << 32, INT64_C(1) << 32, 0),
    INTS(IAND, 12, 10, 8),
    INTS(IAND, -1, INT32_MIN, INT32_MIN),
    INTS(IOR, 12, 10, 14),
    INTS(IXOR, 12, 10, 6),
    INTS(IXOR, -1, 0, -1),
    INTS(ILT, -1, 0, 1),
    INTS(ILT, 0, -1, 0),
    INTS(ILT, 3, 3, 0),
    INTS(IEQ, 3, 3, 1),
    INTS(IEQ, 3, -3, 0),
    SHIFT(SHL, BOTH, 0, -5, -5),
    SHIFT(SHL, NARROW, 31, 3, INT32_MIN),
    SHIFT(SHL, WIDE, 63, 3, INT64_MIN),
    SHIFT(SHR, BOTH, 1, -5, -3),
    SHIFT(SHR, NARROW, 31, INT32_MIN, -1),
    SHIFT(SHR, WIDE, 63, INT64_MAX, 0),
    MIX(BITS, NARROW, LIST(-0.0), LIST(0, INT32_MIN)),
    MIX(BITS, NARROW, LIST(1), LIST(0, 0x3F800000)),
    MIX(BITS, WIDE, LIST(1), LIST(0, 0x3FF0000000000000)),
    MIX(FLOAT, NARROW, LIST(0, 1e-45), LIST(1)),
    MIX(FLOAT, NARROW, LIST(0, -INFINITY), LIST(-0x800000)),
    MIX(FLOAT, WIDE, LIST(0, -0.0), LIST(INT64_MIN)),
};

static uint64_t bits_of(double value, bool wide) {
    float narrow = (float)value;
    uint64_t bits = 0;
    if (wide)
        memcpy(&bits, &value, 8);
    else
        memcpy(&bits, &narrow, 4);
    return bits;
}

static bool is_nan_bits(uint64_t bits, bool wide) {
    return wide ? (bits & INT64_MAX) > 0x7FF0000000000000 : (bits & INT32_MAX) > 0x7F800000;
}

// The bits that a row gives at a position whose sort is `sort`.
static uint64_t row_bits(const Row *row, uint32_t position, char sort, bool wide) {
    if (sort == 'F')
        return bits_of(row->f[position], wide);
    return wide ? (uint64_t)row->i[position] : (uint64_t)(uint32_t)row->i[position];
}

static bool check_row(const Row *row, bool wide) {
    Bench bench;
    uint32_t arity = krn_arity(row->op);
    char sort = rules[row->op][arity + 1];
    uint64_t operand[3] = {0}, got, expected = row_bits(row, arity, sort, wide);
    for (uint32_t i = 0; i < arity; i++)
        operand[i] = row_bits(row, i, rules[row->op][i], wide);
    bench_open(&bench, row->op, wide, row->shift, 1, 1);
    bench_run(&bench, (uint64_t *[]){operand, operand + 1, operand + 2}, &got);
    bench_close(&bench);
    if (!wide)
        got = (uint32_t)got;
    bool nan = sort == 'F' && is_nan_bits(expected, wide);
    if (nan ? is_nan_bits(got, wide) : got == expected)
        return true;
    print_error("%s, %d bits, row %d: %#llx, not %#llx\n", krn_op_text[row->op], wide ? 64 : 32,
                (int)(row - rows), (unsigned long long)got, (unsigned long long)expected);
    return false;
}

static void corners_by_hand(void **state) {
    (void)state;
    bool seen[KRN_OP_COUNT][2] = {{false}};
    int wrong = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int wide = 0; wide < 2; wide++) {
            if (!(rows[i].width & (wide ? WIDE : NARROW)))
                continue;
            seen[rows[i].op][wide] = true;
            wrong += !check_row(&rows[i], wide);
        }
    }
    assert_int_equal(wrong, 0);
    for (uint32_t op = 0; op < KRN_OP_COUNT; op++) {
        if (krn_has_rule((KrnOp)op) && !(seen[op][0] && seen[op][1]))
            fail_msg("`%s` has no row", krn_op_text[op]);
    }
}

// ---- random numbers -------------------------------------------------------------------------

enum { COUNT = 4000 };

static uint64_t next_random(uint64_t *state) { // SplitMix64, Steele et al. 2014
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// Bits of all floats, or of numbers near 1 where sums cancel and products round.
static uint64_t random_bits(uint64_t *state, bool wide) {
    uint64_t bits = next_random(state);
    double near = (double)(int64_t)(bits >> 40) * 0x1p-22 - 1;
    if (next_random(state) % 2)
        bits = bits_of(near, wide);
    return wide ? bits : (uint32_t)bits;
}

static double value_of(uint64_t bits, bool wide) {
    double value;
    float narrow;
    memcpy(&value, &bits, 8);
    memcpy(&narrow, &bits, 4);
    return wide ? value : (double)narrow;
}

static double exact(KrnOp op, const double *a, bool wide) {
    mpfr_t x, y, z;
    mpfr_set_emin(wide ? -1073 : -148);
    mpfr_set_emax(wide ? 1024 : 128);
    mpfr_inits2(53, x, y, z, (mpfr_ptr)0);
    mpfr_set_d(x, a[0], MPFR_RNDN);
    mpfr_set_d(y, a[1], MPFR_RNDN);
    mpfr_set_d(z, a[2], MPFR_RNDN);
    mpfr_t result;
    mpfr_init2(result, wide ? 53 : 24);
    int inexact = op == KRN_ADD   ? mpfr_add(result, x, y, MPFR_RNDN)
                  : op == KRN_SUB ? mpfr_sub(result, x, y, MPFR_RNDN)
                  : op == KRN_MUL ? mpfr_mul(result, x, y, MPFR_RNDN)
                  : op == KRN_DIV ? mpfr_div(result, x, y, MPFR_RNDN)
                  : op == KRN_FMA ? mpfr_fma(result, x, y, z, MPFR_RNDN)
                                  : mpfr_sqrt(result, x, MPFR_RNDN);
    mpfr_subnormalize(result, inexact, MPFR_RNDN);
    double value = mpfr_get_d(result, MPFR_RNDN);
    mpfr_clears(x, y, z, result, (mpfr_ptr)0);
    return value;
}

static void arithmetic_agrees_with_mpfr(void **state) {
    (void)state;
    static const KrnOp ops[] = {KRN_ADD, KRN_SUB, KRN_MUL, KRN_DIV, KRN_SQRT, KRN_FMA};
    static uint64_t in[3][COUNT], out[COUNT];
    uint64_t random = 7;
    for (size_t o = 0; o < COUNT_OF(ops) * 2; o++) {
        KrnOp op = ops[o / 2];
        bool wide = o % 2;
        for (int i = 0; i < 3 * COUNT; i++)
            in[i / COUNT][i % COUNT] = random_bits(&random, wide);
        Bench bench;
        bench_open(&bench, op, wide, 0, 1, COUNT);
        bench_run(&bench, (uint64_t *[]){in[0], in[1], in[2]}, out);
        bench_close(&bench);
        for (int i = 0; i < COUNT; i++) {
            double a[3];
            for (int k = 0; k < 3; k++)
                a[k] = value_of(in[k][i], wide);
            uint64_t expected = bits_of(exact(op, a, wide), wide);
            uint64_t got = wide ? out[i] : (uint32_t)out[i];
            if (got != expected && !(is_nan_bits(got, wide) && is_nan_bits(expected, wide)))
                fail_msg("%s of %a, %a, %a is %a, not %a", krn_op_text[op], a[0], a[1], a[2],
                         value_of(got, wide), value_of(expected, wide));
        }
    }
}

// out[i] of two vectors a, b of n lanes: elements of the lower (upper) halves in turns.
static void zips_take_turns(void **state) {
    (void)state;
    for (uint32_t lanes = 2; lanes <= 64; lanes *= 2)
        for (uint32_t high = 0; high < 2; high++) {
            uint64_t a[64], b[64], out[64];
            for (uint32_t i = 0; i < lanes; i++) {
                a[i] = 0x3f800000 + i; // floats near 1
                b[i] = 0x40000000 + i;
            }
            Bench bench;
            bench_open(&bench, high ? KRN_ZIP_HIGH : KRN_ZIP_LOW, false, 0, lanes, lanes);
            bench_run(&bench, (uint64_t *[]){a, b, a}, out);
            bench_close(&bench);
            for (uint32_t i = 0; i < lanes / 2; i++) {
                assert_int_equal((uint32_t)out[2 * i], a[i + high * lanes / 2]);
                assert_int_equal((uint32_t)out[2 * i + 1], b[i + high * lanes / 2]);
            }
        }
}

// Any number of lanes is the scalar operation, lane by lane.
static void lanes_agree_with_scalars(void **state) {
    (void)state;
    static const uint32_t lanes[] = {2, 3, 4, 5, 8, 13, 16, 32, 64};
    enum { SPAN = 64 * 13 * 5 * 3 };
    static uint64_t in[3][SPAN], one[SPAN], many[SPAN];
    uint64_t random = 9;
    for (uint32_t n = 0; n < KRN_OP_COUNT * 2; n++) {
        KrnOp op = (KrnOp)(n / 2);
        bool wide = n % 2;
        if (!krn_has_rule(op))
            continue;
        for (int i = 0; i < 3 * SPAN; i++) {
            uint64_t bits = random_bits(&random, wide);
            bool truth = rules[op][i / SPAN % 3] == 'T';
            in[i / SPAN][i % SPAN] = truth ? bits & 1 : bits;
        }
        for (size_t l = 0; l < COUNT_OF(lanes) + 1; l++) {
            Bench bench;
            bench_open(&bench, op, wide, 13, l ? lanes[l - 1] : 1, SPAN);
            bench_run(&bench, (uint64_t *[]){in[0], in[1], in[2]}, l ? many : one);
            bench_close(&bench);
            if (l)
                assert_memory_equal(one, many, sizeof one);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corners_by_hand),
        cmocka_unit_test(arithmetic_agrees_with_mpfr),
        cmocka_unit_test(zips_take_turns),
        cmocka_unit_test(lanes_agree_with_scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
