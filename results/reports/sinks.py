"""The interface between a run and the forms its results are put into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TextIO

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.reports.page.values import Part
    from dynamometer.results.values.records import Outcome, Record


class OnPage(NamedTuple):
    """What the page of a run holds that its study makes.

    Attributes:
        part: what it shows of the cases.
        lines: what it prints of each case.
        closing_lines: what it prints of all of them.
    """

    part: Part
    lines: Sequence[Sequence[str]]
    closing_lines: Sequence[str]


class Reporter(Protocol):
    """What a study makes of records: text, and rows of CSV files."""

    def tables(self) -> Sequence[Table[Any]]:
        """Return every table that it may write rows of."""
        ...

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render one finished case, given one record for each replicate it had."""
        ...

    def closing_lines(self, cases: Sequence[Sequence[Record]]) -> list[str]:
        """Render what all cases of a run come to."""
        ...

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return the rows of one finished case.

        Args:
            records: one for each replicate it had.
            compatible: whether the columns are to be those of PyTorch's dashboards alone.
        """
        ...

    def closing_rows(self, cases: Sequence[Sequence[Record]]) -> list[Rows]:
        """Return the files that are known better once all cases have ended.

        What was written to a file of that name before is replaced.
        """
        ...

    def on_page(self, cases: Sequence[Sequence[Record]]) -> OnPage:
        """Return what the page of a run holds of its cases."""
        ...

    def ending(self, records: Sequence[Record]) -> Outcome:
        """Return how a case ended as a whole, given one record for each replicate it had."""
        ...

    def compared(self, records: Sequence[Record]) -> list[Entry]:
        """Return what of a case is compared between runs, for each of its arms.

        Args:
            records: of the case, one for each replicate it had; at least one.
        """
        ...


class Destination(msgspec.Struct, frozen=True):
    """Where a sink may put results.

    Attributes:
        directory: the run's; files go there.
        stream: of text, for who looks on.
        is_compatible: whether PyTorch's dashboards are to read what is written.
    """

    directory: Path
    stream: TextIO
    is_compatible: bool = False


class Sink(Protocol):
    """Takes each case as it ends.

    What is registered makes one, given a `Reporter` and a `Destination`. A resumed run makes
    its own, which gets the cases that ended before once more: it replaces what an earlier sink left
    in the directory.
    """

    @property
    def paths(self) -> Sequence[Path]:
        """The files written so far."""
        ...

    def write(self, records: Sequence[Record]) -> None:
        """Take the records of one finished case, one for each replicate that was run."""
        ...

    def close(self) -> None:
        """Finish, when no more cases come."""
        ...
