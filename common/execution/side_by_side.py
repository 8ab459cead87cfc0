"""The loop over cases where nothing is timed: several run at the same time."""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.ending import Held
from dynamometer.common.execution.runner import next_record
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.records import Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from dynamometer.common.execution.executor import Executor
    from dynamometer.common.execution.runner import Interrupt, RunInProgress
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record


def run_side_by_side(
    ongoing: RunInProgress,
    executors: Sequence[Executor],
    interrupt: Interrupt,
    order: Sequence[Case],
) -> bool:
    """Execute what is left of a run, and tell whether all is done.

    Threads wait for workers; only the calling one keeps records and tells of them. What was
    finished when something ended the run is kept as well, unless that is that nothing can be. A
    case that found no memory beside others is run again by itself when these have ended: how many
    run at the same time must not decide what a record says.

    Args:
        ongoing: the run, and who is told of it.
        executors: each runs one case at a time, in a thread of its own.
        interrupt: asks to start no further replicate.
        order: the plan's cases in the order in which they are begun.

    Raises:
        StoreError: a record can't be written.
        DynamometerError: workers can't be started.
        KeyboardInterrupt: it is to stop at once.
    """
    with ThreadPoolExecutor(len(executors)) as pool:
        cases = _Cases(ongoing, interrupt, pool, [*executors])
        try:
            return cases.run(order)
        except BaseException as error:
            with Held():
                # Before anything is closed: records of what that ends would blame the fork server.
                finished = cases.finished()
                # A thread waits until its worker has ended, which it does with its fork server.
                for executor in executors:
                    executor.close()
                if not isinstance(error, StoreError):
                    for each in finished:
                        ongoing.events.append(each)
            raise


@dataclass
class _Cases:
    """The cases of a run: which wait, which run, and which are to run by themselves at the end."""

    ongoing: RunInProgress
    interrupt: Interrupt
    pool: ThreadPoolExecutor
    free: list[Executor]
    waiting: deque[Case] = field(default_factory=deque)
    for_alone: deque[Case] = field(default_factory=deque)
    running: dict[Future[Record], tuple[Case, Executor]] = field(default_factory=dict)
    had_company: set[str] = field(default_factory=set)
    """The identifiers of those that run, beside which others ran since they were begun."""

    def run(self, order: Sequence[Case]) -> bool:
        """Run what is left of some cases, and tell whether all is done."""
        replicates = self.ongoing.remaining.replicates
        for case in order:
            if replicates(case):
                self.waiting.append(case)
            else:
                self.ongoing.of_end(case)
        while True:
            self._begin()
            if not self.running:
                return not any(map(replicates, order))
            for future in wait(self.running, return_when=FIRST_COMPLETED).done:
                case, executor = self.running.pop(future)
                self._end(case, executor, future.result())

    def finished(self) -> list[Record]:
        """Return the records that are made by now, of which nobody was told."""
        return [each.result() for each in self.running if each.done() and each.exception() is None]

    def _begin(self) -> None:
        while self.free and self.waiting and not self.interrupt.requested:
            self._start(self.waiting.popleft(), self.free.pop())
        if self.for_alone and not self.running and not self.interrupt.requested:
            self._start(self.for_alone.popleft(), self.free.pop())

    def _start(self, case: Case, executor: Executor) -> None:
        self.ongoing.observer.case_started(case)
        future = self.pool.submit(next_record, self.ongoing.remaining, executor, case)
        self.running[future] = case, executor
        if len(self.running) > 1:
            self.had_company.update(each.id for each, _ in self.running.values())

    def _end(self, case: Case, executor: Executor, record: Record) -> None:
        """Keep a record, and go on with its case, or leave that for later."""
        remaining = self.ongoing.remaining
        if case.id in self.had_company and _may_have_wanted_room(record, remaining.manifest):
            self.ongoing.of_record(_of_no_room(record), is_attempted_again=True)
            self.for_alone.append(case)
            executor.forget(case)
        else:
            self.ongoing.of_record(record)
            if not remaining.replicates(case):
                executor.forget(case)
                self.ongoing.of_end(case)
            elif not self.interrupt.requested:
                self._start(case, executor)
                return
        self.had_company.discard(case.id)
        self.free.append(executor)


def _may_have_wanted_room(record: Record, manifest: Manifest) -> bool:
    """Return whether a case ended for want of memory that others may have had."""
    limit_bytes, jobs = manifest.plan.memory_limit_bytes, manifest.plan.jobs
    if limit_bytes is not None and limit_bytes * jobs <= manifest.environment.memory_bytes:
        return False  # each has a share of its own
    return _out_of_memory(record) is not None


def _out_of_memory(record: Record) -> Outcome | None:
    outcomes = (record.outcome, *(each.outcome for each in record.arms))
    return next((each for each in outcomes if each.status is Status.OOM), None)


def _of_no_room(record: Record) -> Record:
    """Return a record of an attempt that says nothing of its case, as others had the memory."""

    def told(outcome: Outcome) -> Outcome:
        if outcome.status is not Status.OOM:
            return outcome
        reason = f"{outcome.reason}; beside other cases: it is attempted again by itself"
        return msgspec.structs.replace(outcome, status=Status.INFRA, reason=reason)

    arms = (msgspec.structs.replace(each, outcome=told(each.outcome)) for each in record.arms)
    outcome = told(_out_of_memory(record) or record.outcome)
    return msgspec.structs.replace(record, outcome=outcome, arms=tuple(arms), stopped=None)
