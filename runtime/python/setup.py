"""The build of the Python package; what stays the same is in `pyproject.toml`.

A wheel has one native module, which is the compiler, its command and its language server; the standard library is inside
of it. `libptoc_native.a` lies beside it: what `ptoc build` puts into archives for programs in C.

`PTOC_LIBRARY` and `PTOC_RUNTIME` name a module and a library of routines that are built already; without them Cargo builds
both.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODULE = "_ptoc.abi3.so"
RUNTIME = "libptoc_native.a"


def version() -> str:
    """That of the workspace: Cargo's and Python's packages are released together."""
    text = (ROOT / "Cargo.toml").read_text()
    return re.search(r'^\[workspace\.package\][^\[]*?^version = "([^"]+)"', text, re.M | re.S)[1]


def cargo(*arguments: str) -> str:
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def built() -> tuple[Path, Path]:
    """The module, and the library of routines."""
    given = [os.environ.get(name) for name in ("PTOC_LIBRARY", "PTOC_RUNTIME")]
    if not all(given):
        cargo("build", "--locked", "--release", "--package", "ptoc-python", "--package", "ptoc-native")
    metadata = json.loads(cargo("metadata", "--locked", "--no-deps", "--format-version", "1"))
    made = Path(metadata["target_directory"]) / "release"
    module, runtime = given
    return Path(module or made / "lib_ptoc.so"), Path(runtime or made / RUNTIME)


class Build(build_py):
    """Puts what Cargo has built beside the package's sources."""

    def run(self):
        super().run()
        package = HERE / "ptoc" if self.editable_mode else Path(self.build_lib) / "ptoc"
        for source, name in zip(built(), (MODULE, RUNTIME)):
            shutil.copyfile(source, package / name)


class Binary(Distribution):
    """A package with a native module of its own."""

    def has_ext_modules(self):
        return True


setup(
    version=version(),
    cmdclass={"build_py": Build},
    distclass=Binary,
    # The stable ABI: one wheel serves every later version of Python.
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
