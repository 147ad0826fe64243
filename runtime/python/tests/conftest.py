"""The package under test: the one that is installed, or the sources with the library that cargo has built.

`PTOC_LIBRARY` names a built library; without it the newest of `target/*/` is taken.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

# Results of tuning are not the user's.
os.environ.setdefault("PTOC_TUNING", "off")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
EXAMPLES = ROOT / "examples"


def _library() -> Path | None:
    if given := os.environ.get("PTOC_LIBRARY"):
        return Path(given)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    names = ("lib_ptoc.so", "lib_ptoc.dylib", "_ptoc.dll")
    # `cargo build` leaves it beside the folder of dependencies, `cargo test` in it.
    folders = [target / kind / inner for kind in ("debug", "release") for inner in (".", "deps")]
    built = [path for folder in folders for name in names if (path := folder / name).exists()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


def _prepare() -> None:
    found = importlib.util.find_spec("ptoc")
    # The sources alone are no installation.
    native = (".so", ".pyd")
    installed = found is not None and any(p.suffix in native for p in Path(found.origin).parent.glob("_ptoc*"))
    if installed and "PTOC_LIBRARY" not in os.environ:
        return
    library = _library()
    if library is None:
        raise pytest.UsageError("no library to test: `cargo build -p ptoc-python`, or `pip install ./runtime/python`")
    place = Path(tempfile.mkdtemp(prefix="ptoc-python-"))
    shutil.copytree(HERE.parent / "ptoc", place / "ptoc", ignore=shutil.ignore_patterns("__pycache__", "_ptoc*.so"))
    suffix = ".pyd" if library.suffix == ".dll" else ".abi3.so"
    os.symlink(library, place / "ptoc" / f"_ptoc{suffix}")
    sys.path.insert(0, str(place))
    # Processes that tests start find it, too.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    import atexit

    atexit.register(shutil.rmtree, place, ignore_errors=True)


_prepare()


@pytest.fixture
def examples() -> Path:
    return EXAMPLES
