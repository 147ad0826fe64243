"""The work that is compared: ptoc's kernel, its arrays, and the same in other libraries.

A peer is a function from the arrays to three things: a function without arguments that returns the result, one that does the work
once, and the arrays that it was given, as numpy sees them. What a library prepares once for many calls (compilation, packed weights)
happens in the first call; what it packed then is its own.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
# Of every library, and of ptoc: what `--threads` of peers.py gives to its process.
THREADS = int(os.environ.get("PEERS_THREADS", "1"))
# Products that one thread takes seconds for, and rows that no cache of a server holds.
LARGE = [(4096, 4096, 4096, 1.0)] if "PEERS_THREADS" in os.environ else []
HUGE = [16384] if LARGE else []


@dataclass
class Case:
    """One row of the table."""

    name: str
    file: str
    kernel: str
    dims: dict
    arrays: dict
    """Inputs by the kernel's names."""
    output: tuple
    """Name, shape and dtype of the result."""
    work: float
    """Operations, or bytes that must be read and written."""
    unit: str
    """`flop`, `iop` or `byte`."""
    goal: float
    """Least ratio to the best peer."""
    peers: dict = field(default_factory=dict)
    crates: tuple = ()
    """Rust crates that compute the same f32 product."""
    defs: dict = field(default_factory=dict)
    """Static parameters, and every number that the kernel takes: the benchmark program does not compute defaults."""
    target: str = "a2a3"
    """Whose memories the kernel is compiled for."""
    tolerance: float = 1e-4
    """Largest difference from the first peer's result, relative to the largest magnitude in it."""


def random(shape, dtype, seed):
    g = np.random.default_rng(seed)
    if np.issubdtype(np.dtype(dtype), np.integer):
        return g.integers(-128, 128, shape, dtype=dtype)
    return g.uniform(-1, 1, shape).astype(np.float32).astype(dtype)


# Arrays in the libraries' own form, without a copy where that is possible.


def as_torch(x):
    import torch

    if x.dtype == BF16:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def from_torch(t):
    import torch

    return t.float().numpy() if t.dtype in (torch.bfloat16, torch.float16) else t.numpy()


def torch_call(function, *names, prepare=None):
    """Eager PyTorch on the named arrays."""

    def make(arrays):
        import torch

        torch.set_num_threads(THREADS)
        given = [as_torch(arrays[n]) for n in names]
        call = function(torch, *given) if prepare else None

        def once():
            with torch.inference_mode():
                return call() if call else function(torch, *given)

        return lambda: from_torch(once())[...], once, [arrays[n] for n in names]

    return make


def torch_compiled(function, *names):
    """The same through torch.compile, which sees as many threads."""

    def make(arrays):
        import torch

        torch.set_num_threads(THREADS)
        given = [as_torch(arrays[n]) for n in names]
        compiled = torch.compile(lambda *a: function(torch, *a), dynamic=False)

        def once():
            with torch.inference_mode():
                return compiled(*given)

        return lambda: from_torch(once()), once, [arrays[n] for n in names]

    return make


def jax_call(function, *names):
    def make(arrays):
        import jax

        given = [jax.device_put(arrays[n]) for n in names]
        compiled = jax.jit(lambda *a: function(jax, *a)).lower(*given).compile()

        def once():
            return compiled(*given).block_until_ready()

        # jax has copies of its own.
        return lambda: np.asarray(once()).astype(np.float32), once, [np.asarray(g) for g in given]

    return make


def numpy_call(function, *names):
    def make(arrays):
        given = [arrays[n] for n in names]

        def once():
            return function(np, *given)

        return once, once, given

    return make


def onnx_call(node, names, kinds, **attributes):
    """ONNX Runtime on a model of one node."""

    def make(arrays):
        import onnx
        import onnxruntime

        of = lambda x: onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
        inputs = [onnx.helper.make_tensor_value_info(n, of(arrays[n]), arrays[n].shape) for n in names]
        output = onnx.helper.make_tensor_value_info("out", kinds, None)
        graph = onnx.helper.make_graph([onnx.helper.make_node(node, names, ["out"], **attributes)], "one", inputs, [output])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feed = {n: arrays[n] for n in names}

        def once():
            return session.run(None, feed)[0]

        return once, once, list(feed.values())

    return make


def halide_rows(make, *names):
    """Halide: rows one by one, 16 columns side by side, reductions in 64 parts; what `make` computes of a row stays in cache."""

    def peer(arrays):
        import halide as hl

        given = [arrays[n] for n in names]
        m, n = given[0].shape
        x, y, part = hl.Var("x"), hl.Var("y"), hl.Var("part")
        params = [hl.ImageParam(hl.Float(32), a.ndim) for a in given]
        for param, a in zip(params, given):
            param.set(hl.Buffer(a))
        stages = []

        def stage(value):
            f = hl.Func()
            f[x, y] = value
            stages.append((f, x))
            return f

        def fold(start, join, value):
            f, r = hl.Func(), hl.RDom([(0, n)])
            f[y] = start
            f[y] = join(f[y], value(r.x))
            outer, inner = hl.RVar(), hl.RVar()
            partial = f.update().split(r.x, outer, inner, 64).rfactor(inner, part)
            stages.extend([(partial, part), (f, None)])
            return f

        out = hl.Func()
        out[x, y] = make(hl, params, x, y, n, stage, fold)
        out.vectorize(x, 16)
        for f, lanes in stages:
            f.compute_at(out, y)
            if lanes is not None:
                f.vectorize(lanes, 16)
                if f.has_update_definition():
                    f.update().vectorize(lanes, 16)
        result = np.empty((m, n), np.float32)
        to = hl.Buffer(result)
        out.compile_jit()

        def once():
            out.realize(to)
            return result

        return once, once, given

    return peer


FLOAT, INT32 = 1, 6  # onnx.TensorProto


def products():
    for m, n, k, goal in [
        (512, 512, 512, 1.0), (1024, 1024, 1024, 1.0), (2048, 2048, 2048, 1.0),
        (1000, 777, 333, 1.0), (4096, 64, 64, 1.0), (8, 4096, 4096, 1.4), *LARGE,
    ]:
        yield Case(
            f"f32 GEMM {m}x{n}x{k}", "gemm.tile", "gemm", dict(M=m, N=n, K=k),
            dict(A=random((m, k), np.float32, 1), B=random((k, n), np.float32, 2)), ("C", (m, n), np.float32),
            2.0 * m * n * k, "flop", goal,
            peers={
                "numpy (OpenBLAS)": numpy_call(lambda np, a, b: a @ b, "A", "B"),
                "PyTorch": torch_call(lambda t, a, b: a @ b, "A", "B"),
                "oneDNN (PyTorch, packed weights)": torch_call(prepacked, "A", "B", prepare=True),
                "JAX": jax_call(lambda j, a, b: a @ b, "A", "B"),
                "ONNX Runtime": onnx_call("MatMul", ["A", "B"], FLOAT),
            },
            crates=("gemm", "faer", "matrixmultiply"),
        )
    for size in (1024, 2048, *(m for m, *_ in LARGE)):
        cube = dict(M=size, N=size, K=size)
        yield Case(
            f"bf16 GEMM {size}", "gemm.tile", "gemm_f16", cube,
            dict(A=random((size, size), BF16, 1), B=random((size, size), BF16, 2)), ("C", (size, size), np.float32),
            2.0 * size**3, "flop", 1.0, defs=dict(T="bf16"), tolerance=2e-2,
            peers={
                "PyTorch": torch_call(lambda t, a, b: a @ b, "A", "B"),
                "oneDNN (PyTorch, packed weights)": torch_call(prepacked, "A", "B", prepare=True),
                "JAX": jax_call(lambda j, a, b: j.numpy.matmul(a, b, preferred_element_type=j.numpy.float32), "A", "B"),
            },
        )
        yield Case(
            f"i8 GEMM {size}", "gemm.tile", "gemm_i8", cube,
            dict(A=random((size, size), np.int8, 1), B=random((size, size), np.int8, 2)), ("C", (size, size), np.int32),
            2.0 * size**3, "iop", 1.0, tolerance=0.0,
            peers={
                "PyTorch": torch_call(lambda t, a, b: t._int_mm(a, b), "A", "B"),
                "ONNX Runtime": onnx_call("MatMulInteger", ["A", "B"], INT32),
            },
        )
    yield Case(
        "f16 GEMM 2048", "gemm.tile", "gemm_f16", dict(M=2048, N=2048, K=2048),
        dict(A=random((2048, 2048), np.float16, 1), B=random((2048, 2048), np.float16, 2)), ("C", (2048, 2048), np.float32),
        2.0 * 2048**3, "flop", 6.0, tolerance=2e-2,
        peers={"PyTorch": torch_call(lambda t, a, b: a @ b, "A", "B")},
    )


def prepacked(torch, a, b):
    """oneDNN's product; it packs the weights once."""
    linear = torch.nn.Linear(b.shape[0], b.shape[1], bias=False, dtype=b.dtype)
    with torch.no_grad():
        linear.weight.copy_(b.T)
    from torch.utils import mkldnn

    packed = mkldnn.to_mkldnn(linear.float().eval(), b.dtype)
    return lambda: packed(a)


def epilogue():
    def layer(torch, a, b, bias):
        return torch.nn.functional.gelu(torch.addmm(bias, a, b))

    yield Case(
        "linear + bias + GELU(erf) 512", "gemm.tile", "gemm_bias_act", dict(M=512, N=512, K=512),
        dict(A=random((512, 512), np.float32, 1), B=random((512, 512), np.float32, 2), bias=random((512,), np.float32, 3)),
        ("C", (512, 512), np.float32), 2.0 * 512**3, "flop", 1.15, defs=dict(act="gelu_erf"),
        peers={
            "PyTorch": torch_call(layer, "A", "B", "bias"),
            "torch.compile": torch_compiled(layer, "A", "B", "bias"),
            "JAX": jax_call(lambda j, a, b, c: j.nn.gelu(a @ b + c, approximate=False), "A", "B", "bias"),
        },
    )


def rows():
    def halide_softmax(hl, p, x, y, n, stage, fold):
        top = fold(hl.f32(-3.4e38), hl.max, lambda r: p[0][r, y])
        e = stage(hl.exp(p[0][x, y] - top[y]))
        total = fold(hl.f32(0), lambda a, b: a + b, lambda r: e[r, y])
        return e[x, y] / total[y]

    def halide_norm(hl, p, x, y, n, stage, fold):
        add = lambda a, b: a + b
        mean = fold(hl.f32(0), add, lambda r: p[0][r, y] / n)
        d = stage(p[0][x, y] - mean[y])
        spread = fold(hl.f32(0), add, lambda r: d[r, y] * d[r, y] / n)
        return d[x, y] / hl.sqrt(spread[y] + hl.f32(1e-5)) * p[1][x] + p[2][x]

    def halide_chain(hl, p, x, y, n, stage, fold):
        v = p[0][x, y]
        return hl.sqrt(hl.max((v * 1.5 + 0.25) * v - 0.125, 0.0))

    for m, goal in ((256, 1.1), (4096, 1.8), *((m, 1.8) for m in HUGE)):
        yield Case(
            f"softmax {m}x4096", "softmax.tile", "softmax", dict(M=m, N=4096), dict(x=random((m, 4096), np.float32, 1)),
            ("y", (m, 4096), np.float32), 8.0 * m * 4096, "byte", goal, defs=dict(BN="1024"), tolerance=1e-5,
            peers={
                "PyTorch": torch_call(lambda t, x: t.softmax(x, 1), "x"),
                "torch.compile": torch_compiled(lambda t, x: t.softmax(x, 1), "x"),
                "JAX": jax_call(lambda j, x: j.nn.softmax(x, 1), "x"),
                "ONNX Runtime": onnx_call("Softmax", ["x"], FLOAT, axis=1),
                "Halide": halide_rows(halide_softmax, "x"),
            },
        )

    def norm(torch, x, gain, shift):
        return torch.nn.functional.layer_norm(x, x.shape[1:], gain, shift)

    def jax_norm(jax, x, gain, shift):
        mean = x.mean(1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(x.var(1, keepdims=True) + 1e-5) * gain + shift

    yield Case(
        "LayerNorm 256x4096", "layernorm.tile", "layernorm", dict(M=256, N=4096),
        dict(x=random((256, 4096), np.float32, 1), gain=random((4096,), np.float32, 2), shift=random((4096,), np.float32, 3)),
        ("y", (256, 4096), np.float32), 8.0 * 256 * 4096, "byte", 1.5, defs=dict(eps="1e-5", BN="768"),
        peers={
            "PyTorch": torch_call(norm, "x", "gain", "shift"),
            "torch.compile": torch_compiled(norm, "x", "gain", "shift"),
            "JAX": jax_call(jax_norm, "x", "gain", "shift"),
            "ONNX Runtime": onnx_call("LayerNormalization", ["x", "gain", "shift"], FLOAT, axis=1),
            "Halide": halide_rows(halide_norm, "x", "gain", "shift"),
        },
    )

    def chain(of, x):
        return of.sqrt(of.clip((x * 1.5 + 0.25) * x - 0.125, 0.0, None))

    for m in (256, *(m for m, *_ in LARGE), *HUGE):
        yield Case(
            f"chain of 6 operations {m}x4096", "elementwise.tile", "map", dict(M=m, N=4096),
            dict(x=random((m, 4096), np.float32, 1)), ("y", (m, 4096), np.float32), 8.0 * m * 4096, "byte", 1.3,
            defs=dict(f="six"),
            peers={
                "PyTorch": torch_call(chain, "x"),
                "torch.compile": torch_compiled(chain, "x"),
                "JAX": jax_call(lambda j, x: chain(j.numpy, x), "x"),
                "numpy": numpy_call(chain, "x"),
                "Halide": halide_rows(halide_chain, "x"),
            },
        )


def attention():
    # From the tune lists, by the machine's vectors: f32 and bf16, all keys and causal.
    wide = "avx512f" in Path("/proc/cpuinfo").read_text()
    best = [(32, 256), (32, 64), (32, 256), (32, 128)] if wide else [(64, 128), (64, 64), (64, 128), (64, 64)]
    kinds = [(ty, causal) for ty in ("f32", "bf16") for causal in (False, True)]
    blocks = {kind: dict(BM=str(m), BN=str(n)) for kind, (m, n) in zip(kinds, best)}
    for name, dtype, goal in (("f32", np.float32, 2.0), ("bf16", BF16, 2.5)):
        for causal in (False, True):
            shape = (8, 1024, 64)
            arrays = {n: random(shape, dtype, s) for s, n in enumerate("QKV")}
            flops = 4.0 * 8 * 1024 * 1024 * 64 * (0.5 if causal else 1.0)

            def sdpa(torch, q, k, v, causal=causal):
                return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]

            yield Case(
                f"attention H8 S1024 D64, {name}{', causal' if causal else ''}", "attention.tile", "attention",
                dict(H=8, M=1024, N=1024), arrays, ("O", shape, dtype), flops, "flop", goal,
                defs=dict(T=name, CAUSAL=str(causal).lower(), scale="0.125", **blocks[name, causal]),
                target="a2a3" if causal else "a5", tolerance=1e-4 if name == "f32" else 2e-2,
                peers={"PyTorch": torch_call(sdpa, "Q", "K", "V"), "torch.compile": torch_compiled(sdpa, "Q", "K", "V")},
            )


def movement():
    n, c, h, w = 32, 64, 56, 56
    size = 8.0 * n * c * h * w
    x = random((n, c, h, w), np.float32, 1)
    yield Case(
        "NCHW -> NHWC 32x64x56x56", "relayout.tile", "channels_last", dict(N=n, C=c, H=h, W=w), dict(x=x),
        ("y", (n, h, w, c), np.float32), size, "byte", 1.7, tolerance=0.0,
        peers={
            "numpy": numpy_call(lambda np, x: np.ascontiguousarray(x.transpose(0, 2, 3, 1)), "x"),
            "PyTorch": torch_call(lambda t, x: x.permute(0, 2, 3, 1).contiguous(), "x"),
            "torch.compile": torch_compiled(lambda t, x: x.permute(0, 2, 3, 1).contiguous(), "x"),
            "JAX": jax_call(lambda j, x: x.transpose(0, 2, 3, 1), "x"),
        },
    )
    shape = (32, 48, 64, 40)
    x = random(shape, np.float32, 1)
    for order in ((3, 2, 1, 0), (2, 0, 3, 1), (1, 0, 3, 2)):
        to = tuple(shape[o] for o in order)
        strides = [0] * 4
        for at, o in enumerate(order):
            strides[o] = int(np.prod(to[at + 1:]))
        layout = lambda s: f"({','.join(map(str, shape))}):({','.join(map(str, s))})"
        row = [int(np.prod(shape[i + 1:])) for i in range(4)]
        yield Case(
            f"permutation {''.join(map(str, order))} of 32x48x64x40", "../stdlib/rearrange.tile", "rearrange", {},
            dict(src=x), ("dst", to, np.float32), 8.0 * x.size, "byte", 3.0, tolerance=0.0,
            defs=dict(SRC=layout(row), DST=layout(strides)),
            peers={
                "numpy": numpy_call(lambda np, x, order=order: np.ascontiguousarray(x.transpose(order)), "src"),
                "PyTorch": torch_call(lambda t, x, order=order: x.permute(order).contiguous(), "src"),
                "JAX": jax_call(lambda j, x, order=order: x.transpose(order), "src"),
            },
        )


def sampling():
    h, w, c, p = 128, 128, 64, 16384
    arrays = dict(img=random((h, w, c), np.float32, 1), x=random((p,), np.float32, 2), y=random((p,), np.float32, 3))

    def grid(torch, img, x, y):
        image = img.permute(2, 0, 1)[None].to(memory_format=torch.channels_last)
        points = torch.stack((x, y), 1)[None, None]
        f = torch.nn.functional.grid_sample
        return lambda: f(image, points, padding_mode="border", align_corners=True)[0, :, 0].T

    yield Case(
        "bilinear samples, channel last, 16384 x 64", "bilinear.tile", "bilinear", dict(H=h, W=w, C=c, P=p), arrays,
        ("samples", (p, c), np.float32), 4.0 * p * c * 5, "byte", 4.0,
        peers={"PyTorch": torch_call(grid, "img", "x", "y", prepare=True)},
    )


def all_cases():
    for group in (products, epilogue, rows, attention, movement, sampling):
        yield from group()
