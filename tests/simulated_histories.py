"""Series of made-up runs, with steps planted in them, as a history sees them run by run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from dynamometer.results.history.change_points import change_points
from dynamometer.results.values.history import Columns, IndexedRun, Point, StoredSeries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.history.change_points import ChangePoint

FLOOR = math.log1p(0.02)
RUNS = 80
STEPS = ((20, -0.05), (40, 0.05), (60, -0.05))
"""After how many runs the level changes, and by how much."""


@dataclass(frozen=True)
class Noise:
    """How runs of the same code differ.

    Attributes:
        own: standard error of a run, as its interval has it.
        further: standard deviation between runs that intervals don't show.
        spikes: share of runs that are off by `spike` as well.
        spike: by how much.
        correlation: of the further part from run to run.
    """

    own: float = 0.006
    further: float = 0.0
    spikes: float = 0.0
    spike: float = 0.05
    correlation: float = 0.0


def series(
    noise: Noise, seed: int, steps: Sequence[tuple[int, float]] = STEPS, runs: int = RUNS
) -> list[float]:
    """Return the logarithms of a metric, one of each run."""
    random = np.random.default_rng(seed)
    levels = np.zeros(runs)
    for place, step in steps:
        levels[place:] += math.log1p(step)
    own = random.normal(0.0, noise.own, runs)
    spikes = noise.spike * (random.random(runs) < noise.spikes) * random.choice((-1, 1), runs)
    further = np.empty(runs)
    last = random.normal()
    for run in range(runs):
        further[run] = last
        rest = math.sqrt(1 - noise.correlation**2)
        last = noise.correlation * last + rest * random.normal()
    return [float(each) for each in levels + own + spikes + noise.further * further]


def found(values: Sequence[float], noise: Noise) -> list[ChangePoint]:
    """Return what is said of a series."""
    return change_points(values, noise.own, FLOOR)


def is_true(change: ChangePoint, steps: Sequence[tuple[int, float]]) -> int | None:
    """Return which step a change is, if its range holds one of the same direction."""
    for number, (place, step) in enumerate(steps):
        is_there = change.earliest <= place <= change.latest
        if is_there and (change.after > change.before) == (step > 0):
            return number
    return None


@dataclass(frozen=True)
class Told:
    """What was said of one series.

    Attributes:
        delays: of each step after how many runs with it it was told for good; `None` if it wasn't.
        false: changes told at the end that were not planted.
        ever_false: changes told at any time that were not planted, each place once.
    """

    delays: tuple[int | None, ...]
    false: int
    ever_false: int


def told(noise: Noise, seed: int, steps: Sequence[tuple[int, float]], runs: int = RUNS) -> Told:
    """Return what is said of a series after each run, where a history is looked at every time."""
    values = series(noise, seed, steps, runs)
    first: dict[int, int] = {}
    wrong: set[int] = set()
    changes: list[ChangePoint] = []
    for length in range(1, runs + 1):
        changes = found(values[:length], noise)
        numbers = {is_true(each, steps) for each in changes}
        for number in range(len(steps)):
            if number in numbers:
                first.setdefault(number, length - steps[number][0])
            else:
                first.pop(number, None)
        wrong.update(each.index for each in changes if is_true(each, steps) is None)
    return Told(
        delays=tuple(first.get(number) for number in range(len(steps))),
        false=sum(is_true(each, steps) is None for each in changes),
        ever_false=len(wrong),
    )


def indexed(count: int, upgraded_at: int = 10) -> dict[int, IndexedRun]:
    """Return a run a day, by their numbers; torch is another from one of them on."""
    first = datetime(2026, 1, 1, tzinfo=UTC)
    return {
        number: IndexedRun(
            run_id=f"run-{number}",
            created_at=(first + timedelta(days=number)).isoformat(),
            study="speedup",
            conditions={"torch": "2.11" if number < upgraded_at else "2.12", "os": "Linux"},
            setting={},
        )
        for number in range(count)
    }


def stored(
    model: str,
    values: Sequence[float | str | None],
    metric: str = "speedup",
    *,
    first: int = 0,
    setting: Mapping[str, str] | None = None,
    doubt: str | None = None,
) -> StoredSeries:
    """Return a series, one value or status for each day; of `None` the index has nothing."""
    return of_points(
        StoredSeries(
            study="speedup",
            identity={"suite": "torchbench", "model": model},
            arm="inductor",
            metric=metric,
            condition=None,
            setting=dict(setting or {}),
            columns=Columns(runs=()),
            last=_NO_POINT,
            points=(),
        ),
        [
            Point(number, "pass", each, each, each, 0.005, 3, doubt)
            if isinstance(each, float)
            else Point(number, each, None, None, None, None, 1, doubt)
            for number, each in enumerate(values, start=first)
            if each is not None
        ],
    )


_NO_POINT = Point(-1, "", None, None, None, None, 0, None)


def of_points(series: StoredSeries, points: Sequence[Point]) -> StoredSeries:
    """Return a series with other points."""
    columns = Columns.of(series.metric, points)
    return msgspec.structs.replace(
        series, columns=columns, last=points[-1] if points else _NO_POINT, points=tuple(points)
    )
