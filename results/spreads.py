"""Learning from records how far processes differ that measure the same. Pure; no torch."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from dynamometer.results.cases import BASELINE
from dynamometer.results.inference import pool
from dynamometer.results.records import Status
from dynamometer.results.replicates import log_speedups, of_pair
from dynamometer.results.summary import summarize_case, summarize_cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dynamometer.results.records import Record, Spread


def learn(runs: Iterable[Iterable[Record]]) -> Spread | None:
    """Pool the variances between replicates of every case.

    Args:
        runs: of each its records; those of one machine, suite and protocol.

    Returns:
        `None` where there is too little to learn from.
    """
    return pool(each for records in runs for each in variances(records))


def variances(records: Iterable[Record]) -> Iterator[tuple[float, float]]:
    """Give of each case that was timed twice or more the variance and its degrees of freedom.

    The mean over its arms, as these share the baseline's processes and don't vary apart. Of
    replicates that nothing disturbed, whose arms shared their blocks.
    """
    for case in summarize_cases(each for each in records if each.outcome.status is Status.PASS):
        series = [_calm_log_speedups(case.records, arm.name) for arm in case.arms]
        several = [each for each in series if len(each) > 1]
        if several:
            df = max(len(each) for each in several) - 1
            yield statistics.fmean(statistics.variance(each) for each in several), df


def _calm_log_speedups(records: Iterable[Record], arm: str) -> list[float]:
    pair = (BASELINE, arm)
    calm = [each for each in (of_pair(record, pair) for record in records) if _tells(each)]
    return [value for value, _ in log_speedups(*pair, calm)]


def _tells(record: Record) -> bool:
    found = summarize_case([record])
    return not (found.is_disturbed or found.is_apart or record.rested)
