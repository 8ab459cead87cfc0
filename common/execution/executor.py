"""The interface between the loop over cases and what runs a replicate of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record


class Executor(Protocol):
    """Something that turns a replicate of a case into a record.

    What is registered makes one, given a `Manifest` and the run's directory.
    """

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Do what must be done once before the first of some cases.

        Raises:
            UsageError: a backend can't be loaded.
            DynamometerError: workers can't be started.
        """
        ...

    def execute(self, case: Case, replicate: int) -> Record:
        """Run one replicate; the record says how it ended. Model faults are never raised."""
        ...

    def forget(self, case: Case) -> None:
        """Drop what was kept for a case's further replicates: there will be none."""
        ...

    def close(self) -> None:
        """Stop every process that was started."""
        ...


@dataclass(frozen=True)
class StartUp:
    """What it took to get ready.

    Attributes:
        seconds: wall seconds by what they were spent on; empty if there was nothing to do.
        warnings: what did not work, and will show in the cases.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
