#!/usr/bin/env python3
"""Writes tests/golden/products.txt: matrix products on every triple of dtypes and in every mode, computed here step by step with numpy and
exact fractions by the rules of spec/numerics.md, and by nothing of the compiler.

    python3 tests/scripts/product_vectors.py > tests/golden/products.txt

A line is one launch: `NAME WORD..|acc DTYPE|a ARRAY|b ARRAY|..|out ARRAY`, an array being `DTYPE ROWSxCOLS HEX`. Where the
instruction reads the accumulator there are `c` and `d`: it is the product of c and of the matrix that has d on its diagonal, which is exact.
Where it reads a bias there is `bias`. Any NaN is equal to any other.
"""
import random

import numpy as np

from instruction_vectors import F32, bits_of, decode, encode, float_of, fma, hexed, is_float, wrap

TRIPLES = [("i32", "i8", "i8"), ("f16", "f16", "f16"), ("f32", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "f32", "f32")]
TRIPLES += [("f32", a, b) for a in ("f8e4m3", "f8e5m2") for b in ("f8e4m3", "f8e5m2")]
DROPPED = {"HF32": 12, "TF32": 13}
NAMES = ["TMATMUL", "TMATMUL_ACC", "TMATMUL_BIAS", "TGEMV", "TGEMV_ACC", "TGEMV_BIAS"]
ROWS, DEPTH, COLS = 5, 19, 21


def rounded(bits, drop, even):
    """Bits of f32 without so many of the fraction's, to nearest."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits
    sign, magnitude = bits & 0x80000000, bits & 0x7FFFFFFF
    low, rest = magnitude >> drop, magnitude & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    up = rest > half or (rest == half and (not even or low & 1))
    return sign | (low + up) << drop


class Matrix:
    def __init__(self, d, bits):
        self.d, self.bits = d, np.array(bits, dtype=object)

    def text(self):
        return f"{self.d} {self.bits.shape[0]}x{self.bits.shape[1]} {hexed(self.d, [int(b) for b in self.bits.flat])}"

    def at(self, i, j):
        return decode(self.d, int(self.bits[i, j]))


def noise(d, shape, rng):
    if not is_float(d):
        lo, hi = (-128, 128) if d == "i8" else (-(1 << 31), 1 << 31)
        return Matrix(d, [[encode(d, rng.randrange(lo, hi)) for _ in range(shape[1])] for _ in range(shape[0])])
    # The digits of an f32 are not those of an f16: sums of many are inexact in every order.
    one = lambda: bits_of(d, F32(rng.choice([rng.uniform(-4, 4), rng.uniform(-1, 1), rng.uniform(-1e-3, 1e-3)])))
    return Matrix(d, [[one() for _ in range(shape[1])] for _ in range(shape[0])])


def factor(m, mode):
    """With the digits that the mode leaves."""
    if not mode:
        return m
    return Matrix(m.d, np.vectorize(lambda b: rounded(int(b), DROPPED[mode[0]], mode[1:] == ("Rint",)), otypes=[object])(m.bits))


def product(acc, a, b, start):
    """One fused multiply-add a step, rounded once to the accumulator's dtype in the end."""
    rows, cols = a.bits.shape[0], b.bits.shape[1]
    out = []
    for i in range(rows):
        row = []
        for j in range(cols):
            total = start(i, j)
            for k in range(b.bits.shape[0]):
                x, y = a.at(i, k), b.at(k, j)
                total = fma(x, y, total) if is_float(acc) else wrap(acc, total + x * y)
            row.append(encode(acc, total))
        out.append(row)
    return Matrix(acc, out)


def special(d, m, rng):
    """Infinities, NaN, the largest, the smallest, and zeros of both signs, in columns (or rows) of their own."""
    if not is_float(d):
        m.bits[:2, :2] = [[encode(d, -128), encode(d, 127)], [encode(d, -128), encode(d, -128)]]
        return
    top = bits_of(d, F32(-0.0))
    inf = bits_of(d, F32(np.inf))
    largest = inf - 1 if d != "f8e4m3" else 0x7E
    m.bits[0, 0], m.bits[1, 0] = inf, rng.choice([inf, top | inf])
    m.bits[2, 1] = bits_of(d, F32(np.nan))
    m.bits[0, 2], m.bits[1, 2], m.bits[2, 2] = largest, top | largest, largest
    m.bits[:, 3] = 1
    m.bits[:, 4] = [top] * m.bits.shape[0]


def line(name, triple, mode):
    acc, left, right = triple
    rng = random.Random(f"{name} {triple} {mode}")
    rows = 1 if name.startswith("TGEMV") else ROWS
    a, b = noise(left, (rows, DEPTH), rng), noise(right, (DEPTH, COLS), rng)
    special(right, b, rng)
    if rows > 1 and is_float(left):
        a.bits[3, 7] = bits_of(left, F32(np.inf))
        a.bits[4, 0], a.bits[4, 1] = 1, bits_of(left, F32(-0.0))
    parts = [" ".join([name, *mode]), f"acc {acc}", "a " + a.text(), "b " + b.text()]
    start = lambda i, j: F32(0) if is_float(acc) else 0
    if name.endswith("_ACC"):
        c, d = noise(left, (rows, COLS), rng), noise(right, (1, COLS), rng)
        d.bits[0] = [encode(right, rng.choice([1, 2, -2] if right == "i8" else [F32(1), F32(2), F32(-0.5)])) for _ in range(COLS)]
        if acc == "f32":
            # As the bits of an f32, so that it is no number of a's dtype.
            d.bits[0, ::3] = encode(right, F32(0.25))
        value = lambda i, j: decode(acc, encode(acc, c.at(i, j) * d.at(0, j) + (F32(0) if is_float(acc) else 0)))
        start = value
        parts += ["c " + c.text(), "d " + d.text()]
    if name.endswith("_BIAS"):
        bias = noise(acc, (1, COLS), rng)
        if is_float(acc):
            bias.bits[0, 4:8] = [bits_of(acc, F32(x)) for x in (-0.0, np.inf, np.nan, 1e-30)]
        else:
            bias.bits[0, :2] = [0x7FFFFFFF, 0x80000000]
        start = lambda i, j: bias.at(0, j)
        parts.append("bias " + bias.text())
    out = product(acc, factor(a, mode), factor(b, mode), start)
    print("|".join(parts + ["out " + out.text()]))


def ties():
    """Factors that lie between two of the fewer digits, and at the ends; b picks an element each, so the products are exact."""
    for word, drop in DROPPED.items():
        for mode in (None, "Round", "Rint"):
            rng = random.Random(f"product {word} {mode}")
            a = np.array([[rng.randrange(1 << 32) for _ in range(16)] for _ in range(16)], dtype=object)
            for i in range(16):
                for j in range(16):
                    # Exponents in the middle, and some ties.
                    fraction = a[i, j] & 0x7FFFFF
                    if j % 3 == 0:
                        fraction = fraction >> drop << drop | 1 << (drop - 1)
                    a[i, j] = (a[i, j] & 0x80000000) | (100 + rng.randrange(50)) << 23 | fraction
            a[0, :2] = [0x7F7FFFFF, 0xFF7FFFFF]
            a[1, :2] = [0x00000001, 0x80000FFF]
            order = list(range(16))
            rng.shuffle(order)
            b = np.zeros((16, 16), dtype=object)
            for j, k in enumerate(order):
                b[k, j] = bits_of("f32", F32(1.0 if j == 0 else 2.0 ** -rng.randrange(4)))
            r = [[rounded(int(x), drop, mode == "Rint") for x in row] for row in a]
            real = np.array(r, dtype=np.uint32).view(np.float32).astype(np.float64)
            scale = np.array(b.tolist(), dtype=np.uint32).view(np.float32).astype(np.float64)
            with np.errstate(all="ignore"):
                out = np.array([[real[i, order[j]] * scale[order[j], j] for j in range(16)] for i in range(16)]).astype(np.float32)
            if not np.isfinite(real).all():
                # An infinity times the zeros of b is no number.
                bad = ~np.isfinite(real).all(axis=1)
                out[bad] = np.nan
            words = " ".join(["TMATMUL", word] + ([mode] if mode else []))
            of = lambda kind, bits: f"{kind} {Matrix('f32', bits).text()}"
            print("|".join([words, "acc f32", of("a", a), of("b", b), of("out", (out + F32(0)).view(np.uint32).astype(object))]))


if __name__ == "__main__":
    print("# Written by tests/scripts/product_vectors.py, which says what a line is. Do not edit.")
    for name in NAMES:
        for triple in TRIPLES:
            line(name, triple, ())
        for word in DROPPED:
            for how in ((), ("Round",), ("Rint",)):
                line(name, ("f32", "f32", "f32"), (word, *how))
    ties()
