#!/usr/bin/env python3
"""ptoc's kernels beside what an author could use instead: one thread, interleaved, on the same data.

    python3 -m venv .venv && .venv/bin/pip install -r tests/bench/peers/requirements.txt
    cargo build --release --locked --manifest-path tests/bench/Cargo.toml
    .venv/bin/python tests/bench/peers/peers.py --out results

Everything runs on one core (CPU=0 unless set). In each round every contender works once, in an order that is drawn anew each time;
right before, its inputs are read, since some contenders share arrays and others have copies of their own: so all find them in the
caches as far as they fit. A time is processor time of the contender's process, the figure the median over the rounds. Results must agree. What is not
installed has no row. Writes `peers.md`, `peers.json` and `peers.svg` into the folder.

`--threads 2` adds a table of ptoc on two threads: the same kernels on one and on two, by the clock, in turns with fused multiply-adds
in registers, which say what a second thread is worth on this machine at that time.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

CORE = int(os.environ.get("CPU", "0"))
CORES = os.sched_getaffinity(0)
os.sched_setaffinity(0, {CORE})
for name, value in {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    # OpenBLAS does not know every AVX-512 machine by itself.
    "OPENBLAS_CORETYPE": "SkylakeX" if "avx512f" in Path("/proc/cpuinfo").read_text() else os.environ.get("OPENBLAS_CORETYPE", ""),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu",
}.items():
    if value:
        os.environ[name] = value

import numpy as np  # noqa: E402  (after the environment is set)

import cases  # noqa: E402

# Bytes that a cache fetches at once.
LINE = 64
HERE = Path(__file__).resolve().parent
ROUNDS_SECONDS, LEAST, MOST = 3.0, 7, 101
# A contender that takes longer than this for one run has as few rounds as a median needs.
SLOW, LEAST_SLOW = 2.0, 3
# What is measured on several threads too, and how often.
SCALED, SCALED_ROUNDS = ("f32 GEMM 1024x1024x1024", "attention H8 S1024 D64, f32"), 41


class Ptoc:
    """The benchmark program, which has the kernels and the peers that are Rust crates."""

    def __init__(self, program, cores=None):
        self.child = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if cores:
            os.sched_setaffinity(self.child.pid, cores)

    def ask(self, **request):
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(f"{request} ended the program")
        answer = json.loads(line)
        if "error" in answer:
            raise SystemExit(f"{request}: {answer['error']}")
        return answer


def processor_time(once):
    start = time.process_time()
    once()
    return time.process_time() - start


def read(arrays):
    """Reads arrays, so that they are in the caches as far as they fit."""
    for array in arrays:
        array.reshape(-1).view(np.uint8)[::LINE].max()


def difference(a, b):
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        raise SystemExit(f"shapes {a.shape} and {b.shape}")
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))


def compare(case, ptoc, folder):
    """One case: contenders by name with their median seconds."""
    inputs = {}
    for name, array in case.arrays.items():
        inputs[name] = str(folder / name)
        array.tofile(inputs[name])
    loaded = ptoc.ask(do="load", id="k", file=case.file, kernel=case.kernel, dims=case.dims, defs=case.defs, target=case.target, inputs=inputs)
    # Of each: what reads its inputs, and what does the work and says how long it took.
    own = lambda: ptoc.ask(do="read", id="k", arrays=list(inputs))
    contenders = {"ptoc": (own, lambda: ptoc.ask(do="run", id="k", times=1)["seconds"][0])}
    name, shape, dtype = case.output

    def stored():
        ptoc.ask(do="store", id="k", array=name, path=str(folder / "out"))
        return np.fromfile(folder / "out", dtype=dtype).reshape(shape).astype(np.float64)

    ptoc.ask(do="run", id="k", times=1)
    ours = stored()
    for crate in case.crates:
        run = lambda crate=crate: ptoc.ask(do="product", id="k", times=1, dims=case.dims, **{"with": crate})["seconds"][0]
        run()
        if (off := difference(ours, stored())) > case.tolerance:
            raise SystemExit(f"{case.name}: {crate} differs by {off:.3g} of the largest value")
        contenders[f"{crate} (crate)"] = own, run
    missing = {}
    for peer, make in case.peers.items():
        try:
            result, once, reads = make(case.arrays)
            off = difference(ours, result())
        except Exception as why:  # a library may lack the type or the operation
            missing[peer] = f"{type(why).__name__}: {str(why).splitlines()[0][:120]}" if str(why) else type(why).__name__
            continue
        if off > case.tolerance:
            raise SystemExit(f"{case.name}: {peer} differs by {off:.3g} of the largest value")
        contenders[peer] = lambda reads=reads: read(reads), lambda once=once: processor_time(once)

    first = {n: run() for n, (_, run) in contenders.items()}
    least = LEAST_SLOW if max(first.values()) > SLOW else LEAST
    rounds = max(least, min(MOST, int(ROUNDS_SECONDS / max(sum(first.values()), 1e-6))))
    times = {n: [] for n in contenders}
    order, shuffled = list(contenders), random.Random(1)
    for _ in range(rounds):
        # What the one before has left in the caches is nobody's for good.
        shuffled.shuffle(order)
        for n in order:
            inputs_read, run = contenders[n]
            inputs_read()
            times[n].append(run())
    seconds = {n: statistics.median(t) for n, t in times.items()}
    return {"case": case.name, "rounds": rounds, "seconds": seconds, "missing": missing, "compile_ms": loaded["compile_ms"]}


def scaling(case, program, threads):
    """The case on one thread and on several."""
    ptoc = Ptoc(program, CORES)
    with tempfile.TemporaryDirectory() as folder:
        inputs = {}
        for name, array in case.arrays.items():
            inputs[name] = str(Path(folder) / name)
            array.tofile(inputs[name])
        ptoc.ask(do="load", id="k", file=case.file, kernel=case.kernel, dims=case.dims, defs=case.defs, target=case.target, inputs=inputs)
    # The first round warms up.
    found = {n: v[1:] for n, v in ptoc.ask(do="scaling", id="k", threads=threads, rounds=SCALED_ROUNDS + 1).items()}
    ptoc.child.stdin.close()
    ptoc.child.wait()
    middle = {n: statistics.median(v) for n, v in found.items()}
    rates = {n: case.work / middle[n] / 1e9 for n in ("one", "many")}
    peak = statistics.median(m / o for o, m in zip(found["peak_one"], found["peak_many"]))
    ratio = statistics.median(o / m for o, m in zip(found["one"], found["many"]))
    return {"case": case.name, "threads": threads, **rates, "ratio": ratio, "peak_ratio": peak}


def scaling_markdown(rows):
    threads = rows[0]["threads"]
    out = ["", f"| work | one thread | {threads} threads | ratio | ratio of the multiply-adds in registers |", "|---|--:|--:|--:|--:|"]
    for r in rows:
        out.append(f"| {r['case']} | {r['one']:.1f} GFLOP/s | {r['many']:.1f} GFLOP/s | {r['ratio']:.2f} | {r['peak_ratio']:.2f} |")
    return "\n".join(out) + "\n"


def summary(case, row):
    """The row's figures: speed, best peer, ratio."""
    seconds = row["seconds"]
    peers = {n: s for n, s in seconds.items() if n != "ptoc"}
    best = min(peers, key=peers.get, default=None)
    row["rate"] = case.work / seconds["ptoc"] / 1e9
    row["unit"] = {"flop": "GFLOP/s", "iop": "GOP/s", "byte": "GB/s"}[case.unit]
    row["best"] = best
    row["ratio"] = peers[best] / seconds["ptoc"] if best else None
    row["goal"] = case.goal
    return row


def markdown(rows, machine):
    head = "| work | ptoc | of the limit | best peer | ratio | goal | goal, of the limit | source to code | the others, ratio |"
    out = [machine, "", head, "|---|--:|--:|---|--:|--:|--:|--:|---|"]
    for r in rows:
        others = sorted(((s / r["seconds"]["ptoc"], n) for n, s in r["seconds"].items() if n not in ("ptoc", r["best"])))
        rest = ", ".join(f"{n} {x:.2f}" for x, n in others)
        rest += "".join(f", {n}: none ({why})" for n, why in r["missing"].items())
        ratio = f"{r['ratio']:.2f}" if r["ratio"] else ""
        # What the machine would have to give for the goal.
        limited = r["of_limit"] is not None
        of_limit = f"{r['of_limit']:.2f}" if limited else ""
        needs = f"{r['of_limit'] * r['goal'] / r['ratio']:.2f}" if r["ratio"] and limited else ""
        out.append(f"| {r['case']} | {r['rate']:.1f} {r['unit']} | {of_limit} | {r['best']} | {ratio} | {r['goal']:.2f} | {needs} | {r['compile_ms']:.1f} ms | {rest} |")
    return "\n".join(out) + "\n"


def plot(rows, path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    rows = [r for r in rows if r["ratio"]][::-1]
    figure, axes = plt.subplots(figsize=(8, 0.34 * len(rows) + 1))
    colours = ["#2a7f4f" if r["ratio"] >= r["goal"] else "#b5562b" for r in rows]
    axes.barh(range(len(rows)), [r["ratio"] for r in rows], color=colours, height=0.6)
    for y, r in enumerate(rows):
        axes.plot([r["goal"]] * 2, [y - 0.4, y + 0.4], color="black", linewidth=1.5)
        axes.text(max(r["ratio"], r["goal"]) * 1.04, y, f"{r['ratio']:.2f} of {r['best']}", va="center", fontsize=7)
    axes.set_yticks(range(len(rows)), [r["case"] for r in rows], fontsize=7)
    axes.axvline(1, color="grey", linewidth=0.7)
    axes.set_xscale("log")
    axes.set_xlabel("speed as a ratio to the best peer; the black mark is the goal", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", default=".", type=Path, help="folder of the results")
    options.add_argument("--only", default="", help="cases whose name contains one of these words, separated by commas")
    options.add_argument("--threads", default=1, type=int, help="more than 1: measure products and attention on as many threads, too")
    options.add_argument("--program", default=HERE.parent / "target/release/ptoc-bench", help="the built benchmark program")
    chosen = options.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    ptoc = Ptoc(str(chosen.program))
    rows, scaled = [], []
    for case in cases.all_cases():
        if not any(word in case.name for word in chosen.only.split(",")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = summary(case, compare(case, ptoc, Path(folder)))
        limits = ptoc.ask(do="limits", bytes=int(case.work) if case.unit == "byte" else 1 << 24)
        halves = next((ty for ty in ("bf16", "f16") if ty in case.name), "f32")
        limit = limits[{"flop": halves, "iop": "i8", "byte": "copy"}[case.unit]]
        # Not every machine has a limit for every type: no dot products of i8, say.
        row["of_limit"] = row["rate"] * 1e9 / limit if limit else None
        rows.append(row)
        if chosen.threads > 1 and case.name in SCALED:
            scaled.append(scaling(case, str(chosen.program), chosen.threads))
        print(f"{row['case']}: {row['rate']:.1f} {row['unit']}, {row['ratio'] or 0:.2f} of {row['best']}", file=sys.stderr, flush=True)
    model = next((l.split(":", 1)[1].strip() for l in Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name")), "")
    versions = []
    for module in ("numpy", "torch", "jax", "onnxruntime", "halide"):
        try:
            versions.append(f"{module} {metadata.version(module)}")
        except metadata.PackageNotFoundError:
            continue
    machine = f"{model}, one core, one thread, {time.strftime('%Y-%m-%d')}; {', '.join(versions)}."
    text = markdown(rows, machine) + (scaling_markdown(scaled) if scaled else "")
    (chosen.out / "peers.md").write_text(text)
    (chosen.out / "peers.json").write_text(json.dumps({"machine": machine, "rows": rows, "threads": scaled}, indent=1) + "\n")
    plot(rows, chosen.out / "peers.svg")
    print(text)


if __name__ == "__main__":
    main()
