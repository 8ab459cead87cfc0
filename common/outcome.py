"""Model faults are data: the one place that catches everything and says what it was."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, TypeVar

from dynamometer.results.schema import Outcome, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.common.experiment import StageClock

T = TypeVar("T")

_DETAIL_CHARACTERS = 8_000
_OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "not enough memory", "bad_alloc")
"""What torch and its libraries write into a plain RuntimeError when an allocation fails."""


class SkippedError(Exception):
    """Raised in a worker where a case or an arm can't be run for a reason that is no fault."""


class WrongResultError(Exception):
    """Raised in a worker where an arm's result is not eager's."""


class NondeterministicError(Exception):
    """Raised in a worker where eager disagrees with itself."""


def attempt(stages: StageClock, action: Callable[[], T]) -> T | Outcome:
    """Do what may fail in any way a model can, and turn a failure into an outcome."""
    try:
        return action()
    except BaseException as error:  # noqa: BLE001  a model's SystemExit must not end the sweep
        return classify(error, stages.stage or Stage.WORKER)


def classify(error: BaseException, stage: Stage) -> Outcome:
    """Name what an exception means for the case it was raised in."""
    kind = type(error).__name__
    detail = "".join(traceback.format_exception(error))[-_DETAIL_CHARACTERS:]
    first_line = next(iter(str(error).strip().splitlines()), "")
    reason = f"{kind}: {first_line}" if first_line else kind
    match error:
        case SkippedError():
            return Outcome(status=Status.SKIP, stage=stage, reason=str(error))
        case WrongResultError():
            return Outcome(status=Status.FAIL_ACCURACY, stage=stage, reason=str(error))
        case NondeterministicError():
            return Outcome(status=Status.NONDETERMINISTIC, stage=stage, reason=str(error))
        case _ if is_out_of_memory(error):
            return Outcome(status=Status.OOM, stage=stage, reason=reason, detail=detail)
        case NotImplementedError() if stage is Stage.LOAD:
            # TorchBench's models say so when they don't support a device or mode.
            return Outcome(status=Status.SKIP, stage=stage, reason=reason, detail=detail)
        case _:
            return Outcome(status=Status.FAIL, stage=stage, reason=reason, detail=detail)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an exception, or what caused it, is a failed allocation."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    if isinstance(error, RuntimeError) and any(sign in text for sign in _OUT_OF_MEMORY):
        return True
    cause = error.__cause__
    return cause is not None and cause is not error and is_out_of_memory(cause)


_SEVERITY = (
    Status.PASS,
    Status.SKIP,
    Status.FAIL_ACCURACY,
    Status.NONDETERMINISTIC,
    Status.FAIL,
    Status.OOM,
    Status.TIMEOUT,
    Status.CRASH,
    Status.INFRA,
)


def worst(outcomes: list[Outcome]) -> Outcome:
    """Give the gravest of some outcomes; the first of equals."""
    return max(outcomes, key=lambda outcome: _SEVERITY.index(outcome.status))
