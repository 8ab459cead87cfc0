"""An export that somebody else has written: how each arm of each model ended, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.exports.export import Document
from dynamometer.results.reports.texts import printable

if TYPE_CHECKING:
    from dynamometer.results.exports.export import StoredRun


def export(run: StoredRun) -> list[Document]:
    """Return one document."""
    lines = [
        printable(f"{each.case.label} {each.arm} {each.outcome.status}") + "\n"
        for each in run.endings()
    ]
    return [Document("names.txt", "".join(lines) or "none\n")]
