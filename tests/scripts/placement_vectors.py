#!/usr/bin/env python3
"""Writes tests/golden/placements.txt: inputs and results of the instructions that put elements elsewhere, computed here with
numpy on the bits of elements, and by nothing of the compiler.

    python3 tests/scripts/placement_vectors.py > tests/golden/placements.txt

A line is one launch: `NAME|PART|..|out DTYPE ROWSxCOLS HEX`, where parts are the operands in the order in which an author
writes them after the destination: `in DTYPE ROWSxCOLS HEX` a tile, `arg TEXT` what is written there. First of them is `old`
with the destination as it was, where the instruction reads it.
"""
import random

import numpy as np

from instruction_vectors import A5, F, WIDTH, bits_of, bounds, float_of, hexed, is_float, values

W124 = "i8 u8 i16 u16 i32 u32 f16 bf16 f32".split()
W24 = W124[2:]


def tile(d, shape, salt):
    return d, np.array(values(d, shape[0] * shape[1], salt), dtype=object).reshape(shape)


def numbers(d, array):
    """A tile of whole numbers."""
    array = np.array(array, dtype=object)
    return d, np.vectorize(lambda n: int(n) & ((1 << WIDTH[d]) - 1), otypes=[object])(array)


def text(kind, t):
    d, bits = t
    return f"{kind} {d} {bits.shape[0]}x{bits.shape[1]} {hexed(d, list(bits.flat))}"


def line(name, parts, d, bits, old=None):
    """Parts are tiles, or what is written."""
    all_parts = [name] + ([text("old", old)] if old else [])
    all_parts += [text("in", p) if isinstance(p, tuple) else f"arg {p}" for p in parts]
    print("|".join(all_parts + [text("out", (d, np.array(bits, dtype=object)))]))


def one(d, n):
    """Bits of a small number."""
    return bits_of(d, np.float32(n)) if is_float(d) else n & ((1 << WIDTH[d]) - 1)


def extreme(d, up):
    if is_float(d):
        return bits_of(d, np.float32(np.inf if up else -np.inf))
    return bounds(d)[up] & ((1 << WIDTH[d]) - 1)


def padding():
    for d in W124:
        pads = [("Zero", 0), ("Max", extreme(d, True)), ("Min", extreme(d, False)),
                ("3.0" if is_float(d) else "3", one(d, 3))]
        for word, pad in pads:
            for shape, whole in (((3, 5), (4, 12)), ((2, 7), (2, 7)), ((1, 3), (5, 3))):
                a = tile(d, shape, f"pad {word}")
                filled = np.full(whole, pad, dtype=object)
                filled[: shape[0], : shape[1]] = a[1]
                for name in ("TFILLPAD", "TFILLPAD_EXPAND"):
                    line(name, [a, word], d, filled)
        # The capacity of three rows of five columns is a number of whole rows of 32 bytes.
        a = tile(d, (3, 5), "in place")
        filled = np.full((3, -(-5 * WIDTH[d] // 256) * 256 // WIDTH[d]), extreme(d, False), dtype=object)
        filled[:, :5] = a[1]
        line("TFILLPAD_INPLACE", [a, "Min"], d, filled)


def windows():
    for d in A5:
        a = tile(d, (6, 21), "window")
        for shape, (r, c) in (((2, 5), (3, 4)), ((6, 21), (0, 0)), ((1, 1), (5, 20)), ((4, 2), (1, 9))):
            line("TEXTRACT", [a, r, c], d, a[1][r : r + shape[0], c : c + shape[1]])
            part = tile(d, shape, "part")
            result = a[1].copy()
            result[r : r + shape[0], c : c + shape[1]] = part[1]
            line("TINSERT", [part, r, c], d, result, old=a)
        for shape in ((6, 21), (21, 6), (1, 126), (2, 63)):
            line("TRESHAPE", [a], d, a[1].reshape(shape))
    for d in W124:
        for left, right in ((3, 5), (1, 16), (32, 2)):
            a, b = tile(d, (4, left), "left"), tile(d, (4, right), "right")
            line("TCONCAT", [a, b], d, np.concatenate([a[1], b[1]], axis=1))


def made():
    for d in "i16 u16 i32 u32".split():
        for start in (0, 7, bounds(d)[1] - 3, bounds(d)[0] + 2):
            for words, step in (([], 1), (["Up"], 1), (["Down"], -1)):
                _, bits = numbers(d, start + step * np.arange(19, dtype=object)[None, :])
                line("TCI", [start] + words, d, bits)
    for d in W124:
        for shape in ((5, 7), (1, 9), (6, 2)):
            for diagonal in (-6, -1, 0, 2, 9):
                ones = np.ones(shape, dtype=object)
                for words, f in (([], np.tril), (["Lower"], np.tril), (["Upper"], np.triu)):
                    line("TTRI", [diagonal] + words, d, np.where(f(ones, diagonal) == 1, one(d, 1), 0).astype(object))


def gathers():
    rng = random.Random("gathers")
    wide = lambda d, cols: -(-cols * WIDTH[d] // 256) * 256 // WIDTH[d]
    for d in W24:
        for index in ("i32", "u32"):
            a = tile(d, (3, 11), f"gather {index}")
            places = [[(rng.randrange(3), rng.randrange(11)) for _ in range(13)] for _ in range(2)]
            # Rows of the source are as long as its capacity.
            idx = numbers(index, [[r * wide(d, 11) + c for r, c in row] for row in places])
            line("TGATHER", [a, idx], d, [[a[1][p] for p in row] for row in places])
    for d in W124:
        a = tile(d, (3, 11), "bytes")
        places = [[(rng.randrange(3), rng.randrange(11)) for _ in range(13)] for _ in range(2)]
        size = WIDTH[d] // 8
        idx = numbers("u32", [[(r * wide(d, 11) + c) * size + rng.randrange(size) for r, c in row] for row in places])
        line("TGATHERB", [a, idx], d, [[a[1][p] for p in row] for row in places])
        for word, first, step in (("P0101", 0, 2), ("P1010", 1, 2), ("P0001", 0, 4), ("P0010", 1, 4), ("P0100", 2, 4),
                                  ("P1000", 3, 4), ("P1111", 0, 1)):
            a = tile(d, (3, 20), word)
            line("TGATHER", [a, word], d, a[1][:, first::step])
            a = tile(d, (3, 5), word)
            spread = np.zeros((3, 5 * step), dtype=object)
            spread[:, first::step] = a[1]
            line("TSCATTER", [a, word], d, spread)
        for index in ("i16 u16" if WIDTH[d] < 32 else "i32 u32").split():
            a, old = tile(d, (4, 9), f"scatter {index}"), tile(d, (6, 9), f"old {index}")
            rows = [[rng.randrange(6) for _ in range(9)] for _ in range(4)]
            result = old[1].copy()
            for i in range(4):
                for j in range(9):
                    result[rows[i][j], j] = a[1][i, j]
            line("TSCATTER", [a, numbers(index, rows)], d, result, old=old)


if __name__ == "__main__":
    print("# Written by tests/scripts/placement_vectors.py, which says what a line is. Do not edit.")
    padding()
    windows()
    made()
    gathers()
