"""Series out of an index: what changes are found by, and as many points as are asked for."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dynamometer.results.values.history import (
    DEVICE_NAME,
    STATUS,
    Columns,
    IndexedRun,
    Point,
    StoredSeries,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from dynamometer.results.store.index.index_file import IndexFile

    Found = tuple[dict[int, IndexedRun], list[StoredSeries]]
    Rows = list[tuple[Any, ...]]
    Head = tuple[str, ...]
    InOrder = Callable[[Rows], Rows]

SELECTED = frozenset({"arm", "metric", "model", "suite"})
"""Columns by which series are selected."""

_HEAD = ("study", "identity", "arm", "metric", "condition", "setting")
_STUDY, _IDENTITY, _METRIC, _SETTING = (
    _HEAD.index(name) for name in ("study", "identity", "metric", "setting")
)
_POINTS = "SELECT run, status, value, low, high, error, n, doubt FROM points WHERE series IN ({})"
_ENDED = "SELECT run, status FROM points WHERE series IN ({}) ORDER BY run"
_COUNTS = "CASE WHEN error IS NOT NULL AND ifnull(doubt, '') = '' THEN"
_MEASURED = (
    f"SELECT run, {_COUNTS} value END, {_COUNTS} error END FROM points"  # noqa: S608  from above
    " WHERE series IN ({}) ORDER BY run"
)
"""A year of 500 models has 360,000 points: what nobody asked for takes most of reading them."""


class Contents(NamedTuple):
    """What a series holds.

    Attributes:
        columns: what changes are found by.
        last: its last point.
        points: the last ones, as many as were asked for.
    """

    columns: Columns
    last: Point
    points: Sequence[Point]


class Asked(NamedTuple):
    """What of series is wanted.

    Attributes:
        points: how many of each, the last ones; `None` for all.
        until: the run with which series end, of those alone that it is in; `None` for all.
    """

    points: int | None = None
    until: str | None = None


ALL = Asked()


def read(file: IndexFile, wanted: Mapping[str, Sequence[str]], asked: Asked) -> Found:
    """Return all runs by their numbers, in the order of time, and the series that are wanted.

    Args:
        file: of the index.
        wanted: which of model, suite, arm and metric; what is not named may be any.
        asked: what of them.

    Raises:
        StoreError: the index can't be read.
    """
    with file.snapshot():
        runs = file.read("SELECT id, value FROM runs ORDER BY created_at, run_id")
        decoded = {number: msgspec.json.decode(text, type=IndexedRun) for number, text in runs}
        last = _number(decoded, asked.until)
        in_order = _by_time([*decoded], last)
        there = None if last is None else _of_run(file, last)
        series = [
            _series(head, contents)
            for numbers, head in _joined(_heads(file, wanted), _named_settings(file))
            if there is None or not there.isdisjoint(numbers)
            if (contents := _contents(file, numbers, head[_METRIC], in_order, asked.points))
        ]
    return decoded, series


def _number(runs: Mapping[int, IndexedRun], run_id: str | None) -> int | None:
    """Return the number of the run that series end with; one that no run has, if it isn't there."""
    if run_id is None:
        return None
    return next((number for number, run in runs.items() if run.run_id == run_id), _NO_RUN)


_NO_RUN = -1


def _of_run(file: IndexFile, run: int) -> set[int]:
    """Return the numbers of the series that a run has points of."""
    return {number for (number,) in file.read("SELECT series FROM points WHERE run = ?", (run,))}


def _joined(heads: Rows, known: Mapping[tuple[str, str], str]) -> list[tuple[list[int], Head]]:
    """Make one of two series that differ in that one doesn't know what its device is called.

    Workers tell it: of a run in which all crashed it isn't known, and how its models ended belongs
    to what is known on the one device that is otherwise set so.

    Args:
        heads: numbers of series, and what each is known by.
        known: settings with the name of a device, by study and setting without.

    Returns:
        Of each that is left its numbers, one or two, and what it is known by.
    """
    joined: dict[Head, list[int]] = {}
    for number, *head in heads:
        named = known.get((head[_STUDY], head[_SETTING]))
        if named is not None and msgspec.json.decode(head[_IDENTITY]).get("device") != _CPU:
            head[_SETTING] = named
        joined.setdefault(tuple(head), []).append(number)
    return [(numbers, head) for head, numbers in joined.items()]


_CPU = "cpu"
"""It needs no name."""


def _named_settings(file: IndexFile) -> dict[tuple[str, str], str]:
    """Return settings of which one device is known, by study and what they are without its name."""
    rows = file.read(
        "SELECT DISTINCT study, setting FROM series"
        " WHERE EXISTS (SELECT 1 FROM points WHERE points.series = series.id)"
    )
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for study, text in rows:
        setting = msgspec.json.decode(text, type=dict[str, str])
        if setting.pop(DEVICE_NAME, None) is not None:
            nameless = msgspec.json.encode(setting, order="sorted").decode()
            found[study, nameless].append(text)
    return {key: texts[0] for key, texts in found.items() if len(texts) == 1}


def _heads(file: IndexFile, wanted: Mapping[str, Sequence[str]]) -> Rows:
    names = sorted(SELECTED.intersection(wanted))
    where = [f"{name} IN ({', '.join('?' * len(wanted[name]))})" for name in names]
    values: list[object] = [value for name in names for value in wanted[name]]
    query = (
        f"SELECT id, {', '.join(_HEAD)} FROM series WHERE {' AND '.join(where) or 1} ORDER BY id"  # noqa: S608  names from above
    )
    return file.read(query, values)


def _by_time(runs: Sequence[int], last: int | None) -> InOrder:
    """Return what puts rows, which are in the order of their runs' numbers, in that of time.

    Mostly these are the same, as runs are added as they are made.

    Args:
        runs: all there are, in the order of time.
        last: later ones are left out.
    """
    if last is None and all(one < other for one, other in itertools.pairwise(runs)):
        return lambda rows: rows
    places = {number: place for place, number in enumerate(runs)}
    most = len(runs) if last is None else places.get(last, -1)
    return lambda rows: sorted(
        (row for row in rows if places[row[0]] <= most), key=lambda row: places[row[0]]
    )


def _contents(
    file: IndexFile, series: Sequence[int], metric: str, in_order: InOrder, points: int | None
) -> Contents | None:
    """Return what a series holds, of one or two numbers; `None` of one without any point."""
    places = ", ".join("?" * len(series))
    of_points = _POINTS.format(places)
    if points is None:
        whole = [Point(*row) for row in in_order(file.read(f"{of_points} ORDER BY run", series))]
        return Contents(Columns.of(metric, whole), whole[-1], whole) if whole else None
    rows = in_order(file.read((_ENDED if metric == STATUS else _MEASURED).format(places), series))
    if not rows:
        return None
    runs, *rest = zip(*rows, strict=True)
    names = ("statuses",) if metric == STATUS else ("values", "errors")
    columns = Columns(runs=runs, **dict(zip(names, rest, strict=True)))
    shown = runs[-max(points, 1) :]
    query = f"{of_points} AND run IN ({', '.join('?' * len(shown))})"
    found = [Point(*row) for row in in_order(file.read(query, (*series, *shown)))]
    return Contents(columns, found[-1], found if points else ())


def _series(head: Sequence[str], contents: Contents) -> StoredSeries:
    study, identity, arm, metric, condition, setting = head
    return StoredSeries(
        study=study,
        identity=msgspec.json.decode(identity, type=dict[str, str]),
        arm=arm,
        metric=metric,
        condition=condition or None,
        setting=msgspec.json.decode(setting, type=dict[str, str]),
        columns=contents.columns,
        last=contents.last,
        points=tuple(contents.points),
    )
