#!/usr/bin/env python3
"""fit_vmath.py - the polynomials of src/core/vmath.h.  Needs numpy, mpmath.

Each is a weighted least-squares fit on Chebyshev nodes whose weights are
raised where the error is large (Lawson 1961), which comes near the minimax
polynomial.  Prints coefficients, the lowest power first, and the largest
weighted error of each.
"""

import mpmath as mp
import numpy as np

mp.mp.dps = 40
NODES, ROUNDS = 400, 60


def fit(name, f, basis, weight, lo, hi, n):
    """n coefficients of basis(x)^k for f on [lo, hi]; errors times weight."""
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    nodes = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (k + 0.5) / NODES)
             for k in range(NODES)]
    rows = np.array([[float(weight(x) * basis(x) ** k) for k in range(n)]
                     for x in nodes])
    want = np.array([float(weight(x) * f(x)) for x in nodes])
    raised = np.ones(NODES)
    best = None
    for _ in range(ROUNDS):
        s = np.sqrt(raised)
        a, b = rows * s[:, None], want * s
        c = np.linalg.lstsq(a, b, rcond=None)[0]
        c += np.linalg.lstsq(a, b - a @ c, rcond=None)[0]
        error = np.abs(rows @ c - want)
        if best is None or error.max() < best[0]:
            best = error.max(), c
        raised *= error / error.max() + 1e-12
        raised /= raised.max()
    print(f"{name}: error {best[0]:.1e}")
    print("  " + ", ".join(f"{np.float32(c):.9e}" for c in best[1]))


def fit_double(name, f, lo, hi, n):
    """n coefficients of x^k for f on [lo, hi] by Chebyshev's nodes."""
    c, error = mp.chebyfit(f, [mp.mpf(lo), mp.mpf(hi)], n, error=True)
    print(f"{name}: error {float(error):.1e}")
    print("  " + ", ".join(f"{float(x):.17e}" for x in reversed(c)))


def near(f, series):
    """f, but its series where f cancels."""
    return lambda x: series(x) if abs(x) < mp.mpf("1e-6") else f(x)


def square(x):
    return x * x


def same(x):
    return x


def main():
    half = mp.log(2) / 2 * mp.mpf("1.002")
    fit("e^r = 1 + r + r^2 p(r)",
        near(lambda x: (mp.exp(x) - 1 - x) / x**2, lambda x: 0.5 + x / 6),
        same, lambda x: x**2 / mp.exp(x), -half, half, 6)
    lo, hi = mp.sqrt(0.5) - 1, mp.sqrt(2) - 1
    wide = mp.mpf("1.001")
    fit("log(1 + f) = f - f^2 / 2 + f^3 p(f)",
        near(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
             lambda f: mp.mpf(1) / 3 - f / 4),
        same, lambda f: f**2, lo * wide, hi * wide, 9)
    quarter = mp.pi / 4 * wide
    fit("sin r = r + r^3 p(r^2)",
        near(lambda x: (mp.sin(x) - x) / x**3, lambda x: -mp.mpf(1) / 6),
        square, square, "1e-4", quarter, 4)
    fit("cos r = 1 - r^2 / 2 + r^4 p(r^2)",
        lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4, square,
        lambda x: x**4, "1e-4", quarter, 4)
    fit("atan t = t + t^3 p(t^2), t <= 1",
        near(lambda x: (mp.atan(x) - x) / x**3, lambda x: -mp.mpf(1) / 3),
        square, square, "1e-4", 1, 10)
    fit("asin t = t + t^3 p(t^2), t <= 1/2",
        near(lambda x: (mp.asin(x) - x) / x**3, lambda x: mp.mpf(1) / 6),
        square, square, "1e-4", 0.5, 6)
    fit("tanh a = a + a^3 p(a^2), a <= 0.625",
        lambda x: (mp.tanh(x) - x) / x**3, square, square, "1e-3", 0.625, 5)
    fit("erf a = a (2 / sqrt(pi) + p(a^2)), a <= 1",
        lambda x: mp.erf(x) / x - 2 / mp.sqrt(mp.pi), square, lambda x: 1,
        "1e-4", 1, 8)
    fit("erfc a = e^p(a - 2.5), 1 <= a <= 4", lambda x: mp.log(mp.erfc(x)),
        lambda x: x - 2.5, lambda x: mp.erfc(x) / mp.erf(x), 0.98, 4, 10)
    fit("normal_cdf(-a) = e^p(a - 1), a <= 7",
        lambda a: mp.log(mp.erfc(a / mp.sqrt(2)) / 2), lambda x: x - 1,
        lambda x: 1, 0, 7, 12)
    fit_double("double: e^r = 1 + r + r^2 p(r)",
               near(lambda x: (mp.exp(x) - 1 - x) / x**2,
                    lambda x: 0.5 + x / 6 + x * x / 24), -half, "0.5005", 11)
    fit_double("double: log(1 + f) = 2 s + s z p(z), z = s^2, s = f / (2 + f)",
               near(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z,
                    lambda z: mp.mpf(2) / 3 + 2 * z / 5), 0, "0.02945", 7)
    fit_double("double: tanh a = a + a z p(z), z = a^2, a <= 1/2",
               near(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
                    lambda z: -mp.mpf(1) / 3 + 2 * z / 15), 0, "0.251", 10)


if __name__ == "__main__":
    main()
