"""Kernels and libraries that come from another process. One text is loaded once, so its kernels share their code."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from ._ptoc import Kernel, Library, load, tile


@functools.lru_cache(maxsize=64)
def library(path: Path, source: str, target: str, backend: str | None, exact: bool) -> Library:
    """The library of this text. A module of the standard library is the one of this version."""
    name = str(path)
    if name.startswith("std::"):
        return load(name, target=target, backend=backend, exact=exact)
    return tile(source, name=name, target=target, backend=backend, exact=exact)


def kernel(of: tuple[Any, ...], name: str, constants: dict[str, str]) -> Kernel:
    """A kernel of a library, with constants."""
    found = library(*of)[name]
    return found.bind(**constants) if constants else found
