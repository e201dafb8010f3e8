// Every rule of the verifier, with an illegal program written by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/core_text.h"

typedef struct Case {
    const char *text, *error; // error: null where the program is legal
} Case;

static const Case cases[] = {
    {"fn f(%0 : ℝ[2]) -> ℝ[2] {\n  %1 : ℝ[2] = exp %0\n  return %1\n}\n", NULL},
    // names
    {"dim B\ndim B\n", "two dimensions are named `B`"},
    {"module M {\n}\nmodule M {\n}\n", "M: two modules have this name"},
    {"module M {\n  w : ℝ init zeros\n  w : ℝ init zeros\n}\n", "M: two fields are named `w`"},
    {"fn f() -> () {\n  %0 : () = tuple\n  return %0\n}\n"
     "fn f() -> () {\n  %0 : () = tuple\n  return %0\n}\n",
     "f: two functions have this name"},
    // modules
    {"module M {\n  sub : M\n}\n", "M: the module contains itself"},
    {"module M {\n  sub : [K]\n}\nmodule K {\n  m : M\n}\n", "the module contains itself"},
    {"module M{N} {\n}\nmodule K {\n  m : M\n}\n", "K: M has 1 dimensions, not 0"},
    {"module M {\n  w : idx[2] init zeros\n}\n", "M: leaf `w` is no real tensor"},
    {"module M {\n  w : ℝ[a: 1, a: 1] init zeros\n}\n", "two of its axes are named `a`"},
    {"module M {\n  w : ℝ[...] init zeros\n}\n", "M: `...` is not in scope"},
    // types
    {"fn f(%0 : ℝ[...]) -> ℝ {\n  %1 : ℝ = scalar 1\n  return %1\n}\n",
     "f/%0: `...` is not in scope"},
    {"fn f{...}(%0 : ℝ[..., ...]) -> ℝ {\n  %1 : ℝ = scalar 1\n  return %1\n}\n",
     "`...` stands in it twice"},
    {"fn f(%0 : ℝ[-1]) -> ℝ {\n  %1 : ℝ = scalar 1\n  return %1\n}\n", "no legal extent"},
    {"fn f(%0 : ℝ[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]) -> ℝ {\n"
     "  %1 : ℝ = scalar 1\n  return %1\n}\n",
     "it has 13 axes; at most 12"},
    // lets
    {"fn f() -> ℝ {\n  %0 : ℝ = param\n  return %0\n}\n", "f/%0: parameters are the first 0 lets"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = exp %1\n  return %1\n}\n",
     "f/%1: operand %1 is not an earlier let"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = exp %2\n  %2 : ℝ = exp %0\n  return %2\n}\n",
     "f/%1: operand %2 is not an earlier let"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] {\n  %1 : ℝ[3] = exp %0\n  return %1\n}\n",
     "f/%1: its type is ℝ[3]; `exp` gives ℝ[2]"},
    {"fn f(%0 : ℝ[2], %1 : ℝ[3]) -> ℝ {\n  %2 : ℝ[3] = add %0 %1\n  return %2\n}\n",
     "f/%2: the shapes of `add` do not fit: ℝ[2] and ℝ[3]"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = exp\n  return %1\n}\n", "takes 1 operands, not 0"},
    {"fn f(%0 : ℝ) -> ℝ {\n  return %4\n}\n", "f: its result %4 is not there"},
    {"fn f(%0 : ℝ[2]) -> ℝ {\n  return %0\n}\n", "f/%0: the function gives ℝ, not ℝ[2]"},
    {"fn f(%0 : ℝ[a: 2]) -> ℝ[b: 2] {\n  return %0\n}\n", NULL},
    // calls
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = call f %0\n  return %1\n}\n", "f: the function calls itself"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = call g %0\n  return %1\n}\n"
     "fn g(%0 : ℝ) -> ℝ {\n  %1 : ℝ = call f %0\n  return %1\n}\n",
     "the function calls itself"},
    {"fn f(%0 : ℝ) -> ℝ {\n  %1 : ℝ = call g %0\n  return %1\n}\n"
     "fn g(%0 : ℝ) -> ℝ {\n  return %0\n}\n",
     NULL},
    // the partition
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = exp %0 in %2\n  %2 : ℝ[2] = exp %1\n"
     "  return %2\n}\n",
     NULL},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = exp %0 in %3\n  %2 : ℝ[2] = exp %1\n"
     "  %3 : ℝ[2] = add %1 %2\n  return %3\n}\n",
     "f/%1: it is interior to the group of %3 and read by %2 outside"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = exp %0\n  %2 : ℝ[2] = exp %1 in %1\n"
     "  return %1\n}\n",
     "f/%2: %1 is no root of a group"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = exp %0 in %2\n"
     "  %2 : ℝ[2] = exp %1 in %3\n  %3 : ℝ[2] = exp %2\n  return %3\n}\n",
     "f/%1: %2 is no root of a group"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = softmax %0 over 0 in %2\n"
     "  %2 : ℝ[2] = exp %1\n  return %2\n}\n",
     "f/%1: a group has elementwise members only"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = pow %0 3 in %2\n"
     "  %2 : ℝ[2] = exp %1\n  return %2\n}\n",
     "f/%1: a power above 2 is in no group"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = exp %0 in %2\n"
     "  %2 : ℝ[2] = pow %1 3\n  return %2\n}\n",
     "f/%2: a power above 2 is in no group"},
    {"fn f(%0 : ℝ[1]) -> ℝ[2] grouped {\n  %1 : ℝ[1] = exp %0 in %2\n"
     "  %2 : ℝ[2] = copy %1\n  return %2\n}\n",
     "f/%1: the members of a group have one type"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = exp %0 in %2\n"
     "  %2 : ℝ[2] = exp %1\n  return %1\n}\n",
     "f/%1: the function's result is interior"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = exp %0 in %3\n"
     "  %2 : ℝ[2] = exp %0 in %3\n  %3 : ℝ[2] = exp %2\n  return %3\n}\n",
     "f/%1: it is interior to a group and read by nothing"},
    {"fn f(%0 : ℝ[2]) -> ℝ[2] grouped {\n  %1 : ℝ[2] = exp %0 in %1\n  return %1\n}\n",
     "f/%1: a group has at least two members"},
};

static void from_text(void **state) {
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        Context context = {0};
        context_init(&context);
        Str errors;
        CoreProgram *program = core_of_text(&context, cases[i].text);
        bool legal = core_verify(program, context.arena, &errors);
        assert_true(legal == (errors.size == 0));
        if (cases[i].error ? legal || !strstr(errors.at, cases[i].error) : !legal)
            fail_msg("%s\n  expected %s\n  got %s", cases[i].text,
                     cases[i].error ? cases[i].error : "nothing", errors.at);
        context_free(&context);
    }
}

// x doubled six times over: 2^7 − 1 nodes where each value is read twice.
static void too_many_nodes(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    StrBuf buf = {.arena = context.arena};
    buf_text(&buf, "fn f(%0 : ℝ) -> ℝ grouped {\n");
    for (int i = 1; i <= 7; i++)
        buf_format(&buf, "  %%%d : ℝ = add %%%d %%%d in %%7\n", i, i - 1, i - 1);
    buf_text(&buf, "  return %7\n}\n");
    CoreProgram *program = core_of_text(&context, buf_str(&buf).at);
    Str errors;
    assert_false(core_verify(program, context.arena, &errors));
    assert_non_null(strstr(errors.at, "f/%7: the group has more than 64 nodes"));
    core_fn(program, 1)->group[1] = CORE_NO_GROUP;
    assert_int_equal(core_group_nodes(core_fn(program, 1), 7), 63);
    assert_true(core_verify(program, context.arena, &errors));
    context_free(&context);
}

// Faults that no text has.
static void from_tables(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    Str errors;
    CoreProgram *p = core_of_legal_text(
        &context, "module M{N} {\n  w : ℝ[N] init normal(0, N)\n}\n"
                  "fn g{N}(%0 : ℝ[N]) -> ℝ[N] {\n  return %0\n}\n"
                  "fn f{K}(%0 : ℝ[K]) -> ℝ[K] {\n  %1 : ℝ[K] = pow %0 2\n"
                  "  %2 : ℝ = scalar K\n  %3 : ℝ[K] = call g{K} %1\n  return %3\n}\n");
    CoreFn *g = core_fn(p, 1), *f = core_fn(p, 2);
#define REFUSED(message)                                                                           \
    assert_false(core_verify(p, context.arena, &errors));                                          \
    assert_non_null(strstr(errors.at, message))
    CoreLet pow = f->lets.at[1];
    f->lets.at[1].attr = NULL;
    REFUSED("f/%1: `pow` needs attributes");
    f->lets.at[1] = pow;
    f->lets.at[1].prim = CORE_exp;
    REFUSED("f/%1: `exp` has no attributes");
    f->lets.at[1] = pow;
    f->lets.at[1].first = 90;
    REFUSED("f/%1: its operands are outside the list");
    f->lets.at[1] = pow;
    f->lets.at[1].type = 0;
    REFUSED("f/%1: malformed type");
    f->lets.at[1] = pow;
    f->lets.at[1].type = g->type;
    REFUSED("f/%1: the dimension N is not in scope");
    f->lets.at[1] = pow;
    CoreAttr scalar = {.scalar = core_scalar_extent(p, extent_dim(p->extents, g->dims.at[0]))};
    f->lets.at[2].attr = &scalar;
    REFUSED("f/%2: the dimension N is not in scope");
    f->lets.at[2].attr = &(CoreAttr){.scalar = 0};
    REFUSED("f/%2: a scalar needs a value");
    scalar.scalar = core_scalar_extent(p, extent_dim(p->extents, f->dims.at[0]));
    f->lets.at[2].attr = &scalar;
    CoreAttr call = *f->lets.at[3].attr, bad = call;
    f->lets.at[3].attr = &bad;
    bad.callee = 9;
    REFUSED("f/%3: the called function does not exist");
    bad = call;
    bad.dims = &(Extent){EXTENT_NONE};
    REFUSED("f/%3: dimension 1 of `g` has no legal value");
    bad = call;
    f->params = 9;
    REFUSED("f: it has 9 parameters and 4 lets");
    f->params = 1;
    CoreField *w = &p->modules.at[1].fields.at[0], field = *w;
    w->type = 0;
    REFUSED("M: field `w` must be a leaf or a subtree");
    *w = field;
    w->init.b = 0;
    REFUSED("M: the initialiser of `w` has 1 scalars");
    *w = field;
    assert_true(core_verify(p, context.arena, &errors));
    context_free(&context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_text),
        cmocka_unit_test(too_many_nodes),
        cmocka_unit_test(from_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
