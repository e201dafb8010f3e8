// Core's text: print → read → print, and malformed text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/core_text.h"

// Every construct of the text, as it is printed.
static const char *const whole =
    "dim B <= 256\n"
    "dim T\n"
    "\n"
    "module Linear{I, O} {\n"
    "  w : ℝ[I, O] init uniform(-1 / sqrt(I), 1 / sqrt(I))\n"
    "  b : ℝ[O] init zeros\n"
    "}\n"
    "\n"
    "module Net{N} {\n"
    "  first : Linear{N, 4 * N}\n"
    "  layers : [Linear{N, N} ^ 3, Linear{N, 1}]\n"
    "  scale : ℝ init constant([2 * N] / (3 + @lr))\n"
    "  shift : ℝ[in: N] init normal(0, 0.02)\n"
    "  gain : ℝ init ones\n"
    "}\n"
    "\n"
    "fn Linear.apply{I, O, ...}(%0 p : params Linear{I, O}, %1 x : ℝ[..., I]) -> ℝ[..., O] {\n"
    "  %2 : ℝ[I, O] = field %0 w\n"
    "  %3 : ℝ[..., O] = dot %1 %2\n"
    "  %4 : ℝ[O] = field %0 b\n"
    "  %5 : ℝ[..., O] = add %3 %4\n"
    "  return %5\n"
    "}\n"
    "\n"
    "fn all{N, ...}(%0 : params Net{N}, %1 x : ℝ[batch: B, seq: T, ..., N], %2 : idx[7][B]) -> "
    "(ℝ[B, 7], idx[2]) grouped {\n"
    "  %3 : params Linear{N, N} = field %0 layers.2\n"
    "  %4 y : ℝ[batch: B, seq: T, ..., N] = call Linear.apply{N, N, ...: [batch: B, seq: T, ...]} "
    "%3 %1\n"
    "  %5 : ℝ = scalar (1 - (@beta1 ^ @t)) * max(B, neg(@eps))\n"
    "  %6 : ℝ[batch: B, seq: T, ..., N] = mul %4 %5 in %8\n"
    "  %7 : ℝ[batch: B, seq: T, ..., N] = pow %6 2 in %8\n"
    "  %8 : ℝ[batch: B, seq: T, ..., N] = add %7 %6\n"
    "  %9 : ℝ[batch: B] = reduce_max %8 over seq 2 3\n"
    "  %10 : ℝ[batch: 1] = sum %9 over batch keep\n"
    "  %11 : ℝ[B, 7] = copy %10\n"
    "  %12 : ℝ[B] = cross_entropy %11 %2 over 1\n"
    "  %13 : idx[7][B] = argmax %11 over 1\n"
    "  %14 : ℝ[B] = pick %11 %13 over 1\n"
    "  %15 : ℝ[B, 1] = logsumexp %11 over 1 keep\n"
    "  %16 : ℝ = ein %12 %14 [a, a ->]\n"
    "  %17 : ℝ[7, B] = ein %11 %14 [ab, a -> ba]\n"
    "  %18 : ℝ[B, 7] = permute %17 [1, 0]\n"
    "  %19 : idx[T][seq: T] = range\n"
    "  %20 : ℝ[7 * B] = view %18\n"
    "  %21 : ℝ[B, 7] = gather %18 %19\n"
    "  %22 : idx[2] = eq %16 %16\n"
    "  %23 : (ℝ[B, 7], idx[2]) = tuple %18 %22\n"
    "  %24 : ℝ[B, 7] = item %23 0\n"
    "  %25 : ℝ[B, 7] = softmax %18 over 1\n"
    "  return %23\n"
    "}\n"
    "\n"
    "fn last() -> ((), ()) {\n"
    "  %0 : () = tuple\n"
    "  %1 : ((), ()) = tuple %0 %0\n"
    "  return %1\n"
    "}\n";

static void print_read_print(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    CoreProgram *program = core_of_text(&context, whole);
    assert_string_equal(core_print(program, context.arena).at, whole);
    const CoreFn *fn = core_fn(program, 2);
    assert_int_equal(fn->group[6], 8);
    assert_int_equal(fn->group[8], 8);
    assert_int_equal(fn->group[9], CORE_NO_GROUP);
    assert_int_equal(fn->lets.at[9].attr->axes, 2 | 4 | 8);
    assert_null(core_fn(program, 1)->group);
    context_free(&context);
}

static void names_of_dimensions_are_told_apart(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    CoreProgram *p = core_program_new(&context, context.arena);
    Name n = name_of_c(context.names, "N");
    DimId global = extent_dim_add(p->extents, (Dim){.name = n, .global = true});
    DimId own[2] = {extent_dim_add(p->extents, (Dim){.name = n}),
                    extent_dim_add(p->extents, (Dim){.name = n})};
    CoreFn *fn = core_fn(p, core_fn_add(p, name_of_c(context.names, "f"), (Span){0}));
    CoreAxis axes[3] = {{0, extent_dim(p->extents, own[1])},
                        {0, extent_dim(p->extents, global)},
                        {0, extent_dim(p->extents, own[0])}};
    vec_push(p->arena, &fn->dims, own[0]);
    vec_push(p->arena, &fn->dims, own[1]);
    fn->type = core_type_real(p, 3, axes);
    fn->params = 1;
    core_let_add(p, fn, CORE_param, fn->type, 0, NULL, NULL, 0, (Span){0});
    const char *expected = "dim N\n\nfn f{N_2, N_3}(%0 : ℝ[N_3, N, N_2]) -> ℝ[N_3, N, N_2] {\n"
                           "  return %0\n}\n";
    Str text = core_print(p, context.arena);
    assert_string_equal(text.at, expected);
    assert_string_equal(core_print(core_of_text(&context, text.at), context.arena).at, expected);
    context_free(&context);
}

typedef struct Malformed {
    const char *text, *message;
} Malformed;

static const Malformed malformed[] = {
    {"fun f", "expected `dim`, `module` or `fn`"},
    {" fn f() -> ℝ {", "expected `dim`, `module` or `fn`"},
    {"fn f( -> ℝ {", "expected a let"},
    {"fn f() ℝ {", "expected `->`"},
    {"fn f() -> {", "expected a type"},
    {"fn f() -> ℝ {\n", "expected a let"},
    {"fn f() -> ℝ {\n  return 0\n}\n", "expected a let"},
    {"fn f() -> ℝ {\n  %1 : ℝ = scalar 1\n  return %1\n}\n", "expected %0"},
    {"fn f() -> ℝ {\n  %0 : ℝ = scaler 1\n  return %0\n}\n", "did you mean `scalar`?"},
    {"fn f() -> ℝ {\n  %0 : ℝ = scalar 1 / 0\n  return %0\n}\n", "no exact value"},
    {"fn f() -> ℝ {\n  %0 : ℝ = scalar 1/0\n  return %0\n}\n", "is no number"},
    {"fn f() -> ℝ {\n  %0 : ℝ = scalar 1x\n  return %0\n}\n", "is no number"},
    {"fn f() -> ℝ {\n  %0 : ℝ = scalar sqr(2)\n  return %0\n}\n", "did you mean `sqrt`?"},
    {"fn f() -> ℝ {\n  %0 : ℝ = scalar select(1)\n  return %0\n}\n", "no function of scalars"},
    {"fn f() -> ℝ {\n  %0 : ℝ = scalar @1\n  return %0\n}\n", "expected a hyperparameter"},
    {"fn f() -> ℝ {\n  %0 : ℝ = scalar 1 2\n  return %0\n}\n", "end of the line"},
    {"fn f() -> ℝ[N] {\n  return %0\n}\n", "no dimension `N`"},
    {"dim Batch\nfn f() -> ℝ[Bath] {\n  return %0\n}\n", "did you mean `Batch`?"},
    {"fn f() -> ℝ[9223372036854775808] {\n", "expected an extent up to"},
    {"dim B\nfn f() -> ℝ[9223372036854775807 * 2] {\n", "overflows"},
    {"fn f() -> ℝ[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] {\n",
     "at most 12 axes"},
    {"fn f() -> params M {\n", "no module `M`"},
    {"module M {\n}\nfn f() -> params [M ^ 70000] {\n", "up to 65536"},
    {"module M {\n  w : ℝ\n}\n", "expected `init`"},
    {"module M {\n  w : ℝ init some\n}\n", "expected zeros, ones"},
    {"fn f(%0 : ℝ[a: 2]) -> ℝ {\n  %1 : ℝ = sum %0 over b\n  return %1\n}\n", "no axis `b`"},
    {"fn f(%0 : ℝ[a: 2]) -> ℝ {\n  %1 : ℝ = sum %0\n  return %1\n}\n", "expected `over`"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = call g %0\n  return %1\n}\n", "no function `g`"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = exp %0 in %1\n  return %1\n}\n", "not `grouped`"},
    {"fn f(%0 : ℝ) -> ℝ grouped {\n  %1 : ℝ = exp %0 in %9\n  return %1\n}\n", "is not there"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = ein %0 %0 [A, b -> c]\n  return %1\n}\n", "small letter"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = ein %0 %0 [a, b]\n  return %1\n}\n", "expected `->`"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = permute %0 [0, 99]\n  return %1\n}\n", "up to 63"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = field %0\n  return %1\n}\n", "the path of a field"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = exp %99999999999\n  return %1\n}\n", "number of a let"},
};

static Str read_errors(Context *context, Str text) {
    uint32_t source = source_add(&context->sources, STR("bad.core"), text);
    CoreProgram *program = core_read(context, context->arena, source);
    assert_true(!program == (context->diags.errors > 0));
    assert_true(context->diags.errors <= 1);
    if (program) // whatever could be read can be judged and printed
        core_verify(program, context->arena, &(Str){0});
    return program ? core_print(program, context->arena)
                   : diags_render(&context->diags, context->arena, DIAG_PLAIN);
}

static void malformed_text_is_refused(void **state) {
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(malformed); i++) {
        Context context = {0};
        context_init(&context);
        Str got = read_errors(&context, str_of(malformed[i].text));
        if (!context.diags.errors || !strstr(got.at, "error[E0901]") ||
            !strstr(got.at, malformed[i].message))
            fail_msg("%s\n  expected %s\n  got %s", malformed[i].text, malformed[i].message,
                     got.at);
        context_free(&context);
    }
}

static void nesting_is_bounded(void **state) {
    (void)state;
    static const char *const begin[] = {"fn f() -> ", "fn f() -> params ",
                                        "fn f() -> ℝ {\n  %0 : ℝ = scalar "};
    static const char open[] = {'(', '[', '('};
    for (uint32_t i = 0; i < COUNT_OF(begin); i++) {
        Context context = {0};
        context_init(&context);
        StrBuf buf = {.arena = context.arena};
        buf_text(&buf, begin[i]);
        for (int depth = 0; depth < 100000; depth++)
            buf_char(&buf, open[i]);
        Str got = read_errors(&context, buf_str(&buf));
        assert_non_null(strstr(got.at, "nested too deeply"));
        context_free(&context);
    }
}

// Prefixes of the text, and the text with a byte replaced or left out, are read or refused.
static void damaged_text_never_crashes(void **state) {
    (void)state;
    static const char replacements[] = {' ', '(', ']', '%', '9', '-', 'a', '\n', '\xff'};
    uint32_t size = (uint32_t)strlen(whole), read = 0;
    for (uint32_t i = 0; i < size; i += 7) {
        Context context = {0};
        context_init(&context);
        char *copy = arena_copy(context.arena, whole, size + 1);
        copy[i] = replacements[(i * 7 + i / 9) % COUNT_OF(replacements)];
        read_errors(&context, str_copy(context.arena, copy, size));
        read += context.diags.errors == 0;
        context_free(&context);
        context_init(&context);
        read_errors(&context, str_copy(context.arena, whole, i));
        context_free(&context);
        context_init(&context);
        StrBuf buf = {.arena = context.arena};
        buf_add(&buf, str_copy(context.arena, whole, i));
        buf_text(&buf, whole + i + 1);
        read_errors(&context, buf_str(&buf));
        context_free(&context);
    }
    assert_true(read > 0 && read < size);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_read_print),
        cmocka_unit_test(names_of_dimensions_are_told_apart),
        cmocka_unit_test(malformed_text_is_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(damaged_text_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
