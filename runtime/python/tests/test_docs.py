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
