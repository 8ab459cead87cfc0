"""Calls of an arm after its first two; of which eager may be what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dynamometer.common.checking.checking import (
    KEEPS_STATE,
    check_first_calls,
    check_later_calls,
)
from dynamometer.common.checking.looking import Look
from dynamometer.common.checking.repeats import BY_FAR
from dynamometer.common.checking.rewriting import check_rewritten
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.dynamo.accuracy.agreement import differ

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.common.checking.checking import Checks
    from dynamometer.common.checking.looking import Settings
    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.checking.snapshots import Snapshot
    from dynamometer.common.checking.steps import Step


@dataclass(frozen=True)
class Further:
    """Which calls come after the first two.

    Attributes:
        calls: how many were made in between, of which none is compared.
        now: seconds from any fixed point.
        briefly: compare no more calls than the fewest, as others of this arm were compared before.
        rewritten: also one on other values in the same memory.
    """

    calls: int
    now: Callable[[], float]
    briefly: bool = False
    rewritten: bool = True


def check_further_calls(
    step: Step, start: Snapshot, reference: Reference, checks: Checks, further: Further
) -> Checks:
    """Compare calls of an arm that has been called before.

    Where one is wrong, eager is called as often. If it comes to the same in that call by what it
    keeps, as a model that counts its calls does, no arm is to blame, and no later calls of any arm
    are compared from then on.

    Args:
        step: the arm's.
        start: the state its model began with, and is left in.
        reference: what the arm is held to.
        checks: what was compared before: the first two calls.
        further: which calls.

    Raises:
        WrongResultError: one of them came to something else than eager's.
        Exception: whatever the backend or the model raises.
    """
    try:
        return _compared(step, start, reference, checks, further)
    except WrongResultError as error:
        if not _is_as_eager(error, reference, further):
            raise
    start.restore()
    reference.forgo_later_calls()
    return checks.but_for(KEEPS_STATE)


def _compared(
    step: Step, start: Snapshot, reference: Reference, checks: Checks, further: Further
) -> Checks:
    checks = check_later_calls(step, start, reference, checks, further.now, briefly=further.briefly)
    return check_rewritten(step, start, reference, checks) if further.rewritten else checks


def _is_as_eager(wrong: WrongResultError, reference: Reference, further: Further) -> bool:
    """Return whether eager as an arm is wrong in that call alike, and counts, which may be why."""
    if not reference.counts:
        return False  # else it may be the doing of somebody who has changed torch since
    further = replace(further, now=lambda: 0.0)  # as many calls, however long they take
    try:
        own, start = reference.fresh()
        checks = check_first_calls(own, start, reference)
        for _ in range(further.calls):
            own.call()
        _compared(own, start, reference, checks, further)
    except WrongResultError as error:
        return _call_in(error) == _call_in(wrong) and not _differ(error, wrong, reference.settings)
    except Exception:  # noqa: BLE001  whatever a model raises: the arm was wrong without
        return False
    return False


def _differ(one: WrongResultError, other: WrongResultError, settings: Settings) -> bool:
    first, second = one.found, other.found
    if not (isinstance(first, Look) and isinstance(second, Look)):
        return True  # it was not seen in what a call came to
    if first.found.keys() != second.found.keys():
        return True
    return differ(first.found, second.found, BY_FAR * settings.tolerance)


def _call_in(error: WrongResultError) -> str:
    """Return which call a message says is wrong."""
    return str(error).partition(": ")[0]
