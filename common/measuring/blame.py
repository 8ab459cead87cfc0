"""Who is to blame for a wrong result: the arm, one that was there before it, or the model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dynamometer.common.checking.repeats import DIFFER
from dynamometer.common.interfaces.outcome import NondeterministicError, WrongResultError, attempt
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.studies.experiment import Context

T = TypeVar("T")

OF_TORCH = frozenset({BASELINE, "eager", "aot_eager"})
"""Arms that mostly come to the very same as eager, and can't change what that computes."""


def attempt_arm(
    context: Context, name: str, reference: Reference, build: Callable[[], T]
) -> T | Outcome:
    """Build an arm and compare it; it answers for what eager has become by then.

    Args:
        context: the job and what it is done with.
        name: of the arm.
        reference: what it is held to; asked once more whether eager is still what it was.
        build: builds the arm and compares it.

    Returns:
        What was built, or how that ended. Eager as an arm that is wrong disagrees with itself; so
        it does where it computes something else since an arm is there whose own results are right:
        by the arm's doing, or as the model keeps a state outside of itself.
    """
    found = attempt(context.stages, partial(_built, name, build))
    moved = attempt(context.stages, partial(_require_unmoved, context, name, reference))
    return moved if isinstance(moved, Outcome) and not isinstance(found, Outcome) else found


def _built(name: str, build: Callable[[], T]) -> T:
    try:
        return build()
    except WrongResultError as error:
        if name == BASELINE:
            raise NondeterministicError(DIFFER.format(error)) from error
        raise


def _require_unmoved(context: Context, name: str, reference: Reference) -> None:
    with context.stages.at(Stage.COMPARE, name):
        if moved := reference.constancy.blame(name, asks=name not in OF_TORCH):
            msg = f"{moved}: by its doing, or the model keeps a state outside of itself"
            raise NondeterministicError(msg)
