"""Exceptions: reports of the compiler, with their codes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any


class _Report:
    """What a report has, whether it is raised or a warning."""

    code: str
    rendered: str
    _colored: str
    _json: list[str]

    def _take(self, code: str, rendered: str, colored: str, diagnostics: list[str]) -> None:
        self.code = code
        self.rendered = rendered
        self._colored = colored
        self._json = diagnostics

    @property
    def diagnostics(self) -> list[dict[str, Any]]:
        """Each diagnostic as a dictionary: code, severity, message, file, span, labels, notes, fixes."""
        return [json.loads(text) for text in self._json]

    def __str__(self) -> str:
        return self.rendered


class Error(_Report, Exception):
    """What is wrong with a kernel, a call or a launch. `code` explains itself: `ptoc explain CODE`."""

    def __init__(self, code: str = "", rendered: str = "", colored: str = "", diagnostics: Sequence[str] = ()):
        Exception.__init__(self, rendered)
        self._take(code, rendered, colored, list(diagnostics))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.rendered, self._colored, self._json)


class CompileError(Error):
    """The kernel is refused: its text has mistakes, or it does not fit the target with these sizes."""


class ArgumentError(Error, ValueError):
    """An argument has a value that it cannot have: shapes, strides, memory, contents of arrays, options."""


class DtypeError(Error, TypeError):
    """An argument is of the wrong type, or there are too many or too few."""


class VerificationError(Error, AssertionError):
    """Results are not what the kernel's `ensures` says, or there is nothing to hold them to."""


class LaunchError(Error, RuntimeError):
    """A check failed while the kernel ran. Outputs hold what was written until then."""


class UnknownKernelError(Error, AttributeError):
    """The file has no kernel of that name."""


class SourceFileError(Error, OSError):
    """A file cannot be read."""


class Warning(_Report, UserWarning):
    """What the compiler or a launch warns of."""

    def __init__(self, code: str = "", rendered: str = "", colored: str = "", diagnostics: Sequence[str] = ()):
        UserWarning.__init__(self, rendered)
        self._take(code, rendered, colored, list(diagnostics))


for _class in (
    Error,
    CompileError,
    ArgumentError,
    DtypeError,
    VerificationError,
    LaunchError,
    UnknownKernelError,
    SourceFileError,
    Warning,
):
    _class.__module__ = "ptoc"

_KINDS: dict[str, type[Error]] = {
    "E0740": SourceFileError,
    "E0741": SourceFileError,
    "E0743": UnknownKernelError,
    # Dtypes and numbers of arguments.
    **dict.fromkeys(["E0745", "E0746", "E0747", "E0750", "E0752", "E0763", "E0764"], DtypeError),
    # Sizes, contents, memory.
    **dict.fromkeys(["E0310", "E0708", "E0748", "E0749", "E0751", "E0753", "E0755"], ArgumentError),
    **dict.fromkeys(["E0760", "E0761", "E0762", "E0766"], ArgumentError),
    # Targets, backends, stages, options.
    **dict.fromkeys(["E0650", "E0765", "E1307"], ArgumentError),
    **dict.fromkeys(["E0713", "E0754", "E0756"], VerificationError),
    **dict.fromkeys(["E0722", "E0723", "E0731", "E0732"], LaunchError),
}


def of_report(code: str, rendered: str, colored: str, diagnostics: Sequence[str]) -> Error:
    """The exception for a report."""
    otherwise = LaunchError if code.startswith("PA-") else CompileError
    return _KINDS.get(code, otherwise)(code, rendered, colored, diagnostics)


def of_words(code: str, message: str, remedy: str) -> Error:
    """The exception for what this package itself refuses, in the form of a report."""
    rendered = f"error[{code}]: {message}\n    = help: {remedy}"
    diagnostic = {"code": code, "severity": "error", "message": message, "fixes": [{"message": remedy, "edits": []}]}
    return of_report(code, rendered, rendered, [json.dumps(diagnostic)])


def warn(code: str, rendered: str, colored: str, diagnostics: Sequence[str]) -> None:
    """Warns of a report, at the place of the call."""
    warnings.warn(Warning(code, rendered, colored, diagnostics), stacklevel=2)

