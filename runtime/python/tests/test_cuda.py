"""Arrays of CUDA devices: where there is a device on its memory, and everywhere what is refused before that."""

import ctypes

import numpy as np
import ptoc
import pytest

try:
    import torch

    import ptoc.torch
except ImportError:
    torch = None

SOURCE = """
kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N])
    where N >= 1
{
    grid (i in tiles(M, 4), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
}

kernel rows(x: in f32[M, N], y: out f32[M, N]) {
    grid (i in tiles(M, 1));
    let t = Vec(x.tile(i, _));
    TSTORE(y.tile(i, _), t / rowsum(t));
}

kernel grow(x: inout f32[N], by: f32 = 1.0) {
    grid (i in tiles(N, 256));
    TSTORE(x.tile(i), Vec(x.tile(i)) + by);
}

kernel pick(table: in f32[R], at: in i32[N], y: out f32[N]) {
    grid (i in tiles(N, 8));
    for k in 0..i.len { y[i.start + k] = table[index(at[i.start + k])]; }
}

kernel turned(x: in f32[(M, N):(1, M)], y: out f32[M, N]) {
    grid (i in tiles(M, 4), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)));
}

kernel product<type T>(a: in T[M, K], b: in T[K, N], c: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 16));
    let acc = tile Acc<f32, i, j>;
    acc = 0.0;
    for k in tiles(K, 16) { TMATMUL_ACC(acc, acc, Left(a.tile(i, k)), Right(b.tile(k, j))); }
    TSTORE(c.tile(i, j), acc);
}

program chain(x: in f32[M, N], y: out f32[M, N]) {
    let t = tensor f32[M, N];
    let u = tensor f32[M, N] fill 2.0;
    scale(x, 2.0, t);
    scale(t, 3.0, u);
    scale(u, 0.5, t);
    rows(t, y);
}

program counted(x: in f32[M, N], y: out f32[M, N]) {
    let t = tensor f32[M, N];
    scale(x, 2.0, t);
    scale(x, t[0, 0], y);
}
"""


@pytest.fixture(scope="module")
def lib():
    return ptoc.tile(SOURCE, name="cuda.tile")


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Exported:
    """An array that says that it is on a device, at an address that nobody may use."""

    def __init__(self, shape, device=(2, 0), address=1 << 40):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.tensor = Tensor(address, (ctypes.c_int32 * 2)(*device), len(shape), 2, 32, 1, self.shape, None, 0)

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def refused(code, call, *words):
    with pytest.raises(ptoc.Error) as caught:
        call()
    assert caught.value.code == code, str(caught.value)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_arrays_of_several_devices(lib):
    x = Exported((4, 8))
    refused("E0763", lambda: lib.scale(x, 2.0, out=np.ones((4, 8), np.float32)), "`x` is on cuda:0", "`y` on the host")
    other = Exported((4, 8), device=(2, 1), address=1 << 41)
    refused("E0763", lambda: lib.scale(x, 2.0, out=other), "`y` on cuda:1", "x.to(y.device)")
    refused("E0763", lambda: lib.scale(Exported((4, 8), device=(8, 0)), 2.0), "a Metal device")


def test_what_works_on_the_host(lib):
    x, y = Exported((4, 8)), Exported((4, 8), address=1 << 41)
    refused("E0763", lambda: lib.scale.bench(x, 2.0, out=y), "`bench`", "cuda:0")
    refused("E0763", lambda: lib.scale.verify(x, 2.0), "`verify`")
    refused("E0763", lambda: lib.scale(x, 2.0), "made by PyTorch or CuPy", "out=")
    refused("E0766", lambda: lib.scale(Exported((4, 8), address=(1 << 40) + 4), 2.0, out=y), "16 bytes")
    refused("E0760", lambda: lib.scale(x, 2.0, out=Exported((4, 8), address=(1 << 40) + 16)), "share 112 bytes")
    interp = ptoc.tile(SOURCE, name="cuda.tile", backend="interp")
    refused("E0763", lambda: interp.scale(x, 2.0, out=y), "`interp`", "sm90")
    pim = ptoc.tile(SOURCE, name="cuda.tile", target="hbm-pim")
    refused("E0763", lambda: pim.scale(x, 2.0, out=y), "hbm-pim")


has_device = torch is not None and torch.cuda.is_available()
on_device = pytest.mark.skipif(not has_device, reason="there is no CUDA device, or no PyTorch for it")


@pytest.mark.skipif(has_device, reason="there is a CUDA device")
def test_no_device(lib):
    x, y = Exported((4, 8)), Exported((4, 8), address=1 << 41)
    refused("E0731", lambda: lib.scale(x, 2.0, out=y), "no NVIDIA driver")


FAKE = """
import sys
sys.path.insert(0, {tests!r})
import conftest
import ptoc, test_cuda
from test_cuda import Exported, SOURCE

lib = ptoc.tile(SOURCE, name="cuda.tile")
x, y = Exported((64, 256)), Exported((64, 256), address=1 << 41)
{what}
"""


def with_a_fake_driver(tmp_path, what, mode=""):
    """Runs calls in a process whose driver has memory and launches nothing. Returns what it was asked for."""
    import os
    import subprocess
    import sys
    from pathlib import Path

    tests = Path(__file__).resolve().parent
    source = tests.parent.parent.parent / "compiler" / "ptoc" / "tests" / "gpu" / "fake_cuda.c"
    library, log = tmp_path / "libcuda.so.1", tmp_path / "log"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "FAKE_CUDA": mode, "FAKE_CUDA_LOG": str(log)}
    script = FAKE.format(tests=str(tests), what=what)
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    return ran, log.read_text().split("\n") if log.exists() else []


needs_cc = pytest.mark.skipif(__import__("shutil").which("cc") is None, reason="there is no C compiler")


@needs_cc
def test_what_a_call_asks_of_the_driver(tmp_path):
    ran, log = with_a_fake_driver(tmp_path, "lib.scale(x, 2.0, out=y)\nlib.scale(x, 3.0, out=y)")
    assert ran.returncode == 0, ran.stderr
    # Nothing is allocated, copied or waited for, and the code is loaded once.
    words = [line.split()[0] for line in log if line]
    assert words == ["push", "load", "launch", "pop", "push", "launch", "pop"], log


@needs_cc
def test_a_program_on_a_fake_device(tmp_path):
    ran, log = with_a_fake_driver(tmp_path, "lib.chain(x, out=y)")
    assert ran.returncode == 0, ran.stderr
    words = [line.split()[0] for line in log if line]
    assert words.count("launch") == 4 and words.count("load") == 2
    assert "alloc-on-stream 131072" in log and "fill 65536" in log
    assert words.count("alloc-on-stream") == words.count("free-on-stream") and "wait" not in words


@needs_cc
def test_checks_are_read_and_not_recorded(tmp_path):
    what = "lib.pick(Exported((10,)), Exported((4,), address=1 << 41), out=Exported((4,), address=1 << 42))"
    what = what.replace("Exported((4,), address=1 << 41)", "test_cuda.integers(4)")
    ran, log = with_a_fake_driver(tmp_path, what)
    assert ran.returncode == 0, ran.stderr
    assert "to-host-on-stream 8" in log and "wait 0" in log
    ran, log = with_a_fake_driver(tmp_path, what, mode="capturing")
    assert "error[E0732]" in ran.stderr and "CUDA graph" in ran.stderr
    ran, _ = with_a_fake_driver(tmp_path, "lib.scale(x, 2.0, out=y)", mode="capturing")
    assert ran.returncode == 0, ran.stderr


@needs_cc
def test_what_goes_wrong_with_a_driver(tmp_path):
    scale = "lib.scale(x, 2.0, out=y)"
    for mode, what, words in [
        ("none", scale, "E0731"),
        ("old", scale, "E0731"),
        ("ampere", scale, "E0731"),
        ("refused", scale, "E0732"),
        ("resources", scale, "E0732"),
        ("memory", "lib.chain(x, out=y)", "E0732"),
        ("", "lib.counted(x, out=y)", "E0901"),
    ]:
        ran, _ = with_a_fake_driver(tmp_path, what, mode)
        assert ran.returncode != 0 and f"error[{words}]" in ran.stderr, (mode, ran.stderr)
        assert "panicked" not in ran.stderr


XLA = """
from ptoc import _ptoc
import xla_frame
from xla_frame import number

_, cuda, _ = _ptoc._xla_handlers()
matrix = ("float32", (64, 256))
at = [(1 + n) << 40 for n in range(3)]


def site(kernel, *given):
    return _ptoc._xla_site(kernel, list(given))[0]


def fails(words, *call, **how):
    given, message = xla_frame.call(*call, **how)
    assert given == xla_frame.MADE and all(word in message for word in words), (given, message)


scale = site(lib.scale, matrix, ("float32", ()), None)
rows = site(lib.rows, matrix, None)
grow = site(lib.grow, ("float32", (256,)), ("float32", ()))
x, y = (at[0], *matrix), (at[1], *matrix)
"""


@needs_cc
def test_what_jax_asks_of_the_driver(tmp_path):
    """XLA's handler for CUDA, called as XLA calls it, on a driver that launches nothing."""
    call = "assert xla_frame.call(cuda, rows, [x], [y]) == (None, None)\n"
    ran, log = with_a_fake_driver(tmp_path, XLA + 2 * call)
    assert ran.returncode == 0, ran.stderr
    # Launches are started, and not waited for; the code is loaded once.
    assert [line.split()[0] for line in log if line] == ["push", "load", "launch", "pop", "push", "launch", "pop"], log
    (tmp_path / "log").unlink()
    # A number is in the device's memory, where what is in the stream may yet write it.
    call = "assert xla_frame.call(cuda, scale, [x, number(2.5)], [y]) == (None, None)\n"
    ran, log = with_a_fake_driver(tmp_path, XLA + call)
    assert ran.returncode == 0, ran.stderr
    words = [line.split()[0] for line in log if line]
    assert "to-host-on-stream 4" in log and f"wait {0x4D}" in log, log
    assert words.index("wait") < words.index("launch") and words.count("launch") == words.count("wait") == 1, log
    (tmp_path / "log").unlink()
    call = "v = (at[0], 'float32', (256,))\nassert xla_frame.call(cuda, grow, [v, number(1.0)], [v]) == (None, None)\n"
    call += "fails(['two addresses'], cuda, grow, [v, number(1.0)], [(at[1], 'float32', (256,))])"
    ran, log = with_a_fake_driver(tmp_path, XLA + call)
    assert ran.returncode == 0 and sum(line.startswith("launch") for line in log) == 1, (ran.stderr, log)


@needs_cc
def test_what_jax_is_told(tmp_path):
    what = """
fails(["E0763", "update JAX"], cuda, rows, [x], [y], api_size=72)
fails(["E0766", "16 bytes"], cuda, rows, [(at[0] + 4, *matrix)], [y])
fails(["E0760", "share"], cuda, rows, [x], [x])
fails(["another number"], cuda, rows, [x], [])
fails(["another process"], cuda, 1 << 40, [x], [y])
assert xla_frame.call(cuda, rows, [x], [y], stream=None) == (xla_frame.NO_STREAM, None)
fails(["E0763", "another device"], _ptoc._xla_handlers()[2], rows, [x], [y])
"""
    ran, _ = with_a_fake_driver(tmp_path, XLA + what)
    assert ran.returncode == 0, ran.stderr
    for mode, code in [("none", "E0731"), ("ampere", "E0731"), ("refused", "E0732"), ("resources", "E0732")]:
        ran, _ = with_a_fake_driver(tmp_path, XLA + f"fails(['error[{code}]'], cuda, rows, [x], [y])", mode)
        assert ran.returncode == 0, (mode, ran.stderr)


def integers(n):
    made = Exported((n,), address=1 << 41)
    made.tensor.code = 0
    return made


def bits(t):
    return t.detach().cpu().contiguous().view(torch.uint8)


def same(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    assert torch.equal(bits(got), bits(want))


@on_device
def test_the_bits_of_the_host(lib):
    for shape in [(64, 256), (37, 129), (1, 1), (300, 4096)]:
        x = torch.randn(shape)
        same(lib.scale(x.cuda(), 2.5), lib.scale(x, 2.5))
        same(lib.rows(x.cuda()), lib.rows(x))
        same(lib.chain(x.cuda()), lib.chain(x))
    for dtype in [torch.float32]:
        a, b = torch.randn(48, 33).to(dtype), torch.randn(33, 70).to(dtype)
        same(lib.product(a.cuda(), b.cuda()), lib.product(a, b))
    x = torch.randn(40, 24)
    same(lib.turned(x.cuda().T), lib.turned(x.T))
    assert lib.scale(torch.ones(4, 8).cuda(), 1.0).device.type == "cuda"


@on_device
def test_outputs_are_where_they_are_given(lib):
    x = torch.randn(32, 64, device="cuda")
    y = torch.zeros_like(x)
    at = y.data_ptr()
    assert lib.scale(x, 2.0, out=y) is y and y.data_ptr() == at
    torch.testing.assert_close(y, x * 2.0)
    before = x[0].clone()
    v = x[0].clone()
    lib.grow(v)
    torch.testing.assert_close(v, before + 1.0)


@on_device
def test_the_current_stream(lib):
    """Work on a stream waits for what is in it, and not for the host."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.ones(4096, 4096, device="cuda")
        for _ in range(20):
            x = x @ torch.full((4096, 4096), 1.0 / 4096, device="cuda")
        y = lib.scale(x, 3.0)
        z = y + 1.0
    stream.synchronize()
    torch.testing.assert_close(z, torch.full_like(z, 4.0), rtol=1e-3, atol=1e-3)


@on_device
def test_a_check_that_fails(lib):
    table = torch.arange(10, dtype=torch.float32, device="cuda")
    at = torch.tensor([1, 2, 3, 99], dtype=torch.int32, device="cuda")
    with pytest.raises(ptoc.Error) as caught:
        lib.pick(table, at)
    assert "99" in str(caught.value)
    at[3] = 9
    torch.testing.assert_close(lib.pick(table, at).cpu(), torch.tensor([1.0, 2.0, 3.0, 9.0]))


@on_device
def test_what_the_host_would_have_to_do(lib):
    x = torch.ones(8, 8, device="cuda")
    refused("E0901", lambda: lib.counted(x), "between launches")
    refused("E0762", lambda: lib.scale(x.T[:, :4], 2.0), "contiguous")
    refused("E0766", lambda: lib.grow(torch.ones(9, device="cuda")[1:]), "16 bytes")


@on_device
def test_a_graph(lib):
    x = torch.randn(64, 256, device="cuda")
    y = torch.empty_like(x)
    lib.rows(x, out=y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        lib.rows(x, out=y)
    x.copy_(torch.rand_like(x) + 1.0)
    graph.replay()
    torch.cuda.synchronize()
    same(y, lib.rows(x))


@on_device
def test_an_operator(lib):
    op = ptoc.torch.op(lib.rows, "ptoc_tests::rows_on_cuda")
    x = torch.rand(64, 256, device="cuda") + 1.0
    same(torch.compile(lambda v: op(v) * 2.0)(x), lib.rows(x) * 2.0)


@on_device
def test_threads(lib):
    import threading

    x = [torch.randn(128, 512, device="cuda") for _ in range(8)]
    want = [lib.rows(t) for t in x]
    got = [None] * 8

    def work(n):
        for _ in range(20):
            got[n] = lib.rows(x[n])

    all_threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    torch.cuda.synchronize()
    for a, b in zip(got, want):
        same(a, b)
