"""What a search for batch sizes found, as a line and as a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.studies.batch_sizes.summary import BatchSizeSummary
from dynamometer.results.reports.columns import Column, Table, of_part, theirs
from dynamometer.results.reports.texts import name_columns, rounded_to_3_digits
from dynamometer.results.values.metrics import Better
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.common.studies.batch_sizes.summary import Throughput
    from dynamometer.results.reports.columns import Rows


def search_line(search: BatchSizeSummary) -> str:
    """Render one search: the largest batch, the fastest, and what ended it, or how far it came."""
    name = name_columns(search.case)
    if search.is_unfinished:
        return f"{name} {search.end.reason}"
    passed = search.end.status is Status.PASS
    end = search.end.reason if passed else f"then {search.ended_at}: {search.end.line}"
    if search.largest is None or search.fastest is None:
        return f"{name} {search.end.line}"
    largest, fastest = search.largest, search.fastest
    return (
        f"{name} batch size {largest.batch_size} ({_per_s(largest)}); fastest"
        f" {fastest.batch_size} ({_per_s(fastest)}); {end}"
    )


def _per_s(found: Throughput) -> str:
    return f"{rounded_to_3_digits(found.samples_per_s)} samples/s"


def _largest(search: BatchSizeSummary) -> Throughput | None:
    return search.largest


def _fastest(search: BatchSizeSummary) -> Throughput | None:
    return search.fastest


def _end(search: BatchSizeSummary) -> str:
    if search.is_unfinished:
        return "unfinished"
    return "limit" if search.end.status is Status.PASS else search.end.status


_of_largest, _of_fastest = of_part(_largest), of_part(_fastest)


BATCH_SIZES = Table[BatchSizeSummary](
    "batch_sizes",
    "A row for each model.",
    (
        *theirs(
            Column[BatchSizeSummary]("dev", "Device.", lambda search: search.case.device),
            Column("name", "Model.", lambda search: search.case.model),
            Column(
                "batch_size", "The largest power of two that ran as a batch.",
                _of_largest(lambda batch: batch.batch_size), better=Better.HIGHER,
            ),
        ),
        Column(
            "samples_per_s", "Throughput at that size.",
            _of_largest(lambda batch: batch.samples_per_s), "1/s", Better.HIGHER,
        ),
        Column(
            "fastest_batch_size", "The batch size with the most throughput.",
            _of_fastest(lambda batch: batch.batch_size),
        ),
        Column(
            "fastest_samples_per_s", "Throughput at that size.",
            _of_fastest(lambda batch: batch.samples_per_s), "1/s", Better.HIGHER,
        ),
        Column(
            "end",
            "What the next size came to; `limit` where the search goes no further, `unfinished`"
            " where it has not ended.", _end,
        ),
        Column("reason", "Why.", lambda search: search.end.reason),
        Column("scale", "How far the model was shrunk.", lambda search: search.case.scale),
    ),
)  # fmt: skip


def rows(search: BatchSizeSummary, *, compatible: bool) -> Rows:
    """Return the row of one search."""
    table = BATCH_SIZES.theirs() if compatible else BATCH_SIZES
    return table.rows(search.case, search.case.arms[0], [search])
