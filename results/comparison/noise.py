"""How far processes differ of which nothing was known beforehand: what the cases of a run tell."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from dynamometer.results.comparison.quantities import (
    COMPILE_TIME,
    EAGER_LATENCY,
    LATENCY,
    MEMORY_RATIO,
    SPEEDUP,
)
from dynamometer.results.values.records import BetweenProcessSd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.quantities import Kind, Quantity
    from dynamometer.results.statistics.significance import Replicate

_MOST_DF = 30.0
"""What is learnt never outweighs more than this: machines change from day to day."""

_MOST_APART = 24
"""Of so few cases each is judged by what the others tell; of more, one counts for little, and all
are judged by what all tell, which takes a hundredth of the time."""


def learnt(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries of a run with what they tell of each other, where nothing was known.

    Speedups as at the end of a run (`between_processes.shared`); what else is judged by the mean of
    the variances of all cases, beside what is assumed, or by related measurements if these differ
    further.
    """
    found = entries
    for kind in (SPEEDUP, COMPILE_TIME, MEMORY_RATIO, EAGER_LATENCY, LATENCY):
        found = _with_sds(kind, found)
    return tuple(found)


def _with_sds(kind: Kind, entries: Sequence[Entry]) -> list[Entry]:
    changed = list(entries)
    for assumed in _by_condition(kind, entries):
        if not any(max(len(each.replicates), len(each.related)) > 1 for each in assumed.values()):
            continue
        sds = (_of_speedups if kind is SPEEDUP else _pooled)(kind, list(assumed.values()))
        for (index, quantity), between_sd in zip(assumed.items(), sds, strict=True):
            known = replace(quantity, between_sd=between_sd)
            entry = changed[index]
            changed[index] = replace(entry, quantities={**entry.quantities, kind.name: known})
    return changed


def _by_condition(kind: Kind, entries: Sequence[Entry]) -> list[dict[int, Quantity]]:
    """Return the quantities of which nothing is known, apart where they are not to be compared."""
    found: dict[str | None, dict[int, Quantity]] = {}
    for index, each in enumerate(entries):
        quantity = each.quantities.get(kind.name)
        if quantity is not None and quantity.is_assumed:
            found.setdefault(quantity.condition, {})[index] = quantity
    return list(found.values())


def _pooled(kind: Kind, found: Sequence[Quantity]) -> list[BetweenProcessSd]:
    """Return the mean of all variances, that assumed among them, each with its weight.

    Or how far related measurements differ, if that is further.
    """
    parts = [(kind.assumed.sd_log**2, kind.assumed.df)]
    parts += [(_variance(each.replicates), len(each.replicates) - 1.0) for each in found]
    df = math.fsum(weight for _, weight in parts)
    sd = math.sqrt(math.fsum(variance * weight for variance, weight in parts) / df)
    told = BetweenProcessSd(sd_log=sd, df=min(df, _MOST_DF))
    if related := [each.related for each in found if len(each.related) > 1]:
        told = max(told, _of_related(kind.assumed, related), key=lambda each: each.sd_log)
    return [told] * len(found)


def _of_related(
    assumed: BetweenProcessSd, series: Sequence[Sequence[Replicate]]
) -> BetweenProcessSd:
    """Return how far related measurements differ in the median case; at least what is assumed.

    They are of other work, so that they are worth no more degrees of freedom than a guess. One
    case that compiled anew by chance must not speak for all, so it is the median.

    Source:
        E. B. Wilson, M. M. Hilferty, The distribution of chi-square, Proc. Natl. Acad. Sci. 17(12),
        1931: the median of a variance of k degrees of freedom is (1 - 2/(9k))^3 of its mean.
    """
    least = assumed.sd_log**2
    found = [_variance(each) / (1 - 2 / (9 * (len(each) - 1))) ** 3 for each in series]
    variance = max(least, statistics.median([least, *found]))
    return BetweenProcessSd(sd_log=math.sqrt(variance), df=assumed.df)


def _of_speedups(kind: Kind, found: Sequence[Quantity]) -> list[BetweenProcessSd]:
    # Imports what fits distributions, which takes as long as all else.
    from dynamometer.results.statistics.between_processes import by_others
    from dynamometer.results.statistics.scatter import Scatter, updated

    taught = [
        Scatter(
            variance=_variance(each.replicates),
            within=statistics.fmean(replicate.own_variance for replicate in each.replicates),
            df=len(each.replicates) - 1.0,
        )
        for each in found
    ]
    if len(taught) <= _MOST_APART:
        return by_others(kind.assumed, taught)
    return [updated(kind.assumed, taught)] * len(taught)


def _variance(replicates: Sequence[Replicate]) -> float:
    """Return the variance of replicates; 0 of one alone, which `updated` passes over."""
    values = [each.value for each in replicates]
    return statistics.variance(values) if len(values) > 1 else 0.0
