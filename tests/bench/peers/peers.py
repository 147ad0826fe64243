#!/usr/bin/env python3
"""ptoc's kernels beside what an author could use instead: one thread, interleaved, on the same data.

    python3 -m venv .venv && .venv/bin/pip install -r tests/bench/peers/requirements.txt
    cargo build --release --locked --manifest-path tests/bench/Cargo.toml
    .venv/bin/python tests/bench/peers/peers.py --out results

Everything runs on one core (CPU=0 unless set). In each round every contender works once, in an order that is drawn anew each time;
right before, its inputs are read, since some contenders share arrays and others have copies of their own: so all find them in the
caches as far as they fit. A time is processor time of the contender's process, the figure the median over the rounds. Results must agree. What is not
installed has no row. Writes `peers.md`, `peers.json` and `peers.svg` into the folder.

`--threads 1,2,4,8,16` measures all rows on so many threads instead, each number in a process of its own that has as many cores, and
writes `threads.md`, `threads.json` and `threads.svg`: times are the clock's, after a pause, in which the threads of others go to
sleep, and a run that wakes one's own.
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
# None: one thread, by processor time.
THREADS = int(os.environ["PEERS_THREADS"]) if "PEERS_THREADS" in os.environ else None
if THREADS:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
elif "--threads" not in sys.argv:
    os.sched_setaffinity(0, {CORE})
MANY = str(THREADS or 1)
for name, value in {
    "OMP_NUM_THREADS": MANY, "OPENBLAS_NUM_THREADS": MANY, "MKL_NUM_THREADS": MANY,
    # Cycles that threads of OpenBLAS look for work, as a power of two: by default they would do so through the turns of others.
    "OPENBLAS_THREAD_TIMEOUT": "20",
    # OpenBLAS does not know every AVX-512 machine by itself.
    "OPENBLAS_CORETYPE": "SkylakeX" if "avx512f" in Path("/proc/cpuinfo").read_text() else os.environ.get("OPENBLAS_CORETYPE", ""),
    # On several threads XLA takes as many as there are cores.
    "XLA_FLAGS": "" if THREADS else "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu",
}.items():
    if value:
        os.environ[name] = value

import numpy as np  # noqa: E402  (after the environment is set)

import cases  # noqa: E402

# Bytes that a cache fetches at once.
LINE = 64
HERE = Path(__file__).resolve().parent
ROUNDS_SECONDS, LEAST, MOST = float(os.environ.get("SECONDS", "3")), 7, 101
# A contender that takes longer than this for one run has as few rounds as a median needs, and so have those that take longer together
# than all rounds are to.
SLOW, LEAST_SLOW = 2.0, 3
# By the clock: before a turn, longer than the threads of a library look for work.
PAUSE = 0.02


class Ptoc:
    """The benchmark program, which has the kernels and the peers that are Rust crates."""

    def __init__(self, program):
        self.child = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

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


def timed(once):
    """Seconds of one run: processor time on one thread, the clock's on many, right behind a run that wakes them."""
    clock = time.perf_counter if THREADS else time.process_time
    if THREADS:
        once()
    start = clock()
    once()
    return clock() - start


def read(arrays):
    """Reads arrays, so that they are in the caches as far as they fit."""
    for array in arrays:
        array.reshape(-1).view(np.uint8)[::LINE].max()


def difference(a, b):
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        raise SystemExit(f"shapes {a.shape} and {b.shape}")
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))


def compare(case, ptoc, folder, without):
    """One case: contenders by name with their median seconds."""
    inputs = {}
    for name, array in case.arrays.items():
        inputs[name] = str(folder / name)
        array.tofile(inputs[name])
    loaded = ptoc.ask(do="load", id="k", file=case.file, kernel=case.kernel, dims=case.dims, defs=case.defs, target=case.target, inputs=inputs)
    # Of each: what reads its inputs, and what does the work and says how long it took.
    own = lambda: ptoc.ask(do="read", id="k", arrays=list(inputs))
    how = {"times": 2, "threads": THREADS} if THREADS else {"times": 1}
    contenders = {"ptoc": (own, lambda: ptoc.ask(do="run", id="k", **how)["seconds"][-1])}
    name, shape, dtype = case.output

    def stored():
        ptoc.ask(do="store", id="k", array=name, path=str(folder / "out"))
        return np.fromfile(folder / "out", dtype=dtype).reshape(shape).astype(np.float64)

    ptoc.ask(do="run", id="k", times=1)
    ours = stored()
    missing = {}
    for crate in () if THREADS else case.crates:
        run = lambda crate=crate: ptoc.ask(do="product", id="k", times=1, dims=case.dims, **{"with": crate})["seconds"][0]
        run()
        if (off := difference(ours, stored())) > case.tolerance:
            missing[f"{crate} (crate)"] = f"its result is {off:.1g} of the largest value away"
            continue
        contenders[f"{crate} (crate)"] = own, run
    for peer, make in case.peers.items():
        if peer in without:
            continue
        try:
            result, once, reads = make(case.arrays)
            off = difference(ours, result())
        except Exception as why:  # a library may lack the type or the operation
            missing[peer] = f"{type(why).__name__}: {str(why).splitlines()[0][:120]}" if str(why) else type(why).__name__
            continue
        if off > case.tolerance:
            missing[peer] = f"its result is {off:.1g} of the largest value away"
            continue
        contenders[peer] = lambda reads=reads: read(reads), lambda once=once: timed(once)

    first = {n: run() for n, (_, run) in contenders.items()}
    least = LEAST_SLOW if max(first.values()) > SLOW or sum(first.values()) > ROUNDS_SECONDS else LEAST
    rounds = max(least, min(MOST, int(ROUNDS_SECONDS / max(sum(first.values()), 1e-6))))
    times = {n: [] for n in contenders}
    order, shuffled = list(contenders), random.Random(1)
    for _ in range(rounds):
        # What the one before has left in the caches is nobody's for good.
        shuffled.shuffle(order)
        for n in order:
            inputs_read, run = contenders[n]
            if THREADS:
                time.sleep(PAUSE)
            else:
                inputs_read()
            times[n].append(run())
    seconds = {n: statistics.median(t) for n, t in times.items()}
    return {"case": case.name, "rounds": rounds, "seconds": seconds, "missing": missing, "compile_ms": loaded["compile_ms"]}


def summary(case, row):
    """The row's figures: speed, best peer, ratio."""
    seconds = row["seconds"]
    peers = {n: s for n, s in seconds.items() if n != "ptoc"}
    best = min(peers, key=peers.get, default=None)
    row["rate"] = case.work / seconds["ptoc"] / 1e9
    row["unit"] = {"flop": "GFLOP/s", "iop": "GOP/s", "byte": "GB/s"}[case.unit]
    row["best"] = best
    row["peer"] = case.work / peers[best] / 1e9 if best else None
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

    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import NullLocator

    reached, below = "#2a7f4f", "#b5562b"
    rows = [r for r in rows if r["ratio"]][::-1]
    figure, axes = plt.subplots(figsize=(8, 0.34 * len(rows) + 1.2))
    colours = [reached if r["ratio"] >= r["goal"] else below for r in rows]
    axes.barh(range(len(rows)), [r["ratio"] for r in rows], color=colours, height=0.6)
    for y, r in enumerate(rows):
        axes.plot([r["goal"]] * 2, [y - 0.4, y + 0.4], color="black", linewidth=1.5)
        axes.text(max(r["ratio"], r["goal"]) * 1.04, y, f"{r['ratio']:.2f} of {r['best']}", va="center", fontsize=7)
    axes.set_yticks(range(len(rows)), [r["case"] for r in rows], fontsize=7)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.axvline(1, color="grey", linewidth=0.7)
    most = max(max(r["ratio"], r["goal"]) for r in rows) * 1.6
    axes.set_xscale("log")
    axes.set_xlim(0.25, max(most, 4))
    ticks = [t for t in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if t <= most]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks], fontsize=7)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("speed as a ratio to the best peer, each step twice as fast", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        handles=[Patch(color=reached, label="goal reached"), Patch(color=below, label="below the goal"),
                 Line2D([], [], color="black", linewidth=1.5, label="goal"), Line2D([], [], color="grey", linewidth=0.7, label="the best peer")],
        loc="upper center", ncols=4, fontsize=7, frameon=False,
    )
    figure.tight_layout(rect=(0, 0, 1, 0.97))
    figure.savefig(path)


def on_threads(chosen):
    """All rows on one number of threads after the other: what each process has written, by the number."""
    found = {}
    for threads in (int(n) for n in chosen.threads.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            own = [sys.executable, __file__, "--out", folder, "--only", chosen.only, "--without", chosen.without, "--program", str(chosen.program)]
            subprocess.run(own, env={**os.environ, "PEERS_THREADS": str(threads)}, check=True, stdout=subprocess.DEVNULL)
            found[threads] = json.loads((Path(folder) / "peers.json").read_text())
    return found


def by_threads(found):
    """Of each case the rows by the number of threads."""
    rows = {}
    for threads, one in found.items():
        for row in one["rows"]:
            rows.setdefault(row["case"], {})[threads] = row
    return rows


def efficiency(rows, value="rate"):
    """Speed on each number of threads, as a share of so many times that on the least."""
    least = min(rows)
    return {n: row[value] / rows[least][value] * least / n for n, row in rows.items() if row[value] and rows[least][value]}


def threads_markdown(found):
    numbers = sorted(found)
    heads = " | ".join(f"{n} thread" + "s" * (n > 1) for n in numbers)
    span = f"{min(numbers)} to {max(numbers)}"
    heads += f" | of the limit | efficiency, {span} | the limit's, {span}"
    out = [found[max(numbers)]["machine"], "", f"| work | {heads} | best peers |"]
    out.append("|---|" + "--:|" * (len(numbers) + 3) + "---|")
    for case, rows in by_threads(found).items():
        ratio = lambda r: f", {r['ratio']:.2f}" if r["ratio"] else ""
        cells = [f"{rows[n]['rate']:.0f} {rows[n]['unit']}{ratio(rows[n])}" if n in rows else "" for n in numbers]
        most = max(rows)
        share = lambda value: f"{efficiency(rows, value).get(most, float('nan')):.2f}"
        of_limit = rows[most]["of_limit"]
        shares = [f"{of_limit:.2f}" if of_limit else "", share("rate"), share("limit")]
        best = ", ".join(dict.fromkeys(r["best"] for r in rows.values() if r["best"]))
        left_out = dict.fromkeys(f"{n}: none ({why})" for r in rows.values() for n, why in r["missing"].items())
        out.append(f"| {case} | {' | '.join(cells + shares)} | {'; '.join([best, *left_out])} |")
    return "\n".join(out) + "\n"


def threads_plot(found, path):
    """A curve of efficiency for each case, beside that of the limit."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    cases_ = by_threads(found)
    columns = 4
    lines = -(-len(cases_) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(11, 1.9 * lines), sharex=True, sharey=True, squeeze=False)
    for axis in axes.flat[len(cases_):]:
        axis.set_visible(False)
    for axis, (case, rows) in zip(axes.flat, cases_.items()):
        for value, label, style in (("rate", "ptoc", "-o"), ("limit", "limit", "--"), ("peer", "best peer", "-")):
            curve = efficiency(rows, value)
            if curve:
                axis.plot(list(curve), list(curve.values()), style, label=label, markersize=3, linewidth=1)
        axis.set_title(case, fontsize=7)
        axis.set_xscale("log", base=2)
        axis.set_xticks(sorted(found), [str(n) for n in sorted(found)], fontsize=7)
        axis.set_ylim(0, 1.25)
        axis.tick_params(labelsize=7)
        axis.grid(linewidth=0.3)
    axes.flat[0].legend(fontsize=6)
    figure.supxlabel("threads", fontsize=8)
    figure.supylabel("speed as a share of so many times that of one thread", fontsize=8)
    figure.tight_layout()
    figure.savefig(path)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", default=".", type=Path, help="folder of the results")
    options.add_argument("--only", default="", help="cases whose name contains one of these words, separated by commas")
    options.add_argument("--without", default="", help="peers to leave out, separated by commas")
    options.add_argument("--threads", default="", help="numbers of threads, separated by commas: measure on these instead")
    options.add_argument("--program", default=HERE.parent / "target/release/ptoc-bench", help="the built benchmark program")
    chosen = options.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.threads:
        found = on_threads(chosen)
        text = threads_markdown(found)
        (chosen.out / "threads.md").write_text(text)
        (chosen.out / "threads.json").write_text(json.dumps(found, indent=1) + "\n")
        threads_plot(found, chosen.out / "threads.svg")
        print(text)
        return
    ptoc = Ptoc(str(chosen.program))
    rows = []
    for case in cases.all_cases():
        if not any(word in case.name for word in chosen.only.split(",")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = summary(case, compare(case, ptoc, Path(folder), chosen.without.split(",")))
        limits = ptoc.ask(do="limits", bytes=int(case.work) if case.unit == "byte" else 1 << 24, threads=THREADS or 1)
        halves = next((ty for ty in ("bf16", "f16") if ty in case.name), "f32")
        limit = limits[{"flop": halves, "iop": "i8", "byte": "copy"}[case.unit]]
        # Not every machine has a limit for every type: no dot products of i8, say.
        row["limit"] = limit / 1e9 if limit else None
        row["of_limit"] = row["rate"] * 1e9 / limit if limit else None
        rows.append(row)
        print(f"{row['case']}: {row['rate']:.1f} {row['unit']}, {row['ratio'] or 0:.2f} of {row['best']}", file=sys.stderr, flush=True)
    model = next((l.split(":", 1)[1].strip() for l in Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name")), "")
    versions = []
    for module in ("numpy", "torch", "jax", "onnxruntime", "halide"):
        try:
            versions.append(f"{module} {metadata.version(module)}")
        except metadata.PackageNotFoundError:
            continue
    cores = f"{THREADS} cores" if THREADS else "one core, one thread"
    machine = f"{model}, {cores}, {time.strftime('%Y-%m-%d')}; {', '.join(versions)}."
    text = markdown(rows, machine)
    (chosen.out / "peers.md").write_text(text)
    (chosen.out / "peers.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    if not THREADS:
        plot(rows, chosen.out / "peers.svg")
    print(text)


if __name__ == "__main__":
    main()
