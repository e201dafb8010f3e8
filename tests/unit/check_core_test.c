// From source to Core: what each form of the language becomes. The expected texts follow from the
// rules of the language and of core.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/check_text.h"

#define DIMS "dim B\ndim T <= 64\nconst H = 2\nconst Scale = 1 / 3\n"

static void by_name(void **state) {
    (void)state;
    expect_core(
        DIMS
        "fn union(x : ℝ[row: B, col: T], y : ℝ[col: T, row: B]) -> ℝ[row: B, col: T] = x + y\n",
        "union",
        "fn union(%0 x : ℝ[row: B, col: T], %1 y : ℝ[col: T, row: B]) -> ℝ[row: B, col: T] {\n"
        "  %2 : ℝ[row: B, col: T] = permute %1 [1, 0]\n"
        "  %3 : ℝ[row: B, col: T] = add %0 %2\n"
        "  return %3\n"
        "}\n");
    expect_core(DIMS
                "fn widen(x : ℝ[row: B], y : ℝ[row: B, col: T]) -> ℝ[row: B, col: T] = x * y\n",
                "widen",
                "fn widen(%0 x : ℝ[row: B], %1 y : ℝ[row: B, col: T]) -> ℝ[row: B, col: T] {\n"
                "  %2 : ℝ[row: B, col: 1] = view %0\n"
                "  %3 : ℝ[row: B, col: T] = mul %2 %1\n"
                "  return %3\n"
                "}\n");
    expect_core(DIMS
                "fn middle(x : ℝ[a: 2, b: 3, c: 4], y : ℝ[b: 3]) -> ℝ[a: 2, b: 3, c: 4] = x - y\n",
                "middle",
                "fn middle(%0 x : ℝ[a: 2, b: 3, c: 4], %1 y : ℝ[b: 3]) -> ℝ[a: 2, b: 3, c: 4] {\n"
                "  %2 : ℝ[b: 3, c: 1] = view %1\n"
                "  %3 : ℝ[a: 2, b: 3, c: 4] = sub %0 %2\n"
                "  return %3\n"
                "}\n");
    expect_core(DIMS
                "fn ones(x : ℝ[a: 2, b: 1], y : ℝ[b: 3, c: 4]) -> ℝ[a: 2, b: 3, c: 4] = x + y\n",
                "ones",
                "fn ones(%0 x : ℝ[a: 2, b: 1], %1 y : ℝ[b: 3, c: 4]) -> ℝ[a: 2, b: 3, c: 4] {\n"
                "  %2 : ℝ[a: 2, b: 1, c: 1] = view %0\n"
                "  %3 : ℝ[a: 2, b: 3, c: 4] = add %2 %1\n"
                "  return %3\n"
                "}\n");
    expect_core(
        DIMS
        "fn outer(i : idx[T][seq: T], j : idx[T][past: T]) -> idx[2][seq: T, past: T] = i >= j\n",
        "outer",
        "fn outer(%0 i : idx[T][seq: T], %1 j : idx[T][past: T]) -> idx[2][seq: T, past: T] {\n"
        "  %2 : idx[T][seq: T, past: 1] = view %0\n"
        "  %3 : idx[2][seq: T, past: T] = ge %2 %1\n"
        "  return %3\n"
        "}\n");
}

static void from_the_right(void **state) {
    (void)state;
    expect_core(DIMS "fn right(x : ℝ[row: B, T], y : ℝ[T]) -> ℝ[row: B, T] = x + y\n", "right",
                "fn right(%0 x : ℝ[row: B, T], %1 y : ℝ[T]) -> ℝ[row: B, T] {\n"
                "  %2 : ℝ[row: B, T] = add %0 %1\n"
                "  return %2\n"
                "}\n");
    expect_core(DIMS "fn keeps(x : ℝ[B, T], y : ℝ[col: T]) -> ℝ[row: B, col: T] = x + y\n", "keeps",
                "fn keeps(%0 x : ℝ[B, T], %1 y : ℝ[col: T]) -> ℝ[row: B, col: T] {\n"
                "  %2 : ℝ[B, col: T] = add %0 %1\n"
                "  return %2\n"
                "}\n");
    expect_core(DIMS "fn one(x : ℝ[B, 1], y : ℝ[1, T]) -> ℝ[B, T] = x * y\n", "one",
                "fn one(%0 x : ℝ[B, 1], %1 y : ℝ[1, T]) -> ℝ[B, T] {\n"
                "  %2 : ℝ[B, T] = mul %0 %1\n"
                "  return %2\n"
                "}\n");
    expect_core(DIMS "fn scalar(x : ℝ[B]) -> ℝ[B] = 2 * x + Scale\n", "scalar",
                "fn scalar(%0 x : ℝ[B]) -> ℝ[B] {\n"
                "  %1 : ℝ = scalar 2\n"
                "  %2 : ℝ[B] = mul %1 %0\n"
                "  %3 : ℝ = scalar 1/3\n"
                "  %4 : ℝ[B] = add %2 %3\n"
                "  return %4\n"
                "}\n");
    expect_core(DIMS "fn pack(x : ℝ[..., T], y : ℝ[T]) -> ℝ[..., T] = y - x\n", "pack",
                "fn pack{...}(%0 x : ℝ[..., T], %1 y : ℝ[T]) -> ℝ[..., T] {\n"
                "  %2 : ℝ[..., T] = sub %1 %0\n"
                "  return %2\n"
                "}\n");
}

static void indices(void **state) {
    (void)state;
    expect_core(DIMS "fn inject(i : idx[5][B], x : ℝ[B]) -> ℝ[B] = i * x\n", "inject",
                "fn inject(%0 i : idx[5][B], %1 x : ℝ[B]) -> ℝ[B] {\n"
                "  %2 : ℝ[B] = mul %0 %1\n"
                "  return %2\n"
                "}\n");
    expect_core(DIMS "fn injected(i : idx[5][B]) -> ℝ[B] = i\n", "injected",
                "fn injected(%0 i : idx[5][B]) -> ℝ[B] {\n"
                "  %1 : ℝ[B] = copy %0\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS "fn count(m : idx[2][B]) -> ℝ = sum(m)\n", "count",
                "fn count(%0 m : idx[2][B]) -> ℝ {\n"
                "  %1 : ℝ = sum %0 over 0\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS "fn wider(i : idx[5][B]) -> idx[300][B] = i\n", "wider",
                "fn wider(%0 i : idx[5][B]) -> idx[300][B] {\n"
                "  %1 : idx[300][B] = copy %0\n"
                "  return %1\n"
                "}\n");
    expect_core(
        DIMS "fn choose(m : idx[2][row: B], x : ℝ[row: B, col: T]) -> ℝ[row: B, col: T] = where(m, "
             "x, -1)\n",
        "choose",
        "fn choose(%0 m : idx[2][row: B], %1 x : ℝ[row: B, col: T]) -> ℝ[row: B, col: T] {\n"
        "  %2 : ℝ = scalar -1\n"
        "  %3 : idx[2][row: B, col: 1] = view %0\n"
        "  %4 : ℝ[row: B, col: T] = select %3 %1 %2\n"
        "  return %4\n"
        "}\n");
}

static void reductions(void **state) {
    (void)state;
    expect_core(DIMS "fn all(x : ℝ[row: B, col: T]) -> ℝ = mean(x)\n", "all",
                "fn all(%0 x : ℝ[row: B, col: T]) -> ℝ {\n"
                "  %1 : ℝ = mean %0 over row col\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS "fn some(x : ℝ[row: B, col: T]) -> ℝ[row: B] = max(x, col)\n", "some",
                "fn some(%0 x : ℝ[row: B, col: T]) -> ℝ[row: B] {\n"
                "  %1 : ℝ[row: B] = reduce_max %0 over col\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS "fn two(x : ℝ[a: 2, b: 3, c: 4]) -> ℝ[b: 3] = sum(x, c, a)\n", "two",
                "fn two(%0 x : ℝ[a: 2, b: 3, c: 4]) -> ℝ[b: 3] {\n"
                "  %1 : ℝ[b: 3] = sum %0 over a c\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS
                "fn kept(x : ℝ[row: B, col: T]) -> ℝ[row: B, col: 1] = min(x, last, keep = true)\n",
                "kept",
                "fn kept(%0 x : ℝ[row: B, col: T]) -> ℝ[row: B, col: 1] {\n"
                "  %1 : ℝ[row: B, col: 1] = reduce_min %0 over col keep\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS "fn larger(x : ℝ[B], y : ℝ[B]) -> ℝ[B] = max(x, y)\n", "larger",
                "fn larger(%0 x : ℝ[B], %1 y : ℝ[B]) -> ℝ[B] {\n"
                "  %2 : ℝ[B] = max %0 %1\n"
                "  return %2\n"
                "}\n");
    expect_core(DIMS "fn clamp(x : ℝ[B]) -> ℝ[B] = max(x, 0)\n", "clamp",
                "fn clamp(%0 x : ℝ[B]) -> ℝ[B] {\n"
                "  %1 : ℝ = scalar 0\n"
                "  %2 : ℝ[B] = max %0 %1\n"
                "  return %2\n"
                "}\n");
}

static void rows(void **state) {
    (void)state;
    expect_core(DIMS "fn best(x : ℝ[row: B, col: T]) -> idx[T][row: B] = argmax(x, col)\n", "best",
                "fn best(%0 x : ℝ[row: B, col: T]) -> idx[T][row: B] {\n"
                "  %1 : idx[T][row: B] = argmax %0 over col\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS "fn lse(x : ℝ[row: B, col: T]) -> ℝ[row: B] = logsumexp(x, col)\n", "lse",
                "fn lse(%0 x : ℝ[row: B, col: T]) -> ℝ[row: B] {\n"
                "  %1 : ℝ[row: B] = logsumexp %0 over col\n"
                "  return %1\n"
                "}\n");
    expect_core(
        DIMS
        "fn picked(x : ℝ[row: B, col: T], i : idx[T][row: B]) -> ℝ[row: B] = pick(x, col, i)\n",
        "picked",
        "fn picked(%0 x : ℝ[row: B, col: T], %1 i : idx[T][row: B]) -> ℝ[row: B] {\n"
        "  %2 : ℝ[row: B] = pick %0 %1 over col\n"
        "  return %2\n"
        "}\n");
    expect_core(
        DIMS "fn xent(x : ℝ[row: B, col: T], i : idx[T][B]) -> ℝ[row: B] = cross_entropy(x, i)\n",
        "xent",
        "fn xent(%0 x : ℝ[row: B, col: T], %1 i : idx[T][B]) -> ℝ[row: B] {\n"
        "  %2 : ℝ[row: B] = cross_entropy %0 %1 over col\n"
        "  return %2\n"
        "}\n");
}

static void contractions(void **state) {
    (void)state;
    expect_core(DIMS "fn vec(x : ℝ[T], y : ℝ[T]) -> ℝ = x · y\n", "vec",
                "fn vec(%0 x : ℝ[T], %1 y : ℝ[T]) -> ℝ {\n"
                "  %2 : ℝ = dot %0 %1\n"
                "  return %2\n"
                "}\n");
    expect_core(DIMS "fn high(x : ℝ[B, T], w : ℝ[T, 2, 3]) -> ℝ[B, 2, 3] = x · w\n", "high",
                "fn high(%0 x : ℝ[B, T], %1 w : ℝ[T, 2, 3]) -> ℝ[B, 2, 3] {\n"
                "  %2 : ℝ[B, 2, 3] = dot %0 %1\n"
                "  return %2\n"
                "}\n");
    expect_core(DIMS "fn trans(x : ℝ[i: B, j: T]) -> ℝ[j: T, i: B] = ein[j, i](x)\n", "trans",
                "fn trans(%0 x : ℝ[i: B, j: T]) -> ℝ[j: T, i: B] {\n"
                "  %1 : ℝ[j: T, i: B] = permute %0 [1, 0]\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS "fn sums(x : ℝ[i: B, j: T, k: 3]) -> ℝ[k: 3, i: B] = ein[k, i](x)\n", "sums",
                "fn sums(%0 x : ℝ[i: B, j: T, k: 3]) -> ℝ[k: 3, i: B] {\n"
                "  %1 : ℝ[i: B, k: 3] = sum %0 over j\n"
                "  %2 : ℝ[k: 3, i: B] = permute %1 [1, 0]\n"
                "  return %2\n"
                "}\n");
    expect_core(DIMS "fn same(x : ℝ[i: B, j: T]) -> ℝ[i: B, j: T] = ein[i, j](x)\n", "same",
                "fn same(%0 x : ℝ[i: B, j: T]) -> ℝ[i: B, j: T] {\n"
                "  return %0\n"
                "}\n");
    expect_core(DIMS "fn outp(x : ℝ[i: B], y : ℝ[j: T]) -> ℝ[j: T, i: B] = ein[j, i](x * y)\n",
                "outp",
                "fn outp(%0 x : ℝ[i: B], %1 y : ℝ[j: T]) -> ℝ[j: T, i: B] {\n"
                "  %2 : ℝ[j: T, i: B] = ein %0 %1 [a, b -> ba]\n"
                "  return %2\n"
                "}\n");
}

static void views(void **state) {
    (void)state;
    expect_core(DIMS "fn merge(x : ℝ[B, T, 6]) -> ℝ[rows: B * T, 6] = view(x, [rows: B * T, 6])\n",
                "merge",
                "fn merge(%0 x : ℝ[B, T, 6]) -> ℝ[rows: B * T, 6] {\n"
                "  %1 : ℝ[rows: B * T, 6] = view %0\n"
                "  return %1\n"
                "}\n");
    expect_core(DIMS "fn split(x : ℝ[..., 6]) -> ℝ[..., head: H, dim: 6 / H] = view(x, [..., head: "
                     "H, dim: 6 / H])\n",
                "split",
                "fn split{...}(%0 x : ℝ[..., 6]) -> ℝ[..., head: 2, dim: 3] {\n"
                "  %1 : ℝ[..., head: 2, dim: 3] = view %0\n"
                "  return %1\n"
                "}\n");
    expect_core(
        DIMS "fn rows(table : ℝ[9, 4], i : idx[7][batch: B, seq: T]) -> ℝ[batch: B, seq: T, 4] = "
             "table[i]\n",
        "rows",
        "fn rows(%0 table : ℝ[9, 4], %1 i : idx[7][batch: B, seq: T]) -> ℝ[batch: B, seq: T, 4] {\n"
        "  %2 : ℝ[batch: B, seq: T, 4] = gather %0 %1\n"
        "  return %2\n"
        "}\n");
}

static void powers(void **state) {
    (void)state;
    expect_core(DIMS "fn powers(x : ℝ[B]) -> ℝ[B] = -x ^ 2 + 2 ^ 3\n", "powers",
                "fn powers(%0 x : ℝ[B]) -> ℝ[B] {\n"
                "  %1 : ℝ[B] = pow %0 2\n"
                "  %2 : ℝ[B] = neg %1\n"
                "  %3 : ℝ = scalar 8\n"
                "  %4 : ℝ[B] = add %2 %3\n"
                "  return %4\n"
                "}\n");
}

static const char *const modules_text =
    "import \"std/nn.psk\" as nn\n"
    "import \"std/optim.psk\" as optim\n"
    "dim B\n"
    "const W = 4\n"
    "\n"
    "type Row = ℝ[batch: B, 4]\n"
    "module Mlp {\n"
    "  use net = nn.Linear{8, 2} ∘ nn.Relu ∘ nn.Linear{4, 8}\n"
    "  use stack = (nn.Linear{2, 2} ∘ nn.Tanh) ^ 2\n"
    "  param scale : ℝ init 0.5\n"
    "  fn apply(x : Row) -> ℝ[batch: B, 2] = stack.apply(helper(x)) * scale\n"
    "  fn helper(x : Row) -> ℝ[batch: B, 2] = net.apply(x)\n"
    "}\n"
    "model Net = nn.Linear{2, 3} ∘ Mlp\n"
    "model Pair = nn.Gelu ⊗ nn.Linear{4, 4}\n"
    "model Alias = nn.Linear{4, 4}\n"
    "fn both(p : params Pair, x : ℝ[batch: B], y : Row) -> (ℝ[B], ℝ[B, 4]) = Pair.apply(p, (x, "
    "y))\n"
    "fn net(p : params Net, x : Row) -> ℝ[batch: B, 3] = Net.apply(p, x)\n"
    "fn alias(p : params Alias, x : Row) -> ℝ[B, 4] = Alias.apply(p, x)\n"
    "fn swap{N, M}(x : (ℝ[N], ℝ[M])) -> (ℝ[M], ℝ[N]) =\n"
    "  let (a, b) = x\n"
    "  (b, a)\n"
    "fn twice(x : ℝ[W]) -> (ℝ[W], ℝ[3]) =\n"
    "  let f = λ (a, b). swap((a, b))\n"
    "  let (u, v) = f(range([3]) * 2, x)\n"
    "  (u, v)\n"
    "fn pipes(x : ℝ[seq: 4]) -> ℝ = x |> exp |> softmax(seq) |> sum\n"
    "fn ascribed(x : ℝ[row: 2, col: 3]) -> ℝ[2, 3] = (x : ℝ[2, 3]) + 1\n"
    "fn noresult(x : ℝ[3]) = x + x\n"
    "fn user(x : ℝ[3]) -> ℝ[3] = noresult(noresult(x))\n"
    "fn inst{N}(x : ℝ[2 * N]) -> ℝ[N, 2] = view(x, [N, 2])\n"
    "fn insts(x : ℝ[6]) -> ℝ[3, 2] = inst{3}(x)\n"
    "fn zero(x : ℝ[first: 0, 3]) -> ℝ[3] = sum(x, first)\n";

static void modules(void **state) {
    (void)state;
    Checked checked;
    check_good(&checked, modules_text);
    expect_function(&checked, "Mlp.apply",
                    "fn Mlp.apply(%0 : params Mlp, %1 x : ℝ[batch: B, 4]) -> ℝ[batch: B, 2] {\n"
                    "  %2 : ℝ[batch: B, 2] = call Mlp.helper %0 %1\n"
                    "  %3 : params Tanh = field %0 stack.0.0\n"
                    "  %4 : ℝ[batch: B, 2] = call Tanh.apply{...: [batch: B, 2]} %3 %2\n"
                    "  %5 : params Linear{2, 2} = field %0 stack.0.1\n"
                    "  %6 : ℝ[batch: B, 2] = call Linear.apply{2, 2, ...: [batch: B]} %5 %4\n"
                    "  %7 : params Tanh = field %0 stack.1.0\n"
                    "  %8 : ℝ[batch: B, 2] = call Tanh.apply{...: [batch: B, 2]} %7 %6\n"
                    "  %9 : params Linear{2, 2} = field %0 stack.1.1\n"
                    "  %10 : ℝ[batch: B, 2] = call Linear.apply{2, 2, ...: [batch: B]} %9 %8\n"
                    "  %11 : ℝ = field %0 scale\n"
                    "  %12 : ℝ[batch: B, 2] = mul %10 %11\n"
                    "  return %12\n"
                    "}\n");
    expect_function(&checked, "Mlp.helper",
                    "fn Mlp.helper(%0 : params Mlp, %1 x : ℝ[batch: B, 4]) -> ℝ[batch: B, 2] {\n"
                    "  %2 : params Linear{4, 8} = field %0 net.0\n"
                    "  %3 : ℝ[batch: B, 8] = call Linear.apply{4, 8, ...: [batch: B]} %2 %1\n"
                    "  %4 : params Relu = field %0 net.1\n"
                    "  %5 : ℝ[batch: B, 8] = call Relu.apply{...: [batch: B, 8]} %4 %3\n"
                    "  %6 : params Linear{8, 2} = field %0 net.2\n"
                    "  %7 : ℝ[batch: B, 2] = call Linear.apply{8, 2, ...: [batch: B]} %6 %5\n"
                    "  return %7\n"
                    "}\n");
    expect_function(
        &checked, "Linear.apply",
        "fn Linear.apply{I, O, ...}(%0 : params Linear{I, O}, %1 x : ℝ[..., I]) -> ℝ[..., O] {\n"
        "  %2 : ℝ[I, O] = field %0 w\n"
        "  %3 : ℝ[..., O] = dot %1 %2\n"
        "  %4 : ℝ[O] = field %0 b\n"
        "  %5 : ℝ[..., O] = add %3 %4\n"
        "  return %5\n"
        "}\n");
    check_end(&checked);
}

static void models(void **state) {
    (void)state;
    Checked checked;
    check_good(&checked, modules_text);
    expect_function(&checked, "Net.apply",
                    "fn Net.apply(%0 : params Net, %1 x : ℝ[batch: B, 4]) -> ℝ[batch: B, 3] {\n"
                    "  %2 : params Mlp = field %0 0\n"
                    "  %3 : ℝ[batch: B, 2] = call Mlp.apply %2 %1\n"
                    "  %4 : params Linear{2, 3} = field %0 1\n"
                    "  %5 : ℝ[batch: B, 3] = call Linear.apply{2, 3, ...: [batch: B]} %4 %3\n"
                    "  return %5\n"
                    "}\n");
    expect_function(&checked, "Pair.apply",
                    "fn Pair.apply{...}(%0 : params Pair, %1 x : (ℝ[...], ℝ[..., 4])) -> (ℝ[...], "
                    "ℝ[..., 4]) {\n"
                    "  %2 : ℝ[...] = item %1 0\n"
                    "  %3 : params Gelu = field %0 0\n"
                    "  %4 : ℝ[...] = call Gelu.apply{...: [...]} %3 %2\n"
                    "  %5 : ℝ[..., 4] = item %1 1\n"
                    "  %6 : params Linear{4, 4} = field %0 1\n"
                    "  %7 : ℝ[..., 4] = call Linear.apply{4, 4, ...: [...]} %6 %5\n"
                    "  %8 : (ℝ[...], ℝ[..., 4]) = tuple %4 %7\n"
                    "  return %8\n"
                    "}\n");
    expect_function(
        &checked, "both",
        "fn both(%0 p : params Pair, %1 x : ℝ[batch: B], %2 y : ℝ[batch: B, 4]) -> (ℝ[B], ℝ[B, 4]) "
        "{\n"
        "  %3 : (ℝ[batch: B], ℝ[batch: B, 4]) = tuple %1 %2\n"
        "  %4 : (ℝ[batch: B], ℝ[batch: B, 4]) = call Pair.apply{...: [batch: B]} %0 %3\n"
        "  return %4\n"
        "}\n");
    expect_function(&checked, "net",
                    "fn net(%0 p : params Net, %1 x : ℝ[batch: B, 4]) -> ℝ[batch: B, 3] {\n"
                    "  %2 : ℝ[batch: B, 3] = call Net.apply %0 %1\n"
                    "  return %2\n"
                    "}\n");
    expect_function(&checked, "alias",
                    "fn alias(%0 p : params Linear{4, 4}, %1 x : ℝ[batch: B, 4]) -> ℝ[B, 4] {\n"
                    "  %2 : ℝ[batch: B, 4] = call Linear.apply{4, 4, ...: [batch: B]} %0 %1\n"
                    "  return %2\n"
                    "}\n");
    check_end(&checked);
}

static void tuples_and_lambdas(void **state) {
    (void)state;
    Checked checked;
    check_good(&checked, modules_text);
    expect_function(&checked, "swap",
                    "fn swap{N, M}(%0 x : (ℝ[N], ℝ[M])) -> (ℝ[M], ℝ[N]) {\n"
                    "  %1 : ℝ[N] = item %0 0\n"
                    "  %2 : ℝ[M] = item %0 1\n"
                    "  %3 : (ℝ[M], ℝ[N]) = tuple %2 %1\n"
                    "  return %3\n"
                    "}\n");
    expect_function(&checked, "twice",
                    "fn twice(%0 x : ℝ[4]) -> (ℝ[4], ℝ[3]) {\n"
                    "  %1 : idx[3][3] = range\n"
                    "  %2 : ℝ = scalar 2\n"
                    "  %3 : ℝ[3] = mul %1 %2\n"
                    "  %4 : (ℝ[3], ℝ[4]) = tuple %3 %0\n"
                    "  %5 : (ℝ[4], ℝ[3]) = call swap{3, 4} %4\n"
                    "  %6 : ℝ[4] = item %5 0\n"
                    "  %7 : ℝ[3] = item %5 1\n"
                    "  %8 : (ℝ[4], ℝ[3]) = tuple %6 %7\n"
                    "  return %8\n"
                    "}\n");
    expect_function(&checked, "pipes",
                    "fn pipes(%0 x : ℝ[seq: 4]) -> ℝ {\n"
                    "  %1 : ℝ[seq: 4] = exp %0\n"
                    "  %2 : ℝ[seq: 4] = softmax %1 over seq\n"
                    "  %3 : ℝ = sum %2 over seq\n"
                    "  return %3\n"
                    "}\n");
    expect_function(&checked, "ascribed",
                    "fn ascribed(%0 x : ℝ[row: 2, col: 3]) -> ℝ[2, 3] {\n"
                    "  %1 : ℝ[2, 3] = view %0\n"
                    "  %2 : ℝ = scalar 1\n"
                    "  %3 : ℝ[2, 3] = add %1 %2\n"
                    "  return %3\n"
                    "}\n");
    check_end(&checked);
}

static void calls(void **state) {
    (void)state;
    Checked checked;
    check_good(&checked, modules_text);
    expect_function(&checked, "noresult",
                    "fn noresult(%0 x : ℝ[3]) -> ℝ[3] {\n"
                    "  %1 : ℝ[3] = add %0 %0\n"
                    "  return %1\n"
                    "}\n");
    expect_function(&checked, "user",
                    "fn user(%0 x : ℝ[3]) -> ℝ[3] {\n"
                    "  %1 : ℝ[3] = call noresult %0\n"
                    "  %2 : ℝ[3] = call noresult %1\n"
                    "  return %2\n"
                    "}\n");
    expect_function(&checked, "inst",
                    "fn inst{N}(%0 x : ℝ[2 * N]) -> ℝ[N, 2] {\n"
                    "  %1 : ℝ[N, 2] = view %0\n"
                    "  return %1\n"
                    "}\n");
    expect_function(&checked, "insts",
                    "fn insts(%0 x : ℝ[6]) -> ℝ[3, 2] {\n"
                    "  %1 : ℝ[3, 2] = call inst{3} %0\n"
                    "  return %1\n"
                    "}\n");
    expect_function(&checked, "zero",
                    "fn zero(%0 x : ℝ[first: 0, 3]) -> ℝ[3] {\n"
                    "  %1 : ℝ[3] = sum %0 over first\n"
                    "  return %1\n"
                    "}\n");
    check_end(&checked);
}

static const char *const dimensions_text =
    "import \"std/nn.psk\" as nn\n"
    "dim B\n"
    "fn f{I, O}(p : params nn.Linear{I, O}, x : ℝ[..., I]) -> ℝ[..., O] = nn.Linear.apply(p, x)\n"
    "fn g(p : params nn.Linear{2, 3}, x : ℝ[batch: B, 2]) -> ℝ[B, 3] = f(p, x) + nn.Linear{2, "
    "3}.apply(p, x)\n"
    "module M{K} {\n"
    "  param w : ℝ[K]\n"
    "  fn scale{N}(x : ℝ[N, K]) -> ℝ[N, K] = x * w\n"
    "  fn apply(x : ℝ[K]) -> ℝ[K] = view(scale(view(x, [1, K])), [K])\n"
    "}\n"
    "fn softmax(x : ℝ[3]) -> ℝ[3] = exp(x) / sum(exp(x))\n"
    "fn own(x : ℝ[3]) -> ℝ[3] = softmax(x)\n"
    "fn h(p : params M{4}, x : ℝ[4]) -> ℝ[4] = M.apply(p, view(M{4}.scale(p, view(x, [1, 4])), "
    "[4]))\n";

static void dimensions(void **state) {
    (void)state;
    Checked checked;
    check_good(&checked, dimensions_text);
    expect_function(&checked, "f",
                    "fn f{I, O, ...}(%0 p : params Linear{I, O}, %1 x : ℝ[..., I]) -> ℝ[..., O] {\n"
                    "  %2 : ℝ[..., O] = call Linear.apply{I, O, ...: [...]} %0 %1\n"
                    "  return %2\n"
                    "}\n");
    expect_function(&checked, "g",
                    "fn g(%0 p : params Linear{2, 3}, %1 x : ℝ[batch: B, 2]) -> ℝ[B, 3] {\n"
                    "  %2 : ℝ[batch: B, 3] = call f{2, 3, ...: [batch: B]} %0 %1\n"
                    "  %3 : ℝ[batch: B, 3] = call Linear.apply{2, 3, ...: [batch: B]} %0 %1\n"
                    "  %4 : ℝ[batch: B, 3] = add %2 %3\n"
                    "  return %4\n"
                    "}\n");
    expect_function(&checked, "M.scale",
                    "fn M.scale{K, N}(%0 : params M{K}, %1 x : ℝ[N, K]) -> ℝ[N, K] {\n"
                    "  %2 : ℝ[K] = field %0 w\n"
                    "  %3 : ℝ[N, K] = mul %1 %2\n"
                    "  return %3\n"
                    "}\n");
    expect_function(&checked, "M.apply",
                    "fn M.apply{K}(%0 : params M{K}, %1 x : ℝ[K]) -> ℝ[K] {\n"
                    "  %2 : ℝ[1, K] = view %1\n"
                    "  %3 : ℝ[1, K] = call M.scale{K, 1} %0 %2\n"
                    "  %4 : ℝ[K] = view %3\n"
                    "  return %4\n"
                    "}\n");
    expect_function(&checked, "own",
                    "fn own(%0 x : ℝ[3]) -> ℝ[3] {\n"
                    "  %1 : ℝ[3] = call softmax %0\n"
                    "  return %1\n"
                    "}\n");
    expect_function(&checked, "h",
                    "fn h(%0 p : params M{4}, %1 x : ℝ[4]) -> ℝ[4] {\n"
                    "  %2 : ℝ[1, 4] = view %1\n"
                    "  %3 : ℝ[1, 4] = call M.scale{4, 1} %0 %2\n"
                    "  %4 : ℝ[4] = view %3\n"
                    "  %5 : ℝ[4] = call M.apply{4} %0 %4\n"
                    "  return %5\n"
                    "}\n");
    check_end(&checked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_name),
        cmocka_unit_test(from_the_right),
        cmocka_unit_test(indices),
        cmocka_unit_test(reductions),
        cmocka_unit_test(rows),
        cmocka_unit_test(contractions),
        cmocka_unit_test(views),
        cmocka_unit_test(powers),
        cmocka_unit_test(modules),
        cmocka_unit_test(models),
        cmocka_unit_test(tuples_and_lambdas),
        cmocka_unit_test(calls),
        cmocka_unit_test(dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
