#!/usr/bin/env python3
"""Writes tests/golden/placements.txt: inputs and results of the instructions that put elements elsewhere, computed here with
numpy on the bits of elements, and by nothing of the compiler.

    python3 tests/scripts/placement_vectors.py > tests/golden/placements.txt

A line is one launch: `NAME|PART|..|out DTYPE ROWSxCOLS HEX`, where parts are the operands in the order in which an author
writes them after the destination: `in DTYPE ROWSxCOLS HEX` a tile, `also` one that is a second result, `arg TEXT` what is
written there. First of them is `old`
with the destination as it was, where the instruction reads it.
"""
import math
import random

import numpy as np

from instruction_vectors import A5, EIGHT, F, WIDTH, bits_of, bounds, float_of, hexed, is_float, values

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
    kind = lambda p: "also" if isinstance(p, also) else "in"
    all_parts += [text(kind(p), p) if isinstance(p, tuple) else f"arg {p}" for p in parts]
    print("|".join(all_parts + [text("out", (d, np.array(bits, dtype=object)))]))


class also(tuple):
    """A second result."""


def signed(d, b):
    return b - (1 << WIDTH[d]) if d[0] == "i" and b >> (WIDTH[d] - 1) else b


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
        for word, pad in pads:
            a = tile(d, (3, 5), "in place")
            filled = np.full((3, -(-5 * WIDTH[d] // 256) * 256 // WIDTH[d]), pad, dtype=object)
            filled[:, :5] = a[1]
            line("TFILLPAD_INPLACE", [a, word], d, filled)


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


PATTERNS = (("P0101", 0, 2), ("P1010", 1, 2), ("P0001", 0, 4), ("P0010", 1, 4), ("P0100", 2, 4), ("P1000", 3, 4), ("P1111", 0, 1))


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
        for word, first, step in PATTERNS:
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


def picks_of_other_dtypes():
    for group in (["i8", "u8"], ["i16", "u16", "f16", "bf16"], ["i32", "u32", "f32"]):
        for to in group:
            for d in group:
                if to != d:
                    a = tile(d, (2, 12), f"bits of {to}")
                    for word, first, step in PATTERNS:
                        line("TGATHER", [a, word], to, a[1][:, first::step])


def order(d, values):
    """Places in descending order: NaN first, equal ones as they come."""
    keys = [float(float_of(d, int(b))) for b in values]
    keys = [math.inf if math.isnan(k) else k for k in keys]
    nan = [math.isnan(float(float_of(d, int(b)))) for b in values]
    # numpy sorts ascending; stable.
    by_value = np.argsort(-np.array(keys), kind="stable")
    return [p for p in by_value if nan[p]] + [p for p in by_value if not nan[p]]


def records(d, values, indices):
    if d == "f32":
        return [x for v, n in zip(values, indices) for x in (v, n)]
    return [x for v, n in zip(values, indices) for x in (v, 0, n & 0xFFFF, n >> 16)]


def sorting():
    for d in F:
        fields = 8 * 8 // WIDTH[d]
        for shape in ((1, 32), (3, 64), (2, 37), (1, 5), (2, 96)):
            for salt in range(3):
                a, idx = tile(d, shape, f"sort {salt}"), tile("u32", shape, f"index {salt}")
                rows = []
                for i in range(shape[0]):
                    row = []
                    for start in range(0, shape[1], 32):
                        v, n = a[1][i, start : start + 32], idx[1][i, start : start + 32]
                        at = order(d, v)
                        row += records(d, [v[p] for p in at], [n[p] for p in at])
                    rows.append(row)
                line("TSORT32", [a, idx], d, rows)
        # Lists that are in order, as many as there are; the last group, and its last list, may be short.
        for lists, length, last in ((4, 64, 64), (4, 128, 128), (3, 64, 64), (8, 64, 64), (5, 64, 64), (6, 64, 16), (2, 192, 8), (1, 64, 64)):
            lengths = [length] * (lists - 1) + [last]
            flat, groups = [], []
            for n, long in enumerate(lengths):
                count = long // fields
                v = values(d, count, f"merge {lists} {length} {n}")
                at = order(d, v)
                sorted_list = [(v[p], 1000 * n + k) for k, p in enumerate(at)]
                flat += sorted_list
                if n % 4 == 0:
                    groups.append([])
                groups[-1] += sorted_list
            result = []
            for group in groups:
                result += [group[p] for p in order(d, [v for v, _ in group])]
            a = (d, np.array([records(d, *zip(*flat))], dtype=object))
            line("TMRGSORT", [a, length], d, [records(d, *zip(*result))])
        # Lists in tiles of their own, of any length.
        for lengths in ((8, 24), (40, 8), (16, 16, 8), (8, 48, 24), (16, 8, 40, 24), (8, 8, 8, 8)):
            lists = []
            for n, count in enumerate(lengths):
                v = values(d, count, f"tiles {lengths} {n}")
                lists.append([(v[p], 1000 * n + k) for k, p in enumerate(order(d, v))])
            flat = [record for one_list in lists for record in one_list]
            result = [flat[p] for p in order(d, [v for v, _ in flat])]
            tiles = [(d, np.array([records(d, *zip(*one_list))], dtype=object)) for one_list in lists]
            line("TMRGSORT", tiles, d, [records(d, *zip(*result))])


def places():
    rng = random.Random("places")
    for d in "f16 f32 i32 i16 u16 u32".split():
        for index in ("i32", "u32"):
            for shape, room, first in (((3, 21), 21, 0), ((2, 40), 5, 7), ((1, 9), 16, -3)):
                a = tile(d, shape, f"places {index} {room}")
                # Numbers that are there, so that some are equal; of floats one that is no number.
                k = np.array([[a[1][i, rng.randrange(shape[1])]] for i in range(shape[0])], dtype=object)
                number = lambda b: float(float_of(d, int(b))) if is_float(d) else signed(d, int(b))
                for word, holds in (("EQ", lambda x, y: x == y), ("GT", lambda x, y: x > y)):
                    rows, counts = [], []
                    for i in range(shape[0]):
                        found = [j for j in range(shape[1]) if holds(number(a[1][i, j]), number(k[i, 0]))]
                        rows.append(([first + j for j in found] + [0] * room)[:room])
                        counts.append([len(found)])
                    _, bits = numbers(index, rows)
                    line("TGATHER", [a, (d, k), also(numbers(index, counts)), first, word], index, bits)


def counting():
    rng = random.Random("counting")
    for d, size in (("u16", 2), ("u32", 4)):
        for shape in ((1, 300), (4, 64)):
            # Few values of the upper bytes, so that some agree with the index.
            few = [rng.randrange(256) for _ in range(2)]
            word = lambda: sum((rng.choice(few) if n else rng.randrange(256)) << (8 * n) for n in range(size))
            a = d, np.array([[word() for _ in range(shape[1])] for _ in range(shape[0])], dtype=object)
            for byte in range(size):
                above = size - 1 - byte
                idx = np.array([[rng.choice(few) for _ in range(max(above, 1))] for _ in range(shape[0])], dtype=object)
                rows = []
                for i in range(shape[0]):
                    agrees = lambda x: all(x >> (8 * (size - 1 - m)) & 255 == idx[i, m] for m in range(above))
                    chosen = np.array([x >> (8 * byte) & 255 for x in a[1][i] if agrees(x)], dtype=np.int64)
                    rows.append([int(n) for n in np.bincount(chosen, minlength=256)])
                line("THISTOGRAM", [a, ("u8", idx), f"Byte{byte}"], "u32", rows)


def philox(counter, key, rounds):
    c = [counter >> (32 * n) & 0xFFFFFFFF for n in range(4)]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(rounds):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def chance():
    # What the generator's authors publish for 10 rounds.
    assert philox(0, 0, 10) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox((1 << 128) - 1, (1 << 64) - 1, 10) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    for d in ("u32", "i32"):
        for shape in ((1, 4), (3, 9), (2, 33)):
            for key, low, high in ((0, 0, 0), (-1, -1, -1), (42, -2, 7), (0x123456789ABC, 5, -3)):
                for words, rounds in (([], 10), (["Rounds10"], 10), (["Rounds7"], 7)):
                    word = lambda n: n & ((1 << 64) - 1)
                    start = word(high) << 64 | word(low)
                    flat = [philox((start + n // 4) % (1 << 128), word(key), rounds)[n % 4] for n in range(shape[0] * shape[1])]
                    line("TRANDOM", [key, low, high] + words, d, np.array(flat, dtype=object).reshape(shape))


def images():
    for d in "i8 f16 bf16 f32".split():
        c0 = 256 // WIDTH[d]
        # Images, height, width, kernel, strides, padding; a window of the unfolded image: rows and columns, from where.
        for c1, (h, w), (kh, kw), (sh, sw), (ph, pw), (m, k), (row, col) in (
            (1, (8, 8), (3, 3), (1, 1), (1, 1), (64, 64), (0, 0)),
            (2, (6, 9), (3, 2), (2, 1), (1, 0), (16, 32), (5, c0)),
            (2, (5, 7), (1, 1), (1, 2), (0, 0), (16, 2 * c0), (3, 0)),
            (3, (4, 4), (2, 4), (1, 1), (2, 3), (32, 96), (1, 32)),
        ):
            rng = random.Random(f"image {d} {c1}")
            image = np.array([[one(d, rng.randrange(-9, 9)) for _ in range(c0)] for _ in range(c1 * h * w)], dtype=object)
            pads = [([], 0), ([-3.0 if is_float(d) else -3], one(d, -3))]
            if c1 == 3:
                pads += [(["Zero"], 0), (["Max"], extreme(d, True)), (["Min"], extreme(d, False))]
            for words, pad in pads:
                padded = np.full((c1, h + 2 * ph, w + 2 * pw, c0), pad, dtype=object)
                padded[:, ph : ph + h, pw : pw + w] = image.reshape(c1, h, w, c0)
                rows = []
                for y in range(0, h + 2 * ph - kh + 1, sh):
                    for x in range(0, w + 2 * pw - kw + 1, sw):
                        rows.append(padded[:, y : y + kh, x : x + kw].reshape(-1))
                unfolded = np.array(rows, dtype=object)
                part = unfolded[row : row + m, col : col + k]
                if part.shape == (m, k):
                    line("TIMG2COL", [(d, image), h, w, kh, kw, sh, sw, ph, pw, row, col] + words, d, part)


def windows_of_the_matrix_unit():
    for d in "i8 f16 bf16 f32 f8e4m3 f8e5m2".split():
        rng = random.Random(f"windows {d}")
        small = lambda r, c: np.array([[one(d, rng.randrange(-9, 9)) for _ in range(c)] for _ in range(r)], dtype=object)
        block = 256 // WIDTH[d]
        a = small(64, 96)
        for name, at in (("TEXTRACT_TO_LEFT", (16, block)), ("TEXTRACT_TO_RIGHT", (block, 16)), ("TEXTRACT_TO_LEFT", (0, 0))):
            line(name, [(d, a), *at], d, a[at[0] : at[0] + 32, at[1] : at[1] + 64])
        if d in EIGHT:
            continue
        part, result = small(16, 32), a.copy()
        result[7:23, 33:65] = part
        line("TINSERT_TO_MAT", [(d, part), 7, 33], d, result, old=(d, a))


def packed_quarters():
    rng = random.Random("packed")
    for rows, cols in ((2, 16), (3, 10), (1, 64)):
        a = np.array([[rng.choice([rng.uniform(-30, 30), rng.randrange(-40, 40) / 2]) for _ in range(cols)] for _ in range(rows)]).astype(np.float32)
        a[0, :3] = [np.inf, -np.inf, np.nan]
        s = np.array([[rng.choice([1.0, 0.5, 0.37, -2.0])] for _ in range(rows)]).astype(np.float32)
        o = np.array([[rng.choice([0.0, 1.5, -3.0])] for _ in range(rows)]).astype(np.float32)
        f32 = lambda x: ("f32", np.vectorize(lambda v: bits_of("f32", np.float32(v)), otypes=[object])(x))
        with np.errstate(all="ignore"):
            q = np.nan_to_num(np.clip(np.rint(a * s), -8, 7), nan=0).astype(np.int64)
        pack = lambda q: ("i8", ((q[:, 0::2] & 15) | (q[:, 1::2] & 15) << 4).astype(object))
        line("TQUANT_INT4", [f32(a), f32(s), "INT4"], *pack(q))
        q = np.array([[rng.randrange(-8, 8) for _ in range(cols)] for _ in range(rows)])
        back = (q.astype(np.float32) - o) * s
        line("TDEQUANT_INT4", [pack(q), f32(s), f32(o), "INT4"], *f32(back))


def padding_for_the_matrix_unit():
    for d in W124:
        rng = random.Random(f"padding {d}")
        for rows, cols in ((20, 30), (32, 64), (1, 5)):
            a = np.array([[one(d, rng.randrange(-9, 9)) for _ in range(cols)] for _ in range(rows)], dtype=object)
            filled = np.full((32, 64), 0, dtype=object)
            filled[:rows, :cols] = a
            line("TFILLPAD_TO_MAT", [(d, a), "Zero"], d, filled)


def windows_of_floats_of_8_bits():
    for d in EIGHT:
        a = tile(d, (6, 21), "window")
        for shape, (r, c) in (((2, 5), (3, 4)), ((6, 21), (0, 0)), ((1, 1), (5, 20)), ((4, 2), (1, 9))):
            line("TEXTRACT", [a, r, c], d, a[1][r : r + shape[0], c : c + shape[1]])
            part = tile(d, shape, "part")
            result = a[1].copy()
            result[r : r + shape[0], c : c + shape[1]] = part[1]
            line("TINSERT", [part, r, c], d, result, old=a)
        rng = random.Random(f"inserted {d}")
        small = lambda r, c: np.array([[one(d, rng.randrange(-9, 9)) for _ in range(c)] for _ in range(r)], dtype=object)
        a, part = small(64, 96), small(16, 32)
        result = a.copy()
        result[7:23, 33:65] = part
        line("TINSERT_TO_MAT", [(d, part), 7, 33], d, result, old=(d, a))


if __name__ == "__main__":
    print("# Written by tests/scripts/placement_vectors.py, which says what a line is. Do not edit.")
    padding()
    windows()
    made()
    gathers()
    picks_of_other_dtypes()
    sorting()
    places()
    counting()
    chance()
    images()
    windows_of_the_matrix_unit()
    packed_quarters()
    padding_for_the_matrix_unit()
    windows_of_floats_of_8_bits()
