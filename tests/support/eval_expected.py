"""Writes eval_expected.h: results of small nests in exact arithmetic, rounded where the
realization rounds. Rational numbers only, so no machine's floating point is involved.

  python3 tests/support/eval_expected.py > tests/support/eval_expected.h
"""
from fractions import Fraction
from math import isqrt

BITS = {"f64": (53, -1074), "f32": (24, -149), "bf16": (8, -133)}


def rounded(value, kind):
    """To nearest, ties to even; values here stay far below the largest float."""
    if value == 0:
        return Fraction(0)
    digits, least = BITS[kind]
    size, exponent = abs(value), 0
    while size >= 2:
        size, exponent = size / 2, exponent + 1
    while size < 1:
        size, exponent = size * 2, exponent - 1
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    return round(value / unit) * unit  # round() of a Fraction ties to even


def root(value, kind):
    """The rounded square root: a rational within 2^-200 of it lies on the same side of a tie."""
    scale = 2 ** 240
    return rounded(Fraction(isqrt(value.numerator * scale * scale // value.denominator), scale), kind)


def numbers(seed, count, kind):
    state, values = seed, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        values.append(rounded(Fraction((state >> 33) - 2 ** 30, 2 ** 29 + 3), kind))
    return values


def product(a, b, rows, terms, columns, step):
    out = []
    for i in range(rows):
        for j in range(columns):
            acc = Fraction(0)
            for k in range(terms):
                acc = step(a[i * terms + k], b[k * columns + j], acc)
            out.append(acc)
    return out


def fma(kind):
    return lambda x, y, acc: rounded(x * y + acc, kind)


def mul_add(kind):
    return lambda x, y, acc: rounded(rounded(x * y, kind) + acc, kind)


def in_bf16(x, y, acc):
    return rounded(rounded(x * y + acc, "f32"), "bf16")


def sequential(values, kind):
    total = Fraction(0)
    for v in values:
        total = rounded(total + v, kind)
    return total


def stripes16(values, kind):
    stripe = [sequential(values[i::16], kind) for i in range(16)]
    for half in (8, 4, 2, 1):
        for i in range(half):
            stripe[i] = rounded(stripe[i] + stripe[i + half], kind)
    return stripe[0]


def layer_norm(x, kind):
    n, eps = Fraction(len(x)), rounded(Fraction(1, 100000), kind)
    mean = rounded(sequential(x, kind) / n, kind)
    centred = [rounded(v - mean, kind) for v in x]
    square = [rounded(v * v, kind) for v in centred]
    variance = rounded(sequential(square, kind) / n, kind)
    below = root(rounded(variance + eps, kind), kind)
    return [rounded(v / below, kind) for v in centred]


def show(name, values):
    text = ", ".join(float(v).hex() for v in values)
    print(f"static const double {name}[{len(values)}] = {{{text}}};")


def main():
    print("// Made by eval_expected.py.\n// clang-format off")
    rows, terms, columns = 3, 7, 5
    a, b = numbers(1, rows * terms, "f32"), numbers(2, terms * columns, "f32")
    show("product_a", a)
    show("product_b", b)
    shape = (rows, terms, columns)
    show("product_fma_f32", product(a, b, *shape, fma("f32")))
    show("product_fma_f64", product(a, b, *shape, fma("f64")))
    show("product_mul_add_f32", product(a, b, *shape, mul_add("f32")))
    wide = product(a, b, *shape, fma("f64"))
    show("product_in_f64", [rounded(v, "f32") for v in wide])
    narrow_a, narrow_b = ([rounded(v, "bf16") for v in w] for w in (a, b))
    show("product_a_bf16", narrow_a)
    show("product_b_bf16", narrow_b)
    narrow = product(narrow_a, narrow_b, *shape, fma("f32"))
    show("product_bf16", [rounded(v, "bf16") for v in narrow])
    show("product_in_bf16", product(narrow_a, narrow_b, *shape, in_bf16))

    row = numbers(8, 53, "f32")
    show("sum_x", row)
    show("sum_sequential", [sequential(row, "f32")])
    show("sum_stripes", [stripes16(row, "f32")])
    show("sum_in_f64", [rounded(sequential(row, "f64"), "f32")])
    show("mean_sequential", [rounded(sequential(row, "f32") / 53, "f32")])
    show("mean_stripes", [rounded(stripes16(row, "f32") / 53, "f32")])
    order = [Fraction(v) for v in (1, 10 ** 8, -10 ** 8)] * 333 + [Fraction(1)]
    show("order_sequential", [sequential(order, "f32")])
    show("order_stripes", [stripes16(order, "f32")])

    for mean in (100, 1000, 10000):
        x = [rounded(mean + Fraction(i, 1000), "f32") for i in range(16)]
        show(f"norm_x_{mean}", x)
        show(f"norm_f32_{mean}", layer_norm(x, "f32"))
        show(f"norm_f64_{mean}", layer_norm(x, "f64"))


main()
