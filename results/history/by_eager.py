"""Whether a speedup changed as eager did, and not the compiled code. Pure; no torch."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dynamometer.results.comparison.judging import FEWEST_FOR_DRIFT
from dynamometer.results.comparison.quantities import EAGER_LATENCY, LATENCY, SPEEDUP
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.history import Direction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.values.history import History, HistoryChange, Series, StoredSeries

    Spans = Sequence[tuple[str, str, Direction]]
    Changes = Mapping[tuple[str, ...], Spans]

LATENCIES = (EAGER_LATENCY.name, LATENCY.name)
"""Metrics of the series that tell."""

_OTHER = {Direction.BETTER: Direction.WORSE, Direction.WORSE: Direction.BETTER}


def models(found: History) -> list[str]:
    """Return the models whose speedups changed."""
    changed = [each for each in found.series if each.metric == SPEEDUP.name and each.changes]
    return sorted({each.identity["model"] for each in changed})


def explained(found: History, latencies: History, times: Mapping[str, str]) -> History:
    """Return a history in which changes of speedups are marked that are eager's.

    These are where eager became faster as the speedup fell, or slower as it rose, and the compiled
    code's own latency shows no change that would account for it.

    Args:
        found: series of which some are speedups.
        latencies: series of `LATENCIES` of the same models.
        times: when each run was begun, by its id.
    """
    changes = {_key(each, each.arm, each.metric): _spans(each, times) for each in latencies.series}
    return msgspec.structs.replace(
        found, series=tuple(_marked(each, changes, times) for each in found.series)
    )


def apart(
    found: History, eagers: History, times: Mapping[str, str], begun: Mapping[tuple[str, ...], str]
) -> History:
    """Return a history in which no change is marked where eager of most models moved alike.

    That is the machine's doing, or torch's as a whole, and compiled code that did not move with it
    has changed (decision 18). Models count that were measured before and after; of few there is no
    telling.

    Args:
        found: series with changes that are marked.
        eagers: series of eager's latency, of all models.
        times: when each run was begun, by its id.
        begun: when the first run of each of these series was, by `key`.
    """
    peers: defaultdict[tuple[object, ...], list[_Peer]] = defaultdict(list)
    for each in eagers.series:
        peer = _Peer(begun[key(each)], each.last.created_at, _spans(each, times))
        peers[_setting(each)].append(peer)
    return msgspec.structs.replace(
        found,
        series=tuple(
            _marked_apart(each, peers[_setting(each)], times)
            if any(change.by_eager for change in each.changes)
            else each
            for each in found.series
        ),
    )


class _Peer(NamedTuple):
    """When eager of a model was first and last measured, and where it changed."""

    begun: str
    ended: str
    spans: Spans


def _marked_apart(series: Series, peers: Sequence[_Peer], times: Mapping[str, str]) -> Series:
    changes = []
    for change, span in zip(series.changes, _spans(series, times), strict=True):
        before, after, _ = span
        there = [each.spans for each in peers if each.begun <= before and after <= each.ended]
        alike = sum(_any_in(span, each, _OTHER[change.direction]) for each in there)
        is_apart = len(there) < FEWEST_FOR_DRIFT or 2 * alike <= len(there)
        changes.append(msgspec.structs.replace(change, by_eager=change.by_eager and is_apart))
    return msgspec.structs.replace(series, changes=tuple(changes))


def _setting(series: Series) -> tuple[object, ...]:
    """Return what tells the machine and the way of measuring of a series."""
    return series.study, *sorted(series.setting.items())


def _marked(series: Series, changes: Changes, times: Mapping[str, str]) -> Series:
    if series.metric != SPEEDUP.name:
        return series
    eager = changes.get(_key(series, BASELINE, EAGER_LATENCY.name), ())
    own = changes.get(_key(series, series.arm, LATENCY.name), ())
    spans = _spans(series, times)
    marked = [
        msgspec.structs.replace(
            change,
            by_eager=_any_in(span, eager, _OTHER[change.direction])
            and not _any_in(span, own, change.direction),
        )
        for change, span in zip(series.changes, spans, strict=True)
    ]
    return msgspec.structs.replace(series, changes=tuple(marked))


def _any_in(
    span: tuple[str, str, Direction],
    others: Spans,
    direction: Direction,
) -> bool:
    """Return whether a change of some direction may have been where another one was."""
    start, end, _ = span
    return any(
        max(start, other_start) < min(end, other_end) and other is direction
        for other_start, other_end, other in others
    )


def _spans(series: Series, times: Mapping[str, str]) -> list[tuple[str, str, Direction]]:
    """Return between which times each change lies, and its direction."""
    return [_span(times, each) for each in series.changes]


def _span(times: Mapping[str, str], change: HistoryChange) -> tuple[str, str, Direction]:
    return times[change.last_before], times[change.first_after], change.direction


def key(series: Series | StoredSeries) -> tuple[str, ...]:
    """Return what a series is known by."""
    return _key(series, series.arm, series.metric)


def _key(series: Series | StoredSeries, arm: str, metric: str) -> tuple[str, ...]:
    parts = (*sorted(series.identity.items()), *sorted(series.setting.items()))
    return (series.study, arm, metric, *(text for each in parts for text in each))
