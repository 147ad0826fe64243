"""The search for the fastest of the constants that `tune` lists name."""

from __future__ import annotations

import itertools
import statistics
from typing import Any, Callable

from . import _errors
from ._ptoc import Kernel, _fastest
from ._results import Timing, Trial, Tuned

#: Rounds in which all configurations are launched, so that a disturbance of the machine meets all of them: as many as
#: of `ptoc bench --tune`.
ROUNDS = 7
#: Configurations at most.
MOST = 1024
#: How many times the best launch a configuration's may take, and how long whatever the best takes, in seconds.
FACTOR = 10
LEAST = 1e-3
#: After how many times the best launch so far one is ended in the middle, and after how many seconds at least.
ENDED = 100
ENDED_LEAST = 0.1

#: Constants of a configuration, with their names.
_Choice = tuple[tuple[str, str], ...]


def tune(
    kernel: Kernel, args: tuple[Any, ...], out: Any, how: tuple[float, bool], named: dict[str, Any]
) -> Tuned:
    """Measures a kernel with every combination of the values that its open `tune` lists name, and stores the best."""
    seconds, retune = how
    given = {name: named.pop(name) for name in kernel.constant_names if name in named}
    kernel = kernel.bind(**given) if given else kernel
    lists = {name: values for name, values in kernel.tune_lists.items() if name not in kernel.constants}
    if not lists:
        message = f"there is nothing to tune: `{kernel.__name__}` has no `tune` list that is open"
        remedy = "name the values to try after a parameter's default: `const BM = 64 tune [32, 64, 128]`"
        raise _errors.of_words("E0714", message, remedy)
    if not retune and (known := _recalled(kernel, lists, args, out, named)):
        return known
    choices = [dict(zip(lists, values)) for values in itertools.product(*lists.values())]
    if len(choices) > MOST:
        message = f"`{kernel.__name__}` has {len(choices)} configurations, and at most {MOST} are tried"
        raise _errors.of_words("E0715", message, f"fix one of them: `{next(iter(lists))}=..`")
    candidates, refused, verified = _compiled(kernel, choices, args, out, named)
    failed = len(refused)
    if not candidates:
        raise next(iter(refused.values()))
    refused.update(_given_up(candidates))
    measured = {choice: candidate for choice, (candidate, _) in candidates.items() if choice not in refused}

    def bench(candidate: Kernel) -> Timing:
        return candidate.bench(*args, out=out, seconds=seconds / ROUNDS, **named)

    rounds = _rounds(measured, bench)
    # Of those that none is faster than, the defaults stay; else the first in the order of the lists.
    equal = _equal(rounds)
    defaults = tuple((name, kernel._tune_defaults.get(name)) for name in lists)
    if defaults in measured and defaults not in equal:
        # Who would take their place meets them once more, since of many some seem to be faster than others.
        two = {choice: measured[choice] for choice in (defaults, equal[0])}
        equal += [choice for choice in _equal(_rounds(two, bench)) if choice == defaults]
    best = defaults if defaults in equal else equal[0]
    timings = {choice: _merged(of) for choice, of in rounds.items()}
    ranked = sorted(rounds, key=lambda choice: (choice != best, choice not in equal, timings[choice].median))
    trials = [Trial(dict(choice), timings[choice], None) for choice in ranked]
    trials += [Trial(dict(choice), None, e) for choice, e in refused.items()]
    # What the checks of the target refuse is no failure: `profile` has other rows for it, and measures anew.
    kernel._keep((list(best), timings[best].median, verified, failed), *args, out=out, **named)
    return Tuned(measured[best], trials, None, [dict(choice) for choice in ranked[: len(equal)]])


def _recalled(
    kernel: Kernel, lists: dict[str, list[str]], args: tuple[Any, ...], out: Any, named: dict[str, Any]
) -> Tuned | None:
    """What was stored for calls like this one, if it is a value of each list."""
    found = kernel._stored(*args, out=out, **named)
    if found is None:
        return None
    best, median, date = found
    if best.keys() != lists.keys() or any(value not in lists[name] for name, value in best.items()):
        return None
    return Tuned(kernel.bind(**best), [Trial(best, Timing(0, median, median), None)], date)


def _compiled(
    kernel: Kernel, choices: list[dict[str, str]], args: tuple[Any, ...], out: Any, named: dict[str, Any]
) -> tuple[dict[_Choice, tuple[Kernel, float]], dict[_Choice, Exception], bool]:
    """The kernels that can be run on these arguments and are right, by their constants, with the best of some launches,
    and why others are not; and whether `ensures` says what is right."""
    verified = False
    measured: dict[_Choice, tuple[Kernel, float]] = {}
    refused: dict[_Choice, Exception] = {}
    for choice in choices:
        key = tuple(choice.items())
        best = min(measured.items(), key=lambda item: item[1][1], default=None)
        limit = max(ENDED * best[1][1], ENDED_LEAST) if best else None
        try:
            candidate = kernel.bind(**choice)
            timing = candidate._bench((0.0, limit), *args, out=out, **named)
            if timing is None:
                assert best and limit
                refused[key] = _slow(f"a launch was ended after {limit * 1e3:.1f} ms", best)
                continue
            verified = candidate._holds(*args, **named) or verified
        except (_errors.ArgumentError, _errors.DtypeError):
            # What is wrong with the arrays is no matter of configurations.
            raise
        except _errors.Error as e:
            refused[key] = e
        else:
            measured[key] = candidate, timing.best
    return measured, refused, verified


def _given_up(candidates: dict[_Choice, tuple[Kernel, float]]) -> dict[_Choice, Exception]:
    """Those that take so much longer than the best that they are not measured: it has no use, and takes long."""
    best = min(candidates.items(), key=lambda item: item[1][1])
    least = best[1][1]
    given_up: dict[_Choice, Exception] = {}
    for choice, (_, took) in candidates.items():
        if took > max(FACTOR * least, LEAST):
            given_up[choice] = _slow(f"a launch takes {took * 1e3:.1f} ms, {took / least:.0f} times the best", best)
    return given_up


def _slow(message: str, best: tuple[_Choice, tuple[Kernel, float]]) -> Exception:
    choice, (_, least) = best
    of = ", ".join(f"{name}={value}" for name, value in choice)
    message = f"{message}; {of} takes {least * 1e3:.3f} ms"
    return _errors.of_words("E0771", message, "`bench` with these constants measures it all the same")


def _rounds(candidates: dict[_Choice, Kernel], bench: Callable[[Kernel], Timing]) -> dict[_Choice, list[Timing]]:
    """Times of kernels that are launched in turns."""
    rounds: dict[_Choice, list[Timing]] = {choice: [] for choice in candidates}
    for _ in range(ROUNDS):
        for choice, candidate in candidates.items():
            rounds[choice].append(bench(candidate))
    return rounds


def _equal(rounds: dict[_Choice, list[Timing]]) -> list[_Choice]:
    """Those that none is faster than."""
    order = list(rounds)
    return [order[n] for n in _fastest([[t.median for t in rounds[choice]] for choice in order])]


def _merged(timings: list[Timing]) -> Timing:
    runs = sum(t.runs for t in timings)
    return Timing(runs, min(t.best for t in timings), statistics.median(t.median for t in timings))
