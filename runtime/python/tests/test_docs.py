"""The sessions of the README, and of docstrings."""

import doctest
from pathlib import Path

import ptoc
import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_readme(monkeypatch):
    monkeypatch.chdir(README.parent.parent.parent)
    failed, tried = doctest.testfile(str(README), module_relative=False, optionflags=FLAGS)
    assert tried >= 15 and failed == 0


def test_docstrings():
    failed, tried = doctest.testmod(ptoc, optionflags=FLAGS)
    assert tried >= 2 and failed == 0


def test_stubs_name_everything():
    """Each name of the native module is in its stub, with each attribute of its classes."""
    import ast

    stub = ast.parse((README.parent / "ptoc" / "_ptoc.pyi").read_text())
    classes = {n.name: {m.name for m in n.body if hasattr(m, "name")} for n in stub.body if isinstance(n, ast.ClassDef)}
    functions = {n.name for n in stub.body if isinstance(n, ast.FunctionDef)}
    from ptoc import _ptoc

    for name, value in vars(_ptoc).items():
        if name.startswith("__"):
            continue
        if not isinstance(value, type):
            assert name in functions, name
            continue
        own = {n for n in vars(value) if not n.startswith("__")}
        assert own <= classes[name], (name, own - classes[name])
        for attribute in classes[name]:
            assert hasattr(value, attribute) or attribute == "__getattr__", (name, attribute)


@pytest.mark.parametrize("name", ptoc.__all__)
def test_public_names(name):
    assert hasattr(ptoc, name)


TYPED = """
import numpy as np
import ptoc

lib: ptoc.Library = ptoc.load("examples/softmax.tile", target="a5")
k: ptoc.Kernel = lib.softmax
narrow: ptoc.Kernel = k.bind(BN=256)
out = k(np.ones((2, 3), np.float32), out=None)
best: float = k.bench(out, seconds=0.1).best
errors: list[float] = [v.max_error for v in k.verify(out, rtol=1e-6)]
shape: tuple[str, ...] | None = k.parameters[0].shape
page: str = k.mem().html
fastest: ptoc.Kernel = k.tune(out).kernel
picture: str = ptoc.layout("(4,8):(8,1)").svg
try:
    k(out)
except ptoc.ArgumentError as e:
    words: str = e.code + e.rendered + str(e.diagnostics)
"""

WRONG = """
import ptoc

ptoc.load("x.tile", targets="a5")
ptoc.load("x.tile").softmax.bench(seconds="long")
ptoc.layout(3)
ptoc.load("x.tile").softmax.bests()
"""


def test_types(tmp_path):
    """The stubs, as a checker of types sees them."""
    pytest.importorskip("mypy")
    import subprocess
    import sys

    (tmp_path / "right.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    seen = subprocess.run([*command, "right.py"], capture_output=True, text=True, cwd=tmp_path)
    assert seen.returncode == 0, seen.stdout + seen.stderr
    seen = subprocess.run([*command, "wrong.py"], capture_output=True, text=True, cwd=tmp_path)
    wrong = [int(line.split(":")[1]) for line in seen.stdout.splitlines() if ": error:" in line]
    assert wrong == [4, 5, 6, 7], seen.stdout


def test_the_command(tmp_path, examples):
    """It comes with the package."""
    import subprocess
    import sys

    def ptoc_(*arguments):
        command = [sys.executable, "-m", "ptoc", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    seen = ptoc_("--version")
    assert seen.returncode == 0 and seen.stdout.startswith("ptoc ") and ptoc.__version__ in seen.stdout
    assert ptoc_("check", examples / "softmax.tile").returncode == 0
    seen = ptoc_("check", tmp_path / "none.tile")
    assert seen.returncode == 1 and "E0740" in seen.stderr
    # The language server: it answers, and ends.
    text = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
    message = f"Content-Length: {len(text)}\r\n\r\n{text}"
    command = [sys.executable, "-m", "ptoc", "lsp"]
    seen = subprocess.run(command, input=message, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert '"capabilities"' in seen.stdout, seen.stderr
