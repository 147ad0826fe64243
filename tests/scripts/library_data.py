"""Writes tests/language/data: inputs of tests of the standard library, and the results that numpy computes for them.

    python3 tests/scripts/library_data.py          write the files
    python3 tests/scripts/library_data.py --check  compare with the files that are there

Every result is computed in f64 from the inputs as they are stored, and rounded once. Needs numpy 2; the random streams are
those of PCG64, which numpy keeps stable.
"""

import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[1] / "language" / "data"
files = {}


def rng(name):
    """A stream for each group, so that adding one changes no other."""
    return np.random.Generator(np.random.PCG64(list(name.encode())))


def put(name, array, dtype=np.float32):
    """Stores `array` rounded to `dtype`; gives back what was stored, in f64 if it is a float."""
    stored = np.ascontiguousarray(array, dtype=dtype)
    assert name not in files, name
    files[name] = stored
    return stored.astype(np.float64) if np.issubdtype(stored.dtype, np.floating) else stored.astype(np.int64)


def epilogue():
    r = rng("epilogue")
    m, n, k = 70, 75, 33
    a = put("epilogue_a", r.standard_normal((m, k)), np.float16)
    b = put("epilogue_b", r.standard_normal((k, n)), np.float16)
    c = put("epilogue_c", r.standard_normal((m, n)))
    bias = put("epilogue_bias", r.standard_normal(n))
    rows = put("epilogue_rows", r.standard_normal(m))
    aux = put("epilogue_aux", r.standard_normal((m, n)), np.float16)
    p = a @ b
    relu = lambda x: np.maximum(x, 0)
    put("epilogue_d", relu(0.5 * p + 2.0 * c))
    put("epilogue_relu", relu(p + bias))
    s = 2.0 * p - c + bias
    put("epilogue_silu", s / (1 + np.exp(-s)))
    put("epilogue_saved", p + rows[:, None], np.float16)
    put("epilogue_rows_relu", relu(p + rows[:, None]), np.float16)
    put("epilogue_gated", (p + rows[:, None]) * aux, np.float16)
    put("epilogue_positive", relu(p))
    put("epilogue_bits", np.packbits(p > 0, axis=1, bitorder="little"), np.uint8)


def gemm():
    r = rng("gemm")
    g, m, n, k = 3, 70, 66, 40
    a = put("gemm_group_a", r.standard_normal((g, m, k)), np.float16)
    b = put("gemm_group_b", r.standard_normal((g, k, n)), np.float16)
    sizes = [put(f"gemm_{x}", v, np.int32) for x, v in (("ms", [70, 65, 0]), ("ns", [1, 66, 30]), ("ks", [40, 17, 40]))]
    d = put("gemm_group_before", np.full((g, m, n), 7.5)).copy()
    for i, (mi, ni, ki) in enumerate(zip(*sizes)):
        d[i, :mi, :ni] = a[i, :mi, :ki] @ b[i, :ki, :ni]
    put("gemm_group_d", d)
    put("gemm_order", np.argsort([0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]), np.int32)


def quant():
    r = rng("quant")
    n, k, g = 24, 256, 128
    q = r.integers(0, 16, (n, k)).astype(np.uint8)
    q[:2] = np.tile(np.arange(16), k // 16)
    q[1] = q[1, ::-1]
    put("quant_q", q, np.uint8)
    for name, order in (("shuffled", [0, 2, 4, 6, 1, 3, 5, 7]), ("plain", range(8))):
        stored = q.reshape(n, k // 8, 8)[:, :, list(order)].reshape(n, k)
        put(f"quant_{name}", stored[:, 0::2] | (stored[:, 1::2] << 4), np.uint8)
    scales = put("quant_scales", r.uniform(0.001, 0.02, (n, k // g)), np.float16)
    zeros = put("quant_zeros", r.integers(0, 16, (n, k // g)), np.uint8)
    w8 = put("quant_w8", r.integers(-128, 128, (n, k)), np.int8)
    four = (q - np.repeat(zeros, g, 1)) * np.repeat(scales, g, 1)
    eight = w8 * np.repeat(scales, g, 1)
    for rows, end in ((1, ""), (9, "9")):
        x = put(f"quant_x{end}", r.standard_normal((rows, k)), np.float16)
        put(f"quant_y{end}", x @ four.T, np.float16)
        put(f"quant_y8{end}", x @ eight.T, np.float16)
    put("quant_e4m3", np.arange(256).reshape(4, 64), np.uint8)


epilogue()
gemm()
quant()

DATA.mkdir(exist_ok=True)
if sys.argv[1:] == ["--check"]:
    wrong = [n for n, a in files.items() if not np.array_equal(np.load(DATA / f"{n}.npy"), a)]
    sys.exit(f"differ: {wrong}" if wrong else 0)
for name, array in files.items():
    np.save(DATA / f"{name}.npy", array)
