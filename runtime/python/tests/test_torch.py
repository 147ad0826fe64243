"""Tensors of PyTorch, where it is installed."""

import numpy as np
import ptoc
import pytest

torch = pytest.importorskip("torch")

SOURCE = """
kernel scale<type T = f32>(x: in T[M, N], y: out T[M, N]) {
    grid (i in tiles(M, 4), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * 2.0);
}
kernel same<type T>(x: in T[N], y: out T[N]) {
    grid (i in tiles(N, 64));
    TSTORE(y.tile(i), Vec(x.tile(i)));
}
"""


@pytest.fixture(scope="module")
def lib():
    return ptoc.tile(SOURCE, target="a5")


def test_tensors_in_and_out(lib):
    for dtype in [torch.float32, torch.float16]:
        x = torch.randn(7, 100).to(dtype)
        y = lib.scale(x)
        assert isinstance(y, torch.Tensor) and y.dtype == dtype
        assert torch.equal(y, x * 2)
        out = torch.empty_like(x)
        at = out.data_ptr()
        assert lib.scale(x, out=out) is out and out.data_ptr() == at
        assert torch.equal(out, x * 2)


def test_dtypes(lib):
    names = "bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int16 int32 float16 float32".split()
    for dtype in (getattr(torch, name) for name in names):
        x = torch.arange(100).to(dtype)
        y = lib.same(x)
        assert y.dtype == dtype
        assert torch.equal(y.view(torch.uint8), x.view(torch.uint8))
        assert torch.equal(lib.same(T=dtype)(x).view(torch.uint8), x.view(torch.uint8))


def test_slices_and_mixtures(lib):
    room = torch.randn(20, 100)
    x = room[5:9]
    assert torch.equal(lib.scale(x), x * 2)
    out = np.empty((4, 100), np.float32)
    assert lib.scale(x, out=out) is out
    np.testing.assert_array_equal(out, x.numpy() * 2)
    with pytest.raises(ptoc.ArgumentError) as e:
        lib.scale(room.T)
    assert e.value.code == "E0762"
    with pytest.raises(ptoc.ArgumentError) as e:
        lib.scale(room, out=room)
    assert e.value.code == "E0760"


def test_what_is_not_taken(lib):
    x = torch.ones(4, 4, requires_grad=True)
    with pytest.raises(TypeError, match="detach") as e:
        lib.scale(x)
    assert e.value.code == "E0763"
    assert torch.equal(lib.scale(x.detach()), torch.full((4, 4), 2.0))
    with pytest.raises(TypeError, match="float64"):
        lib.scale(torch.ones(4, 4, dtype=torch.float64))
    with pytest.raises(ptoc.DtypeError):
        lib.scale(torch.ones(4, 4, device="meta"))


def test_threads_are_those_of_torch(lib):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert ptoc.get_num_threads() == 1
        ptoc.set_num_threads(3)
        assert ptoc.get_num_threads() == 3
    finally:
        ptoc.set_num_threads(0)
        torch.set_num_threads(before)
    assert ptoc.get_num_threads() == before


OPS = """
kernel cube(x: in f32[N], a: f32, y: out f32[N]) {
    grid (i in tiles(N, 64));
    let t = Vec(x.tile(i));
    TSTORE(y.tile(i), t * t * t * a);
}
/// 3 a x^2, times the gradient of `y`.
kernel cube_grad(x: in f32[N], a: f32, grad_y: in f32[N], grad_x: out f32[N]) {
    grid (i in tiles(N, 64));
    let t = Vec(x.tile(i));
    TSTORE(grad_x.tile(i), t * t * (3.0 * a) * Vec(grad_y.tile(i)));
}
kernel grow(x: inout f32[N]) {
    grid (i in tiles(N, 64));
    TSTORE(x.tile(i), Vec(x.tile(i)) + 1.0);
}
kernel product(a: in f32[M, K], b: in f32[K, N], c: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 16));
    let acc = tile Acc<f32, i, j>;
    acc = 0.0;
    for k in tiles(K, 16) { TMATMUL_ACC(acc, acc, Left(a.tile(i, k)), Right(b.tile(k, j))); }
    TSTORE(c.tile(i, j), acc);
}
"""


@pytest.fixture(scope="module")
def ops():
    import ptoc.torch

    lib = ptoc.tile(OPS)
    return {
        "cube": ptoc.torch.op(lib.cube, backward=lib.cube_grad),
        "grow": ptoc.torch.op(lib.grow),
        "product": ptoc.torch.op(lib.product),
    }


def test_operators(ops):
    x = torch.randn(100)
    assert torch.allclose(ops["cube"](x, 2.0), 2 * x**3)
    kept = x.clone()
    ops["grow"](x)
    assert torch.equal(x, kept + 1)
    a, b = torch.randn(20, 30), torch.randn(30, 10)
    assert torch.allclose(ops["product"](a, b), a @ b, atol=1e-4)


def test_operators_have_shapes_for_tracing(ops):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        c = ops["product"](torch.empty(20, 30), torch.empty(30, 10))
        assert c.shape == (20, 10) and c.dtype == torch.float32
    torch.library.opcheck(ops["cube"], (torch.randn(70, requires_grad=True), 2.0))
    torch.library.opcheck(ops["grow"], (torch.randn(70),))


def test_operators_have_gradients(ops):
    x = torch.randn(100, requires_grad=True)
    ops["cube"](x, 2.0).sum().backward()
    assert torch.allclose(x.grad, 6 * x.detach() ** 2, rtol=1e-5)


def test_operators_under_compile(ops):
    f = torch.compile(lambda x: ops["cube"](x, 2.0) + 1, backend="eager", fullgraph=True)
    x = torch.randn(100)
    assert torch.allclose(f(x), 2 * x**3 + 1)


def test_extents_that_are_computed():
    import ptoc.torch

    lib = ptoc.tile("""
kernel twice_as_long(x: in f32[N], y: out f32[2 * N]) {
    grid (i in tiles(N, 32));
    for k in 0..i.len { y[i.start + k] = x[i.start + k]; y[N + i.start + k] = 2.0 * x[i.start + k]; }
}
kernel halves(x: in f32[M, N], y: out f32[M, N / 2]) where N % 2 == 0 {
    grid (i in tiles(M, 8));
    for r in 0..i.len { for k in 0..N / 2 { y[i.start + r, k] = x[i.start + r, k] + x[i.start + r, N / 2 + k]; } }
}
""")
    ops = {name: ptoc.torch.op(getattr(lib, name)) for name in ["twice_as_long", "halves"]}
    assert ops["twice_as_long"](torch.ones(5)).shape == (10,)

    def all_of(x):
        y = ops["halves"](ops["twice_as_long"](x).reshape(2, -1))
        return y + 1

    for dynamic in [False, True]:
        f = torch.compile(all_of, backend="eager", fullgraph=True, dynamic=dynamic)
        for n in [6, 8, 40]:
            x = torch.arange(n, dtype=torch.float32)
            torch.testing.assert_close(f(x), all_of(x))
    for name in ops:
        x = torch.rand(4, 6) if name == "halves" else torch.rand(6)
        torch.library.opcheck(ops[name], (x,), test_utils=["test_schema", "test_faketensor"])


COMPUTED = """
kernel parts<const S = 16>(x: in f32[M, N], part: out f32[M, ceil_div(N, S)]) {
    grid (i in tiles(M, 8));
    for r in 0..i.len {
        for p in 0..ceil_div(N, S) {
            var total = 0.0;
            for k in p * S..min(N, p * S + S) { total = total + x[i.start + r, k]; }
            part[i.start + r, p] = total;
        }
    }
}
kernel firsts<const S = 16>(x: in f32[N], y: out f32[Q], z: out f32[2 * Q]) where Q == ceil_div(N, S) {
    grid (i in tiles(Q, 1));
    y[i.start] = x[i.start * S];
    z[2 * i.start] = x[i.start * S];
    z[2 * i.start + 1] = 1.0;
}
kernel tuned<const S = 16 tune [8, 16]>(x: in f32[N], y: out f32[ceil_div(N, S)]) {
    grid (i in tiles(ceil_div(N, S), 1));
    y[i.start] = x[i.start * S];
}
kernel chosen<const LONG: bool = true>(x: in f32[N], y: out f32[if LONG { 2 * N } else { N }]) {
    grid (i in tiles(N, 1));
    y[i.start] = x[i.start];
    if LONG { y[N + i.start] = x[i.start]; }
}
kernel typed<type T = f16>(x: in f32[N], y: out T[N]) {
    grid (i in tiles(N, 64));
    TSTORE(y.tile(i), T(Vec(x.tile(i))));
}
kernel bounded(x: in f32[N], y: out f32[min(N, 4)]) {
    grid (i in tiles(min(N, 4), 1));
    y[i.start] = x[i.start];
}
"""


@pytest.mark.parametrize("name", ["parts", "firsts", "tuned", "chosen", "typed", "bounded"])
def test_shapes_that_tracing_computes(name):
    """By functions, equations of `where` and defaults, with sizes that are symbols; else by the compiler."""
    import ptoc.torch

    # Traces of other kernels by the same function count, too.
    torch._dynamo.reset()
    kernel = getattr(ptoc.tile(COMPUTED), name)
    op = ptoc.torch.op(kernel)
    for dynamic in [False, True]:
        f = torch.compile(lambda x: op(x), backend="eager", fullgraph=True, dynamic=dynamic)
        for n in [5, 17, 40, 64]:
            x = torch.rand(3, n) if name == "parts" else torch.rand(n)
            torch.testing.assert_close(f(x), kernel(x), rtol=0, atol=0)
    torch.library.opcheck(op, (x,), test_utils=["test_schema", "test_faketensor"])


def test_computed_shapes_stay_symbols():
    """A second length is not traced again where the extent can be told of symbols."""
    import ptoc.torch
    from torch._dynamo.testing import CompileCounter

    for name in ["firsts", "parts"]:
        torch._dynamo.reset()
        op, counted = ptoc.torch.op(getattr(ptoc.tile(COMPUTED), name)), CompileCounter()
        f = torch.compile(lambda x: op(x), backend=counted, fullgraph=True, dynamic=True)
        for n in [20, 33, 70]:
            f(torch.rand(3, n) if name == "parts" else torch.rand(n))
        assert counted.frame_count == 1, name


def test_views_that_negate(examples):
    softmax = ptoc.load(examples / "softmax.tile").softmax
    x = torch.ones(2, 3, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    with pytest.raises(ptoc.Error, match="negates"):
        softmax(x.contiguous() if not x.is_neg() else x)
    assert softmax(x.resolve_neg().contiguous()).shape == (2, 3)


def test_tensors_without_memory(examples):
    from torch._subclasses.fake_tensor import FakeTensorMode

    softmax = ptoc.load(examples / "softmax.tile").softmax
    with FakeTensorMode():
        fake = torch.ones(2, 3)
    freed = torch.ones(2, 3)
    freed.untyped_storage().resize_(0)
    for x in [fake, freed]:
        with pytest.raises(ptoc.Error, match="no memory"):
            softmax(x)


def test_names_of_gradients_are_those_of_inputs():
    lib = ptoc.tile(SOURCE)
    with pytest.raises(TypeError, match="no gradient of an input: it takes grad_x"):
        ptoc.torch.op(lib.scale, backward=lib.scale)
    x = torch.ones(4, 64, requires_grad=True)
    twice = ptoc.torch.op(lib.scale, backward=lambda saved, grad_y: {"z": grad_y})
    with pytest.raises(TypeError, match="names of inputs"):
        twice(x).sum().backward()


def test_a_name_is_one_operator():
    lib = ptoc.tile(SOURCE)
    ptoc.torch.op(lib.scale, "ptoc_tests::once")
    with pytest.raises(ValueError, match="already"):
        ptoc.torch.op(lib.same, "ptoc_tests::once")


def test_scalars_with_a_default_may_be_left_out(examples):
    attention = ptoc.load(examples / "attention.tile").attention
    op = ptoc.torch.op(attention)
    q, k, v = (torch.rand(2, 32, 64).to(torch.float16) for _ in range(3))
    torch.testing.assert_close(op(q, k, v), attention(q, k, v), rtol=0, atol=0)
    torch.testing.assert_close(op(q, k, v, 0.5), attention(q, k, v, scale=0.5), rtol=0, atol=0)


def test_classes_of_tensors(lib):
    """A parameter is a tensor, and so is what a user's class makes: results are tensors."""

    class Own(torch.Tensor):
        pass

    x = torch.randn(7, 100)
    for given in [torch.nn.Parameter(x, requires_grad=False), x.as_subclass(Own)]:
        y = lib.scale(given)
        assert type(y) is torch.Tensor and torch.equal(y, x * 2)
    with pytest.raises(TypeError, match="detach"):
        lib.scale(torch.nn.Parameter(x))
    assert torch.equal(lib.scale(torch.nn.Parameter(x).detach()), x * 2)


DEFAULTS = """
kernel power(x: in f32[N], y: out f32[N], a: f32 = 3.0, n: i32 = 2, flip: bool = false) {
    grid (i in tiles(N, 64));
    let t = Vec(x.tile(i)) * a + f32(n);
    if flip { TSTORE(y.tile(i), 0.0 - t); } else { TSTORE(y.tile(i), t); }
}
kernel power_grad(a: f32, flip: bool, grad_y: in f32[N], grad_x: out f32[N]) {
    grid (i in tiles(N, 64));
    let t = Vec(grad_y.tile(i)) * a;
    if flip { TSTORE(grad_x.tile(i), 0.0 - t); } else { TSTORE(grad_x.tile(i), t); }
}
kernel first(a: f32 = 4.0, x: in f32[N], y: out f32[N], b: f32 = a + 1.0) {
    grid (i in tiles(N, 64));
    TSTORE(y.tile(i), Vec(x.tile(i)) * a + b);
}
kernel first_grad(a: f32, grad_y: in f32[N], grad_x: out f32[N], b: f32) {
    grid (i in tiles(N, 64));
    TSTORE(grad_x.tile(i), Vec(grad_y.tile(i)) * a + b);
}
"""


def test_defaults_of_scalars_are_kept():
    lib = ptoc.tile(DEFAULTS)
    op = ptoc.torch.op(lib.power, backward=lib.power_grad)
    schema = str(op._opoverload._schema)
    assert "float? a=3." in schema and "int? n=2" in schema and "bool? flip=False" in schema
    x = torch.randn(100, requires_grad=True)
    assert torch.equal(op(x), lib.power(x.detach()))
    for given, slope in [({}, 3.0), ({"a": 0.5}, 0.5), ({"flip": True}, -3.0), ({"a": None}, 3.0)]:
        x.grad = None
        op(x, **given).sum().backward()
        assert torch.equal(x.grad, torch.full((100,), slope)), given
    f = torch.compile(lambda x: op(x) + 1, backend="eager", fullgraph=True)
    assert torch.equal(f(x), op(x) + 1)
    with pytest.raises(TypeError, match="`b` of `first_grad` needs a default"):
        ptoc.torch.op(lib.first, backward=lib.first_grad)
    first = ptoc.torch.op(lib.first)
    x = x.detach()
    assert torch.equal(first(None, x), x * 4 + 5) and torch.equal(first(2.0, x), x * 2 + 3)
    assert torch.equal(first(2.0, x, b=1.0), x * 2 + 1)


PROCESS = """
import sys
import ptoc, ptoc.torch, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, file = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
lib = ptoc.tile({source!r})
cube = ptoc.torch.op(lib.cube, backward=lib.cube_grad)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 100))

    def forward(self, x):
        return (cube(self.weight, 2.0) * x).sum()


# The data of both, of which each has one.
data = torch.randn(2, 100, generator=torch.Generator().manual_seed(7))
net = DistributedDataParallel(Net())
net(data[rank]).backward()
own = net.module.weight
want = (6 * own.detach() ** 2 * data.mean(0))
torch.testing.assert_close(own.grad, want)

# And in what the engine itself passes around.
part = cube(torch.full((5,), float(rank + 1)), 1.0)
dist.all_reduce(part)
assert part.tolist() == [9.0] * 5, part
dist.barrier()
dist.destroy_process_group()
print("process", rank, "done")
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
def test_two_processes(tmp_path):
    """Gradients through a kernel are the mean of those of both processes."""
    import subprocess
    import sys

    script = tmp_path / "process.py"
    script.write_text(PROCESS.replace("{source!r}", repr(OPS)))
    command = [sys.executable, str(script)]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        for rank in range(2)
    ]
    try:
        ended = [process.communicate(timeout=300) for process in started]
    finally:
        for process in started:
            process.kill()
    for rank, (process, (said, wrong)) in enumerate(zip(started, ended)):
        assert process.returncode == 0, wrong
        assert said == f"process {rank} done\n"
