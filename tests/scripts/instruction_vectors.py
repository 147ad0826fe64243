#!/usr/bin/env python3
"""Writes tests/golden/instructions.txt: inputs and results of the element-wise instructions and the reductions, computed
here with numpy and exact fractions by the rules of spec/numerics.md, and by nothing of the compiler.

    python3 tests/scripts/instruction_vectors.py > tests/golden/instructions.txt

A line is one launch: `NAME[ MODE..]|in DTYPE ROWSxCOLS HEX|..|out DTYPE ROWSxCOLS HEX[|out ..][|ulp N]`, an output for each destination. Inputs stand in the order
in which an author writes the operands (first the old destination, where the instruction reads it; then sources, a scalar
is 1x1, and stands before the tile in the program if the mode is `reversed`; elements of a mask are 00 and 01). HEX is the elements in row-major order, each as the digits of its bits. Results of the
functions that are published programs may be `ulp` numbers away; all others are exact. Any NaN is equal to any other.
"""
import math
import random
from fractions import Fraction

import numpy as np

np.seterr(all="ignore")
ROWS, COLS = 2, 8
F32 = np.float32

WIDTH = dict(i8=8, u8=8, i16=16, u16=16, i32=32, u32=32, i64=64, u64=64, f16=16, bf16=16, f32=32, bool=8, f8e4m3=8, f8e5m2=8)
# Precision with the hidden bit, bits of the exponent.
FLOATS = {"f16": (11, 5), "bf16": (8, 8), "f32": (24, 8), "f8e4m3": (4, 4), "f8e5m2": (3, 5)}
EIGHT = ("f8e4m3", "f8e5m2")
A2 = "i16 i32 f16 f32".split()
A5 = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32".split()
A5_16 = A5[2:]
A5_DIV = [d for d in A5_16 if d != "bf16"]
F = ["f16", "f32"]
I = "i8 u8 i16 u16 i32 u32".split()
UP_TO_32 = I + ["f16", "bf16", "f32"]
WIDTH_16_32 = "i16 u16 i32 u32 f16 bf16 f32".split()


def either(*lists):
    return [d for d in A5 if any(d in x for x in lists)]


# ---- numbers ------------------------------------------------------------------------------------------------------

def is_float(d):
    return d in FLOATS


def bounds(d):
    w = WIDTH[d]
    return (-(1 << (w - 1)), (1 << (w - 1)) - 1) if d[0] == "i" else (0, (1 << w) - 1)


def wrap(d, n):
    lo, hi = bounds(d)
    return (n - lo) % (hi - lo + 1) + lo


def round_integral(x, mode):
    """A Fraction to an integer."""
    low = math.floor(x)
    if x == low:
        return low
    half = x - low - Fraction(1, 2)
    if mode == "Floor":
        return low
    if mode == "Ceil":
        return low + 1
    if mode == "Trunc":
        return low if x > 0 else low + 1
    if mode == "Odd":
        return low if low % 2 else low + 1
    if half != 0:
        return low if half < 0 else low + 1
    if mode == "Round":
        return low + 1 if x > 0 else low
    return low if low % 2 == 0 else low + 1


def round_float(d, x, mode="Rint"):
    """A Fraction to a value of the dtype: a Fraction, or an infinity as a float."""
    precision, bits = FLOATS[d]
    bias = (1 << (bits - 1)) - 1
    if x == 0:
        return x
    e = math.floor(math.log2(abs(x.numerator)) - math.log2(x.denominator))
    while Fraction(2) ** e > abs(x):
        e -= 1
    while Fraction(2) ** (e + 1) <= abs(x):
        e += 1
    unit = Fraction(2) ** (max(e, 1 - bias) - precision + 1)
    y = round_integral(x / unit, mode) * unit
    most = largest(d)
    if abs(y) > most:
        toward = {"Trunc": True, "Odd": True, "Floor": x > 0, "Ceil": x < 0}.get(mode, False)
        return most * (1 if x > 0 else -1) if toward else math.copysign(math.inf, x)
    return y


def largest(d):
    """The largest finite value. The largest exponent of f8e4m3 is one of numbers, but for the last pattern."""
    precision, bits = FLOATS[d]
    bias = (1 << (bits - 1)) - 1
    return Fraction(448) if d == "f8e4m3" else (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** bias


def eight(d, bits):
    """The value of an 8-bit float, by its definition."""
    man = FLOATS[d][0] - 1
    sign, field, fraction = (-1.0 if bits & 0x80 else 1.0), (bits & 0x7F) >> man, bits & ((1 << man) - 1)
    if d == "f8e4m3" and bits & 0x7F == 0x7F:
        return math.nan
    if d == "f8e5m2" and field == 31:
        return math.nan if fraction else sign * math.inf
    bias = 7 if d == "f8e4m3" else 15
    return sign * math.ldexp(fraction + (bool(field) << man), max(field, 1) - bias - man)


VALUES = {d: {eight(d, b): b for b in range(0x7F) if math.isfinite(eight(d, b))} for d in EIGHT}


def bits_of_eight(d, x):
    sign = 0x80 if math.copysign(1, x) < 0 else 0
    if math.isnan(x):
        return sign | 0x7F
    y = abs(float(x)) if math.isinf(x) or x == 0 else float(round_float(d, Fraction(abs(float(x)))))
    return sign | (VALUES[d][y] if math.isfinite(y) else 0x7F if d == "f8e4m3" else 0x7C)


def bits_of(d, x):
    """Bits of a float (any kind), rounded to the dtype."""
    x = F32(x)
    if d in EIGHT:
        return bits_of_eight(d, x)
    if d == "f32":
        return int(x.view(np.uint32))
    if d == "f16":
        return int(np.float16(x).view(np.uint16))
    b = int(x.view(np.uint32))
    if np.isnan(x):
        return (b >> 16) | 0x40
    return ((b + 0x7FFF + ((b >> 16) & 1)) >> 16) & 0xFFFF


def float_of(d, bits):
    if d in EIGHT:
        return F32(eight(d, bits))
    if d == "f32":
        return np.uint32(bits).view(np.float32)
    if d == "f16":
        return F32(np.uint16(bits).view(np.float16))
    return np.uint32(bits << 16).view(np.float32)


def encode(d, x):
    return bits_of(d, x) if is_float(d) else int(x) & ((1 << WIDTH[d]) - 1)


def decode(d, bits):
    return float_of(d, bits) if is_float(d) else wrap(d, bits)


def finite(x):
    return not (np.isnan(x) or np.isinf(x))


# ---- operations: on python integers of dtype d, or on f32 ------------------------------------------------------------

def nan_or(f):
    return lambda d, a, b: F32(np.nan) if is_float(d) and (np.isnan(a) or np.isnan(b)) else f(a, b)


def larger(a, b):
    if a == b:
        return b if math.copysign(1, a) < 0 else a
    return max(a, b)


def smaller(a, b):
    if a == b:
        return a if math.copysign(1, a) < 0 else b
    return min(a, b)


def arithmetic(f):
    return lambda d, a, b: F32(f(a, b)) if is_float(d) else wrap(d, f(a, b))


def divide(d, a, b):
    if is_float(d):
        return F32(np.divide(F32(a), F32(b)))
    if b == 0:
        return wrap(d, -1)
    q = abs(a) // abs(b)
    return wrap(d, q if (a < 0) == (b < 0) else -q)


def fmod(d, a, b):
    """With the sign of the dividend; floats exactly."""
    if is_float(d):
        if not finite(a) or np.isnan(b) or b == 0:
            return F32(np.nan)
        if np.isinf(b):
            return a
        r = Fraction(float(abs(a))) % Fraction(float(abs(b)))
        return F32(math.copysign(float(r), a))
    if b == 0:
        return a
    r = abs(a) % abs(b)
    return -r if a < 0 else r


def rem(d, a, b):
    """With the sign of the divisor."""
    r = fmod(d, a, b)
    if r != 0 and (r < 0) != (b < 0) and not (is_float(d) and np.isnan(r)):
        return ADD(d, r, b)
    return r


def shift_left(d, a, n):
    n %= 1 << WIDTH[d]
    return wrap(d, a << n) if n < WIDTH[d] else 0


def shift_right(d, a, n):
    return a >> min(n % (1 << WIDTH[d]), 64)


def relu(d, a):
    return nan_or(larger)(d, a, F32(0)) if is_float(d) else max(a, 0)


def leaky(d, a, s):
    return a if a > 0 else MUL(d, a, s)


def fma(a, b, c):
    if not (finite(a) and finite(b) and finite(c)):
        return F32(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return F32(np.float64(a) * np.float64(b) + np.float64(c))
    return F32(float(round_float("f32", exact)))


ADD, SUB, MUL = arithmetic(lambda a, b: a + b), arithmetic(lambda a, b: a - b), arithmetic(lambda a, b: a * b)
MAX, MIN = nan_or(larger), nan_or(smaller)
CMP = dict(EQ=lambda a, b: a == b, NE=lambda a, b: a != b, LT=lambda a, b: a < b, LE=lambda a, b: a <= b,
           GT=lambda a, b: a > b, GE=lambda a, b: a >= b)


def narrow(frm, to, x):
    """Nearest even, saturating."""
    if is_float(to):
        return x if np.isnan(x) else F32(min(max(float(x), -65504.0), 65504.0))
    return convert(frm, to, x, "Rint", True)


def convert(frm, to, x, mode, saturate):
    if is_float(frm) and not is_float(to):
        if np.isnan(x):
            return 0
        lo, hi = bounds(to)
        if np.isinf(x):
            return (hi if x > 0 else lo) if saturate else 0
        n = round_integral(Fraction(float(x)), mode)
        return min(max(n, lo), hi) if saturate else wrap(to, n)
    if is_float(to):
        if is_float(frm):
            limit = saturate and to not in (frm, "f32")
            if limit and np.isinf(x):
                return F32(math.copysign(float(largest(to)), x))
            if not finite(x) or x == 0:
                return x
            y = round_float(to, Fraction(float(x)), mode)
            y = min(abs(float(y)), float(largest(to))) if limit else abs(float(y))
            return F32(math.copysign(y, x))
        return F32(float(round_float(to, Fraction(x), mode)))
    lo, hi = bounds(to)
    return min(max(x, lo), hi) if saturate else wrap(to, x)


# ---- lines ----------------------------------------------------------------------------------------------------------

def values(d, count, salt):
    """Bits: what is special about the dtype, and noise of ordinary size."""
    rng = random.Random(f"{d} {count} {salt}")
    if d == "mask":
        return [rng.randrange(2) for _ in range(count)]
    if is_float(d):
        precision, bits = FLOATS[d]
        top = (1 << (precision + bits)) // 2
        inf = ((1 << bits) - 1) << (precision - 1)
        special = [0, top, inf, top | inf, inf | 1 << (precision - 2), inf - 1, 1, top | (inf - 1), 1 << (precision - 1)]
        near = [1.0, -1.0, 0.5, -2.5, 3.0, -7.25, 100.0, 1.5, -0.75, 2.0]
        pool = special + [bits_of(d, x) for x in near]
        some = [rng.choice(pool) for _ in range(count // 2)]
        return some + [bits_of(d, F32(rng.uniform(-8, 8))) for _ in range(count - len(some))]
    w = WIDTH[d]
    special = [0, 1, (1 << w) - 1, 1 << (w - 1), (1 << (w - 1)) - 1, 2, 3, w - 1, w]
    some = [rng.choice(special) for _ in range(count // 2)]
    return some + [rng.getrandbits(w) if k % 2 else rng.randrange(100) for k in range(count - len(some))]


class Operand:
    def __init__(self, d, shape, salt, tame=False):
        self.d, self.shape = d, shape
        self.bits = values(d, shape[0] * shape[1], salt)
        if tame:
            # Small whole numbers, of which any sum and product of a few is exact.
            rng = random.Random(f"tame {salt}")
            self.bits = [encode(d, F32(rng.randrange(-2, 3)) if is_float(d) else wrap(d, rng.randrange(-2, 3))) for _ in self.bits]

    def at(self, i, j):
        i, j = min(i, self.shape[0] - 1), min(j, self.shape[1] - 1)
        bits = self.bits[i * self.shape[1] + j]
        return bits == 1 if self.d == "mask" else decode(self.d, bits)

    def text(self):
        d = "bool" if self.d == "mask" else self.d
        return f"{d} {self.shape[0]}x{self.shape[1]} " + hexed(d, self.bits)


def hexed(d, bits):
    return "".join(f"{b:0{WIDTH[d] // 4}x}" for b in bits)


FULL, ONE, COLUMN, ROW = (ROWS, COLS), (1, 1), (ROWS, 1), (1, COLS)
done = 0


def line(name, operands, out, result, shape=FULL, ulp=0):
    """`operands` are (dtype, shape), `result(i, j, ..)` an element of dtype `out`."""
    global done
    done += 1
    given = [Operand(d, s, f"{name} {k} {done}") for k, (d, s) in enumerate(operands)]
    emit(name, given, out, lambda i, j: result(*(o.at(i, j) for o in given)), shape, ulp)


def emit(name, given, out, result, shape, ulp):
    emit_all(name, given, [(out, result)], shape, ulp)


def emit_all(name, given, outs, shape, ulp=0):
    parts = [name] + ["in " + o.text() for o in given]
    for d, result in outs:
        bits = [encode("u8" if d == "bool" else d, result(i, j)) for i in range(shape[0]) for j in range(shape[1])]
        parts.append(f"out {d} {shape[0]}x{shape[1]} " + hexed(d, bits))
    if ulp:
        parts.append(f"ulp {ulp}")
    print("|".join(parts))


def elementwise():
    binary = dict(
        TADD=(ADD, A5), TSUB=(SUB, A5), TMUL=(MUL, A5_16), TDIV=(divide, A5_DIV), TMAX=(MAX, A5), TMIN=(MIN, A5),
        TAND=(lambda d, a, b: a & b, I), TOR=(lambda d, a, b: a | b, I), TXOR=(lambda d, a, b: a ^ b, I),
        TSHL=(shift_left, I + ["i64", "u64"]), TSHR=(shift_right, I + ["i64", "u64"]),
        TREM=(rem, A5_DIV), TFMOD=(fmod, F), TPRELU=(leaky, F), TSUBRELU=(lambda d, a, b: relu(d, SUB(d, a, b)), F),
    )
    for name, (f, dtypes) in binary.items():
        for d in dtypes:
            line(f"{name}", [(d, FULL), (d, FULL)], d, lambda a, b: f(d, a, b))
    scalar = dict(
        TADDS=(ADD, A5), TSUBS=(SUB, A5), TMULS=(MUL, A5_16), TDIVS=(divide, either(A2, A5_DIV)), TMAXS=(MAX, A5), TMINS=(MIN, A5),
        TANDS=(lambda d, a, b: a & b, I), TORS=(lambda d, a, b: a | b, I), TXORS=(lambda d, a, b: a ^ b, I),
        TSHLS=(shift_left, I), TSHRS=(shift_right, I), TREMS=(rem, A5_DIV), TFMODS=(fmod, F), TLRELU=(leaky, F),
    )
    for name, (f, dtypes) in scalar.items():
        for d in dtypes:
            for _ in range(2):
                line(name, [(d, FULL), (d, ONE)], d, lambda a, s: f(d, a, s))
    for name, f in dict(TAND=lambda a, b: a and b, TOR=lambda a, b: a or b, TXOR=lambda a, b: a != b).items():
        line(name, [("mask", FULL), ("mask", FULL)], "bool", f)
    line("TNOT", [("mask", FULL)], "bool", lambda a: not a)
    unary = dict(
        TABS=(lambda d, a: F32(abs(a)) if is_float(d) else wrap(d, abs(a)), either(F, ["i8", "i16", "i32"])),
        TNEG=(lambda d, a: F32(-a) if is_float(d) else wrap(d, -a), WIDTH_16_32),
        TNOT=(lambda d, a: wrap(d, ~a), I), TRELU=(relu, ["i32"] + F),
        TSQRT=(lambda d, a: F32(np.sqrt(a)), F), TRECIP=(lambda d, a: F32(1) / a, F),
        TRSQRT=(lambda d, a: F32(1) / np.sqrt(a), F),
    )
    for name, (f, dtypes) in unary.items():
        for d in dtypes:
            line(name, [(d, FULL)], d, lambda a: f(d, a))
    for name, f in dict(TEXP=np.exp, TLOG=np.log).items():
        for d in F:
            line(name, [(d, FULL)], d, lambda a: F32(f(np.float64(a))), ulp=2 if d == "f32" else 1)
    for d in A5:
        line("TEXPANDS", [(d, ONE)], d, lambda s: s)
    for d in A2:
        line("TADDC", [(d, FULL)] * 3, d, lambda a, b, c: ADD(d, ADD(d, a, b), c))
        line("TSUBC", [(d, FULL)] * 3, d, lambda a, b, c: ADD(d, SUB(d, a, b), c))
        line("TADDSC", [(d, FULL), (d, ONE), (d, FULL)], d, lambda a, s, b: ADD(d, ADD(d, a, s), b))
        line("TSUBSC", [(d, FULL), (d, ONE), (d, FULL)], d, lambda a, s, b: ADD(d, SUB(d, a, s), b))
    for d in F:
        line("TMULADDDST", [(d, FULL)] * 3, d, lambda old, a, b: fma(a, b, old))
        line("TFUSEDMULADD", [(d, FULL)] * 3, d, lambda old, a, b: fma(a, old, b))
        line("TFUSEDMULADDRELU", [(d, FULL)] * 3, d, lambda old, a, b: relu(d, fma(a, old, b)))
    for dst, src in (("f16", "f16"), ("f32", "f32"), ("f32", "f16")):
        line("TAXPY", [(dst, FULL), (src, FULL), (src, ONE)], dst, lambda old, a, s: fma(s, a, old))
    for to, frm in (("f16", "f32"), ("i8", "f16"), ("i8", "i16")):
        wide = frm if is_float(frm) else "i32"
        line("TADDRELUCONV", [(frm, FULL)] * 2, to, lambda a, b: narrow(wide, to, relu(wide, ADD(wide, a, b))))
        line("TSUBRELUCONV", [(frm, FULL)] * 2, to, lambda a, b: narrow(wide, to, relu(wide, SUB(wide, a, b))))
    line("TADDDEQRELU", [("i32", FULL), ("i32", FULL), ("f32", ONE)], "f16",
         lambda a, b, s: relu("f32", F32(F32(ADD("i32", a, b)) * s)))


def conversions():
    pairs = """f32 f32 f16 bf16 i16 i32 i64;f16 f16 f32 i8 u8 i16 i32;bf16 f16 f32 i32;i8 f16 i16 i32;u8 f16 u16;
        i16 f16 f32 u8 i32 u32;i32 f32 u8 i16 u16 i64;u32 u8 i16 u16;i64 f32 i32"""
    return [(frm, to) for frm, *all_to in map(str.split, pairs.split(";")) for to in all_to]


def modes():
    for mode, f in CMP.items():
        for d in A5:
            line(f"TCMP {mode}", [(d, FULL), (d, FULL)], "bool", f)
            line(f"TCMPS {mode}", [(d, FULL), (d, ONE)], "bool", f)
    for d in A5:
        line("TSEL", [("mask", FULL), (d, FULL), (d, FULL)], d, lambda m, a, b: a if m else b)
        line("TSELS", [("mask", FULL), (d, FULL), (d, ONE)], d, lambda m, a, s: a if m else s)
    for frm, to in conversions():
        to_int = is_float(frm) and not is_float(to)
        line("TCVT", [(frm, FULL)], to, lambda a: convert(frm, to, a, "Trunc" if to_int else "Rint", to_int))
        for mode in "Rint Round Floor Ceil Trunc Odd".split():
            for saturate in (True, False):
                line(f"TCVT {mode} saturate = {str(saturate).lower()}", [(frm, FULL)], to,
                     lambda a: a if frm == to else convert(frm, to, a, mode, saturate))


def broadcasts():
    ops = dict(ADD=ADD, SUB=SUB, MUL=MUL, DIV=divide, MAX=MAX, MIN=MIN)
    for d in A5:
        line("TROWEXPAND", [(d, COLUMN)], d, lambda a: a)
        line("TCOLEXPAND", [(d, ROW)], d, lambda a: a)
        given = Operand(d, (COLS, ROWS), "turned")
        emit("TTRANS", [given], d, lambda i, j: given.at(j, i), FULL, 0)
    for d in F:
        for name, f in ops.items():
            line(f"TROWEXPAND{name}", [(d, FULL), (d, COLUMN)], d, lambda a, b: f(d, a, b))
            line(f"TCOLEXPAND{name}", [(d, FULL), (d, ROW)], d, lambda a, b: f(d, a, b))
        for name, small in (("TROWEXPANDEXPDIF", COLUMN), ("TCOLEXPANDEXPDIF", ROW)):
            # The difference is rounded to f32 before the exponential.
            line(name, [(d, FULL), (d, small)], d, lambda a, b: F32(np.exp(np.float64(F32(a - b)))), ulp=2 if d == "f32" else 1)


def reductions():
    """Floats are small whole numbers, so that no order of additions can be seen."""
    rows = either(A2, "i16 i32 i64 u64 f16 f32".split())
    cases = [("TROWSUM", ADD, rows), ("TROWMIN", MIN, rows), ("TROWMAX", MAX, either(rows, ["i8", "u8"])),
             ("TCOLSUM", ADD, A5), ("TCOLMAX", MAX, A5), ("TCOLMIN", MIN, A5),
             ("TROWPROD", MUL, rows), ("TCOLPROD", MUL, A5)]
    for name, f, dtypes in cases:
        down = name.startswith("TCOL")
        for d in dtypes:
            given = Operand(d, FULL, name + d, tame=is_float(d) and f in (ADD, MUL))

            def fold(items):
                total = items[0]
                for x in items[1:]:
                    total = f(d, total, x)
                return total

            if down:
                emit(name, [given], d, lambda _, j: fold([given.at(i, j) for i in range(ROWS)]), ROW, 0)
            else:
                emit(name, [given], d, lambda i, _: fold([given.at(i, j) for j in range(COLS)]), COLUMN, 0)


def places():
    """Where the largest or smallest is: the first NaN, else the first of the best."""
    rows, cols = ["f16", "f32", "i16", "i32"], I + ["f16", "f32"]
    for name, down, dtypes, better in (
        ("TROWARGMAX", False, rows, lambda a, b: a > b), ("TROWARGMIN", False, rows, lambda a, b: a < b),
        ("TCOLARGMAX", True, cols, lambda a, b: a > b), ("TCOLARGMIN", True, cols, lambda a, b: a < b),
    ):
        for d in dtypes:
            for index in ("i32", "u32"):
                for tame in (False, True):
                    # Enough rows to choose from, and equal elements.
                    shape = (6, COLS) if down else (ROWS, 16)
                    given = Operand(d, shape, f"{name} {d} {index} {tame}", tame=tame and d != "u8")

                    def first(items):
                        for n, x in enumerate(items):
                            if is_float(d) and np.isnan(x):
                                return n
                        best = 0
                        for n, x in enumerate(items):
                            if better(x, items[best]):
                                best = n
                        return best

                    if down:
                        emit(name, [given], index, lambda _, j: first([given.at(i, j) for i in range(shape[0])]), (1, shape[1]), 0)
                    else:
                        emit(name, [given], index, lambda i, _: first([given.at(i, j) for j in range(shape[1])]), (shape[0], 1), 0)


def quantised():
    """Scale and offset of a row."""
    for frm in ("i8", "i16"):
        line("TDEQUANT", [(frm, FULL), ("f32", COLUMN), ("f32", COLUMN)], "f32",
             lambda a, s, o: F32(F32(F32(a) - o) * s))
    for _ in range(3):
        line("TQUANT", [("f32", FULL), ("f32", COLUMN)], "i8", lambda a, s: narrow("f32", "i8", F32(a * s)))
        line("TQUANT_OFFSET", [("f32", FULL), ("f32", COLUMN), ("f32", COLUMN)], "u8",
             lambda a, s, o: narrow("f32", "u8", F32(F32(a * s) + o)))


def pairs():
    for d in F:
        for cols in (COLS, 7):
            given = Operand(d, (ROWS, cols), f"pairs {cols}")

            def result(i, k):
                if 2 * k + 1 < cols:
                    return ADD(d, given.at(i, 2 * k), given.at(i, 2 * k + 1))
                return given.at(i, 2 * k) if 2 * k < cols else F32(0)

            emit("TPAIRREDUCESUM", [given], d, result, (ROWS, cols), 0)


def reciprocals():
    for d in ("i16", "i32"):
        line("TRECIP", [(d, FULL)], d, lambda a: divide(d, 1, a))


def partial():
    """The second source is valid in its upper left quarter."""
    inside = lambda i, j: i < ROWS // 2 and j < COLS // 2
    for name, f, dtypes in (("TPARTADD", ADD, UP_TO_32), ("TPARTMUL", MUL, WIDTH_16_32), ("TPARTMAX", MAX, UP_TO_32),
                            ("TPARTMIN", MIN, UP_TO_32)):
        for d in dtypes:
            a, b = Operand(d, FULL, f"{name} a"), Operand(d, FULL, f"{name} b")
            emit(name, [a, b], d, lambda i, j: f(d, a.at(i, j), b.at(i, j)) if inside(i, j) else a.at(i, j), FULL, 0)
    for name, better in (("TPARTARGMAX", lambda a, b: a > b), ("TPARTARGMIN", lambda a, b: a < b)):
        for d in F:
            for index in ("i16", "u16", "i32", "u32"):
                for tame in (False, True):
                    a, b = (Operand(d, FULL, f"{name} {x} {index} {tame}", tame=tame) for x in "ab")
                    ai, bi = (Operand(index, FULL, f"{name} {x} {d}") for x in ("ai", "bi"))

                    def first(i, j):
                        return not inside(i, j) or better(a.at(i, j), b.at(i, j)) or bool(np.isnan(a.at(i, j)))

                    emit_all(name, [a, b, ai, bi], [(d, lambda i, j: (a if first(i, j) else b).at(i, j)),
                                                    (index, lambda i, j: (ai if first(i, j) else bi).at(i, j))], FULL)


def streams():
    for d in UP_TO_32:
        later, first = Operand(d, FULL, "later"), Operand(d, FULL, "first")
        mixed = lambda i, n: (later if n % 2 else first).at(i, n // 2)
        emit_all("TINTERLEAVE", [later, first], [(d, lambda i, j: mixed(i, COLS + j)), (d, lambda i, j: mixed(i, j))], FULL)
        both = lambda i, n: first.at(i, n) if n < COLS else later.at(i, n - COLS)
        emit_all("TDEINTERLEAVE", [later, first], [(d, lambda i, k: both(i, 2 * k + 1)), (d, lambda i, k: both(i, 2 * k))], FULL)
        zero = F32(0) if is_float(d) else 0
        half = lambda i, k, odd: first.at(i, 2 * k + odd) if 2 * k < COLS else zero
        emit_all("TDEINTERLEAVE_ONE", [first], [(d, lambda i, k: half(i, k, 1)), (d, lambda i, k: half(i, k, 0))], FULL)


def extremes():
    """The largest or smallest with its place: the first NaN, else the first of the best."""
    for name, better in (("TROWARGMAX_VALUES", lambda a, b: a > b), ("TROWARGMIN_VALUES", lambda a, b: a < b)):
        for d in ("f16", "f32", "i16", "i32"):
            for index in ("i32", "u32"):
                for tame in (False, True):
                    given = Operand(d, (ROWS, 16), f"{name} {d} {index} {tame}", tame=tame)

                    def place(i):
                        items = [given.at(i, j) for j in range(16)]
                        best = 0
                        for n, x in enumerate(items):
                            if is_float(d) and np.isnan(x):
                                return n
                            if better(x, items[best]):
                                best = n
                        return best

                    emit_all(name, [given], [(d, lambda i, _: given.at(i, place(i))), (index, lambda i, _: place(i))], (ROWS, 1))


def power(d, a, b):
    if is_float(d):
        return F32(np.power(np.float64(a), np.float64(b)))
    if b < 0:
        return {0: -1, 1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)
    return wrap(d, pow(int(a), int(b), 1 << WIDTH[d]))


def powers():
    for d in I + ["f16", "bf16", "f32"]:
        ulp = dict(ulp=2 if d == "f32" else 1) if is_float(d) else {}
        for _ in range(2):
            line("TPOW", [(d, FULL), (d, FULL)], d, lambda a, b: power(d, a, b), **ulp)
            line("TPOWS", [(d, FULL), (d, ONE)], d, lambda a, s: power(d, a, s), **ulp)


def eights():
    for frm, to in (("f32", "f8e4m3"), ("f32", "f8e5m2"), ("f8e4m3", "f32"), ("f8e5m2", "f32")):
        line("TCVT", [(frm, FULL)], to, lambda a: convert(frm, to, a, "Rint", True))
        for mode in "Rint Round Floor Ceil Trunc Odd".split():
            for saturate in (True, False):
                line(f"TCVT {mode} saturate = {str(saturate).lower()}", [(frm, FULL)], to,
                     lambda a: convert(frm, to, a, mode, saturate))


def halves_of_conversions():
    """A mode alone, and `saturate` alone: the other as it is where nothing is said."""
    eight = ["f8e4m3", "f8e5m2"]
    for frm, to in conversions() + [("f32", d) for d in eight] + [(d, "f32") for d in eight]:
        to_int = is_float(frm) and not is_float(to)
        usual = ("Trunc" if to_int else "Rint", to_int or to in eight)
        for mode in "Rint Round Floor Ceil Trunc Odd".split():
            line(f"TCVT {mode}", [(frm, FULL)], to, lambda a: a if frm == to else convert(frm, to, a, mode, usual[1]))
        for saturate in (True, False):
            line(f"TCVT saturate = {str(saturate).lower()}", [(frm, FULL)], to,
                 lambda a: a if frm == to else convert(frm, to, a, usual[0], saturate))


def reversed_operands():
    for d in either(A2, A5_DIV):
        for _ in range(2):
            line("TDIVS reversed", [(d, FULL), (d, ONE)], d, lambda a, s: divide(d, s, a))


def columns_first():
    """The column before the tile."""
    ops = dict(ADD=ADD, SUB=SUB, MUL=MUL, DIV=divide, MAX=MAX, MIN=MIN)
    for d in F:
        for name, f in ops.items():
            line(f"TROWEXPAND{name} reversed", [(d, FULL), (d, COLUMN)], d, lambda a, b: f(d, b, a))
        line("TROWEXPANDEXPDIF reversed", [(d, FULL), (d, COLUMN)], d, lambda a, b: F32(np.exp(np.float64(F32(b - a)))),
             ulp=2 if d == "f32" else 1)


def filled_with_floats_of_8_bits():
    for d in EIGHT:
        line("TEXPANDS", [(d, ONE)], d, lambda s: s)


def functions():
    """Rows of the language's own. Sine and cosine have a bound up to 2^20: their operands are a few turns."""
    for name, f in dict(TFLOOR=np.floor, TCEIL=np.ceil, TTRUNC=np.trunc, TRINT=np.rint).items():
        for d in F:
            line(name, [(d, FULL)], d, lambda a: F32(f(a)))
    erf = lambda x: np.float64(math.erf(x))
    for name, f in dict(TSIN=np.sin, TCOS=np.cos, TTANH=np.tanh, TERF=erf).items():
        for d in F:
            for turn in range(3):
                rng = random.Random(f"{name} {d} {turn}")
                given = Operand(d, FULL, f"{name} {turn}")
                if turn or name in ("TSIN", "TCOS"):
                    given.bits = [encode(d, F32(rng.uniform(-1, 1) * 10 ** rng.randrange(-3, 4))) for _ in given.bits]
                emit(name, [given], d, lambda i, j: F32(f(np.float64(given.at(i, j)))), FULL, 2 if d == "f32" else 1)


if __name__ == "__main__":
    print("# Written by tests/scripts/instruction_vectors.py, which says what a line is. Do not edit.")
    elementwise()
    modes()
    broadcasts()
    reductions()
    places()
    pairs()
    reciprocals()
    quantised()
    partial()
    streams()
    extremes()
    powers()
    eights()
    reversed_operands()
    halves_of_conversions()
    columns_first()
    filled_with_floats_of_8_bits()
    functions()
