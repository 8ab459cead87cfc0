"""When a case has had enough replicates. Pure functions; no torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dynamometer.results.reports.coverage_report import is_coverage
from dynamometer.results.reports.sizes_report import is_sweep, summarize_sweep
from dynamometer.results.statistics import batch_sizes
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Status, StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import Ratio, Record


def stop_reason(records: Sequence[Record], protocol: Protocol) -> StopReason | None:
    """Say why a case needs no further replicate, or `None` if it does.

    What decides is how well the speedups are known, never what they are: to go on until a
    difference is significant would find one in the end.

    Args:
        records: of the case, one for each replicate it had; at least one.
        protocol: what was asked for.
    """
    if batch_sizes.is_search(records):
        return _end_of_search(records, protocol)
    if is_coverage(records):
        return StopReason.REPLICATES if len(records) >= protocol.replicates else None
    return _end_of_measuring(records, protocol)


def _end_of_measuring(records: Sequence[Record], protocol: Protocol) -> StopReason | None:
    if not all(_is_worth_repeating(record) for record in records):
        return StopReason.FAILED
    if len(records) < protocol.replicates:
        return None
    if len(records) >= protocol.most_replicates:
        return StopReason.REPLICATES
    if all(is_precise(ratio, protocol.target) for ratio in _ratios(records)):
        return StopReason.TARGET
    spent_s = math.fsum(second for record in records for second in record.seconds.values())
    if protocol.case_budget_s is not None and spent_s >= protocol.case_budget_s:
        return StopReason.TIME
    return None


def _ratios(records: Sequence[Record]) -> list[Ratio]:
    """Give the speedups over the baseline: of the arms, or of what was compiled for all sizes."""
    if is_sweep(records):
        return [each.over_eager for each in summarize_sweep(records).sizes]
    return [arm.speedup for arm in summarize_case(records).arms if arm.speedup]


def is_precise(ratio: Ratio, target: float) -> bool:
    """Tell whether half the width of a ratio's interval is at most a share of it."""
    return math.log(ratio.high / ratio.low) / 2 <= math.log1p(target)


def _end_of_search(records: Sequence[Record], protocol: Protocol) -> StopReason | None:
    if batch_sizes.is_over(records):
        return StopReason.FOUND
    return StopReason.REPLICATES if len(records) >= protocol.most_replicates else None


def _is_worth_repeating(record: Record) -> bool:
    """Tell whether the baseline passed and an arm beside it, so that more replicates tell more."""
    passed = {each.arm: each.outcome.status is Status.PASS for each in record.arms}
    return passed.pop(BASELINE, True) and any(passed.values())
