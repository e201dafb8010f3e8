#!/usr/bin/env python3
"""Coefficients of src/maths/erf.c that Sollya has no command for (needs python3-mpmath):

    scripts/tail_coefficients.py

* e^(t²/2) Φ(−t), Φ the normal distribution, as a quotient of polynomials, relative error;
* log2(erfc(t)) / t as a polynomial, weighted so that the error of erfc is least.

Lawson's iteration: weighted least squares whose weights grow where the error is large. Coefficients
are then rounded one after the other, each time fitting the others anew, in several orders; the best
is printed. The build does not run this.
"""
import random
import mpmath as mp

mp.mp.dps = 60
NODES_PER_COEFFICIENT = 30


def rounded(x, bits):
    mantissa, exponent = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), int(exponent) - bits)


def chebyshev(count):
    return [-mp.cos(mp.pi * (i + mp.mpf(1) / 2) / count) for i in range(count)]


class Fit:
    """Least squares of Σ x_k column_k(t) to target(t); `scale` makes an error of one node."""

    def __init__(self, nodes, count):
        self.nodes, self.count = nodes, count
        self.weights = [mp.mpf(1)] * len(nodes)

    def solve(self, fixed):
        free = [k for k in range(self.count) if k not in fixed]
        if not free:
            return [fixed[k] for k in range(self.count)]
        matrix, right = mp.matrix(len(self.nodes), len(free)), mp.matrix(len(self.nodes), 1)
        for i in range(len(self.nodes)):
            s = mp.sqrt(self.weights[i]) * self.scale(i)
            right[i] = s * (self.target(i) - sum(fixed[k] * self.column(i, k) for k in fixed))
            for j, k in enumerate(free):
                matrix[i, j] = s * self.column(i, k)
        x = mp.lu_solve(matrix.T * matrix, matrix.T * right)
        result = dict(fixed) | {k: x[j] for j, k in enumerate(free)}
        return [result[k] for k in range(self.count)]

    def iterate(self, rounds=40):
        best = None
        for turn in range(rounds):
            x = self.solve({})
            self.adapt(x)
            errors = [abs(e) for e in self.errors(x)]
            largest = max(errors)
            if best is None or largest < best[0]:
                best = largest, x, list(self.weights)
            if turn > 4:
                weights = [w * (e / largest + mp.mpf("0.001"))
                           for w, e in zip(self.weights, errors)]
                mean = sum(weights) / len(weights)
                self.weights = [w / mean for w in weights]
        _, x, self.weights = best
        self.adapt(x)

    def round(self, bits, first, tries):
        random.seed(1)
        best = None
        for attempt in range(tries):
            order = list(range(self.count))
            if attempt == 1:
                order.reverse()
            elif attempt:
                random.shuffle(order)
            fixed = {}
            for k in first + [k for k in order if k not in first]:
                fixed[k] = rounded(self.solve(fixed)[k], bits)
            x = [fixed[k] for k in range(self.count)]
            largest = max(map(abs, self.errors(x)))
            if best is None or largest < best[0]:
                best = largest, x
        return best

    def adapt(self, x):
        pass


class NormalTail(Fit):
    """above(t) / below(t) of these degrees; the constant of `below` is 1."""

    def __init__(self, degree_above, degree_below, limit):
        self.degree = degree_above
        count = degree_above + degree_below + 1
        # Nodes even in (t − 3) / (t + 3), so that they are dense near 0.
        end = (mp.mpf(limit) - 3) / (limit + 3)
        places = [-1 + (end + 1) * (1 + u) / 2 for u in chebyshev(NODES_PER_COEFFICIENT * count)]
        super().__init__([3 * (1 + u) / (1 - u) for u in places], count)
        self.value = [mp.exp(t * t / 2) * mp.erfc(t / mp.sqrt(2)) / 2 for t in self.nodes]
        self.below = [mp.mpf(1)] * len(self.nodes)

    def scale(self, i):
        return 1 / (self.below[i] * self.value[i])

    def target(self, i):
        return self.value[i]

    def column(self, i, k):
        t = self.nodes[i]
        return t ** k if k <= self.degree else -self.value[i] * t ** (k - self.degree)

    def parts(self, x):
        return x[: self.degree + 1], [mp.mpf(1)] + x[self.degree + 1:]

    def adapt(self, x):
        self.below = [mp.polyval(self.parts(x)[1][::-1], t) for t in self.nodes]

    def errors(self, x):
        above, below = self.parts(x)
        return [mp.polyval(above[::-1], t) / mp.polyval(below[::-1], t) / value - 1
                for t, value in zip(self.nodes, self.value)]


class ErfTail(Fit):
    """log2(erfc(t)) / t, the error being that of erfc."""

    def __init__(self, degree, low, high):
        low, high = mp.mpf(low), mp.mpf(high)
        places = chebyshev(NODES_PER_COEFFICIENT * (degree + 1))
        super().__init__([(low + high + (high - low) * u) / 2 for u in places], degree + 1)

    def scale(self, i):
        t = self.nodes[i]
        return mp.erfc(t) * t * mp.log(2)

    def target(self, i):
        return mp.log(mp.erfc(self.nodes[i]), 2) / self.nodes[i]

    def column(self, i, k):
        return self.nodes[i] ** k

    def errors(self, x):
        return [mp.power(2, t * mp.polyval(x[::-1], t)) - mp.erfc(t) for t in self.nodes]


def show(label, error, tables):
    print(f"{label}: error 2^{mp.nstr(mp.log(error, 2), 5)}")
    for table in tables:
        print("  {" + ", ".join(float(v).hex() for v in table) + "}")


def main():
    fit = ErfTail(5, "0.999", 4)
    fit.iterate()
    error, x = fit.round(24, [], 12)
    show("erf tail f32", error, [x])
    for label, degree, limit, bits, tries in (("normal tail f32", 4, "14.6", 24, 24),
                                              ("normal tail f64", 10, "39.5", 53, 12)):
        fit = NormalTail(degree, degree + 1, mp.mpf(limit))
        fit.iterate()
        error, x = fit.round(bits, [0], tries)
        show(label, error, fit.parts(x))


main()
