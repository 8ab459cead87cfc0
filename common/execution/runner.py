"""The loop over cases: execute, store, report; and what an interrupt does to it."""

from __future__ import annotations

import itertools
import signal
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, Self

import msgspec

from dynamometer.common import registry
from dynamometer.common.ending import takes_signals, tell
from dynamometer.common.execution.repro import single_case_command
from dynamometer.common.randomness import seeded_rng
from dynamometer.common.studies.study import skip_reason
from dynamometer.results.store.bounds import bounded
from dynamometer.results.values.records import ArmResult, Outcome, Record, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType, TracebackType

    from dynamometer.common.execution.executor import Executor
    from dynamometer.results.reports.sinks import Sink
    from dynamometer.results.store import store
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.records import Manifest


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
        """Take over SIGINT, where that can be, unless it is ignored, as a shell's `&` has it."""
        self._previous = signal.getsignal(signal.SIGINT)
        if takes_signals() and self._previous is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give SIGINT back."""
        if takes_signals():
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        tell("stopping after this replicate; once more stops at once")


class Remaining:
    """What a run directory doesn't hold yet of its plan."""

    def __init__(
        self, manifest: Manifest, records: Sequence[Record], notes: Sequence[str] = ()
    ) -> None:
        """Compare a plan with the records there are; further ones are to hold the notes.

        What ended so that it says nothing of the model is attempted again.
        """
        self.manifest = manifest
        self.notes = tuple(notes)
        self.study = registry.study(manifest.plan.study)
        self.finished: defaultdict[str, list[Record]] = defaultdict(list)
        for record in records:
            self.finished[record.case.id].append(record)
        self._again = {_key(each) for each in records if each.outcome.status is Status.INFRA}

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases with a replicate that is still to be run, in the plan's order."""
        return tuple(case for case in self.manifest.plan.cases if self.replicates(case))

    def replicates(self, case: Case) -> list[int]:
        """Return the replicates a case may still have; none where its records say it needs none."""
        records, protocol = self.finished[case.id], self.manifest.plan.protocol
        if again := [each.replicate for each in records if self._is_attempted_again(each)]:
            return again
        if records and self.study.stop_reason(records, protocol):
            return []
        done = {record.replicate for record in records}
        return [each for each in range(protocol.most_replicates) if each not in done]

    def before(self, case: Case, replicate: int) -> list[Record]:
        """Return the records of a case's earlier replicates, in order.

        Earlier attempts at the same replicate don't count: each attempt is of the same arms.
        """
        found = (each for each in self.finished[case.id] if each.replicate < replicate)
        return sorted(found, key=lambda each: each.replicate)

    def add(self, record: Record, *, is_attempted_again: bool = False) -> None:
        """Take a further record, which may be a further attempt at a replicate, or have one."""
        self._again.discard(_key(record))
        if is_attempted_again:
            self._again.add(_key(record))
        self.finished[record.case.id] = [*self._others(record), record]

    def after(self, record: Record) -> Record:
        """Return a record that knows of earlier attempts, and whether it is its case's last."""
        earlier = tuple(
            outcome
            for each in self.finished[record.case.id]
            if each.replicate == record.replicate
            for outcome in (*each.earlier, each.outcome)
        )
        record = msgspec.structs.replace(record, earlier=earlier)
        if any(each.status is not record.outcome.status for each in earlier):
            ends = ", ".join([*(each.line for each in earlier), record.outcome.line])
            told = record.flakiness or "attempted again"
            notes = (*record.notes, f"{told}: its attempts ended with {ends}")
            record = msgspec.structs.replace(record, notes=notes)
        if self._is_asked_for_again(record):
            return record
        protocol = self.manifest.plan.protocol
        stopped = self.study.stop_reason([*self._others(record), record], protocol)
        return msgspec.structs.replace(record, stopped=stopped)

    def _others(self, record: Record) -> list[Record]:
        own = self.finished[record.case.id]
        return [each for each in own if each.replicate != record.replicate]

    def _is_attempted_again(self, record: Record) -> bool:
        return _key(record) in self._again or self._is_asked_for_again(record)

    def _is_asked_for_again(self, record: Record) -> bool:
        wanted = self.manifest.plan.retries_for
        made = sum(each.status in wanted for each in record.earlier)
        return record.outcome.status in wanted and made < _MOST_RETRIES


def _key(record: Record) -> tuple[str, int]:
    return record.case.id, record.replicate


_MOST_RETRIES = 2
"""Further attempts at a replicate: three of three that fail are no accident."""


@dataclass(frozen=True)
class RunInProgress:
    """A run, with whom the loop over its cases tells what happens, in which order.

    Attributes:
        remaining: of the run, by which it is decided what comes next.
        events: where records are kept, before anyone is told of them.
        sinks: for the results of cases.
        observer: of records and cases.
    """

    remaining: Remaining
    events: store.RunStore
    sinks: Sequence[Sink]
    observer: Observer

    def of_record(self, record: Record, *, is_attempted_again: bool = False) -> None:
        """Keep a record, and say that it was made; there may be a further attempt at it."""
        self.events.append(record)
        self.remaining.add(record, is_attempted_again=is_attempted_again)
        self.observer.record_made(record)

    def of_end(self, case: Case) -> None:
        """Say that a case has all its records."""
        self.observer.case_ended(case)
        for sink in self.sinks:
            sink.write(self.remaining.finished[case.id])


def run(ongoing: RunInProgress, executor: Executor, interrupt: Interrupt) -> bool:
    """Execute what is left of a run, and tell whether all is done.

    Every record is stored before anything else happens to it. Cases take turns in groups, each
    round in an order drawn at random, so that a machine's better and worse hours, and what one
    model leaves to the next, come to all of them.

    Args:
        ongoing: the run, and who is told of it.
        executor: makes its records.
        interrupt: whether to end before the next case.

    Raises:
        StoreError: a record can't be written.
        DynamometerError: workers can't be started.
    """
    remaining = ongoing.remaining
    plan = remaining.manifest.plan
    size = _GROUP if remaining.study.takes_turns else 1
    for first in range(0, len(plan.cases), size):
        group = list(plan.cases[first : first + size])
        for round_ in itertools.count():
            if not group:
                break
            for case in _shuffled(group, plan, round_):
                if interrupt.requested:
                    return False
                if remaining.replicates(case):
                    ongoing.observer.case_started(case)
                    ongoing.of_record(next_record(remaining, executor, case))
                if not remaining.replicates(case):
                    executor.forget(case)
                    ongoing.of_end(case)
                    group.remove(case)
    return True


_GROUP = 8
"""Cases that take turns: what is kept of each for its further replicates is kept of so many."""


def _shuffled(cases: Sequence[Case], plan: RunPlan, round_: int) -> list[Case]:
    """Draw the order of one round; where there is but one, it stays the plan's."""
    if plan.protocol.most_replicates == 1:
        return list(cases)
    rng = seeded_rng(plan.seed, round_, cases[0].id if cases else "", "cases")
    return rng.sample(list(cases), len(cases))


def next_record(remaining: Remaining, executor: Executor, case: Case) -> Record:
    """Execute a case's next replicate; the record says whether it was the last."""
    plan = remaining.manifest.plan
    record = _record(remaining, executor, case, remaining.replicates(case)[0])
    return msgspec.structs.replace(remaining.after(record), target=plan.protocol.target)


def _record(remaining: Remaining, executor: Executor, case: Case, replicate: int) -> Record:
    manifest = remaining.manifest
    reason = skip_reason(remaining.study, manifest.plan, case)
    if reason is None:
        arms = remaining.study.arms(case, remaining.before(case, replicate))
        made = executor.execute(msgspec.structs.replace(case, arms=arms), replicate)
        found = msgspec.structs.replace(
            made,
            run_id=manifest.run_id,
            case=case,
            replicate=replicate,
            notes=(*made.notes, *remaining.notes),
        )
        return bounded(found)
    outcome = Outcome(status=Status.SKIP, stage=Stage.LOAD, reason=reason)
    return Record(
        run_id=manifest.run_id,
        case=case,
        replicate=replicate,
        outcome=outcome,
        experiments=manifest.plan.experiments,
        arms=tuple(ArmResult(arm=arm, outcome=outcome) for arm in case.arms),
        between_sd=manifest.between_sd,
        between_sds=manifest.between_sds,
        varies=tuple(manifest.plan.spec_of(case).varies),
        environment_id=manifest.environment.id,
        seed=manifest.plan.seed,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds={},
        command=single_case_command(manifest, case),
        notes=remaining.notes,
    )
