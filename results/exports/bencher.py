"""Bencher Metric Format: by benchmark and measure a value with its bounds.

A measure is named by its column and its unit, as Bencher keeps no unit in the file. As Bencher
raises alarms, what can't be counted on is left out.
Source: bencher.dev, reference, "Bencher Metric Format (BMF)".
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dynamometer.results.exports.export import Document, json_text
from dynamometer.results.exports.figures import certain_figures

if TYPE_CHECKING:
    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.exports.figures import Figure

_LONGEST = 1024
"""Characters of a benchmark's name."""


def export(run: StoredRun) -> list[Document]:
    """Return one document."""
    found: defaultdict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for figure in certain_figures(run):
        found[figure.id[-_LONGEST:]][_measure(figure)] = _bounded(figure)
    return [Document("bencher.json", json_text(found))]


def _measure(figure: Figure) -> str:
    unit = "" if figure.column.unit == "x" else figure.column.unit.replace("1/", "per-").lower()
    return "-".join(part for part in (figure.name.replace("_", "-"), unit) if part)


def _bounded(figure: Figure) -> dict[str, float]:
    bounds = {"value": figure.value, "lower_value": figure.low, "upper_value": figure.high}
    return {key: value for key, value in bounds.items() if value is not None}
