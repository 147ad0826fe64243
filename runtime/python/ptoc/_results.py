"""What measurements and comparisons return."""

from __future__ import annotations

from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """What a kernel takes: an array, or a scalar, whose `shape` is `None`.

    Extents are as they are declared; `("...",)` where the value of a layout says how many there are.
    """

    name: str
    direction: str
    dtype: str
    shape: tuple[str, ...] | None
    optional: bool
    #: What it is where a call leaves it out, as an expression of the language.
    default: str | None = None


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


class Trial(NamedTuple):
    """A configuration of a tuned kernel: how long it takes, or why it cannot be run."""

    constants: dict[str, str]
    timing: Timing | None
    refused: Exception | None


class Tuned(NamedTuple):
    """The fastest configuration as a kernel, and all that were tried, the fastest first."""

    kernel: Any
    trials: list[Trial]
    #: When the best was stored, if it was, and nothing was measured.
    stored: str | None = None
    #: The constants of those that none was faster than: more than one is a tie, of which the defaults stay.
    fastest: list[dict[str, str]] = []

    @property
    def constants(self) -> dict[str, str]:
        """Of the fastest."""
        return self.trials[0].constants

    def __str__(self) -> str:
        def line(trial: Trial) -> str:
            words = " ".join(f"{name}={value}" for name, value in trial.constants.items())
            tie = ", a tie" if len(self.fastest) > 1 and trial.constants in self.fastest else ""
            return f"{words:<32} {trial.timing or getattr(trial.refused, 'code', trial.refused)}{tie}"

        return "\n".join(map(line, self.trials))
