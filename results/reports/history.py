"""The history of models as text. Pure; no torch."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dynamometer.results.history.changes import KIND
from dynamometer.results.reports.texts import fitted_line, fitted_table, printable
from dynamometer.results.values.cases import IDENTITY
from dynamometer.results.values.history import STATUS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dynamometer.results.values.history import History, HistoryChange, HistoryPoint, Series

_HEADERS = ("model", "mode", "arm", "metric", "runs", "last (UTC)", "now", "changes", "series")
_POINT_HEADERS = ("run", "when (UTC)", "torch", "ended", "value", "n", "")
_OF_CONFIGURATION = [each for each in IDENTITY if each not in {"suite", "model", "mode"}]
_MOST_DIFFERENCES = 6


def lines(found: History, width: int | None, *, with_points: bool) -> list[str]:
    """Return a table of the series, and below it what changed in each.

    Args:
        found: what is shown.
        width: of the terminal; `None` leaves all as long as it is.
        with_points: whether every run is told of every series.
    """
    changes = sum(len(each.changes) for each in found.series)
    since = f" since {_day(found.since)}" if found.since else ""
    head = f"runs: {found.runs}, series: {found.looked_at}, changes{since}: {changes}"
    if not found.series:
        return [head]
    numbered = list(enumerate(found.series, start=1))
    rows = [_row(number, each) for number, each in numbered]
    differing = apart(found.series)
    return [
        head,
        "",
        *fitted_table(rows, _HEADERS, width),
        *(
            fitted_line(printable(line), width)
            for line in (
                *_apart_lines(differing),
                *(line for each in numbered for line in _of_series(*each, with_points=with_points)),
            )
        ),
    ]


def _row(number: int, series: Series) -> list[str]:
    last = series.last
    cells = (
        "/".join(series.identity.get(name, "") for name in ("suite", "model")),
        series.identity.get("mode", ""),
        series.arm,
        series.metric,
        str(series.runs),
        _day(last.created_at),
        value_text(series, last),
        str(len(series.changes) or ""),
        str(number),
    )
    return [printable(each) for each in cells]


def _apart_lines(differing: Mapping[int, str]) -> Iterator[str]:
    """Say why there are several series of the same."""
    told = [f"   series {number}: {text}" for number, text in differing.items() if text]
    if told:
        yield from ("", "measured in other ways, or on other machines, so not one series:", *told)


def apart(found: Sequence[Series]) -> dict[int, str]:
    """Return in what series differ that are otherwise of the same, by their numbers."""
    groups: defaultdict[tuple[str, ...], dict[int, dict[str, str]]] = defaultdict(dict)
    for number, each in enumerate(found, start=1):
        case = (each.identity.get(name, "") for name in ("suite", "model", "mode"))
        groups[*case, each.arm, each.metric][number] = _settled(each)
    told = {}
    for group in groups.values():
        names = dict.fromkeys(name for settled in group.values() for name in settled)
        differing = [name for name in names if len({each.get(name) for each in group.values()}) > 1]
        for number, settled in group.items():
            told[number] = ", ".join(f"{name} {settled.get(name) or 'none'}" for name in differing)
    return told


def _settled(series: Series) -> dict[str, str]:
    own = {name: series.identity.get(name, "") for name in _OF_CONFIGURATION}
    return {**own, "caches": series.condition or "", "study": series.study, **series.setting}


def _of_series(number: int, series: Series, *, with_points: bool) -> Iterator[str]:
    if not series.changes and not with_points:
        return
    yield ""
    yield (
        f"{number}. {series.identity['model']} {series.arm} {series.metric}"
        f" ({configuration(series)})"
    )
    for change in series.changes:
        yield from _of_change(series, change)
    if with_points:
        marks = {each.index: str(each.direction) for each in series.changes}
        rows = [
            _point_row(series, each, marks.get(place, ""))
            for place, each in enumerate(series.points)
        ]
        yield from (f"   {line}" for line in fitted_table(rows, _POINT_HEADERS, None))


def configuration(series: Series) -> str:
    """Return how the case of a series was set."""
    words = " ".join(filter(None, (series.identity.get(name) for name in _OF_CONFIGURATION)))
    return f"{words}, caches {series.condition}" if series.condition else words


def _of_change(series: Series, change: HistoryChange) -> Iterator[str]:
    before, after = (level_text(series, each) for each in (change.before, change.after))
    size = f" ({change.ratio - 1:+.1%})" if change.ratio is not None else ""
    p_value = change.adjusted_p
    chance = f", adjusted p {p_value:.2g}" if p_value is not None else ""
    yield f"   {change.direction.upper()} {_day(change.at)}: {before} -> {after}{size}{chance}"
    yield f"      after {change.last_before}, by {change.first_after}"
    if change.by_eager:
        yield "      eager itself changed there, and not the compiled code"
    for each in change.differences[:_MOST_DIFFERENCES]:
        yield f"      {each.name}: {each.before or 'none'} -> {each.after or 'none'}"
    more = len(change.differences) - _MOST_DIFFERENCES
    if more > 0:
        yield f"      and {more} more; --json has all"
    if not change.differences:
        yield "      no difference of the environment is known"


def _point_row(series: Series, point: HistoryPoint, mark: str) -> list[str]:
    value = value_text(series, point) if point.value is not None else ""
    cells = (
        point.run_id, point.created_at[:16].replace("T", " "), point.torch or "-", point.status,
        value, str(point.n), mark,
    )  # fmt: skip
    return [printable(each) for each in cells]


def value_text(series: Series, point: HistoryPoint) -> str:
    """Return a run's value with its interval and why it is in doubt, or how the run ended."""
    if point.value is None or point.low is None or point.high is None:
        return point.status
    low, value, high = (level_text(series, each) for each in (point.low, point.value, point.high))
    return ", ".join(filter(None, (f"{value} [{low}, {high}]", point.doubt)))


def level_text(series: Series, value: float | str) -> str:
    """Return a level as values of the series' metric are written."""
    if isinstance(value, str) or series.metric == STATUS:
        return str(value)
    return KIND[series.metric].form.format(value)


def _day(time: str | None) -> str:
    return (time or "")[:10]
