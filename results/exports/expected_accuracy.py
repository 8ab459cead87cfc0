"""Tables of `name,accuracy,graph_breaks`, as in PyTorch's `ci_expected_accuracy`.

`--expect` reads them: see `results/store/their_expected.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.exports.export import Document
from dynamometer.results.exports.pytorch_csv import compatible_rows, csv_text
from dynamometer.results.reports.columns import file_ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.exports.export import StoredRun

COLUMNS = ("name", "accuracy", "graph_breaks")
_KIND = "accuracy"


def export(run: StoredRun) -> list[Document]:
    """Return a table for each arm, sorted by name, with as many blank lines as theirs have."""
    case = run.manifest.plan.cases[0]
    return [
        Document(f"{arm}_{case.suite}_{case.mode}.csv", _spaced(_table(rows)))
        for arm, rows in accuracy_rows(run).items()
    ]


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    cells = sorted((tuple(row[each] for each in COLUMNS) for row in rows), key=str)
    return csv_text(COLUMNS, cells, absent="")


def _spaced(table: str) -> str:
    """Put blank lines between rows, so that changes of two of them are merged without conflict."""
    return table.rstrip("\n").replace("\n", "\n" * 4) + "\n"


def accuracy_rows(run: StoredRun) -> dict[str, list[dict[str, object]]]:
    """Return the rows of the files of accuracy, by arm."""
    found: dict[str, list[dict[str, object]]] = {}
    case = run.manifest.plan.cases[0]
    end = file_ending(case, _KIND)
    for file, rows in compatible_rows(run).items():
        if file.endswith(end):
            own = [row for each in rows for row in each.by_column()]
            found[file.removesuffix(end)] = own
    return found
