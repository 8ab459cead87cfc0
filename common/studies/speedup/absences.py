"""What of a case could not be timed, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.metrics import COMPILE_TIME, COMPILE_TIME_WARM, LATENCY
from dynamometer.results.values.records import Absence, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dynamometer.results.values.records import ArmResult, Measurement

_COMPILE_TIMES = frozenset({COMPILE_TIME.name, COMPILE_TIME_WARM.name})

_SHARED_CACHES = (
    "its compiler's caches were filled before, as by another arm; --cold with more replicates"
    " (-r 8), each of which builds the arms in another order, gives a time for each"
)


_COMPILED_ALWAYS = "something was compiled until the end of its warm-up"


def absences(
    results: Sequence[ArmResult],
    measurements: Sequence[Measurement],
    compiled_always: Collection[str] = (),
) -> tuple[Absence, ...]:
    """Return for each arm which latency and compile time are missing, and why.

    Args:
        results: of all arms.
        measurements: of them.
        compiled_always: the arms that compiled something in every window of their warm-up.
    """
    absent = []
    for result in results:
        found = {each.metric for each in measurements if each.arm == result.arm}
        missing = [] if LATENCY.name in found else [LATENCY.name]
        if result.arm != BASELINE and not found & _COMPILE_TIMES:
            missing.append(COMPILE_TIME.name)
        absent += [
            Absence(
                metric=each,
                arm=result.arm,
                reason=_why_missing(each, result, compiled_always),
            )
            for each in missing
        ]
    return tuple(absent)


def _why_missing(metric: str, result: ArmResult, compiled_always: Collection[str]) -> str:
    outcome = result.outcome
    if outcome.status is not Status.PASS:
        return outcome.reason or str(outcome.status)
    if metric == COMPILE_TIME.name:
        return _COMPILED_ALWAYS if result.arm in compiled_always else _SHARED_CACHES
    return "there was no other arm to compare it with"
