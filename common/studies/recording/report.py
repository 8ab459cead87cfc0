"""What recording a model came to, in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.reports.texts import count_text, name_columns
from dynamometer.results.values.decisions import Recorded
from dynamometer.results.values.records import PASSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.records import Record


def line(records: Sequence[Record]) -> str:
    """Render how many graphs a model has, or why that is not known."""
    last = records[-1]
    name = name_columns(last.case)
    if last.outcome != PASSED:
        return f"{name} {last.outcome.line}"
    found = msgspec.json.decode(last.found, type=Recorded)
    if found.is_decided:
        return f"{name} decided before"
    left_out = sum(each.reason is not None for each in found.graphs)
    more = f", {left_out} of which no file can hold" if left_out else ""
    return f"{name} {count_text(len(found.graphs), 'graph')}{more}"
