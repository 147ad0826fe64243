"""What a call costs beside the kernel: small arrays, the second call and later ones.

    python runtime/python/bench/overhead.py
"""

import argparse
import timeit

import numpy as np
import ptoc

SOURCE = """
kernel nothing(x: in f32[N], y: out f32[N]) {
    grid (i in tiles(N, 1024));
    TSTORE(y.tile(i), Vec(x.tile(i)));
}
kernel scaled(x: in f32[M, N], a: f32, y: out f32[M, N]) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
}
"""


def us(f, number=20000, repeat=7):
    f()
    return min(timeit.repeat(f, number=number, repeat=repeat)) / number * 1e6


def on_device(f, number=2000):
    """The host's part of a call: launches of one stretch fit the device's queue."""
    import torch

    def stretch():
        torch.cuda.synchronize()
        return timeit.timeit(f, number=500) / 500 * 1e6

    f()
    return min(stretch() for _ in range(number // 100))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    ptoc.set_num_threads(args.threads)
    lib = ptoc.tile(SOURCE)
    x, y = np.ones(64, np.float32), np.empty(64, np.float32)
    k, k2 = lib.nothing, lib.scaled
    rows = [("one block, out given", us(lambda: k(x, out=y)))]
    rows.append(("one block, new output", us(lambda: k(x))))
    inside = k.bench(x, out=y, seconds=0.2)
    rows.append(("  of which: checks of memory and launch", inside.median * 1e6))
    struct = us(lambda: x.__array_struct__)
    rows.append(("  of which: NumPy's array interface, each array", struct))
    rows.append(("  of which: np.empty", us(lambda: np.empty((64,), np.float32))))
    m = np.ones((64, 128), np.float32)
    n = np.empty_like(m)
    rows.append(("64 x 128, 16 blocks, out given", us(lambda: k2(m, 2.0, out=n))))
    rows.append(("  of which: checks of memory and launch", k2.bench(m, 2.0, out=n).median * 1e6))
    rows.append(("numpy: np.multiply(m, 2, out=n)", us(lambda: np.multiply(m, np.float32(2), out=n))))
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        a, b = torch.ones(64), torch.empty(64)
        rows.append(("torch, one block, out given", us(lambda: k(a, out=b))))
        rows.append(("torch, one block, new output", us(lambda: k(a))))
        rows.append(("  of which: __dlpack__(), each tensor", us(lambda: a.__dlpack__(max_version=(1, 1)))))
    if torch is not None and torch.cuda.is_available():
        a, b = torch.ones(64, device="cuda"), torch.empty(64, device="cuda")
        rows.append(("torch on CUDA, one block, out given", on_device(lambda: k(a, out=b))))
        rows.append(("torch on CUDA, one block, new output", on_device(lambda: k(a))))
        rows.append(("  torch.add(a, a, out=b)", on_device(lambda: torch.add(a, a, out=b))))
    for name, time in rows:
        print(f"{name:55} {time:7.2f} us")


if __name__ == "__main__":
    main()
