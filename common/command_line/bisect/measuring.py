"""One point of a search, measured by the command that was typed, in runs of its own."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.command_line.stored.runs import side_of
from dynamometer.common.ending import ExitCode
from dynamometer.common.errors import UsageError
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.comparison.sides import Side

_STOPPED = (ExitCode.INTERRUPTED, 143, 129)
"""A command that was told to stop ends so; then so do we."""

FURTHER = (5, 10, 20)
"""Replicates of each further run of a point that is unclear."""

MOST_RUNS = 1 + len(FURTHER)
"""Of one point: the command as it was typed, then with more replicates."""


class NoRunError(Exception):
    """The command left no run with results; says why."""


@dataclass(frozen=True)
class Measuring:
    """How points are measured.

    Attributes:
        command: makes one run; takes `--output-dir` and `-r`, as every script of ours does.
        folder: of all runs of the search.
    """

    command: tuple[str, ...]
    folder: Path

    def kept(self, point: str) -> list[Side]:
        """Return the runs of a point that there are already, of an earlier call."""
        return [
            side
            for number in range(MOST_RUNS)
            if (side := self._finished(self._directory(point, number))) is not None
        ]

    def measure(self, point: str, number: int) -> Side:
        """Run the command, and return its run.

        Args:
            point: the name of what is measured.
            number: how many runs of it there are; further ones have more replicates.

        Raises:
            NoRunError: it left none with results.
            UsageError: it can't be started, or made several.
            KeyboardInterrupt: it was stopped.
        """
        directory = self._directory(point, number)
        directory.mkdir(parents=True, exist_ok=True)
        more = ["-r", str(FURTHER[number - 1])] if number else []
        words = [*self.command, *more, "--output-dir", str(directory)]
        log = directory / "log.txt"
        try:
            with log.open("wb") as stream:
                done = subprocess.run(  # noqa: S603  what was typed is what is to be run
                    words, stdout=stream, stderr=subprocess.STDOUT, check=False
                )
        except OSError as error:
            msg = f"{words[0]} can't be run: {error.strerror}"
            raise UsageError(msg) from error
        if done.returncode in _STOPPED:
            raise KeyboardInterrupt
        found = self._finished(directory)
        if found is None:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
            msg = f"it left no result: exit code {done.returncode}, {said[-1]} ({log})"
            raise NoRunError(msg)
        return found

    def _directory(self, point: str, number: int) -> Path:
        return self.folder / point.replace("/", "_") / f"run-{number + 1}"

    def _finished(self, directory: Path) -> Side | None:
        """Return the run below a directory that has all its results; `None` where there is none.

        Raises:
            UsageError: there are several.
        """
        found = []
        for manifest_path in sorted(directory.glob(f"*/{store.MANIFEST}")):
            path = manifest_path.parent
            try:
                manifest, records = store.read_manifest(path), store.read_records(path)
            except StoreError:
                continue  # cut off while it was made: it is measured again
            side = side_of(path, manifest, records)
            if records and not side.unfinished:
                found.append(side)
        if len(found) > 1:
            msg = f"{directory} holds several runs: what is bisected makes one"
            raise UsageError(msg)
        return found[0] if found else None
