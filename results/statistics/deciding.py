"""Which candidate computes a graph or a model from now on, by what was measured. Pure; no torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.statistics.interference import LARGEST_SHIFT
from dynamometer.results.statistics.replicates import find, interfere, of_pair, speedup_over
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.cases import BASELINE, NO_BACKEND
from dynamometer.results.values.decisions import Decision, Evidence
from dynamometer.results.values.metrics import LATENCY, LATENCY_ALONE
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.decisions import Tuned
    from dynamometer.results.values.records import Record


def evidence(records: Sequence[Record]) -> tuple[Evidence, ...]:
    """Return what each candidate came to in the replicates it took part in."""
    return tuple(_evidence(arm, _with_arm(arm, records)) for arm in records[0].case.arms[1:])


def choose(records: Sequence[Record], preferred: str | None = None) -> str:
    """Return the fastest candidate that is faster than eager by more than its interval, or eager.

    Where their ratio isn't what it is alone, it has to be faster alone as well: one that is as fast
    as eager would win if eager was slowed down beside it.

    Args:
        records: of one graph or model; at least one.
        preferred: a candidate that stays unless another is faster than it by more than the
            interval between the two.
    """
    winners = {
        each.arm: each.speedup
        for each in evidence(records)
        if each.outcome.status is Status.PASS and each.speedup and each.speedup.low > 1
        if _holds_alone(BASELINE, each.arm, records)
    }
    if not winners:
        return NO_BACKEND
    best = max(winners, key=lambda arm: (winners[arm].value, arm))
    if preferred not in winners:
        return best
    ahead = speedup_over(preferred, best, records)
    is_faster = ahead and ahead.low > 1 and _holds_alone(preferred, best, records)
    return best if is_faster else preferred


def _holds_alone(base: str, arm: str, records: Sequence[Record]) -> bool:
    """Return whether an arm that is faster than another in blocks is so alone as well.

    It is asked where their ratio in blocks is another one than alone. Alone it has to be faster by
    more than ratios differ by where nothing disturbs them.
    """
    together = _with_arm(base, _with_arm(arm, records))
    own = [of_pair(each, (base, arm)) for each in together]
    if not interfere(own):
        return True
    base_s, arm_s = (
        LATENCY_ALONE.value(find(own, LATENCY_ALONE.name, each)) for each in (base, arm)
    )
    return base_s is not None and arm_s is not None and base_s > (1 + LARGEST_SHIFT) * arm_s


def survivors(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the candidates that may still be chosen, of those in the last replicate.

    Those are out that failed, or are slower than the best of all or than eager by more than the
    intervals.
    """
    running = {each.arm for each in records[-1].arms}
    ratios = {
        each.arm: each.speedup
        for each in evidence(records)
        if each.arm in running and each.outcome.status is Status.PASS and each.speedup
    }
    bar = max((each.low for each in ratios.values()), default=1.0)
    return tuple(arm for arm, each in ratios.items() if each.high > 1 and each.high >= bar)


def is_settled(records: Sequence[Record]) -> bool:
    """Return whether further replicates would change nothing: one candidate is left, or none."""
    left = survivors(records)
    return not left or left == (choose(records),)


def decide(
    records: Sequence[Record], about: Tuned, decided_at: str, preferred: str | None = None
) -> Decision:
    """Return the decision that the replicates of a graph or a model come to.

    Args:
        records: of it; at least one.
        about: what a worker said of it.
        decided_at: UTC, ISO 8601.
        preferred: as in `choose`.
    """
    eager_s, known = summarize_case(records).baseline.latency_s, evidence(records)
    return Decision(
        subject=about.subject,
        key=about.key,
        label=records[0].case.label,
        setting=about.setting,
        arm=choose(records, preferred),
        eager_s=_of_a_call(eager_s, about),
        evidence=tuple(
            msgspec.structs.replace(each, latency_s=_of_a_call(each.latency_s, about))
            for each in known
        ),
        tuning_s=math.fsum(spent_s for each in records for spent_s in each.seconds.values()),
        decided_at=decided_at,
        run=records[0].run_id,
    )


def _of_a_call(step_s: float | None, about: Tuned) -> float | None:
    return None if step_s is None else step_s / about.calls


def _with_arm(arm: str, records: Sequence[Record]) -> list[Record]:
    """Return the replicates an arm took part in; all where it has no result of its own in any."""
    found = [each for each in records if any(result.arm == arm for result in each.arms)]
    return found or list(records)


def _evidence(arm: str, records: Sequence[Record]) -> Evidence:
    (found,) = (each for each in summarize_case(records).arms if each.name == arm)
    return Evidence(
        arm=arm,
        outcome=found.outcome,
        speedup=found.speedup,
        latency_s=found.latency_s,
        compile_s=found.compile_s,
        samples=sum(len(each.samples) for each in find(records, LATENCY.name, arm)),
    )
