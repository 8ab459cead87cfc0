"""What a search for batch sizes found, as a line and as a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.reports.csv_sink import file_name
from dynamometer.results.reports.sinks import Rows
from dynamometer.results.reports.texts import name_columns
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.common.studies.batch_sizes.summary import BatchSizeSummary

COLUMNS = ("dev", "name", "batch_size")

OUR_COLUMNS = (
    "samples_per_s",
    "fastest_batch_size",
    "fastest_samples_per_s",
    "end",
    "reason",
    "scale",
)


def search_line(search: BatchSizeSummary) -> str:
    """Render one search: the largest batch, the fastest, and what ended it."""
    name = name_columns(search.case)
    passed = search.end.status is Status.PASS
    end = search.end.reason if passed else f"then {search.end.line}"
    if search.largest is None or search.fastest is None:
        return f"{name} {search.end.line}"
    largest, fastest = search.largest, search.fastest
    return (
        f"{name} batch size {largest.batch_size} ({largest.samples_per_s:.3g} samples/s); fastest"
        f" {fastest.batch_size} ({fastest.samples_per_s:.3g} samples/s); {end}"
    )


def rows(search: BatchSizeSummary, *, compatible: bool) -> Rows:
    """Return the row of one search."""
    columns = COLUMNS if compatible else COLUMNS + OUR_COLUMNS
    name = file_name(search.case, search.case.arms[0], "batch_sizes")
    return Rows(name, columns, (_row(search),))


def _row(search: BatchSizeSummary) -> dict[str, object]:
    largest, fastest = search.largest, search.fastest
    return {
        "dev": search.case.device,
        "name": search.case.model,
        "batch_size": largest.batch_size if largest else None,
        "samples_per_s": largest.samples_per_s if largest else None,
        "fastest_batch_size": fastest.batch_size if fastest else None,
        "fastest_samples_per_s": fastest.samples_per_s if fastest else None,
        "end": "limit" if search.end.status is Status.PASS else search.end.status,
        "reason": search.end.reason,
        "scale": search.case.scale,
    }
