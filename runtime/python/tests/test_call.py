"""Calls on NumPy arrays: results, shapes that are bound, and memory that is used in place."""

import array
import subprocess
import sys
import tempfile

import numpy as np
import ptoc
import pytest

SCALE = """
/// y = a x
kernel scale<type T = f32, const BN = 64>(x: in T[M, N], a: T, y: out T[M, N]) {
    grid (i in tiles(M, 4), j in tiles(N, BN));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
}

kernel add(a: in f32[N], b: in f32[N], c: out f32[N]) {
    grid (i in tiles(N, 256));
    TSTORE(c.tile(i), Vec(a.tile(i)) + Vec(b.tile(i)));
}

kernel grow(x: inout f32[N]) {
    grid (i in tiles(N, 256));
    TSTORE(x.tile(i), Vec(x.tile(i)) + 1.0);
}

kernel both(x: in f32[N], up: out f32[N], down: out f32[N]) {
    grid (i in tiles(N, 256));
    TSTORE(up.tile(i), Vec(x.tile(i)) + 1.0);
    TSTORE(down.tile(i), Vec(x.tile(i)) - 1.0);
}
"""


@pytest.fixture(scope="module")
def lib():
    return ptoc.tile(SCALE)


def rng(seed=1):
    return np.random.default_rng(seed)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_softmax_of_the_examples(examples):
    k = ptoc.load(examples / "softmax.tile").softmax
    for shape in [(1, 1), (20, 100), (17, 9), (9, 1100)]:
        x = rng().standard_normal(shape, dtype=np.float32)
        np.testing.assert_allclose(k(x), softmax(x), rtol=2e-6)


def test_tuples_are_constants():
    text = """use std::sparse::submanifold_map;
program near<const KS = (3, 3, 3)>(sites: in i32[N, 4], map: out u32[N, V]) where V == size(KS) {
    submanifold_map<KS = KS>(sites, map, 1, 4, 4, 4);
}"""
    sites = np.array([[0, 1, 1, 1], [0, 1, 2, 1]], np.int32)
    absent = 0xFFFF_FFFF
    found = ptoc.tile(text).near(KS=(1, 3, 1))(sites, V=3)
    assert found.tolist() == [[absent, 0, 1], [0, 1, absent]]


def test_constants_and_out(examples):
    k = ptoc.load(examples / "softmax.tile").softmax(BM=2, BN=256)
    x = rng().standard_normal((7, 300), dtype=np.float32)
    y = np.empty_like(x)
    assert k(x, out=y) is y
    np.testing.assert_allclose(y, softmax(x), rtol=2e-6)
    y[:] = 0
    assert k(x, y=y) is y
    np.testing.assert_allclose(y, softmax(x), rtol=2e-6)
    assert "BM=2" in repr(k)


def test_gemm(examples):
    k = ptoc.load(examples / "gemm.tile").gemm
    a = rng().standard_normal((100, 70), dtype=np.float32)
    b = rng(2).standard_normal((70, 50), dtype=np.float32)
    c = k(a, b)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


def test_types_are_deduced_and_can_be_given(lib, examples):
    x = rng().standard_normal((3, 65)).astype(np.float16)
    assert lib.scale(x, 2.0).dtype == np.float16
    np.testing.assert_array_equal(lib.scale(x, 2.0), x * np.float16(2))
    for dtype in [np.float16, np.dtype("float16"), "f16"]:
        np.testing.assert_array_equal(lib.scale(T=dtype)(x, 2.0), x * np.float16(2))
    with pytest.raises(ptoc.DtypeError) as e:
        lib.scale(T=np.float32)(x, 2.0)
    assert e.value.code == "E0750"


def test_scalars(lib):
    x = rng().standard_normal((5, 7), dtype=np.float32)
    for a in [0.5, 3, np.float32(0.1), -1e-3, float("inf"), float("-inf")]:
        np.testing.assert_array_equal(lib.scale(x, a), x * np.float32(a))
        np.testing.assert_array_equal(lib.scale(x, a=a), x * np.float32(a))
    assert np.isnan(lib.scale(x, float("nan"))).all()


def test_several_outputs(lib):
    x = rng().standard_normal(1000, dtype=np.float32)
    up, down = lib.both(x)
    np.testing.assert_array_equal(up, x + 1)
    np.testing.assert_array_equal(down, x - 1)
    two = np.empty((2, 1000), np.float32)
    assert lib.both(x, out=(two[0], two[1]))[1].base is two
    np.testing.assert_array_equal(two[0], x + 1)
    got = lib.both(x, down=two[0])
    np.testing.assert_array_equal(two[0], x - 1)
    np.testing.assert_array_equal(got[0], x + 1)


def test_inout_is_updated_in_place(lib):
    x = rng().standard_normal(600, dtype=np.float32)
    want = x + 1
    assert lib.grow(x) is None
    np.testing.assert_array_equal(x, want)


def test_no_array_is_copied(lib):
    """The kernel reads and writes just these bytes, whatever is around them."""
    room = np.full(3000, np.float32(7))
    a, b, c = room[100:600], room[700:1200], room[1300:1800]
    a[:], b[:] = rng().standard_normal((2, 500), dtype=np.float32)
    kept = room.copy()
    address = c.__array_interface__["data"][0]
    got = lib.add(a, b, out=c)
    assert got is c and got.__array_interface__["data"][0] == address
    np.testing.assert_array_equal(room[1300:1800], kept[100:600] + kept[700:1200])
    kept[1300:1800] = room[1300:1800]
    np.testing.assert_array_equal(room, kept)


def test_every_alignment(lib):
    room = np.zeros(5000, np.float32)
    for shift in range(17):
        x, y = room[shift : shift + 1027], room[2000 + 3 * shift : 2000 + 3 * shift + 1027]
        x[:] = rng(shift).standard_normal(1027, dtype=np.float32)
        np.testing.assert_array_equal(lib.add(x, x, out=y), x + x)


def test_large_arrays_that_begin_anywhere(lib):
    """Large outputs are written past the caches, in whole lines where there are such."""
    n = 3 << 20
    room = np.zeros(2 * n + 64, np.float32)
    for shift in [0, 1, 5]:
        x, y = room[shift : shift + n], room[n + 2 * shift : 2 * n + 2 * shift]
        x[:] = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(lib.add(x, x, out=y), x + x)
        assert not room[2 * n + 2 * shift :].any()


def test_shapes_of_every_kind(lib):
    assert lib.add(np.empty(0, np.float32), np.empty(0, np.float32)).shape == (0,)
    assert lib.scale(np.empty((0, 5), np.float32), 1.0).shape == (0, 5)
    x = rng().standard_normal((4, 1), dtype=np.float32)
    np.testing.assert_array_equal(lib.scale(x, 2.0), 2 * x)
    # A dimension of one element may have any stride.
    wide = rng().standard_normal((4, 9), dtype=np.float32)
    row = wide[:, 3:4].T[:1, :1]
    np.testing.assert_array_equal(lib.scale(row, 2.0), 2 * row)


def test_buffers_without_numpy(lib):
    a = array.array("f", [1, 2, 3])
    c = array.array("f", [0, 0, 0])
    lib.add(a, memoryview(a), out=c)
    assert list(c) == [2, 4, 6]


def test_layouts_take_the_strides_that_they_name():
    k = ptoc.tile("""
    kernel columns(x: in f32[(M, N):(1, M)], y: out f32[M, N]) {
        grid (i in tiles(M, 4));
        TSTORE(y.tile(i, _), Vec(x.tile(i, _)));
    }
    """).columns
    x = rng().standard_normal((8, 5), dtype=np.float32)
    fortran = np.asfortranarray(x)
    np.testing.assert_array_equal(k(fortran), x)
    with pytest.raises(ptoc.ArgumentError) as e:
        k(x)
    assert e.value.code == "E0762"
    assert "the strides are [1, 8]" in str(e.value)


def test_dtypes():
    source = "kernel same<type T>(x: in T[N], y: out T[N]) { grid (i in tiles(N, 64)); TSTORE(y.tile(i), Vec(x.tile(i))); }"
    k = ptoc.tile(source).same
    for dtype in "i1 u1 i2 u2 i4 u4 f2 f4".split():
        x = rng().integers(0, 100, 130).astype(dtype)
        y = k(x)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y, x)


def test_floats_that_numpy_lacks():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = "kernel half<type T>(x: in T[N], y: out T[N]) { grid (i in tiles(N, 64)); TSTORE(y.tile(i), Vec(x.tile(i))); }"
    k = ptoc.tile(source, target="a5").half
    for dtype in [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]:
        x = rng().standard_normal(130).astype(dtype)
        y = k(x)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y.view(np.uint8), x.view(np.uint8))
        assert repr(k(T=dtype)).count("T=") == 1


def test_backends_and_targets(examples):
    x = rng().standard_normal((9, 40), dtype=np.float32)
    cpu = ptoc.load(examples / "softmax.tile").softmax(x)
    for options in [{"backend": "interp"}, {"target": "a5"}, {"target": "a5", "backend": "interp"}]:
        np.testing.assert_array_equal(ptoc.load(examples / "softmax.tile", **options).softmax(x), cpu)


def test_code_is_kept(lib):
    import time

    k = lib.scale(BN=32)
    x = rng().standard_normal((6, 100), dtype=np.float32)
    begin = time.perf_counter()
    k(x, 2.0)
    first = time.perf_counter() - begin
    again = min(_timed(lambda: k(x, 2.0)) for _ in range(20))
    assert again < first / 5


def _timed(f):
    import time

    begin = time.perf_counter()
    f()
    return time.perf_counter() - begin


def test_print_goes_to_python(capsys):
    k = ptoc.tile("""
    kernel say(x: in f32[N], y: out f32[N]) {
        grid (i in tiles(N, 4));
        print("block", i.index);
        TSTORE(y.tile(i), Vec(x.tile(i)));
    }
    """).say
    k(np.zeros(8, np.float32))
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [["block", "0"], ["block", "1"]]


def test_standard_library_and_names(examples):
    lib = ptoc.load(examples / "softmax.tile")
    assert lib.names == ["softmax", "softmax_long"]
    assert "softmax" in dir(lib) and "softmax" in repr(lib)
    assert not hasattr(lib, "hardmax")
    assert lib["softmax"].__name__ == "softmax"
    assert "online" in lib.softmax_long.docs or lib.softmax_long.docs


def test_kernels_travel(lib, examples, tmp_path):
    import copy
    import gc
    import pickle
    import weakref

    softmax = ptoc.load(examples / "softmax.tile").softmax
    x = rng().standard_normal((5, 300), np.float32)
    for k in [softmax, softmax(BN=256), softmax.bind(**{"capacity.Vec": 65536})]:
        again = pickle.loads(pickle.dumps(k))
        assert again.constants == k.constants and again.signature == k.signature and repr(again) == repr(k)
        np.testing.assert_array_equal(again(x), k(x))
        assert copy.copy(k) is k and copy.deepcopy([k])[0] is k
        assert k == k and k != softmax(BN=512) and len({k, k}) == 1
    library = pickle.loads(pickle.dumps(ptoc.load(examples / "softmax.tile", target="a5", exact=False)))
    assert library.target == "a5" and "softmax" in library.names
    assert pickle.loads(pickle.dumps(ptoc.load("std::scan"))).names == ptoc.load("std::scan").names
    seen = weakref.ref(library)
    assert seen() is library
    k = lib.scale
    seen = weakref.ref(k)
    assert seen() is k
    del k
    gc.collect()
    assert seen() is None
    # Imports are found from another folder, and another process.
    (tmp_path / "part.tile").write_text("fn two() -> f32 { 2.0 }\n")
    (tmp_path / "whole.tile").write_text(
        "use part::two;\nkernel k(x: in f32[N], y: out f32[N]) { grid (i in tiles(N, 64));"
        " TSTORE(y.tile(i), Vec(x.tile(i)) * two()); }\n"
    )
    (tmp_path / "kernel").write_bytes(pickle.dumps(ptoc.load(tmp_path / "whole.tile").k))
    text = "import pickle, sys, numpy as np; k = pickle.load(open(sys.argv[1], 'rb')); print(k(np.ones(2, np.float32)))"
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, "-c", text, str(tmp_path / "kernel")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=empty)
    assert done.stdout == "[2. 2.]\n", done.stderr


def test_signature_for_inspect(examples):
    import inspect

    seen = inspect.signature(ptoc.load(examples / "layernorm.tile").layernorm)
    assert list(seen.parameters)[:5] == ["x", "gain", "shift", "eps", "y"]
    x, eps, y = (seen.parameters[name] for name in ["x", "eps", "y"])
    assert x.kind is x.POSITIONAL_OR_KEYWORD and x.default is x.empty and x.annotation == "in T[M, N]"
    assert eps.default is None and eps.annotation == "f32 = 1e-5"
    assert y.kind is y.KEYWORD_ONLY and y.default is None
    assert {"out", "M", "N", "T"} <= set(seen.parameters)
    assert seen.bind(1, 2, 3, out=4).arguments == {"x": 1, "gain": 2, "shift": 3, "out": 4}


def test_a_new_scalar_is_no_new_kernel(lib):
    """Values of scalars change results, and not what is compiled."""
    k = ptoc.tile('''
    kernel axpy(x: in f32[N], a: f32, n: i32, y: out f32[N], b: f32 = a + 1.0) {
        grid (i in tiles(N, 64));
        TSTORE(y.tile(i), Vec(x.tile(i)) * a + f32(n) + b);
    }
    kernel some(x: in f32[N], n: index, y: out f32[N])
        where n <= N
    {
        grid (i in tiles(N, 64));
        TSTORE(y.tile(i), Vec(x.tile(i)) * f32(n));
    }
    ''')
    x = np.arange(1, 100, dtype=np.float32)
    for a, n in [(2.0, 1), (3.0, 1), (3.0, -7), (float("inf"), 0), (0.5, 2**31 - 1)]:
        np.testing.assert_array_equal(k.axpy(x, a, n), x * np.float32(a) + np.float32(n) + np.float32(a + 1))
        np.testing.assert_array_equal(k.axpy(x, a, n, b=0.0), x * np.float32(a) + np.float32(n))
    for n in [3, 99, 5]:
        np.testing.assert_array_equal(k.some(x, n), x * n)
    with pytest.raises(ptoc.Error, match="n <= N"):
        k.some(x, 100)
    with pytest.raises(ptoc.DtypeError):
        k.axpy(x, 1e39, 1)
    first = _timed(lambda: k.axpy(x, 1.0, 1))
    new = min(_timed(lambda: k.axpy(x, float(n), n)) for n in range(2, 50))
    assert new < first + 1e-3 and new < 2e-4, (first, new)


def test_masks_are_not_ignored(examples):
    softmax = ptoc.load(examples / "softmax.tile").softmax
    x = np.ma.array(np.ones((2, 3), np.float32), mask=[[1, 0, 0], [0, 0, 0]])
    with pytest.raises(ptoc.DtypeError, match="masked array"):
        softmax(x)
    np.testing.assert_allclose(softmax(x.filled(1)), np.full((2, 3), 1 / 3), rtol=1e-6)


def test_no_outputs_given_for_one(examples):
    softmax = ptoc.load(examples / "softmax.tile").softmax
    with pytest.raises(ptoc.Error, match="0 arrays"):
        softmax(np.ones((2, 3), np.float32), out=())
