"""Cases that run at the same time: as many as there are executors, with a record each."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ALL_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, ClassVar

import factories
import msgspec
import pytest
from fakes import FakeExecutor, RecordingObserver, RecordingSink

from dynamometer.common.errors import DynamometerError
from dynamometer.common.execution import side_by_side
from dynamometer.common.execution.runner import Interrupt, Remaining, RunInProgress
from dynamometer.common.execution.side_by_side import run_side_by_side
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.records import ArmResult, Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record

NAMES = ("a", "b", "c", "d", "e")
LONG_S = 1200.0
"""After which a test that waits for what never comes fails."""


@pytest.fixture
def manifest() -> Manifest:
    """Five models, three replicates."""
    return factories.manifest(factories.plan(*map(factories.model_spec, NAMES)))


def go(
    manifest: Manifest,
    tmp_path: Path,
    executors: Sequence[FakeExecutor],
    interrupt: Interrupt | None = None,
    order: Sequence[Case] | None = None,
) -> tuple[bool, list[Record], RecordingSink]:
    """Run with fakes all around; gives also the records that were kept."""
    directory, sink = tmp_path / "run", RecordingSink()
    if not directory.exists():
        store.create(directory, manifest)
    with store.RunStore(directory) as events:
        rest = Remaining(manifest, store.read_records(directory))
        ongoing = RunInProgress(rest, events, [sink], RecordingObserver())
        cases = manifest.plan.cases if order is None else order
        done = run_side_by_side(ongoing, executors, interrupt or Interrupt(), cases)
    return done, store.read_records(directory), sink


def keys(records: Sequence[Record]) -> list[tuple[str, int]]:
    """Return what was run."""
    return [(each.case.model, each.replicate) for each in records]


def only_record_of(model: str, records: Sequence[Record]) -> Record:
    """Return the one that a model has."""
    (found,) = (each for each in records if each.case.model == model)
    return found


def test_as_many_run_at_a_time_as_there_are_executors(manifest: Manifest, tmp_path: Path) -> None:
    """All wait for each other: with one fewer at a time nobody would get on."""
    barrier = threading.Barrier(3)
    meets = {("a", 0), ("b", 0), ("c", 0)}

    def before(case: Case, replicate: int) -> None:
        if (case.model, replicate) in meets:
            barrier.wait(LONG_S)

    executors = [FakeExecutor(before=before) for _ in range(3)]
    done, records, sink = go(manifest, tmp_path, executors)
    assert done
    expected = sorted((name, each) for name in NAMES for each in range(3))
    assert sorted(keys(records)) == expected
    assert sorted(found[0].case.model for found in sink.written) == [*NAMES]
    assert all(each.executed for each in executors)
    forgotten = [name for each in executors for name in each.forgotten]
    assert sorted(forgotten) == [*NAMES]


def test_a_case_stays_with_its_executor(manifest: Manifest, tmp_path: Path) -> None:
    """What its first replicate left in caches is there for the others."""
    executors = [FakeExecutor() for _ in range(2)]
    go(manifest, tmp_path, executors)
    for each in executors:
        own = {model for model, _ in each.executed}
        assert [*each.executed] == [
            (model, number) for model in dict.fromkeys(m for m, _ in each.executed)
            for number in range(3)
        ]  # fmt: skip
        others = [other for other in executors if other is not each]
        assert all(own.isdisjoint(m for m, _ in other.executed) for other in others)


def test_cases_begin_in_the_order_that_is_given(manifest: Manifest, tmp_path: Path) -> None:
    """Those first that may take longest."""
    executor = FakeExecutor()
    go(manifest, tmp_path, [executor], order=manifest.plan.cases[::-1])
    assert [model for model, number in executor.executed if number == 0] == [*NAMES][::-1]


def test_what_is_there_is_not_run_again(manifest: Manifest, tmp_path: Path) -> None:
    """A run that was interrupted goes on, and tells sinks of all cases."""
    interrupt = Interrupt()

    def stop(case: Case, replicate: int) -> None:
        if (case.model, replicate) == ("b", 1):
            interrupt.requested = True

    done, before, _ = go(manifest, tmp_path, [FakeExecutor(before=stop)], interrupt)
    assert not done
    assert keys(before) == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]
    executors = [FakeExecutor() for _ in range(2)]
    done, records, sink = go(manifest, tmp_path, executors)
    assert done
    assert len(records) == len(set(keys(records))) == len(NAMES) * 3
    assert len(sink.written) == len(NAMES)


def test_an_interrupt_lets_running_cases_end(manifest: Manifest, tmp_path: Path) -> None:
    """Each that had begun has its record, and no other begins."""
    interrupt, barrier = Interrupt(), threading.Barrier(2)

    def before(case: Case, replicate: int) -> None:
        barrier.wait(LONG_S)
        interrupt.requested = True
        barrier.wait(LONG_S)

    done, records, sink = go(
        manifest, tmp_path, [FakeExecutor(before=before) for _ in range(2)], interrupt
    )
    assert not done
    assert sorted(keys(records)) == [("a", 0), ("b", 0)]
    assert sink.written == []


class Stuck(FakeExecutor):
    """Executes until it is closed, as one does whose worker hangs."""

    def __init__(self, began: Callable[[], None]) -> None:
        super().__init__()
        self._began, self._closed = began, threading.Event()

    def execute(self, case: Case, replicate: int) -> Record:
        """Wait."""
        self._began()
        assert self._closed.wait(LONG_S)
        raise DynamometerError

    def close(self) -> None:
        """End it."""
        self._closed.set()


def test_to_stop_at_once_closes_what_runs(manifest: Manifest, tmp_path: Path) -> None:
    """A second Ctrl-C doesn't wait for workers that hang; what was made before is kept."""
    barrier = threading.Barrier(2, action=lambda: os.kill(os.getpid(), signal.SIGINT))

    def began() -> None:
        barrier.wait(LONG_S)

    executors = [Stuck(began), Stuck(began)]
    # A shell has what it starts in the background ignore Ctrl-C.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            go(manifest, tmp_path, executors)
    finally:
        signal.signal(signal.SIGINT, ignored)
    assert store.read_records(tmp_path / "run") == []


def test_what_cant_be_started_ends_the_run(manifest: Manifest, tmp_path: Path) -> None:
    """The others are closed, and what they made is kept."""
    started = threading.Event()

    class Broken(FakeExecutor):
        def execute(self, case: Case, replicate: int) -> Record:
            assert started.wait(LONG_S)
            msg = "the fork server did not start"
            raise DynamometerError(msg)

    stuck = Stuck(started.set)
    with pytest.raises(DynamometerError, match="did not start"):
        go(manifest, tmp_path, [Broken(), stuck])
    assert stuck._closed.is_set()


class SeenPool(ThreadPoolExecutor):
    """Keeps what is done in it."""

    futures: ClassVar[list[Future[Any]]] = []

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Keep it."""
        self.futures.append(super().submit(*args, **kwargs))
        return self.futures[-1]


@pytest.fixture
def _seen_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it used, by nobody so far."""
    monkeypatch.setattr(SeenPool, "futures", [])
    monkeypatch.setattr(side_by_side, "ThreadPoolExecutor", SeenPool)


@pytest.mark.usefixtures("_seen_pool")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreError("the disk is full")])
def test_what_was_finished_when_the_run_ends_is_kept(
    error: BaseException, manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what another thread is at, and where nothing can be kept."""

    def wait_for_others(self: RecordingObserver, record: Record) -> None:
        done, _ = wait(SeenPool.futures, LONG_S, return_when=ALL_COMPLETED)
        assert len(done) == 3
        raise error

    monkeypatch.setattr(RecordingObserver, "record_made", wait_for_others)
    with pytest.raises(type(error)):
        go(manifest, tmp_path, [FakeExecutor() for _ in range(3)])
    kept = store.read_records(tmp_path / "run")
    assert len(kept) == (1 if isinstance(error, StoreError) else 3)
    assert set(keys(kept)) <= {("a", 0), ("b", 0), ("c", 0)}


def test_each_status_is_kept(manifest: Manifest, tmp_path: Path) -> None:
    """One case's crash is one case's."""
    outcomes = {("b", 0): Status.CRASH, ("b", 1): Status.CRASH, ("b", 2): Status.CRASH}
    executors = [FakeExecutor(outcomes=outcomes) for _ in range(2)]
    _, records, _ = go(manifest, tmp_path, executors)
    crashed = {each.case.model for each in records if each.outcome.status is Status.CRASH}
    assert crashed == {"b"}


class Greedy(FakeExecutor):
    """Has no memory for `b` while another case is at work, and says who was at work beside it."""

    at_work: ClassVar[set[str]] = set()
    beside: ClassVar[list[tuple[str, frozenset[str]]]] = []
    meeting: ClassVar[threading.Barrier]
    fits = True

    def execute(self, case: Case, replicate: int) -> Record:
        """Make the record, of the first two cases once both are at work."""
        self.at_work.add(case.model)
        if not self.executed and case.model in {"a", "b"}:
            self.meeting.wait(LONG_S)
        others = frozenset(self.at_work - {case.model})
        if not self.executed and case.model in {"a", "b"}:
            self.meeting.wait(LONG_S)  # both have looked
        self.beside.append((case.model, others))
        self.outcomes = {("b", 0): Status.OOM} if others or not self.fits else {}
        made = super().execute(case, replicate)
        self.at_work.discard(case.model)
        return made


@pytest.fixture
def greedy(monkeypatch: pytest.MonkeyPatch) -> list[Greedy]:
    """Two of them that nobody has used."""
    monkeypatch.setattr(Greedy, "at_work", set())
    monkeypatch.setattr(Greedy, "beside", [])
    monkeypatch.setattr(Greedy, "meeting", threading.Barrier(2), raising=False)
    return [Greedy(), Greedy()]


@pytest.fixture(autouse=True)
def _of_a_thousand_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of the machine, or of the job that this runs in."""
    monkeypatch.setattr(side_by_side, "memory_bytes", lambda: 1000)


def sharing(
    manifest: Manifest,
    limit_bytes: int | None = None,
    *,
    replicates: int = 1,
    retries_for: tuple[str, ...] = (),
) -> Manifest:
    """Return it with two cases at a time."""
    plan = factories.plan(*map(factories.model_spec, NAMES), replicates=replicates)
    plan = msgspec.structs.replace(
        plan, jobs=2, memory_limit_bytes=limit_bytes, retries_for=retries_for
    )
    return msgspec.structs.replace(manifest, plan=plan)


@pytest.mark.parametrize("fits", [True, False])
def test_what_others_left_no_memory_for_runs_again_by_itself(
    greedy: list[Greedy], manifest: Manifest, tmp_path: Path, *, fits: bool
) -> None:
    """When they have ended. It is not flaky then; where it doesn't fit by itself, that stands."""
    for each in greedy:
        each.fits = fits
    done, records, sink = go(sharing(manifest, 850), tmp_path, greedy)
    assert done
    assert Greedy.beside[-1] == ("b", frozenset())
    assert [model for model, _ in Greedy.beside].count("b") == 2
    found = only_record_of("b", records)
    assert found.outcome.status is (Status.PASS if fits else Status.OOM)
    assert [each.line for each in found.earlier] == [
        "INFRA no memory beside other cases, and attempted again by itself: scripted"
    ]
    assert found.flakiness is None
    assert any(each.startswith("attempted again: its attempts ended") for each in found.notes)
    assert sorted(written[0].case.model for written in sink.written) == [*NAMES]
    assert all(len(written) == 1 for written in sink.written)


def test_it_runs_again_by_itself_also_where_the_run_was_stopped_before(
    greedy: list[Greedy], manifest: Manifest, tmp_path: Path
) -> None:
    """The record says that nothing is known of it."""
    interrupt = Interrupt()

    def stop(case: Case, replicate: int) -> None:
        interrupt.requested = True

    for each in greedy:
        each.before = stop
    done, records, _ = go(sharing(manifest), tmp_path, greedy, interrupt)
    assert not done
    status = {each.case.model: each.outcome.status for each in records}
    assert status == {"a": Status.PASS, "b": Status.INFRA}
    done, records, _ = go(sharing(manifest), tmp_path, [FakeExecutor(), FakeExecutor()])
    assert done
    assert {each.outcome.status for each in records} == {Status.PASS}


def test_who_has_a_share_of_its_own_is_not_run_again(
    greedy: list[Greedy], manifest: Manifest, tmp_path: Path
) -> None:
    """Nobody took it away."""
    done, records, _ = go(sharing(manifest, 500), tmp_path, greedy)
    assert done
    assert [model for model, _ in Greedy.beside].count("b") == 1
    found = only_record_of("b", records)
    assert (found.outcome.status, found.earlier) == (Status.OOM, ())


def test_an_arm_that_others_left_no_memory_for_runs_again(
    greedy: list[Greedy], manifest: Manifest, tmp_path: Path
) -> None:
    """Also where another arm's end is what the record says first."""

    class WithArms(Greedy):
        def execute(self, case: Case, replicate: int) -> Record:
            made = super().execute(case, replicate)
            if made.outcome.status is not Status.OOM:
                return made
            failed = Outcome(status=Status.FAIL, reason="wrong")
            arms = (ArmResult(arm="x", outcome=failed), ArmResult(arm="y", outcome=made.outcome))
            return msgspec.structs.replace(made, outcome=failed, arms=arms)

    done, records, _ = go(sharing(manifest), tmp_path, [WithArms(), WithArms()])
    assert done
    found = only_record_of("b", records)
    assert found.outcome.status is Status.PASS
    assert [each.status for each in found.earlier] == [Status.INFRA]


def test_attempts_beside_others_are_none_of_those_that_are_asked_for(
    greedy: list[Greedy], manifest: Manifest, tmp_path: Path
) -> None:
    """A failure by itself is attempted as often as any."""

    class Failing(Greedy):
        def execute(self, case: Case, replicate: int) -> Record:
            made = super().execute(case, replicate)
            if case.model != "b" or made.outcome.status is Status.OOM:
                return made
            return msgspec.structs.replace(made, outcome=Outcome(status=Status.FAIL, reason="no"))

    done, records, _ = go(
        sharing(manifest, retries_for=("fail",)), tmp_path, [Failing(), Failing()]
    )
    assert done
    found = only_record_of("b", records)
    assert [each.status for each in found.earlier] == [Status.INFRA, Status.FAIL, Status.FAIL]


def test_company_that_has_left_counts_no_more(manifest: Manifest, tmp_path: Path) -> None:
    """A replicate that ran by itself had all the memory, whoever was there before."""
    others_ended = threading.Event()

    def before(case: Case, replicate: int) -> None:
        if case.model == "a" and replicate == 1:
            assert others_ended.wait(LONG_S)

    class Watching(RecordingObserver):
        def case_ended(self, case: Case) -> None:
            super().case_ended(case)
            if {model for event, model in self.events if event == "ended"} == {*NAMES} - {"a"}:
                others_ended.set()

    directory, outcomes = tmp_path / "run", {("a", 2): Status.OOM}
    with_three = sharing(manifest, replicates=3)
    store.create(directory, with_three)
    with store.RunStore(directory) as events:
        ongoing = RunInProgress(Remaining(with_three, []), events, [], Watching())
        executors = [FakeExecutor(outcomes, before=before) for _ in range(2)]
        assert run_side_by_side(ongoing, executors, Interrupt(), with_three.plan.cases)
    (found,) = (
        each for each in store.read_records(directory) if each.outcome.status is not Status.PASS
    )
    assert (found.case.model, found.outcome.status, found.earlier) == ("a", Status.OOM, ())


@pytest.mark.usefixtures("_seen_pool")
def test_what_was_finished_is_kept_as_in_want_of_memory(
    greedy: list[Greedy], manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When another case's record ends the run, so that it is attempted again later."""

    def stop(self: RecordingObserver, record: Record) -> None:
        wait(SeenPool.futures, LONG_S, return_when=ALL_COMPLETED)
        raise KeyboardInterrupt

    monkeypatch.setattr(RecordingObserver, "record_made", stop)
    with pytest.raises(KeyboardInterrupt):
        go(sharing(manifest), tmp_path, greedy)
    kept = {each.case.model: each.outcome.status for each in store.read_records(tmp_path / "run")}
    assert kept == {"a": Status.PASS, "b": Status.INFRA}
