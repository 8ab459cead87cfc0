"""The page of a run in its own directory, written anew as cases end."""

from __future__ import annotations

import shlex
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from dynamometer.results.reports.texts import printable
from dynamometer.results.store.atomic_file import replacing
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.store import read_manifest, read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dynamometer.results.reports.page.earlier import Earlier
    from dynamometer.results.reports.sinks import Destination, Reporter
    from dynamometer.results.values.history import IndexedRun, Row
    from dynamometer.results.values.records import Manifest, Record

FILE = "report.html"
_PAUSE = 50
"""Of what writing takes, between the end of one page and the next."""
_MANY = 100
"""Cases of which a page takes some seconds."""


class ReportFile:
    """Writes `report.html` of all records that are stored; what keeps it from that costs no more.

    While a run goes on it is written when there are twice as many cases as in the last one, and
    fifty times as long has passed as writing that took: a plan of many cases takes long to show,
    however few have ended.
    """

    def __init__(
        self,
        reporter: Reporter,
        destination: Destination,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Write nothing yet.

        Args:
            reporter: the study whose records come.
            destination: the run's directory, and where is said what went wrong.
            clock: gives seconds.
        """
        self._clock = clock
        self._next_at = 0.0
        self._reporter = reporter
        self._destination = destination
        self._ended: dict[str, Sequence[Record]] = {}
        self._written = 0
        self._failure: str | None = None
        self._is_current = False

    def write(self, records: Sequence[Record]) -> None:
        """Take the records of a case."""
        self._ended[records[0].case.id] = records
        self._is_current = False
        if len(self._ended) >= 2 * self._written and self._clock() >= self._next_at:
            self._write()

    def close(self) -> None:
        """Write the page of all that is stored, unless it is there."""
        if not self._ended:
            return
        if self._written > _MANY:
            print(f"writing {FILE}", file=self._destination.stream, flush=True)
        try:
            self._write(is_last=True)
        except KeyboardInterrupt:  # results are stored, and the run has ended
            self._failure = "interrupted"
        if self._failure is not None:
            again = [
                "dynamometer",
                "report",
                str(self._destination.directory),
                "-o",
                str(self._path),
            ]
            text = f"no page of the whole run: {self._failure} ({shlex.join(again)})"
            print(text, file=self._destination.stream, flush=True)
        self._ended = {}  # what is closed again has nothing to write

    @property
    def paths(self) -> Sequence[Path]:
        """The page, where it holds all."""
        return (self._path,) if self._is_current else ()

    @property
    def _path(self) -> Path:
        return self._destination.directory / FILE

    def _write(self, *, is_last: bool = False) -> None:
        self._failure, self._is_current = None, False
        started = self._clock()
        try:
            self._make(is_last=is_last)
        except Exception as error:  # noqa: BLE001  results are stored: the page must not end a run
            self._failure = f"{type(error).__name__}: {error}"
            self._written = len(self._ended)
        else:
            self._is_current = True
        ended = self._clock()
        self._next_at = ended + _PAUSE * (ended - started)

    def _make(self, *, is_last: bool) -> None:
        """Put a whole page in the place of the one before."""
        # jinja2 takes a while to import
        from dynamometer.results.reports.page.document import page
        from dynamometer.results.reports.page.run import RunToShow

        directory = self._destination.directory
        manifest, stored = read_manifest(directory), self._stored()
        cases = {**stored, **self._ended}
        earlier = self._earlier(manifest) if is_last and stored else None
        run = RunToShow(manifest, list(cases.values()), self._reporter, directory, earlier)
        self._written = len(cases)
        text = page([run])
        with replacing(self._path) as unfinished:  # makes no folder that has been removed meanwhile
            unfinished.write_text(text, encoding="utf-8")

    def _earlier(self, manifest: Manifest) -> Earlier | None:
        """Return the run among those of the index beside it, which has the run from then on."""
        from dynamometer.results.history.of_run import among_earlier, index_beside
        from dynamometer.results.reports.page.earlier import Earlier

        directory = self._destination.directory
        index = index_beside(directory)
        if index is None:
            return None

        def complain(why: str) -> None:
            text = printable(f"no earlier runs on {FILE}: {why}")
            print(text, file=self._destination.stream, flush=True)

        found = among_earlier(index, directory, lambda _: self._rows(manifest), complain)
        return Earlier(found) if found else None

    def _rows(self, manifest: Manifest) -> tuple[IndexedRun, list[Row]]:
        """Return what an index holds of the run, as it is stored by now."""
        from dynamometer.results.comparison.sides import of_cases
        from dynamometer.results.history.rows import indexed_run, rows

        cases = self._stored().values()
        source = str(self._destination.directory)
        side = of_cases(source, manifest, cases, self._reporter.compared)
        return indexed_run(manifest, side), rows(side)

    def _stored(self) -> dict[str, Sequence[Record]]:
        """Return what is stored, also of cases that have not ended, or ended before a resume."""
        from dynamometer.results.statistics.summary import by_case

        with suppress(StoreError):
            found = by_case(read_records(self._destination.directory))
            return {records[0].case.id: records for records in found}
        return {}
