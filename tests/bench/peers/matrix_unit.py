#!/usr/bin/env python3
"""Sums of the tensor cores against the model of them, bit by bit, on a card: `matrix_unit.py path/of/ptoc [--outputs N]`.

Kernels of `sums.tile` are built with their launchers in C, and run on PyTorch's tensors. The model is that of
`runtime/tensor/src/matrix_unit.rs`, written a second time here, in whole numbers of 64 bits. Factors are ordinary numbers, numbers of
all sizes, those whose sums cancel, subnormal ones, those whose sums are subnormal or overflow, small whole numbers, and any bits;
sums start at zero or at numbers of a row. A line for each kind: outputs, and how many differ."""

import argparse
import ctypes
import re
import subprocess
import tempfile
from pathlib import Path

import torch

HERE = Path(__file__).parent
NAN = 0x7FFFFFFF
# Digits behind the point, bias, bits; of TF32 those that are looked at.
FORMATS = {"f16": (10, 15, 16), "bf16": (7, 127, 16), "tf32": (10, 127, 19), "f8e4m3": (3, 7, 8), "f8e5m2": (2, 15, 8)}
# Products at once, digits of an addend behind the greatest exponent, and of the sum (targets/sm90.toml).
PROFILES = {"f16": (16, 25, 23), "bf16": (16, 25, 23), "tf32": (8, 25, 23), "f8e4m3": (32, 13, 13), "f8e5m2": (32, 13, 13)}
NOTHING = -(10**6)


def decoded(bits, ty):
    """Significands, exponents, and what is infinite or no number."""
    digits, bias, width = FORMATS[ty]
    exponents = width - 1 - digits
    negative = bits >> (width - 1) & 1
    exp = bits >> digits & ((1 << exponents) - 1)
    fraction = bits & ((1 << digits) - 1)
    top = exp == (1 << exponents) - 1
    if ty == "f8e4m3":
        infinite, nan = torch.zeros_like(top), top & (fraction == 7)
    else:
        infinite, nan = top & (fraction == 0), top & (fraction != 0)
    sig = torch.where(exp == 0, fraction, fraction | 1 << digits)
    return torch.where(negative == 1, -sig, sig), exp.clamp(min=1) - bias, infinite, nan


def scaled(x, by):
    """x times a power of two, cut off towards zero."""
    size = x.abs()
    size = torch.where(by >= 0, size << by.clamp(0, 62), size >> (-by).clamp(0, 63))
    return torch.where(x < 0, -size, size)


def blocks(a, b, start, types):
    """The model: bits of the sums of rows of `a` times columns of `b` (both as bits), from a row of f32 on."""
    block, aligned, digits = PROFILES[types[0]]
    of_a, of_b = decoded(a, types[0]), decoded(b, types[1])
    product_digits = FORMATS[types[0]][0] + FORMATS[types[1]][0]
    rows, columns = a.shape[0], b.shape[1]
    sums = start.view(1, -1).expand(rows, columns).contiguous()
    for k in range(0, a.shape[1], block):
        sig_a, exp_a, inf_a, nan_a = (x[:, k : k + block, None] for x in of_a)
        sig_b, exp_b, inf_b, nan_b = (x[None, k : k + block, :] for x in of_b)
        products = sig_a * sig_b
        exps = torch.where(products == 0, NOTHING, exp_a + exp_b)
        bits = sums.view(torch.int32).long() & 0xFFFFFFFF
        exp = bits >> 23 & 0xFF
        sig = torch.where(exp == 0, bits & 0x7FFFFF, bits & 0x7FFFFF | 0x800000)
        sig = torch.where(bits >> 31 == 1, -sig, sig)
        exp = exp.clamp(min=1) - 127
        top = torch.maximum(exps.amax(1), torch.where(sig == 0, NOTHING, exp))
        total = scaled(products, exps - product_digits - top[:, None] + aligned).sum(1)
        total += scaled(sig, exp - 23 - top + aligned)
        leading = torch.frexp(total.double()).exponent.long() - 1
        at = (top - aligned + leading).clamp(min=-126)
        kept = scaled(total, top - aligned - at + digits)
        found = torch.where(total == 0, 0.0, torch.ldexp(kept.double(), (at - digits).clamp(-1000, 1000))).float()
        # What infinities and what is no number make of it.
        sign = (sig_a < 0) ^ (sig_b < 0)
        infinite = inf_a | inf_b
        # An infinite factor has no significand here but its sign and a leading one.
        zero = (inf_a & (sig_b == 0) & ~inf_b) | (inf_b & (sig_a == 0) & ~inf_a)
        none = (nan_a | nan_b | zero).any(1) | sums.isnan()
        up = (infinite & ~zero & ~sign).any(1) | (sums == float("inf"))
        down = (infinite & ~zero & sign).any(1) | (sums == float("-inf"))
        found = torch.where(up, float("inf"), torch.where(down, float("-inf"), found))
        none |= up & down
        found = torch.where(none, torch.tensor(NAN, dtype=torch.int32, device=a.device).view(torch.float32), found)
        sums = found
    return sums.view(torch.int32)


class Kernel:
    """A kernel of `sums.tile` in a library, with its launcher."""

    def __init__(self, ptoc, folder, name, defs):
        flags = [x for d in defs for x in ("-D", d)]
        source, header = folder / f"{name}.c", folder / f"{name}.h"
        call = [ptoc, "build", HERE / "sums.tile", name, *flags, "--target", "sm90", "-o", folder / f"{name}.ptx"]
        subprocess.run([*call, "--header", header, "--launcher", source], check=True)
        library = folder / f"{name}_{len(list(folder.glob('*.so')))}.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-l:libcuda.so.1"], check=True)
        self.library = ctypes.CDLL(str(library))
        declared = re.search(rf"int32_t {name}\(([^;]*)\);", header.read_text())
        self.order = [re.split(r"[ *]", p.strip())[-1] for p in declared.group(1).split(",")]
        self.name, self.handle, self.status = name, ctypes.create_string_buffer(64), ctypes.create_string_buffer(4096)
        self.said(getattr(self.library, f"{name}_load")(self.handle, None, self.status))

    def said(self, code):
        if code:
            raise SystemExit(f"{self.name}: {code}: {self.status.raw[:300]!r}")

    def __call__(self, **given):
        torch.cuda.synchronize()
        own = {"kernel": self.handle, "workspace": None, "workspace_bytes": 0, "stream": None, "status": self.status}
        arguments = []
        for name in self.order:
            value = given.get(name, own.get(name, 0))
            if isinstance(value, torch.Tensor):
                value = ctypes.c_void_p(value.data_ptr())
            arguments.append(ctypes.c_int64(value) if isinstance(value, int) else value)
        self.said(getattr(self.library, self.name)(*arguments))
        torch.cuda.synchronize()


def rounded(x, ty):
    """The bits of numbers of f32 as factors."""
    torch_types = {"f16": torch.float16, "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
    if ty == "tf32":
        bits = x.view(torch.int32).long() & 0xFFFFFFFF
        finite = (bits >> 23 & 0xFF) != 0xFF
        return torch.where(finite, bits + 0xFFF + (bits >> 13 & 1), bits) >> 13 & 0x7FFFF
    return x.to(torch_types[ty]).view(torch.uint8 if FORMATS[ty][2] == 8 else torch.int16).long() & (1 << FORMATS[ty][2]) - 1


def stored(bits, ty):
    """Bits as the array that a kernel takes."""
    if ty == "tf32":
        return (bits << 13).to(torch.int32).contiguous()
    return bits.to(torch.uint8 if FORMATS[ty][2] == 8 else torch.int16).contiguous()


def kinds(ty, rows, columns, depth):
    """Factors by kind, as bits: [rows, depth] and [depth, columns], and the row that sums start at."""
    digits, bias, width = FORMATS[ty]
    normal = lambda r, c: torch.randn(r, c, device="cuda")
    spread = lambda r, c, lo, hi: normal(r, c) * torch.exp2(torch.rand(r, c, device="cuda") * (hi - lo) + lo)
    zero = torch.zeros(columns, device="cuda")
    least, most = 1 - bias, min(bias, 126)
    a, b = normal(rows, depth), normal(depth, columns)
    yield "ordinary", a, b, zero
    yield "ordinary, from a start", normal(rows, depth), normal(depth, columns), 4 * normal(1, columns)[0]
    yield "of all sizes", spread(rows, depth, least / 2, most / 2), spread(depth, columns, least / 2, most / 2), zero
    start = spread(1, columns, least, most)[0]
    yield "of all sizes, from a start", spread(rows, depth, least / 2, most / 2), spread(depth, columns, least / 2, most / 2), start
    half = depth // 2
    yield "that cancel", torch.cat([a[:, :half], -a[:, :half]], 1), torch.cat([b[:half], b[:half]]), zero
    yield "that nearly cancel", torch.cat([a[:, :half], -a[:, :half]], 1), torch.cat([b[:half], 1.01 * b[:half]]), zero
    yield "subnormal on the left", normal(rows, depth) * 2.0 ** (least - 1), normal(depth, columns), zero
    if bias == 127:
        yield "with subnormal sums", normal(rows, depth) * 2.0**-65, normal(depth, columns) * 2.0**-65, zero
        yield "with subnormal sums, from such", normal(rows, depth) * 2.0**-65, normal(depth, columns) * 2.0**-65, start * 0 + 2.0**-130
        yield "near overflow", normal(rows, depth) * 2.0**62, normal(depth, columns) * 2.0**62, zero
    whole = lambda r, c: torch.randint(-3, 4, (r, c), device="cuda").float()
    yield "whole numbers", whole(rows, depth), whole(depth, columns), zero
    bits = lambda r, c: torch.randint(0, 1 << width, (r, c), device="cuda")
    yield "any bits", bits(rows, depth), bits(depth, columns), zero
    # Rows without infinities and NaN, which would hide all else.
    finite = lambda x: torch.where(decoded(x, ty)[2] | decoded(x, ty)[3], torch.zeros_like(x), x)
    yield "any finite bits", finite(bits(rows, depth)), finite(bits(depth, columns)), zero


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ptoc")
    parser.add_argument("--outputs", type=float, default=1e8, help="at least so many, of all kinds together")
    args = parser.parse_args()
    ptoc = Path(args.ptoc).resolve()
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    cases = [
        ("halves", ["T=f16"], ("f16", "f16")),
        ("halves", ["T=bf16"], ("bf16", "bf16")),
        ("words", [], ("tf32", "tf32")),
        ("bytes", ["T=f8e4m3", "U=f8e4m3"], ("f8e4m3", "f8e4m3")),
        ("bytes", ["T=f8e5m2", "U=f8e4m3"], ("f8e5m2", "f8e4m3")),
        ("bytes", ["T=f8e5m2", "U=f8e5m2"], ("f8e5m2", "f8e5m2")),
    ]
    rows, columns = 256, 2048
    everything = differing = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, defs, types in cases:
            kernel = Kernel(ptoc, Path(folder), name, defs)
            counts = {}
            of_case = 0
            while of_case < args.outputs / len(cases):
                for depth in (32, 64, 128, 512):
                    for kind, a, b, start in kinds(types[0], rows, columns, depth):
                        if types[0] != types[1] and kind.startswith("any"):
                            b = torch.randint(0, 1 << FORMATS[types[1]][2], (depth, columns), device="cuda")
                            if kind == "any finite bits":
                                b = torch.where(decoded(b, types[1])[2] | decoded(b, types[1])[3], torch.zeros_like(b), b)
                        if a.is_floating_point():
                            a, b = rounded(a, types[0]), rounded(b, types[1])
                        if name == "words":
                            start = torch.zeros_like(start)
                        result = torch.empty(rows, columns, dtype=torch.int32, device="cuda")
                        right = b if name == "halves" else b.t().contiguous()
                        arrays = {"A": stored(a, types[0]), "B": stored(right, types[1]), "start": start.contiguous(), "C": result}
                        kernel(**arrays, M=rows, N=columns, K=depth)
                        want = blocks(a, b, start, types)
                        wrong = result != want
                        n = int(wrong.sum())
                        known = counts.setdefault(kind, [0, 0, None])
                        known[0] += result.numel()
                        known[1] += n
                        if n and known[2] is None:
                            i, j = wrong.nonzero()[0].tolist()
                            got, model = int(result[i, j]) & 0xFFFFFFFF, int(want[i, j]) & 0xFFFFFFFF
                            known[2] = f"first: k {depth}, [{i}, {j}] is {got:08x}, the model has {model:08x}"
                        of_case += result.numel()
            for kind, (outputs, wrong, first) in counts.items():
                print(f"{types[0]} x {types[1]}, {kind}: {outputs} outputs, {wrong} differ", first or "", flush=True)
                everything += outputs
                differing += wrong
    print(f"{everything} outputs, {differing} differ")
    return differing != 0


if __name__ == "__main__":
    raise SystemExit(main())
