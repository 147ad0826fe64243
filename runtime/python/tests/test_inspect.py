"""Programs, and what kernels say of themselves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import ptoc
import pytest


def rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 1e30])
def test_a_measurement_ends(examples, seconds):
    softmax = ptoc.load(examples / "softmax.tile").softmax
    with pytest.raises(ptoc.Error) as e:
        softmax.bench(np.ones((3, 5), np.float32), seconds=seconds)
    assert e.value.code == "E0765"


def test_results_of_command_streams_come_back(examples):
    add = ptoc.load(examples / "hbm_pim.tile", target="hbm-pim").add
    a, y = np.ones(256, np.float16), np.full(256, 7, np.float16)
    assert add(a, a, out=y) is y
    np.testing.assert_array_equal(y, a + a)
    np.testing.assert_array_equal(add(a, y), a + y)


def test_programs(examples):
    lib = ptoc.load(examples / "argsort.tile")
    (name,) = [n for n in lib.names if "program" in repr(lib[n]) or n == "argsort"][:1]
    assert lib[name].signature.startswith(name)


def test_a_program_with_tensors_of_its_own():
    lib = ptoc.tile("""
    kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N]) {
        grid (i in tiles(M, 4), j in tiles(N, 64));
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
    }
    program power(x: in f32[M, N], a: f32, y: out f32[M, N]) {
        let t = tensor f32[M, N];
        scale(x, a, t);
        scale(t, a, y);
    }
    """)
    x = rng().standard_normal((7, 90), dtype=np.float32)
    for a in [2.0, 0.5]:
        np.testing.assert_array_equal(lib.power(x, a), x * np.float32(a) * np.float32(a))
    y = np.empty_like(x)
    assert lib.power(x, a=2.0, out=y) is y
    assert "power(x: in f32[M, N]" in repr(lib.power)


def test_check(examples):
    k = ptoc.load(examples / "softmax.tile").softmax
    assert k.check() == ""
    with pytest.raises(ptoc.CompileError) as e:
        ptoc.load(examples / "softmax.tile", target="kirin9030").softmax(M=8, N=4096).check()
    assert "`-D" not in str(e.value)


def test_memories(examples):
    k = ptoc.load(examples / "softmax.tile").softmax(M=64, N=512)
    m = k.mem()
    assert "Vec" in repr(m)
    assert "<svg" in m.svg and "<html" in m.html.lower()
    assert m._repr_html_().startswith("<iframe")
    assert json.loads(m.json)
    with pytest.raises(ptoc.Error, match="N"):
        ptoc.load(examples / "softmax.tile").softmax.mem()


def test_stages(examples):
    k = ptoc.load(examples / "softmax.tile").softmax(M=64, N=512)
    assert "kernel" in k.ir()
    assert "0x" in k.ir("asm") or "mov" in k.ir("asm")
    ptx = ptoc.load(examples / "add.tile", target="sm90").add_auto(M=64, N=64).ir("ptx")
    assert ".target sm_90" in ptx
    with pytest.raises(ptoc.Error, match="`placed`"):
        k.ir("llvm")


def test_verify(examples):
    k = ptoc.load(examples / "softmax.tile").softmax
    x = rng().standard_normal((20, 100), dtype=np.float32)
    kept = x.copy()
    (held,) = k.verify(x, rtol=1e-5)
    assert held.name == "y" and held.elements == 2000 and held.max_error < 1e-5
    np.testing.assert_array_equal(x, kept)
    wrong = ptoc.tile("""
    kernel double(x: in f32[N], y: out f32[N])
        ensures y[i] == x[i] * 2.0
    {
        grid (i in tiles(N, 64));
        TSTORE(y.tile(i), Vec(x.tile(i)) * 2.5);
    }
    """).double
    with pytest.raises(ptoc.Error, match="is not what `ensures` says") as e:
        wrong.verify(np.ones(9, np.float32))
    assert e.value.code == "E0713"
    bare = ptoc.tile("kernel k(x: in f32[N], y: out f32[N]) { grid (i in tiles(N, 64)); TSTORE(y.tile(i), Vec(x.tile(i))); }").k
    with pytest.raises(ptoc.Error, match="has no `ensures`"):
        bare.verify(np.ones(9, np.float32))


def test_bench(examples):
    k = ptoc.load(examples / "softmax.tile").softmax
    x = rng().standard_normal((20, 100), dtype=np.float32)
    timing = k.bench(x, seconds=0.02)
    assert timing.runs >= 5 and 0 < timing.best <= timing.median < 1
    assert "us" in str(timing)


def test_tune(examples):
    softmax = ptoc.load(examples / "softmax.tile").softmax
    assert softmax.tune_lists == {"BN": ["256", "512", "1024"]}
    x = rng().standard_normal((32, 300), np.float32)
    y = np.empty_like(x)
    found = softmax.tune(x, out=y, seconds=0.02)
    assert [set(t.constants) for t in found.trials] == [{"BN"}] * 3
    measured = [t for t in found.trials if t.timing is not None]
    assert measured and found.kernel.constants == found.constants == measured[0].constants
    equal = len(found.fastest)
    assert found.fastest == [t.constants for t in measured[:equal]] and all(t.timing.runs >= 7 for t in measured)
    slower = [t.timing.median for t in measured[equal:]]
    assert slower == sorted(slower)
    # Of those that tie the default stays.
    assert {"BN": "512"} not in found.fastest or found.constants == {"BN": "512"}
    assert str(found).count("\n") == 2 and "BN=" in str(found) and (", a tie" in str(found)) == (equal > 1)
    np.testing.assert_array_equal(found.kernel(x), softmax(x))
    for call in [lambda: softmax(BN=256).tune(x), lambda: softmax.tune(x, BN=256)]:
        with pytest.raises(ptoc.Error) as e:
            call()
        assert e.value.code == "E0714"
    with pytest.raises(ptoc.ArgumentError):
        softmax.tune(x[0])


def test_ties():
    fastest = ptoc._ptoc._fastest
    assert fastest([[1.0, 1.0, 2.0], [1.1, 1.1, 2.1], [0.9, 1.2, 1.9]]) == [0, 2]
    assert fastest([[1.0] * 7, [1.005] * 7, [1.2] * 7]) == [0, 1]
    assert fastest([]) == []


def test_tune_tells_what_does_not_fit():
    wide = ptoc.tile("""
    kernel wide<const BN = 64 tune [64, 1000000]>(x: in f32[N], y: out f32[N]) {
        grid (i in tiles(N, BN));
        TSTORE(y.tile(i), Vec(x.tile(i)) + 1.0);
    }
    """).wide
    found = wide.tune(np.ones(100, np.float32), seconds=0.01)
    assert found.constants == {"BN": "64"}
    refused = found.trials[1]
    assert refused.timing is None and isinstance(refused.refused, ptoc.CompileError)
    assert refused.refused.code in str(found)
    with pytest.raises(ptoc.CompileError):
        ptoc.tile("""
        kernel k<const BN = 1000000 tune [1000000]>(x: in f32[N], y: out f32[N]) {
            grid (i in tiles(N, BN));
            TSTORE(y.tile(i), Vec(x.tile(i)) + 1.0);
        }
        """).k.tune(np.ones(100, np.float32))


def test_tune_gives_up_what_takes_too_long():
    slow = ptoc.tile("""
    kernel slow<const TURNS = 1 tune [1, 40000, 2]>(x: in f32[N], y: out f32[N]) {
        grid (i in tiles(N, 64));
        let t = Vec(x.tile(i));
        for k in 0..TURNS { TMULS(t, t, 0.999); }
        TSTORE(y.tile(i), t);
    }
    """).slow
    found = slow.tune(np.ones(4096, np.float32), seconds=0.01)
    assert {trial.constants["TURNS"] for trial in found.trials if trial.timing} == {"1", "2"}
    [given_up] = [trial.refused for trial in found.trials if trial.refused]
    assert given_up.code == "E0771" and "times the" in str(given_up)


def test_tune_ends_a_launch_that_takes_too_long():
    """In the middle of it, between two blocks: whole it would take minutes."""
    source = """
kernel slow<const TURNS = 1 tune [1, 3000000]>(x: in f32[N], y: out f32[N]) {
    grid (i in tiles(N, 1));
    var total = x[i.start];
    for k in 0..TURNS { total = total * 0.5 + x[i.start]; }
    y[i.start] = total;
}
"""
    slow, x, y = ptoc.tile(source).slow, np.ones(100_000, np.float32), np.empty(100_000, np.float32)
    import threading

    found = []
    # Also where no signal is looked at.
    work = lambda: found.append(slow.tune(x, out=y, seconds=0.0))  # noqa: E731
    work()
    other = threading.Thread(target=work)
    other.start()
    other.join()
    for tuned in found:
        assert tuned.kernel.constants == {"TURNS": "1"}
        [_, ended] = tuned.trials
        assert ended.timing is None and ended.refused.code == "E0771"
        assert "a launch was ended after" in str(ended.refused) and "TURNS=1 takes" in str(ended.refused)


def test_tune_is_stored(examples, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("PTOC_TUNING", str(tmp_path))
    softmax = ptoc.load(examples / "softmax.tile").softmax
    x = rng().standard_normal((32, 300), np.float32)
    first = softmax.tune(x, seconds=0.01)
    assert first.stored is None and len(first.trials) == 3
    kept = (tmp_path / "tuning.jsonl").read_text()
    assert kept.count("\n") == 1 and '"verified":true' in kept
    # Another process does the same: nothing is measured, and calls use it.
    text = (
        "import numpy as np, ptoc, sys\n"
        f"softmax = ptoc.load({str(examples / 'softmax.tile')!r}).softmax\n"
        "x = np.ones((32, 300), np.float32)\n"
        "found = softmax.tune(x)\n"
        "assert found.stored and found.trials[0].timing.runs == 0 and len(found.trials) == 1\n"
        "print(found.constants['BN'])\n"
        "softmax(x)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(ptoc.__file__).parent.parent)}
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == first.constants["BN"]
    assert f"tuned: BN={first.constants['BN']}, stored " in ran.stderr
    assert (tmp_path / "tuning.jsonl").read_text() == kept
    assert softmax.tune(x, seconds=0.01, retune=True).stored is None
    assert len(softmax.tune(x[:5], seconds=0.01).trials) == 3


def test_tune_excludes_what_is_wrong():
    wrong = ptoc.tile("""
    kernel wrong<const B = 16 tune [16, 32]>(x: in f32[N], y: out f32[N])
        ensures y[i] == x[i] * 2.0
    {
        grid (i in tiles(N, B));
        if B == 32 { TSTORE(y.tile(i), Vec(x.tile(i)) * 2.001); } else { TSTORE(y.tile(i), Vec(x.tile(i)) * 2.0); }
    }
    """).wrong
    found = wrong.tune(np.ones(100, np.float32), seconds=0.01)
    assert found.constants == {"B": "16"}
    refused = found.trials[1].refused
    assert isinstance(refused, ptoc.VerificationError) and "the worst is [" in str(refused)


def test_layouts():
    import json

    value = ptoc.layout("(4,8):(8,1)")
    assert str(value) == "(4,8):(8,1)" and "size 32" in repr(value)
    assert value.svg.startswith("<svg") and value._repr_svg_() == value.svg
    assert json.loads(value.json)["size"] == 32
    number = ptoc.layout("size((4,8):(8,1))")
    assert str(number) == "32" and number._repr_svg_() is None
    with pytest.raises(ptoc.Error) as e:
        number.svg
    assert e.value.code
    for text in ["(4,8", "nothing((4):(1))", "(4,8):(8,1,3)"]:
        with pytest.raises(ptoc.Error) as e:
            ptoc.layout(text)
        assert text in str(e.value) or "expression" in str(e.value)
