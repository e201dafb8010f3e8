// Nests from Core texts: roles, strides, merging, groups; their texts, weights and default layouts.
#include "core/concrete.h"
#include "realize/dump.h"
#include "support/core_text.h"

#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

typedef struct Maker {
    Context context;
    CoreProgram *program;
    const CoreFn *fn;
    CoreFrame frame;
    bool transposed[64]; // values that lie in the reverse order of their axes
    DType storage;
    const CoreLetId *lets;
} Maker;

static Shape shape_of(Maker *m, CoreLetId let, int64_t *range) {
    Shape shape;
    DimId missing;
    CoreConcrete result =
        core_concrete(m->program, core_let(m->fn, let)->type, &m->frame, &shape, range, &missing);
    assert_int_equal(result, CORE_CONCRETE_OK);
    return shape;
}

static RlzValue value_of(void *data, CoreLetId let) {
    Maker *m = data;
    RlzValue value = {.source = RLZ_MEMORY};
    value.shape = shape_of(m, let, &value.range);
    value.type = value.range ? dtype_of_bound((uint64_t)value.range) : m->storage;
    int64_t size = 1;
    for (uint32_t i = 0; m->transposed[let] && i < value.shape.rank; i++) {
        value.shape.stride[i] = size;
        size *= value.shape.extent[i];
    }
    const CoreLet *from = core_let(m->fn, let);
    if (from->prim == CORE_range)
        value.source = RLZ_IOTA;
    if (from->prim == CORE_scalar) {
        value.source = RLZ_CONSTANT;
        value.scalar = from->attr->scalar;
    }
    return value;
}

static double round_scalar(void *data, CoreScalar scalar, DType type) {
    Maker *m = data;
    double value = 0;
    assert_true(core_scalar_value(m->program, scalar, m->frame.by_dim, NULL, NULL, type, &value));
    return value;
}

// The first function of a text; its dimensions by number from 1, its pack as given.
static void begin(Maker *m, const char *text, const int64_t *by_dim, uint32_t pack_rank,
                  const int64_t *pack) {
    memset(m, 0, sizeof *m);
    context_init(&m->context);
    m->program = core_of_legal_text(&m->context, text);
    core_partition(m->program);
    m->fn = core_fn(m->program, 1);
    m->frame = (CoreFrame){by_dim, pack_rank, pack};
    m->storage = F32;
}

static const RlzNest *nest_of(Maker *m, CoreLetId root, bool fusion) {
    uint8_t *types = arena_array(m->context.arena, uint8_t, m->fn->lets.count);
    memset(types, (int)m->storage, m->fn->lets.count);
    const uint8_t *const storage[] = {NULL, types};
    CoreArithmetic arithmetic = {.storage = storage, .fusion = fusion};
    RlzNestInput input = {.program = m->program,
                          .fn = 1,
                          .root = root,
                          .arithmetic = &arithmetic,
                          .value = value_of,
                          .round = round_scalar,
                          .data = m};
    input.output = (RlzValue){.type = m->storage};
    input.output.shape = shape_of(m, root, &input.output.range);
    if (input.output.range)
        input.output.type = dtype_of_bound((uint64_t)input.output.range);
    return rlz_nest_make(&input, m->context.arena, &m->lets);
}

static void expect_text(Maker *m, CoreLetId root, const char *text) {
    assert_string_equal(rlz_nest_text(nest_of(m, root, true), m->context.arena).at, text);
}

static void dots(void **state) {
    (void)state;
    Maker m;
    const int64_t dims[] = {-1, 64, 384};
    // A pack of two axes: the last is I, the first an outer one.
    begin(&m,
          "fn f{I, O, ...}(%0 : ℝ[..., I], %1 : ℝ[I, O]) -> ℝ[..., O] {\n"
          "  %2 : ℝ[..., O] = dot %0 %1\n  return %2\n}\n",
          dims, 2, (const int64_t[]){16, 128});
    expect_text(&m, 2,
                "contraction dot f32 outer 16 I 128 J 384 K 64\n"
                "f32 8192,64,0,1\nf32 0,0,1,384\nout f32 49152,384,1,0\n");
    const RlzNest *nest = nest_of(&m, 2, true);
    assert_int_equal(m.lets[0], 0);
    assert_int_equal(m.lets[1], 1);
    assert_true(rlz_nest_flops(nest) == 2.0 * 16 * 128 * 64 * 384);
    assert_true(rlz_nest_bytes(nest) == 4.0 * (16 * 128 * 64 + 64 * 384 + 16 * 128 * 384));
    RlzLayout layout = rlz_layout_default(nest, 512, 2, false);
    assert_string_equal(rlz_nest_line(nest, &layout, m.context.arena).at,
                        "contraction dot f32   outer 16  I 128  J 384  K 64   "
                        "tile [1, 8] order IJ lanes 8 split 0 over 2");
    assert_string_equal(rlz_nest_shape(nest, m.context.arena).at, "16x128x384x64");
    context_free(&m.context);
    // No pack: neither I nor outer axes. A vector by a vector: K alone.
    begin(&m,
          "fn f{I, O}(%0 : ℝ[I], %1 : ℝ[I, O]) -> ℝ {\n"
          "  %2 : ℝ[O] = dot %0 %1\n  %3 : ℝ = dot %0 %0\n  return %3\n}\n",
          dims, 0, NULL);
    expect_text(&m, 2, "contraction dot f32 J 384 K 64\nf32 0,1\nf32 1,384\nout f32 1,0\n");
    expect_text(&m, 3, "contraction dot f32 K 64\nf32 1\nf32 1\nout f32 0\n");
    context_free(&m.context);
}

// Roles follow what carries an axis, not its place.
static void eins(void **state) {
    (void)state;
    Maker m;
    const int64_t dims[] = {-1, 2, 3, 5, 7};
    begin(&m,
          "fn f{B, H, T, D}(%0 : ℝ[B, T, H, D], %1 : ℝ[B, T, H, D], %2 : ℝ[B, H, T, T]) -> ℝ {\n"
          "  %3 : ℝ[B, H, T, T] = ein %0 %1 [abcd, aecd -> acbe]\n"
          "  %4 : ℝ[B, T, H, D] = ein %2 %0 [abcd, adbe -> acbe]\n"
          "  %5 : ℝ[D, D] = ein %0 %1 [abcd, abce -> de]\n"
          "  %6 : ℝ[T, D] = ein %0 %1 [abcd, abcd -> bd]\n"
          "  %7 : ℝ = ein %0 %1 [abcd, abcd -> ]\n  return %7\n}\n",
          dims, 0, NULL);
    // Scores: B and H outer, T of q is I, T of k is J.
    expect_text(&m, 3,
                "contraction ein f32 outer 2 outer 3 I 5 J 5 K 7\n"
                "f32 105,7,21,0,1\nf32 105,7,0,21,1\nout f32 75,25,5,1,0\n");
    // Values, written as [B, T, H, D]: I is T although H stands behind it.
    expect_text(&m, 4,
                "contraction ein f32 outer 2 outer 3 I 5 J 7 K 5\n"
                "f32 75,25,5,0,1\nf32 105,7,0,1,21\nout f32 105,7,21,1,0\n");
    // A derivative of a dense layer: three axes summed, in the order of the flat index.
    expect_text(&m, 5,
                "contraction ein f32 I 7 J 7 K 2 K 5 K 3\n"
                "f32 1,0,105,21,7\nf32 0,1,105,21,7\nout f32 7,1,0,0,0\n");
    // Axes that both carry are outer; nothing is I or J.
    expect_text(&m, 6,
                "contraction ein f32 outer 5 outer 7 K 2 K 3\n"
                "f32 21,1,105,7\nf32 21,1,105,7\nout f32 7,1,0,0\n");
    const RlzNest *nest = nest_of(&m, 7, true);
    assert_int_equal(rlz_nest_axis(nest, RLZ_J), -1);
    assert_int_equal(rlz_nest_extent(nest, RLZ_J), 1);
    // An operand in another memory order differs in strides alone.
    m.transposed[1] = true;
    expect_text(&m, 3,
                "contraction ein f32 outer 2 outer 3 I 5 J 5 K 7\n"
                "f32 105,7,21,0,1\nf32 1,10,0,2,30\nout f32 75,25,5,1,0\n");
    context_free(&m.context);
}

static void reductions(void **state) {
    (void)state;
    Maker m;
    const int64_t dims[] = {-1, 4, 6};
    begin(&m,
          "fn f{B, N, ...}(%0 : ℝ[B, ..., N]) -> ℝ {\n"
          "  %1 : ℝ[B, ..., 1] = mean %0 over 2 keep\n"
          "  %2 : ℝ[N] = sum %0 over 0 1\n"
          "  %3 : ℝ = reduce_max %0 over 0 1 2\n"
          "  %4 : ℝ[B, N] = sum %0 over 1\n"
          "  %5 : idx[B][..., N] = argmax %0 over 0\n"
          "  return %3\n}\n",
          dims, 2, (const int64_t[]){3, 5});
    expect_text(&m, 1, "reduction mean f32 parallel 60 reduced 6\nf32 6,1\nout f32 1,0\n");
    expect_text(&m, 2, "reduction sum f32 parallel 6 reduced 60\nf32 1,6\nout f32 1,0\n");
    expect_text(&m, 3, "reduction reduce_max f32 reduced 360\nf32 1\nout f32 0\n");
    expect_text(&m, 4,
                "reduction sum f32 parallel 4 parallel 6 reduced 15\nf32 90,1,6\nout f32 6,1,0\n");
    expect_text(&m, 5,
                "reduction argmax f32 parallel 90 reduced 4\nf32 1,90\nout u8 1,0 below 4\n");
    // A reduced axis merges only where the terms keep their order.
    m.transposed[0] = true;
    expect_text(&m, 2,
                "reduction sum f32 parallel 6 reduced 4 reduced 3 reduced 5\nf32 60,1,4,12\n"
                "out f32 1,0,0,0\n");
    context_free(&m.context);
}

static void rows_and_moves(void **state) {
    (void)state;
    Maker m;
    const int64_t dims[] = {-1, 4, 6};
    begin(&m,
          "fn f{B, N}(%0 : ℝ[B, 3, N], %1 : idx[2][3, N], %2 : idx[N][B, 3], %3 : ℝ[N, B]) -> "
          "ℝ {\n"
          "  %4 : ℝ[B, 3, N] = softmax %0 %1 over 2\n"
          "  %5 : ℝ[B, 3, N] = softmax %0 over 1\n"
          "  %6 : ℝ[B, 3, 1] = logsumexp %0 over 2 keep\n"
          "  %7 : ℝ[B, 3] = cross_entropy %0 %2 over 2\n"
          "  %8 : ℝ[B, 3] = pick %0 %2 over 2\n"
          "  %9 : ℝ[B, 3, B] = gather %3 %2\n"
          "  %10 : ℝ[N, B, 3] = permute %0 [2, 0, 1]\n"
          "  %11 : ℝ = sum %10 over 0 1 2\n  return %11\n}\n",
          dims, 0, NULL);
    expect_text(&m, 4,
                "row softmax f32 parallel 4 parallel 3 reduced 6\nf32 18,6,1\nu8 0,6,1 below 2\n"
                "out f32 18,6,1\n");
    expect_text(&m, 5,
                "row softmax f32 parallel 4 parallel 6 reduced 3\nf32 18,1,6\nout f32 18,1,6\n");
    expect_text(&m, 6, "row logsumexp f32 parallel 12 reduced 6\nf32 6,1\nout f32 1,0\n");
    expect_text(&m, 7,
                "row cross_entropy f32 parallel 12 reduced 6\nf32 6,1\nu8 1,0 below 6\n"
                "out f32 1,0\n");
    expect_text(&m, 8, "indexed pick f32 parallel 12\nf32 6 at 1 of 6\nu8 1 below 6\nout f32 1\n");
    expect_text(&m, 9,
                "indexed gather f32 parallel 12 parallel 4\nf32 0,1 at 4 of 6\nu8 1,0 below 6\n"
                "out f32 4,1\n");
    expect_text(&m, 10, "permute permute f32 parallel 6 parallel 12\nf32 1,6\nout f32 12,1\n");
    RlzLayout layout = rlz_layout_default(nest_of(&m, 4, true), 256, 1, false);
    assert_string_equal(rlz_layout_text(nest_of(&m, 4, true), &layout, m.context.arena).at,
                        "passes 3 lanes 1");
    context_free(&m.context);
}

static void groups(void **state) {
    (void)state;
    Maker m;
    const int64_t dims[] = {-1, 4, 6};
    begin(&m,
          "fn f{B, N, ...}(%0 : ℝ[..., N], %1 : ℝ[N], %2 : ℝ) -> idx[2][..., N] {\n"
          "  %3 : ℝ = scalar 1/3\n"
          "  %4 : ℝ[..., N] = mul %0 %1\n"
          "  %5 : ℝ[..., N] = add %4 %3\n"
          "  %6 : ℝ[..., N] = pow %5 3\n"
          "  %7 : ℝ[..., N] = sub %6 %2\n"
          "  %8 : idx[N][N] = range\n"
          "  %9 : idx[2][..., N] = lt %7 %8\n"
          "  return %9\n}\n",
          dims, 2, (const int64_t[]){3, 5});
    m.storage = BF16;
    // A power above 2 joins no group, so it ends one and starts another.
    expect_text(&m, 5,
                "group add f32 parallel 15 parallel 6\nbf16 6,1\nbf16 0,1\n"
                "const 3fd5555560000000\n"
                "mul f32 i0 i1\nadd f32 n0 i2\nout bf16 6,1\n");
    expect_text(&m, 9,
                "group lt f32 parallel 15 parallel 6\nbf16 6,1\niota 0,1 below 6\n"
                "lt f32 i0 i1\nout u8 6,1 below 2\n");
    // Without fusion each member is a nest, and one axis suffices where nothing is broadcast.
    const RlzNest *alone = nest_of(&m, 5, false);
    assert_int_equal(alone->nodes, 1);
    assert_string_equal(rlz_nest_text(alone, m.context.arena).at,
                        "group add f32 parallel 90\nbf16 1\nconst 3fd5555560000000\n"
                        "add f32 i0 i1\nout bf16 1\n");
    assert_true(rlz_nest_weight(alone) == 90);
    context_free(&m.context);
}

// Extent 1 is dropped outside contractions, 0 stays.
static void degenerate_extents(void **state) {
    (void)state;
    Maker m;
    const int64_t dims[] = {-1, 1, 0};
    begin(&m,
          "fn f{B, N}(%0 : ℝ[B, 1, N], %1 : ℝ[N, B]) -> ℝ[B, 1, B] {\n"
          "  %2 : ℝ[B, 1] = sum %0 over 2\n  %3 : ℝ[B, 1, B] = dot %0 %1\n  return %3\n}\n",
          dims, 0, NULL);
    expect_text(&m, 2, "reduction sum f32 reduced 0\nf32 1\nout f32 0\n");
    expect_text(&m, 3,
                "contraction dot f32 outer 1 I 1 J 1 K 0\nf32 0,0,0,1\nf32 0,0,0,1\n"
                "out f32 0,0,0,0\n");
    const RlzNest *nest = nest_of(&m, 3, true);
    assert_int_equal(rlz_operand_span(nest, &nest->input[0]), 0);
    assert_int_equal(rlz_operand_span(nest, &nest->output), 1);
    context_free(&m.context);
}

// Above four million weighted operations the outermost loop that has anything to divide is split.
static void default_splits(void **state) {
    (void)state;
    static const struct {
        int64_t outer, i, j, k;
        uint32_t workers;
        int32_t depth;
    } cases[] = {{2, 100, 100, 100, 3, -1}, // 4e6 is not above it
                 {2, 101, 100, 100, 3, 0},  {1, 300, 100, 100, 3, 1}, {1, 1, 5000, 500, 3, 2},
                 {2, 101, 100, 100, 1, -1}, {1, 1, 1, 3000000, 3, -1}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        RlzNest nest = {.kind = RLZ_CONTRACTION,
                        .prim = CORE_ein,
                        .axes = 4,
                        .extent = {cases[i].outer, cases[i].i, cases[i].j, cases[i].k},
                        .role = {RLZ_OUTER, RLZ_I, RLZ_J, RLZ_K},
                        .inputs = 2,
                        .input = (const RlzOperand[2]){{0}, {0}}};
        RlzLayout layout = rlz_layout_default(&nest, 512, cases[i].workers, false);
        assert_int_equal(layout.split_depth, cases[i].depth);
        if (cases[i].depth >= 0)
            assert_int_equal(layout.split_workers, 3);
    }
}

static void legal_lanes(void **state) {
    (void)state;
    static const struct {
        DType storage;
        RlzTarget target;
        uint32_t count, lanes[RLZ_LANES_CHOICES];
    } cases[] = {{F32, 128, 2, {1, 4}},       {F32, 512, 4, {1, 4, 8, 16}}, {F64, 128, 2, {1, 2}},
                 {F64, 512, 4, {1, 2, 4, 8}}, {BF16, 128, 1, {1}},          {BF16, 256, 2, {1, 8}},
                 {BF16, 512, 3, {1, 8, 16}}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        RlzNest nest = {.arithmetic = dtype_arithmetic(cases[i].storage),
                        .accumulate = dtype_arithmetic(cases[i].storage),
                        .output.type = cases[i].storage};
        uint32_t lanes[RLZ_LANES_CHOICES];
        assert_int_equal(rlz_lanes_legal(&nest, cases[i].target, lanes), cases[i].count);
        assert_memory_equal(lanes, cases[i].lanes, cases[i].count * sizeof *lanes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dots),           cmocka_unit_test(eins),
        cmocka_unit_test(reductions),     cmocka_unit_test(rows_and_moves),
        cmocka_unit_test(groups),         cmocka_unit_test(degenerate_extents),
        cmocka_unit_test(default_splits), cmocka_unit_test(legal_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
