"""The loop over cases where nothing is timed: several run at the same time."""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.ending import Held
from dynamometer.common.execution.runner import next_record
from dynamometer.common.machine.environment import memory_bytes
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from dynamometer.common.execution.executor import Executor
    from dynamometer.common.execution.runner import Interrupt, RunInProgress
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Outcome, Record


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
    """The identifiers of those that run, where others ran since their replicate was begun."""

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
        made = [
            (case, future.result())
            for future, (case, _) in self.running.items()
            if future.done() and future.exception() is None
        ]
        return [self._found_no_room(case, record) or record for case, record in made]

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
        remaining, found = self.ongoing.remaining, self._found_no_room(case, record)
        self.had_company.discard(case.id)
        if found is not None:
            self.ongoing.of_record(found, is_attempted_again=True)
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
        self.free.append(executor)

    def _found_no_room(self, case: Case, record: Record) -> Record | None:
        """Return what is recorded of a replicate that may have wanted memory others had.

        `None` where it wanted none, or others had none of it.
        """
        outcomes = (record.outcome, *(each.outcome for each in record.arms))
        wanting = next((each for each in outcomes if each.status is Status.OOM), None)
        if wanting is None or case.id not in self.had_company:
            return None
        plan = self.ongoing.remaining.manifest.plan
        limit_bytes = plan.memory_limit_bytes
        if limit_bytes is not None and limit_bytes * plan.jobs <= memory_bytes():
            return None  # each has a share of its own
        arms = tuple(
            msgspec.structs.replace(each, outcome=_said_of_no_room(each.outcome))
            for each in record.arms
        )
        outcome = _said_of_no_room(wanting)
        return msgspec.structs.replace(record, outcome=outcome, arms=arms, stopped=None)


def _said_of_no_room(outcome: Outcome) -> Outcome:
    if outcome.status is not Status.OOM:
        return outcome
    reason = f"no memory beside other cases, and attempted again by itself: {outcome.reason}"
    return msgspec.structs.replace(outcome, status=Status.INFRA, reason=reason)
