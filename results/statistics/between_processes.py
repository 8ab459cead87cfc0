"""Learning from records how far processes differ that measure the same. Pure; no torch."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.statistics.replicates import (
    between_sd_of,
    interfere,
    is_disturbed,
    log_speedups,
    of_pair,
)
from dynamometer.results.statistics.scatter import Scatter, updated
from dynamometer.results.statistics.summary import by_case, summarize_case
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import ASSUMED_SD, FORMERLY_ASSUMED, SEPARATE_SD, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from dynamometer.results.statistics.summary import CaseSummary
    from dynamometer.results.values.records import BetweenProcessSd, Record


def learnt(series: Collection[Scatter]) -> BetweenProcessSd:
    """Learn from the cases of earlier runs, if they are enough; else that is what is assumed."""
    return updated(ASSUMED_SD, series) if len(series) >= _FEWEST_SERIES else ASSUMED_SD


_FEWEST_SERIES = 3


def scatters(records: Iterable[Record]) -> Iterator[Scatter]:
    """Return of each case that was timed twice or more how far its replicates differ."""
    passed = [each for each in records if each.outcome.status is Status.PASS]
    return filter(None, map(_scatter, by_case(passed)))


def shared(cases: Sequence[CaseSummary]) -> list[CaseSummary]:
    """Summarize the cases of a run again, each by how far processes of the others differ.

    That is for when the run is over, and for a machine of which nothing was known when it began;
    where earlier runs have taught something, and where there are no others, nothing changes. A
    case's own replicates count besides (`significance.moderated`): they are not among the others.
    """
    if not all(map(is_assumed, cases)):
        return list(cases)  # what was known holds for a whole run, and all samples need not be read
    between_sds = by_others(ASSUMED_SD, [_scatter(case.records) for case in cases])
    return [
        summarize_case(
            [with_between_sd(record, between_sd) for record in case.records], timed=case.is_timed
        )
        for case, between_sd in zip(cases, between_sds, strict=True)
    ]


def is_assumed(case: CaseSummary) -> bool:
    """Return whether nothing was known of how far processes differ when it was judged."""
    return {record.between_sd for record in case.records} <= {ASSUMED_SD, FORMERLY_ASSUMED}


def is_provisional(case: CaseSummary) -> bool:
    """Return whether the intervals of a case may be others once all cases of its run are known."""
    others_may_teach = case.records[-1].replicate > 0 and is_assumed(case)
    return others_may_teach and between_sd_of(case.records) != SEPARATE_SD


def by_others(
    assumed: BetweenProcessSd, taught: Sequence[Scatter | None]
) -> list[BetweenProcessSd]:
    """Return for each of some series what all others teach, beside what is assumed.

    Args:
        assumed: where there are no others.
        taught: how far the replicates of each differ, if it has several.
    """
    return [
        updated(assumed, filter(None, (*taught[:index], *taught[index + 1 :])))
        for index in range(len(taught))
    ]


def with_between_sd(record: Record, between_sd: BetweenProcessSd) -> Record:
    """Return a record as it would be had this been known before."""
    return msgspec.structs.replace(record, between_sd=between_sd)


def pair_scatter(records: Iterable[Record], pair: tuple[str, str]) -> Scatter | None:
    """Return how far the log speedups of two arms differ between replicates.

    Of replicates that nothing disturbed, whose arms shared their blocks; `None` of less than two.
    """
    undisturbed = [each for each in (of_pair(record, pair) for record in records) if _tells(each)]
    found = log_speedups(*pair, undisturbed)
    if len(found) < _FEWEST_REPLICATES or interfere(undisturbed):
        return None
    return Scatter(
        variance=statistics.variance(each.value for each in found),
        within=statistics.fmean(each.own_variance for each in found),
        df=len(found) - 1.0,
    )


_FEWEST_REPLICATES = 2


def _scatter(records: Sequence[Record]) -> Scatter | None:
    """Average over a case's arms, as these share the baseline's processes and don't vary apart."""
    found = [pair_scatter(records, (BASELINE, arm)) for arm in records[0].case.arms[1:]]
    several = [each for each in found if each is not None]
    if not several:
        return None
    return Scatter(
        variance=statistics.fmean(each.variance for each in several),
        within=statistics.fmean(each.within for each in several),
        df=max(each.df for each in several),
    )


def _tells(record: Record) -> bool:
    return not (is_disturbed([record]) or record.waited)
