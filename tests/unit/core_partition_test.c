// The fusion partition on programs by hand, checked from its definition and against paper.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/launch.h"
#include "support/core_text.h"
#include "support/partition_check.h"

// Partitions the text's functions, checks them, and compares the last with `expected`, which gives
// the root of each let's group in order, "." for none.
static CoreProgram *expect(Context *context, const char *text, const char *expected) {
    CoreProgram *program = core_of_legal_text(context, text);
    core_partition(program);
    Str errors;
    if (!core_verify(program, context->arena, &errors))
        fail_msg("%s", errors.at);
    for (CoreFnId id = 1; id < program->fns.count; id++) {
        Str fault = partition_fault(program, id, true, context->arena);
        if (fault.size)
            fail_msg("%s\n%s", fault.at, core_print_fn(program, id, context->arena).at);
    }
    const CoreFn *fn = core_fn(program, program->fns.count - 1);
    StrBuf buf = {.arena = context->arena};
    for (CoreLetId v = fn->params; v < fn->lets.count; v++)
        if (fn->group[v] == CORE_NO_GROUP)
            buf_text(&buf, v > fn->params ? " ." : ".");
        else
            buf_format(&buf, "%s%u", v > fn->params ? " " : "", fn->group[v]);
    assert_string_equal(buf_str(&buf).at, expected);
    // The partition is printed and read back, and dead code does not touch it.
    Str printed = core_print(program, context->arena);
    CoreProgram *again = core_of_legal_text(context, printed.at);
    assert_string_equal(core_print(again, context->arena).at, printed.at);
    return program;
}

static uint32_t launches(const CoreProgram *program, bool fusion) {
    const CoreFn *fn = core_fn(program, program->fns.count - 1);
    uint32_t count = 0;
    for (CoreLetId v = 0; v < fn->lets.count; v++)
        count += core_let_launches(fn, v, fusion);
    return count;
}

static const CoreRemark *only_remark(const CoreProgram *program) {
    const CoreFn *fn = core_fn(program, program->fns.count - 1);
    assert_int_equal(fn->remarks.count, 1);
    return &fn->remarks.at[0];
}

#define HEAD "fn f(%0 : ℝ[8], %1 : ℝ[8]) -> "

static void chains(void **state) {
    Context *c = *state;
    // gelu(a + b) * a: one chain
    CoreProgram *p = expect(c,
                            HEAD "ℝ[8] {\n  %2 : ℝ[8] = add %0 %1\n  %3 : ℝ[8] = gelu %2\n"
                                 "  %4 : ℝ[8] = mul %3 %0\n  return %4\n}\n",
                            "4 4 4");
    assert_int_equal(launches(p, false), 3);
    assert_int_equal(launches(p, true), 1);
    assert_int_equal(core_fn(p, 1)->remarks.count, 0);
    // a diamond: both sides meet in the root
    expect(c,
           HEAD "ℝ[8] {\n  %2 : ℝ[8] = exp %0\n  %3 : ℝ[8] = sqrt %2\n  %4 : ℝ[8] = neg %2\n"
                "  %5 : ℝ[8] = add %3 %4\n  return %5\n}\n",
           "5 5 5 5");
    // one value alone is no group
    expect(c, HEAD "ℝ[8] {\n  %2 : ℝ[8] = exp %0\n  return %2\n}\n", ".");
    // a host scalar is no node
    expect(c,
           HEAD "ℝ[8] {\n  %2 : ℝ = scalar 1/8\n  %3 : ℝ[8] = mul %0 %2\n"
                "  %4 : ℝ[8] = add %3 %2\n  return %4\n}\n",
           ". 4 4");
}

static void readers_outside(void **state) {
    Context *c = *state;
    // read by a reduction too
    CoreProgram *p = expect(c,
                            HEAD "ℝ[8] {\n  %2 : ℝ[8] = exp %0\n  %3 : ℝ = sum %2 over 0\n"
                                 "  %4 : ℝ[8] = div %2 %3\n  %5 : ℝ[8] = neg %4\n  return %5\n}\n",
                            ". . 5 5");
    assert_int_equal(only_remark(p)->kind, CORE_REMARK_OUTSIDE_READER);
    assert_int_equal(only_remark(p)->let, 2);
    assert_int_equal(only_remark(p)->reader, 4);
    assert_int_equal(only_remark(p)->other, 3);
    // two groups read it
    expect(c,
           HEAD "(ℝ[8], ℝ[8]) {\n  %2 : ℝ[8] = exp %0\n  %3 : ℝ[8] = neg %2\n"
                "  %4 : ℝ[8] = sqrt %3\n  %5 : ℝ[8] = abs %2\n  %6 : ℝ[8] = sqrt %5\n"
                "  %7 : (ℝ[8], ℝ[8]) = tuple %4 %6\n  return %7\n}\n",
           ". 4 4 6 6 .");
    // the result is read from outside although every reader is in the group
    p = expect(c,
               HEAD "ℝ[8] {\n  %2 : ℝ[8] = exp %0\n  %3 : ℝ[8] = neg %2\n  %4 : ℝ[8] = abs %3\n"
                    "  return %3\n}\n",
               "3 3 .");
    assert_int_equal(only_remark(p)->kind, CORE_REMARK_RESULT);
    // a dead reader is a reader
    expect(c,
           HEAD "ℝ[8] {\n  %2 : ℝ[8] = exp %0\n  %3 : ℝ = sum %2 over 0\n  %4 : ℝ[8] = neg %2\n"
                "  return %4\n}\n",
           ". . .");
}

static void types_and_powers(void **state) {
    Context *c = *state;
    CoreProgram *p = expect(c,
                            "fn f(%0 : ℝ[1], %1 : ℝ[8]) -> ℝ[8] {\n  %2 : ℝ[1] = sqrt %0\n"
                            "  %3 : ℝ[8] = div %1 %2\n  return %3\n}\n",
                            ". .");
    assert_int_equal(only_remark(p)->kind, CORE_REMARK_OTHER_TYPE);
    // axis names are no part of the type; idx[2] against ℝ is
    expect(c,
           "fn f(%0 : ℝ[a: 8], %1 : ℝ[8]) -> ℝ[a: 8] {\n  %2 : ℝ[8] = exp %1\n"
           "  %3 : idx[2][8] = lt %1 %2\n  %4 : ℝ[a: 8] = select %3 %0 %1\n"
           "  %5 : ℝ[8] = neg %2\n  %6 : ℝ[a: 8] = add %4 %5\n  return %6\n}\n",
           ". . 6 6 6");
    // a ^ 2 joins, a ^ 3 neither joins nor is joined
    expect(c, HEAD "ℝ[8] {\n  %2 : ℝ[8] = pow %0 2\n  %3 : ℝ[8] = add %2 %1\n  return %3\n}\n",
           "3 3");
    p = expect(c, HEAD "ℝ[8] {\n  %2 : ℝ[8] = pow %0 3\n  %3 : ℝ[8] = add %2 %1\n  return %3\n}\n",
               ". .");
    assert_int_equal(only_remark(p)->kind, CORE_REMARK_POWER);
    p = expect(c, HEAD "ℝ[8] {\n  %2 : ℝ[8] = add %0 %1\n  %3 : ℝ[8] = pow %2 3\n  return %3\n}\n",
               ". .");
    assert_int_equal(only_remark(p)->kind, CORE_REMARK_POWER);
}

// A chain of n exponentials, or of n doublings.
static CoreProgram *chain(Context *c, uint32_t n, const char *let) {
    StrBuf buf = {.arena = c->arena};
    buf_text(&buf, "fn f(%0 : ℝ) -> ℝ {\n");
    for (uint32_t i = 1; i <= n; i++) {
        buf_format(&buf, "  %%%u : ℝ = %s %%%u", i, let, i - 1);
        if (strcmp(let, "add") == 0)
            buf_format(&buf, " %%%u", i - 1);
        buf_char(&buf, '\n');
    }
    buf_format(&buf, "  return %%%u\n}\n", n);
    CoreProgram *program = core_of_legal_text(c, buf_str(&buf).at);
    core_partition(program);
    assert_int_equal(partition_fault(program, 1, true, c->arena).size, 0);
    return program;
}

static void the_cut_at_sixty_four(void **state) {
    Context *c = *state;
    CoreProgram *p = chain(c, 64, "exp");
    assert_int_equal(core_fn(p, 1)->group[1], 64);
    assert_int_equal(core_group_nodes(core_fn(p, 1), 64), 64);
    // 65: the first stays out; 70: the first six are a group of their own
    p = chain(c, 65, "exp");
    assert_int_equal(core_fn(p, 1)->group[1], CORE_NO_GROUP);
    assert_int_equal(core_fn(p, 1)->group[2], 65);
    assert_int_equal(only_remark(p)->kind, CORE_REMARK_SIZE);
    p = chain(c, 70, "exp");
    assert_int_equal(core_fn(p, 1)->group[6], 6);
    assert_int_equal(core_fn(p, 1)->group[1], 6);
    // doublings: 1 + 2 + 4 + 8 + 16 + 32 = 63, so six a group
    p = chain(c, 7, "add");
    assert_int_equal(core_fn(p, 1)->group[2], 7);
    assert_int_equal(core_group_nodes(core_fn(p, 1), 7), 63);
    assert_int_equal(core_fn(p, 1)->group[1], CORE_NO_GROUP);
    // a refused value does not keep a smaller one out: 63 nodes, the doubled exp refused, the
    // other one taken
    StrBuf buf = {.arena = c->arena};
    buf_text(&buf, "fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = neg %0\n  %2 : ℝ = exp %0\n"
                   "  %3 : ℝ = add %2 %2\n  %4 : ℝ = add %1 %3\n");
    for (uint32_t i = 5; i < 66; i++)
        buf_format(&buf, "  %%%u : ℝ = exp %%%u\n", i, i - 1);
    buf_text(&buf, "  return %65\n}\n");
    p = core_of_legal_text(c, buf_str(&buf).at);
    core_partition(p);
    assert_int_equal(partition_fault(p, 1, true, c->arena).size, 0);
    assert_int_equal(core_fn(p, 1)->group[3], 65);
    assert_int_equal(core_fn(p, 1)->group[2], CORE_NO_GROUP);
    assert_int_equal(core_fn(p, 1)->group[1], 65);
}

// On paper: LayerNorm 9 launches → 6, since sqrt(variance + eps) has extent 1 and is a group of
// its own; an AdamW step 16 → 3 a leaf.
static void layer_norm(void **state) {
    Context *c = *state;
    CoreProgram *p = expect(
        c,
        "module LayerNorm{N} {\n  gain : ℝ[N] init ones\n  bias : ℝ[N] init zeros\n}\n"
        "fn LayerNorm.apply{N, ...}(%0 : params LayerNorm{N}, %1 x : ℝ[..., N]) -> ℝ[..., N] {\n"
        "  %2 : ℝ[..., 1] = mean %1 over 1 keep\n  %3 : ℝ[..., N] = sub %1 %2\n"
        "  %4 : ℝ[..., N] = pow %3 2\n  %5 : ℝ[..., 1] = mean %4 over 1 keep\n"
        "  %6 : ℝ = scalar 0.00001\n  %7 : ℝ[..., 1] = add %5 %6\n  %8 : ℝ[..., 1] = sqrt %7\n"
        "  %9 : ℝ[..., N] = div %3 %8\n  %10 : ℝ[N] = field %0 gain\n"
        "  %11 : ℝ[..., N] = mul %9 %10\n  %12 : ℝ[N] = field %0 bias\n"
        "  %13 : ℝ[..., N] = add %11 %12\n  return %13\n}\n",
        ". . . . . 8 8 13 . 13 . 13");
    assert_int_equal(launches(p, false), 9);
    assert_int_equal(launches(p, true), 6);
}

static void adamw(void **state) {
    Context *c = *state;
#define P "params W"
    CoreProgram *p = expect(
        c,
        "module W {\n  w : ℝ[3] init zeros\n}\n"
        "fn adamw.step(%0 p : " P ", %1 g : " P ", %2 m : " P ", %3 v : " P ") -> "
        "(" P ", " P ", " P ") {\n"
        "  %4 : ℝ = scalar @beta1\n  %5 : " P " = mul %4 %2\n  %6 : ℝ = scalar 1 - @beta1\n"
        "  %7 : " P " = mul %6 %1\n  %8 : " P " = add %5 %7\n"
        "  %9 : ℝ = scalar @beta2\n  %10 : " P " = mul %9 %3\n  %11 : ℝ = scalar 1 - @beta2\n"
        "  %12 : " P " = pow %1 2\n  %13 : " P " = mul %11 %12\n  %14 : " P " = add %10 %13\n"
        "  %15 : ℝ = scalar 1 - (@beta1 ^ @t)\n  %16 : " P " = div %8 %15\n"
        "  %17 : ℝ = scalar 1 - (@beta2 ^ @t)\n  %18 : " P " = div %14 %17\n"
        "  %19 : " P " = sqrt %18\n  %20 : ℝ = scalar @eps\n  %21 : " P " = add %19 %20\n"
        "  %22 : " P " = div %16 %21\n  %23 : ℝ = scalar @decay\n  %24 : " P " = mul %23 %0\n"
        "  %25 : " P " = add %22 %24\n  %26 : ℝ = scalar @lr\n  %27 : " P " = mul %26 %25\n"
        "  %28 : " P " = sub %0 %27\n"
        "  %29 : (" P ", " P ", " P ") = tuple %28 %8 %14\n  return %29\n}\n",
        ". 8 . 8 8 . 14 . 14 14 14 . 28 . 28 28 . 28 28 . 28 28 . 28 28 .");
    assert_int_equal(launches(p, false), 16);
    assert_int_equal(launches(p, true), 3);
}

static int setup(void **state) {
    static Context context;
    context_init(&context);
    *state = &context;
    return 0;
}

static int teardown(void **state) {
    context_free(*state);
    return 0;
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(chains),           TEST(readers_outside),
        TEST(types_and_powers), TEST(the_cut_at_sixty_four),
        TEST(layer_norm),       TEST(adamw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
