"""The seam between a run and the forms its results are put into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.records import Record


class Sink(Protocol):
    """Takes each case as it ends."""

    def write(self, records: Sequence[Record]) -> None:
        """Take the records of one finished case, one for each replicate that was run."""
        ...

    def close(self) -> None:
        """Finish, when no more cases come."""
        ...
