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

TORCH_KERNELS = frozenset({BASELINE, "eager", "aot_eager"})
"""Arms that compute with torch's own kernels, and so can't change what eager computes."""


def attempt_arm(
    context: Context, name: str, reference: Reference, build: Callable[[], T]
) -> T | Outcome:
    """Build an arm and compare it; ask behind it whether eager is still what it was.

    Args:
        context: the job and what it is done with.
        name: of the arm.
        reference: what it is held to.
        build: builds the arm and compares it.

    Returns:
        What was built, or how that ended: nondeterministic if eager as an arm is wrong, or if eager
        differs behind an arm that is right.
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
        if moved := reference.constancy.blame(name, asks=name not in TORCH_KERNELS):
            msg = f"{moved}: by the arm's doing, or the model keeps a state outside of itself"
            raise NondeterministicError(msg)
