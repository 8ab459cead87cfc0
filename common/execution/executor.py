"""The interface between the loop over cases and what runs a replicate of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record


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


@runtime_checkable
class HandsOver(Executor, Protocol):
    """What an executor may offer besides: that another one goes on with its processes.

    A run with `ensemble` has several plans, one after the other. To start for each of them what
    imports torch takes seconds; an executor without this is closed, and another one made.
    """

    def hand_over(self, manifest: Manifest, directory: Path) -> Executor:
        """Return an executor for another plan of the run, which is closed in place of this one."""
        ...


@runtime_checkable
class RunsBeside(Executor, Protocol):
    """What an executor may offer besides: another one that executes cases at the same time."""

    def beside(self) -> Executor:
        """Return an executor for the same run, to be called in a thread of its own."""
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
