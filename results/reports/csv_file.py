"""One CSV file with PyTorch's columns, where the user wants it, as `--output FILE` names it."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from dynamometer.results.reports.csv_sink import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.reports.columns import Rows
    from dynamometer.results.reports.sinks import Destination, Reporter
    from dynamometer.results.values.records import Record

_IDENTITY = 3  # dev, name and batch_size come first in every file of theirs


class CsvFile:
    """Writes the rows of the study's first table as each case ends.

    A row takes the place of an earlier one of the same device, model and batch size. A file that
    has other columns is kept beside it, as `FILE.before`.
    """

    def __init__(self, reporter: Reporter, destination: Destination) -> None:
        """Read what is there, if rows are added to it.

        Args:
            reporter: the study whose records come.
            destination: the file, and whether what it holds stays.

        Raises:
            OSError: the file can't be read.
        """
        self._reporter = reporter
        self._path = destination.file or destination.directory / "results.csv"
        self._lines: list[list[str]] = []
        if destination.keeps_file and self._path.exists():
            self._lines = list(csv.reader(io.StringIO(self._path.read_text(encoding="utf-8"))))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file."""
        return (self._path,)

    def write(self, records: Sequence[Record]) -> None:
        """Add the rows of a case."""
        kind = self._reporter.tables()[0].kind
        for found in self._reporter.rows(records, compatible=True):
            if found.file.endswith(f"_{kind}.csv"):
                self._add(found)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self._lines)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(text.getvalue(), encoding="utf-8")

    def close(self) -> None:
        """Do nothing: everything is written."""

    def _add(self, found: Rows) -> None:
        header = list(found.columns)
        if self._lines and self._lines[0] != header:
            self._path.rename(self._path.with_name(f"{self._path.name}.before"))
            self._lines = []
        added = [texts_of(row, absent="0") for row in found.rows]
        replaced = [row[:_IDENTITY] for row in added]
        kept = [row for row in self._lines[1:] if row[:_IDENTITY] not in replaced]
        self._lines = [header, *kept, *added]
