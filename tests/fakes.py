"""Hand-written stand-ins for what costs time or processes."""

from __future__ import annotations

import os
import resource
import signal
import threading
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import factories

from dynamometer.common.execution.executor import StartUp
from dynamometer.results.values.records import PASSED, Load, Outcome, Record, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dynamometer.results.values.cases import Case


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Have what makes a file longer fail, which Python makes an error of, as on a full disk."""
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))


@contextmanager
def unread_standard_error() -> Iterator[None]:
    """Have standard error be a pipe whose reader has left, as after `2>&1 | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as unread, redirect_stderr(unread):
        yield
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # for what is left to be written


def send_itself(number: int) -> None:
    """Send this process a signal that it must handle, or ignore; it is handled when this returns.

    Raises:
        AssertionError: Python handles signals elsewhere, or it would end the tests.
    """
    assert threading.current_thread() is threading.main_thread()
    assert signal.getsignal(number) is not signal.SIG_DFL, f"nobody handles {number}"
    signal.raise_signal(number)


@dataclass
class FakeExecutor:
    """Makes records at once, with the outcome a script says.

    Attributes:
        outcomes: the status of a replicate of a model; a pass where nothing is said.
        executed: what was asked for, in order.
        before: called before each record is made.
        experiments: what the records say they are of.
        forgotten: the models nothing is kept for any more, in order.
    """

    outcomes: dict[tuple[str, int], Status] = field(default_factory=dict)
    executed: list[tuple[str, int]] = field(default_factory=list)
    before: Callable[[Case, int], None] = lambda case, replicate: None
    experiments: tuple[str, ...] = ("speedup", "isolated", "memory")
    forgotten: list[str] = field(default_factory=list)

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Do nothing, in no time."""
        return StartUp()

    def execute(self, case: Case, replicate: int) -> Record:
        """Make the record."""
        self.before(case, replicate)
        self.executed.append((case.model, replicate))
        status = self.outcomes.get((case.model, replicate), Status.PASS)
        outcome = PASSED if status is Status.PASS else Outcome(status=status, reason="scripted")
        latencies = (factories.measurement(),) if status is Status.PASS else ()
        return factories.record(
            case,
            replicate=replicate,
            outcome=outcome,
            measurements=latencies,
            experiments=self.experiments,
        )

    def forget(self, case: Case) -> None:
        """Keep that it was said."""
        self.forgotten.append(case.model)

    def close(self) -> None:
        """There is nothing to stop."""


@dataclass
class RecordingSink:
    """Keeps what it is given."""

    written: list[tuple[Record, ...]] = field(default_factory=list)
    at_write: Callable[[Sequence[Record]], None] = lambda records: None

    def write(self, records: Sequence[Record]) -> None:
        """Keep the records of a case."""
        self.at_write(records)
        self.written.append(tuple(records))

    def close(self) -> None:
        """There is nothing to finish."""


@dataclass
class RecordingObserver:
    """Keeps what it notices, as (event, model) pairs."""

    events: list[tuple[str, str]] = field(default_factory=list)

    def case_started(self, case: Case) -> None:
        """Keep it."""
        self.events.append(("started", case.model))

    def record_made(self, record: Record) -> None:
        """Keep it."""
        self.events.append((f"record {record.replicate}", record.case.model))

    def case_ended(self, case: Case) -> None:
        """Keep it."""
        self.events.append(("ended", case.model))


@dataclass
class FakeSurroundings:
    """Says what went on during each block, in the order they are measured.

    Attributes:
        script: what to say; nothing goes on when that has run out.
        begun: how many blocks were measured.
    """

    script: list[Load] = field(default_factory=list)
    begun: int = 0

    def begin(self) -> None:
        """Count it."""
        self.begun += 1

    def load(self) -> Load:
        """Say the next."""
        return self.script.pop(0) if self.script else Load(1.0, 0.0)


@dataclass
class FakeClock:
    """A clock that only its calls advance; durations are multiples of a power of two."""

    time_s: float = 0.0
    calls: int = 0
    synchronized: int = 0

    def now(self) -> float:
        """Tell the time."""
        return self.time_s

    def synchronize(self) -> None:
        """Count the waits for a device."""
        self.synchronized += 1

    def step(self, seconds: Callable[[int], float]) -> Callable[[], None]:
        """Make a call that takes as long as a script says of its index, from 0."""
        made = 0

        def call() -> None:
            nonlocal made
            self.time_s += seconds(made)
            made += 1
            self.calls += 1

        return call
