// Layout decisions, spaces and plans: each decision does something, spaces are what their
// definition says, words and numbers for workers.
#include "realize/plan.h"
#include "realize/space.h"
#include "support/nest_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static TestNest *product(Arena *arena, DType type, int64_t i, int64_t j, int64_t k, bool nt) {
    TestNest *test = nest_new(arena, RLZ_CONTRACTION, CORE_dot, type);
    nest_axis(test, RLZ_OUTER, 3);
    nest_axis(test, RLZ_I, i);
    nest_axis(test, RLZ_J, j);
    nest_axis(test, RLZ_K, k);
    nest_input(test, type, "abd");
    nest_input(test, type, nt ? "cd" : "dc");
    nest_output(test, arena, type, "abc");
    return test;
}

static TestNest *rows(Arena *arena, RlzKind kind, CorePrim prim) {
    TestNest *test = nest_new(arena, kind, prim, F32);
    nest_axis(test, RLZ_PARALLEL, 3);
    nest_axis(test, RLZ_PARALLEL, 48);
    nest_axis(test, RLZ_REDUCED, 32);
    nest_input(test, F32, "abc");
    nest_output(test, arena, F32, kind == RLZ_ROW ? "abc" : "ab");
    return test;
}

static Str kernel_text(Context *c, const RlzNest *nest, const RlzLayout *layout) {
    return krn_print(krn_lower(nest, layout, c->arena, c->names), c->arena);
}

// ---- each decision does something ---------------------------------------------------------------

// All values of a decision from one layout on, where legal, give different kernels.
static void texts_differ(Context *c, const RlzNest *nest, const RlzLayout *base,
                         RlzDecision decision, uint32_t at_least) {
    RlzWord words[RLZ_WORDS_MAX];
    uint32_t count = rlz_decision_words(decision, false, words), legal = 0;
    Map *seen = map_new(c->arena);
    for (uint32_t i = 0; i < count; i++) {
        RlzLayout layout = *base;
        if (decision == RLZ_DECISION_ORDER && words[i].value < RLZ_ORDER_IJK)
            continue; // orders without K are those without a k-block
        rlz_layout_set(&layout, decision, words[i].value);
        assert_int_equal(rlz_layout_get(&layout, decision), words[i].value);
        if (rlz_layout_fault(nest, &layout, 512, c->arena).condition)
            continue;
        legal++;
        Str text = kernel_text(c, nest, &layout);
        bool fresh;
        map_slot(seen, text.at, text.size, &fresh);
        if (!fresh)
            fail_msg("%s %s changes nothing", rlz_decisions[decision].text.at,
                     rlz_decision_value_text(decision, words[i].value, c->arena).at);
    }
    assert_true(legal >= at_least);
}

static void every_decision_changes_the_kernel(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    const RlzNest *nn = &product(c.arena, F32, 1024, 64, 3072, false)->nest;
    const RlzNest *nt = &product(c.arena, F32, 1024, 64, 3072, true)->nest;
    const RlzNest *softmax = &rows(c.arena, RLZ_ROW, CORE_softmax)->nest;
    const RlzNest *sum = &rows(c.arena, RLZ_REDUCTION, CORE_sum)->nest;
    RlzLayout plain = rlz_layout_scalar(nn), blocks = plain, tile = plain;
    blocks.kblock = 32;
    tile.tile[0] = 4;
    tile.tile[1] = 16;
    tile.lanes = 4;
    texts_differ(&c, nn, &plain, RLZ_DECISION_FORM, 2);
    texts_differ(&c, nn, &plain, RLZ_DECISION_KBLOCK, 7);
    texts_differ(&c, nn, &blocks, RLZ_DECISION_ORDER, 6);
    texts_differ(&c, nn, &tile, RLZ_DECISION_LANES, 4);
    texts_differ(&c, nn, &tile, RLZ_DECISION_PACK, 2);
    tile.lanes = 1;
    texts_differ(&c, nt, &tile, RLZ_DECISION_PACK, 3);
    texts_differ(&c, nn, &tile, RLZ_DECISION_PACK_LEFT, 2);
    texts_differ(&c, nn, &tile, RLZ_DECISION_IBLOCK, 5);
    texts_differ(&c, nn, &tile, RLZ_DECISION_PREFETCH, 2);
    texts_differ(&c, nn, &tile, RLZ_DECISION_UNROLL, 4);
    texts_differ(&c, nn, &tile, RLZ_DECISION_MERGE, 2);
    texts_differ(&c, nn, &tile, RLZ_DECISION_STREAM, 2);
    TestNest *added = product(c.arena, F32, 8, 16, 32, false);
    Str without = kernel_text(&c, &added->nest, &tile);
    nest_input(added, F32, "c");
    added->nest.epilogue = tile.epilogue = true;
    Str with = kernel_text(&c, &added->nest, &tile);
    assert_null(strstr(without.at, "kernel dot+add"));
    assert_non_null(strstr(with.at, "kernel dot+add"));
    RlzLayout row = rlz_layout_scalar(softmax), across = rlz_layout_scalar(sum);
    texts_differ(&c, softmax, &row, RLZ_DECISION_PASSES, 2);
    texts_differ(&c, softmax, &row, RLZ_DECISION_LANES, 4);
    texts_differ(&c, softmax, &row, RLZ_DECISION_ROWS, 5);
    texts_differ(&c, softmax, &row, RLZ_DECISION_STREAM, 2);
    texts_differ(&c, sum, &across, RLZ_DECISION_LANES, 4);
    texts_differ(&c, sum, &across, RLZ_DECISION_ROWS, 5);
    context_free(&c);
}

// A leaf of a tree: -x over `count` numbers.
static const RlzNest *leaf_of(Arena *arena, int64_t count) {
    TestNest *test = nest_new(arena, RLZ_GROUP, CORE_neg, F32);
    nest_axis(test, RLZ_PARALLEL, count);
    nest_input(test, F32, "a");
    nest_output(test, arena, F32, "a");
    test->node[0] = (RlzNode){.prim = CORE_neg, .arithmetic = F32};
    test->nest.nodes = 1;
    test->nest.of_tree = true;
    return &test->nest;
}

// The nest of all leaves counts their elements, and its kernel is one for all of them, each with
// buffers of its own; the iterations of their loops are one range to be divided.
static void leaves_in_one_nest(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    const RlzNest *leaf[] = {leaf_of(c.arena, 640), leaf_of(c.arena, 7), leaf_of(c.arena, 100)};
    const RlzNest *all = rlz_nest_of_leaves(leaf, COUNT_OF(leaf), c.arena);
    assert_int_equal(all->leaves, 3);
    assert_int_equal(rlz_nest_extent(all, RLZ_PARALLEL), 747);
    assert_true(rlz_nest_bytes(all) == 747 * 8);
    assert_true(rlz_nest_flops(all) == 747);
    assert_true(rlz_decision_applies(RLZ_DECISION_LEAVES, all, &(RlzLayout){0}));
    RlzLayout layout = rlz_layout_scalar(all);
    assert_int_equal(rlz_layout_get(&layout, RLZ_DECISION_LEAVES), 1);
    RlzLayout each = rlz_layout_scalar(leaf[0]);
    assert_int_equal(rlz_layout_get(&each, RLZ_DECISION_LEAVES), 0);
    layout.lanes = 4;
    Kernel *kernel = krn_lower(all, &layout, c.arena, c.names);
    assert_int_equal(kernel->buffers.count, 6);
    assert_int_equal(kernel->buffers.at[2].size, 7);
    // Two vectors an iteration, and one where an axis has no four of them.
    assert_int_equal(kernel->split_count, 640 / 8 + 7 / 4 + 100 / 8);
    assert_string_equal(rlz_nest_text(all, c.arena).at,
                        str_format(c.arena, "%s%s%s", rlz_nest_text(leaf[0], c.arena).at,
                                   rlz_nest_text(leaf[1], c.arena).at,
                                   rlz_nest_text(leaf[2], c.arena).at)
                            .at);
    context_free(&c);
}

static void every_tile_and_split_changes_the_kernel(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    // 336 = 2 · 2 · 2 · 2 · 3 · 7 rows, 192 columns: every tile divides
    const RlzNest *nest = &product(c.arena, F32, 336, 192, 8, false)->nest;
    RlzWord m[RLZ_WORDS_MAX], n[RLZ_WORDS_MAX];
    uint32_t ms = rlz_decision_words(RLZ_DECISION_TILE, false, m);
    uint32_t ns = rlz_decision_words(RLZ_DECISION_TILE, true, n);
    Map *seen = map_new(c.arena);
    for (uint32_t i = 0; i < ms * ns; i++) {
        RlzLayout layout = rlz_layout_scalar(nest);
        layout.tile[0] = m[i / ns].value;
        layout.tile[1] = n[i % ns].value;
        layout.lanes = 4;
        assert_int_equal(rlz_layout_fault(nest, &layout, 512, c.arena).condition, 0);
        for (int32_t depth = -1; depth < 3; depth++) {
            layout.split_depth = depth;
            Str text = kernel_text(&c, nest, &layout);
            map_slot(seen, text.at, text.size, NULL);
        }
    }
    assert_int_equal(ms * ns, 49);
    assert_int_equal(map_count(seen), 4 * 49);
    context_free(&c);
}

// With "none" a tile that does not divide is refused; with "peel" it has a tail.
static void tails_are_stated(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    const RlzNest *nest = &product(c.arena, F32, 13, 92, 40, false)->nest;
    RlzLayout layout = rlz_layout_scalar(nest);
    layout.tile[0] = 6;
    layout.tile[1] = 64;
    RlzFault fault = rlz_layout_fault(nest, &layout, 512, c.arena);
    assert_int_equal(fault.condition, 3);
    assert_int_equal(fault.decision, RLZ_DECISION_TILE);
    layout.peel = true;
    assert_int_equal(rlz_layout_fault(nest, &layout, 512, c.arena).condition, 0);
    assert_int_equal(rlz_layout_fault(nest, &layout, 128, c.arena).condition, 10);
    layout.kblock = 32;
    assert_int_equal(rlz_layout_fault(nest, &layout, 512, c.arena).condition, 0);
    layout.peel = false;
    layout.tile[0] = layout.tile[1] = 1;
    fault = rlz_layout_fault(nest, &layout, 512, c.arena);
    assert_int_equal(fault.condition, 3);
    assert_int_equal(fault.decision, RLZ_DECISION_KBLOCK);
    context_free(&c);
}

// ---- conditions ---------------------------------------------------------------------------------

static void epilogues_run_along_j_or_not_at_all(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    TestNest *test = product(c.arena, F32, 8, 16, 8, false);
    test->nest.epilogue = true;
    RlzOperand *other = nest_input(test, F32, "cb"); // J is not its innermost axis
    RlzLayout layout = rlz_layout_scalar(&test->nest);
    layout.tile[1] = 16;
    assert_int_equal(rlz_layout_fault(&test->nest, &layout, 128, c.arena).condition, 0);
    layout.lanes = 4;
    assert_int_equal(rlz_layout_fault(&test->nest, &layout, 128, c.arena).condition, 6);
    for (int64_t stride = 0; stride < 2; stride++) {
        other->stride[2] = stride;
        assert_int_equal(rlz_layout_fault(&test->nest, &layout, 128, c.arena).condition, 0);
    }
    context_free(&c);
}

static void workers_are_all_or_half(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    RlzLayout layout = {.split_depth = 0};
    for (uint32_t all = 1; all <= 11; all++)
        for (uint32_t stated = 1; stated <= 12; stated++) {
            RlzMachine machine = {128, all, true};
            uint32_t half = all < 2 ? 1 : all / 2;
            layout.split_workers = stated;
            bool legal = stated == all || stated == half;
            assert_int_equal(rlz_workers_fault(&layout, &machine, c.arena).condition,
                             legal ? 0 : 5);
            machine.native = false;
            assert_int_equal(rlz_workers_fault(&layout, &machine, c.arena).condition, 0);
        }
    context_free(&c);
}

// ---- spaces -------------------------------------------------------------------------------------

// Counted by hand for axes that everything divides, target 128, f32, one worker:
//   NN  tiles [1, 1] and 3 × 3; lanes 1, and 4 but for [1, 1]: 1 + 9 · 2 = 19; orders 2 without and
//       2 · 6 with a k-block: 19 · 14 = 266; row-wise with 1 and 4 lanes: 268
//   NT  without a pack one lane: 10; with it 19: 29 · 14 = 406; row-wise with 1: 407
static void the_space_on_128_is_the_references(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    RlzMachine machine = {128, 1, true};
    RlzLayout *points;
    const RlzNest *nn = &product(c.arena, F32, 8, 16, 128, false)->nest;
    const RlzNest *nt = &product(c.arena, F32, 8, 16, 128, true)->nest;
    assert_int_equal(rlz_space_core(nn, &machine, c.arena, &points), 268);
    assert_int_equal(rlz_space_core(nt, &machine, c.arena, &points), 407);
    // bf16: one lane, no order but those with K last (2 of 6), no row-wise form: 10 · (2 + 2 · 2)
    const RlzNest *narrow = &product(c.arena, BF16, 8, 16, 128, false)->nest;
    assert_int_equal(rlz_space_core(narrow, &machine, c.arena, &points), 60);
    // Two passes and three, one lane and four.
    const RlzNest *softmax = &rows(c.arena, RLZ_ROW, CORE_softmax)->nest;
    assert_int_equal(rlz_space_core(softmax, &machine, c.arena, &points), 4);
    context_free(&c);
}

static void points_are_legal_and_differ(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    RlzMachine machine = {512, 3, true};
    RlzLayout *points;
    const RlzNest *nest = &product(c.arena, F32, 14, 64, 40, true)->nest;
    uint32_t count = rlz_space_core(nest, &machine, c.arena, &points);
    assert_true(count > 1000);
    Map *seen = map_new(c.arena);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(rlz_layout_fault(nest, &points[i], 512, c.arena).condition, 0);
        assert_int_equal(rlz_workers_fault(&points[i], &machine, c.arena).condition, 0);
        Str text = rlz_layout_text(nest, &points[i], c.arena);
        map_slot(seen, text.at, text.size, NULL);
    }
    assert_int_equal(map_count(seen), count);
    context_free(&c);
}

static void modifiers_meet_in_pairs(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    static const RlzDecision modifiers[] = {RLZ_DECISION_IBLOCK,    RLZ_DECISION_UNROLL,
                                            RLZ_DECISION_PACK_LEFT, RLZ_DECISION_PREFETCH,
                                            RLZ_DECISION_MERGE,     RLZ_DECISION_STREAM};
    RlzMachine machine = {512, 1, true};
    const RlzNest *nest = &product(c.arena, F32, 12, 64, 40, false)->nest;
    RlzLayout base = rlz_layout_scalar(nest), *points;
    uint32_t count = rlz_space_modified(nest, &machine, &base, c.arena, &points);
    assert_true(count < 40);
    for (uint32_t a = 0; a < COUNT_OF(modifiers); a++)
        for (uint32_t b = a + 1; b < COUNT_OF(modifiers); b++) {
            RlzWord x[RLZ_WORDS_MAX], y[RLZ_WORDS_MAX];
            uint32_t xs = rlz_decision_words(modifiers[a], false, x);
            uint32_t ys = rlz_decision_words(modifiers[b], false, y);
            for (uint32_t n = 0; n < xs * ys; n++) {
                bool met = false;
                for (uint32_t i = 0; i < count; i++)
                    met = met || (rlz_layout_get(&points[i], modifiers[a]) == x[n / ys].value &&
                                  rlz_layout_get(&points[i], modifiers[b]) == y[n % ys].value);
                assert_true(met);
            }
        }
    context_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_in_one_nest),
        cmocka_unit_test(every_decision_changes_the_kernel),
        cmocka_unit_test(every_tile_and_split_changes_the_kernel),
        cmocka_unit_test(tails_are_stated),
        cmocka_unit_test(epilogues_run_along_j_or_not_at_all),
        cmocka_unit_test(workers_are_all_or_half),
        cmocka_unit_test(the_space_on_128_is_the_references),
        cmocka_unit_test(points_are_legal_and_differ),
        cmocka_unit_test(modifiers_meet_in_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
