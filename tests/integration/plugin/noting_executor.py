"""An executor that somebody else has written: it has the usual one work, and takes notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.execution.executors.local import LocalExecutor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.common.execution.executor import StartUp
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record


class NotingExecutor:
    """Writes down which replicates it has run."""

    def __init__(self, manifest: Manifest, directory: Path) -> None:
        """Start nothing yet."""
        self._local = LocalExecutor(manifest, directory)
        self._notes = directory / "executed.txt"

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Leave it to the usual one."""
        return self._local.prepare(cases)

    def execute(self, case: Case, replicate: int) -> Record:
        """Run one replicate."""
        with self._notes.open("a") as file:
            file.write(f"{case.model} {replicate}\n")
        return self._local.execute(case, replicate)

    def forget(self, case: Case) -> None:
        """Leave it to the usual one."""
        self._local.forget(case)

    def close(self) -> None:
        """Leave it to the usual one."""
        self._local.close()
