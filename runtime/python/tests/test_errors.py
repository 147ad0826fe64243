"""Every mistake of a call is an exception with a code, both sides and a remedy."""

import warnings

import numpy as np
import ptoc
import pytest

SOURCE = """
kernel scale<const BN = 64>(x: in f32[M, N], a: f32, y: out f32[M, N])
    where N >= 2
{
    grid (i in tiles(M, 4), j in tiles(N, BN));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
}

kernel product(a: in f32[M, K], b: in f32[K, N], c: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 16));
    let acc = tile Acc<f32, i, j>;
    acc = 0.0;
    for k in tiles(K, 16) { TMATMUL_ACC(acc, acc, Left(a.tile(i, k)), Right(b.tile(k, j))); }
    TSTORE(c.tile(i, j), acc);
}

kernel grow(x: inout f32[N]) {
    grid (i in tiles(N, 256));
    TSTORE(x.tile(i), Vec(x.tile(i)) + 1.0);
}

kernel pick(table: in f32[R], at: in i32[N], y: out f32[N]) {
    grid (i in tiles(N, 8));
    for k in 0..i.len { y[i.start + k] = table[index(at[i.start + k])]; }
}
"""


@pytest.fixture(scope="module")
def lib():
    return ptoc.tile(SOURCE, name="mistakes.tile")


def f32(*shape):
    return np.ones(shape, np.float32)


def raised(kind, code, call, *words):
    with pytest.raises(kind) as caught:
        call()
    e = caught.value
    assert isinstance(e, ptoc.Error)
    assert e.code == code, str(e)
    assert e.rendered == str(e) and e.rendered.startswith(f"error[{code}]")
    first = e.diagnostics[0]
    assert first["code"] == code and first["severity"] == "error"
    for word in words:
        assert word in str(e), str(e)
    return e


def test_dtype(lib):
    call = lambda: lib.scale(np.ones((3, 4), np.int32), 1.0)
    raised(TypeError, "E0750", call, "`x` holds `f32`, its array holds `i32`", "f32[M, N]", "astype(np.float32)")
    raised(TypeError, "E0763", lambda: lib.scale(np.ones((3, 4)), 1.0), "holds float64", "astype(np.float32)")
    raised(TypeError, "E0763", lambda: lib.scale(np.ones((3, 4), ">f4"), 1.0), "order of another machine")
    raised(TypeError, "E0763", lambda: lib.scale(np.array([["a"]]), 1.0), "`x`")
    raised(TypeError, "E0763", lambda: lib.scale("text", 1.0), "of type `str`")
    raised(TypeError, "E0763", lambda: lib.scale([[1.0, 2.0]], 1.0), "of type `list`")


def test_shape(lib):
    raised(ValueError, "E0751", lambda: lib.scale(f32(4), 1.0), "`x` has 2 dimensions, its array has 1", "f32[4]")
    raised(ValueError, "E0751", lambda: lib.scale(f32(2, 3, 4), 1.0), "has 3")
    call = lambda: lib.product(f32(3, 4), f32(5, 6))
    e = raised(ValueError, "E0749", call, "`K` is 4 in `a`", "but 5 in `b`", "f32[3, 4]", "f32[5, 6]")
    assert "npy" not in str(e) and "-D" not in str(e)
    raised(ValueError, "E0749", lambda: lib.scale(f32(3, 4), 1.0, out=f32(3, 5)), "`N` is 4 in `x`", "5 in `y`")
    raised(ValueError, "E0749", lambda: lib.scale(N=8)(f32(3, 4), 1.0), "leave out `N`")


def test_where(lib):
    with pytest.raises(ptoc.LaunchError) as e:
        lib.scale(f32(3, 1), 1.0)
    assert e.value.code.startswith("PA-") and "N >= 2" in str(e.value)


def test_count_and_names(lib):
    raised(TypeError, "E0764", lambda: lib.scale(f32(3, 4), 1.0, f32(3, 4)), "takes 2 arguments: `x` and `a`", "out=")
    raised(TypeError, "E0764", lambda: lib.scale(f32(3, 4), 1.0, z=1), "no argument or constant `z`")
    raised(TypeError, "E0764", lambda: lib.scale(f32(3, 4), 1.0, x=f32(3, 4)), "`x` is given twice")
    raised(TypeError, "E0764", lambda: lib.scale(f32(3, 4), 1.0, out=(f32(3, 4), f32(3, 4))), "2 arrays", "1 output")
    raised(TypeError, "E0764", lambda: lib.scale(f32(3, 4), "much"), "`a` is a scalar", "'much'")
    count = ptoc.tile("kernel k(x: in f32[N], n: i8, y: out f32[N]) { grid (i in tiles(N, 64));"
                      " TSTORE(y.tile(i), Vec(x.tile(i)) + f32(n)); }").k
    assert count(f32(3), -5).tolist() == [-4] * 3
    raised(TypeError, "E0764", lambda: count(f32(3), 300), "`n` is `i8`, and 300 is given")
    raised(TypeError, "E0764", lambda: count(f32(3), 0.5), "`n` is `i8`, and 0.5 is given")
    raised(TypeError, "E0747", lambda: lib.product(f32(3, 4)), "no array was given for `b`", "`b=..`")
    raised(TypeError, "E0752", lambda: lib.scale(f32(3, 4)), "`a`", "`a=..`")
    raised(TypeError, "E0764", lambda: lib.scale(BM=3), "`BM`")
    raised(TypeError, "E0745", lambda: lib.scale.bind(BM=3), "no static parameter or dimension `BM`", "BN")
    raised(TypeError, "E0764", lambda: lib.scale(BN=object()), "no constant")


def test_memory(lib):
    x = f32(4, 4)
    raised(ValueError, "E0760", lambda: lib.scale(x, 1.0, out=x), "`y` and `x` share 64 bytes")
    room = np.zeros(40, np.float32)
    call = lambda: lib.scale(room[:16].reshape(4, 4), 1.0, out=room[15:31].reshape(4, 4))
    raised(ValueError, "E0760", call, "share 4 bytes")
    lib.scale(room[:16].reshape(4, 4), 1.0, out=room[16:32].reshape(4, 4))
    fixed = f32(4, 4)
    fixed.flags.writeable = False
    raised(ValueError, "E0761", lambda: lib.scale(x, 1.0, out=fixed), "read-only")
    lib.scale(fixed, 1.0)
    locked = f32(9)
    locked.flags.writeable = False
    raised(ValueError, "E0761", lambda: lib.grow(locked), "`x`")


def test_strides(lib):
    wide = f32(4, 8)
    e = raised(ValueError, "E0762", lambda: lib.scale(wide[:, ::2], 1.0), "strides [8, 2]", "f32[M, N]", "contiguous")
    assert "not copied" in str(e)
    raised(ValueError, "E0762", lambda: lib.scale(wide.T, 1.0), "strides [1, 8]")
    raised(ValueError, "E0762", lambda: lib.scale(wide[::-1], 1.0), "strides [-8, 1]")
    raised(ValueError, "E0762", lambda: lib.scale(wide, 1.0, out=f32(4, 16)[:, :8]), "`y`")
    raised(ValueError, "E0762", lambda: lib.scale(np.broadcast_to(f32(1, 8), (4, 8)), 1.0), "strides [0, 1]")


def test_alignment_and_odd_strides(lib):
    raw = np.zeros(4 * 8 * 4 + 1, np.uint8)
    off = np.frombuffer(raw.data, np.float32, 32, 1).reshape(4, 8)
    raised(ptoc.ArgumentError, "E0766", lambda: lib.scale(off, 1.0), "multiple of 4 bytes")
    records = np.zeros((4, 8), np.dtype([("a", "u1"), ("b", "f4")], align=False))
    raised(ptoc.ArgumentError, "E0766", lambda: lib.scale(records["b"], 1.0), "no multiples of 4")


def test_checks_while_running(lib):
    y = lib.pick(f32(5), np.array([0, 4, 2], np.int32))
    assert y.tolist() == [1, 1, 1]
    with pytest.raises(ptoc.LaunchError) as e:
        lib.pick(f32(5), np.array([0, 5, 2], np.int32))
    assert isinstance(e.value, RuntimeError)
    assert e.value.code.startswith("PA-") and "5" in str(e.value) and "mistakes.tile" in str(e.value)


def test_sizes_that_only_a_call_can_say():
    lib = ptoc.tile("kernel ones(y: out f32[N]) { grid (i in tiles(N, 8)); let t = tile Vec<f32, 1, i>; t = 1.0; "
                    "TSTORE(y.tile(i), t); }")
    raised(ValueError, "E0748", lambda: lib.ones(), "`N`", "`N=..`")
    assert lib.ones(N=5)().tolist() == [1] * 5
    assert lib.ones(out=np.empty(3, np.float32)).tolist() == [1] * 3


def test_mistakes_in_the_text():
    with pytest.raises(ptoc.CompileError) as e:
        ptoc.tile("kernel k(x: in f32[N] {}", name="torn.tile")
    assert "torn.tile" in str(e.value)
    lib = ptoc.tile("kernel big(x: in f32[N], y: out f32[N]) { let t = tile Vec<f32, 1, 1000000>; t = 1.0; }")
    with pytest.raises(ptoc.CompileError) as e:
        lib.big(f32(4))
    assert e.value.code == "SA-0353" or e.value.code.startswith("SA-")


def test_files_and_kernels(tmp_path, lib):
    raised(OSError, "E0740", lambda: ptoc.load(tmp_path / "none.tile"), "no such file")
    raised(AttributeError, "E0743", lambda: lib.scal, "did you mean `scale`?")


def test_targets_and_backends(lib, examples):
    """They are judged where they are given, and helps name arguments."""
    softmax = examples / "softmax.tile"
    raised(ValueError, "E1307", lambda: ptoc.load(softmax, backend="tpu"), "no backend `tpu`", "interp")
    raised(ValueError, "E1307", lambda: ptoc.tile(SOURCE, backend="tpu"), "no backend `tpu`", "interp")
    e = raised(ValueError, "E1307", lambda: ptoc.tile(SOURCE, backend="pim"), "pim", 'backend="cpu"')
    assert "--" not in str(e)
    e = raised(ValueError, "E0650", lambda: ptoc.tile(SOURCE, target="a2a4"), "a2a3")
    assert "--" not in str(e)
    raised(ValueError, "E0650", lambda: ptoc.load(softmax, target="a2a4"), "a2a3")
    e = raised(ValueError, "E1307", lambda: lib.grow.bind(N=8).ir("pim"))
    assert "--" not in str(e)


def test_options(lib, examples):
    softmax = ptoc.load(examples / "softmax.tile").softmax
    x = f32(3, 4)
    for tolerance in [{"rtol": -1.0}, {"atol": -1e-9}, {"rtol": float("nan")}, {"atol": float("inf")}]:
        raised(ValueError, "E0765", lambda: softmax.verify(x, **tolerance), next(iter(tolerance)))
    raised(ValueError, "E0765", lambda: softmax.bench(x, seconds=-1), "seconds")


def test_results_that_are_wrong(lib):
    wrong = ptoc.tile("kernel one(x: in f32[N], y: out f32[N]) ensures y[i] == x[i] + 1.0 {"
                      " grid (i in tiles(N, 64)); TSTORE(y.tile(i), Vec(x.tile(i)) + 2.0); }").one
    raised(ptoc.VerificationError, "E0713", lambda: wrong.verify(f32(9)), "`y`")
    raised(AssertionError, "E0754", lambda: lib.scale.verify(f32(3, 4), 1.0), "no `ensures`")


def test_shapes_that_are_numbers():
    lib = ptoc.tile('''
    kernel fixed(x: in f32[4, N], y: out f32[4, N]) {
        grid (i in tiles(4, 4), j in tiles(N, 64));
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)));
    }
    kernel twice(x: in f32[2 * N], y: out f32[N]) {
        grid (i in tiles(N, 64));
        TSTORE(y.tile(i), Vec(x.tile(i)));
    }
    kernel square(x: in f32[N, N], y: out f32[N, N]) {
        grid (i in tiles(N, 4), j in tiles(N, 64));
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)));
    }
    ''')
    for call in [
        lambda: lib.fixed(f32(5, 9)),
        lambda: lib.fixed(f32(4, 9), out=f32(4, 8)),
        lambda: lib.twice(f32(9), N=4),
        lambda: lib.square(f32(3, 4)),
        lambda: lib.square(f32(0, 4)),
    ]:
        with pytest.raises(ValueError) as e:
            call()
        assert isinstance(e.value, ptoc.ArgumentError), str(e.value)


def test_arguments_that_are_forgotten(lib):
    raised(TypeError, "E0764", lambda: lib.scale(), "takes 2 arguments", "`x` and `a`")
    assert lib.scale(BN=32).constants == {"BN": "32"}


def test_scalars_out_of_range(lib):
    x = f32(3, 4)
    for big in [1e39, -1e39, 10**39, 2**63 * 2**63]:
        raised(TypeError, "E0764", lambda: lib.scale(x, big))
    e = raised(TypeError, "E0764", lambda: lib.scale(x, 1e39), "`a` is `f32`", "3.4028235e38")
    assert "inf" not in str(e).replace("info", "")
    assert np.isinf(lib.scale(x, float("inf"))).all() and np.isnan(lib.scale(x, float("nan"))).all()
    assert (lib.scale(x, 3.4028235e38) == np.float32(3.4028235e38)).all()
    # It rounds to the largest number.
    assert np.isfinite(lib.scale(x, 3.40282350000001e38)).all()
    half = ptoc.tile("kernel k(x: in f16[N], a: f16, y: out f16[N]) { grid (i in tiles(N, 64));"
                     " TSTORE(y.tile(i), Vec(x.tile(i)) * a); }").k
    h = np.ones(3, np.float16)
    assert half(h, 65504).tolist() == [65504] * 3
    raised(TypeError, "E0764", lambda: half(h, 65520), "65504")
    raised(TypeError, "E0764", lambda: half(h, 70000.0), "65504")
    whole = ptoc.tile("kernel k(x: in u32[N], n: u64, y: out u32[N]) { grid (i in tiles(N, 8));"
                      " for k in 0..i.len { y[i.start + k] = u32(n >> 32); } }").k
    u = np.zeros(3, np.uint32)
    assert whole(u, 2**64 - 1).tolist() == [2**32 - 1] * 3
    assert whole(u, 2**63).tolist() == [2**31] * 3
    assert whole(u, np.uint64(2**63 + 2**32)).tolist() == [2**31 + 1] * 3
    for no in [2**64, -1]:
        raised(TypeError, "E0764", lambda: whole(u, no))


def test_what_is_no_answer_is_passed_on(lib):
    """Ctrl-C and the like are not taken for what an object says of itself."""

    class Torn:
        def __init__(self, e):
            self.e = e

        def __dlpack__(self, **_):
            raise self.e

        def item(self):
            raise self.e

    for e in [KeyboardInterrupt(), SystemExit(3), MemoryError()]:
        with pytest.raises(type(e)):
            lib.scale(Torn(e), 1.0)
        with pytest.raises(type(e)):
            lib.scale(f32(3, 4), Torn(e))
    raised(TypeError, "E0763", lambda: lib.scale(Torn(RuntimeError("torn apart")), 1.0), "torn apart")


def test_exceptions_travel(lib):
    import copy
    import pickle

    with pytest.raises(ptoc.Error) as e:
        lib.scale(f32(4), 1.0)
    for again in (pickle.loads(pickle.dumps(e.value)), copy.copy(e.value)):
        assert type(again) is type(e.value)
        assert again.code == e.value.code and str(again) == str(e.value)
        assert again.diagnostics == e.value.diagnostics


def test_outputs_with_holes():
    """Where data decide what is written, each call says what is not, also by code that is kept from the first."""
    lib = ptoc.tile(
        "kernel put(x: in f32[N], at: in u32[N], y: out f32[N]) {"
        " for i in 0..N { y[min(index(at[i]), N - 1)] = x[i]; } }\n"
        "program twice(x: in f32[N], at: in u32[N], y: out f32[N]) {"
        " let t = tensor f32[N]; put(x, at, t); put(t, at, y); }"
    )
    x, turned, one = f32(8), np.arange(8, dtype=np.uint32)[::-1].copy(), np.zeros(8, np.uint32)
    with warnings.catch_warnings():
        # What is compiled says that it could not prove it.
        warnings.simplefilter("ignore")
        lib.put(x, turned), lib.twice(x, turned)
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (lib.put(x, turned) == x[::-1]).all() and (lib.twice(x, turned) == x).all()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = lib.put(x, one)
        assert len(caught) == 1 and "7 elements of `y` were never written, first [1]" in str(caught[0].message)
        assert y[0] == x[7] and (y[1:] == 0).all()


def test_warnings():
    lib = ptoc.tile("kernel part(x: in f32[N], y: out f32[N]) { grid (i in tiles(N, 8));"
                    " if i.first { TSTORE(y.tile(i), Vec(x.tile(i))); } }", name="part.tile")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = lib.part(f32(20))
    assert y[:8].tolist() == [1] * 8
    assert any("never written" in str(w.message) for w in caught)
    for w in caught:
        assert isinstance(w.message, ptoc.Warning) and w.message.code.startswith("W") and w.filename == __file__


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ptoc.SourceFileError):
        ptoc.load(tmp_path / "none.tile")
