// Contractions: every form, tile, k-block, order, lane count, pack and split against plain loops.
#include "support/nest_run.h"

#include <cmocka.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

typedef struct Shape3 {
    int64_t outer, i, j, k, k2; // −1: the role is empty
} Shape3;

typedef struct Spelling { // axes of the operands, by role: o i j k l (the second K)
    const char *left, *right, *out;
} Spelling;

// Letters of the roles that exist, as axis letters of the nest.
static const char *spell(Arena *arena, const Shape3 *s, const char *roles) {
    const char *names = "oijkl";
    int64_t extent[] = {s->outer, s->i, s->j, s->k, s->k2};
    StrBuf buf = {.arena = arena};
    for (; *roles; roles++) {
        uint32_t number = 0;
        for (const char *at = names; *at != *roles; at++)
            number += extent[at - names] >= 0;
        if (extent[strchr(names, *roles) - names] >= 0)
            buf_char(&buf, (char)('a' + number));
    }
    return buf_str(&buf).at;
}

// One accumulator a result from +0, terms in increasing flat index of K.
static void expect(TestNest *test) {
    const RlzNest *nest = &test->nest;
    int64_t index[RLZ_AXES_MAX] = {0};
    uint32_t outer = 0;
    while (outer < nest->axes && nest->role[outer] != RLZ_K)
        outer++;
    DType type = nest->accumulate;
    for (bool more = nest_next(nest, 0, outer, index, true); more;
         more = nest_next(nest, 0, outer, index, false)) {
        double sum = 0;
        for (bool term = nest_next(nest, outer, nest->axes - outer, index, true); term;
             term = nest_next(nest, outer, nest->axes - outer, index, false)) {
            double a = to_type(type, nest_get(test, 0, index));
            double b = to_type(type, nest_get(test, 1, index));
            if (nest->multiply_add)
                sum = to_type(type, sum + to_type(type, a * b));
            else
                sum = type == F64 ? fma(a, b, sum) : (double)fmaf((float)a, (float)b, (float)sum);
        }
        nest_set(test, index, to_type(nest->arithmetic, sum));
    }
}

static TestNest *contraction(Arena *arena, const Shape3 *s, const Spelling *spelling, DType type,
                             Random *random) {
    TestNest *test = nest_new(arena, RLZ_CONTRACTION, CORE_ein, type);
    int64_t extent[] = {s->outer, s->i, s->j, s->k, s->k2};
    static const RlzRole roles[] = {RLZ_OUTER, RLZ_I, RLZ_J, RLZ_K, RLZ_K};
    for (uint32_t r = 0; r < 5; r++)
        if (extent[r] >= 0)
            nest_axis(test, roles[r], extent[r]);
    nest_input(test, type, spell(arena, s, spelling->left));
    nest_input(test, type, spell(arena, s, spelling->right));
    nest_output(test, arena, type, spell(arena, s, spelling->out));
    nest_fill(test, arena, random, false);
    return test;
}

static bool spills(const RlzLayout *layout) {
    return layout->row_wise || (layout->kblock && layout->order[2] != RLZ_K);
}

static RlzLayout random_layout(const RlzNest *nest, Random *random) {
    static const uint32_t rows[] = {1, 2, 3, 4, 6}, columns[] = {1, 4, 8, 16, 24};
    static const uint32_t blocks[] = {0, 0, 1, 2, 3, 32};
    static const uint8_t orders[][3] = {{RLZ_I, RLZ_J, RLZ_K}, {RLZ_J, RLZ_I, RLZ_K},
                                        {RLZ_I, RLZ_K, RLZ_J}, {RLZ_J, RLZ_K, RLZ_I},
                                        {RLZ_K, RLZ_I, RLZ_J}, {RLZ_K, RLZ_J, RLZ_I}};
    RlzLayout layout = rlz_layout_scalar(nest);
    layout.tile[0] = rows[random_below(random, 5)];
    layout.tile[1] = columns[random_below(random, 5)];
    layout.kblock = blocks[random_below(random, 6)];
    if (rlz_nest_axis(nest, RLZ_K) < 0)
        layout.kblock = 0;
    memcpy(layout.order, orders[random_below(random, layout.kblock ? 6 : 2)], 3);
    layout.lanes = 1u << random_below(random, 5);
    layout.pack = (uint8_t)(random_below(random, 3) ? RLZ_PACK_NONE : 1 + random_below(random, 2));
    layout.pack_left = random_below(random, 3) == 0;
    layout.iblock = random_below(random, 3) ? 0 : 2 + random_below(random, 2);
    layout.prefetch = random_below(random, 3) == 0;
    layout.stream = random_below(random, 3) == 0;
    layout.merge = random_below(random, 2);
    layout.unroll = random_below(random, 3) ? 1 : 1u << random_below(random, 4);
    layout.row_wise = random_below(random, 5) == 0;
    layout.split_depth = (int32_t)random_below(random, 4) - 1;
    layout.split_workers = 3;
    if (rlz_nest_axis(nest, RLZ_I) < 0)
        layout.tile[0] = 1, layout.iblock = 0;
    if (rlz_nest_axis(nest, RLZ_J) < 0)
        layout.tile[1] = layout.lanes = 1, layout.row_wise = false, layout.pack = RLZ_PACK_NONE;
    if (rlz_nest_axis(nest, RLZ_K) < 0)
        layout.row_wise = false, layout.unroll = 1;
    if (layout.row_wise) {
        layout.pack = RLZ_PACK_NONE;
        layout.pack_left = layout.prefetch = false;
        layout.iblock = 0;
        layout.unroll = 1;
    }
    while (!layout.row_wise && layout.tile[1] % layout.lanes)
        layout.lanes /= 2;
    return layout;
}

static const Shape3 shapes[] = {
    {-1, 5, 9, 7, -1},   {-1, 1, 1, 1, -1},   {2, 4, 8, 6, -1},   {3, 13, 17, 11, 3},
    {-1, 2, 3, 0, -1},   {-1, 0, 3, 2, -1},   {2, 3, 0, 2, -1},   {-1, 8, 24, 40, 2},
    {-1, -1, 19, 5, -1}, {-1, 7, -1, 5, -1},  {4, -1, -1, 3, -1}, {-1, 3, 5, -1, -1},
    {2, 6, 16, 5, 0},    {-1, 33, 1, 66, -1}, {1, 1, 92, 25, -1}, {-1, -1, -1, 9, -1},
};
static const Spelling spellings[] = {
    {"oikl", "oklj", "oij"}, {"oikl", "ojkl", "oij"}, // NN, NT
    {"klio", "kljo", "oij"}, {"oilk", "kl", "oi"},    // TN; no J
    {"iokl", "klj", "oij"},  {"oikl", "lkjo", "oij"}, // a dense layer; K in two orders
};

static bool fits(const Shape3 *s, const Spelling *spelling) {
    return (s->j < 0) == !strchr(spelling->right, 'j');
}

static void layouts_move_no_bit(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {1};
    static const DType types[] = {F64, F32, BF16};
    uint32_t split = 0;
    for (uint32_t s = 0; s < COUNT_OF(shapes); s++)
        for (uint32_t m = 0; m < COUNT_OF(spellings); m++)
            for (uint32_t t = 0; t < 3; t++) {
                if (!fits(&shapes[s], &spellings[m]))
                    continue;
                Arena *arena = arena_new(&c.heap, "test");
                TestNest *test = contraction(arena, &shapes[s], &spellings[m], types[t], &random);
                test->nest.multiply_add = random_below(&random, 4) == 0;
                expect(test);
                RlzLayout scalar = rlz_layout_scalar(&test->nest);
                nest_run(&c, test, &scalar, &random);
                for (uint32_t n = 0; n < 16; n++) {
                    RlzLayout layout = random_layout(&test->nest, &random);
                    if (types[t] == BF16 && spills(&layout))
                        continue;
                    split += nest_run(&c, test, &layout, &random) > 1;
                }
                arena_free(arena);
            }
    assert_true(split > 100);
    context_free(&c);
}

// A running sum in f64 under f32: each term exact products of f32, rounded to f32 once at the end.
static void wider_accumulation(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {2};
    Shape3 shape = {2, 5, 9, 31, -1};
    TestNest *test = contraction(c.arena, &shape, &spellings[0], F32, &random);
    test->nest.accumulate = F64;
    expect(test);
    for (uint32_t n = 0; n < 40; n++) {
        RlzLayout layout = random_layout(&test->nest, &random);
        if (!spills(&layout))
            nest_run(&c, test, &layout, &random);
    }
    context_free(&c);
}

// Operands of another type than the site's: converted exactly or rounded once.
static void mixed_types(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {3};
    Shape3 shape = {-1, 5, 12, 9, -1};
    static const DType types[][3] = {{F64, BF16, F32}, {F32, F64, BF16}, {BF16, F32, F64}};
    for (uint32_t t = 0; t < COUNT_OF(types); t++) {
        TestNest *test = contraction(c.arena, &shape, &spellings[0], types[t][2], &random);
        test->input[0].type = types[t][0];
        test->input[1].type = types[t][1];
        nest_fill(test, c.arena, &random, false);
        expect(test);
        for (uint32_t n = 0; n < 20; n++) {
            RlzLayout layout = random_layout(&test->nest, &random);
            if (!spills(&layout) || types[t][2] != BF16)
                nest_run(&c, test, &layout, &random);
        }
    }
    context_free(&c);
}

// The default layouts, on every target.
static void default_layouts(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {4};
    static const DType types[] = {F64, F32, BF16};
    static const int64_t columns[] = {8, 24, 92, 5, 0};
    for (uint32_t t = 0; t < 3; t++)
        for (uint32_t j = 0; j < COUNT_OF(columns); j++) {
            Shape3 shape = {3, 7, columns[j], 13, -1};
            TestNest *test = contraction(c.arena, &shape, &spellings[4], types[t], &random);
            test->nest.prim = CORE_dot;
            expect(test);
            for (RlzTarget target = 128; target <= 512; target *= 2)
                for (uint32_t one = 0; one < 2; one++) {
                    RlzLayout layout = rlz_layout_default(&test->nest, target, 2, one);
                    bool eights = columns[j] % 8 == 0;
                    assert_int_equal(layout.tile[1], eights ? 8 : 1);
                    assert_int_equal(layout.row_wise, !eights && types[t] != BF16);
                    if (one)
                        assert_int_equal(layout.lanes, 1);
                    nest_run(&c, test, &layout, &random);
                }
        }
    context_free(&c);
}

// Nothing of what the output held before survives (a NaN times 0 would).
static void sums_of_nothing_are_zero(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {5};
    Shape3 shape = {-1, 2, 3, 0, -1};
    TestNest *test = contraction(c.arena, &shape, &spellings[0], F32, &random);
    for (int64_t i = 0; i < 6; i++)
        dtype_set(F32, test->out.at, i, 0.0);
    for (uint32_t n = 0; n < 60; n++) {
        RlzLayout layout = random_layout(&test->nest, &random);
        nest_run(&c, test, &layout, &random);
    }
    context_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_move_no_bit),
        cmocka_unit_test(wider_accumulation),
        cmocka_unit_test(mixed_types),
        cmocka_unit_test(default_layouts),
        cmocka_unit_test(sums_of_nothing_are_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
