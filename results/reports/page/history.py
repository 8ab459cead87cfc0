"""A history as the page shows it. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.history.changes import KIND, lasting
from dynamometer.results.reports.history import apart, configuration, level_text, value_text
from dynamometer.results.reports.page.parts import rounded
from dynamometer.results.reports.page.values import (
    ShownChange,
    ShownHistory,
    ShownPastRun,
    ShownSeries,
)
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dynamometer.results.values.history import History, HistoryChange, Series

    Numbers = Mapping[str, int]


def shown_history(
    found: History, made_at: str, with_page: Collection[str] | None = None
) -> ShownHistory:
    """Return a history, to be shown.

    Args:
        found: series with all their runs.
        made_at: UTC, ISO 8601.
        with_page: the runs that a server has a page of; `None` where there is none to be linked to.
    """
    points = {each.run_id: each for series in found.series for each in series.points}
    runs = sorted(points.values(), key=lambda each: (each.created_at, each.run_id))
    numbers = {each.run_id: number for number, each in enumerate(runs)}
    differing = apart(found.series)
    return ShownHistory(
        made_at=made_at,
        runs=tuple(
            ShownPastRun(run_id=each.run_id, created_at=each.created_at, torch=each.torch)
            for each in runs
        ),
        series=tuple(
            _series(each, numbers, differing.get(number, ""))
            for number, each in enumerate(found.series, start=1)
        ),
        without_page=()
        if with_page is None
        else tuple(number for run, number in numbers.items() if run not in with_page),
    )


def _series(series: Series, numbers: Numbers, differing: str) -> ShownSeries:
    points, identity = series.points, series.identity
    unit = KIND[series.metric].form.rpartition("}")[2].strip() if series.metric in KIND else ""
    standing = lasting(series)
    return ShownSeries(
        model=identity.get("model", ""),
        suite=identity.get("suite", ""),
        mode=identity.get("mode", ""),
        arm=series.arm,
        metric=series.metric,
        configuration=configuration(series),
        apart=differing,
        unit=unit,
        last=value_text(series, series.last),
        runs=tuple(numbers[each.run_id] for each in points),
        values=tuple(rounded(each.value) for each in points),
        lows=tuple(rounded(each.low) for each in points),
        highs=tuple(rounded(each.high) for each in points),
        replicates=tuple(each.n for each in points),
        marks=tuple(
            (place, each.status, each.doubt)
            for place, each in enumerate(points)
            if each.doubt or each.status != Status.PASS
        ),
        changes=tuple(
            _change(series, each, numbers, is_lasting=each in standing) for each in series.changes
        ),
    )


def _change(
    series: Series, change: HistoryChange, numbers: Numbers, *, is_lasting: bool
) -> ShownChange:
    before, after = change.before, change.after
    levels = None
    if not (isinstance(before, str) or isinstance(after, str)):
        levels = before, after
    return ShownChange(
        direction=str(change.direction),
        at=change.at,
        last_before=numbers[change.last_before],
        first_after=numbers[change.first_after],
        before=level_text(series, before),
        after=level_text(series, after),
        levels=levels,
        ratio=change.ratio,
        adjusted_p=change.adjusted_p,
        by_eager=change.by_eager,
        is_lasting=is_lasting,
        differences=tuple((each.name, each.before, each.after) for each in change.differences),
    )
