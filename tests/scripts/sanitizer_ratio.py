#!/usr/bin/env python3
"""Times `ptoc run --sanitize` against plain `ptoc run`: one thread, one launch in a fresh process, the best of nine, in turns.

    python3 tests/scripts/sanitizer_ratio.py target/release/ptoc

Run from the root of the repository. Prints both times of the launch alone (`run_ms` of `--stats`) and their ratio, which is to stay
below 20. A fresh process counts first touches of memory in both, as whoever runs a kernel once does.
"""

import re
import subprocess
import sys

RUNS = 9
CASES = [
    "gemm.tile gemm -D M=512 -D N=512 -D K=512",
    "softmax.tile softmax -D M=4096 -D N=1024",
    "attention.tile attention -D H=4 -D M=1024 -D N=1024",
    "transpose.tile transpose -D M=4096 -D N=1024",
    "add.tile add_auto -D M=4096 -D N=1024",
    "gather.tile gather -D R=20000 -D C=512 -D P=20000",
    "gather.tile gather -D R=1000 -D C=64 -D P=4000",
]


def run_ms(ptoc, case, *flags):
    """Milliseconds of one launch."""
    words = case.split()
    command = [ptoc, "run", f"examples/{words[0]}", *words[1:], "--random", "1", "--threads", "1", "--stats", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"run_ms\s+([\d.]+)", done.stdout + done.stderr)
    if done.returncode or not found:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return float(found.group(1))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{'kernel':52} {'plain ms':>9} {'watched':>9} {'ratio':>6}")
    for case in CASES:
        pairs = [(run_ms(sys.argv[1], case), run_ms(sys.argv[1], case, "--sanitize")) for _ in range(RUNS)]
        plain, watched = (min(times) for times in zip(*pairs))
        print(f"{case:52} {plain:9.2f} {watched:9.2f} {watched / plain:6.1f}")


main()
