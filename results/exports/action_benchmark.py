"""The lists of github-action-benchmark: one of what is better smaller, one of what is bigger.

That action reads one kind at a time: tools `customSmallerIsBetter` and `customBiggerIsBetter`. It
raises alarms, so what can't be counted on is left out.
Source: README of benchmark-action/github-action-benchmark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.exports.export import Document, json_text
from dynamometer.results.exports.figures import certain_figures
from dynamometer.results.values.metrics import Better

if TYPE_CHECKING:
    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.exports.figures import Figure

_NAMES = {
    Better.LOWER: "customSmallerIsBetter.json",
    Better.HIGHER: "customBiggerIsBetter.json",
}


def export(run: StoredRun) -> list[Document]:
    """Return a document for each direction that a figure has."""
    found = certain_figures(run)
    commands = {records[0].case.id: records[-1].command for records in run.cases}
    return [
        Document(name, json_text([_entry(each, commands[each.case.id]) for each in own]))
        for better, name in _NAMES.items()
        if (own := [each for each in found if each.column.better is better])
    ]


def _entry(figure: Figure, command: str) -> dict[str, object]:
    entry: dict[str, object] = {
        "name": f"{figure.id} {figure.column.name}",
        "unit": figure.column.unit or "1",
        "value": figure.value,
    }
    if figure.low is not None and figure.high is not None:
        entry["range"] = f"{figure.low:.6g} to {figure.high:.6g}"
    return {**entry, "extra": command}
