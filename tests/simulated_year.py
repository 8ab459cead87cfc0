"""A year of made-up nightly runs of many models, some of which became slower, or fail."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simulated_histories import Noise, indexed, series, stored

from dynamometer.results.history.changes import history
from dynamometer.results.values.history import STATUS

if TYPE_CHECKING:
    from dynamometer.results.values.history import History, StoredSeries

MODELS, RUNS = 500, 365
MADE_AT = "2027-01-01T00:00:00+00:00"
"""A day after the last run."""

HOSTILE = "<img src=x onerror=alert(1)>"
WORSE = {3: 355, 7: 360, 250: 345, 77: 290, 480: 100}
"""Models that became slower by 6 %, and with which run: within 1, 4, 12 weeks, or earlier."""
FAILING = {400: 350, 401: 200}
"""Models that fail, and since which run."""
MENDED = {100: (340, 352)}
"""Models that were slower from one run to another."""
BETTER = {200: 340}


def name(model: int) -> str:
    """Return what a model is called, one of them so that a careless page would obey it."""
    return HOSTILE if model == 7 else f"model_{model:03}"


def worse_since(run: int) -> set[str]:
    """Return the models that became worse with that run or a later one, and still are."""
    found = {**WORSE, **FAILING}
    return {name(model) for model, since in found.items() if since >= run}


def year(models: int = MODELS, runs: int = RUNS) -> History:
    """Return what became of them: speedups, and how each run ended."""
    given = [each for model in range(models) for each in _of_model(model, runs)]
    return history(indexed(runs, upgraded_at=355), given)


def _of_model(model: int, runs: int) -> list[StoredSeries]:
    steps: list[tuple[int, float]] = []
    if model in WORSE:
        steps = [(WORSE[model], -0.06)]
    elif model in BETTER:
        steps = [(BETTER[model], 0.06)]
    elif model in MENDED:
        steps = [(MENDED[model][0], -0.06), (MENDED[model][1], 1 / 0.94 - 1)]
    level = 1 + model % 20 / 10
    values = [level * math.exp(each) for each in series(Noise(), model, steps, runs)]
    fails_since = FAILING.get(model, runs)
    ended = ["pass"] * fails_since + ["crash"] * (runs - fails_since)
    return [
        stored(name(model), values[:fails_since]),
        stored(name(model), ended, metric=STATUS),
    ]
