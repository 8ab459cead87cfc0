"""One point of a search, measured by the command that was typed, in runs of its own."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.common.command_line.bisect.processes import run_logged
from dynamometer.common.command_line.stored.runs import side_of
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.run_options import REPLICATES
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.records import unfinished

if TYPE_CHECKING:
    from dynamometer.results.comparison.sides import Side

_STOPPED = tuple(
    code
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for code in (128 + number, -number)
)
"""A command that was told to stop ends so, by itself or by the signal; then so do we."""

FURTHER = (5, 10, 20)
"""Replicates of each further run of a point that is unclear, where what is asked has several."""

MOST_RUNS = 1 + len(FURTHER)
"""Of one point: the command as it was typed, then with more replicates."""


class NoRunError(Exception):
    """The command left no run with results; says why."""


@dataclass(frozen=True)
class Measuring:
    """How points are measured.

    Attributes:
        command: makes one run; takes `--output-dir` and, unless its study says otherwise, `-r`, as
            every script of ours does.
        folder: of all runs of the search.
    """

    command: tuple[str, ...]
    folder: Path

    def kept(self, point: int) -> list[Side]:
        """Return the runs of a point that there are already, of an earlier call."""
        found: list[Side] = []
        while (side := self._whole(point, len(found))) is not None:
            found.append(side)
        return found

    def measure(self, point: int, number: int) -> Side:
        """Run the command, and return its run.

        Args:
            point: the number of what is measured.
            number: how many runs of it there are; further ones have more replicates.

        Raises:
            NoRunError: it left none with results.
            UsageError: it can't be started, or made several.
            KeyboardInterrupt: it was stopped.
        """
        directory = self._attempts(point, number)
        # One that was cut off may still be at work in its own.
        attempt = directory / f"attempt-{len(list(directory.glob('attempt-*'))) + 1}"
        attempt.mkdir(parents=True)
        words = [*self.command, *self._more(point, number), "--output-dir", str(attempt)]
        log = attempt / "log.txt"
        try:
            code = run_logged(words, Path.cwd(), log)
        except OSError as error:
            msg = f"{words[0]} can't be run: {error.strerror}"
            raise UsageError(msg) from error
        if code in _STOPPED:
            raise KeyboardInterrupt
        found = self._whole(point, number)
        if found is None:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
            msg = f"it left no result: exit code {code}, {said[-1][:200]} ({log})"
            raise NoRunError(msg)
        return found

    def _more(self, point: int, number: int) -> list[str]:
        """Return what a further run is told besides: more replicates, where they are any use."""
        first = self._whole(point, 0) if number else None
        if first is None:
            return []
        option = registry.study(first.conditions["study"]).asked_by
        excludes_replicates = option and option.excludes and REPLICATES in option.excludes.others
        return [] if excludes_replicates else ["-r", str(FURTHER[number - 1])]

    def _attempts(self, point: int, number: int) -> Path:
        return self.folder / f"{point:04}" / f"run-{number + 1}"

    def _whole(self, point: int, number: int) -> Side | None:
        """Return the newest run of some attempts that has all its results, if there is one.

        Raises:
            UsageError: an attempt made several.
        """
        attempts = self._attempts(point, number).glob("attempt-*")
        for attempt in sorted(attempts, key=lambda each: int(each.name[8:]), reverse=True):
            paths = [each.parent for each in sorted(attempt.glob(f"*/{store.MANIFEST}"))]
            if len(paths) > 1:
                msg = f"{attempt} holds {len(paths)} runs: what is bisected makes one, of one model"
                raise UsageError(msg)
            for path in paths:
                try:
                    manifest, records = store.read_manifest(path), store.read_records(path)
                except StoreError:
                    continue  # cut off while it was made
                if records and not unfinished(manifest.plan, records):
                    return side_of(path, manifest, records)
        return None
