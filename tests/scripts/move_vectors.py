#!/usr/bin/env python3
"""Writes tests/golden/moves.txt: loads, stores, updates and moves between memories, for each dtype on each way, computed here with numpy on
the bits of elements, and by nothing of the compiler.

    python3 tests/scripts/move_vectors.py > tests/golden/moves.txt

A line is one launch: `NAME WAY|WORD..|in ARRAY|[old ARRAY|]out ARRAY`, an array being `DTYPE ROWSxCOLS HEX` and a way `FROM>TO` or the memory
where a tile lies. `old` is what is updated, `at ROW COL` is the place of a window, `window ..` stands behind the source. What the matrix unit reads is seen through products with ones, as a bias, or as scales, so it is
finite there, in one row for a bias, and has the digits of an f16 for scales. Any NaN is equal to any other.
"""
import random

import numpy as np

from instruction_vectors import A5, ADD, EIGHT, F32, WIDTH, bits_of, decode, encode, hexed, is_float, relu, values

ALL = A5 + list(EIGHT)
FACTORS = ["i8", "f16", "bf16", "f32"] + list(EIGHT)
TAIL, WHOLE = (5, 21), (8, 32)


def wild(d, shape, salt):
    return d, np.array(values(d, shape[0] * shape[1], salt), dtype=object).reshape(shape)


def tame(d, shape, salt):
    """Finite, and exact in any other float: few digits; and no negative zero."""
    rng = random.Random(f"{d} {shape} {salt}")
    one = lambda: encode(d, F32(rng.randrange(-7, 8) * rng.choice([0.5, 1, 2])) + F32(0) if is_float(d) else rng.randrange(-128, 128))
    return d, np.array([[one() for _ in range(shape[1])] for _ in range(shape[0])], dtype=object)


def finite(d, shape, salt):
    """All that is finite."""
    a = wild(d, shape, salt)
    bad = lambda b: is_float(d) and not np.isfinite(decode(d, int(b)))
    return d, np.vectorize(lambda b: encode(d, F32(1.5)) if bad(b) else b, otypes=[object])(a[1])


def scales(d, shape, salt):
    """Bits of f32, each with the digits of an f16; a u64 has something else above them."""
    rng = random.Random(f"{shape} {salt}")
    one = lambda: bits_of("f32", F32(np.float16(rng.uniform(-100, 100)))) | (rng.getrandbits(32) << 32 if d == "u64" else 0)
    return d, np.array([[one() for _ in range(shape[1])] for _ in range(shape[0])], dtype=object)


def text(kind, a):
    d, bits = a
    return f"{kind} {d} {bits.shape[0]}x{bits.shape[1]} {hexed(d, [int(b) for b in bits.flat])}"


def line(name, way, words, a, out, old=None):
    print("|".join([f"{name} {way}", *words, text("in", a)] + ([text("old", old)] if old else []) + [text("out", out)]))


def loads():
    for d in ALL:
        for shape in (TAIL, WHOLE):
            a = wild(d, shape, "load")
            line("TLOAD", "GM>Vec", [], a, a)
            line("TSTORE", "Vec>GM", [], a, a)
            line("TMOV", "Vec>Vec", [], a, a)
            # What comes to L1 alone is seen by products where it is an 8-bit float.
            b = (finite if d in EIGHT else wild)(d, shape, "load to L1")
            line("TLOAD", "GM>Mat", [], b, b)
            if d not in EIGHT:
                line("TSTORE", "Mat>GM", [], b, b)
        # A column of a DN tile is a row of the tensor.
        a = wild(d, (5, 32), "columns")
        line("TLOAD", "GM>Vec", ["layout = DN"], a, (d, a[1].T))
        line("TSTORE", "Vec>GM", ["layout = DN"], (d, a[1].T), a)
        # The capacity of five rows of 21 columns is a number of whole rows of 32 bytes.
        a = wild(d, TAIL, "padded")
        block = 256 // WIDTH[d]
        padded = np.zeros((5, -(-21 // block) * block), dtype=object)
        padded[:, :21] = a[1]
        line("TLOAD", "GM>Vec", ["pad = Zero"], a, (d, padded))
        line("TLOAD", "GM>Vec", ["layout = DN", "pad = Zero"], a, (d, padded.T))
        a = wild(d, TAIL, "hint")
        line("TPREFETCH_ASYNC", "GM", [], a, a)
        # One row of a tile, and its upper left corner.
        a = wild(d, (5, 32), "window")
        line("TMOV", "Vec>Vec", ["window [3, _]"], a, (d, a[1][3:4]))
        line("TMOV", "Vec>Vec", ["window .valid(2, 19)"], a, (d, a[1][:2, :19]))
    a = "bool", np.array(values("mask", 160, "mask"), dtype=object).reshape(5, 32)
    line("TMOV", "Vec>Vec", [], a, a)


def to_the_matrix_unit():
    for d in FACTORS:
        for shape in (TAIL, (16, 32)):
            for way in ("Mat>Left", "Mat>Right", "Vec>Mat"):
                a = finite(d, shape, way)
                line("TMOV", way, [], a, a)
    for to, frm in (("i32", "i32"), ("f32", "f32"), ("f32", "f16"), ("f32", "bf16"), ("f16", "f16")):
        a = wild(frm, (1, 37), f"bias {to}")
        line("TMOV", "Mat>Bias", [], a, (to, np.array([[encode(to, decode(frm, int(b))) for b in a[1][0]]], dtype=object)))
    for d in ("u64", "f32"):
        a = scales(d, (1, 37), "scales")
        line("TMOV", "Mat>Scaling", [], a, a)
    # What nothing reads there is looked at as i8, as i32 in one row, or as finite f16.
    for d in ("u8", "i32", "u32"):
        a = wild(d, TAIL if d == "u8" else (1, 37), "to L1")
        line("TMOV", "Vec>Mat", [], a, a)
    for d in ("i16", "u16"):
        _, a = finite("f16", TAIL, f"to L1 as {d}")
        line("TMOV", "Vec>Mat", [], (d, a), (d, a))
    for d in ("u64", "i64"):
        _, a = scales("u64", (1, 37), "to L1")
        line("TMOV", "Vec>Mat", [], (d, a), (d, a))
    for how in ([], ["Relu"]):
        a, old = tame("i32", (1, 64), "out of the accumulator"), wild("i32", (1, 96), "where it comes to")
        moved = np.vectorize(lambda b: cut("i32", b, how), otypes=[object])(a[1])
        line("TMOV", "Acc>Mat", how, a, ("i32", moved))
        line("TEXTRACT_FROM_ACC", "Acc>Mat", ["at 0 16", *how], a, ("i32", moved[:, 16:48]))
        into = old[1].copy()
        into[:, 19:83] = moved
        line("TINSERT_FROM_ACC", "Acc>Mat", ["at 0 19", *how], a, ("i32", into), old)


def cut(d, b, words):
    return encode(d, relu(d, decode(d, int(b)))) if "Relu" in words else b


def updates():
    add = lambda d, b, old: encode(d, ADD(d, decode(d, int(old)), decode(d, int(b))))
    for d in A5:
        for way in ("Vec>GM", "Mat>GM"):
            a, old = wild(d, TAIL, f"add {way}"), wild(d, TAIL, f"old {way}")
            out = d, np.array([[add(d, b, o) for b, o in zip(*rows)] for rows in zip(a[1], old[1])], dtype=object)
            line("TSTORE", way, ["atomic = true"], a, out, old)
        a, old = wild(d, (32, 5), "add columns"), wild(d, (5, 32), "old columns")
        out = d, np.array([[add(d, b, o) for b, o in zip(*rows)] for rows in zip(a[1].T, old[1])], dtype=object)
        line("TSTORE", "Vec>GM", ["layout = DN", "atomic = true"], a, out, old)
    for d in ("i32", "f32"):
        for how in ([], ["Relu"]):
            a, old = tame(d, TAIL, f"add {how}"), wild(d, TAIL, f"old {how}")
            out = np.array([[add(d, cut(d, b, how), o) for b, o in zip(*rows)] for rows in zip(a[1], old[1])], dtype=object)
            line("TSTORE", "Acc>GM", ["atomic = true", *how], a, (d, out), old)


def bound():
    """At an address that is said."""
    for d in ALL:
        a = (finite if d in EIGHT else wild)(d, TAIL, "bound")
        for loc in ("Vec", "Mat"):
            line("TASSIGN", loc, [], a, a)
    for d in FACTORS:
        a = finite(d, TAIL, "bound factor")
        for loc in ("Left", "Right"):
            line("TASSIGN", loc, [], a, a)
    for d in ("i32", "f32", "f16"):
        a = tame(d, TAIL, "bound accumulator")
        line("TASSIGN", "Acc", [], a, a)
        a = wild(d, (1, 37), "bound bias")
        line("TASSIGN", "Bias", [], a, a)
    for d in ("u64", "f32"):
        a = scales(d, (1, 37), "bound scales")
        line("TASSIGN", "Scaling", [], a, a)


def filled():
    for d in A5:
        a = wild(d, (1, 1), "fill")
        line("TEXPANDS", "Mat", [], a, (d, np.full(TAIL, a[1][0, 0], dtype=object)))


def filled_with_floats_of_8_bits():
    for d in EIGHT:
        a = finite(d, (1, 1), "fill")
        line("TEXPANDS", "Mat", [], a, (d, np.full(TAIL, a[1][0, 0], dtype=object)))


if __name__ == "__main__":
    print("# Written by tests/scripts/move_vectors.py, which says what a line is. Do not edit.")
    loads()
    to_the_matrix_unit()
    updates()
    bound()
    filled()
    filled_with_floats_of_8_bits()
