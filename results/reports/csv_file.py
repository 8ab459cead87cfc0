"""One CSV file with PyTorch's columns, where the user wants it, as `--output FILE` names it."""

from __future__ import annotations

import csv
import io
from itertools import count
from typing import TYPE_CHECKING, Literal

from dynamometer.results.reports.csv_sink import texts_of
from dynamometer.results.store.atomic_file import write_text
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import csv_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.reports.columns import Rows
    from dynamometer.results.reports.sinks import Reporter
    from dynamometer.results.values.records import Record

IDENTITY = ("dev", "name", "batch_size")
"""What comes first in every file of theirs."""

Kept = Literal["nothing", "all", "other models"]
"""What stays of the rows that a file has when a run begins to write to it."""


class CsvFile:
    """Writes the rows of a study's first table as each case ends.

    A file that has other columns stays beside it, as `FILE.before`.
    """

    def __init__(self, reporter: Reporter, path: Path, kept: Kept) -> None:
        """Read what is there, if rows are added to it.

        Args:
            reporter: the study whose records come.
            path: of the file.
            kept: what stays of it; of a run that is gone on with other models' rows, as cases that
                ended before come once more.

        Raises:
            StoreError: the file can't be read.
        """
        self._reporter = reporter
        self._path = path
        self._replaces = kept == "other models"
        self._header: list[str] = []
        self._rows: list[list[str]] = []
        self._is_written = False
        if kept != "nothing" and path.exists():
            rows = [row for _, row in csv_rows(path)]
            self._header = rows[0] if rows else []
            self._rows = [row for row in rows[1:] if row]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file, once a case is written."""
        return (self._path,) if self._is_written else ()

    def write(self, records: Sequence[Record]) -> None:
        """Add the rows of a case.

        Raises:
            StoreError: the file can't be written.
        """
        kind = self._reporter.tables()[0].kind
        try:
            for found in self._reporter.rows(records, compatible=True):
                if found.file.endswith(f"_{kind}.csv"):
                    self._add(found)
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([self._header, *self._rows])
            write_text(self._path, text.getvalue())
        except OSError as error:
            msg = f"{self._path} can't be written: {error.strerror or error}"
            raise StoreError(msg) from error
        self._is_written = True

    def close(self) -> None:
        """Do nothing: everything is written."""

    def _add(self, found: Rows) -> None:
        header = list(found.columns)
        if self._header not in ([], header):
            self._path.rename(_free_name(self._path))
            self._rows = []
        self._header = header
        added = [texts_of(row, absent="0") for row in found.rows]
        if self._replaces:
            own = [row[: len(IDENTITY)] for row in added]
            self._rows = [row for row in self._rows if row[: len(IDENTITY)] not in own]
        self._rows += added


def _free_name(path: Path) -> Path:
    names = (f"{path.name}.before{'' if each == 1 else each}" for each in count(1))
    return next(free for name in names if not (free := path.with_name(name)).exists())
