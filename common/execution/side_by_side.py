"""The loop over cases of which several run at the same time, as nothing of them is timed."""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from dynamometer.common.ending import Held
from dynamometer.common.execution.runner import next_record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from dynamometer.common.execution.executor import Executor
    from dynamometer.common.execution.runner import Interrupt, Told
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record


def run_side_by_side(
    told: Told, executors: Sequence[Executor], interrupt: Interrupt, order: Sequence[Case]
) -> bool:
    """Execute what is left of a run, and tell whether all is done.

    Threads wait for workers; only the calling one keeps records and tells of them.

    Args:
        told: the run, and who is told of it.
        executors: each runs one case at a time, in a thread of its own.
        interrupt: asks to start no further replicate.
        order: the plan's cases in the order in which they are begun.

    Raises:
        StoreError: a record can't be written.
        DynamometerError: workers can't be started.
        KeyboardInterrupt: it is to stop at once.
    """
    pool = ThreadPoolExecutor(len(executors))
    try:
        return _run(told, [*executors], interrupt, order, pool)
    except BaseException:
        # A thread waits until its worker has ended, which it does with its fork server.
        with Held():
            for executor in executors:
                executor.close()
        raise
    finally:
        pool.shutdown()


def _run(
    told: Told,
    free: list[Executor],
    interrupt: Interrupt,
    order: Sequence[Case],
    pool: ThreadPoolExecutor,
) -> bool:
    remaining = told.remaining
    waiting = deque(filter(remaining.replicates, order))
    for case in order:
        if not remaining.replicates(case):
            told.of_end(case)
    running: dict[Future[Record], tuple[Case, Executor]] = {}

    def start(case: Case, executor: Executor) -> None:
        told.observer.case_started(case)
        running[pool.submit(next_record, remaining, executor, case)] = case, executor

    while True:
        while free and waiting and not interrupt.requested:
            start(waiting.popleft(), free.pop())
        if not running:
            return not waiting and not any(map(remaining.replicates, order))
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            case, executor = running.pop(future)
            told.of_record(future.result())
            if remaining.replicates(case) and not interrupt.requested:
                start(case, executor)
                continue
            free.append(executor)
            if not remaining.replicates(case):
                executor.forget(case)
                told.of_end(case)
