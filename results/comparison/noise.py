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
    from collections.abc import Iterable, Iterator, Sequence

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
    the variances of all cases, beside what is assumed.
    """
    found = _with_sds(SPEEDUP, tuple(entries))
    for kind in (COMPILE_TIME, MEMORY_RATIO, EAGER_LATENCY, LATENCY):
        found = _with_sds(kind, found)
    return found


def _with_sds(kind: Kind, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    assumed = {
        index: quantity
        for index, each in enumerate(entries)
        if (quantity := each.quantities.get(kind.name)) is not None and quantity.is_assumed
    }
    if not any(_series(assumed.values())):
        return entries
    sds = (_of_speedups if kind is SPEEDUP else _pooled)(kind, list(assumed.values()))
    changed = list(entries)
    for (index, quantity), between_sd in zip(assumed.items(), sds, strict=True):
        known = replace(quantity, between_sd=between_sd)
        entry = changed[index]
        changed[index] = replace(entry, quantities={**entry.quantities, kind.name: known})
    return tuple(changed)


def _pooled(kind: Kind, found: Sequence[Quantity]) -> list[BetweenProcessSd]:
    """Return what replicates tell, or repeats where these differ further.

    Repeats are of other work, so that they never make narrower what is assumed.
    """
    told = _mean(kind.assumed, [each.replicates for each in found])
    if repeats := [each.repeats for each in found if each.repeats]:
        told = max(told, _mean(kind.assumed, repeats), key=lambda each: each.sd_log)
    return [told] * len(found)


def _mean(assumed: BetweenProcessSd, series: Sequence[tuple[Replicate, ...]]) -> BetweenProcessSd:
    """Return the mean of all variances, that assumed among them, each with its weight."""
    parts = [(assumed.sd_log**2, assumed.df)]
    parts += [(_variance(each), len(each) - 1.0) for each in series]
    df = math.fsum(weight for _, weight in parts)
    sd = math.sqrt(math.fsum(variance * weight for variance, weight in parts) / df)
    return BetweenProcessSd(sd_log=sd, df=min(df, _MOST_DF))


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


def _series(found: Iterable[Quantity]) -> Iterator[tuple[Replicate, ...]]:
    """Give what tells how far processes differ."""
    for each in found:
        yield from (series for series in (each.replicates, each.repeats) if len(series) > 1)


def _variance(replicates: Sequence[Replicate]) -> float:
    """Return the variance of replicates; 0 of one alone, which `updated` passes over."""
    values = [each.value for each in replicates]
    return statistics.variance(values) if len(values) > 1 else 0.0
