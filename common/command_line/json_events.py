"""What happens in a run, for other programs: one JSON object a line, as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.common.execution.runner import Observer
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record


class JsonEvents:
    """Writes events, and passes them on to another observer; a `runner.Observer`.

    `run_started`, `case_started`, `record` (as `events.jsonl` holds it), `case_ended`, `run_ended`.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write nothing yet.

        Args:
            stream: which other programs read.
        """
        self._stream = stream

    def run_started(self, manifest: Manifest, directory: Path) -> None:
        """Say where the run is kept, and how much it will be."""
        self._write(
            "run_started",
            run_id=manifest.run_id,
            directory=str(directory),
            cases=len(manifest.plan.cases),
        )

    def run_ended(self, manifest: Manifest, *, is_done: bool) -> None:
        """Say whether it was finished or interrupted."""
        self._write("run_ended", run_id=manifest.run_id, state="done" if is_done else "interrupted")

    def beside(self, other: Observer) -> Observer:
        """Return what tells both of the run."""
        return _Observers(self, other)

    def case_started(self, case: Case) -> None:
        """Say that a case begins."""
        self._write("case_started", case=case.id)

    def record_made(self, record: Record) -> None:
        """Give the record of a replicate that has ended."""
        self._write("record", record=record)

    def case_ended(self, case: Case) -> None:
        """Say that a case has ended."""
        self._write("case_ended", case=case.id)

    def _write(self, event: str, **fields: object) -> None:
        text = msgspec.json.encode({"event": event, **fields}).decode()
        print(text, file=self._stream, flush=True)


class _Observers:
    """Tells several observers."""

    def __init__(self, *observers: Observer) -> None:
        """Take them, in order."""
        self._observers = observers

    def case_started(self, case: Case) -> None:
        for each in self._observers:
            each.case_started(case)

    def record_made(self, record: Record) -> None:
        for each in self._observers:
            each.record_made(record)

    def case_ended(self, case: Case) -> None:
        for each in self._observers:
            each.case_ended(case)
