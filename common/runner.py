"""The loop over cases: execute, store, report; and what an interrupt does to it."""

from __future__ import annotations

import signal
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, Self

from dynamometer.common.repro import single_case_command
from dynamometer.results import store
from dynamometer.results.schema import ArmResult, Outcome, Record, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import FrameType, TracebackType

    from dynamometer.common.executor import Executor
    from dynamometer.results.schema import Case, Manifest
    from dynamometer.results.sinks import Sink


class Observer(Protocol):
    """Someone who watches a run go by."""

    def case_started(self, case: Case) -> None:
        """Notice that a case begins."""
        ...

    def record_made(self, record: Record) -> None:
        """Notice that a replicate has ended."""
        ...

    def case_ended(self, case: Case) -> None:
        """Notice that a case has ended, or was finished before this run began."""
        ...


@dataclass
class Interrupt:
    """Ctrl-C once: finish the replicate and stop. Twice: stop at once."""

    requested: bool = False

    def __enter__(self) -> Self:
        """Take over SIGINT."""
        self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give SIGINT back."""
        signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        print("stopping after this replicate; once more stops at once", file=sys.stderr)  # noqa: T201


def run(
    manifest: Manifest,
    directory: Path,
    executor: Executor,
    sinks: Sequence[Sink],
    observer: Observer,
    interrupt: Interrupt,
) -> bool:
    """Execute what a run's directory doesn't hold yet, and tell whether all is done.

    Every record is stored before anything else happens to it. A case none of whose arms passed
    beside the baseline is not repeated: its remaining replicates are left out.

    Raises:
        StoreError: the directory can't be read or written.
        DynamometerError: workers can't be started.
    """
    finished: defaultdict[str, list[Record]] = defaultdict(list)
    for record in store.read_records(directory):
        finished[record.case.id].append(record)
    with store.RunStore(directory) as events:
        for case in manifest.plan.cases:
            records = finished[case.id]
            observer.case_started(case)
            for replicate in pending(manifest, records):
                if interrupt.requested:
                    return False
                record = _record(manifest, executor, case, replicate)
                events.append(record)
                records.append(record)
                observer.record_made(record)
                if not record.is_worth_repeating:
                    break
            observer.case_ended(case)
            for sink in sinks:
                sink.write(records)
    return True


def pending(manifest: Manifest, records: Sequence[Record]) -> list[int]:
    """Give the replicates of a case that are still to be run."""
    if not all(record.is_worth_repeating for record in records):
        return []
    done = {record.replicate for record in records}
    return [each for each in range(manifest.plan.protocol.replicates) if each not in done]


def _record(manifest: Manifest, executor: Executor, case: Case, replicate: int) -> Record:
    reason = manifest.plan.skip_reason(case)
    if reason is None:
        return executor.execute(case, replicate)
    outcome = Outcome(status=Status.SKIP, stage=Stage.LOAD, reason=reason)
    return Record(
        run_id=manifest.run_id,
        case=case,
        replicate=replicate,
        outcome=outcome,
        arms=tuple(ArmResult(arm=arm, outcome=outcome) for arm in case.arms),
        environment_id=manifest.environment.id,
        seed=manifest.plan.seed,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds={},
        command=single_case_command(manifest, case),
    )
