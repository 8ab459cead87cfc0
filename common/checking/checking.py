"""Holding an arm's calls to eager's, and what a pass vouches for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dynamometer.common.checking.looking import Call, Look, Taker, make_call
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.dynamo.accuracy.deviation import MOST_ROUNDING
from dynamometer.results.listing import first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.checking.snapshots import Snapshot
    from dynamometer.common.checking.steps import Step
    from dynamometer.dynamo.accuracy.accuracy import Comparison

_FEWEST_LATER, _MOST_LATER, _LATER_S = 2, 12, 10.0
"""Calls that are compared once an arm is warm; beyond the fewest none after so many seconds."""

KEEPS_STATE = "calls after the second: the model keeps state of its own"


@dataclass(frozen=True)
class Checks:
    """What was compared of an arm, and how it came out; no call was wrong.

    Attributes:
        calls: how many were compared.
        max_error: the largest of their deviations (`accuracy.Comparison`).
        unchecked: what could not be compared, each with its path and why.
        loose: by path, what share of its values rounding changes, where that hides smaller errors.
    """

    calls: int = 0
    max_error: float = 0.0
    unchecked: tuple[str, ...] = ()
    loose: Mapping[str, float] = field(default_factory=dict)

    def with_call(self, found: Comparison) -> Checks:
        """Add a call."""
        shares = {
            path: max(share, self.loose.get(path, 0.0)) for path, share in found.loose.items()
        }
        return Checks(
            self.calls + 1,
            max(self.max_error, found.max_error),
            tuple(dict.fromkeys((*self.unchecked, *found.unchecked))),
            {**self.loose, **shares},
        )

    def but_for(self, what: str) -> Checks:
        """Say of something that it was not compared."""
        return replace(self, unchecked=(*self.unchecked, what))

    @property
    def reservations(self) -> tuple[str, ...]:
        """Everything that a pass does not vouch for, in sentences."""
        often = {path: share for path, share in self.loose.items() if share > MOST_ROUNDING}
        seldom = [path for path in self.loose if path not in often]
        hidden = []
        if often:
            worst = max(often, key=often.__getitem__)
            hidden.append(
                f"rounding changes {len(often)} results by more than {MOST_ROUNDING:.0%}, {worst} "
                f"by {often[worst]:.0%}: smaller errors don't show there"
            )
        if seldom:
            hidden.append(
                "farther from eager's than rounding usually takes them: "
                f"{first_of(seldom, 1, ' ')}; smaller errors don't show there"
            )
        return (*self.unchecked, *hidden)


def check(
    checks: Checks, reference: Reference, call: Call, found: Look, *, what: str = ""
) -> Checks:
    """Compare a call.

    Args:
        checks: what was compared before.
        reference: what the arm is held to.
        call: which of eager's it is compared with.
        found: what it came to.
        what: the call in words, where they are others than its own.

    Raises:
        WrongResultError: it came to something else than eager's.
    """
    comparison = reference.judge(call, found)
    if comparison.mismatch:
        number = f" (number {checks.calls + 1})" if call in {Call.LATER, Call.ADDING} else ""
        where = what or ("" if call is Call.FIRST else f"{call}{number}")
        msg = f"{where}: {comparison.mismatch}" if where else comparison.mismatch
        raise WrongResultError(msg, found)
    return checks.with_call(comparison)


def check_after_timing(step: Step, start: Snapshot, reference: Reference, checks: Checks) -> Checks:
    """Compare two calls of an arm that was timed: what goes wrong by then was timed as well.

    Args:
        step: the arm's.
        start: the state its model began with; parameters that are `None` count as they are now.
        reference: what the arm is held to.
        checks: what was compared before.

    Raises:
        WrongResultError: one of them came to something else than eager's.
        Exception: whatever the backend or the model raises.
    """
    if not reference.is_repeatable:
        step.call()  # nothing to compare it with; but it shows what a call does to others
        return checks
    start.restore()
    now, settings = start.taken_again(), reference.settings
    calls = [Call.LATER] if settings.alteration is None else [Call.LATER, Call.ALTERED]
    for call in calls:
        found = make_call(step, now, call, settings)
        checks = check(checks, reference, call, found, what=f"{call} after it was timed")
    return checks


def check_first_calls(
    step: Step, start: Snapshot, reference: Reference, take: Taker = lambda call: call()
) -> Checks:
    """Compare the first two calls of an arm.

    Args:
        step: the arm's.
        start: the state its model began with.
        reference: what the arm is held to.
        take: makes one call; for whoever wants to time it.

    Raises:
        WrongResultError: one of them came to something else than eager's.
        Exception: whatever the backend or the model raises.
    """
    checks = Checks()
    for call in (Call.FIRST, Call.SECOND):
        found = make_call(step, start, call, reference.settings, take)
        checks = check(checks, reference, call, found)
    return checks


def check_later_calls(
    step: Step,
    start: Snapshot,
    reference: Reference,
    checks: Checks,
    now: Callable[[], float],
    *,
    briefly: bool = False,
) -> Checks:
    """Compare calls of an arm that is warm, as those that are timed are, and one on other inputs.

    The state is put back before each; what is compiled once may be replayed wrongly later.

    Args:
        step: the arm's.
        start: the state its model began with, and is left in.
        reference: what the arm is held to.
        checks: what was compared before.
        now: seconds from any fixed point.
        briefly: compare no more calls than the fewest, as others of this arm were compared before.

    Raises:
        WrongResultError: one of them came to something else than eager's.
        Exception: whatever the backend or the model raises.
    """
    if not reference.is_repeatable:
        return checks.but_for(KEEPS_STATE)
    settings, began = reference.settings, now()
    accepted: Look | None = None
    most = 0 if settings.is_brief else _FEWEST_LATER if briefly else _MOST_LATER
    adds = reference.adds and not briefly
    for index in range(most):
        if index >= _FEWEST_LATER + adds and now() - began > _LATER_S:
            break
        # Between two others: those gradients are known that it adds to, and that are there next.
        call = Call.ADDING if adds and index == 1 else Call.LATER
        found = make_call(step, start, call, settings)
        if accepted and not found.updates and found.is_like(accepted):
            checks = replace(checks, calls=checks.calls + 1)
        else:
            checks = check(checks, reference, call, found)
            accepted = found
    if settings.alteration is None:
        checks = checks.but_for("a call on other inputs: eager fails on them, or gives NaN")
    else:
        altered = make_call(step, start, Call.ALTERED, settings)
        checks = check(checks, reference, Call.ALTERED, altered)
        if reference.left_alone:
            checks = checks.but_for(f"other values of {', '.join(reference.left_alone)}")
        for untold in reference.untold_replays:
            checks = checks.but_for(untold)
    start.restore()
    return checks
