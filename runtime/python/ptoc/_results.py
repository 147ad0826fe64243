"""What measurements and comparisons return."""

from typing import NamedTuple


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
