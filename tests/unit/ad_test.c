// Gradients of every primitive, of kinks, poles and ties, of products and broadcasts that have
// broken other differentiators, and what differentiation leaves in Core.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ad/ad.h"
#include "support/gradient.h"

#include <math.h>

// ---- every primitive against differences --------------------------------------------------------

// An elementwise function of x between low and high, weighed so that each element counts apart.
#define OF_X(expression) "fn f(x : ℝ[3, 5], w : ℝ[3, 5]) -> ℝ = sum(w * (" expression "))"
#define OF_XY(expression)                                                                          \
    "fn f(x : ℝ[3, 5], w : ℝ[3, 5], y : ℝ[3, 5]) -> ℝ = sum(w * (" expression "))"

typedef struct Primitive {
    CorePrim prim; // that it exercises
    double low, high;
    const char *text;
} Primitive;

static const Primitive primitives[] = {
    {CORE_add, -1, 1, OF_XY("x + y + x")},
    {CORE_sub, -1, 1, OF_XY("y - x - w")},
    {CORE_mul, -1, 1, OF_XY("x * y * x")},
    {CORE_div, 1, 3, OF_XY("x / y + y / x")},
    {CORE_neg, -1, 1, OF_X("-x")},
    {CORE_abs, -1, 1, OF_X("abs(x)")},
    {CORE_min, -1, 1, OF_XY("min(x, y) + min(w, x)")},
    {CORE_max, -1, 1, OF_XY("max(x, y) + max(w, x)")},
    {CORE_pow, -1, 1, OF_X("x ^ 2 + x ^ 3 + x ^ 7 + x ^ 1 + x ^ 0")},
    {CORE_sqrt, 1, 3, OF_X("sqrt(x)")},
    {CORE_rsqrt, 1, 3, OF_X("rsqrt(x)")},
    {CORE_exp, -1, 1, OF_X("exp(x)")},
    {CORE_log, 1, 3, OF_X("log(x)")},
    {CORE_tanh, -1, 1, OF_X("tanh(x)")},
    {CORE_sigmoid, -1, 1, OF_X("sigmoid(x)")},
    {CORE_erf, -1, 1, OF_X("erf(x)")},
    {CORE_gelu, -2, 2, OF_X("gelu(x)")},
    {CORE_gelu_tanh, -2, 2, OF_X("gelu_tanh(x)")},
    {CORE_relu, -1, 1, OF_X("relu(x)")},
    {CORE_silu, -2, 2, OF_X("silu(x)")},
    {CORE_softplus, -2, 2, OF_X("softplus(x)")},
    {CORE_sin, -2, 2, OF_X("sin(x)")},
    {CORE_cos, -2, 2, OF_X("cos(x)")},
    {CORE_select, -1, 1, OF_XY("where(y > 0, x, w * x) + where(x > 2, x, y)")},
    {CORE_copy, -1, 1, "fn f(x : ℝ[5], w : ℝ[3, 5]) -> ℝ = sum(w * where(w > 0, x, 1))"},
    {CORE_sum, -1, 1, "fn f(x : ℝ[a: 3, b: 5], w : ℝ[a: 3]) -> ℝ = sum(w * sum(x, b) ^ 2)"},
    {CORE_sum, -1, 1,
     "fn f(x : ℝ[a: 3, b: 5], w : ℝ[1]) -> ℝ = sum(sum(x, b) * w) * sum(mean(x, b) * w)"},
    {CORE_mean, -1, 1,
     "fn f(x : ℝ[a: 3, b: 5, c: 2], w : ℝ[b: 5]) -> ℝ = sum(w * mean(x, a, c) ^ 2) * mean(x)"},
    {CORE_square_sum, -1, 1,
     "fn f(x : ℝ[a: 3, b: 5], w : ℝ[a: 3]) -> ℝ = norm(x) * norm(sum(w * x, b)) + norm(sum(x))"},
    {CORE_reduce_max, -1, 1,
     "fn f(x : ℝ[a: 3, b: 5, c: 2], w : ℝ[b: 5]) -> ℝ = sum(w * max(x, a, c)) + sum(x * max(x, b, "
     "keep = true)) + max(x)"},
    {CORE_reduce_min, -1, 1,
     "fn f(x : ℝ[a: 3, b: 5, c: 2], w : ℝ[b: 5]) -> ℝ = sum(w * min(x, c, a)) + sum(x * min(x, a, "
     "keep = true)) + min(x)"},
    {CORE_logsumexp, -2, 2,
     "fn f(x : ℝ[a: 3, b: 5], w : ℝ[a: 3]) -> ℝ = sum(w * logsumexp(x, b)) + sum(x * logsumexp(x, "
     "a, keep = true))"},
    {CORE_softmax, -2, 2, OF_X("softmax(x)")},
    {CORE_softmax, -2, 2,
     "fn f(x : ℝ[a: 3, b: 5], w : ℝ[a: 3, b: 5]) -> ℝ = sum(w * softmax(x, a, where = w > -1))"},
    {CORE_log_softmax, -2, 2, OF_X("log_softmax(x)")},
    {CORE_cross_entropy, -2, 2,
     "fn f(x : ℝ[a: 3, b: 5], i : idx[5][a: 3], w : ℝ[a: 3]) -> ℝ = sum(w * cross_entropy(x, b, "
     "i))"},
    {CORE_pick, -1, 1,
     "fn f(x : ℝ[a: 3, b: 5], i : idx[3][b: 5], w : ℝ[b: 5]) -> ℝ = sum(w * pick(x, a, i) ^ 2)"},
    {CORE_gather, -1, 1,
     "fn f(x : ℝ[4, b: 5], i : idx[4][a: 3, c: 6], w : ℝ[a: 3, c: 6, b: 5]) -> ℝ = sum(w * x[i] ^ "
     "2)"},
    {CORE_gather, -1, 1, "fn f(x : ℝ[4], i : idx[4][a: 9], w : ℝ[a: 9]) -> ℝ = sum(w * x[i])"},
    {CORE_gather, -1, 1,
     "fn f(x : ℝ[s: 6, b: 5], w : ℝ[t: 4, b: 5]) -> ℝ = sum(w * x[range([t: 4])])"},
    {CORE_dot, -1, 1,
     "fn f(x : ℝ[a: 3, b: 2, k: 5], v : ℝ[k: 5, n: 4], w : ℝ[n: 4]) -> ℝ = sum(w * gelu(x · v))"},
    {CORE_dot, -1, 1,
     "fn f(v : ℝ[5, n: 4], x : ℝ[a: 3, b: 2, 5], w : ℝ[n: 4]) -> ℝ = sum(w * gelu(x · v))"},
    {CORE_dot, -1, 1, "fn f(v : ℝ[5, 2, 4], x : ℝ[3, 5], w : ℝ[2, 4]) -> ℝ = sum(w * exp(x · v))"},
    {CORE_dot, -1, 1, "fn f(x : ℝ[3, 5], v : ℝ[5, 2, 4]) -> ℝ = sum(exp(x · v))"},
    {CORE_dot, -1, 1, "fn f(x : ℝ[5], v : ℝ[5]) -> ℝ = exp(x · v) + x · x"},
    {CORE_dot, -1, 1, "fn f(x : ℝ[5], v : ℝ[5, 3]) -> ℝ = sum(exp(x · v))"},
    {CORE_ein, -1, 1,
     "fn f(q : ℝ[b: 2, i: 3, h: 2, d: 4], k : ℝ[b: 2, j: 5, h: 2, d: 4]) -> ℝ = sum(exp(ein[b, h, "
     "i, j](q * k)))"},
    {CORE_ein, -1, 1,
     "fn f(k : ℝ[b: 2, j: 5, h: 2, d: 4], q : ℝ[b: 2, i: 3, h: 2, d: 4]) -> ℝ = sum(exp(ein[b, h, "
     "i, j](q * k)))"},
    {CORE_ein, -1, 1,
     "fn f(v : ℝ[b: 2, j: 5, h: 2, d: 4], p : ℝ[b: 2, h: 2, i: 3, j: 5]) -> ℝ = sum(exp(ein[b, i, "
     "h, d](p * v)))"},
    {CORE_ein, -1, 1, "fn f(x : ℝ[i: 3], y : ℝ[i: 3]) -> ℝ = exp(ein[](x * y))"},
    {CORE_permute, -1, 1,
     "fn f(x : ℝ[a: 3, b: 5, c: 2], w : ℝ[c: 2, a: 3, b: 5]) -> ℝ = sum(w * ein[c, a, b](x) ^ 2)"},
    {CORE_view, -1, 1,
     "fn f(x : ℝ[a: 3, b: 4], w : ℝ[c: 2, d: 6]) -> ℝ = sum(w * view(x, [c: 2, d: 6]) ^ 2)"},
    {CORE_tuple, -1, 1,
     "fn g(x : ℝ[3]) -> (ℝ[3], ℝ[3], idx[3], ℝ) = (x ^ 2, exp(x), argmax(x), sum(x))\n"
     "fn f(x : ℝ[3], w : ℝ[3]) -> ℝ =\n  let (a, b, i, c) = g(x)\n  sum(a * b * w) + "
     "sum(where(range([3]) == i, a, b))"},
    {CORE_tree, -1, 1,
     "module M {\n  param s : ℝ init ones\n  param v : ℝ[3] init ones\n  param u : ℝ[2] init ones\n"
     "  fn apply(x : ℝ[3]) -> ℝ[3] = s * x * v + s\n}\n"
     "module Net {\n  use a = M\n  use b = M ^ 2\n"
     "  fn apply(x : ℝ[3]) -> ℝ[3] = a.apply(b.apply(x)) + b.apply(x)\n}\n"
     "fn f(p : params Net, x : ℝ[3]) -> ℝ = sum(Net.apply(p, x) ^ 2)"},
    {CORE_tree, -1, 1,
     "module M {\n  param s : ℝ init ones\n  param v : ℝ[3] init ones\n"
     "  fn apply(x : ℝ[3]) -> ℝ[3] = s * x * v + s\n}\n"
     "fn f(t : ℝ, p : params M, x : ℝ[3]) -> ℝ = sum(M.apply(p * t + t, x) ^ 2)"},
    {CORE_call, -1, 1,
     "fn g(x : ℝ[..., 3], y : ℝ[3]) -> ℝ[..., 3] = gelu(x * y) / mean(exp(x), last, keep = true)\n"
     "fn f(y : ℝ[3], x : ℝ[2, 4, 3]) -> ℝ = sum(g(x, y) ^ 2) + sum(g(y, y) * g(x, y))"},
    // A tuple that is saved, whose names meet those of the axes that the pack stands for.
    {CORE_call, -1, 1,
     "fn h(x : ℝ[..., i: 3]) -> (ℝ[..., i: 3], idx[3][...], (ℝ[..., i: 3], ℝ)) =\n"
     "  (exp(x), argmax(x, last), (x ^ 2, mean(x)))\n"
     "fn g(x : ℝ[..., 3]) -> ℝ =\n  let (a, k, bc) = h(x)\n  let (b, c) = bc\n"
     "  mean(a * a * b) * c * c + mean(pick(a, last, k))\n"
     "fn f(x : ℝ[i: 3, 3]) -> ℝ = g(x) * g(x * 2) + g(sum(x, i))"},
    {CORE_call, -1, 1,
     "fn g(x : ℝ[...]) -> ℝ = mean(x ^ 2)\n"
     "fn f(x : ℝ[2, 3], y : ℝ) -> ℝ = g(x) * y + g(y * x) ^ 2"},
};

static const char *native_of(uint32_t i) {
    static const char *const realizations[] = {"f32", "f64", "bf16"};
    return realizations[i % 3];
}

static char cache[] = "/tmp/presk-ad-XXXXXX"; // of native code

static void every_primitive(void **state) {
    (void)state;
    bool covered[CORE_PRIM_COUNT] = {false};
    for (uint32_t i = 0; i < COUNT_OF(primitives); i++) {
        const Primitive *p = &primitives[i];
        Gradient g;
        gradient_of_text(&g, p->text, "f");
        g.low = p->low;
        g.high = p->high;
        gradient_check(&g, p->text, 1e-8);
        gradient_executors(&g, p->text, native_of(i), i % 4 == 0 ? cache : NULL);
        gradient_end(&g);
        covered[p->prim] = true;
    }
    // What is left: lets that hold no reals that depend on others, and what differentiation makes.
    static const CorePrim others[] = {CORE_param,
                                      CORE_scalar,
                                      CORE_field,
                                      CORE_range,
                                      CORE_item,
                                      CORE_lt,
                                      CORE_le,
                                      CORE_gt,
                                      CORE_ge,
                                      CORE_eq,
                                      CORE_argmax,
                                      CORE_gelu_slope,
                                      CORE_softmax_vjp,
                                      CORE_scatter_add,
                                      CORE_gelu_tanh_slope,
                                      CORE_pick_vjp,
                                      CORE_dot_vjp_l,
                                      CORE_dot_vjp_r,
                                      CORE_reduce_max_vjp,
                                      CORE_reduce_min_vjp,
                                      CORE_cross_entropy_vjp};
    for (uint32_t i = 0; i < COUNT_OF(others); i++)
        covered[others[i]] = true;
    for (uint32_t prim = 0; prim < CORE_PRIM_COUNT; prim++)
        if (!covered[prim])
            fail_msg("no gradient of `%s` is tested", core_prims[prim].text);
}

// The program with a function `second` of f's parameters: the square of the gradient's norm, and
// the gradient against the first argument where that is a tensor.
static const char *second_order(Arena *arena, const char *text) {
    const char *params = strstr(text, "fn f(") + 5, *end = strstr(params, ") -> ");
    StrBuf names = {.arena = arena};
    for (const char *at = params; at < end; at++)
        if (at == params || strncmp(at - 2, ", ", 2) == 0) {
            const char *colon = strstr(at, " : ");
            if (colon && colon < end && strcspn(at, " [],") == (size_t)(colon - at))
                buf_format(&names, "%s%.*s", at == params ? "" : ", ", (int)(colon - at), at);
        }
    return str_format(arena,
                      "%s\nfn second(%.*s) -> ℝ =\n  let (value, slope) = grad(f)(%s)\n"
                      "  norm(slope) ^ 2 + value\n",
                      text, (int)(end - params), params, buf_str(&names).at)
        .at;
}

// The gradient of a function of the gradient, which passes through everything that backward passes
// are made of.
static void second_derivatives(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    for (uint32_t i = 0; i < COUNT_OF(primitives); i++) {
        const Primitive *p = &primitives[i];
        const char *text = second_order(c.arena, p->text);
        Gradient g;
        gradient_of_text(&g, text, "second");
        g.low = p->low;
        g.high = p->high;
        gradient_check(&g, text, 1e-7);
        if (i % 3 == 0)
            gradient_executors(&g, text, NULL, NULL);
        gradient_end(&g);
    }
    context_free(&c);
}

// ---- values on paper --------------------------------------------------------------------------

#define LIST(...) ((const double[]){__VA_ARGS__})

static bool same(double a, double b) { // bits, any NaN
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

// The gradient of f at x is exactly this.
static void expect_gradient(const char *text, const double *x, const double *gradient) {
    Gradient g;
    gradient_of_text(&g, text, "f");
    CoreValue *arguments = gradient_arguments(&g, 1);
    Tensor *in = &arguments[0].tensor;
    for (int64_t i = 0, count = shape_count(&in->shape); i < count; i++)
        tensor_set(in, i, x[i]);
    CoreValue both = gradient_value(&g, arguments);
    const Tensor *out = &both.parts[1].tensor;
    assert_true(shape_same_extents(&in->shape, &out->shape));
    for (int64_t i = 0, count = shape_count(&in->shape); i < count; i++)
        if (!same(tensor_get(out, i), gradient[i]))
            fail_msg("%s: element %lld is %.17g, not %.17g", text, (long long)i, tensor_get(out, i),
                     gradient[i]);
    gradient_end(&g);
}

static void kinks_poles_and_ties(void **state) {
    (void)state;
    expect_gradient("fn f(x : ℝ[4]) -> ℝ = sum(relu(x))", LIST(0, -0.0, 1, -1), LIST(0, 0, 1, 0));
    expect_gradient("fn f(x : ℝ[4]) -> ℝ = sum(abs(x))", LIST(0, -0.0, 3, -3), LIST(0, 0, 1, -1));
    expect_gradient("fn f(x : ℝ[2]) -> ℝ = sum(sqrt(x))", LIST(0, 4), LIST(INFINITY, 0.25));
    expect_gradient("fn f(x : ℝ[2]) -> ℝ = sum(log(x))", LIST(0, 4), LIST(INFINITY, 0.25));
    // The first of equal maxima and minima has all; a NaN is beyond everything.
    expect_gradient("fn f(x : ℝ[4]) -> ℝ = max(x)", LIST(1, 3, 3, 2), LIST(0, 1, 0, 0));
    expect_gradient("fn f(x : ℝ[2, 2]) -> ℝ = min(x)", LIST(1, 1, 1, 1), LIST(1, 0, 0, 0));
    expect_gradient("fn f(x : ℝ[4]) -> ℝ = max(x)", LIST(1, NAN, 3, NAN), LIST(0, 1, 0, 0));
    expect_gradient("fn f(x : ℝ[3]) -> ℝ = max(x)", LIST(-INFINITY, -INFINITY, -INFINITY),
                    LIST(1, 0, 0));
    expect_gradient("fn f(x : ℝ[a: 2, b: 2]) -> ℝ = sum(max(x, a))", LIST(5, 1, 5, 2),
                    LIST(1, 0, 0, 1));
    // max(a, b) is b and min(a, b) is a where they are equal.
    expect_gradient("fn f(x : ℝ[3]) -> ℝ = sum(max(x, 2))", LIST(1, 2, 3), LIST(0, 0, 1));
    expect_gradient("fn f(x : ℝ[3]) -> ℝ = sum(max(2, x))", LIST(1, 2, 3), LIST(0, 1, 1));
    expect_gradient("fn f(x : ℝ[3]) -> ℝ = sum(min(x, 2))", LIST(1, 2, 3), LIST(1, 1, 0));
    expect_gradient("fn f(x : ℝ[3]) -> ℝ = sum(min(2, x))", LIST(1, 2, 3), LIST(1, 0, 0));
    expect_gradient("fn f(x : ℝ[2]) -> ℝ = sum(max(x, 2))", LIST(NAN, 3), LIST(1, 1));
}

// B23: finite at 0 and for negative bases.
static void powers(void **state) {
    (void)state;
    expect_gradient("fn f(x : ℝ[3]) -> ℝ = sum(x ^ 3)", LIST(-2, 0, 2), LIST(12, 0, 12));
    expect_gradient("fn f(x : ℝ[1]) -> ℝ = sum(x ^ 2)", LIST(0), LIST(0));
    expect_gradient("fn f(x : ℝ[1]) -> ℝ = sum(x ^ 1)", LIST(0), LIST(1));
    expect_gradient("fn f(x : ℝ[2]) -> ℝ = sum(x ^ 0)", LIST(0, INFINITY), LIST(0, 0));
    expect_gradient("fn f(x : ℝ[2]) -> ℝ = sum(2 * x ^ 3 + 1)", LIST(0, -1), LIST(0, 6));
}

// B09: an outer product.
static void outer_product(void **state) {
    (void)state;
    const char *text =
        "fn f(x : ℝ[j: 4], a : ℝ[i: 3]) -> ℝ = sum(ein[i, j](where(a > -9, 1, a) * x))";
    expect_gradient(text, LIST(2, 2, 2, 2), LIST(3, 3, 3, 3));
}

// B25: the gradient of what is broadcast has its shape.
static void broadcast_operands(void **state) {
    (void)state;
    expect_gradient("fn f(b : ℝ[1, 4], a : ℝ[3, 4]) -> ℝ = sum(a + b)", LIST(1, 2, 3, 4),
                    LIST(3, 3, 3, 3));
    expect_gradient("fn f(b : ℝ[2, 1, 2], a : ℝ[2, 4, 2]) -> ℝ = sum(a - b)", LIST(1, 2, 3, 4),
                    LIST(-4, -4, -4, -4));
    expect_gradient("fn f(b : ℝ, a : ℝ[2, 3]) -> ℝ = sum(b + a)", LIST(1), LIST(6));
    expect_gradient("fn f(b : ℝ[1], a : ℝ[2, 3]) -> ℝ = sum(where(a > -9, 2, a) * b)", LIST(1),
                    LIST(12));
    expect_gradient("fn f(b : ℝ[3, 1], a : ℝ[4]) -> ℝ = sum(where(a > -9, 1, a) / b)",
                    LIST(1, 2, 4), LIST(-4, -1, -0.25));
}

// B27, B32: large arguments of softplus and log_softmax.
static void large_arguments(void **state) {
    (void)state;
    expect_gradient("fn f(x : ℝ[3]) -> ℝ = sum(softplus(x))", LIST(50, 100, -1000), LIST(1, 1, 0));
    expect_gradient("fn f(x : ℝ[3]) -> ℝ = sum(log_softmax(x)[range([a: 1])])",
                    LIST(-781.1664, 890.2518, -1043.7303), LIST(1, -1, 0));
    expect_gradient("fn f(x : ℝ[a: 3]) -> ℝ = cross_entropy(x, a, argmax(-x))",
                    LIST(-781.1664, 890.2518, -700), LIST(-1, 1, 0));
}

// A row without an allowed position, and refused positions, receive nothing.
static void masked_rows(void **state) {
    (void)state;
    const char *text = "fn f(x : ℝ[a: 2, b: 2]) -> ℝ =\n"
                       "  sum(x * softmax(x, b, where = range([a: 2]) > range([b: 2])))";
    expect_gradient(text, LIST(5, 7, 3, 9), LIST(0, 0, 1, 0));
}

// A pack that is summed and does not come first, and axes whose names do not go together where
// cotangents meet: what Core can say and the language cannot.
static void packs_and_names(void **state) {
    (void)state;
    static const char *const texts[] = {
        "fn g{...}(%0 : ℝ[2, ..., 3]) -> ℝ[2, 3] {\n"
        "  %1 : ℝ[2, ..., 3] = mul %0 %0\n  %2 : ℝ[2, 3] = sum %1 over 1\n"
        "  %3 : ℝ[2, 3] = mean %1 over 1\n  %4 : ℝ[2, 3] = mul %2 %3\n  return %4\n}\n"
        "fn f(%0 : ℝ[2, 4, 5, 3], %1 : ℝ[2, 3]) -> ℝ {\n"
        "  %2 : ℝ[2, 3] = call g{...: [4, 5]} %0\n  %3 : ℝ[2, 3] = mul %1 %2\n"
        "  %4 : ℝ = sum %3 over 0 1\n  return %4\n}\n",
        "fn g{...}(%0 : ℝ[..., 3], %1 : ℝ[..., i: 3]) -> ℝ[..., 3] {\n"
        "  %2 : ℝ[..., i: 3] = mul %0 %1\n  %3 : ℝ[..., i: 3] = exp %2\n"
        "  %4 : ℝ[..., i: 3] = mul %3 %1\n  %5 : ℝ[..., 3] = view %4\n  return %5\n}\n"
        "fn f(%0 : ℝ[3, 3], %1 : ℝ[3, 3]) -> ℝ {\n"
        "  %2 : ℝ[i: 3, 3] = view %0\n"
        "  %3 : ℝ[i: 3, 3] = call g{...: [i: 3]} %2 %1\n"
        "  %4 : ℝ[3, 3] = mul %0 %1\n  %5 : ℝ[3, i: 3] = view %0\n"
        "  %6 : ℝ[3, i: 3] = mul %4 %5\n  %7 : ℝ = sum %3 over 0 1\n  %8 : ℝ = sum %6 over 0 1\n"
        "  %9 : ℝ = mul %7 %8\n  return %9\n}\n"};
    for (uint32_t i = 0; i < COUNT_OF(texts); i++) {
        Gradient g;
        gradient_of_core(&g, texts[i], "f");
        gradient_check(&g, texts[i], 1e-8);
        gradient_executors(&g, texts[i], NULL, NULL);
        gradient_end(&g);
    }
}

// ---- models -----------------------------------------------------------------------------------

static void model(const char *path, const char *constants, const char *dims, uint32_t zeros) {
    Gradient g;
    gradient_of_file(&g, path, "loss", constants, dims);
    // B38: no parameter is forgotten.
    assert_int_equal(gradient_check(&g, path, 1e-6), zeros);
    gradient_executors(&g, path, "f32", cache);
    gradient_end(&g);
}

static void mlp(void **state) {
    (void)state;
    model("corpus/vision/01_mlp.psk", "P=6 H=5 C=4", "B=3", 0);
}

static void mini_gpt(void **state) {
    (void)state;
    model("corpus/nlp/02_minigpt.psk", "V=5 D=4 H=2 L=2", "B=2 T=3", 0);
}

static void gpt(void **state) {
    (void)state;
    model("corpus/nlp/05_gpt.psk", "V=7 D=6 H=3 L=2", "B=2 T=3", 0);
}

// ---- what is left in Core ---------------------------------------------------------------------

static const char *text_of(Gradient *g, const char *fn) {
    CoreFnId id = core_fn_find(g->program.core, str_of(fn));
    return id ? core_print_fn(g->program.core, id, g->context.arena).at : NULL;
}

static void nothing_saved_no_forward_function(void **state) {
    (void)state;
    Gradient g;
    gradient_of_text(&g, "fn f(x : ℝ[3], y : ℝ[3]) -> ℝ = sum(x * y)", "f");
    assert_null(text_of(&g, "f.fwd"));
    assert_non_null(strstr(text_of(&g, "f.grad"), "call f "));
    // y needs no cotangent; x itself is not read.
    assert_string_equal(text_of(&g, "f.bwd.no_y"),
                        "fn f.bwd.no_y(%0 y : ℝ[3], %1 : ℝ) -> ℝ[3] grouped {\n"
                        "  %2 : ℝ[3] = mul %1 %0\n  return %2\n}\n");
    gradient_end(&g);
    gradient_of_text(&g, "fn f(x : ℝ[3]) -> ℝ = sum(exp(x))", "f");
    assert_string_equal(text_of(&g, "f.fwd"), "fn f.fwd(%0 x : ℝ[3]) -> (ℝ, ℝ[3]) grouped {\n"
                                              "  %1 : ℝ[3] = exp %0\n"
                                              "  %2 : ℝ = sum %1 over 0\n"
                                              "  %3 : (ℝ, ℝ[3]) = tuple %2 %1\n"
                                              "  return %3\n}\n");
    assert_string_equal(text_of(&g, "f.bwd"), "fn f.bwd(%0 : ℝ[3], %1 : ℝ) -> ℝ[3] grouped {\n"
                                              "  %2 : ℝ[3] = mul %1 %0\n  return %2\n}\n");
    gradient_end(&g);
    // Of a tuple the part that is read.
    gradient_of_text(&g,
                     "fn g(x : ℝ[3]) -> (ℝ[3], ℝ[3]) = (2 * x, 3 * x)\n"
                     "fn f(x : ℝ[3]) -> ℝ =\n  let (a, b) = g(x)\n  sum(a * a) + sum(b)",
                     "f");
    assert_non_null(strstr(text_of(&g, "f.fwd"), ") -> (ℝ, ℝ[3]) "));
    gradient_end(&g);
}

static bool is_backward(const Context *c, const CoreFn *fn) {
    return strstr(name_c(c->names, fn->name), ".bwd") != NULL;
}

// Zeros stand in no backward function but where a result demands them.
static void no_symbolic_zeros(void **state) {
    (void)state;
    Gradient g;
    gradient_of_file(&g, "corpus/nlp/05_gpt.psk", "loss", "V=7 D=6 H=3 L=2", "B=2 T=3");
    for (CoreFnId id = 1; id < g.program.core->fns.count; id++)
        if (is_backward(&g.context, core_fn(g.program.core, id)))
            assert_null(
                strstr(core_print_fn(g.program.core, id, g.context.arena).at, "scalar 0\n"));
    gradient_end(&g);
    gradient_of_text(&g,
                     "module M {\n  param a : ℝ[3] init ones\n  param b : ℝ[2] init ones\n"
                     "  fn apply(x : ℝ[3]) -> ℝ[3] = a * x\n}\n"
                     "fn f(p : params M, x : ℝ[3]) -> ℝ = sum(M.apply(p, x))",
                     "f");
    assert_int_equal(gradient_check(&g, "an unread leaf", 1e-8), 1);
    gradient_end(&g);
}

// The sizes of the groups that the result needs, in order.
static uint32_t live_groups(const CoreFn *fn, uint32_t *sizes) {
    bool live[4096] = {false};
    uint32_t count = 0;
    assert_true(fn->lets.count <= COUNT_OF(live));
    live[fn->result] = true;
    for (CoreLetId let = fn->lets.count; let-- > 0;)
        for (uint32_t i = 0; live[let] && i < core_let(fn, let)->count; i++)
            live[core_operand(fn, let, i)] = true;
    for (CoreLetId root = 0; root < fn->lets.count; root++) {
        if (!live[root] || fn->group[root] != root)
            continue;
        sizes[count] = 0;
        for (CoreLetId let = 0; let <= root; let++)
            sizes[count] += fn->group[let] == root;
        count++;
    }
    return count;
}

static void dead_code_keeps_groups(void **state) {
    (void)state;
    Context c = {0};
    context_init(&c);
    ChkProgram *program = chk_program(&c, c.arena, "corpus/nlp/05_gpt.psk", 0, NULL);
    assert_non_null(program);
    CoreProgram *core = program->core;
    core_gradient_declare(core, program->training.loss);
    assert_true(ad_gradients(core));
    core_fold(core);
    core_partition(core);
    static uint32_t before[256][64], count[256], after[64];
    uint32_t groups = 0;
    assert_true(core->fns.count <= COUNT_OF(before));
    for (CoreFnId id = 1; id < core->fns.count; id++)
        count[id] = live_groups(core_fn(core, id), before[id]);
    core_dce(core);
    for (CoreFnId id = 1; id < core->fns.count; id++) {
        assert_int_equal(live_groups(core_fn(core, id), after), count[id]);
        assert_memory_equal(before[id], after, count[id] * sizeof *after);
        groups += is_backward(&c, core_fn(core, id)) ? count[id] : 0;
    }
    assert_true(groups >= 5);
    context_free(&c);
}

// Third derivatives of what is made of elementwise functions: f = x⁴.
static void gradients_of_gradients(void **state) {
    (void)state;
    const char *text = "fn e(x : ℝ) -> ℝ = x ^ 4\n"
                       "fn d(x : ℝ) -> ℝ =\n  let (v, g) = grad(e)(x)\n  g\n"
                       "fn f(x : ℝ) -> ℝ =\n  let (v, g) = grad(d)(x)\n  g\n";
    expect_gradient(text, LIST(2), LIST(48));
}

// ---- random programs --------------------------------------------------------------------------

static CoreLetId added(CoreProgram *p, CoreFn *fn, CorePrim prim, uint32_t count,
                       const CoreLetId *operands, const CoreAttr *attr) {
    Str why;
    CoreTypeId type = core_type_rule(p, fn, prim, count, operands, attr, 0, &why);
    assert_int_not_equal(type, 0);
    return core_let_add(p, fn, prim, type, count, operands, attr, 0, (Span){0});
}

enum { NOTHING = UINT32_MAX };

// The sum of all elements of all real tensors in a value; NOTHING: there is none.
static CoreLetId total(CoreProgram *p, CoreFn *fn, CoreLetId value) {
    const CoreType *type = core_type(p, core_let(fn, value)->type);
    CoreLetId sum = NOTHING;
    if (type->kind == CORE_REAL) {
        CoreAttr all = {.axes = (UINT64_C(1) << type->rank) - 1};
        return type->rank ? added(p, fn, CORE_sum, 1, &value, &all) : value;
    }
    uint32_t count = type->kind == CORE_TUPLE    ? type->parts
                     : type->kind == CORE_PARAMS ? core_tree_count(p, type->tree)
                                                 : 0;
    for (uint32_t i = 0; i < count; i++) {
        CoreAttr item = {.number = i};
        Name name = type->kind == CORE_PARAMS ? core_tree_part_name(p, type->tree, i) : 0;
        CoreAttr path = {.path_count = 1, .path = &name};
        bool tree = type->kind == CORE_PARAMS;
        CoreLetId part = total(
            p, fn, added(p, fn, tree ? CORE_field : CORE_item, 1, &value, tree ? &path : &item));
        if (part != NOTHING)
            sum = sum == NOTHING ? part : added(p, fn, CORE_add, 2, (CoreLetId[]){sum, part}, NULL);
    }
    return sum;
}

// The gradient of the sum of a random program's results; false: there is none to take.
static bool random_gradient(Context *c, RandomProgram *r, bool *refused) {
    CoreProgram *p = r->core;
    CoreFn *fn = core_fn(p, r->entry);
    CoreLetId sum = total(p, fn, fn->result);
    if (sum == NOTHING || core_type(p, core_let(fn, 0)->type)->kind != CORE_REAL)
        return false;
    fn->result = sum;
    fn->type = core_let(fn, sum)->type;
    r->entry = core_gradient_declare(p, r->entry);
    Str errors;
    *refused = !ad_gradients(p);
    if (*refused)
        return false;
    if (!core_verify(p, c->arena, &errors))
        fail_msg("seed %llu: %s\n%s", (unsigned long long)r->seed, errors.at,
                 core_print(p, c->arena).at);
    core_fold(p);
    core_partition(p);
    core_dce(p);
    return true;
}

static void random_programs(void **state) {
    (void)state;
    static const char *const realizations[] = {"f64", "f32", "bf16"};
    uint32_t taken = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        Context c = {0};
        context_init(&c);
        RandomProgram r = random_program(&c, seed, 10);
        bool refused = false;
        if (random_gradient(&c, &r, &refused)) {
            ExecutorsOptions options = {
                RT_KERNEL, realizations[seed % 3], 256, true, 1 + (uint32_t)seed % 2, NULL, NULL};
            Str difference = executors_difference(&c, &r, &options);
            if (difference.size)
                fail_msg("seed %llu, %s: %s", (unsigned long long)seed, options.realization,
                         difference.at);
            taken++;
        } else if (refused) {
            fail_msg("seed %llu: %s", (unsigned long long)seed,
                     diags_render(&c.diags, c.arena, DIAG_PLAIN).at);
        }
        context_free(&c);
    }
    assert_true(taken > 100);
}

static int setup(void **state) {
    (void)state;
    return mkdtemp(cache) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", cache);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_primitive),
        cmocka_unit_test(second_derivatives),
        cmocka_unit_test(kinks_poles_and_ties),
        cmocka_unit_test(powers),
        cmocka_unit_test(outer_product),
        cmocka_unit_test(broadcast_operands),
        cmocka_unit_test(large_arguments),
        cmocka_unit_test(masked_rows),
        cmocka_unit_test(packs_and_names),
        cmocka_unit_test(mlp),
        cmocka_unit_test(mini_gpt),
        cmocka_unit_test(gpt),
        cmocka_unit_test(nothing_saved_no_forward_function),
        cmocka_unit_test(no_symbolic_zeros),
        cmocka_unit_test(dead_code_keeps_groups),
        cmocka_unit_test(gradients_of_gradients),
        cmocka_unit_test(random_programs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
