"""What `inspect.signature` says of a kernel."""

from __future__ import annotations

import inspect
import keyword

from typing import Any

from ._ptoc import Kernel
from ._results import Parameter

_Parameter = inspect.Parameter


def of(kernel: Kernel, outputs: bool = True) -> inspect.Signature:
    """Inputs by position or by name, then by name alone: outputs and `out`, where it takes them, and constants."""
    inputs = [p for p in kernel.parameters if p.direction != "out"]
    written = [p for p in kernel.parameters if p.direction == "out" and outputs]
    # Behind the last input that has to be given, those that have not may be left out.
    last = max((n for n, p in enumerate(inputs) if not p.optional), default=-1)
    taken = []
    for n, p in enumerate(inputs):
        default = None if n > last else _Parameter.empty
        taken.append(_Parameter(_name(p.name), _Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=_type(p)))
    named: dict[str, Any] = {_name(p.name): _type(p) for p in written}
    if outputs:
        named.setdefault("out", _Parameter.empty)
    given = {p.name for p in taken}
    for name in kernel.constant_names:
        if _name(name) not in given:
            named.setdefault(_name(name), _Parameter.empty)
    for name, annotation in named.items():
        taken.append(_Parameter(name, _Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    return inspect.Signature(taken)


def _name(name: str) -> str:
    """The name, or one that Python takes."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _type(p: Parameter) -> str:
    """As it is declared, `in f32[M, N]`; the default of a scalar stands behind it."""
    if p.shape is None:
        return p.dtype if p.default is None else f"{p.dtype} = {p.default}"
    return f"{p.direction} {p.dtype}[{', '.join(p.shape)}]"
