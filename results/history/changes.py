"""From series of the index to what changed in them, and with what. Pure; no torch."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.comparison.quantities import KINDS
from dynamometer.results.history.change_points import change_points
from dynamometer.results.statistics.significance import SIGNIFICANT_P, adjusted
from dynamometer.results.values.history import (
    STATUS,
    Difference,
    Direction,
    History,
    HistoryChange,
    HistoryPoint,
    Series,
)
from dynamometer.results.values.metrics import Better
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.comparison.quantities import Kind
    from dynamometer.results.values.history import IndexedRun, Point, StoredSeries

    Runs = Mapping[int, IndexedRun]

KIND = {each.name: each for each in KINDS}
"""What is known of each metric but the status."""


def history(
    runs: Runs,
    stored: Sequence[StoredSeries],
    since: str | None = None,
    floor: float | None = None,
) -> History:
    """Return series with their changes.

    Args:
        runs: all that are named in the series.
        stored: the series.
        since: changes before that time, UTC in ISO 8601, are left out.
        floor: the share below which a change is of no interest; `None` for that of its metric.
    """
    ordered = sorted(
        stored, key=lambda each: (*_order(each), runs[each.columns.runs[0]].created_at)
    )
    found = [_series(runs, each, floor) for each in ordered]
    changes = _adjusted(found)
    return History(
        runs=len(runs),
        looked_at=len(found),
        since=since,
        series=tuple(
            msgspec.structs.replace(each, changes=tuple(c for c in own if c.at >= (since or "")))
            for each, own in zip(found, changes, strict=True)
        ),
    )


def _order(series: StoredSeries) -> tuple[str, ...]:
    case = (series.identity.get(each, "") for each in ("suite", "model", "mode"))
    return (*case, series.arm, str(_METRICS.index(series.metric)))


_METRICS = (STATUS, *KIND)


def regressed(found: History) -> History:
    """Leave the series that have become worse and still are, with the changes that say so.

    A speedup that fell as eager became faster is none of them.

    Among all that were looked at one in twenty of these is false at most (Benjamini and Hochberg).
    """
    kept = []
    for each in found.series:
        changes = tuple(change for change in lasting(each) if change.direction is Direction.WORSE)
        if changes:
            kept.append(msgspec.structs.replace(each, changes=changes))
    return msgspec.structs.replace(found, series=tuple(kept))


def lasting(series: Series) -> list[HistoryChange]:
    """Return the changes of a series that are beyond chance, are not eager's, and still stand."""
    return [
        change
        for number, change in enumerate(series.changes)
        if not change.by_eager
        and (change.adjusted_p is None or change.adjusted_p <= SIGNIFICANT_P)
        and _stands(series, change, series.changes[number + 1 :])
    ]


def _stands(series: Series, change: HistoryChange, later: Sequence[HistoryChange]) -> bool:
    """Return whether what came later has not undone it; what eager did undoes nothing."""
    own = [each for each in later if not each.by_eager]
    if not own:
        return True
    if series.metric == STATUS:
        return (own[-1].after == Status.PASS) == (change.direction is Direction.BETTER)
    kind = KIND[series.metric]
    rose = (change.direction is Direction.BETTER) == (kind.better is Better.HIGHER)
    by_eager = (float(each.after) / float(each.before) for each in later if each.by_eager)
    moved = float(later[-1].after) / float(change.before) / math.prod(by_eager)
    return (moved if rose else 1 / moved) > 1 + kind.floor


def _adjusted(found: Sequence[Series]) -> list[list[HistoryChange]]:
    """Adjust p-values for how many series were tested; each counts once for every change."""
    counted = [
        [] if each.metric == STATUS else [change.p_value or 0.0 for change in each.changes] or [1.0]
        for each in found
    ]
    values = iter(adjusted([value for each in counted for value in each]))
    result = []
    for each, own in zip(found, counted, strict=True):
        p_values = [next(values) for _ in own]
        changes = list(each.changes)
        if changes and own:
            changes = [
                msgspec.structs.replace(change, adjusted_p=p_value)
                for change, p_value in zip(changes, p_values, strict=True)
            ]
        result.append(changes)
    return result


def _series(runs: Runs, stored: StoredSeries, floor: float | None) -> Series:
    if stored.metric == STATUS:
        changes = _of_status(runs, stored)
    else:
        changes = _of_values(runs, stored, KIND[stored.metric].floor if floor is None else floor)
    return Series(
        study=stored.study,
        identity=stored.identity,
        arm=stored.arm,
        metric=stored.metric,
        condition=stored.condition,
        setting=stored.setting,
        runs=len(stored.columns.runs),
        last=_point(runs[stored.last.run], stored.last),
        points=tuple(_point(runs[each.run], each) for each in stored.points),
        changes=tuple(changes),
    )


def _point(run: IndexedRun, point: Point) -> HistoryPoint:
    return HistoryPoint(
        run_id=run.run_id,
        created_at=run.created_at,
        torch=run.conditions.get("torch"),
        status=point.status,
        value=point.value,
        low=point.low,
        high=point.high,
        n=point.n,
        doubt=point.doubt,
    )


def _of_values(runs: Runs, stored: StoredSeries, floor: float) -> list[HistoryChange]:
    """Find changes of level in what was measured; what is in doubt is passed over."""
    kind, columns = KIND[stored.metric], stored.columns
    places = [place for place, each in enumerate(columns.values) if each is not None]
    if not places:
        return []
    values = [math.log(each) for each in columns.values if each is not None]
    errors = [each for each in columns.errors if each is not None]
    found = change_points(values, statistics.median(errors), math.log1p(floor))
    numbers = [columns.runs[place] for place in places]
    ends = [0, *(each.index for each in found), len(values)]
    of_levels = [_error_of_level(errors[start:end]) for start, end in itertools.pairwise(ends)]
    return [
        _between(
            runs,
            (numbers[each.earliest - 1], numbers[each.latest]),
            HistoryChange(
                direction=_direction(kind, each.after - each.before),
                at=runs[numbers[each.index]].created_at,
                index=places[each.index],
                before=math.exp(each.before),
                after=math.exp(each.after),
                ratio=math.exp(each.after - each.before),
                p_value=each.p_value,
            ),
        )
        for each, error in zip(found, itertools.pairwise(of_levels), strict=True)
        # Few imprecise runs may seem to be a level of their own.
        if abs(each.after - each.before) > _BEYOND_ERRORS * math.hypot(*error)
    ]


_BEYOND_ERRORS = 1.96
"""Errors of a difference that a change exceeds: those of its two levels, by their runs' own."""


def _error_of_level(errors: Sequence[float]) -> float:
    """Return the standard error of the mean of runs, each of which has its own."""
    return math.hypot(*errors) / len(errors)


def _direction(kind: Kind, change: float) -> Direction:
    is_better = change > 0 if kind.better is Better.HIGHER else change < 0
    return Direction.BETTER if is_better else Direction.WORSE


def _of_status(runs: Runs, stored: StoredSeries) -> list[HistoryChange]:
    """Return where an arm began or ceased to pass.

    Nothing is known where it was skipped, or the harness itself failed.
    """
    numbers, statuses = stored.columns.runs, stored.columns.statuses
    if len(set(statuses)) == 1:  # as most are
        return []
    ended = [place for place, each in enumerate(statuses) if each not in _NOT_COUNTED]
    return [
        _between(
            runs,
            (numbers[before], numbers[place]),
            HistoryChange(
                direction=Direction.BETTER if now == Status.PASS else Direction.WORSE,
                at=runs[numbers[place]].created_at,
                index=place,
                before=was,
                after=now,
            ),
        )
        for before, place in itertools.pairwise(ended)
        if (was := statuses[before]) != (now := statuses[place]) and Status.PASS in {was, now}
    ]


_NOT_COUNTED = {str(Status.SKIP), str(Status.INFRA)}
"""Looked up once: it is compared with every run of a year."""


def _between(runs: Runs, numbers: tuple[int, int], change: HistoryChange) -> HistoryChange:
    """Return a change with the runs that it surely lies between."""
    before, after = (runs[each] for each in numbers)
    return msgspec.structs.replace(
        change,
        last_before=before.run_id,
        first_after=after.run_id,
        differences=differences(before, after),
    )


def differences(before: IndexedRun, after: IndexedRun) -> tuple[Difference, ...]:
    """Return what of the environment is other in one run than in another."""
    was, now = before.conditions, after.conditions
    return tuple(
        Difference(name=name, before=was.get(name), after=now.get(name))
        for name in dict.fromkeys((*was, *now))
        if was.get(name) != now.get(name)
    )
