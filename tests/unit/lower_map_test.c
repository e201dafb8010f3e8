// Groups, permutes, gather, pick and scatter_add against plain loops, in all lanes and their tails.
#include "support/nest_run.h"

#include <cmocka.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

static const DType types[] = {F64, F32, BF16};
static const int64_t lengths[] = {0, 1, 2, 3, 5, 7, 16, 17, 31, 67, 130, 259};

// Scalar, and lanes 2 … 16 with random splits.
static void run_all(Context *c, const TestNest *test, Random *random) {
    RlzLayout layout = rlz_layout_scalar(&test->nest);
    nest_run(c, test, &layout, random);
    for (layout.lanes = 1; layout.lanes <= 16; layout.lanes *= 2) {
        layout.split_depth = (int32_t)random_below(random, 3) - 1;
        layout.stream = random_below(random, 2);
        nest_run(c, test, &layout, random);
    }
    for (RlzTarget target = 128; target <= 512; target *= 2) {
        RlzLayout chosen = rlz_layout_default(&test->nest, target, 2, false);
        nest_run(c, test, &chosen, random);
    }
}

static bool is_comparison(CorePrim prim) {
    return prim >= CORE_lt && prim <= CORE_eq;
}

// Node by node in the arithmetic type; the last one's value is the result.
static void expect_group(TestNest *test) {
    const RlzNest *nest = &test->nest;
    int64_t index[RLZ_AXES_MAX] = {0};
    double value[16];
    for (bool more = nest_next(nest, 0, nest->axes, index, true); more;
         more = nest_next(nest, 0, nest->axes, index, false)) {
        for (uint32_t n = 0; n < nest->nodes; n++) {
            const RlzNode *node = &nest->node[n];
            double args[3] = {0};
            for (uint32_t i = 0; i < core_prims[node->prim].max; i++) {
                int16_t from = node->operand[i];
                args[i] =
                    to_type(node->arithmetic,
                            from < 0 ? value[-1 - from] : nest_get(test, (uint32_t)from, index));
            }
            value[n] =
                mth_apply(core_prim_function(node->prim), node->number, node->arithmetic, args);
        }
        nest_set(test, index, value[nest->nodes - 1]);
        if (nest->axes == 0)
            return;
    }
}

static void add_node(TestNest *test, CorePrim prim, int64_t number, int a, int b, int c) {
    RlzNode *node = &test->node[test->nest.nodes++];
    *node = (RlzNode){prim, number, test->nest.arithmetic, {(int16_t)a, (int16_t)b, (int16_t)c}};
}

// Every elementwise primitive by itself, at every length, special values included.
static void each_primitive(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {1};
    for (CorePrim prim = 0; prim < CORE_PRIM_COUNT; prim++)
        for (uint32_t t = 0; t < 3 && core_prims[prim].class == CORE_ELEMENTWISE; t++) {
            Arena *arena = arena_new(&c.heap, "test");
            TestNest *test = nest_new(arena, RLZ_GROUP, prim, types[t]);
            nest_axis(test, RLZ_PARALLEL, lengths[random_below(&random, COUNT_OF(lengths))]);
            for (uint32_t i = 0; i < core_prims[prim].max; i++) {
                bool mask = prim == CORE_select && i == 0;
                nest_input(test, mask ? U8 : types[t], "a")->range = mask ? 2 : 0;
            }
            nest_output(test, arena, is_comparison(prim) ? U8 : types[t], "a");
            nest_fill(test, arena, &random, true);
            add_node(test, prim, prim == CORE_pow ? 5 : 0, 0, 1, 2);
            expect_group(test);
            run_all(&c, test, &random);
            arena_free(arena);
        }
    context_free(&c);
}

// gelu(x * w + b) where x > c, else an index made real: broadcast, constant, range and index
// operands in one group, over two axes that do not merge.
static TestNest *wide_group(Arena *arena, DType type, int64_t rows, int64_t columns) {
    TestNest *test = nest_new(arena, RLZ_GROUP, CORE_select, type);
    nest_axis(test, RLZ_PARALLEL, rows);
    nest_axis(test, RLZ_PARALLEL, columns);
    nest_input(test, type, "ab");
    nest_input(test, type, "b");  // along the lanes
    nest_input(test, type, "a");  // one in all lanes
    nest_input(test, type, "ba"); // strided lanes
    *nest_input(test, F64, NULL) = (RlzOperand){.source = RLZ_CONSTANT, .constant = -0.375};
    *nest_input(test, U64, NULL) = (RlzOperand){.source = RLZ_IOTA, .stride = {3, 1}};
    nest_input(test, U16, "ab")->range = 40000;
    nest_input(test, U8, "b")->range = 2;
    nest_output(test, arena, type, "ab");
    add_node(test, CORE_mul, 0, 0, 1, 0);
    add_node(test, CORE_add, 0, -1, 2, 0);
    add_node(test, CORE_gelu, 0, -2, 0, 0);
    add_node(test, CORE_sub, 0, -3, 3, 0);
    add_node(test, CORE_mul, 0, 6, 4, 0);
    add_node(test, CORE_add, 0, -5, 5, 0);
    add_node(test, CORE_gt, 0, -4, 4, 0);
    add_node(test, CORE_select, 0, -7, -6, -4);
    add_node(test, CORE_select, 0, 7, -8, -3);
    return test;
}

static void groups(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {2};
    for (uint32_t t = 0; t < 3; t++)
        for (uint32_t n = 0; n < COUNT_OF(lengths); n++) {
            Arena *arena = arena_new(&c.heap, "test");
            TestNest *test = wide_group(arena, types[t], n % 4, lengths[n]);
            nest_fill(test, arena, &random, true);
            expect_group(test);
            run_all(&c, test, &random);
            arena_free(arena);
        }
    context_free(&c);
}

// A scalar result, and a mask of two ranges in f64 whatever the realization.
static void scalars_and_masks(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {3};
    TestNest *scalar = nest_new(c.arena, RLZ_GROUP, CORE_exp, F32);
    nest_input(scalar, F32, "");
    nest_output(scalar, c.arena, F32, "");
    nest_fill(scalar, c.arena, &random, false);
    add_node(scalar, CORE_exp, 0, 0, 0, 0);
    int64_t index[1] = {0};
    double x = nest_get(scalar, 0, index);
    nest_set(scalar, index, mth_apply(MTH_exp, 0, F32, &x));
    run_all(&c, scalar, &random);
    TestNest *mask = nest_new(c.arena, RLZ_GROUP, CORE_ge, F64);
    nest_axis(mask, RLZ_PARALLEL, 9);
    nest_axis(mask, RLZ_PARALLEL, 21);
    *nest_input(mask, U64, NULL) = (RlzOperand){.source = RLZ_IOTA, .stride = {1, 0}};
    *nest_input(mask, U64, NULL) = (RlzOperand){.source = RLZ_IOTA, .stride = {0, 1}};
    nest_output(mask, c.arena, U8, "ab");
    add_node(mask, CORE_ge, 0, 0, 1, 0);
    for (int64_t i = 0; i < 9; i++)
        for (int64_t j = 0; j < 21; j++)
            nest_set(mask, (int64_t[]){i, j}, i >= j);
    run_all(&c, mask, &random);
    context_free(&c);
}

static void permutes(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {4};
    static const DType kinds[] = {F64, F32, BF16, U8, U32};
    static const char *const orders[] = {"abc", "cab", "bca", "acb"};
    for (uint32_t t = 0; t < COUNT_OF(kinds); t++)
        for (uint32_t o = 0; o < COUNT_OF(orders); o++) {
            TestNest *test = nest_new(c.arena, RLZ_PERMUTE, CORE_permute,
                                      dtype_is_real(kinds[t]) ? kinds[t] : F32);
            nest_axis(test, RLZ_PARALLEL, 3);
            nest_axis(test, RLZ_PARALLEL, o % 2 ? 5 : 19);
            nest_axis(test, RLZ_PARALLEL, lengths[random_below(&random, COUNT_OF(lengths))]);
            nest_input(test, kinds[t], orders[o])->range = dtype_is_real(kinds[t]) ? 0 : 200;
            nest_output(test, c.arena, kinds[t], "abc");
            nest_fill(test, c.arena, &random, true);
            int64_t index[3];
            for (bool more = nest_next(&test->nest, 0, 3, index, true); more;
                 more = nest_next(&test->nest, 0, 3, index, false))
                nest_set(test, index, nest_get(test, 0, index));
            run_all(&c, test, &random);
        }
    context_free(&c);
}

// Rows of a table at indices from memory or of a range; one element of a row.
static void moves_by_index(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {5};
    for (uint32_t t = 0; t < 3; t++)
        for (uint32_t variant = 0; variant < 3; variant++)
            for (uint32_t n = 0; n < COUNT_OF(lengths); n++) {
                Arena *arena = arena_new(&c.heap, "test");
                bool pick = variant == 2;
                TestNest *test =
                    nest_new(arena, RLZ_INDEXED, pick ? CORE_pick : CORE_gather, types[t]);
                nest_axis(test, RLZ_PARALLEL, 6);
                nest_axis(test, RLZ_PARALLEL, lengths[n]);
                RlzOperand *table = nest_input(test, types[t], pick ? NULL : "b");
                table->indexed_extent = 11;
                table->indexed_stride = pick ? 1 : lengths[n];
                if (pick) // x[a, b, 11] at an index for each a, b
                    table->stride[0] = 11 * lengths[n], table->stride[1] = 11;
                RlzOperand *at = nest_input(test, U8, pick ? "ab" : "a");
                at->range = 11;
                if (variant == 1)
                    *at = (RlzOperand){.source = RLZ_IOTA, .stride = {1}, .range = 11};
                nest_output(test, arena, types[t], "ab");
                nest_fill(test, arena, &random, true);
                int64_t index[2];
                for (bool more = nest_next(&test->nest, 0, 2, index, true); more;
                     more = nest_next(&test->nest, 0, 2, index, false)) {
                    int64_t place = nest_offset(&test->nest, table, index) +
                                    (int64_t)nest_get(test, 1, index) * table->indexed_stride;
                    nest_set(test, index, dtype_get(types[t], test->data[0].at, place));
                }
                if (pick) { // its default has one lane: each lane would need its own address
                    RlzLayout layout = rlz_layout_default(&test->nest, 512, 2, false);
                    assert_int_equal(layout.lanes, 1);
                    nest_run(&c, test, &layout, &random);
                } else {
                    run_all(&c, test, &random);
                }
                arena_free(arena);
            }
    context_free(&c);
}

// Rows added into a table of 7 at their indices, in the order of the indices, some of the table's
// rows named by none. In memory order "ab" a row's elements lie together, in "ba" its indices.
static void expect_scatter(TestNest *test, int64_t width, int64_t count) {
    const RlzOperand *out = &test->nest.output;
    DType type = test->nest.arithmetic;
    for (int64_t column = 0; column < width; column++) {
        double sum[7] = {0};
        for (int64_t i = 0; i < count; i++) {
            const int64_t index[] = {column, i};
            int64_t row = (int64_t)nest_get(test, 1, index);
            sum[row] = to_type(type, sum[row] + to_type(type, nest_get(test, 0, index)));
        }
        for (int64_t row = 0; row < 7; row++)
            dtype_set(out->type, test->out.at, row * out->indexed_stride + column * out->stride[0],
                      sum[row]);
    }
}

static void rows_are_added(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    Random random = {6};
    static const int64_t counts[] = {0, 1, 40};
    for (uint32_t t = 0; t < 3; t++)
        for (uint32_t variant = 0; variant < 4; variant++)
            for (uint32_t n = 1; n < COUNT_OF(lengths); n++) {
                Arena *arena = arena_new(&c.heap, "test");
                int64_t count = counts[random_below(&random, COUNT_OF(counts))];
                TestNest *test = nest_new(arena, RLZ_INDEXED, CORE_scatter_add, types[t]);
                bool range = variant == 3; // each index once, of a range
                count = range ? MIN(count, 7) : count;
                nest_axis(test, RLZ_PARALLEL, lengths[n]);
                nest_axis(test, RLZ_REDUCED, count);
                nest_input(test, types[t], variant % 2 ? "ab" : "ba");
                nest_input(test, U16, "b")->range = 7;
                if (range)
                    test->input[1] =
                        (RlzOperand){.source = RLZ_IOTA, .stride = {0, 1}, .range = MAX(count, 1)};
                test->nest.output.indexed_extent = 7;
                test->nest.output.indexed_stride = lengths[n];
                nest_output(test, arena, types[t], "a");
                nest_fill(test, arena, &random, true);
                expect_scatter(test, lengths[n], count);
                run_all(&c, test, &random);
                arena_free(arena);
            }
    context_free(&c);
}

// Streamed stores are a decision of every nest.
static void what_is_added_streams(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    TestNest *test = nest_new(c.arena, RLZ_INDEXED, CORE_scatter_add, F32);
    nest_axis(test, RLZ_PARALLEL, 64);
    nest_axis(test, RLZ_REDUCED, 5);
    nest_input(test, F32, "ba");
    nest_input(test, U8, "b")->range = 7;
    test->nest.output.indexed_extent = 7;
    test->nest.output.indexed_stride = 64;
    nest_output(test, c.arena, F32, "a");
    RlzLayout layout = rlz_layout_default(&test->nest, 512, 1, false);
    for (uint32_t stream = 0; stream < 2; stream++) {
        layout.stream = stream;
        Str text = krn_print(krn_lower(&test->nest, &layout, c.arena, c.names), c.arena);
        assert_int_equal(strstr(text.at, "stream") != NULL, stream);
    }
    context_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_primitive),        cmocka_unit_test(groups),
        cmocka_unit_test(scalars_and_masks),     cmocka_unit_test(permutes),
        cmocka_unit_test(moves_by_index),        cmocka_unit_test(rows_are_added),
        cmocka_unit_test(what_is_added_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
