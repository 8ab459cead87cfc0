"""Learning from records how far processes differ that measure the same. Pure; no torch."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.statistics.replicates import (
    between_sd_of,
    interfere,
    is_assumed,
    is_disturbed,
    known_of,
    log_speedups,
    of_pair,
)
from dynamometer.results.statistics.scatter import USUAL_DF, Scatter, updated
from dynamometer.results.statistics.summary import by_case, summarize_case
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import ASSUMED_SD, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary
    from dynamometer.results.values.records import BetweenProcessSd, Record


def learnt(series: Collection[Scatter]) -> BetweenProcessSd:
    """Learn from the cases of earlier runs, if they are enough; else that is what is assumed."""
    return updated(ASSUMED_SD, series) if len(series) >= _FEWEST_SERIES else ASSUMED_SD


_FEWEST_SERIES = 3


def scatters(records: Iterable[Record], arm: str, base: str = BASELINE) -> Iterator[Scatter]:
    """Return of each case in which two arms were timed twice or more how far replicates differ."""
    passed = [each for each in records if _passed(each, (base, arm))]
    return filter(None, (pair_scatter(own, (base, arm)) for own in by_case(passed)))


def _passed(record: Record, pair: tuple[str, str]) -> bool:
    """Return whether two arms did, whatever became of others beside them."""
    ends = {each.arm: each.outcome.status for each in record.arms}
    return all(ends.get(arm, record.outcome.status) is Status.PASS for arm in pair)


def shared(cases: Sequence[CaseSummary]) -> list[CaseSummary]:
    """Summarize the cases of a run again, each arm by how far its processes differ in the others.

    That is for when the run is over, and beside what earlier runs have taught: a machine may have
    become less steady since (docs/decisions/0007-error-bars.md). Where there are no others, nothing
    changes.
    """
    told: list[dict[str, BetweenProcessSd]] = [{} for _ in cases]
    for (arm, known), having in _by_arm(cases).items():
        before = ASSUMED_SD if is_assumed(known) else known
        taught = [pair_scatter(cases[place].records, (BASELINE, arm)) for place in having]
        for place, between_sd in zip(having, by_others(before, taught), strict=True):
            if between_sd != before:
                told[place][arm] = between_sd
    return [
        _retold(case, between_sds) if between_sds else case
        for case, between_sds in zip(cases, told, strict=True)
    ]


def _retold(case: CaseSummary, between_sds: dict[str, BetweenProcessSd]) -> CaseSummary:
    records = [
        msgspec.structs.replace(record, between_sds=record.between_sds | between_sds)
        for record in case.records
    ]
    return summarize_case(records, timed=case.is_timed)


def _by_arm(cases: Sequence[CaseSummary]) -> dict[tuple[str, BetweenProcessSd], list[int]]:
    """Return the places of the cases of each arm, with what was known of it when they began."""
    places: defaultdict[tuple[str, BetweenProcessSd], list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        for arm in case.arms:
            places[arm.name, known_of(case.records[0], arm.name)].append(place)
    return places


def is_provisional(case: CaseSummary) -> bool:
    """Return whether intervals of a case may be others once all cases of its run are known."""
    return case.records[-1].replicate > 0 and any(is_told(case, arm) for arm in case.arms)


def is_told(case: CaseSummary, arm: ArmSummary) -> bool:
    """Return whether other cases may tell how far an arm's processes differ."""
    return arm.speedup is not None and (
        between_sd_of(case.records, BASELINE, arm.name) == known_of(case.records[0], arm.name)
    )


def by_others(
    assumed: BetweenProcessSd, taught: Sequence[Scatter | None]
) -> list[BetweenProcessSd]:
    """Return for each of some series what all others teach, beside what was known or assumed.

    Its own replicates count besides (`significance.moderated`), so it is not among the others. Of
    more than 24 one counts for little, and each is told what all teach, which takes a hundredth of
    the time.

    Args:
        assumed: or known; what holds where there are no others.
        taught: how far the replicates of each differ, if it has several.
    """
    usual_df = USUAL_DF if is_assumed(assumed) else assumed.df

    def told(some: Iterable[Scatter | None]) -> BetweenProcessSd:
        return updated(assumed, filter(None, some), usual_df)

    telling = [each is not None and each.df > 0 for each in taught]
    if sum(telling) > _MOST_APART:
        return [told(taught)] * len(taught)
    by_all = assumed if all(telling) else told(taught)
    return [
        told((*taught[:index], *taught[index + 1 :])) if tells else by_all
        for index, tells in enumerate(telling)
    ]


_MOST_APART = 24


def with_between_sd(record: Record, between_sd: BetweenProcessSd) -> Record:
    """Return a record as it would be had this been known before, of whichever arms."""
    return msgspec.structs.replace(record, between_sd=between_sd, between_sds={})


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


def _tells(record: Record) -> bool:
    return not (is_disturbed([record]) or record.waited)
