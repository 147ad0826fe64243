#!/usr/bin/env python3
"""Kernels of `examples/` on an NVIDIA card beside PyTorch, eager and compiled, in turns.

    cargo build --release
    python3 tests/bench/peers/gpu.py --ptoc target/release/ptoc --out results

Needs PyTorch with CUDA. A row is a work: `ptoc bench --target sm90` times ptoc's kernel by the device's clock, and events do
the same for PyTorch; arrays are rotated, so that none is in the second-level cache. In each of the rounds every contender
works once; the figures are medians over the rounds, of medians. A device-to-device copy of as many bytes as the work has to
move stands beside it: what no kernel passes. Results of ptoc are checked by `ptoc test --backend gpu`, which runs first.
Writes `gpu.md` and `gpu.json` into the folder. `--only REGEX` takes some of the rows.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[3]
LAUNCHES, ROTATED = 20, 3
DEVICE = torch.device("cuda")


def rand(*shape, dtype=torch.float32):
    return (torch.rand(*shape, device=DEVICE) * 2 - 1).to(dtype)


def indices(count, below):
    return torch.randint(0, below, (count,), device=DEVICE)


def points(count):
    return torch.rand(1, count, 1, 2, device=DEVICE) * 2 - 1


class Work:
    """A row: ptoc's kernel and its definitions, bytes that have to be moved, inputs, and PyTorch's ways."""

    def __init__(self, name, example, kernel, defines, moved, inputs, compiled=None, flops=0, files=None, **ways):
        self.name, self.example, self.kernel, self.defines = name, example, kernel, defines.split()
        self.moved, self.inputs, self.ways, self.compiled = moved, inputs, ways, compiled
        self.flops, self.files = flops, files or {}


def works():
    half = torch.float16
    for dtype, t in ((torch.float32, "f32"), (half, "f16")):
        size = dtype.itemsize
        typed = "" if t == "f32" else "T=f16 "
        n = 8192 * 8192
        yield Work(f"add {t} 8192x8192", "add", "add_auto", typed + "M=8192 N=8192", 3 * n * size,
                   lambda d=dtype: (rand(8192, 8192, dtype=d), rand(8192, 8192, dtype=d)),
                   eager=lambda a, b: a + b)
        for m, k in ((16384, 4096), (4096, 16384)):
            yield Work(f"softmax {t} {m}x{k}", "softmax", "softmax", f"{typed}M={m} N={k} BM=1 BN={k}", 2 * n * size,
                       lambda d=dtype, m=m, k=k: (rand(m, k, dtype=d),),
                       compiled=lambda x: F.softmax(x, -1), eager=lambda x: torch.softmax(x, -1))
        rows = f"{typed}M=16384 N=4096 BM=1 BN=4096"
        params = lambda d=dtype: (rand(16384, 4096, dtype=d), rand(4096, dtype=d), rand(4096, dtype=d))
        norm = lambda x, g, s: F.layer_norm(x, (4096,), g, s)
        yield Work(f"LayerNorm {t} 16384x4096", "layernorm", "layernorm_row", rows, 2 * n * size, params,
                   compiled=norm, eager=norm)
        norm = lambda x, g, s: F.rms_norm(x, (4096,), g)
        yield Work(f"RMSNorm {t} 16384x4096", "rmsnorm", "rmsnorm_row", rows, 2 * n * size, params,
                   compiled=norm, eager=norm)
    n = 8192 * 8192
    yield Work("exp f32 8192x8192", "elementwise", "map", "M=8192 N=8192 f=exponential", 8 * n,
               lambda: (rand(8192, 8192),), eager=torch.exp)
    yield Work("chain of six f32 8192x8192", "elementwise", "map", "M=8192 N=8192 f=six", 8 * n, lambda: ())
    yield Work("transpose f32 4096x4096", "transpose", "transpose", "M=4096 N=4096", 8 << 24,
               lambda: (rand(4096, 4096),), eager=lambda x: x.t().contiguous())
    yield Work("NCHW to NHWC f32 32x64x224x224", "relayout", "channels_last", "N=32 C=64 H=224 W=224",
               8 * 32 * 64 * 224 * 224, lambda: (rand(32, 64, 224, 224),),
               eager=lambda x: x.permute(0, 2, 3, 1).contiguous())
    yield Work("NHWC to NCHW f32 32x64x224x224", "relayout", "channels_first", "N=32 C=64 H=224 W=224",
               8 * 32 * 64 * 224 * 224, lambda: (rand(32, 224, 224, 64),),
               eager=lambda x: x.permute(0, 3, 1, 2).contiguous())
    yield Work("gather of 262144 rows of 256 f32", "gather", "gather", "R=65536 C=256 P=262144 BP=32 BC=256", 8 << 26,
               lambda: (rand(65536, 256), indices(262144, 65536)),
               compiled=lambda t, i: t[i], eager=lambda t, i: torch.index_select(t, 0, i))
    last = torch.channels_last
    sample = lambda x, p: F.grid_sample(x, p, align_corners=True, padding_mode="border")
    yield Work("bilinear, 262144 samples of 64 channels", "bilinear", "bilinear", "H=512 W=512 C=64 P=262144", 0,
               lambda: (rand(1, 64, 512, 512).to(memory_format=last), points(262144)), eager=sample)
    yield Work("bilinear, channels first in PyTorch", "bilinear", "bilinear", "H=512 W=512 C=64 P=262144", 0,
               lambda: (rand(1, 64, 512, 512), points(262144)), eager=sample)
    numbers = lambda: torch.randint(0, 256, (1 << 26,), device=DEVICE)
    yield Work("histogram of 64 M numbers in 256 bins", "histogram", "histogram", "N=67108864 B=256 BN=16384", 0,
               lambda: (numbers().float(),), files={"x": lambda: numbers().to(torch.uint32)},
               eager=lambda x: torch.histc(x, 256, 0, 256))
    yield Work("top 32 of 1024, 4096 rows", "topk", "topk", "M=4096 N=1024 K=32", 0,
               lambda: (rand(4096, 1024),), eager=lambda x: torch.topk(x, 32))
    yield Work("sums of rows f32 16384x4096", "reduce", "row_sums", "M=16384 N=4096", 4 * n,
               lambda: (rand(16384, 4096),), eager=lambda x: x.sum(1))
    yield Work("sums of columns f32 16384x4096", "reduce", "col_sums", "M=16384 N=4096", 4 * n,
               lambda: (rand(16384, 4096),), eager=lambda x: x.sum(0))
    for side in (1024, 2048, 4096):
        yield Work(f"GEMM f32 {side} cubed", "gemm", "gemm", f"M={side} N={side} K={side}", 0,
                   lambda s=side: (rand(s, s), rand(s, s)), flops=2 * side**3, eager=torch.matmul)


def timed(f, sets):
    """Median microseconds of a call, by events, over inputs in turn."""
    for args in sets:
        f(*args)
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(LAUNCHES)]
    for n, (begin, end) in enumerate(pairs):
        begin.record()
        f(*sets[n % len(sets)])
        end.record()
    torch.cuda.synchronize()
    return 1000 * statistics.median(b.elapsed_time(e) for b, e in pairs)


def copy_of(moved):
    """Microseconds of a copy that reads and writes so many bytes in all."""
    sets = [(torch.empty(moved // 2, dtype=torch.uint8, device=DEVICE), torch.empty(moved // 2, dtype=torch.uint8, device=DEVICE))
            for _ in range(2)]
    return timed(lambda a, b: b.copy_(a), sets)


def bench(ptoc, work, folder):
    """Median and least microseconds of ptoc's kernel."""
    command = [ptoc, "bench", str(ROOT / "examples" / f"{work.example}.tile"), work.kernel, "--target", "sm90", "--json", "--seconds", "0.2"]
    for define in work.defines:
        command += ["-D", define]
    for name, make in work.files.items():
        path = folder / f"{name}.npy"
        if not path.exists():
            import numpy
            numpy.save(path, make().cpu().numpy())
        command += ["--in", f"{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{work.name}: {done.stdout}{done.stderr}")
    found = json.loads(done.stdout)["run_ms"]
    return 1000 * found["median"], 1000 * found["min"]


def row(work, ptoc, rounds, folder):
    inputs = [work.inputs() for _ in range(ROTATED)] if work.ways else []
    ways = dict(work.ways)
    if work.compiled:
        ways["compiled"] = torch.compile(work.compiled, dynamic=False)
    times = {"ptoc": [], "best": [], "copy": [], **{way: [] for way in ways}}
    with torch.no_grad():
        for _ in range(rounds):
            median, best = bench(ptoc, work, folder)
            times["ptoc"].append(median)
            times["best"].append(best)
            if work.moved:
                times["copy"].append(copy_of(work.moved))
            for way, f in list(ways.items()):
                try:
                    times[way].append(timed(f, inputs))
                except Exception as e:  # what this PyTorch cannot compile has no figure
                    print(f"{work.name}, {way}: {e}")
                    del ways[way]
    del inputs
    torch.cuda.empty_cache()
    return {name: statistics.median(t) for name, t in times.items() if t}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--ptoc", default=str(ROOT / "target/release/ptoc"))
    args.add_argument("--out", default="results")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--only", default="")
    args.add_argument("--untested", action="store_true", help="do not run the test lines first")
    args = args.parse_args()
    if not args.untested:
        subprocess.run([args.ptoc, "test", str(ROOT / "examples"), "--backend", "gpu"], check=True)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    lines = [f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, microseconds", "",
             "| work | ptoc | best | copy | of the copy | PyTorch | compiled | to the best of PyTorch |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    with tempfile.TemporaryDirectory() as folder:
        for work in works():
            if not re.search(args.only, work.name):
                continue
            t = row(work, args.ptoc, args.rounds, Path(folder))
            found[work.name] = t
            peers = [t[way] for way in ("eager", "compiled") if way in t]
            cell = lambda name: f"{t[name]:.1f}" if name in t else ""
            of_copy = f"{t['copy'] / t['ptoc']:.2f}" if "copy" in t else f"{work.flops / t['ptoc'] / 1e6:.1f} TFLOP/s" if work.flops else ""
            ratio = f"{min(peers) / t['ptoc']:.2f}" if peers else ""
            lines.append(f"| {work.name} | {cell('ptoc')} | {cell('best')} | {cell('copy')} | {of_copy} | {cell('eager')} | {cell('compiled')} | {ratio} |")
            print(lines[-1], flush=True)
    (out / "gpu.md").write_text("\n".join(lines) + "\n")
    (out / "gpu.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
