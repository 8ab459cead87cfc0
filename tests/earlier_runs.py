"""Runs among earlier ones, as an index would have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from simulated_histories import indexed, stored

from dynamometer.results.comparison.entries import identity_of
from dynamometer.results.history.changes import history
from dynamometer.results.reports.page.earlier import Earlier

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dynamometer.results.values.cases import Case

RUNS = 20
STEADY, FELL, ROSE = [1.5] * RUNS, [1.5] * 12 + [1.35] * 8, [1.5] * 12 + [1.65] * 8
FAILS = ["pass"] * 17 + ["fail"] * 3


def earlier(
    values: Mapping[Case, Sequence[float | str]], with_page: Collection[str] | None = None
) -> Earlier:
    """Return what became of cases over twenty runs: speedups, or how they ended."""
    series = []
    for case, each in values.items():
        metric = "status" if isinstance(each[0], str) else "speedup"
        found = stored(case.model, each, metric)
        series.append(msgspec.structs.replace(found, identity=identity_of(case)))
        if metric == "speedup":
            passed = stored(case.model, ["pass"] * len(each), "status")
            series.append(msgspec.structs.replace(passed, identity=identity_of(case)))
    return Earlier(history(indexed(RUNS, upgraded_at=12), series), with_page)
