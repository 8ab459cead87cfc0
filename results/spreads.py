"""Learning from records how far processes differ that measure the same. Pure; no torch."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.cases import BASELINE
from dynamometer.results.inference import pool, updated
from dynamometer.results.records import ASSUMED_SPREAD, Status
from dynamometer.results.replicates import log_speedups, of_pair
from dynamometer.results.summary import summarize_case, summarize_cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dynamometer.results.records import Record, Spread
    from dynamometer.results.summary import CaseSummary


def learn(runs: Iterable[Iterable[Record]]) -> Spread | None:
    """Pool the variances between replicates of every case.

    Args:
        runs: of each its records; those of one machine, suite and protocol.

    Returns:
        `None` where there is too little to learn from.
    """
    return pool(each for records in runs for each in variances(records))


def variances(records: Iterable[Record]) -> Iterator[tuple[float, float]]:
    """Give of each case that was timed twice or more the variance and its degrees of freedom."""
    passed = [each for each in records if each.outcome.status is Status.PASS]
    return filter(None, map(_variance, summarize_cases(passed)))


def shared(cases: Sequence[CaseSummary]) -> list[CaseSummary]:
    """Summarize the cases of a run again, each by how far processes of the others differ.

    That is for when the run is over, and for a machine of which nothing was known when it began;
    where earlier runs have taught something, and where there are no others, nothing changes. A
    case's own replicates count besides (`inference.moderated`), so they are not among the others.
    """
    if any(record.spread != ASSUMED_SPREAD for case in cases for record in case.records):
        return list(cases)  # what was known holds for a whole run, and all samples need not be read
    spreads = by_others(ASSUMED_SPREAD, [_variance(case) for case in cases])
    return [
        summarize_case([with_spread(record, spread) for record in case.records])
        for case, spread in zip(cases, spreads, strict=True)
    ]


def by_others(assumed: Spread, taught: Sequence[tuple[float, float] | None]) -> list[Spread]:
    """Give for each of some series what all others teach, beside what is assumed.

    Args:
        assumed: where there are no others.
        taught: of each its variance and the degrees of freedom of that, if it has any.
    """
    return [
        updated(assumed, filter(None, (*taught[:index], *taught[index + 1 :])))
        for index in range(len(taught))
    ]


def with_spread(record: Record, spread: Spread) -> Record:
    """Give a record as it would be had this been known before."""
    return msgspec.structs.replace(record, spread=spread)


def pair_variance(records: Iterable[Record], pair: tuple[str, str]) -> tuple[float, float] | None:
    """Give the variance of the log speedup between replicates, and its degrees of freedom.

    Of replicates that nothing disturbed, whose arms shared their blocks; `None` of less than two.
    """
    calm = [each for each in (of_pair(record, pair) for record in records) if _tells(each)]
    values = [value for value, _ in log_speedups(*pair, calm)]
    return (statistics.variance(values), len(values) - 1) if len(values) > 1 else None


def _variance(case: CaseSummary) -> tuple[float, float] | None:
    """Give the mean over a case's arms, as these share the baseline's and don't vary apart."""
    found = [pair_variance(case.records, (BASELINE, arm.name)) for arm in case.arms]
    several = [each for each in found if each is not None]
    if not several:
        return None
    return statistics.fmean(variance for variance, _ in several), max(df for _, df in several)


def _tells(record: Record) -> bool:
    found = summarize_case([record])
    return not (found.is_disturbed or found.is_apart or record.rested)
