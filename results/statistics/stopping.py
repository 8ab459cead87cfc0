"""When a case has had enough replicates. Pure functions; no torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Status, StopReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import Ratio, Record


def end_of_measuring(
    records: Sequence[Record], protocol: Protocol, ratios: Iterable[Ratio]
) -> StopReason | None:
    """Return why a case needs no further replicate, or `None` if it does.

    Args:
        records: of the case, one for each replicate it had; at least one.
        protocol: what was asked for.
        ratios: what is to be known as well as was asked; looked at only where that decides.
    """
    if not _are_worth_repeating(records):
        return StopReason.FAILED
    if len(records) < protocol.replicates:
        return None
    if len(records) >= protocol.most_replicates:
        return StopReason.REPLICATES
    if all(is_precise(ratio, protocol.target) for ratio in ratios):
        return StopReason.TARGET
    spent_s = math.fsum(second for record in records for second in record.seconds.values())
    if protocol.case_budget_s is not None and spent_s >= protocol.case_budget_s:
        return StopReason.TIME
    return None


def is_precise(ratio: Ratio, target: float) -> bool:
    """Return whether half the width of a ratio's interval is at most a share of it."""
    return math.log(ratio.high / ratio.low) / 2 <= math.log1p(target)


def _are_worth_repeating(records: Sequence[Record]) -> bool:
    """Return whether the baseline and an arm passed in all, so that more replicates tell more."""
    failed = {
        each.arm for record in records for each in record.arms
        if each.outcome.status is not Status.PASS
    }  # fmt: skip
    return BASELINE not in failed and any(each.arm not in failed for each in records[-1].arms
                                          if each.arm != BASELINE)  # fmt: skip
