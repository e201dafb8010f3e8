// Functions in the reference evaluator: fusion groups and where they round, host scalars, calls,
// packs, parameter trees, indices, launches, and runs that end in a diagnostic.
#include "support/eval_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const double inf = INFINITY, nan_ = NAN;

static CoreValue list(const Run *run, uint32_t count, const CoreValue *parts) {
    CoreValue value = {.count = count};
    value.parts = arena_copy(run->context->arena, parts, count * sizeof *parts);
    return value;
}

// ---- groups -------------------------------------------------------------------------------------

static const char *const two_sums = "fn f(%0 : ℝ[1]) -> ℝ[1] {\n  %1 : ℝ = scalar 1/256\n"
                                    "  %2 : ℝ[1] = add %0 %1\n  %3 : ℝ[1] = add %2 %1\n"
                                    "  return %3\n}\n";

// In bf16 1 + 2^−8 is a tie that goes back to 1; within a group the sum is not rounded to it.
static void groups_round_once(void **state) {
    Run r = run_new(state, two_sums);
    r.storage = BF16;
    CoreValue one = run_tensor(&r, shape_of(1), reals(1));
    CoreValue out = run(&r, &one);
    expect_elements(&out, shape_of(1), reals(1 + 0x1p-7));
    assert_int_equal(r.launches, 1);
    assert_int_equal(out.tensor.type, BF16);
    r.arithmetic.fusion = false;
    out = run(&r, &one);
    expect_elements(&out, shape_of(1), reals(1));
    assert_int_equal(r.launches, 2);
}

static void fusion_moves_no_bit_in_f32(void **state) {
    const char *text = "fn f(%0 : ℝ[4, 5], %1 : ℝ[5]) -> ℝ[4, 5] {\n"
                       "  %2 : ℝ[4, 5] = mul %0 %1\n  %3 : ℝ[4, 5] = gelu %2\n"
                       "  %4 : ℝ[4, 5] = tanh %3\n  %5 : ℝ[4, 5] = sub %4 %2\n"
                       "  %6 : ℝ[4, 5] = exp %5\n  return %6\n}\n";
    Run r = run_new(state, text);
    double x[20];
    for (int i = 0; i < 20; i++)
        x[i] = 0.37 * i - 3.3;
    CoreValue in[] = {run_tensor(&r, shape_of(4, 5), x),
                      run_tensor(&r, shape_of(5), reals(1, -0.5, 0.1, 2, 3))};
    CoreValue fused = run(&r, in);
    assert_int_equal(r.launches, 1);
    r.arithmetic.fusion = false;
    CoreValue apart = run(&r, in);
    assert_int_equal(r.launches, 5);
    int64_t where;
    assert_true(tensor_same_bits(&fused.tensor, &apart.tensor, &where));
}

// B21: the quotient is compared as it lies in memory, since the maximum reads it there.
static void quotients_and_their_maximum(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[4]) -> (ℝ, ℝ) {\n  %1 : ℝ = scalar 7\n"
                           "  %2 : ℝ[4] = div %0 %1\n  %3 : ℝ = reduce_max %2 over 0\n"
                           "  %4 : idx[2][4] = eq %2 %3\n  %5 : ℝ[4] = copy %4\n"
                           "  %6 : ℝ = sum %5 over 0\n  %7 : (ℝ, ℝ) = tuple %3 %6\n"
                           "  return %7\n}\n");
    for (int bf16 = 0; bf16 < 2; bf16++) {
        r.storage = bf16 ? BF16 : F32;
        CoreValue in = run_tensor(&r, shape_of(4), reals(1, 3, 5, 5));
        CoreValue out = run(&r, &in);
        double largest = bf16 ? 0.71484375 : mth_round(F32, 5.0 / 7);
        expect_elements(&out.parts[0], no_axes, &largest);
        expect_elements(&out.parts[1], no_axes, reals(2));
    }
}

// B22: a product reaches memory, so it is rounded before the sum.
static void a_product_and_a_bias_in_bf16(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[1, 2], %1 : ℝ[2, 1]) -> ℝ[1, 1] {\n"
                           "  %2 : ℝ[1, 1] = dot %0 %1\n  %3 : ℝ = scalar 1/256\n"
                           "  %4 : ℝ[1, 1] = add %2 %3\n  return %4\n}\n");
    r.storage = BF16;
    CoreValue in[] = {run_tensor(&r, shape_of(1, 2), reals(1, 0x1p-8)),
                      run_tensor(&r, shape_of(2, 1), reals(1, 1))};
    CoreValue out = run(&r, in);
    expect_elements(&out, shape_of(1, 1), reals(1));
}

// One site in f64 among f32 sites: 2^24 + 1 survives until it is stored in f32.
static void a_site_of_another_type(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[2]) -> (ℝ, ℝ) {\n  %1 : ℝ = sum %0 over 0\n"
                           "  %2 : ℝ = scalar 16777216\n  %3 : ℝ = sub %1 %2\n"
                           "  %4 : (ℝ, ℝ) = tuple %1 %3\n  return %4\n}\n");
    CoreValue in = run_tensor(&r, shape_of(2), reals(0x1p24, 1));
    CoreValue out = run(&r, &in);
    expect_elements(&out.parts[1], no_axes, reals(0));
    r.wide = "%1";
    out = run(&r, &in);
    assert_int_equal(out.parts[0].tensor.type, F64);
    expect_elements(&out.parts[0], no_axes, reals(0x1.000001p24));
    // %3 is in f32: its operand is rounded on load.
    expect_elements(&out.parts[1], no_axes, reals(0));
    r.wide = "%3";
    out = run(&r, &in);
    expect_elements(&out.parts[0], no_axes, reals(0x1p24));
}

// What moves from an f64 site to a bf16 one is rounded to the arithmetic type f32 on its way:
// 1 + 2^−8 + 2^−30 becomes a tie, which goes to 1.
static void moves_between_types(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[1]) -> (ℝ[1], ℝ[1, 1]) {\n"
                           "  %1 : ℝ = scalar 1/256 + 1/1073741824\n  %2 : ℝ[1] = add %0 %1\n"
                           "  %3 : ℝ[1, 1] = view %2\n  %4 : ℝ[1, 1] = permute %3 [1, 0]\n"
                           "  %5 : idx[1][1] = range\n  %6 : ℝ[1] = gather %2 %5\n"
                           "  %7 : (ℝ[1], ℝ[1, 1]) = tuple %6 %4\n  return %7\n}\n");
    r.storage = BF16;
    r.wide = "%2";
    CoreValue one = run_tensor(&r, shape_of(1), reals(1));
    CoreValue out = run(&r, &one);
    expect_elements(&out.parts[0], shape_of(1), reals(1));
    expect_elements(&out.parts[1], shape_of(1, 1), reals(1));
}

// B30: two broadcasts whose results have one shape.
static void broadcasts(void **state) {
    Run r =
        run_new(state, "fn f(%0 : ℝ[3, 1], %1 : ℝ[1, 3], %2 : ℝ[3, 3]) -> (ℝ[3, 3], ℝ[3, 3]) {\n"
                       "  %3 : ℝ[3, 3] = add %0 %1\n  %4 : ℝ[3, 3] = add %2 %2\n"
                       "  %5 : (ℝ[3, 3], ℝ[3, 3]) = tuple %3 %4\n  return %5\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(3, 1), reals(10, 20, 30)),
                      run_tensor(&r, shape_of(1, 3), reals(1, 2, 3)),
                      run_tensor(&r, shape_of(3, 3), reals(1, 2, 3, 4, 5, 6, 7, 8, 9))};
    CoreValue out = run(&r, in);
    expect_elements(&out.parts[0], shape_of(3, 3), reals(11, 12, 13, 21, 22, 23, 31, 32, 33));
    expect_elements(&out.parts[1], shape_of(3, 3), reals(2, 4, 6, 8, 10, 12, 14, 16, 18));
}

// B16, elementwise.
static void nan_in_either_operand(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[4], %1 : ℝ[4]) -> (ℝ[4], ℝ[4], ℝ[4]) {\n"
                           "  %2 : ℝ[4] = max %0 %1\n  %3 : ℝ[4] = min %0 %1\n"
                           "  %4 : ℝ[4] = relu %0\n"
                           "  %5 : (ℝ[4], ℝ[4], ℝ[4]) = tuple %2 %3 %4\n  return %5\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(4), reals(nan_, 1, nan_, -2)),
                      run_tensor(&r, shape_of(4), reals(1, nan_, nan_, 2))};
    CoreValue out = run(&r, in);
    expect_elements(&out.parts[0], shape_of(4), reals(nan_, nan_, nan_, 2));
    expect_elements(&out.parts[1], shape_of(4), reals(nan_, nan_, nan_, -2));
    expect_elements(&out.parts[2], shape_of(4), reals(nan_, 1, nan_, 0));
}

// ---- scalars ------------------------------------------------------------------------------------

// An exact third enters a nest in its arithmetic type, and memory in its storage type.
static void scalars_are_rounded_where_they_enter(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[1]) -> (ℝ[1], ℝ) {\n  %1 : ℝ = scalar 1/3\n"
                           "  %2 : ℝ = scalar 3\n  %3 : ℝ[1] = mul %0 %1\n"
                           "  %4 : ℝ[1] = mul %3 %2\n  %5 : (ℝ[1], ℝ) = tuple %4 %1\n"
                           "  return %5\n}\n");
    r.storage = BF16;
    CoreValue one = run_tensor(&r, shape_of(1), reals(1));
    CoreValue out = run(&r, &one);
    expect_elements(&out.parts[0], shape_of(1), reals(1)); // f32: 3 · RN(1/3) = 1
    expect_elements(&out.parts[1], no_axes, reals(0x1.56p-2));
    r.arithmetic.fusion = false;
    out = run(&r, &one); // 1/3 in f32, rounded to bf16, times 3: 1.001953125, which is 1 in bf16
    expect_elements(&out.parts[0], shape_of(1), reals(1));
}

static bool hyper(void *data, Name name, double *value) {
    (void)data;
    (void)name;
    *value = 0.1;
    return true;
}

static void hyperparameters(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = scalar 1 - @beta\n"
                           "  %2 : ℝ = mul %0 %1\n  return %2\n}\n");
    CoreValue two = run_tensor(&r, no_axes, reals(2));
    CoreValue out = run(&r, &two);
    assert_int_equal(r.context->diags.errors, 1); // E6003: it has no value
    assert_null(out.tensor.data);
    r.hyper = hyper;
    out = run(&r, &two);
    double expected = mth_round(F32, 2 * mth_round(F32, 1 - 0.1));
    expect_elements(&out, no_axes, &expected);
}

// ---- calls, trees -------------------------------------------------------------------------------

static const char *const network =
    "module Linear{I, O} {\n  w : ℝ[I, O] init zeros\n  b : ℝ[O] init zeros\n}\n"
    "module Net{N} {\n  scale : ℝ init ones\n  layers : [Linear{N, N} ^ 2]\n}\n"
    "fn Linear.apply{I, O, ...}(%0 : params Linear{I, O}, %1 : ℝ[..., I]) -> ℝ[..., O] {\n"
    "  %2 : ℝ[I, O] = field %0 w\n  %3 : ℝ[..., O] = dot %1 %2\n  %4 : ℝ[O] = field %0 b\n"
    "  %5 : ℝ[..., O] = add %3 %4\n  return %5\n}\n"
    "fn f{N}(%0 : params Net{N}, %1 : ℝ[2, 3, N]) -> ℝ[2, 3, N] {\n"
    "  %2 : params Linear{N, N} = field %0 layers.0\n"
    "  %3 : ℝ[2, 3, N] = call Linear.apply{N, N, ...: [2, 3]} %2 %1\n"
    "  %4 : params Linear{N, N} = field %0 layers.1\n"
    "  %5 : ℝ[6, N] = view %3\n"
    "  %6 : ℝ[6, N] = call Linear.apply{N, N, ...: [6]} %4 %5\n"
    "  %7 : ℝ[2, 3, N] = view %6\n  %8 : ℝ = field %0 scale\n"
    "  %9 : ℝ[2, 3, N] = mul %7 %8\n  return %9\n}\n";

static void calls_at_two_shapes(void **state) {
    Run r = run_new(state, network);
    r.dims = (const int64_t[]){2};
    CoreValue tree = list(&r, 5,
                          (CoreValue[]){run_tensor(&r, no_axes, reals(10)),
                                        run_tensor(&r, shape_of(2, 2), reals(1, 2, 3, 4)),
                                        run_tensor(&r, shape_of(2), reals(5, 6)),
                                        run_tensor(&r, shape_of(2, 2), reals(0, 1, 1, 0)),
                                        run_tensor(&r, shape_of(2), reals(-1, 1))});
    double x[12], expected[12];
    for (int i = 0; i < 6; i++) {
        double a = x[2 * i] = i, b = x[2 * i + 1] = 2 - i;
        double u = a + 3 * b + 5, v = 2 * a + 4 * b + 6;
        expected[2 * i] = 10 * (v - 1);
        expected[2 * i + 1] = 10 * (u + 1);
    }
    CoreValue out = run(&r, (CoreValue[]){tree, run_tensor(&r, shape_of(2, 3, 2), x)});
    expect_elements(&out, shape_of(2, 3, 2), expected);
    assert_int_equal(r.launches, 5); // two products, two sums, one scale
}

// A step over a parameter tree: one launch a leaf, a group over all of it.
static void steps_over_trees(void **state) {
    Run r = run_new(state, "module W {\n  a : ℝ[2] init zeros\n  b : ℝ init zeros\n}\n"
                           "fn step(%0 : params W, %1 : params W) -> params W {\n"
                           "  %2 : ℝ = scalar 1/2\n  %3 : params W = mul %1 %2\n"
                           "  %4 : params W = sub %0 %3\n  return %4\n}\n");
    CoreValue p = list(
        &r, 2,
        (CoreValue[]){run_tensor(&r, shape_of(2), reals(1, 2)), run_tensor(&r, no_axes, reals(3))});
    CoreValue g = list(&r, 2,
                       (CoreValue[]){run_tensor(&r, shape_of(2), reals(10, 20)),
                                     run_tensor(&r, no_axes, reals(30))});
    CoreValue out = run(&r, (CoreValue[]){p, g});
    assert_int_equal(out.count, 2);
    expect_elements(&out.parts[0], shape_of(2), reals(-4, -8));
    expect_elements(&out.parts[1], no_axes, reals(-12));
    assert_int_equal(r.launches, 2);
    r.arithmetic.fusion = false;
    run(&r, (CoreValue[]){p, g});
    assert_int_equal(r.launches, 4);
}

static void packs_of_any_rank(void **state) {
    Run r = run_new(state, "fn f{A, N, ...}(%0 : ℝ[A, ..., N], %1 : ℝ[..., 1]) -> ℝ[A, ..., N] {\n"
                           "  %2 : ℝ[A, ..., N] = add %0 %1\n  return %2\n}\n");
    r.dims = (const int64_t[]){2, 1};
    r.pack_rank = 2;
    r.pack = (const int64_t[]){1, 2};
    CoreValue in[] = {run_tensor(&r, shape_of(2, 1, 2, 1), reals(1, 2, 3, 4)),
                      run_tensor(&r, shape_of(1, 2, 1), reals(10, 20))};
    CoreValue out = run(&r, in);
    expect_elements(&out, shape_of(2, 1, 2, 1), reals(11, 22, 13, 24));
    r.pack_rank = 0;
    in[0] = run_tensor(&r, shape_of(2, 1), reals(1, 2));
    in[1] = run_tensor(&r, shape_of(1), reals(10));
    out = run(&r, in);
    expect_elements(&out, shape_of(2, 1), reals(11, 12));
}

// ---- indices ------------------------------------------------------------------------------------

static void gathers_and_masks(void **state) {
    Run r =
        run_new(state, "fn f(%0 : ℝ[3, 2], %1 : idx[3][2, 2]) -> (ℝ[2, 2, 2], ℝ[2, 2], ℝ[2]) {\n"
                       "  %2 : ℝ[2, 2, 2] = gather %0 %1\n  %3 : idx[2][2] = range\n"
                       "  %4 : idx[2][2, 1] = view %3\n  %5 : idx[2][2, 2] = ge %4 %3\n"
                       "  %6 : ℝ = scalar 0\n  %7 : ℝ = scalar 1\n"
                       "  %8 : ℝ[2, 2] = select %5 %7 %6\n  %9 : ℝ[2] = copy %3\n"
                       "  %10 : (ℝ[2, 2, 2], ℝ[2, 2], ℝ[2]) = tuple %2 %8 %9\n"
                       "  return %10\n}\n");
    CoreValue in[] = {run_tensor(&r, shape_of(3, 2), reals(1, 2, 3, 4, 5, 6)),
                      run_index(&r, 3, shape_of(2, 2), indices(2, 0, 1, 1))};
    CoreValue out = run(&r, in);
    expect_elements(&out.parts[0], shape_of(2, 2, 2), reals(5, 6, 1, 2, 3, 4, 3, 4));
    expect_elements(&out.parts[1], shape_of(2, 2), reals(1, 0, 1, 1));
    expect_elements(&out.parts[2], shape_of(2), reals(0, 1));
}

// Indices are compared as integers, above what f32 holds.
static void large_indices_are_compared_exactly(void **state) {
    Run r = run_new(
        state, "fn f(%0 : idx[20000000][1], %1 : idx[20000000][1]) -> (idx[2][1], idx[2][1]) {\n"
               "  %2 : idx[2][1] = eq %0 %1\n  %3 : idx[2][1] = lt %0 %1\n"
               "  %4 : (idx[2][1], idx[2][1]) = tuple %2 %3\n  return %4\n}\n");
    CoreValue in[] = {run_index(&r, 20000000, shape_of(1), indices(16777216)),
                      run_index(&r, 20000000, shape_of(1), indices(16777217))};
    CoreValue out = run(&r, in);
    expect_elements(&out.parts[0], shape_of(1), reals(0));
    expect_elements(&out.parts[1], shape_of(1), reals(1));
}

static void permutes_and_parts(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[2, 3]) -> (ℝ[3, 2], ℝ[6]) {\n"
                           "  %1 : ℝ[3, 2] = permute %0 [1, 0]\n  %2 : ℝ[6] = view %1\n"
                           "  %3 : (ℝ[3, 2], ℝ[6]) = tuple %1 %2\n"
                           "  %4 : ℝ[3, 2] = item %3 0\n  %5 : ℝ[3, 2] = neg %4\n"
                           "  %6 : (ℝ[3, 2], ℝ[6]) = tuple %5 %2\n  return %6\n}\n");
    CoreValue in = run_tensor(&r, shape_of(2, 3), reals(1, 2, 3, 4, 5, 6));
    CoreValue out = run(&r, &in);
    expect_elements(&out.parts[0], shape_of(3, 2), reals(-1, -4, -2, -5, -3, -6));
    expect_elements(&out.parts[1], shape_of(6), reals(1, 4, 2, 5, 3, 6));
    assert_int_equal(r.launches, 2);
}

static void special_values_pass(void **state) {
    Run r = run_new(state, "fn f(%0 : ℝ[5]) -> ℝ[5] {\n  %1 : ℝ[5] = gelu %0\n  return %1\n}\n");
    CoreValue in = run_tensor(&r, shape_of(5), reals(-inf, -0.0, 0, inf, nan_));
    CoreValue out = run(&r, &in);
    expect_elements(&out, shape_of(5), reals(-0.0, -0.0, 0, inf, nan_));
}

// ---- diagnostics --------------------------------------------------------------------------------

static void values_without_a_size(void **state) {
    Run r = run_new(state, "dim B\nfn f(%0 : ℝ[1]) -> ℝ[B] {\n  %1 : ℝ[B] = copy %0\n"
                           "  return %1\n}\n");
    CoreValue in = run_tensor(&r, shape_of(1), reals(1));
    CoreValue out = run(&r, &in);
    assert_null(out.tensor.data);
    assert_int_equal(r.context->diags.errors, 1);
    assert_int_equal(r.context->diags.all.at[0]->code, DIAG_E6002);
}

static void values_beyond_memory(void **state) {
    Run r = run_new(state, "fn f{N}(%0 : ℝ[1]) -> ℝ {\n  %1 : ℝ[N, N] = copy %0\n"
                           "  %2 : ℝ = sum %1 over 0 1\n  return %2\n}\n");
    r.dims = (const int64_t[]){1 << 29};
    CoreValue in = run_tensor(&r, shape_of(1), reals(1));
    run(&r, &in);
    assert_int_equal(r.context->diags.all.at[0]->code, DIAG_E6001);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(groups_round_once),
        TEST(fusion_moves_no_bit_in_f32),
        TEST(quotients_and_their_maximum),
        TEST(a_product_and_a_bias_in_bf16),
        TEST(a_site_of_another_type),
        TEST(moves_between_types),
        TEST(broadcasts),
        TEST(nan_in_either_operand),
        TEST(scalars_are_rounded_where_they_enter),
        TEST(hyperparameters),
        TEST(calls_at_two_shapes),
        TEST(steps_over_trees),
        TEST(packs_of_any_rank),
        TEST(gathers_and_masks),
        TEST(large_indices_are_compared_exactly),
        TEST(permutes_and_parts),
        TEST(special_values_pass),
        TEST(values_without_a_size),
        TEST(values_beyond_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
