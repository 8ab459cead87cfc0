"""CSV files in the run's directory, written as each case ends."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from dynamometer.results.reports.columns import are_theirs
from dynamometer.results.reports.texts import cell
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dynamometer.results.reports.columns import Rows
    from dynamometer.results.reports.sinks import Destination, Reporter
    from dynamometer.results.values.records import Record


class CsvFiles:
    """Writes rows as each case ends; what is missing is empty, never 0.

    PyTorch's columns have no place to say that a case failed or was disturbed: with these alone 0
    stands for what was measured.

    What can be said only of all cases together, verdicts and adjusted p-values, is filled in at
    the end; intervals are then those that all cases together give.
    """

    def __init__(self, reporter: Reporter, destination: Destination) -> None:
        """Write nothing yet.

        Args:
            reporter: the study whose records come.
            destination: where the files go, and whether with the dashboards' columns alone and
                their 0 for missing.
        """
        self._reporter = reporter
        self._directory = destination.directory
        self._compatible = destination.is_compatible
        self._written: dict[str, None] = {}
        self._cases: list[Sequence[Record]] = []

    def write(self, records: Sequence[Record]) -> None:
        """Add the rows of a case.

        Raises:
            StoreError: a file can't be written.
        """
        self._cases.append(records)
        self._add(self._reporter.rows(records, compatible=self._compatible))

    def close(self) -> None:
        """Write the files once more that are known better now."""
        cases, self._cases = self._cases, []
        if cases and not self._compatible:
            found = self._reporter.closing_rows(cases)
            for name in {each.file for each in found} & self._written.keys():
                del self._written[name]
            self._add(found)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files written so far."""
        return tuple(self._directory / name for name in self._written)

    def _add(self, found: Iterable[Rows]) -> None:
        tables = self._reporter.tables()
        for each in found:
            absent = "0" if self._compatible and are_theirs(each, tables) else ""
            rows = [texts_of(row, absent=absent) for row in each.rows]
            if each.file not in self._written:
                rows.insert(0, list(each.columns))
            path = self._directory / each.file
            try:
                mode = "a" if each.file in self._written else "w"
                with path.open(mode, newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows(rows)
            except OSError as error:
                msg = f"{path} can't be written: {error.strerror}"
                raise StoreError(msg) from error
            self._written[each.file] = None


def texts_of(row: Iterable[object], *, absent: str) -> list[str]:
    """Return the values of a row as they are written.

    Args:
        row: its values; `None` is missing.
        absent: what stands for what is missing.
    """
    return [absent if value is None else _text(value) for value in row]


def _text(value: object) -> str:
    if isinstance(value, str):
        return cell(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
