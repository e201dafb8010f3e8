// The type rule of every primitive: what it gives, and what it refuses in words.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/core_text.h"

typedef struct Case {
    const char *params; // types of %0, %1, …
    const char *stated;
    const char *let;
    const char *expect; // the type, or "!" and a part of the refusal
} Case;

static const char *const preamble =
    "dim B\ndim T\ndim H\n"
    "module Linear{I, O} {\n  w : ℝ[I, O] init zeros\n  b : ℝ[O] init ones\n}\n"
    "module Pair{N} {\n  first : Linear{N, 4 * N}\n  rest : [Linear{N, N} ^ 3]\n}\n"
    "fn linear{I, O, ...}(%0 : params Linear{I, O}, %1 : ℝ[..., I]) -> ℝ[..., O] {\n"
    "  %2 : ℝ[I, O] = field %0 w\n  %3 : ℝ[..., O] = dot %1 %2\n  return %3\n}\n"
    "fn lookup(%0 : idx[8][B]) -> idx[8][B] {\n  return %0\n}\n";

static const Case cases[] = {
    // elementwise: aligned from the right, by name, extents equal or 1
    {"ℝ[B, T], ℝ[T]", "ℝ", "add %0 %1", "ℝ[B, T]"},
    {"ℝ[T], ℝ[batch: B, 1]", "ℝ", "sub %0 %1", "ℝ[batch: B, T]"},
    {"ℝ[batch: B, seq: T], ℝ[seq: T]", "ℝ", "mul %0 %1", "ℝ[batch: B, seq: T]"},
    {"ℝ[B, T], ℝ[batch: B, T]", "ℝ", "div %0 %1", "ℝ[batch: B, T]"},
    {"ℝ[..., N], ℝ[N]", "ℝ", "add %0 %1", "ℝ[..., N]"},
    {"ℝ[..., N], ℝ[..., 1]", "ℝ", "add %0 %1", "ℝ[..., N]"},
    {"ℝ[N], ℝ[..., N]", "ℝ", "add %0 %1", "ℝ[..., N]"},
    {"ℝ, ℝ[B]", "ℝ", "max %0 %1", "ℝ[B]"},
    {"idx[7][B], ℝ[B]", "ℝ", "min %0 %1", "ℝ[B]"},
    {"ℝ[B * T], ℝ[T * B]", "ℝ", "add %0 %1", "ℝ[B * T]"},
    {"ℝ[B, T], ℝ[B]", "ℝ", "add %0 %1", "!ℝ[B, T] and ℝ[B]"},
    {"ℝ[2], ℝ[3]", "ℝ", "add %0 %1", "!ℝ[2] and ℝ[3]"},
    {"ℝ[seq: T], ℝ[past: T]", "ℝ", "add %0 %1", "!ℝ[seq: T] and ℝ[past: T]"},
    {"ℝ[..., N], ℝ[1, N]", "ℝ", "add %0 %1", "!do not fit"},
    {"ℝ[..., N], ℝ[B, N]", "ℝ", "add %0 %1", "!do not fit"},
    {"ℝ[B], ℝ[B, T], ℝ[B]", "ℝ", "add %0 %1 %2", "!takes 2 operands, not 3"},
    {"(ℝ, ℝ), ℝ", "ℝ", "add %0 %1", "!takes tensors; operand 1 is (ℝ, ℝ)"},
    {"ℝ[B]", "ℝ", "gelu %0", "ℝ[B]"},
    {"idx[9][B]", "ℝ", "sqrt %0", "ℝ[B]"},
    {"ℝ[B]", "ℝ", "pow %0 64", "ℝ[B]"},
    {"ℝ[B]", "ℝ", "pow %0 65", "!from 0 to 64"},
    {"ℝ[B]", "ℝ", "pow %0 -1", "!from 0 to 64"},
    {"ℝ[B, 1], ℝ[T]", "ℝ", "lt %0 %1", "idx[2][B, T]"},
    {"idx[T][seq: T], idx[T][T]", "ℝ", "ge %0 %1", "idx[2][seq: T]"},
    {"idx[2][B, 1], ℝ[T], ℝ", "ℝ", "select %0 %1 %2", "ℝ[B, T]"},
    {"ℝ[B], ℝ[B], ℝ", "ℝ", "select %0 %1 %2", "!must be idx[2], not ℝ[B]"},
    {"idx[3][B], ℝ[B], ℝ", "ℝ", "select %0 %1 %2", "!must be idx[2]"},
    // over parameter trees
    {"params Linear{4, 3}, params Linear{4, 3}", "ℝ", "add %0 %1", "params Linear{4, 3}"},
    {"ℝ, params Linear{N, N}", "ℝ", "mul %0 %1", "params Linear{N, N}"},
    {"params Linear{4, 3}, params Linear{3, 4}", "ℝ", "add %0 %1", "!operand 2 is params"},
    {"params Linear{4, 3}, ℝ[3]", "ℝ", "add %0 %1", "!operand 2 is ℝ[3]"},
    {"params Linear{4, 3}, ℝ", "ℝ", "lt %0 %1", "!does not compare parameter trees"},
    {"idx[2], params Linear{4, 3}, ℝ", "ℝ", "select %0 %1 %2", "params Linear{4, 3}"},
    // copy
    {"ℝ[T]", "ℝ[batch: B, T]", "copy %0", "ℝ[batch: B, T]"},
    {"idx[7][T]", "ℝ[T]", "copy %0", "ℝ[T]"},
    {"idx[7]", "idx[8][B]", "copy %0", "idx[8][B]"},
    {"ℝ", "params Linear{4, 3}", "copy %0", "params Linear{4, 3}"},
    {"ℝ[T]", "idx[3][T]", "copy %0", "!cannot be copied to idx[3][T]"},
    {"idx[9][B]", "idx[8][B]", "copy %0", "!cannot be copied"},
    {"ℝ[B, T]", "ℝ[B, 1]", "copy %0", "!cannot be copied"},
    // free
    {"", "ℝ", "scalar 1/8", "ℝ"},
    {"", "ℝ[B]", "scalar 1/8", "!a scalar is a real without axes"},
    {"params Linear{4, N}", "ℝ", "field %0 w", "ℝ[4, N]"},
    {"params Pair{N}", "ℝ", "field %0 first.w", "ℝ[N, 4 * N]"},
    {"params Pair{2}", "ℝ", "field %0 rest.2", "params Linear{2, 2}"},
    {"params Pair{2}", "ℝ", "field %0 rest.3.w", "!no field `rest.3.w`"},
    {"params Pair{2}", "ℝ", "field %0 first.x", "!no field `first.x`"},
    {"ℝ[B]", "ℝ", "field %0 w", "!has no fields"},
    {"ℝ[B, T, 4 * H]", "ℝ[B, seq: T, H, 2, 2]", "view %0", "ℝ[B, seq: T, H, 2, 2]"},
    {"ℝ[..., 6]", "ℝ[..., 2, 3]", "view %0", "ℝ[..., 2, 3]"},
    {"idx[5][B, T]", "idx[5][B * T]", "view %0", "idx[5][B * T]"},
    {"ℝ[B, T]", "ℝ[B, T, 2]", "view %0", "!B * T and 2 * B * T"},
    {"ℝ[..., 6]", "ℝ[6]", "view %0", "!... * 6 and 6"},
    {"idx[5][B]", "ℝ[B]", "view %0", "!renames, splits and merges"},
    {"", "idx[T][seq: T]", "range", "idx[T][seq: T]"},
    {"", "idx[T][seq: B]", "range", "!bounded by its extent"},
    {"", "idx[T][T, T]", "range", "!a range has one axis"},
    {"ℝ[B], idx[2]", "ℝ", "tuple %0 %1", "(ℝ[B], idx[2])"},
    {"", "ℝ", "tuple", "()"},
    {"(ℝ[B], (idx[2],))", "ℝ", "item %0 1", "(idx[2],)"},
    {"(ℝ[B], idx[2])", "ℝ", "item %0 2", "!has no part 2"},
    // calls
    {"params Linear{4, 3}, ℝ[batch: B, T, 4]", "ℝ", "call linear{4, 3, ...: [batch: B, T]} %0 %1",
     "ℝ[batch: B, T, 3]"},
    {"params Linear{4, 3}, ℝ[4]", "ℝ", "call linear{4, 3, ...: []} %0 %1", "ℝ[3]"},
    {"params Linear{4, 3}, ℝ[..., 4]", "ℝ", "call linear{4, 3, ...: [...]} %0 %1", "ℝ[..., 3]"},
    {"params Linear{4, 3}, ℝ[B, 5]", "ℝ", "call linear{4, 3, ...: [B]} %0 %1",
     "!argument 2 of `linear` must be ℝ[B, 4], not ℝ[B, 5]"},
    {"params Linear{4, 3}, ℝ[4]", "ℝ", "call linear{4, ...: []} %0 %1", "!2 dimensions, not 1"},
    {"params Linear{4, 3}", "ℝ", "call linear{4, 3, ...: []} %0", "!takes 2 arguments, not 1"},
    {"params Linear{4, 3}, ℝ[seq: T, seq: T, 4]", "ℝ", "call linear{4, 3, ...: [T, T]} %0 %1",
     "!two of its axes are named `seq`"},
    {"idx[5][B]", "ℝ", "call lookup %0", "idx[8][B]"},
    {"idx[9][B]", "ℝ", "call lookup %0", "!must be idx[8][B], not idx[9][B]"},
    {"idx[5][B]", "ℝ", "call lookup{...: [B]} %0", "!has no `...`"},
    // reductions
    {"ℝ[batch: B, seq: T]", "ℝ", "sum %0 over seq", "ℝ[batch: B]"},
    {"ℝ[batch: B, seq: T]", "ℝ", "mean %0 over batch seq", "ℝ"},
    {"ℝ[batch: B, seq: T]", "ℝ", "reduce_max %0 over batch keep", "ℝ[batch: 1, seq: T]"},
    {"idx[2][B, T]", "ℝ", "mean %0 over 0 1", "ℝ"},
    {"ℝ[..., N]", "ℝ", "reduce_min %0 over 0", "ℝ[N]"},
    {"ℝ[..., N]", "ℝ", "sum %0 over 0 keep", "!cannot keep"},
    {"ℝ[B]", "ℝ", "sum %0 over", "!needs axes that it has"},
    {"ℝ", "ℝ", "sum %0 over", "ℝ"},
    {"ℝ[B]", "ℝ", "sum %0 over 1", "!needs axes that it has"},
    {"ℝ[B, T]", "ℝ", "argmax %0 over 1", "idx[T][B]"},
    {"ℝ[..., T]", "ℝ", "argmax %0 over 0", "!not along `...`"},
    {"ℝ[..., T], ℝ", "ℝ", "square_sum %0 %1 over 0 1", "ℝ"},
    {"ℝ, ℝ", "ℝ", "square_sum %0 %1 over", "ℝ"},
    {"ℝ[B, T], ℝ", "ℝ", "square_sum %0 %1 over 0", "!takes all axes and begins at one number"},
    {"ℝ[B], ℝ[B]", "ℝ", "square_sum %0 %1 over 0", "!begins at one number, not ℝ[B]"},
    {"ℝ[B]", "ℝ", "square_sum %0 over 0", "!takes 2 operands"},
    // rows
    {"ℝ[B, T]", "ℝ", "softmax %0 over 1", "ℝ[B, T]"},
    {"ℝ[B, T], idx[2][T]", "ℝ", "softmax %0 %1 over 1", "ℝ[B, T]"},
    {"ℝ[T], idx[2][B, T]", "ℝ", "softmax %0 %1 over 0", "!broadcast into ℝ[T]"},
    {"ℝ[B, T], ℝ[T]", "ℝ", "softmax %0 %1 over 1", "!must be idx[2]"},
    {"ℝ[..., T]", "ℝ", "log_softmax %0 over 1", "ℝ[..., T]"},
    {"ℝ[B, T]", "ℝ", "logsumexp %0 over 0", "ℝ[T]"},
    {"ℝ[B, T]", "ℝ", "logsumexp %0 over 1 keep", "ℝ[B, 1]"},
    {"ℝ[B, T]", "ℝ", "softmax %0 over 2", "!needs an axis that ℝ[B, T] has"},
    {"ℝ[B, T, v: 92], idx[92][B, T]", "ℝ", "cross_entropy %0 %1 over v", "ℝ[B, T]"},
    {"ℝ[B, 92], idx[90][B]", "ℝ", "cross_entropy %0 %1 over 1", "ℝ[B]"},
    {"ℝ[B, 92], idx[93][B]", "ℝ", "cross_entropy %0 %1 over 1", "!needs indices idx[92][B]"},
    {"ℝ[B, 92], idx[92]", "ℝ", "cross_entropy %0 %1 over 1", "!needs indices idx[92][B]"},
    // moved by index
    {"idx[5][B, T], idx[T][B]", "ℝ", "pick %0 %1 over 1", "idx[5][B]"},
    {"ℝ[B, T], ℝ[B]", "ℝ", "pick %0 %1 over 1", "!not ℝ[B]"},
    {"ℝ[92, model: 8], idx[92][batch: B, seq: T]", "ℝ", "gather %0 %1",
     "ℝ[batch: B, seq: T, model: 8]"},
    {"idx[3][92], idx[92]", "ℝ", "gather %0 %1", "idx[3]"},
    {"ℝ[92, 8], idx[93][B]", "ℝ", "gather %0 %1", "!indexed by idx[92], not by idx[93][B]"},
    {"ℝ[T, 8], idx[B][B]", "ℝ", "gather %0 %1", "!indexed by idx[T]"},
    {"ℝ, idx[2]", "ℝ", "gather %0 %1", "!no first axis"},
    {"ℝ[T, m: 8], idx[T][m: B]", "ℝ", "gather %0 %1", "!two of its axes are named `m`"},
    // contractions
    {"ℝ[..., N], ℝ[N, 4]", "ℝ", "dot %0 %1", "ℝ[..., 4]"},
    {"ℝ[T], ℝ[T]", "ℝ", "dot %0 %1", "ℝ"},
    {"ℝ[B, T], ℝ[T, 2, 3]", "ℝ", "dot %0 %1", "ℝ[B, 2, 3]"},
    {"ℝ[B, T], ℝ[H, T]", "ℝ", "dot %0 %1", "!T and H"},
    {"ℝ, ℝ[B]", "ℝ", "dot %0 %1", "!needs an axis in both operands"},
    {"ℝ[B, h: H, T, 8], ℝ[B, h: H, p: 5, 8]", "ℝ", "ein %0 %1 [abcd, abed -> abce]",
     "ℝ[B, h: H, T, p: 5]"},
    {"ℝ[B], ℝ[T]", "ℝ", "ein %0 %1 [a, b -> ba]", "ℝ[T, B]"},
    {"ℝ[B], ℝ[B]", "ℝ", "ein %0 %1 [a, a -> ]", "ℝ"},
    {"ℝ[..., T], ℝ[..., T]", "ℝ", "ein %0 %1 [ab, ab -> a]", "ℝ[...]"},
    {"ℝ[B, T], ℝ[T]", "ℝ", "ein %0 %1 [ab, b -> b]", "!axis B is in ℝ[B, T] alone"},
    {"ℝ[B, T], ℝ[H]", "ℝ", "ein %0 %1 [ab, b -> a]", "!T and H"},
    {"ℝ[T, T], ℝ[T]", "ℝ", "ein %0 %1 [aa, a -> a]", "!names an axis of ℝ[T, T] twice"},
    {"ℝ[B], ℝ[T]", "ℝ", "ein %0 %1 [a, b -> aa]", "!each axis of an `ein`'s result"},
    {"ℝ[B], ℝ[T]", "ℝ", "ein %0 %1 [b, a -> a]", "!numbered by first appearance"},
    {"ℝ[B, T], ℝ[T]", "ℝ", "ein %0 %1 [a, b -> ab]", "!must label each axis of ℝ[B, T]"},
    // the reverse of products, rows and moves
    {"ℝ[..., 4], ℝ[N, 4]", "ℝ[..., N]", "dot_vjp_l %0 %1", "ℝ[..., N]"},
    {"ℝ[B, 2, 3], ℝ[m: T, 2, 3]", "ℝ[b: B, T]", "dot_vjp_l %0 %1", "ℝ[b: B, T]"},
    {"ℝ[B, 4], ℝ[N, 4]", "ℝ[B, T]", "dot_vjp_l %0 %1", "!does not give ℝ[B, T]"},
    {"ℝ[..., N], ℝ[..., 4]", "ℝ[N, 4]", "dot_vjp_r %0 %1", "ℝ[N, 4]"},
    {"ℝ[T], ℝ", "ℝ[T]", "dot_vjp_r %0 %1", "ℝ[T]"},
    {"ℝ[B, T], ℝ[T, 4]", "ℝ[T, 4]", "dot_vjp_r %0 %1", "!does not give ℝ[T, 4]"},
    {"ℝ[a: B, T], ℝ[B, T]", "ℝ", "softmax_vjp %0 %1 over 1", "ℝ[a: B, T]"},
    {"ℝ[B, T], ℝ[T]", "ℝ", "softmax_vjp %0 %1 over 1", "!cannot be ℝ[T]"},
    {"ℝ[B, 92], idx[92][B], ℝ[B]", "ℝ", "cross_entropy_vjp %0 %1 %2 over 1", "ℝ[B, 92]"},
    {"ℝ[B, 92], idx[92][B], ℝ", "ℝ", "cross_entropy_vjp %0 %1 %2 over 1", "!cannot be ℝ"},
    {"ℝ[B, 92], ℝ[B], ℝ[B]", "ℝ", "cross_entropy_vjp %0 %1 %2 over 1", "!cross_entropy_vjp"},
    {"ℝ[..., s: T, N], ℝ[N]", "ℝ", "reduce_max_vjp %0 %1 over 0 1", "ℝ[..., s: T, N]"},
    {"ℝ[B, T], ℝ[B, 1]", "ℝ", "reduce_min_vjp %0 %1 over 1", "!cannot be ℝ[B, 1]"},
    {"ℝ[B], idx[T][B]", "ℝ[B, s: T]", "pick_vjp %0 %1 over s", "ℝ[B, s: T]"},
    {"ℝ[B], idx[T][B]", "ℝ[T, B]", "pick_vjp %0 %1 over 1", "!does not give"},
    {"ℝ[B, T, 8], idx[92][B, T]", "ℝ[92, m: 8]", "scatter_add %0 %1", "ℝ[92, m: 8]"},
    {"ℝ[B, 8], idx[93][B]", "ℝ[92, 8]", "scatter_add %0 %1", "!does not give ℝ[92, 8]"},
    {"ℝ[N, 3], ℝ[3]", "params Linear{N, 3}", "tree %0 %1", "params Linear{N, 3}"},
    {"ℝ[N, 3]", "params Linear{N, 3}", "tree %0", "!a value for each field"},
    {"ℝ[N, 3], ℝ[N]", "params Linear{N, 3}", "tree %0 %1", "!field 1 of `tree` is ℝ[3], not ℝ[N]"},
    // permutations
    {"idx[4][B, s: T, ...]", "ℝ", "permute %0 [2, 0, 1]", "idx[4][..., B, s: T]"},
    {"ℝ[B, T]", "ℝ", "permute %0 [0, 0]", "!name each axis of ℝ[B, T] once"},
    {"ℝ[B, T]", "ℝ", "permute %0 [0]", "!name each axis"},
    // malformed operands
    {"ℝ[..., ...]", "ℝ", "exp %0", "!malformed: `...` stands in it twice"},
    {"ℝ[a: 1, a: 1]", "ℝ", "exp %0", "!two of its axes are named `a`"},
    {"ℝ[B, B, B, B, B, B, B, B], ℝ[B, B, B, B, B, B, B, B]", "ℝ", "dot %0 %1",
     "!more than 12 axes"},
};

static CoreProgram *program_of(Context *context, const Case *c) {
    StrBuf buf = {.arena = context->arena};
    buf_text(&buf, preamble);
    buf_text(&buf, "fn f{N, ...}(");
    uint32_t params = 0, depth = 0;
    for (const char *at = c->params; *at; at++) {
        if (at == c->params)
            buf_format(&buf, "%%%u : ", params++);
        depth += *at == '[' || *at == '(' || *at == '{';
        depth -= *at == ']' || *at == ')' || *at == '}';
        buf_char(&buf, *at);
        if (*at == ',' && depth == 0)
            buf_format(&buf, " %%%u :", params++);
    }
    buf_format(&buf, ") -> ℝ {\n  %%%u : %s = %s\n  return %%%u\n}\n", params, c->stated, c->let,
               params);
    return core_of_text(context, buf_str(&buf).at);
}

static void every_case(void **state) {
    (void)state;
    bool covered[CORE_PRIM_COUNT] = {[CORE_param] = true};
    uint32_t failed = 0;
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        Context context = {0};
        context_init(&context);
        const Case *c = &cases[i];
        CoreProgram *program = program_of(&context, c);
        const CoreFn *fn = core_fn(program, program->fns.count - 1);
        const CoreLet *let = &vec_last(&fn->lets);
        CoreFn before = *fn; // the let's operands are what comes before it
        before.lets.count--;
        covered[let->prim] = true;
        Str why = STR("");
        CoreTypeId type = core_type_rule(program, &before, let->prim, let->count,
                                         fn->operands.at + let->first, let->attr, let->type, &why);
        const char *got = type ? core_type_text(program, type, context.arena).at : why.at;
        bool ok = c->expect[0] == '!' ? !type && strstr(got, c->expect + 1)
                                      : type && strcmp(got, c->expect) == 0;
        if (!ok)
            fprintf(stderr, "(%s) %s\n  expected %s\n  got      %s\n", c->params, c->let, c->expect,
                    got);
        failed += !ok;
        context_free(&context);
    }
    assert_int_equal(failed, 0);
    // The elementwise ones share one rule; every other primitive has cases of its own.
    for (uint32_t prim = 0; prim < CORE_PRIM_COUNT; prim++)
        assert_true(covered[prim] || core_prims[prim].class == CORE_ELEMENTWISE);
}

static void same_and_substitute(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    CoreProgram *p = core_of_text(&context, "dim B\nfn f{N, ...}(%0 : ℝ[a: N, ..., 2 * N], "
                                            "%1 : ℝ[N, ..., 2 * N], %2 : idx[N][B], "
                                            "%3 : (idx[N][B], ℝ)) -> ℝ {\n  return %0\n}\n");
    const CoreFn *fn = core_fn(p, 1);
    CoreTypeId type[4];
    for (int i = 0; i < 4; i++)
        type[i] = fn->lets.at[i].type;
    assert_int_not_equal(type[0], type[1]);
    assert_true(core_type_same(p, type[0], type[1]));
    assert_false(core_type_same(p, type[0], type[2]));
    Extent *by_dim = arena_array(context.arena, Extent, extent_dim_count(p->extents) + 1);
    by_dim[fn->dims.at[0]] = extent_int(p->extents, 3);
    CoreAxis pack[2] = {{name_of_c(context.names, "q"), extent_int(p->extents, 5)},
                        {0, EXTENT_PACK}};
    const char *expected[4] = {"ℝ[a: 3, q: 5, ..., 6]", "ℝ[3, q: 5, ..., 6]", "idx[3][B]",
                               "(idx[3][B], ℝ)"};
    for (int i = 0; i < 4; i++) {
        CoreTypeId to = core_type_substitute(p, type[i], by_dim, pack, 2);
        assert_string_equal(core_type_text(p, to, context.arena).at, expected[i]);
    }
    CoreTypeId empty = core_type_substitute(p, type[1], by_dim, pack, 0);
    assert_string_equal(core_type_text(p, empty, context.arena).at, "ℝ[3, 6]");
    by_dim[fn->dims.at[0]] = extent_int(p->extents, INT64_MAX);
    assert_int_equal(core_type_substitute(p, type[0], by_dim, NULL, 0), 0);
    context_free(&context);
}

static void leaves(void **state) {
    (void)state;
    Context context = {0};
    context_init(&context);
    CoreProgram *p = core_of_text(
        &context, "module Linear{I, O} {\n  w : ℝ[I, O] init uniform(-1 / sqrt(I), 1 / sqrt(I))\n"
                  "  b : ℝ[O] init zeros\n}\n"
                  "module Net{N} {\n  up : Linear{N, 4 * N}\n  layers : [Linear{N, N} ^ 2]\n"
                  "  scale : ℝ init constant(N)\n}\n"
                  "fn f(%0 : params Net{9}) -> ℝ {\n  return %0\n}\n");
    CoreLeaf *leaf;
    CoreTree tree = core_type(p, core_fn(p, 1)->lets.at[0].type)->tree;
    uint32_t count = core_tree_leaves(p, tree, context.arena, &leaf);
    const char *expected[][2] = {
        {"up.w", "ℝ[9, 36]"},   {"up.b", "ℝ[36]"},         {"layers.0.w", "ℝ[9, 9]"},
        {"layers.0.b", "ℝ[9]"}, {"layers.1.w", "ℝ[9, 9]"}, {"layers.1.b", "ℝ[9]"},
        {"scale", "ℝ"}};
    assert_int_equal(count, COUNT_OF(expected));
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(leaf[i].path.at, expected[i][0]);
        assert_string_equal(core_type_text(p, leaf[i].type, context.arena).at, expected[i][1]);
    }
    // 1 / sqrt(9) folds where the dimension is known: sqrt in f64 is exactly 3.
    assert_string_equal(core_scalar_text(p, leaf[0].init.a, context.arena).at, "-1/3");
    assert_string_equal(core_scalar_text(p, leaf[6].init.a, context.arena).at, "9");
    context_free(&context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(same_and_substitute),
        cmocka_unit_test(leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
