"""The loop over cases: execute, store, report; and what an interrupt does to it."""

from __future__ import annotations

import signal
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, Self

from dynamometer.common.repro import single_case_command
from dynamometer.results import batch_sizes
from dynamometer.results.cases import BATCH_SIZES
from dynamometer.results.records import ArmResult, Outcome, Record, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType, TracebackType

    from dynamometer.common.executor import Executor
    from dynamometer.results import store
    from dynamometer.results.cases import Case
    from dynamometer.results.records import Manifest
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
        print("stopping after this replicate; once more stops at once", file=sys.stderr)  # noqa: T201  whoever pressed Ctrl-C must see it


class Rest:
    """What a run directory doesn't hold yet of its plan."""

    def __init__(self, manifest: Manifest, records: Sequence[Record]) -> None:
        """Compare a plan with the records there are."""
        self.manifest = manifest
        self.finished: defaultdict[str, list[Record]] = defaultdict(list)
        for record in records:
            self.finished[record.case.id].append(record)

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases with a replicate that is still to be run, in the plan's order."""
        return tuple(case for case in self.manifest.plan.cases if self.replicates(case))

    def replicates(self, case: Case) -> list[int]:
        """Give the replicates of a case that are still to be run.

        A case none of whose arms passed beside the baseline is not repeated: its remaining
        replicates are left out.
        """
        records = self.finished[case.id]
        if self.is_over(case):
            return []
        done = {record.replicate for record in records}
        replicates = range(self.manifest.plan.protocol.replicates)
        return [each for each in replicates if each not in done]

    def is_over(self, case: Case) -> bool:
        """Tell whether a case's records make its further replicates needless."""
        records = self.finished[case.id]
        if BATCH_SIZES in self.manifest.plan.experiments:
            return batch_sizes.is_over(records)
        return not all(record.is_worth_repeating for record in records)


def run(
    rest: Rest,
    events: store.RunStore,
    executor: Executor,
    sinks: Sequence[Sink],
    observer: Observer,
    interrupt: Interrupt,
) -> bool:
    """Execute what is left of a run, and tell whether all is done.

    Every record is stored before anything else happens to it.

    Raises:
        StoreError: a record can't be written.
        DynamometerError: workers can't be started.
    """
    for case in rest.manifest.plan.cases:
        records = rest.finished[case.id]
        observer.case_started(case)
        for replicate in rest.replicates(case):
            if interrupt.requested:
                return False
            record = _record(rest.manifest, executor, case, replicate)
            events.append(record)
            records.append(record)
            observer.record_made(record)
            if rest.is_over(case):
                break
        observer.case_ended(case)
        for sink in sinks:
            sink.write(records)
    return True


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
        experiments=manifest.plan.experiments,
        arms=tuple(ArmResult(arm=arm, outcome=outcome) for arm in case.arms),
        varies=tuple(manifest.plan.spec_of(case).varies),
        environment_id=manifest.environment.id,
        seed=manifest.plan.seed,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds={},
        command=single_case_command(manifest, case),
    )
