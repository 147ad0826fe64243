"""What measurements and comparisons return."""

from __future__ import annotations

from typing import NamedTuple


class Parameter(NamedTuple):
    """What a kernel takes: an array, or a scalar, whose `shape` is `None`."""

    name: str
    direction: str
    dtype: str
    shape: tuple[str, ...] | None
    optional: bool


class Timing(NamedTuple):
    """How long a kernel takes, in seconds."""

    runs: int
    best: float
    median: float

    def __str__(self) -> str:
        return f"median {self.median * 1e6:.1f} us, best {self.best * 1e6:.1f} us of {self.runs} runs"


class Verified(NamedTuple):
    """A result that is what `ensures` says, within the tolerance."""

    name: str
    elements: int
    max_error: float
    left_out: int
