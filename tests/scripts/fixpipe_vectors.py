#!/usr/bin/env python3
"""Writes tests/golden/fixpipe.txt: what leaves the accumulator, converted, quantised, and with negative elements made 0,
computed here with numpy by the rules of spec/numerics.md, and by nothing of the compiler.

    python3 tests/scripts/fixpipe_vectors.py > tests/golden/fixpipe.txt

A line is one launch: `NAME|acc DTYPE|a DTYPE HEX|b HEX|..|out DTYPE ROWSxCOLS HEX`. The accumulator is the product of a, 16 x 32, and of
the matrix that has b, of a's dtype, on its diagonal; these products are exact. Between them may stand, in this order, `scale HEX` (one for
each column that is moved, or one alone: the bits of an f32), `at ROW COL` (of the window), `old HEX` (the destination as it was, of out's
dtype and shape), `relu` and `add`, if it is added to what was there.
"""
import random

import numpy as np

from instruction_vectors import ADD, WIDTH, bits_of, decode, encode, hexed, is_float

ROWS, COLS = 16, 32
PLAIN = [("f32", "f32"), ("f32", "f16"), ("f32", "bf16"), ("i32", "i32"), ("f16", "f16")]
QUANTISED = [("i32", "i8"), ("i32", "u8"), ("i32", "f16"), ("f32", "i8"), ("f32", "u8"), ("f32", "f16"), ("f16", "i8"), ("f16", "u8")]


def bits(d, x):
    """The bits of a number that the dtype has."""
    if d in ("f16", "bf16", "f32"):
        return bits_of(d, np.float32(x))
    return int(x) & ((1 << WIDTH[d]) - 1)


def factors(acc, rng):
    """a, the diagonal, and their product in the accumulator's dtype."""
    if acc == "i32":
        a = np.array([[rng.randrange(-128, 128) for _ in range(COLS)] for _ in range(ROWS)])
        b = np.array([rng.choice([1, 2, 3, 100, 127, -5]) for _ in range(COLS)])
        return "i8", a, b, (a * b).astype(np.int32)
    a = np.array([[rng.uniform(-200, 200) for _ in range(COLS)] for _ in range(ROWS)]).astype(np.float16)
    # Halves, so that what is scaled lies on ties.
    a[0] = np.round(a[0] * 2) / 2
    a[1, :4] = [0.5, 1.5, 2.5, -0.5]
    # A sum of products has no negative zero.
    a = a + np.float16(0)
    if acc == "f16":
        b = np.array([rng.choice([0.5, 1, 2, 4]) for _ in range(COLS)]).astype(np.float16)
        return "f16", a, b, (a * b).astype(np.float16)
    b = np.array([rng.uniform(0.25, 4) for _ in range(COLS)]).astype(np.float16)
    b[:8] = 1
    return "f16", a, b, a.astype(np.float32) * b.astype(np.float32)


def moved(x, to, relu, scale):
    """Elements of the accumulator on their way out, as bits."""
    if relu:
        x = np.maximum(x, x.dtype.type(0))
    if scale is None:
        return [[bits(to, v) for v in row] for row in x]
    y = x.astype(np.float32) * np.array(scale, dtype=np.float32)
    assert y.dtype == np.float32
    if to == "f16":
        return [[bits(to, v) for v in row] for row in np.clip(y, np.float32(-65504), np.float32(65504))]
    low, high = {"i8": (-128, 127), "u8": (0, 255)}[to]
    return [[bits(to, v) for v in row] for row in np.clip(np.rint(y), low, high)]


def line(name, acc, to, relu, scales, window, salt, add=False):
    rng = random.Random(f"{name} {acc} {to} {relu} {salt}")
    d, a, b, x = factors(acc, rng)
    parts = [name, f"acc {acc}", f"a {d} " + hexed(d, [bits(d, v) for v in a.flat]), "b " + hexed(d, [bits(d, v) for v in b])]
    wide = COLS if window != "source" else 16
    scale = None
    if scales == "one":
        # Some of it saturates, or nothing does, or the sign turns.
        scale = [np.float32(rng.choice([1.0, 0.5, 0.01, 0.37, -0.2, 3e4]))]
    elif scales == "each":
        scale = [np.float32(rng.choice([1.0, 0.5, 0.0625, rng.uniform(-1, 1), rng.uniform(0, 0.01)])) for _ in range(wide)]
    if scale is not None:
        parts.append("scale " + hexed("f32", [bits("f32", s) for s in scale]))
    if window == "source":
        parts.append("at 0 16")
        x = x[:, 16:]
    out = np.array(moved(x, to, relu, scale), dtype=object)
    if window == "destination":
        old = np.array([[bits(to, (7 * i + j) % 11) for j in range(64)] for i in range(32)], dtype=object)
        parts += ["at 5 19", "old " + hexed(to, list(old.flat))]
        old[5 : 5 + ROWS, 19 : 19 + COLS] = out
        out = old
    if add:
        one = lambda: bits(to, np.float32(rng.uniform(-300, 300))) if is_float(to) else rng.getrandbits(WIDTH[to])
        old = [one() for _ in out.flat]
        parts.append("old " + hexed(to, old))
        number = lambda b: decode(to, int(b))
        out = np.array([encode(to, ADD(to, number(a), number(b))) for a, b in zip(old, out.flat)], dtype=object).reshape(out.shape)
    parts += ["relu"] if relu else []
    parts += ["add"] if add else []
    print("|".join(parts + [f"out {to} {out.shape[0]}x{out.shape[1]} {hexed(to, list(out.flat))}"]))


if __name__ == "__main__":
    print("# Written by tests/scripts/fixpipe_vectors.py, which says what a line is. Do not edit.")
    for acc, to in PLAIN:
        for relu in (False, True):
            for name, window in (("TMOV", None), ("TSTORE", None), ("TEXTRACT", "source"), ("TINSERT", "destination")):
                line(name, acc, to, relu, None, window, "")
    for acc, to in QUANTISED:
        for relu in (False, True):
            for name, window in (("TMOV", None), ("TSTORE", None), ("TEXTRACT", "source"), ("TINSERT", "destination")):
                for salt in range(1 if window else 2):
                    line(name, acc, to, relu, "one", window, salt)
                line(name + "_FP", acc, to, relu, "each", window, "")
    for relu in (False, True):
        for acc, to in PLAIN:
            line("TSTORE", acc, to, relu, None, None, "add", add=True)
        for acc, to in QUANTISED:
            line("TSTORE", acc, to, relu, "one", None, "add", add=True)
            line("TSTORE_FP", acc, to, relu, "each", None, "add", add=True)
