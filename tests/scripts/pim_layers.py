#!/usr/bin/env python3
"""The table of layers of a language model in spec/devices.md: products of matrices and vectors, and a decoder layer, on
HBM-PIM with the matrices resident, in cycles of the simulated device.

    python3 tests/scripts/pim_layers.py target/release/ptoc [--verify]

Cycles, bounds and energies are the simulator's and the same each time. Seconds and MB are those of compiling the stream
(`ptoc emit`), on this machine. With --verify each row is also run on random numbers and held to what the kernel
ensures, which takes minutes.
"""

import json
import os
import subprocess
import sys
import tempfile

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
# File, kernel, sizes, resident inputs, vectors.
ROWS = [
    ("hbm_pim.tile", "gemv", {"M": 4096, "K": 4096}, "A"),
    ("hbm_pim.tile", "gemv", {"M": 11008, "K": 4096}, "A"),
    ("hbm_pim.tile", "gemv", {"M": 4096, "K": 11008}, "A"),
    ("hbm_pim.tile", "gemvs", {"M": 4096, "K": 4096, "B": 8}, "A"),
    ("hbm_pim.tile", "gemvs", {"M": 11008, "K": 4096, "B": 8}, "A"),
    ("hbm_pim.tile", "gemvs", {"M": 4096, "K": 11008, "B": 8}, "A"),
    ("hbm_decoder.tile", "layer", {"D": 4096, "F": 11008, "S": 512, "at": 511}, "wq,wk,wv,wo,gate,up,down"),
]
# Vendors' peak: 16 lanes of 128 units, two operations each in a step of tCCD_L.
PEAK = 128 * 16 * 2 * 250e6


def call(words):
    made = subprocess.run(words, capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{made.stderr}")
    return made.stdout


def compiled(words):
    """Seconds and MB of a call in a process of its own."""
    code = (
        "import resource, subprocess, sys, time; begin = time.time(); "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(time.time() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    seconds, megabytes = call([sys.executable, "-c", code, *words]).split()
    return float(seconds), float(megabytes)


def main():
    ptoc, verify = sys.argv[1], "--verify" in sys.argv[2:]
    print("| kernel | cycles | of them `exec` | its bound | the host | energy | of the peak | compiled |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for file, kernel, sizes, resident in ROWS:
        path = os.path.join(EXAMPLES, file)
        of = [path, kernel, "--target", "hbm-pim", "--resident", resident]
        of += [word for name, n in sizes.items() for word in ("-D", f"{name}={n}")]
        report = json.loads(call([ptoc, "run", *of, "--timing-only", "--json", "--stats"]))["stats"]["report"]
        units = report["kinds"]["exec"]
        host = report["host_baseline"]["launch_by_launch"] or report["host_baseline"]["streaming"]["cycles"]
        share = report["lane_operations"] / (report["ns"] * 1e-9) / PEAK
        with tempfile.TemporaryDirectory() as folder:
            seconds, megabytes = compiled([ptoc, "emit", *of, "--stage", "pim", "-o", os.path.join(folder, "s.pim")])
        name = f"`{kernel}` " + " ".join(f"{n}={v}" for n, v in sizes.items())
        print(
            f"| {name} | {report['cycles']:,} | {units['cycles']:,} | {units['bound']['factor']:.3f} | {host:,} "
            f"| {report['energy_pj']['total'] * 1e-9:.2f} mJ | {100 * share:.0f} % "
            f"| {seconds:.2f} s, {megabytes:.0f} MB |",
            flush=True,
        )
        if verify:
            call([ptoc, "profile", *of, "--json"])


if __name__ == "__main__":
    main()
