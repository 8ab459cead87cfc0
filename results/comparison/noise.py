"""How far processes differ, by what the cases of a run tell of it beside what was known."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dynamometer.results.comparison.quantities import EAGER_LATENCY, KINDS, SPEEDUP
from dynamometer.results.statistics.replicates import is_assumed
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import BetweenProcessSd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.quantities import Kind
    from dynamometer.results.statistics.significance import Replicate

_MOST_DF = 30.0
"""What is learnt never outweighs more than this: machines change from day to day."""


def learnt(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries of a run with what they tell of each other.

    Each arm of a case is judged by what the same arm of others tells: arms differ in how far they
    vary, and those of one case share its processes and eager itself. Its own replicates count
    besides (`significance.moderated`). Speedups as at the end of a run
    (`between_processes.shared`), beside what earlier runs have taught, but that a case in doubt
    tells nothing here, for any of its arms; what else is judged by the mean of the variances of
    cases, beside what is assumed, or by related measurements if these differ further.
    """
    found = list(entries)
    for kind in KINDS:
        for places in _alike(kind, found):
            taught = [_taught(kind, found[case[0]]) for case in places]
            known = _known(kind, found[places[0][0]])
            for case, between_sd in zip(places, _by_others(kind, known, taught), strict=True):
                for place in case:
                    found[place] = _with_sd(kind, found[place], between_sd)
    return tuple(found)


def _alike(kind: Kind, entries: Sequence[Entry]) -> list[list[list[int]]]:
    """Return the places of quantities that tell of each other: of each arm together, by case.

    Eager's latency is that of a case, whatever its arms. Apart are also quantities that are not to
    be compared.
    """
    found: dict[tuple[object, ...], dict[frozenset[tuple[str, str]], list[int]]] = {}
    for place, each in enumerate(entries):
        quantity = each.quantities.get(kind.name)
        if quantity is not None and quantity.is_told:
            arm = BASELINE if kind is EAGER_LATENCY else each.arm
            cases = found.setdefault((arm, quantity.condition, quantity.between_sd), {})
            cases.setdefault(frozenset(each.identity.items()), []).append(place)
    return [list(cases.values()) for cases in found.values()]


def _known(kind: Kind, entry: Entry) -> BetweenProcessSd:
    """Return what was known when the run began, or else is assumed by now."""
    known = entry.quantities[kind.name].between_sd
    return kind.assumed if is_assumed(known) else known


def _with_sd(kind: Kind, entry: Entry, between_sd: BetweenProcessSd) -> Entry:
    known = replace(entry.quantities[kind.name], between_sd=between_sd)
    return replace(entry, quantities={**entry.quantities, kind.name: known})


@dataclass(frozen=True)
class _Taught:
    """What an arm of a case tells.

    Attributes:
        variance: of replicates.
        within: the part of it that blocks and short calls account for.
        df: degrees of freedom of the variance; 0 if there is nothing to be learnt.
        related: the variance of related measurements, corrected so that its median is right; `None`
            if there are none.
    """

    variance: float
    within: float
    df: float
    related: float | None


def _taught(kind: Kind, entry: Entry) -> _Taught:
    found = entry.quantities[kind.name]
    replicates, related = ((), ()) if entry.doubt else (found.replicates, found.related)
    several = len(replicates) > 1
    return _Taught(
        variance=_variance(replicates) if several else 0.0,
        within=statistics.fmean(each.own_variance for each in replicates) if several else 0.0,
        df=max(0.0, len(replicates) - 1.0),
        related=_median_unbiased(related) if len(related) > 1 else None,
    )


def _by_others(
    kind: Kind, known: BetweenProcessSd, taught: Sequence[_Taught]
) -> list[BetweenProcessSd]:
    """Return for each case what all others tell, beside what is known.

    Or how far related measurements of all differ, its own among them, if that is further.
    """
    told = (_of_speedups if kind is SPEEDUP else _pooled)(known, taught)
    related = [each.related for each in taught if each.related is not None]
    if not related:
        return told
    least = _of_related(known, related)
    return [max(each, least, key=lambda sd: sd.sd_log) for each in told]


def _pooled(assumed: BetweenProcessSd, taught: Sequence[_Taught]) -> list[BetweenProcessSd]:
    """Return for each case the mean of the variances of all others and of that assumed.

    Each has the weight of its degrees of freedom.
    """
    df = assumed.df + math.fsum(each.df for each in taught)
    total = assumed.df * assumed.sd_log**2 + math.fsum(each.df * each.variance for each in taught)
    return [
        assumed
        if df - each.df <= assumed.df
        else BetweenProcessSd(
            sd_log=math.sqrt(max(0.0, total - each.df * each.variance) / (df - each.df)),
            df=min(df - each.df, _MOST_DF),
        )
        for each in taught
    ]


def _of_related(assumed: BetweenProcessSd, variances: Sequence[float]) -> BetweenProcessSd:
    """Return how far related measurements differ in the median case; at least what is assumed.

    They are of other work, so that they are worth no more degrees of freedom than a guess. One
    case that compiled anew by chance must not speak for all, so it is the median.
    """
    least = assumed.sd_log**2
    variance = max(least, statistics.median([least, *variances]))
    return BetweenProcessSd(sd_log=math.sqrt(variance), df=assumed.df)


def _median_unbiased(replicates: Sequence[Replicate]) -> float:
    """Return the variance of replicates, corrected so that its median is the true one.

    Source:
        E. B. Wilson, M. M. Hilferty, The distribution of chi-square, Proc. Natl. Acad. Sci. 17(12),
        1931: the median of a variance of k degrees of freedom is (1 - 2/(9k))^3 of its mean.
    """
    return _variance(replicates) / (1 - 2 / (9 * (len(replicates) - 1))) ** 3


def _of_speedups(assumed: BetweenProcessSd, taught: Sequence[_Taught]) -> list[BetweenProcessSd]:
    # Imports what fits distributions, which takes as long as all else.
    from dynamometer.results.statistics.between_processes import by_others
    from dynamometer.results.statistics.scatter import Scatter

    return by_others(assumed, [Scatter(each.variance, each.within, each.df) for each in taught])


def _variance(replicates: Sequence[Replicate]) -> float:
    return statistics.variance(each.value for each in replicates)
