"""Learning from records how far processes differ that measure the same. Pure; no torch."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from dynamometer.results.cases import BASELINE
from dynamometer.results.inference import pool
from dynamometer.results.records import Status
from dynamometer.results.summary import log_speedups, summarize_case, summarize_cases

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
    return pool(each for records in runs for each in _variances(records))


def _variances(records: Iterable[Record]) -> Iterator[tuple[float, float]]:
    """Give of each case that was timed twice or more the variance and its degrees of freedom.

    The mean over its arms, as these share the baseline's processes and don't vary apart. Of
    replicates that nothing disturbed, whose arms shared their blocks.
    """
    calm = [record for record in records if _tells(record)]
    for case in summarize_cases(calm):
        series = [log_speedups(BASELINE, arm.name, case.records) for arm in case.arms]
        found = [
            statistics.variance(value for value, _ in each) for each in series if len(each) > 1
        ]
        if found:
            yield statistics.fmean(found), len(case.records) - 1


def _tells(record: Record) -> bool:
    if record.outcome.status is not Status.PASS:
        return False
    found = summarize_case([record])
    return found.is_conclusive and not found.is_apart
