"""CSV files in the run's directory, written as each case ends."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, TextIO

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
        self._files: dict[str, TextIO] = {}
        self._cases: list[Sequence[Record]] = []

    def write(self, records: Sequence[Record]) -> None:
        """Add the rows of a case."""
        self._cases.append(records)
        self._add(self._reporter.rows(records, compatible=self._compatible))

    def close(self) -> None:
        """Write the files once more that are known better now."""
        cases, self._cases = self._cases, []
        if cases and not self._compatible:
            found = self._reporter.closing_rows(cases)
            for name in {each.file for each in found} & self._files.keys():
                self._files.pop(name).close()
            self._add(found)
        for file in self._files.values():
            file.close()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files written so far."""
        return tuple(self._directory / name for name in self._files)

    def _add(self, found: Iterable[Rows]) -> None:
        absent = "0" if self._compatible else ""
        for each in found:
            rows = [texts_of(row, absent=absent) for row in each.rows]
            try:
                file = self._open(each.file, each.columns)
                csv.writer(file).writerows(rows)
                file.flush()
            except OSError as error:
                msg = f"{self._directory / each.file} can't be written: {error.strerror}"
                raise StoreError(msg) from error

    def _open(self, name: str, columns: tuple[str, ...]) -> TextIO:
        if name not in self._files:
            file = (self._directory / name).open("w", newline="", encoding="utf-8")
            csv.writer(file).writerow(columns)
            self._files[name] = file
        return self._files[name]


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
