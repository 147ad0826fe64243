#!/usr/bin/env python3
"""Writes tests/golden/indexed.txt: elements and rows of a tensor by index, read and written in every mode, computed here with numpy on
the bits of elements, and by nothing of the compiler.

    python3 tests/scripts/indexed_vectors.py > tests/golden/indexed.txt

A line is one launch: `NAME WORD..|PART|..|out DTYPE ROWSxCOLS HEX`, parts being `DTYPE ROWSxCOLS HEX`. MGATHER has the table and the
indices, MSCATTER the table as it was, the elements and the indices; with the word Row indices are one row.
"""
import random

import numpy as np

from instruction_vectors import A5, EIGHT, WIDTH, bits_of, bounds, float_of, hexed, is_float, values

ROWS, COLS = 5, 16


def text(d, bits):
    return f"{d} {bits.shape[0]}x{bits.shape[1]} {hexed(d, [int(b) for b in bits.flat])}"


def line(words, parts, d, out):
    print("|".join([" ".join(words)] + [text(*p) for p in parts] + ["out " + text(d, out)]))


def tile(d, shape, salt):
    return np.array(values(d, shape[0] * shape[1], salt), dtype=object).reshape(shape)


def small(d, shape, rng):
    """Numbers whose sums are exact in every order."""
    one = lambda n: bits_of(d, np.float32(n)) if is_float(d) else n & ((1 << WIDTH[d]) - 1)
    return np.array([[one(rng.randrange(0 if d[0] == "u" else -9, 10)) for _ in range(shape[1])] for _ in range(shape[0])], dtype=object)


def rough(d, shape, rng):
    """Numbers whose sums are rounded."""
    return np.array([[bits_of(d, np.float32(rng.uniform(-300, 300))) for _ in range(shape[1])] for _ in range(shape[0])], dtype=object)


def number(d, b):
    if is_float(d):
        return float(float_of(d, int(b)))
    return int(b) - (1 << WIDTH[d]) if d[0] == "i" and int(b) >> (WIDTH[d] - 1) else int(b)


def led(oob, n, total):
    """Where an index leads; None: nowhere."""
    if 0 <= n < total:
        return n
    return {"Clamp": min(max(n, 0), total - 1), "Wrap": n % total}.get(oob)


def updated(d, how, old, new):
    if how is None:
        return new
    a, b = number(d, old), number(d, new)
    if is_float(d):
        if how == "atomic = true":
            return bits_of(d, np.float32(a) + np.float32(b))
        if np.isnan(a) or np.isnan(b):
            return bits_of(d, np.float32(np.nan))
        # -0 is below +0.
        low, high = sorted([(a, np.copysign(1, a), old), (b, np.copysign(1, b), new)], key=lambda x: x[:2])
        return int((high if how == "atomic = Max" else low)[2])
    c = {"atomic = true": a + b, "atomic = Max": max(a, b), "atomic = Min": min(a, b)}[how]
    return int(c) & ((1 << WIDTH[d]) - 1)


def indices(rng, index, shape, total, oob):
    """Some lie outside, where a mode says what that means."""
    low = -total if index[0] == "i" else 0
    pick = (lambda: rng.randrange(total)) if oob is None else (lambda: rng.randrange(low, 2 * total))
    numbers = np.array([[pick() for _ in range(shape[1])] for _ in range(shape[0])], dtype=object)
    return numbers, numbers % (1 << WIDTH[index])


def gathers(d, index):
    for oob in (None, "Undefined", "Clamp", "Wrap", "Zero"):
        rng = random.Random(f"gather {d} {index} {oob}")
        table = tile(d, (ROWS, COLS), f"table {oob}")
        words = ["MGATHER"] + ([f"oob = {oob}"] if oob else [])
        inside = None if oob == "Undefined" else oob
        n, bits = indices(rng, index, (2, 8), ROWS * COLS, inside)
        at = [[led(oob, k, ROWS * COLS) for k in row] for row in n]
        line(words, [(d, table), (index, bits)], d, np.array([[0 if k is None else table.flat[k] for k in row] for row in at], dtype=object))
        n, bits = indices(rng, index, (1, 7), ROWS, inside)
        at = [led(oob, k, ROWS) for k in n[0]]
        rows = np.array([[0] * COLS if k is None else list(table[k]) for k in at], dtype=object)
        line(words + ["Row"], [(d, table), (index, bits)], d, rows)


def scatters(d, index):
    hows = [None]
    if d not in EIGHT:
        hows += ["atomic = true", "atomic = Max", "atomic = Min"]
    for how in hows:
        for oob in (None, "Undefined", "Skip", "Clamp", "Wrap"):
            rng = random.Random(f"scatter {d} {index} {oob} {how}")
            elements = small
            if how and is_float(d) and (d, how) != ("f32", "atomic = true"):
                # Sums that are rounded at each step; infinities, NaN and zeros of both signs among what is compared.
                elements = rough if how == "atomic = true" else lambda d, shape, rng: tile(d, shape, f"{how} {oob} {rng.random()}")
            table, inside = elements(d, (ROWS, COLS), rng), None if oob == "Undefined" else oob
            words = ["MSCATTER"] + ([f"oob = {oob}"] if oob else []) + ([how] if how else [])
            a = elements(d, (2, 8), rng)
            n, bits = indices(rng, index, (2, 8), ROWS * COLS, inside)
            out = table.copy()
            for k, x in zip(n.flat, a.flat):
                k = led(oob, k, ROWS * COLS)
                if k is not None:
                    out.flat[k] = updated(d, how, out.flat[k], x)
            line(words, [(d, table), (d, a), (index, bits)], d, out)
            a = elements(d, (7, COLS), rng)
            n, bits = indices(rng, index, (1, 7), ROWS, inside)
            out = table.copy()
            for k, row in zip(n[0], a):
                k = led(oob, k, ROWS)
                if k is not None:
                    out[k] = [updated(d, how, old, x) for old, x in zip(out[k], row)]
            line(words + ["Row"], [(d, table), (d, a), (index, bits)], d, out)


if __name__ == "__main__":
    print("# Written by tests/scripts/indexed_vectors.py, which says what a line is. Do not edit.")
    for d in A5 + list(EIGHT):
        for index in ("i32", "u32"):
            gathers(d, index)
            scatters(d, index)
