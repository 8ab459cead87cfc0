"""Results on standard output: what a study says as each case ends, then of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.reports.texts import name_columns, printable_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.reports.sinks import Destination, Reporter
    from dynamometer.results.values.records import Record


class Console:
    """Prints results as text."""

    def __init__(self, reporter: Reporter, destination: Destination) -> None:
        """Print to the stream what a study makes of its records."""
        self._reporter = reporter
        self._stream = destination.stream
        self._cases: list[Sequence[Record]] = []

    def write(self, records: Sequence[Record]) -> None:
        """Print the lines of a case."""
        self._cases.append(records)
        self._print(self._reporter.lines(records))
        flaky = dict.fromkeys(each.flakiness for each in records if each.flakiness)
        if flaky:
            self._print([f"{name_columns(records[0].case)} {', '.join(flaky)}"])

    def close(self) -> None:
        """Print what the cases come to, once."""
        cases, self._cases = self._cases, []
        if cases:
            self._print(self._reporter.closing_lines(cases))

    @property
    def paths(self) -> Sequence[Path]:
        """No file."""
        return ()

    def _print(self, lines: Sequence[str]) -> None:
        if lines:
            print("\n".join(printable_lines(lines)), file=self._stream, flush=True)
