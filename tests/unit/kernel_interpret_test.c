// The kernel interpreter against hand-computed values: structure (loops, carries, splits, tails),
// memory (types, strides, bounds of what is touched), conversions. Operations are in
// kernel_ops_test.c.
#include "base/pool.h"
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

typedef struct Fixture {
    Context context;
    Arena *arena;
} Fixture;

static int setup(void **state) {
    Fixture *f = calloc(1, sizeof *f);
    context_init(&f->context);
    f->arena = f->context.arena;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    Fixture *f = *state;
    context_free(&f->context);
    free(f);
    return 0;
}

static Kernel *kernel_of(Fixture *f, const char *text) {
    uint32_t source = source_add(&f->context.sources, STR("test"), str_of(text));
    Kernel *kernel = krn_read(&f->context, f->arena, source);
    if (!kernel)
        fail_msg("%s", diags_render(&f->context.diags, f->arena, DIAG_PLAIN).at);
    return kernel;
}

static void run(Fixture *f, const char *text, void *const *buffers) {
    Kernel *kernel = kernel_of(f, text);
    krn_interpret(krn_code(kernel, f->arena), buffers, 0, kernel->split_count);
}

// ---- loops ----------------------------------------------------------------------------------

static void no_iteration_gives_the_initial_values(void **state) {
    float y[2] = {NAN, NAN};
    run(*state,
        "kernel k { buffer %y : f32[2] out\n"
        "  %0 : f32 = const 3  %1 : f32 = const 4\n"
        "  loop %2 = 5 to 5 step 1 carry %3 : f32 = %0, %4 : f32 = %1 {\n"
        "    %5 : f32 = add %3 %4\n"
        "    next %4, %5\n"
        "  } gives %7, %8\n"
        "  store %y[0] %7  store %y[1] %8 }",
        (void *[]){y});
    assert_true(y[0] == 3 && y[1] == 4);
}

static void carries_move_at_once(void **state) {
    // Fibonacci by exchange, and three values that rotate.
    double y[5];
    run(*state,
        "kernel k { buffer %y : f64[5] out\n"
        "  %0 : f64 = const 0  %1 : f64 = const 1  %2 : f64 = const 2\n"
        "  loop %3 = 0 to 10 step 1 carry %4 : f64 = %0, %5 : f64 = %1 {\n"
        "    %6 : f64 = add %4 %5\n"
        "    next %5, %6\n"
        "  } gives %8, %9\n"
        "  loop %10 = 0 to 10 step 1 carry %11 : f64 = %0, %12 : f64 = %1, %13 : f64 = %2 {\n"
        "    next %12, %13, %11\n"
        "  } gives %15, %16, %17\n"
        "  store %y[0] %8  store %y[1] %9\n"
        "  store %y[2] %15  store %y[3] %16  store %y[4] %17 }",
        (void *[]){y});
    const double expected[] = {55, 89, 1, 2, 0};
    assert_memory_equal(y, expected, sizeof y);
}

static void one_value_feeds_two_carries(void **state) {
    // (a, b) ← (a + b, a + b) from (1, 2): 3, 6, 12; a carry that stays; a carry read after its
    // successor is made.
    float y[4];
    run(*state,
        "kernel k { buffer %y : f32[4] out\n"
        "  %0 : f32 = const 1  %1 : f32 = const 2\n"
        "  loop %2 = 0 to 3 step 1 carry %3 : f32 = %0, %4 : f32 = %1 {\n"
        "    %5 : f32 = add %3 %4\n"
        "    next %5, %5\n"
        "  } gives %7, %8\n"
        "  loop %9 = 0 to 3 step 1 carry %10 : f32 = %0, %11 : f32 = %1 {\n"
        "    %12 : f32 = add %10 %11\n"
        "    %13 : f32 = mul %10 %12\n"
        "    next %13, %11\n"
        "  } gives %15, %16\n"
        "  store %y[0] %7  store %y[1] %8  store %y[2] %15  store %y[3] %16 }",
        (void *[]){y});
    const float expected[] = {12, 12, 255, 2}; // 1·3 = 3, 3·5 = 15, 15·17 = 255
    assert_memory_equal(y, expected, sizeof y);
}

static void loops_nest(void **state) {
    // y[i] = Σ_j Σ_k x[k] · x[j], i of step 2; the middle result feeds the outer carry.
    float x[3] = {1, 2, 4}, y[4] = {NAN, NAN, NAN, NAN};
    run(*state,
        "kernel k { buffer %x : f32[3] in  buffer %y : f32[4] out\n"
        "  %0 : f32 = const 0\n"
        "  loop %1 = 0 to 4 step 2 {\n"
        "    loop %2 = 0 to 3 step 1 carry %3 : f32 = %0 {\n"
        "      %4 : f32 = load %x[%2]\n"
        "      loop %5 = 0 to 3 step 1 carry %6 : f32 = %3 {\n"
        "        %7 : f32 = load %x[%5]\n"
        "        %8 : f32 = fma %4 %7 %6\n"
        "        next %8\n"
        "      } gives %10\n"
        "      next %10\n"
        "    } gives %12\n"
        "    store %y[%1] %12\n"
        "  } }",
        (void *[]){x, y});
    assert_true(y[0] == 49 && y[2] == 49 && isnan(y[1]) && isnan(y[3]));
}

static void indices_step_and_may_be_negative(void **state) {
    // Iterations −7, −4, −1, 2, 5 write 5, 4, 3, 2, 1 from the right.
    float y[13], one = 1;
    for (int i = 0; i < 13; i++)
        y[i] = NAN;
    run(*state,
        "kernel k { buffer %x : f32[1] in  buffer %y : f32[13] out\n"
        "  %0 : f32 = const 0\n"
        "  loop %1 = -7 to 6 step 3 carry %2 : f32 = %0 {\n"
        "    %3 : f32 = load %x[0]  %4 : f32 = add %2 %3\n"
        "    store %y[-%1 + 5] %4\n"
        "    next %4\n"
        "  } gives %7 }",
        (void *[]){&one, y});
    for (int i = 0; i < 13; i++)
        assert_true(i % 3 == 0 ? y[i] == (float)(5 - i / 3) : isnan(y[i]));
}

// ---- split loops and tails ------------------------------------------------------------------

static const char *const tiled =
    "kernel k { buffer %x : f32[23] in  buffer %s : f32[4] scratch  buffer %y : f32[23] out\n"
    "  loop %0 = 0 to 20 step 4 split {\n"
    "    %1 : f32x4 = load %x[%0]\n"
    "    store %s[0] %1\n"
    "    %3 : f32x4 = load %s[3 by -1]\n"
    "    store %y[%0] %3\n"
    "  }\n"
    "  loop %6 = 20 to 23 step 1 tail {\n"
    "    %7 : f32 = load %x[%6]\n"
    "    store %y[%6] %7\n"
    "  } }";

enum { GUARD = 16, TILED = 23 };

static void parts_make_the_whole(void **state) {
    Fixture *f = *state;
    Kernel *kernel = kernel_of(f, tiled);
    KrnCode *code = krn_code(kernel, f->arena);
    assert_int_equal(kernel->split_count, 5);
    for (int cut = 0; cut < 1 << 4; cut++) { // a bit for each place between iterations
        float x[TILED], s[4], block[TILED + 2 * GUARD];
        memset(block, 0xA5, sizeof block);
        float *y = block + GUARD;
        for (int i = 0; i < TILED; i++) {
            x[i] = (float)i;
            y[i] = NAN;
        }
        for (int64_t begin = 0, end; begin < 5; begin = end) {
            for (end = begin + 1; end < 5 && !(cut >> (end - 1) & 1); end++)
                ;
            if (end < 5) // an empty part does nothing, at the end neither
                krn_interpret(code, (void *[]){x, s, y}, 5, 5);
            assert_true(isnan(y[20]));
            krn_interpret(code, (void *[]){x, s, y}, begin, end);
        }
        for (int i = 0; i < TILED; i++)
            assert_true(y[i] == (float)(i < 20 ? i / 4 * 4 + 3 - i % 4 : i));
        for (int i = 0; i < GUARD; i++) {
            uint32_t guard[2];
            memcpy(guard, block + i, 4);
            memcpy(guard + 1, y + TILED + i, 4);
            assert_true(guard[0] == 0xA5A5A5A5 && guard[1] == 0xA5A5A5A5);
        }
    }
}

// Iterations of several split loops are counted on: four, none, one and two of them.
static void several_split_loops_make_one_range(void **state) {
    Fixture *f = *state;
    Kernel *kernel = kernel_of(
        f, "kernel k { buffer %a : f32[9] out  buffer %b : f32[1] out  buffer %c : f32[4] out\n"
           "  %0 : f32x2 = const 1  %1 : f32 = const 2\n"
           "  loop %2 = 0 to 8 step 2 split { store %a[%2] %0 }\n"
           "  loop %5 = 8 to 9 step 1 tail { store %a[%5] %1 }\n"
           "  loop %8 = 3 to 3 step 1 split { store %b[%8] %1 }\n"
           "  loop %11 = 0 to 1 step 1 split { store %b[%11] %1 }\n"
           "  loop %14 = 0 to 4 step 2 split { store %c[%14] %0 } }");
    KrnCode *code = krn_code(kernel, f->arena);
    assert_int_equal(kernel->split_count, 7);
    for (int64_t begin = 0; begin <= 7; begin++)
        for (int64_t end = begin; end <= 7; end++) {
            float a[9], b[1], c[4];
            memset(a, 0xFF, sizeof a);
            memset(b, 0xFF, sizeof b);
            memset(c, 0xFF, sizeof c);
            krn_interpret(code, (void *[]){a, b, c}, begin, end);
            for (int64_t i = 0; i < 8; i++)
                assert_int_equal(a[i] == 1, begin <= i / 2 && i / 2 < end);
            assert_int_equal(a[8] == 2, begin < end && end == 7);
            assert_int_equal(b[0] == 2, begin <= 4 && 4 < end);
            for (int64_t i = 0; i < 4; i++)
                assert_int_equal(c[i] == 1, begin <= 5 + i / 2 && 5 + i / 2 < end);
        }
}

static void a_tail_runs_alone_where_nothing_is_split(void **state) {
    float y[3] = {NAN, NAN, NAN};
    run(*state,
        "kernel k { buffer %y : f32[3] out\n"
        "  %0 : f32x4 = const 1  %1 : f32 = const 2\n"
        "  loop %2 = 0 to 0 step 4 split { store %y[%2] %0 }\n"
        "  loop %5 = 0 to 3 step 1 tail { store %y[%5] %1 } }",
        (void *[]){y});
    assert_true(y[0] == 2 && y[1] == 2 && y[2] == 2);
}

typedef struct Shared {
    KrnCode *code;
    float *x, (*s)[4], *y;
} Shared;

static void share(void *data, uint32_t worker, uint32_t workers) {
    Shared *shared = data;
    int64_t begin = 5 * worker / workers, end = 5 * (worker + 1) / workers;
    krn_interpret(shared->code, (void *[]){shared->x, shared->s[worker], shared->y}, begin, end);
}

static void workers_share_code(void **state) {
    Fixture *f = *state;
    Pool *pool = pool_new(3);
    assert_non_null(pool);
    float x[TILED], s[3][4], y[TILED];
    for (int i = 0; i < TILED; i++)
        x[i] = (float)i;
    Shared shared = {krn_code(kernel_of(f, tiled), f->arena), x, s, y};
    for (int round = 0; round < 50; round++) {
        memset(y, 0xFF, sizeof y);
        pool_run(pool, 3, share, &shared);
        for (int i = 0; i < TILED; i++)
            assert_true(y[i] == (float)(i < 20 ? i / 4 * 4 + 3 - i % 4 : i));
    }
    pool_free(pool);
}

// ---- memory ---------------------------------------------------------------------------------

static void indices_and_strides_reach_memory(void **state) {
    // y = rows of a table by index, transposed; lanes backwards over a column.
    uint8_t i[3] = {2, 0, 2};
    float table[6] = {1, 2, 3, 4, 5, 6}, y[6];
    run(*state,
        "kernel k { buffer %i : u8[3] in below 3  buffer %t : f32[6] in  buffer %y : f32[6] out\n"
        "  loop %0 = 0 to 3 step 1 {\n"
        "    %1 : i64 = load %i[%0]\n"
        "    %2 : f32x2 = load %t[2*%1]\n"
        "    store %y[-%0 + 5 by -3] %2\n"
        "  } }",
        (void *[]){i, table, y});
    const float expected[] = {6, 2, 6, 5, 1, 5};
    assert_memory_equal(y, expected, sizeof y);
}

static void bf16_rounds_to_nearest_even(void **state) {
    // Halfway cases of 8 bits: 1 + 2⁻⁸ falls to 1, 1 + 3·2⁻⁸ rises to 1 + 2⁻⁶; just beyond
    // halfway rises; the largest float overflows; the smallest subnormal vanishes with its sign.
    const float x[10] = {1.00390625f, 1.01171875f, 1.003906369f, 3.4028235e38f, -1e-45f,
                         NAN,         -INFINITY,   -0.0f,        9.2e-41f,      -1.00390625f};
    const uint16_t expected[10] = {0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x8000,
                                   0x7FC0, 0xFF80, 0x8000, 0x0001, 0xBF80};
    uint16_t y[10];
    float back[10];
    run(*state,
        "kernel k { buffer %x : f32[10] in  buffer %y : bf16[10] out  buffer %z : f32[10] out\n"
        "  loop %0 = 0 to 10 step 5 {\n"
        "    %1 : f32x5 = load %x[%0]\n"
        "    store %y[%0] %1\n"
        "    %3 : f32x5 = load %y[%0]\n"
        "    store %z[%0] %3\n"
        "  } }",
        (void *[]){(void *)x, y, back});
    assert_memory_equal(y, expected, sizeof y);
    assert_true(back[1] == 1.015625f && isinf(back[3]) && isnan(back[5]));
    assert_true(back[8] == 0x1p-133f && signbit(back[4]) && back[4] == 0);
}

static void integers_truncate_into_memory(void **state) {
    const uint64_t x[4] = {0x0123456789ABCDEF, UINT64_MAX, 0, 0x80};
    uint8_t a[4];
    uint16_t b[4];
    uint32_t c[4];
    uint64_t d[4];
    uint8_t t[8];
    run(*state,
        "kernel k { buffer %x : u64[4] in  buffer %a : u8[4] out  buffer %b : u16[4] out\n"
        "  buffer %c : u32[4] out  buffer %d : u64[4] out  buffer %t : u8[8] out\n"
        "  %0 : i64x4 = load %x[0]\n"
        "  store %a[0] %0  store %b[0] %0  store %c[0] %0  store %d[0] %0\n"
        "  %5 : i64x4 = load %a[0]  %6 : i64x4 = load %b[0]  %7 : i64x4 = load %c[0]\n"
        "  %8 : i64x4 = iadd %5 %6  %9 : i64x4 = iadd %8 %7\n"
        "  %10 : i1x4 = convert %0  %11 : i1x4 = ilt %9 %0\n"
        "  store %t[0] %10  store %t[4] %11 }",
        (void *[]){(void *)x, a, b, c, d, t});
    const uint8_t a1[] = {0xEF, 0xFF, 0, 0x80};
    const uint16_t b1[] = {0xCDEF, 0xFFFF, 0, 0x80};
    const uint32_t c1[] = {0x89ABCDEF, UINT32_MAX, 0, 0x80};
    // Loaded again they are unsigned: 0xEF + 0xCDEF + 0x89ABCDEF < x[0]; 2^32 + … > −1.
    const uint8_t t1[] = {1, 1, 0, 1, 1, 0, 0, 0};
    assert_memory_equal(a, a1, sizeof a);
    assert_memory_equal(b, b1, sizeof b);
    assert_memory_equal(c, c1, sizeof c);
    assert_memory_equal(d, x, sizeof d);
    assert_memory_equal(t, t1, sizeof t);
}

static void truth_values_are_stored_as_0_and_1(void **state) {
    uint8_t a[2] = {9, 9};
    uint16_t b[2] = {9, 9};
    uint32_t c[2] = {9, 9};
    uint64_t d[2] = {9, 9};
    run(*state,
        "kernel k { buffer %a : u8[2] out  buffer %b : u16[2] out\n"
        "  buffer %c : u32[2] out  buffer %d : u64[2] out\n"
        "  %0 : i1 = const 1  %1 : i1 = not %0\n"
        "  store %a[0] %0  store %b[0] %0  store %c[0] %0  store %d[0] %0\n"
        "  store %a[1] %1  store %b[1] %1  store %c[1] %1  store %d[1] %1 }",
        (void *[]){a, b, c, d});
    assert_true(a[0] == 1 && b[0] == 1 && c[0] == 1 && d[0] == 1);
    assert_true(a[1] == 0 && b[1] == 0 && c[1] == 0 && d[1] == 0);
}

static void scratch_lies_in_one_block(void **state) {
    Fixture *f = *state;
    Kernel *kernel = kernel_of(f, "kernel k { buffer %a : f32[17] scratch  buffer %x : f32[9] in\n"
                                  "  buffer %b : u8[0] scratch  buffer %c : f64[1] scratch }");
    assert_int_equal(krn_scratch_size(kernel), 192); // 68 → 128, 0, 8 → 64
    char block[192], *mark = block;
    void *buffers[4] = {NULL, mark, NULL, NULL};
    krn_scratch_place(kernel, block, buffers);
    assert_ptr_equal(buffers[0], block);
    assert_ptr_equal(buffers[1], mark);
    assert_ptr_equal(buffers[3], block + 128);
}

// ---- conversions and constants --------------------------------------------------------------

static void conversions_round_once(void **state) {
    // 2²⁴ + 1 and 2⁵³ + 1 are ties that fall to even; 2²⁴ + 3 rises; by way of f64 the number
    // 2⁶⁰ + 2³⁶ + 1 would round twice to 2⁶⁰, directly it rises to 2⁶⁰ + 2³⁷.
    const uint64_t x[6] = {16777217,
                           16777219,
                           9007199254740993u,
                           INT64_MAX,
                           (uint64_t)INT64_MIN,
                           (1ull << 60) + (1ull << 36) + 1};
    float narrow[6];
    double wide[6];
    run(*state,
        "kernel k { buffer %x : u64[6] in  buffer %n : f32[6] out  buffer %w : f64[6] out\n"
        "  %0 : i64x6 = load %x[0]\n"
        "  %1 : f32x6 = convert %0  %2 : f64x6 = convert %0\n"
        "  store %n[0] %1  store %w[0] %2 }",
        (void *[]){(void *)x, narrow, wide});
    const float n1[6] = {16777216, 16777220, 0x1p53f, 0x1p63f, -0x1p63f, 0x1.000002p60f};
    const double w1[6] = {16777217, 16777219, 9007199254740992.0, 0x1p63, -0x1p63, 0x1.000001p60};
    assert_memory_equal(narrow, n1, sizeof n1);
    assert_memory_equal(wide, w1, sizeof w1);
}

static void floats_and_integers_change_width(void **state) {
    const double x[7] = {1.0000000596046448, 1e39, -1e-46, 1e-45, -0.0, INFINITY, 0.1};
    float y[7];
    uint64_t i[4];
    uint8_t t[2];
    double z[3];
    run(*state,
        "kernel k { buffer %x : f64[7] in  buffer %y : f32[7] out  buffer %i : u64[4] out\n"
        "  buffer %t : u8[2] out  buffer %z : f64[3] out\n"
        "  %0 : f64x7 = load %x[0]  %1 : f32x7 = convert %0\n"
        "  store %y[0] %1\n"
        "  %3 : i64 = const -4294967295  %4 : i32 = convert %3  %5 : i64 = convert %4\n"
        "  %6 : i32 = const -2  %7 : i64 = convert %6\n"
        "  %8 : i1 = convert %6  %9 : i1 = not %8  %10 : i32 = convert %8  %11 : i64 = convert "
        "%10\n"
        "  %12 : i64 = convert %8\n"
        "  store %i[0] %5  store %i[1] %7  store %i[2] %11  store %i[3] %12\n"
        "  store %t[0] %8  store %t[1] %9\n"
        "  %19 : f32 = convert %6  %20 : f64 = convert %19  %21 : f64 = convert %6\n"
        "  %22 : f64 = convert %8\n"
        "  store %z[0] %20  store %z[1] %21  store %z[2] %22\n"
        "  %26 : f32 = convert %9  store %y[6] %26 }",
        (void *[]){(void *)x, y, i, t, z});
    const float y1[7] = {1, INFINITY, -0.0f, 1e-45f, -0.0f, INFINITY, 0};
    const uint64_t i1[4] = {1, (uint64_t)-2, 1, 1};
    assert_memory_equal(y, y1, sizeof y);
    assert_memory_equal(i, i1, sizeof i);
    assert_true(t[0] == 1 && t[1] == 0 && z[0] == -2 && z[1] == -2 && z[2] == 1);
}

static void constants_of_equal_bits_stay_apart(void **state) {
    float y[4];
    uint64_t i[3];
    run(*state,
        "kernel k { buffer %y : f32[4] out  buffer %i : u64[3] out\n"
        "  %0 : f32 = const 1  %1 : i32 = const 1065353216  %2 : f32 = float %1\n"
        "  %3 : f32 = const -0  %4 : f32 = const 0  %5 : i64 = const 0  %6 : i64x2 = iota\n"
        "  store %y[0] %0  store %y[1] %2  store %y[2] %3  store %y[3] %4\n"
        "  store %i[0] %5  store %i[1] %6 }",
        (void *[]){y, i});
    const float y1[4] = {1, 1, -0.0f, 0};
    assert_memory_equal(y, y1, sizeof y);
    assert_true(i[0] == 0 && i[1] == 0 && i[2] == 1);
}

static void frames_may_be_large(void **state) {
    // 700 vectors of 64 doubles alive at once, more than fits the stack's share.
    Fixture *f = *state;
    Kernel *kernel = krn_new(f->arena, f->context.names, "large");
    KrnBuilder b = krn_builder(kernel, f->context.names);
    uint32_t x = krn_buffer(&b, "x", F64, 64, 0, KRN_IN);
    uint32_t y = krn_buffer(&b, "y", F64, 64, 0, KRN_OUT);
    KrnIndex at = krn_index(x, 0), to = krn_index(y, 0);
    KrnValue loaded[700];
    for (int i = 0; i < 700; i++)
        loaded[i] = krn_load(&b, &at, 64, 1);
    KrnValue sum = loaded[0];
    for (int i = 1; i < 700; i++)
        sum = krn_op2(&b, KRN_ADD, sum, loaded[i]);
    krn_store(&b, &to, 1, sum, false);
    Str errors;
    assert_true(krn_verify(kernel, f->arena, &errors));
    KrnCode *code = krn_code(kernel, f->arena);
    assert_true(krn_code_frame(code) > 300000);
    double in[64], out[64];
    for (int i = 0; i < 64; i++)
        in[i] = i;
    krn_interpret(code, (void *[]){in, out}, 0, 0);
    for (int i = 0; i < 64; i++)
        assert_true(out[i] == 700.0 * i);
}

static void slots_are_shared(void **state) {
    // A chain of 1000 operations needs three slots: operand, result, and the constant.
    Fixture *f = *state;
    Kernel *kernel = krn_new(f->arena, f->context.names, "chain");
    KrnBuilder b = krn_builder(kernel, f->context.names);
    KrnIndex to = krn_index(krn_buffer(&b, "y", F32, 1, 0, KRN_OUT), 0);
    KrnValue one = krn_const_float(&b, krn_type(KRN_F32, 1), 1), sum = one;
    for (int i = 0; i < 1000; i++)
        sum = krn_op2(&b, KRN_ADD, sum, one);
    krn_store(&b, &to, 1, sum, false);
    KrnCode *code = krn_code(kernel, f->arena);
    assert_int_equal(krn_code_frame(code), 24);
    float y;
    krn_interpret(code, (void *[]){&y}, 0, 0);
    assert_true(y == 1001);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(no_iteration_gives_the_initial_values),
        TEST(carries_move_at_once),
        TEST(one_value_feeds_two_carries),
        TEST(loops_nest),
        TEST(indices_step_and_may_be_negative),
        TEST(parts_make_the_whole),
        TEST(several_split_loops_make_one_range),
        TEST(a_tail_runs_alone_where_nothing_is_split),
        TEST(workers_share_code),
        TEST(indices_and_strides_reach_memory),
        TEST(bf16_rounds_to_nearest_even),
        TEST(integers_truncate_into_memory),
        TEST(truth_values_are_stored_as_0_and_1),
        TEST(scratch_lies_in_one_block),
        TEST(conversions_round_once),
        TEST(floats_and_integers_change_width),
        TEST(constants_of_equal_bits_stay_apart),
        TEST(frames_may_be_large),
        TEST(slots_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
