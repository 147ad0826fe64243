"""Writes examples/data: inputs of the examples' test lines, and the results that numpy computes for them.

    python3 tests/scripts/example_data.py          write the files
    python3 tests/scripts/example_data.py --check  compare with the files that are there

Every result is computed in f64 (integers: exactly) from the inputs as they are stored, and rounded once to the dtype of
the kernel's output. Needs numpy 2; the random streams are those of PCG64, which numpy keeps stable.
"""

import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
files = {}


def rng(name):
    """A stream for each example, so that adding one changes no other."""
    return np.random.Generator(np.random.PCG64(list(name.encode())))


def put(name, array, dtype=np.float32):
    """Stores `array` rounded to `dtype`; gives back what was stored, in f64 if it is a float."""
    stored = np.ascontiguousarray(array, dtype=dtype)
    assert name not in files, name
    files[name] = stored
    return stored.astype(np.float64) if np.issubdtype(stored.dtype, np.floating) else stored.astype(np.int64)


def add():
    r = rng("add")
    def spread():
        return r.choice([-1.0, 1.0], (33, 65)) * r.uniform(1, 2, (33, 65)) * 2.0 ** r.integers(-14, 15, (33, 65))

    # 24 bits and exponents that differ by at most 28: f64 holds the sum exactly, and it is rounded once.
    a, b = put("add_a", spread()), put("add_b", spread())
    put("add_c", a + b)


def elementwise():
    r = rng("elementwise")
    x = np.concatenate([r.uniform(-4, 4, 60), r.uniform(-80, 80, 59), [-0.5, 1.0, 1e-7, -1e-7, 87.0]])
    x = put("elementwise_x", x.reshape(4, 31))
    put("elementwise_exp", np.exp(x))
    put("elementwise_recip", 1.0 / x)
    put("elementwise_silu", x / (1.0 + np.exp(-x)))
    special = [1.0, 2.0, 1.0 + 2**-23, 1.0 - 2**-24]
    pos = np.concatenate([10.0 ** r.uniform(-30, 30, 60), r.uniform(0.5, 2.0, 60), special])
    pos = put("elementwise_pos", pos.reshape(4, 31))
    put("elementwise_log", np.log(pos))
    put("elementwise_sqrt", np.sqrt(pos))
    put("elementwise_rsqrt", 1.0 / np.sqrt(pos))


def pingpong():
    r = rng("pingpong")
    a = put("pingpong_a", r.uniform(-1, 1, (33, 270)), np.float16)
    b = put("pingpong_b", r.uniform(-1, 1, (270, 17)), np.float16)
    put("pingpong_c", a @ b)


def softmax():
    r = rng("softmax")
    x = r.normal(size=(17, 129)) * 3
    x[0] = 5.0  # all equal
    x[1] += 200.0  # exp(x) alone would overflow
    x[2, 7] = 60.0  # one element has almost everything
    x = put("softmax_x", x)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    put("softmax_y", e / e.sum(axis=1, keepdims=True))


def layernorm():
    r = rng("layernorm")
    x = r.normal(size=(9, 257))
    x[3:6] += 100.0  # a mean far from 0
    x[8] = 2.5  # no spread at all
    x = put("layernorm_x", x)
    gain = put("layernorm_gain", r.uniform(0.5, 1.5, 257))
    shift = put("layernorm_shift", r.normal(size=257))
    mean = x.mean(axis=1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    put("layernorm_y", (x - mean) / np.sqrt(var + 1e-5) * gain + shift)


def rmsnorm():
    r = rng("rmsnorm")
    x = put("rmsnorm_x", r.normal(size=(9, 130)))
    skip = put("rmsnorm_skip", r.normal(size=(9, 130)))
    gain = put("rmsnorm_gain", r.uniform(0.5, 1.5, 130))
    put("rmsnorm_y", x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * gain)
    h = x + skip
    put("rmsnorm_h", h)
    put("rmsnorm_yh", h / np.sqrt((h * h).mean(axis=1, keepdims=True) + 1e-6) * gain)


def gemm():
    r = rng("gemm")
    a = put("gemm_k4096_a", r.uniform(-1, 1, (8, 4096)))
    b = put("gemm_k4096_b", r.uniform(-1, 1, (4096, 8)))
    put("gemm_k4096_c", a @ b)

    a = put("gemm_a", r.uniform(-1, 1, (33, 70)))
    b = put("gemm_b", r.uniform(-1, 1, (70, 65)))
    bias = put("gemm_bias", r.uniform(-1, 1, 65))
    put("gemm_c", a @ b)
    put("gemm_relu_c", np.maximum(a @ b + bias, 0.0))

    a = put("gemm_f16_a", r.uniform(-1, 1, (33, 70)), np.float16)
    b = put("gemm_f16_b", r.uniform(-1, 1, (70, 65)), np.float16)
    put("gemm_f16_c", a @ b)

    a = put("gemm_i8_a", r.integers(-128, 128, (33, 257)), np.int8)
    b = put("gemm_i8_b", r.integers(-128, 128, (257, 17)), np.int8)
    put("gemm_i8_c", a @ b, np.int32)


def gemv():
    r = rng("gemv")
    a = put("gemv_a", r.uniform(-1, 1, (33, 257)))
    x = put("gemv_x", r.uniform(-1, 1, 257))
    put("gemv_y", a @ x)
    a = put("gemv_a16", r.uniform(-1, 1, (65, 129)), np.float16)
    x = put("gemv_x16", r.uniform(-1, 1, 129), np.float16)
    put("gemv_y16", a @ x)


def transpose():
    x = put("transpose_x", rng("transpose").normal(size=(65, 33)))
    put("transpose_y", x.T)


def reduce():
    r = rng("reduce")
    x = put("reduce_x", r.normal(size=(33, 129)))
    put("reduce_rows", x.sum(axis=1))
    put("reduce_cols", x.sum(axis=0))
    put("reduce_range", x.max(axis=1) - x.min(axis=1))


def histogram():
    r = rng("histogram")
    x = put("histogram_x", r.integers(0, 64, size=3000), np.uint32)
    start = put("histogram_start", r.integers(-5, 5, size=64), np.int32)
    put("histogram_count", start + np.bincount(x, minlength=64), np.int32)


def attention():
    r = rng("attention")
    heads, m, n, d = 2, 33, 50, 64
    q = put("attention_q", r.normal(size=(heads, m, d)), np.float16)
    k = put("attention_k", r.normal(size=(heads, n, d)), np.float16)
    v = put("attention_v", r.normal(size=(heads, n, d)), np.float16)
    score = q @ k.transpose(0, 2, 1) / np.sqrt(d)

    def mix(score):
        e = np.exp(score - score.max(axis=2, keepdims=True))
        return e / e.sum(axis=2, keepdims=True) @ v

    put("attention_full_o", mix(score), np.float16)
    future = np.arange(n)[None, :] > np.arange(m)[:, None] + n - m
    put("attention_causal_o", mix(np.where(future, -np.inf, score)), np.float16)


def bilinear():
    r = rng("bilinear")
    h, w, c, points = 7, 9, 6, 65
    img = put("bilinear_img", r.normal(size=(h, w, c)))
    x, y = r.uniform(-1.5, 1.5, points), r.uniform(-1.5, 1.5, points)
    x[:5], y[:5] = [-1, 1, 1, -1, 0], [-1, 1, -1, 1, 0]  # the corners, exactly, and the centre
    x[5], y[5] = 1e9, -1e9  # far away
    x, y = put("bilinear_x", x), put("bilinear_y", y)
    u, v = (x + 1) / 2 * (w - 1), (y + 1) / 2 * (h - 1)

    def sample(u, v):
        out = np.zeros((points, c))
        u0, v0 = np.floor(u), np.floor(v)
        for dv in (0, 1):
            for du in (0, 1):
                i, j = v0 + dv, u0 + du
                weight = (1 - np.abs(v - i)) * (1 - np.abs(u - j))
                inside = (i >= 0) & (i < h) & (j >= 0) & (j < w)
                at = np.clip(i, 0, h - 1).astype(int), np.clip(j, 0, w - 1).astype(int)
                out += np.where(inside, weight, 0.0)[:, None] * img[at]
        return out

    put("bilinear_clamp", sample(np.clip(u, 0, w - 1), np.clip(v, 0, h - 1)))
    put("bilinear_zero", sample(u, v))


def gather():
    r = rng("gather")
    table = put("gather_table", r.normal(size=(11, 33)))
    row = put("gather_row", r.integers(0, 11, 17), np.int32)
    put("gather_y", table[row])
    holes = put("gather_holes", r.integers(-4, 11, 17), np.int32)
    put("gather_zero_y", np.where(holes[:, None] >= 0, table[np.maximum(holes, 0)], 0.0))


def topk():
    r = rng("topk")
    x = r.integers(-50, 50, (5, 700)).astype(np.float64)  # many are equal
    x[2] = r.normal(size=700)
    x = put("topk_x", x)
    places = np.argsort(-x, axis=1, kind="stable")[:, :16]
    put("topk_values", np.take_along_axis(x, places, 1))
    put("topk_places", places, np.uint32)


def rope():
    r = rng("rope")
    x = put("rope_x", r.normal(size=(21, 64)))
    angle = np.arange(21)[:, None] / 10000.0 ** (np.arange(32) / 32)[None, :]
    c, s = put("rope_c", np.cos(angle)), put("rope_s", np.sin(angle))
    pairs = np.empty_like(x)
    pairs[:, ::2] = x[:, ::2] * c - x[:, 1::2] * s
    pairs[:, 1::2] = x[:, ::2] * s + x[:, 1::2] * c
    put("rope_pairs", pairs)
    low, high = x[:, :32], x[:, 32:]
    put("rope_halves", np.concatenate([low * c - high * s, low * s + high * c], axis=1))


def int8_gemm():
    r = rng("int8")
    a, b = put("int8_a", r.integers(-128, 128, (70, 130)), np.int8), put("int8_b", r.integers(-128, 128, (130, 40)), np.int8)
    rows, cols = put("int8_rows", r.uniform(0.001, 0.1, 70)), put("int8_cols", r.uniform(0.001, 0.1, 40))
    put("int8_c", (a @ b) * rows[:, None] * cols[None, :])


def hadamard():
    r = rng("hadamard")
    # Whole numbers, so that every order of additions is exact.
    x = put("hadamard_x", r.integers(-1000, 1000, (19, 64)))
    h = np.ones((1, 1))
    for _ in range(6):
        h = np.block([[h, h], [h, -h]])
    put("hadamard_y", x @ h)


def radix_sort():
    r = rng("radix")
    x = put("radix_x", r.integers(0, 2**32, (4, 500)), np.uint32)
    put("radix_y", np.sort(x, axis=1), np.uint32)


def ffn():
    r = rng("ffn")
    x = put("ffn_x", r.normal(size=(37, 90)), np.float16)
    w, v = put("ffn_w", r.normal(size=(90, 70)) / 9, np.float16), put("ffn_v", r.normal(size=(90, 70)) / 9, np.float16)
    gate = x @ w
    put("ffn_y", gate / (1 + np.exp(-gate)) * (x @ v))


def convolution():
    r = rng("convolution")
    image = put("convolution_image", r.normal(size=(2, 2 * 14 * 14, 16)), np.float16)
    w = put("convolution_w", r.normal(size=(2 * 9 * 16, 40)) / 17, np.float16)
    padded = np.zeros((2, 2, 16, 16, 16))
    padded[:, :, 1:15, 1:15] = image.reshape(2, 2, 14, 14, 16)
    weights = w.reshape(2, 3, 3, 16, 40)
    y = np.zeros((2, 14, 14, 40))
    for i in range(3):
        for j in range(3):
            y += np.einsum("bgyxc,gcn->byxn", padded[:, :, i : i + 14, j : j + 14], weights[:, i, j])
    put("convolution_y", y.reshape(2, 196, 40))


def main():
    for example in (add, elementwise, pingpong, softmax, layernorm, rmsnorm, gemm, gemv, transpose, reduce, histogram, attention,
                    bilinear, gather, topk, rope, int8_gemm, hadamard, radix_sort, ffn, convolution):
        example()
    wrong = []
    if "--check" in sys.argv[1:]:
        for name, array in files.items():
            path = DATA / f"{name}.npy"
            there = np.load(path) if path.exists() else None
            same = there is not None and there.dtype == array.dtype and there.shape == array.shape
            if same and array.dtype.kind == "f":
                # libm and BLAS may differ by a rounding between machines.
                rtol = 2e-3 if array.itemsize == 2 else 1e-6
                same = np.allclose(there, array, rtol=rtol, atol=1e-7)
            elif same:
                same = np.array_equal(there, array)
            if not same:
                wrong.append(path.name)
        wrong += [p.name for p in DATA.glob("*.npy") if p.stem not in files]
        print("differ: " + ", ".join(wrong) if wrong else f"{len(files)} files agree")
    else:
        DATA.mkdir(parents=True, exist_ok=True)
        for name, array in files.items():
            np.save(DATA / f"{name}.npy", array)
        print(f"{len(files)} files, {sum(a.nbytes for a in files.values())} bytes")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
