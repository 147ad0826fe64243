"""Kernels in what JAX compiles, where it is installed."""

import os

import numpy as np
import ptoc
import pytest

# Kernels run on the host, whatever else JAX has found.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

SOURCE = """
kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N]) {
    grid (i in tiles(M, 4), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
}
kernel same<type T>(x: in T[N], y: out T[N]) {
    grid (i in tiles(N, 64));
    TSTORE(y.tile(i), Vec(x.tile(i)));
}
kernel both(x: inout f32[N], up: out f32[N]) {
    grid (i in tiles(N, 64));
    let t = Vec(x.tile(i));
    TSTORE(up.tile(i), t + 1.0);
    TSTORE(x.tile(i), t * 2.0);
}
kernel pick(table: in f32[R], at: in i32[N], y: out f32[N]) {
    grid (i in tiles(N, 8));
    for k in 0..i.len { y[i.start + k] = table[index(at[i.start + k])]; }
}
kernel some(x: in f32[N], n: index, y: out f32[N], b: f32 = 1.0)
    where n <= N
{
    grid (i in tiles(N, 64));
    TSTORE(y.tile(i), Vec(x.tile(i)) * f32(n) + b);
}
kernel turns(x: in f32[N], n: i32, y: out f32[N]) {
    grid (i in tiles(N, 64));
    TSTORE(y.tile(i), Vec(x.tile(i)) * f32(n));
}
kernel wide(y: out i64[N], x: in i32[N]) {
    grid (i in tiles(N, 8));
    for k in 0..i.len { y[i.start + k] = i64(x[i.start + k]); }
}
"""


@pytest.fixture(scope="module")
def lib():
    import ptoc.jax

    return ptoc.tile(SOURCE, target="a5")


def refused(kind, code, call, *words):
    with pytest.raises(kind) as e:
        call()
    assert isinstance(e.value, ptoc.Error) and e.value.code == code, str(e.value)
    assert e.value.diagnostics[0]["code"] == code
    for word in words:
        assert word in str(e.value), str(e.value)


def test_softmax_under_jit(examples):
    import ptoc.jax

    softmax = ptoc.jax.call(ptoc.load(examples / "softmax.tile").softmax)
    assert softmax.__name__ == "softmax"
    x = jnp.asarray(np.random.default_rng(1).standard_normal((9, 300), np.float32))
    want = jax.nn.softmax(2 * x, axis=-1)
    np.testing.assert_allclose(softmax(2 * x), want, rtol=1e-5)
    f = jax.jit(lambda x: softmax(2 * x) + 1)
    y = f(x)
    assert isinstance(y, jax.Array)
    np.testing.assert_allclose(y, want + 1, rtol=1e-5)
    # Another shape is another trace.
    np.testing.assert_allclose(f(x[:3, :70]), jax.nn.softmax(2 * x[:3, :70], axis=-1) + 1, rtol=1e-5)
    np.testing.assert_allclose(softmax(x, BN=256), jax.nn.softmax(x, axis=-1), rtol=1e-5)


def test_the_bits_are_those_of_a_call(lib, examples):
    import ptoc.jax

    gemm = ptoc.load(examples / "gemm.tile").gemm
    a, b = (np.random.default_rng(n).standard_normal((64, 64), np.float32) for n in [1, 2])
    inputs = [p.name for p in gemm.parameters if p.direction != "out"]
    assert len(inputs) == 2
    got = jax.jit(ptoc.jax.call(gemm))(a, b)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(gemm(a, b)))


def test_dtypes(lib):
    import ptoc.jax

    same = ptoc.jax.call(lib.same)
    names = "bool int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 float8_e4m3fn float8_e5m2".split()
    for name in names:
        x = jnp.arange(100).astype(name)
        try:
            direct = lib.same(np.asarray(x))
        except ptoc.CompileError:
            continue
        y = jax.jit(same)(x)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y).view(np.uint8), np.asarray(direct).view(np.uint8))
    refused(TypeError, "E0763", lambda: same(jnp.ones(3, np.complex64)), "complex64")
    refused(TypeError, "E0763", lambda: same(np.ones(3)), "float64", "jax_enable_x64")
    refused(TypeError, "E0763", lambda: same([1.0]), "list")


def test_scalars(lib):
    import ptoc.jax

    x = jnp.ones((5, 70))
    scale = ptoc.jax.call(lib.scale)
    np.testing.assert_array_equal(scale(x, 2.5), np.full((5, 70), 2.5, np.float32))
    f = jax.jit(lambda x, a: scale(x, a=a * 2))
    for a in [1.0, 3.0, -0.5]:
        np.testing.assert_array_equal(f(x, a), np.full((5, 70), 2 * a, np.float32))
    refused(TypeError, "E0764", lambda: scale(x, 1e39), "`a`")
    refused(TypeError, "E0764", lambda: scale(x, "much"), "`a`")
    # What no value of the dtype can be is told when it is traced, by its dtype.
    refused(TypeError, "E0764", lambda: jax.jit(scale)(x, True), "traced number of bool", 'astype("float32")')
    np.testing.assert_array_equal(jax.jit(scale)(x, 3), np.full((5, 70), 3, np.float32))
    turns = ptoc.jax.call(lib.turns)
    refused(TypeError, "E0764", lambda: jax.jit(turns)(x[0], 2.5), "`n` is `i32`", "float32", 'astype("int32")')
    np.testing.assert_array_equal(jax.jit(turns)(x[0], 3), np.full(70, 3, np.float32))
    some = ptoc.jax.call(lib.some)
    x = jnp.ones(70)
    np.testing.assert_array_equal(some(x, 3), np.full(70, 4, np.float32))
    np.testing.assert_array_equal(jax.jit(lambda x: some(x, 3, b=0.0))(x), np.full(70, 3, np.float32))
    refused(TypeError, "E0764", lambda: jax.jit(some)(x, 3), "`n` is traced", "static_argnames")
    np.testing.assert_array_equal(jax.jit(some, static_argnums=1)(x, 7), np.full(70, 8, np.float32))


def test_several_results_and_updates(lib):
    import ptoc.jax

    both = ptoc.jax.call(lib.both)
    x = jnp.arange(100.0)
    doubled, up = jax.jit(both)(x)
    np.testing.assert_array_equal(doubled, 2 * np.arange(100.0))
    np.testing.assert_array_equal(up, np.arange(100.0) + 1)
    # The operand is what it was.
    np.testing.assert_array_equal(x, np.arange(100.0))
    eager = both(x)
    np.testing.assert_array_equal(eager[0], doubled)
    np.testing.assert_array_equal(x, np.arange(100.0))


def test_mistakes_are_found_in_the_trace(lib):
    import ptoc.jax

    scale = ptoc.jax.call(lib.scale)
    refused(ValueError, "E0751", lambda: jax.jit(scale)(jnp.ones(3), 1.0), "`x` has 2 dimensions")
    refused(TypeError, "E0764", lambda: scale(jnp.ones((3, 4)), 1.0, jnp.ones(3)), "2 arguments")
    refused(TypeError, "E0764", lambda: scale(jnp.ones((3, 4)), z=1.0), "`z`")
    refused(TypeError, "E0764", lambda: scale(jnp.ones((3, 4)), x=1.0), "twice")
    refused(TypeError, "E0752", lambda: scale(jnp.ones((3, 4))), "`a`")
    refused(TypeError, "E0750", lambda: ptoc.jax.call(lib.wide)(jnp.ones(3, np.int32)), "jax_enable_x64")


def test_a_check_that_fails_while_it_runs(lib):
    import ptoc.jax

    pick = jax.jit(ptoc.jax.call(lib.pick))
    table = jnp.arange(5.0)
    np.testing.assert_array_equal(pick(table, jnp.array([4, 0, 2])), [4, 0, 2])
    with pytest.raises(Exception, match="PA-1") as e:
        pick(table, jnp.array([4, 5, 2])).block_until_ready()
    assert "5" in str(e.value)
    np.testing.assert_array_equal(pick(table, jnp.array([1])), [1])


def test_transformations(lib):
    import ptoc.jax

    scale = ptoc.jax.call(lib.scale)
    x = jnp.arange(3 * 5 * 7.0).reshape(3, 5, 7)
    np.testing.assert_array_equal(jax.vmap(lambda x: scale(x, 2.0))(x), 2 * x)

    @jax.custom_vjp
    def double(x):
        return scale(x, 2.0)

    double.defvjp(lambda x: (double(x), None), lambda _, g: (scale(g, 2.0),))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: double(x).sum()))(x[0]), np.full((5, 7), 2.0))


def test_results_are_made_in_place(lib):
    """Nothing of Python is called: many calls in one program."""
    import ptoc.jax

    same = ptoc.jax.call(lib.same)

    @jax.jit
    def often(x):
        return jax.lax.fori_loop(0, 1000, lambda _, x: same(x) + 1, x)

    np.testing.assert_array_equal(often(jnp.zeros(70)), np.full(70, 1000.0))


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX has no CUDA device")
def test_on_a_cuda_device(lib):
    """On XLA's stream: behind what computes the operands, in front of what reads the results, with the host's bits."""
    import ptoc.jax

    scale, both = ptoc.jax.call(lib.scale), ptoc.jax.call(lib.both)
    x = jax.random.normal(jax.random.key(1), (300, 700))
    np.testing.assert_array_equal(scale(x, 2.5), lib.scale(np.asarray(x), 2.5))

    @jax.jit
    def f(x, a):
        y = jax.lax.fori_loop(0, 50, lambda _, x: scale(x + 1.0, a), x)
        return scale(y, 2.0) - y

    want = x
    for _ in range(50):
        want = (want + 1.0) * 0.5
    np.testing.assert_allclose(f(x, 0.5), want, rtol=1e-5)
    kept = np.asarray(x[0])
    doubled, up = jax.jit(both)(x[0])
    np.testing.assert_array_equal(doubled, kept * 2)
    np.testing.assert_array_equal(up, kept + 1)
    np.testing.assert_array_equal(x[0], kept)
