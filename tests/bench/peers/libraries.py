#!/usr/bin/env python3
"""The standard library beside what an author could use instead: one core, interleaved, on the same data.

    cargo build --release -p ptoc-python
    PYTHONPATH=runtime/python python3 tests/bench/peers/libraries.py --out results

Programs of the library are called from Python (`runtime/python`) on numpy arrays. In each round every contender works
once, in an order that is drawn anew; a time is the clock's, the figure the median over the rounds. Results must agree.
A peer that is not installed has no row. Writes `libraries.md` and `libraries.json` into the folder.

`--c PROGRAM` is a compiled program that prints the milliseconds of its own 4-bit GEMV of 4096 x 4096, group 128, as
`.. best N ms ..`: it is run between the rounds. As it tells the best of many runs in a row, whose weights stay in the
caches, its peers are measured so, too.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

CORE = int(os.environ.get("CPU", "0"))
os.sched_setaffinity(0, {CORE})
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402  (after the environment is set)
import ptoc  # noqa: E402

SECONDS, LEAST, MOST = 4.0, 5, 41
ABSENT = 0xFFFF_FFFF


def measure(contenders):
    """Median seconds of each contender, a function without arguments that may return its own time."""

    def once(run):
        start = time.perf_counter()
        own = run()
        return own if isinstance(own, float) else time.perf_counter() - start

    first = sum(once(run) for run in contenders.values())
    first = sum(once(run) for run in contenders.values())
    rounds = max(LEAST, min(MOST, int(SECONDS / first)))
    times = {name: [] for name in contenders}
    order, shuffled = list(contenders), random.Random(1)
    for _ in range(rounds):
        shuffled.shuffle(order)
        for name in order:
            times[name].append(once(contenders[name]))
    return {name: statistics.median(t) for name, t in times.items()}


def best_in_a_row(run, times=20):
    """A contender whose time is the best of several runs, one right after the other."""

    def several():
        seconds = []
        for _ in range(times):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    return several


def close(got, expected, rtol):
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    off = np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-30)
    if off > rtol:
        raise AssertionError(f"results differ by {off:.3g} of the largest")


# ---- sorts and scans -------------------------------------------------------------------------------------------------


def argsort():
    keys = np.random.default_rng(1).integers(0, 1 << 63, 1 << 20, dtype=np.uint64)
    k = ptoc.tile("use std::sort::argsort;\nprogram order(keys: in u64[N], order: out u32[N]) { argsort(keys, order); }").order
    out = np.empty(keys.size, np.uint32)
    k(keys, out=out)
    assert (out == np.argsort(keys, kind="stable")).all()
    return {
        "ptoc": lambda: k(keys, out=out),
        "numpy, stable": lambda: np.argsort(keys, kind="stable"),
        "numpy, default": lambda: np.argsort(keys),
    }


def cumsum():
    x = np.random.default_rng(2).uniform(-1, 1, 64 << 20).astype(np.float32)
    k = ptoc.tile("use std::scan::inclusive_sum;\nprogram sums(x: in f32[N], y: out f32[N]) { inclusive_sum(x, y); }").sums
    y = np.empty_like(x)
    k(x, out=y)
    close(y, np.cumsum(x, dtype=np.float64), 1e-3)
    return {"ptoc": lambda: k(x, out=y), "copy": lambda: np.copyto(y, x), "numpy": lambda: np.cumsum(x, out=y)}


def top_k():
    x = np.random.default_rng(3).standard_normal(1 << 20, dtype=np.float32)
    k = ptoc.tile(
        "use std::sort::top_k;\nprogram best(x: in f32[N], v: out f32[M], at: out u32[M]) { top_k(x, v, at); }"
    ).best
    v, at = np.empty(1024, np.float32), np.empty(1024, np.uint32)
    k(x, v=v, at=at)

    def peer():
        found = np.argpartition(x, -1024)[-1024:]
        return found[np.argsort(-x[found], kind="stable")]

    assert (x[peer()] == v).all()

    def other(module):
        import torch

        torch.set_num_threads(1)
        t = torch.from_numpy(x)
        return lambda: torch.topk(t, 1024)

    return {"ptoc": lambda: k(x, v=v, at=at), "numpy": lambda: peer(), "torch": other}


# ---- quantised weights -----------------------------------------------------------------------------------------------

NATURAL = """
use std::quant::logical;
use std::quant::w4a16;
use std::quant::w8a16;

program bytes4<const ORDER: layout = (2, 4):(4, 1)>
              (x: in f16[M, K], W: in u8[N, K / 2], scales: in f16[N, K / 128], zeros: in u8[N, K / 128], y: out f16[M, N])
    where K % 128 == 0
{
    w4a16<ORDER = ORDER>(x, W, scales, zeros, y);
}

program bytes8(x: in f16[M, K], W: in i8[N, K], scales: in f16[N, K / 128], y: out f16[M, N])
    where K % 128 == 0
{
    w8a16(x, W, scales, y);
}

kernel natural<const BN = 64, const ORDER: layout = (2, 4):(4, 1)>
              (x: in f16[K], W: in u8[N, K / 2], scales: in f16[N, K / 128], zeros: in u8[N, K / 128], y: out f16[N])
    where K % 128 == 0
{
    grid (n in tiles(N, BN));
    let weights = logical(W, ORDER);
    let acc = tile Vec<f32, n, 1>;
    acc = 0.0;
    pipeline(stages = 3) for g in tiles(K, 128) {
        let w = f32(Vec(weights.tile(n, g)));
        let s = f32(Vec(col(scales[_, g.index]).tile(n, _)));
        let z = f32(Vec(col(zeros[_, g.index]).tile(n, _)));
        acc += s * rowsum((w - z) * f32(Vec(x.tile(g))));
    }
    TSTORE(col(y).tile(n, _), f16(acc));
}

kernel gemv(x: in f32[K], W: in f32[N, K], y: out f32[N]) {
    grid (n in tiles(N, 16));
    let acc = tile Vec<f32, n, 256>;
    acc = 0.0;
    for k in tiles(K, 256) { acc += Vec(W.tile(n, k)) * Vec(x.tile(k)); }
    TSTORE(col(y).tile(n, _), rowsum(acc));
}
"""


def weights4(order, n=4096, k=4096, group=128, seed=4):
    g = np.random.default_rng(seed)
    q = g.integers(0, 16, (n, k), dtype=np.uint8)
    scales = g.uniform(0.005, 0.02, (n, k // group)).astype(np.float16)
    zeros = g.integers(0, 16, (n, k // group), dtype=np.uint8)
    nibbles = np.empty_like(q).reshape(n, k // 8, 8)
    nibbles[:, :, order] = q.reshape(n, k // 8, 8)
    nibbles = nibbles.reshape(n, k)
    w = (q.astype(np.float64) - np.repeat(zeros, group, 1)) * np.repeat(scales.astype(np.float64), group, 1)
    return nibbles[:, ::2] | nibbles[:, 1::2] << 4, scales, zeros, w, q


# The nibble of each element of eight, and the layout that says so.
ORDERS = {"shuffled": ([0, 4, 1, 5, 2, 6, 3, 7], "(2, 4):(4, 1)"), "plain": (list(range(8)), "8:1")}


def gemv4(which):
    def case():
        order, layout = ORDERS[which]
        packed, scales, zeros, w, _ = weights4(order)
        lib = ptoc.tile(NATURAL)
        x = np.random.default_rng(5).uniform(-1, 1, 4096).astype(np.float16)
        row, y1, yn = x[None], np.empty((1, 4096), np.float16), np.empty(4096, np.float16)
        bytes4, natural, gemv = lib.bytes4(ORDER=layout), lib.natural(ORDER=layout), lib.gemv
        wf, xf, yf = w.astype(np.float32), x.astype(np.float32), np.empty(4096, np.float32)
        bytes4(row, packed, scales, zeros, out=y1)
        natural(x, packed, scales, zeros, out=yn)
        expected = w @ x.astype(np.float64)
        close(y1[0], expected, 4e-3)
        close(yn, expected, 4e-3)
        contenders = {
            "ptoc": lambda: natural(x, packed, scales, zeros, out=yn),
            "ptoc, by bytes": lambda: bytes4(row, packed, scales, zeros, out=y1),
            "ptoc, f32": lambda: gemv(xf, wf, out=yf),
        }
        contenders = {who: best_in_a_row(run) for who, run in contenders.items()}
        if C_PROGRAM:
            contenders["plain C, AVX2"] = c_program
        return contenders

    return case


def c_program():
    said = subprocess.run([C_PROGRAM], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"best ([0-9.]+) ms", said)[1]) / 1e3


def onnx_nbits(x, q, scales, zeros, bits):
    """ONNX Runtime's MatMulNBits with activations of f32, as accurate as f32."""
    import onnx
    import onnxruntime

    n, k = q.shape
    group, groups = 128, k // 128
    packed = q if bits == 8 else q[:, ::2] | q[:, 1::2] << 4
    z = zeros if bits == 8 else zeros[:, ::2] | zeros[:, 1::2] << 4
    of = lambda name, a: onnx.numpy_helper.from_array(np.ascontiguousarray(a), name)
    node = onnx.helper.make_node(
        "MatMulNBits", ["x", "w", "s", "z"], ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=group,
        accuracy_level=1)
    f32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node], "one", [onnx.helper.make_tensor_value_info("x", f32, x.shape)],
        [onnx.helper.make_tensor_value_info("y", f32, (x.shape[0], n))],
        [of("w", packed.reshape(n, groups, -1)), of("s", scales.astype(np.float32).reshape(n, groups)),
         of("z", z.reshape(n, -1))])
    model = onnx.helper.make_model(
        graph, ir_version=10,
        opset_imports=[onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {"x": x.astype(np.float32)}
    return lambda: session.run(None, feed)[0]


def gemm4(rows):
    def case():
        packed, scales, zeros, w, q = weights4(ORDERS["shuffled"][0])
        x = np.random.default_rng(6).uniform(-1, 1, (rows, 4096)).astype(np.float16)
        k, y = ptoc.tile(NATURAL).bytes4, np.empty((rows, 4096), np.float16)
        k(x, packed, scales, zeros, out=y)
        expected = x.astype(np.float64) @ w.T
        close(y, expected, 6e-3)

        def peer(_):
            run = onnx_nbits(x, q, scales, zeros, 4)
            close(run(), expected, 6e-3)
            return run

        return {"ptoc": lambda: k(x, packed, scales, zeros, out=y), "ONNX Runtime": peer}

    return case


def gemm8(rows):
    def case():
        g = np.random.default_rng(7)
        q = g.integers(-128, 128, (4096, 4096), dtype=np.int8)
        scales = g.uniform(0.0005, 0.002, (4096, 32)).astype(np.float16)
        x = g.uniform(-1, 1, (rows, 4096)).astype(np.float16)
        k, y = ptoc.tile(NATURAL).bytes8, np.empty((rows, 4096), np.float16)
        k(x, q, scales, out=y)
        expected = x.astype(np.float64) @ (q * np.repeat(scales.astype(np.float64), 128, 1)).T
        close(y, expected, 6e-3)

        def peer(_):
            unsigned = (q.astype(np.int16) + 128).astype(np.uint8)
            run = onnx_nbits(x, unsigned, scales, np.full((4096, 32), 128, np.uint8), 8)
            close(run(), expected, 6e-3)
            return run

        return {"ptoc": lambda: k(x, q, scales, out=y), "ONNX Runtime": peer}

    return case


# ---- attention and convolution ---------------------------------------------------------------------------------------


def decode():
    import ml_dtypes

    g = np.random.default_rng(8)
    shape = (8, 4096, 128)
    bf16 = lambda s: g.uniform(-1, 1, s).astype(np.float32).astype(ml_dtypes.bfloat16)
    q, k, v = bf16((8, 1, 128)), bf16(shape), bf16(shape)
    o = np.empty((8, 1, 128), ml_dtypes.bfloat16)
    run = ptoc.load(str(ROOT / "examples/attention.tile")).attention(D=128, BM=16, BN=256)
    run(q, k, v, out=o)
    read = ptoc.tile(
        "kernel top(x: in i32[M, N], y: out i32[M]) { grid (m in tiles(M, 1));"
        " let a = tile Vec<i32, m, 2048>; a = 0; for n in tiles(N, 2048) { a |= Vec(x.tile(m, n)); }"
        " TSTORE(col(y).tile(m, _), rowmax(a)); }").top
    kw, vw = (a.reshape(256, -1).view(np.int32) for a in (k, v))
    y = np.empty(256, np.int32)

    def reading():
        read(kw, out=y)
        read(vw, out=y)

    def other(_):
        import torch

        torch.set_num_threads(1)
        t = [torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)[None] for a in (q, k, v)]
        return lambda: torch.nn.functional.scaled_dot_product_attention(*t)

    return {"ptoc": lambda: run(q, k, v, out=o), "reading K and V": reading, "torch": other}


def shell(sites):
    """Voxels of a spherical shell, about so many."""
    radius = (sites / 26) ** 0.5
    side = int(2 * radius) + 6
    axis = np.arange(side) - side / 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    found = np.argwhere(np.abs(np.sqrt(x * x + y * y + z * z) - radius) < 1.0).astype(np.int32)
    coords = np.zeros((len(found), 4), np.int32)
    coords[:, 1:] = found
    return coords, side


SPARSE = """
use std::sparse::conv_masked;
use std::sparse::plan;
use std::sparse::submanifold_map;

program neighbours(coords: in i32[N, 4], map: out u32[N, 27], side: index) where N >= 1, side >= 1, side <= 1024 {
    submanifold_map(coords, map, 1, side, side, side);
}
program planned(map: in u32[N, 27], order: out u32[N], in_order: out u32[27, N],
                seg: out u32[ceil_div(N, 64) + 1], list: out u32[ceil_div(N, 64) * 27]) where N >= 1 {
    plan(map, order, in_order, seg, list);
}
program conv<type T = f32>(feats: in T[N, C], weight: in T[O, 27, C], order: in u32[N], in_order: in u32[27, N],
             seg: in u32[ceil_div(N, 64) + 1], list: in u32[ceil_div(N, 64) * 27], y: out f32[N, O]) where C >= 1 {
    conv_masked(feats, weight, none, order, in_order, seg, list, y);
}
"""


def sparse(sites, channels, dtype):
    def case():
        coords, side = shell(sites)
        n = len(coords)
        lib = ptoc.tile(SPARSE)
        g = np.random.default_rng(9)
        feats = g.uniform(-1, 1, (n, channels)).astype(dtype)
        weight = g.uniform(-1, 1, (channels, 27, channels)).astype(dtype)
        map_ = np.empty((n, 27), np.uint32)
        blocks = -(-n // 64)
        plan = [np.empty(n, np.uint32), np.empty((27, n), np.uint32), np.empty(blocks + 1, np.uint32),
                np.empty(blocks * 27, np.uint32)]
        names = ("order", "in_order", "seg", "list")
        mapping = lambda: lib.neighbours(coords, side=side, map=map_)
        planning = lambda: lib.planned(map_, **dict(zip(names, plan)))
        mapping()
        planning()
        y = np.empty((n, channels), np.float32)
        conv = lambda: lib.conv(feats, weight, *plan, out=y)
        conv()
        wide, wt = feats.astype(np.float32), weight.astype(np.float32).transpose(1, 2, 0).copy()

        def peer():
            out = np.zeros((n, channels), np.float32)
            for v in range(27):
                rows = np.flatnonzero(map_[:, v] != ABSENT)
                out[rows] += wide[map_[rows, v]] @ wt[v]
            return out

        close(y, peer(), 1e-3)
        pairs = int((map_ != ABSENT).sum())
        done = int(plan[2][-1]) * 64
        NOTES.append(f"{n} sites, {pairs} pairs, {done} in blocks of the plan; {2e-9 * pairs * channels**2:.2f} GFLOP")
        WORK.append(2.0 * pairs * channels**2)
        return {"ptoc": conv, "map": mapping, "plan": planning, "numpy": lambda: peer() is None}

    return case


CONV = """
kernel conv<const BM = 128, const BN = 256, const G = 8>
           (image: in f32[16384, 8], W: in f32[1152, 256], y: out f32[1024, 256])
{
    grid (m in tiles(1024, BM), n in tiles(256, BN));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for g in tiles(16, G) {
        let a = Mat(image.tile(tiles(16384, G * 1024)[g.index], _));
        for k in tiles(G * 72, 64) {
            let unfolded = tile Left<f32, m, k>;
            TIMG2COL(unfolded, a, 32, 32, 3, 3, 1, 1, 1, 1, m.start, k.start);
            TMATMUL_ACC(acc, acc, unfolded, Right(W.tile(tiles(1152, 64)[g.index * (G * 72 / 64) + k.index], n)));
        }
    }
    TSTORE(y.tile(m, n), acc);
}
"""


def conv2d():
    """Channels in groups of 8 lie beside a pixel; rows of the weights are group, kernel row, kernel column, channel."""
    g = np.random.default_rng(10)
    x = g.uniform(-1, 1, (128, 32, 32)).astype(np.float32)
    w = g.uniform(-1, 1, (256, 128, 3, 3)).astype(np.float32)
    image = x.reshape(16, 8, 1024).transpose(0, 2, 1).reshape(16384, 8).copy()
    weights = w.reshape(256, 16, 8, 3, 3).transpose(1, 3, 4, 2, 0).reshape(1152, 256).copy()
    k, y = ptoc.tile(CONV).conv, np.empty((1024, 256), np.float32)
    k(image, weights, out=y)

    def peer(_):
        import torch

        torch.set_num_threads(1)
        tx, tw = torch.from_numpy(x)[None], torch.from_numpy(w)
        run = lambda: torch.nn.functional.conv2d(tx, tw, padding=1)
        close(y, run()[0].reshape(256, 1024).numpy().T, 1e-4)
        return run

    WORK.append(2.0 * 1024 * 256 * 1152)
    return {"ptoc": lambda: k(image, weights, out=y), "torch": peer}


ROOT = Path(__file__).resolve().parents[3]
C_PROGRAM, NOTES, WORK = None, [], []
CASES = {
    "argsort, 1 M u64": (argsort, {"numpy, stable": 1.5, "numpy, default": 1.5}),
    "cumsum, 64 M f32": (cumsum, {"copy": 0.8}),
    "top 1024 of 1 M f32": (top_k, {"numpy": 2.0}),
    **{f"W4A16 GEMV 4096, {o}, natural": (gemv4(o), {"plain C, AVX2": 0.8, "ptoc, f32": 1.8, "ptoc, by bytes": 1 / 1.15})
       for o in ORDERS},
    **{f"W4A16 GEMM, {m} rows": (gemm4(m), {"ONNX Runtime": 1.2}) for m in (8, 32)},
    **{f"W8A16 GEMM, {m} rows": (gemm8(m), {"ONNX Runtime": 1.2}) for m in (8, 32)},
    "decode attention bf16, kv 4096, H 8, D 128": (decode, {"reading K and V": 0.85}),
    "conv2d 3x3, 128 -> 256, 32x32, TIMG2COL": (conv2d, {"torch": 1.0}),
    **{f"masked submanifold, {s // 1000}k sites, {c} channels, {np.dtype(t).name}": (sparse(s, c, t), {"numpy": 2.0})
       for s in (10_000, 100_000) for c in (64, 128) for t in (np.float32, np.float16)},
}


def compared(name, build, goals):
    NOTES.clear()
    WORK.clear()
    contenders, missing = {}, {}
    for who, run in build().items():
        if run.__code__.co_argcount == 1:  # made where its library is there
            try:
                run = run(None)
            except ImportError as why:
                missing[who] = str(why)
                continue
        contenders[who] = run
    seconds = measure(contenders)
    own = seconds["ptoc"]
    return {
        "case": name, "seconds": seconds, "missing": missing, "note": "; ".join(NOTES),
        "ratios": {who: s / own for who, s in seconds.items() if who != "ptoc"}, "goals": goals,
        "gflops": WORK[0] / own / 1e9 if WORK else None,
    }


def line(r):
    of = ", ".join(f"{who} {x:.2f}" + (f" (goal {r['goals'][who]:.2f})" if who in r["goals"] else "")
                   for who, x in r["ratios"].items())
    rate = f"{r['gflops']:.1f} GFLOP/s. " if r["gflops"] else ""
    return f"| {r['case']} | {r['seconds']['ptoc'] * 1e3:.2f} ms | {of} | {rate}{r['note']} |"


def main():
    global C_PROGRAM
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", default=".", type=Path, help="folder of the results")
    options.add_argument("--only", default="", help="cases whose name contains one of these words, separated by commas")
    options.add_argument("--c", default=None, help="a compiled 4-bit GEMV that prints its time")
    chosen = options.parse_args()
    C_PROGRAM = chosen.c
    ptoc.set_num_threads(1)
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows, wrong = [], []
    for name, (build, goals) in CASES.items():
        if not any(word in name for word in chosen.only.split(",")):
            continue
        try:
            rows.append(compared(name, build, goals))
        except (AssertionError, ptoc.Error) as why:
            wrong.append(f"{name}: {why}")
            print(wrong[-1], file=sys.stderr, flush=True)
            continue
        print(line(rows[-1]), file=sys.stderr, flush=True)
    model = next((l.split(":", 1)[1].strip() for l in Path("/proc/cpuinfo").read_text().splitlines()
                  if l.startswith("model name")), "")
    head = f"{model}, one core, {time.strftime('%Y-%m-%d')}; numpy {np.__version__}. Times of others to ptoc's.\n\n"
    text = head + "| work | ptoc | others | |\n|---|--:|---|---|\n" + "\n".join(map(line, rows)) + "\n"
    (chosen.out / "libraries.md").write_text(text)
    (chosen.out / "libraries.json").write_text(json.dumps({"machine": head, "rows": rows}, indent=1) + "\n")
    print(text)
    if wrong:
        raise SystemExit("\n".join(["wrong results:", *wrong]))


if __name__ == "__main__":
    main()
