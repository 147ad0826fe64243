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
