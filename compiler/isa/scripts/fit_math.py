#!/usr/bin/env python3
"""Computes the coefficients in src/math/coefficients.rs (prints that file).

Method. Each kernel function g is approximated on [lo, hi] by a polynomial p of given degree that minimises
max |w(t) (p(t) - g(t))|, by the Remez exchange algorithm in 60-digit arithmetic (mpmath). The weight w turns the error
into the error of the final result relative to the function (divided by 2^-24, so 1.0 is one half ulp or so).
The coefficients are then rounded to f32 from the constant term upwards; after each one is fixed, the rest is fitted
again, so that later coefficients absorb the rounding of earlier ones. Constants of the range reductions (ln 2, pi/2)
are split into f32 parts.

    python3 scripts/fit_math.py > src/math/coefficients.rs        (needs mpmath and numpy)
"""
import numpy as np
from mpmath import mp, mpf, matrix, lu_solve, exp, log, log1p, tanh, erf, erfc, sin, cos, pi, sqrt, linspace

mp.dps = 60


def f32(x):
    """The nearest f32 of an mpf, as an mpf."""
    return mpf(float(np.float32(float(x))))


def remez(g, w, lo, hi, powers):
    """Minimax coefficients for `powers` (monomials) of g with weight w on [lo, hi]."""
    n = len(powers)
    lo, hi = mpf(lo), mpf(hi)
    # Chebyshev nodes to start from.
    x = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * i / n) for i in range(n + 1)]
    grid = linspace(lo, hi, 1200)
    best = None
    for _ in range(12):
        a = matrix(n + 1, n + 1)
        b = matrix(n + 1, 1)
        for i, t in enumerate(x):
            for j, p in enumerate(powers):
                a[i, j] = t**p
            a[i, n] = (-1) ** i / w(t)
            b[i] = g(t)
        sol = lu_solve(a, b)
        coef, level = [sol[j] for j in range(n)], abs(sol[n])
        err = [w(t) * (sum(c * t**p for c, p in zip(coef, powers)) - g(t)) for t in grid]
        peak = max(abs(e) for e in err)
        if best is None or peak < best[1]:
            best = (coef, peak)
        if peak < level * mpf("1.001"):
            break
        # One extremum of each run of equal sign; keep n + 1 alternating ones with the largest errors.
        runs = []
        for t, e in zip(grid, err):
            if runs and (runs[-1][1] > 0) == (e > 0):
                if abs(e) > abs(runs[-1][1]):
                    runs[-1] = (t, e)
            else:
                runs.append((t, e))
        while len(runs) > n + 1:
            runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
        if len(runs) < n + 1:
            break
        x = [t for t, _ in runs]
    return best


def fit(g, w, lo, hi, degree, fixed=()):
    """f32 coefficients c0..c_degree; `fixed` are given from c0 up. Returns them and the weighted error."""
    coef = [mpf(c) for c in fixed]
    while len(coef) <= degree:
        known = list(coef)
        rest = list(range(len(known), degree + 1))
        target = lambda t: g(t) - sum(c * t**i for i, c in enumerate(known))
        c, _ = remez(target, w, lo, hi, rest)
        coef.append(f32(c[0]))
    err = max(abs(w(t) * (sum(c * t**i for i, c in enumerate(coef)) - g(t))) for t in linspace(mpf(lo), mpf(hi), 4000))
    return coef, err * 2**24


def const(name, doc, values, err=None):
    note = "" if err is None else f" Weighted error {float(err):.4f} x 2^-24."
    print(f"\n/// {doc}{note}")
    print(f"pub(super) const {name}: [f32; {len(values)}] = [")
    for v in values:
        bits = int(np.float32(float(v)).view(np.uint32))
        print(f"    f32::from_bits(0x{bits:08x}), // {float(v):.9e}")
    print("];")


def split(x, parts, bits=24):
    out = []
    for _ in range(parts):
        head = f32(x)
        if bits < 24:
            scale = mpf(2) ** (int(mp.floor(mp.log(abs(x), 2))) + 1 - bits)
            head = f32(mp.nint(x / scale) * scale)
        out.append(head)
        x -= head
        bits = 24
    return out


def main():
    print("//! Constants of the programs, printed by `scripts/fit_math.py`; coefficients stand from the highest power down.")

    ln2 = log(2)
    const("LN2", "ln 2 in two parts; the first has 15 bits, so that products with exponents are exact.", split(ln2, 2, 15))
    h = ln2 / 2 * mpf("1.0001")
    # exp(r) = 1 + r + r^2 q(r)
    tiny = mpf(10) ** -12
    q = lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > tiny else mpf(1) / 2
    c, e = fit(q, lambda r: r**2 / exp(r) if abs(r) > mpf("1e-3") else mpf("1e-6"), -h, h, 4)
    const("EXP", "exp(r) = 1 + r + r^2 q(r) on [-ln 2 / 2, ln 2 / 2].", c[::-1], e)

    # log(1 + f) = f - f^2 / 2 + f^3 p(f)
    p = lambda f: (log1p(f) - f + f**2 / 2) / f**3 if abs(f) > mpf("1e-9") else mpf(1) / 3
    wl = lambda f: abs(f**3 / log1p(f)) if abs(f) > mpf("1e-3") else mpf("1e-6")
    c, e = fit(p, wl, 1 / sqrt(2) - 1, sqrt(2) - 1, 8)
    const("LOG", "log(1 + f) = f - f^2 / 2 + f^3 p(f) on [sqrt(1/2) - 1, sqrt(2) - 1].", c[::-1], e)

    # tanh(x) = x + x^3 p(x^2)
    p = lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z if z > tiny else mpf(-1) / 3
    c, e = fit(p, lambda z: z * sqrt(z) / tanh(sqrt(z)) if z > mpf("1e-6") else mpf("1e-6"), 0, mpf("0.65") ** 2, 4)
    const("TANH", "tanh(x) = x + x^3 p(x^2) for |x| <= 0.65.", c[::-1], e)

    # erf(x) = x + x p(x^2)
    p = lambda z: erf(sqrt(z)) / sqrt(z) - 1 if z > mpf(10) ** -24 else 2 / sqrt(pi) - 1
    c, e = fit(p, lambda z: sqrt(z) / erf(sqrt(z)) if z > mpf(10) ** -24 else sqrt(pi) / 2, 0, 1, 6)
    const("ERF", "erf(x) = x + x p(x^2) for |x| <= 1.", c[::-1], e)

    # erfc(x) = exp(-q(x)); the error of erf is that of q times erfc / erf
    q = lambda x: -log(erfc(x))
    c, e = fit(q, lambda x: erfc(x) / erf(x), 1, 4, 6)
    const("ERF_TAIL", "erf(x) = 1 - exp(-q(x)) on [1, 4].", c[::-1], e)

    const("PI_2", "pi / 2 in four parts.", split(pi / 2, 4))
    const("TWO_PI_INV", "2 / pi.", [f32(2 / pi)])
    h = (pi / 4 * mpf("1.001")) ** 2
    # sin(r) = r + r^3 p(r^2)
    p = lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z if z > tiny else mpf(-1) / 6
    c, e = fit(p, lambda z: z * sqrt(z) / sin(sqrt(z)) if z > mpf("1e-6") else mpf("1e-6"), 0, h, 2)
    const("SIN", "sin(r) = r + r^3 p(r^2) for |r| <= pi / 4.", c[::-1], e)
    # cos(r) = 1 - r^2 / 2 + r^4 p(r^2)
    p = lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(10) ** -9 else mpf(1) / 24
    c, e = fit(p, lambda z: z**2 / cos(sqrt(z)) if z > mpf("1e-4") else mpf("1e-8"), 0, h, 2)
    const("COS", "cos(r) = 1 - r^2 / 2 + r^4 p(r^2) for |r| <= pi / 4.", c[::-1], e)


main()
