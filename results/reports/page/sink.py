"""The page of a run in its own directory, written anew as cases end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.reports.page.run import RunToShow
from dynamometer.results.store.store import read_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.reports.sinks import Destination, Reporter
    from dynamometer.results.values.records import Record

FILE = "report.html"


class ReportFile:
    """Writes `report.html`; whatever keeps it from that is said, and costs nothing else.

    While a run goes on it is written when there are twice as many cases as in the last one, so that
    all writing takes no longer than twice the last.
    """

    def __init__(self, reporter: Reporter, destination: Destination) -> None:
        """Write nothing yet.

        Args:
            reporter: the study whose records come.
            destination: the run's directory, and where is said what went wrong.
        """
        self._reporter = reporter
        self._destination = destination
        self._cases: list[Sequence[Record]] = []
        self._written = 0
        self._failure: str | None = None

    def write(self, records: Sequence[Record]) -> None:
        """Take the records of a case."""
        self._cases.append(records)
        if len(self._cases) >= 2 * self._written:
            self._write()

    def close(self) -> None:
        """Write the page of all cases, unless it is there."""
        if len(self._cases) > self._written:
            self._write()
        if self._failure is not None:
            text = f"no page: {self._failure} (dynamometer report {self._destination.directory})"
            print(text, file=self._destination.stream, flush=True)
            self._failure = None

    @property
    def paths(self) -> Sequence[Path]:
        """The page, where it could be written."""
        path = self._destination.directory / FILE
        return (path,) if self._written and path.exists() else ()

    def _write(self) -> None:
        self._written = len(self._cases)
        try:
            self._make()
        except Exception as error:  # noqa: BLE001  results are stored: the page must not end a run
            self._failure = f"{type(error).__name__}: {error}"
        else:
            self._failure = None

    def _make(self) -> None:
        """Put a whole page in the place of the one before."""
        from dynamometer.results.reports.page.document import page  # jinja2 takes a while to import

        directory = self._destination.directory
        run = RunToShow(read_manifest(directory), self._cases, self._reporter, directory)
        new = directory / f"{FILE}.new"
        new.write_text(page([run]), encoding="utf-8")
        new.replace(directory / FILE)
