"""The CSV files of PyTorch's `benchmarks/dynamo`, as `--csv-compat` writes them of a run.

Tables with columns that PyTorch doesn't have, as of sizes and of graphs, are none of them.

Theirs has 0 for whatever is missing, and so have these; an arm that did not pass is told from one
that did by the file of accuracy. Every other export leaves out what is missing.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from dynamometer.results.exports.export import Document
from dynamometer.results.reports.columns import are_theirs
from dynamometer.results.reports.csv_sink import texts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.reports.columns import Rows


def export(run: StoredRun) -> list[Document]:
    """Return a file for each arm and kind, with PyTorch's columns alone; of its tables alone."""
    return [
        Document(name, csv_text(found[0].columns, (row for each in found for row in each.rows)))
        for name, found in compatible_rows(run).items()
    ]


def compatible_rows(run: StoredRun) -> dict[str, list[Rows]]:
    """Return the rows of all cases in PyTorch's columns, by file; none of tables it has not."""
    files: dict[str, list[Rows]] = {}
    tables = run.reporter.tables()
    for records in run.cases:
        for found in run.reporter.rows(records, compatible=True):
            if are_theirs(found, tables):
                files.setdefault(found.file, []).append(found)
    return files


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]], *, absent: str = "0") -> str:
    """Return a CSV file, with `absent` for `None`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(texts_of(row, absent=absent) for row in rows)
    return text.getvalue()
