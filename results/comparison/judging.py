"""Whether what was measured of an arm changed, beyond chance and the floor. Pure; no torch."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dynamometer.results.comparison.quantities import EAGER_LATENCY, LATENCY, SPEEDUP, difference
from dynamometer.results.statistics.replicates import log_speedups
from dynamometer.results.statistics.significance import (
    Mean,
    Verdict,
    adjusted,
    moderated,
    ratio,
    replicates_to_settle,
    verdict,
    widest,
)
from dynamometer.results.values.comparison import Drift
from dynamometer.results.values.metrics import Better

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.comparison.pairing import Pair
    from dynamometer.results.comparison.quantities import Kind, Quantity
    from dynamometer.results.values.records import Ratio

FEWEST_FOR_DRIFT = 5
"""Cases whose median tells how the machine's speed, or torch as a whole, changed."""


@dataclass(frozen=True)
class Judged:
    """One quantity of one arm of a case, after against before.

    Attributes:
        pair: the arm on both sides.
        kind: of quantity.
        mean: the logarithm of after over before.
        ratio: after over before.
        adjusted_p: among all that were judged by this quantity.
        verdict: FASTER if the arm is better, SLOWER if it is worse.
        by_eager: how eager moved, where a speedup changed for no other reason.
        run_sd: the part of the mean's error that runs have besides what their processes show.
    """

    pair: Pair
    kind: Kind
    mean: Mean
    ratio: Ratio
    adjusted_p: float
    verdict: Verdict
    by_eager: Judged | None = None
    run_sd: float = 0.0

    @property
    def before(self) -> Quantity:
        """The quantity on one side."""
        return self.pair.before.quantities[self.kind.name]

    @property
    def after(self) -> Quantity:
        """On the other."""
        return self.pair.after.quantities[self.kind.name]

    @property
    def settled_by(self) -> int | None:
        """How many replicates of each side would settle it; `None` if none up to 200 would."""
        return replicates_to_settle(self.mean, self.adjusted_p, self.kind.floor, self.run_sd)


def judge(kind: Kind, pairs: Sequence[Pair], run_sd: float = 0.0) -> list[Judged]:
    """Judge one quantity of all arms of all cases, as one family.

    Left out are those that did not pass on both sides, that were disturbed on either, or were not
    measured under the same condition.

    Args:
        kind: of quantity.
        pairs: arms of cases that both sides have.
        run_sd: standard deviation of a change between runs, beyond what their processes show.
    """
    found = [
        (pair, mean._replace(error=math.hypot(mean.error, run_sd)))
        for pair in pairs
        if (mean := _change(kind, pair)) is not None
    ]
    ratios = [ratio(mean) for _, mean in found]
    p_values = adjusted([each.p_value for each in ratios])
    return [
        Judged(pair, kind, mean, changed, p_value, _verdict(kind, mean, p_value), run_sd=run_sd)
        for (pair, mean), changed, p_value in zip(found, ratios, p_values, strict=True)
    ]


def drift(pairs: Sequence[Pair]) -> tuple[Drift | None, list[Judged]]:
    """Return how eager itself moved, and the cases in which it did apart from all others.

    What all cases share, their median, is the machine's doing or that of torch as a whole. Of few
    cases no median is told apart from what each of them does: there it is as it is. Of CSV files
    each arm has an eager of its own, and counts as a case.
    """
    of_cases: dict[tuple[object, ...], tuple[Pair, Mean]] = {}
    for pair in pairs:  # an arm that did not pass has nothing, and others of its case do
        mean = _change(EAGER_LATENCY, pair)
        if mean is not None:
            of_cases.setdefault(_eager_of(pair), (pair, mean))
    found = list(of_cases.values())
    if not found:
        return None, []
    logs = [mean.value for _, mean in found]
    middle = statistics.median(logs)
    low, _, high = statistics.quantiles(logs, method="inclusive") if len(logs) > 1 else logs * 3
    summary = Drift(
        n=len(found),
        ratio=math.exp(middle),
        middle_half=(math.exp(low), math.exp(high)),
        is_apart=len(found) >= FEWEST_FOR_DRIFT,
    )
    judged = _apart(found, middle if summary.is_apart else 0.0)
    return summary, [each for each in judged if each.verdict in _MOVED]


_MOVED = (Verdict.FASTER, Verdict.SLOWER)


def explained(judged: Sequence[Judged], moved: Sequence[Judged], found: Drift) -> list[Judged]:
    """Return speedups with how eager moved, where that is why they changed.

    That is so unless the compiled code, apart from what all cases have in common, moved beyond
    chance and the floor as the speedup did.

    Args:
        judged: speedups.
        moved: cases whose eager moved.
        found: what all cases have in common.
    """
    by_case = {_eager_of(each.pair): each for each in moved}
    return [
        replace(each, by_eager=eager)
        if (eager := by_case.get(_eager_of(each.pair))) and _is_explained(each, eager, found)
        else each
        for each in judged
    ]


def _case_of(pair: Pair) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(pair.before.identity.items()))


def _eager_of(pair: Pair) -> tuple[object, ...]:
    """Return what tells one eager from another: arms share it in a run, but not in CSV files."""
    are_of_runs = pair.before.records and pair.after.records
    return (_case_of(pair), None if are_of_runs else pair.before.arm)


def _is_explained(judged: Judged, eager: Judged, found: Drift) -> bool:
    own = _change(LATENCY, judged.pair)
    if own is None or {judged.verdict, eager.verdict} != set(_MOVED):
        return False
    apart = own._replace(value=own.value - (math.log(found.ratio) if found.is_apart else 0.0))
    slowdown = ratio(apart)
    least = 1 + SPEEDUP.floor
    is_worse, is_better = slowdown.low > least, slowdown.high < 1 / least
    return not (is_worse if judged.verdict is Verdict.SLOWER else is_better)


def spread(judged: Sequence[Judged]) -> tuple[float, float] | None:
    """Return how far the changes of a usual case are from the median of all.

    As a multiple of their standard error, which is 1 where runs differ as their processes do, and
    as the standard deviation that is left then. `None` of few: there it says nothing. The arms of a
    case share eager, and count as one: their median.
    """
    of_cases = defaultdict[object, list[Mean]](list)
    for each in judged:
        of_cases[_case_of(each.pair)].append(each.mean)
    if len(of_cases) < _FEWEST_FOR_SPREAD:
        return None
    changes = [statistics.median(each.value for each in means) for means in of_cases.values()]
    middle = statistics.median(changes)
    found = _SD_OVER_MAD * statistics.median(abs(each - middle) for each in changes)
    error = statistics.median(each.mean.error for each in judged)
    if not error:
        return None
    return found / error, math.sqrt(max(0.0, found**2 - error**2))


_FEWEST_FOR_SPREAD = 10
_SD_OVER_MAD = 1.4826
"""Of a normal distribution."""


def _apart(found: Sequence[tuple[Pair, Mean]], middle: float) -> list[Judged]:
    """Judge changes apart from a share that all have."""
    own = [(pair, mean, mean._replace(value=mean.value - middle)) for pair, mean in found]
    p_values = adjusted([ratio(each).p_value for *_, each in own])
    return [
        Judged(pair, EAGER_LATENCY, mean, ratio(mean), p_value,
               _verdict(EAGER_LATENCY, each, p_value, SPEEDUP.floor))
        for (pair, mean, each), p_value in zip(own, p_values, strict=True)
    ]  # fmt: skip


def _change(kind: Kind, pair: Pair) -> Mean | None:
    """Return the logarithm of after over before; `None` where that says nothing."""
    was, now = (each.quantities.get(kind.name) for each in (pair.before, pair.after))
    if was is None or now is None or was.condition != now.condition:
        return None
    if not pair.both_passed or pair.doubt or pair.why_incomparable:
        return None
    records = pair.before.records
    if kind is SPEEDUP and records and records == pair.after.records:
        # Two arms of one run share processes and blocks.
        found = log_speedups(pair.before.arm, pair.after.arm, records)
        return moderated(found, widest((was.between_sd, now.between_sd))) if found else None
    return difference(was.mean, now.mean)


def _verdict(kind: Kind, mean: Mean, adjusted_p: float, floor: float | None = None) -> Verdict:
    improvement = mean if kind.better is Better.HIGHER else mean._replace(value=-mean.value)
    return verdict(ratio(improvement), adjusted_p, kind.floor if floor is None else floor)
