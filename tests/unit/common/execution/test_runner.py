from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from fakes import (
    FakeExecutor,
    RecordingObserver,
    RecordingSink,
    send_itself,
    unread_standard_error,
)

from dynamometer.common.execution.runner import Interrupt, Remaining, RunInProgress, run
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.overview import read_overview
from dynamometer.results.values.cases import BASELINE, Protocol
from dynamometer.results.values.records import Status, StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record

ROOT = Path(__file__).resolve().parents[4]
SPECS = tuple(factories.model_spec(name) for name in ("a", "b", "c"))


def start(tmp_path: Path, manifest: Manifest) -> Path:
    """Make the run directory."""
    directory = tmp_path / "run"
    store.create(directory, manifest)
    return directory


def go(
    manifest: Manifest,
    directory: Path,
    executor: FakeExecutor,
    sink: RecordingSink | None = None,
    interrupt: Interrupt | None = None,
    observer: RecordingObserver | None = None,
) -> bool:
    """Run with fakes all around."""
    sinks = [sink] if sink else []
    observer = observer or RecordingObserver()
    with store.RunStore(directory) as events:
        rest = Remaining(manifest, store.read_records(directory))
        return run(RunInProgress(rest, events, sinks, observer), executor, interrupt or Interrupt())


@pytest.fixture
def manifest() -> Manifest:
    """Three models, three replicates."""
    return factories.manifest(factories.plan(*SPECS))


def test_cases_take_turns(tmp_path: Path) -> None:
    """Every round has one replicate of every case, in an order that differs from round to round."""
    manifest = factories.manifest(factories.plan(*SPECS, replicates=6))
    directory, executor = start(tmp_path, manifest), FakeExecutor()
    assert go(manifest, directory, executor)
    rounds = [executor.executed[each : each + 3] for each in range(0, 18, 3)]
    for index, done in enumerate(rounds):
        assert sorted(done) == [(name, index) for name in "abc"]
    assert len({tuple(name for name, _ in done) for done in rounds}) > 1
    assert [(r.case.model, r.replicate) for r in store.read_records(directory)] == executor.executed
    assert sorted(executor.forgotten) == ["a", "b", "c"]


def test_the_order_of_turns_is_the_plans(tmp_path: Path, manifest: Manifest) -> None:
    """One seed gives one order, another gives another."""
    orders = []
    for index, seed in enumerate((0, 0, 1)):
        again = factories.manifest(factories.plan(*SPECS, seed=seed))
        executor = FakeExecutor()
        assert go(again, start(tmp_path / str(index), again), executor)
        orders.append(executor.executed)
    assert orders[0] == orders[1] != orders[2]


def test_groups_take_turns_one_after_the_other(tmp_path: Path) -> None:
    """However many cases there are, what is kept for later replicates is kept of a few."""
    specs = [factories.model_spec(f"m{index:02}") for index in range(20)]
    manifest = factories.manifest(factories.plan(*specs, replicates=2))
    executor = FakeExecutor()
    assert go(manifest, start(tmp_path, manifest), executor)
    order = [model for model, _ in executor.executed]
    assert set(order[:16]) == {f"m{index:02}" for index in range(8)}
    assert set(order[-8:]) == {f"m{index:02}" for index in range(16, 20)}


def test_single_replicates_keep_the_plans_order(tmp_path: Path) -> None:
    """Where there are no turns to take, nothing is shuffled."""
    manifest = factories.manifest(factories.plan(*SPECS, replicates=1))
    executor = FakeExecutor()
    assert go(manifest, start(tmp_path, manifest), executor)
    assert executor.executed == [(name, 0) for name in "abc"]


def test_replicates_stop_when_the_speedup_is_known(tmp_path: Path) -> None:
    """Between the least and the most, the width of the interval decides; the record says why."""
    protocol = Protocol(replicates=2, most_replicates=6, target=0.05)
    manifest = factories.manifest(factories.plan(SPECS[0], protocol=protocol))
    directory = start(tmp_path, manifest)

    class Precise(FakeExecutor):
        def execute(self, case: Case, replicate: int) -> Record:
            self.executed.append((case.model, replicate))
            return factories.measured_record(case, replicate=replicate)

    executor = Precise()
    assert go(manifest, directory, executor)
    assert executor.executed == [("a", 0), ("a", 1)]
    assert [r.stopped for r in store.read_records(directory)] == [None, StopReason.TARGET]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASS])
def test_a_failure_stops_its_case_only(tmp_path: Path, manifest: Manifest, status: Status) -> None:
    """A replicate that didn't pass is the last of its case; the other cases are whole."""
    directory, executor = start(tmp_path, manifest), FakeExecutor({("b", 1): status})
    assert go(manifest, directory, executor)
    assert Counter(model for model, _ in executor.executed) == {"a": 3, "b": 2, "c": 3}


def test_a_search_for_batch_sizes_goes_on_until_one_is_too_large(tmp_path: Path) -> None:
    """A resumed one begins where it was left, and does not begin again once it is over."""
    plan = factories.plan(*SPECS[:1], arms=(BASELINE,), experiments=("batch_sizes",), replicates=9)
    manifest = factories.manifest(plan)
    directory = start(tmp_path, manifest)
    outcomes = {("a", 0): Status.FAIL, ("a", 4): Status.OOM}
    interrupt = Interrupt()

    def stop(case: Case, replicate: int) -> None:
        interrupt.requested = replicate == 2

    assert not go(
        manifest,
        directory,
        FakeExecutor(outcomes, before=stop, experiments=("batch_sizes",)),
        interrupt=interrupt,
    )
    executor = FakeExecutor(outcomes, experiments=("batch_sizes",))
    assert go(manifest, directory, executor)
    assert executor.executed == [("a", 3), ("a", 4)]
    again = FakeExecutor(outcomes, experiments=("batch_sizes",))
    assert go(manifest, directory, again)
    assert again.executed == []


def test_planned_cases_are_the_recorded_ones(tmp_path: Path, manifest: Manifest) -> None:
    """Whatever happens, no case goes missing."""
    directory = start(tmp_path, manifest)
    outcomes = {("a", 0): Status.CRASH, ("b", 2): Status.TIMEOUT, ("c", 0): Status.SKIP}
    assert go(manifest, directory, FakeExecutor(outcomes))
    recorded = {record.case.id for record in store.read_records(directory)}
    assert recorded == {case.id for case in manifest.plan.cases}


def test_skip_tables_make_records_without_executing(tmp_path: Path) -> None:
    """A skipped model has a record that says why for every arm, and a command that runs it."""
    spec = factories.model_spec("a", skipped="needs CUDA")
    manifest = factories.manifest(factories.plan(spec))
    directory, executor = start(tmp_path, manifest), FakeExecutor()
    assert go(manifest, directory, executor)
    assert executor.executed == []
    (record,) = store.read_records(directory)
    assert record.outcome.status is Status.SKIP
    assert record.outcome.reason == "needs CUDA"
    assert [(each.arm, each.outcome) for each in record.arms] == [
        (BASELINE, record.outcome),
        ("inductor", record.outcome),
    ]
    assert "--no-skip" in record.command
    assert (record.run_id, record.environment_id) == (manifest.run_id, manifest.environment.id)


def test_resume_executes_exactly_what_is_missing(tmp_path: Path, manifest: Manifest) -> None:
    """What a first sitting finished, failed or skipped is not run again; the rest is, once."""
    directory = start(tmp_path, manifest)
    interrupt = Interrupt()

    first = FakeExecutor({("a", 1): Status.FAIL})

    def stop_in_the_second_round(case: Case, replicate: int) -> None:
        interrupt.requested = len(first.executed) == 4

    first.before = stop_in_the_second_round
    assert not go(manifest, directory, first, interrupt=interrupt)
    second, sink = FakeExecutor({("a", 1): Status.FAIL}), RecordingSink()
    assert go(manifest, directory, second, sink)
    everything = [*first.executed, *second.executed]
    assert Counter(everything) == Counter(
        [("a", 0), ("a", 1), *((name, each) for name in "bc" for each in range(3))]
    )
    assert sorted(len(records) for records in sink.written) == [2, 3, 3]
    third = FakeExecutor()
    assert go(manifest, directory, third)
    assert third.executed == []


def test_resume_fills_a_gap(manifest: Manifest) -> None:
    """Pending replicates go by number, not by count."""
    case = manifest.plan.cases[0]
    records = [factories.record(case, replicate=each) for each in (0, 2)]
    assert Remaining(manifest, records).replicates(case) == [1]
    assert Remaining(manifest, []).replicates(case) == [0, 1, 2]
    assert Remaining(manifest, []).cases == manifest.plan.cases


def test_nothing_is_pending_after_a_failure(manifest: Manifest) -> None:
    """A failure is an outcome, not something to try again."""
    case, *others = manifest.plan.cases
    rest = Remaining(manifest, [factories.record(case, outcome=factories.failure())])
    assert rest.replicates(case) == []
    assert rest.cases == tuple(others)


def test_what_says_nothing_of_the_model_is_attempted_again_by_resume(tmp_path: Path) -> None:
    """Once each time; what was recorded stays in the file, and knows nothing of it."""
    manifest = factories.manifest(factories.plan(SPECS[0], replicates=2))
    directory = start(tmp_path, manifest)
    outcomes = {("a", 0): Status.INFRA}
    assert go(manifest, directory, FakeExecutor(outcomes))
    first = store.read_records(directory)
    assert [each.outcome.status for each in first] == [Status.INFRA]
    assert go(manifest, directory, FakeExecutor(outcomes))
    assert [each.outcome.status for each in store.read_records(directory)] == [Status.INFRA]
    last = FakeExecutor()
    assert go(manifest, directory, last)
    assert last.executed == [("a", 0), ("a", 1)]
    found = store.read_records(directory)
    assert [each.outcome.status for each in found] == [Status.PASS, Status.PASS]
    assert [each.status for each in found[0].earlier] == [Status.INFRA, Status.INFRA]
    assert len((directory / store.EVENTS).read_text().splitlines()) == 4
    assert read_overview(directory).finished == 1


def test_a_failure_is_attempted_again_where_that_is_asked_for(tmp_path: Path) -> None:
    """Up to twice; the last attempt counts, all are kept, and it says how many passed."""
    plan = factories.plan(*SPECS, replicates=2)
    manifest = factories.manifest(msgspec.structs.replace(plan, retries_for=("timeout",)))
    directory = start(tmp_path, manifest)
    outcomes = {("a", 0): Status.TIMEOUT, ("b", 1): Status.TIMEOUT, ("c", 0): Status.CRASH}

    def recover(case: Case, replicate: int) -> None:
        if executor.executed.count(("a", 0)) == 1:  # and the second is about to begin
            outcomes.pop(("a", 0), None)

    executor = FakeExecutor(outcomes, before=recover)
    sink = RecordingSink()
    assert go(manifest, directory, executor, sink)
    assert Counter(executor.executed) == {
        ("a", 0): 2, ("a", 1): 1, ("b", 0): 1, ("b", 1): 3, ("c", 0): 1,
    }  # fmt: skip
    found = {(each.case.model, each.replicate): each for each in store.read_records(directory)}
    assert len(found) == 5
    assert found["a", 0].outcome.status is Status.PASS
    assert found["a", 0].flakiness == "flaky 1/2"
    assert any(note.startswith("flaky 1/2: ") for note in found["a", 0].notes)
    assert found["b", 1].outcome.status is Status.TIMEOUT
    assert (len(found["b", 1].earlier), found["b", 1].flakiness) == (2, None)
    assert found["b", 1].stopped is StopReason.FAILED
    assert len((directory / store.EVENTS).read_text().splitlines()) == 8
    assert sorted(len(records) for records in sink.written) == [1, 2, 2]
    again = FakeExecutor()
    assert go(manifest, directory, again)
    assert again.executed == []


def test_another_attempt_is_of_all_arms(tmp_path: Path) -> None:
    """A failed attempt rejects no candidate: the next one is of the same replicate."""
    arms = (BASELINE, "inductor", "ts")
    plan = factories.plan(
        SPECS[0], arms=arms, replicates=1, experiments=("tuning",), retries_for=("crash",)
    )
    asked: list[tuple[str, ...]] = []

    def note(case: Case, replicate: int) -> None:
        asked.append(case.arms)

    executor = FakeExecutor({("a", 0): Status.CRASH}, before=note, experiments=("tuning",))
    manifest = factories.manifest(plan)
    assert go(manifest, start(tmp_path, manifest), executor)
    assert asked == [arms] * 3


def test_a_replicate_knows_of_those_before_it(manifest: Manifest) -> None:
    """By number: one that is attempted again after a later one has ended knows nothing of that."""
    case = manifest.plan.cases[0]
    rest = Remaining(manifest, [factories.record(case, replicate=each) for each in (2, 0, 1)])
    assert [each.replicate for each in rest.before(case, 2)] == [0, 1]
    assert rest.before(case, 0) == []


def test_an_interrupt_stops_before_the_next_replicate(tmp_path: Path, manifest: Manifest) -> None:
    """The replicate at work is finished and kept; the unfinished case reaches no sink."""
    directory, interrupt, sink = start(tmp_path, manifest), Interrupt(), RecordingSink()

    def ask(case: Case, replicate: int) -> None:
        interrupt.requested = replicate == 2

    executor = FakeExecutor(before=ask)
    assert not go(manifest, directory, executor, sink, interrupt)
    model, replicate = executor.executed[-1]
    assert (len(executor.executed), replicate) == (7, 2)
    assert store.read_records(directory)[-1].replicate == 2
    assert [records[0].case.model for records in sink.written] == [model]


def test_an_interrupt_after_the_last_replicate_is_too_late(tmp_path: Path) -> None:
    """When all is done, it is done."""
    manifest = factories.manifest(factories.plan(replicates=1))
    directory, interrupt, sink = start(tmp_path, manifest), Interrupt(), RecordingSink()

    def ask(case: Case, replicate: int) -> None:
        interrupt.requested = True

    assert go(manifest, directory, FakeExecutor(before=ask), sink, interrupt)
    assert len(sink.written) == 1


def test_records_are_on_disk_before_sinks_see_them(tmp_path: Path, manifest: Manifest) -> None:
    """A sink that fails loses nothing."""
    directory = start(tmp_path, manifest)
    seen = []

    def look(records: Sequence[Record]) -> None:
        seen.append(all(record in store.read_records(directory) for record in records))

    assert go(manifest, directory, FakeExecutor(), RecordingSink(at_write=look))
    assert seen == [True, True, True]


def test_a_record_is_on_disk_before_the_observer_sees_it(
    tmp_path: Path, manifest: Manifest
) -> None:
    """What progress shows as done is done."""
    directory = start(tmp_path, manifest)
    on_disk: list[int] = []

    class Reader(RecordingObserver):
        def record_made(self, record: Record) -> None:
            super().record_made(record)
            on_disk.append(len(store.read_records(directory)))

    assert go(manifest, directory, FakeExecutor(), observer=Reader())
    assert on_disk == list(range(1, 10))


def test_the_observer_sees_a_run_go_by(tmp_path: Path) -> None:
    """Start, each replicate and end of every case are noticed, in order."""
    manifest = factories.manifest(factories.plan(*SPECS[:2], replicates=2))
    observer = RecordingObserver()
    executor = FakeExecutor({("a", 0): Status.FAIL})
    assert go(manifest, start(tmp_path, manifest), executor, observer=observer)
    of = {name: [event for event, model in observer.events if model == name] for name in "ab"}
    assert of == {
        "a": ["started", "record 0", "ended"],
        "b": ["started", "record 0", "started", "record 1", "ended"],
    }


def test_a_harness_fault_keeps_what_was_recorded(tmp_path: Path, manifest: Manifest) -> None:
    """An exception of the executor ends the run, not the records before it."""
    directory, executor = start(tmp_path, manifest), FakeExecutor()

    def fault(case: Case, replicate: int) -> None:
        if len(executor.executed) == 3:
            msg = "no more processes"
            raise OSError(msg)

    executor.before = fault
    with pytest.raises(OSError, match="no more processes"):
        go(manifest, directory, executor)
    assert len(store.read_records(directory)) == 3
    assert go(manifest, directory, FakeExecutor())


def test_two_runs_of_one_directory_exclude_each_other(tmp_path: Path, manifest: Manifest) -> None:
    """A second run of the same directory is refused before it executes anything."""
    directory, executor = start(tmp_path, manifest), FakeExecutor()
    with store.RunStore(directory), pytest.raises(StoreError, match="another process"):
        go(manifest, directory, executor)
    assert executor.executed == []


PRESSED_TWICE = """
import signal
from dynamometer.common.execution.runner import Interrupt
before = signal.signal(signal.SIGINT, signal.default_int_handler)
with Interrupt() as interrupt:
    assert not interrupt.requested
    signal.raise_signal(signal.SIGINT)
    assert interrupt.requested
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("stopped")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_ctrl_c_once_asks_and_twice_stops() -> None:
    """The first SIGINT is noted, the second raised; afterwards SIGINT is what it was before.

    In a process of its own: whatever else handles signals in that of the tests stays out of it.
    """
    done = subprocess.run(
        [sys.executable, "-c", PRESSED_TWICE],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
    assert "once more stops at once" in done.stderr


def test_an_interrupt_that_nobody_is_told_of_lets_the_replicate_end() -> None:
    """As of `2>&1 | tee log`, where Ctrl-C ends `tee` first."""
    with Interrupt() as interrupt, unread_standard_error():
        send_itself(signal.SIGINT)
        assert interrupt.requested


def test_an_interrupt_that_is_ignored_stays_so() -> None:
    """A shell has what a script starts with `&` ignore the Ctrl-C that is meant for the script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            send_itself(signal.SIGINT)
        assert not interrupt.requested
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_records_hold_what_is_to_be_known_of_all(tmp_path: Path) -> None:
    """Such as that files have changed since the run began; also of what is skipped."""
    skipped = factories.model_spec("d", skipped="needs CUDA")
    manifest = factories.manifest(factories.plan(*SPECS, skipped))
    directory, executor = start(tmp_path, manifest), FakeExecutor()
    with store.RunStore(directory) as events:
        rest = Remaining(manifest, (), ["resumed though mine.py has changed"])
        assert run(RunInProgress(rest, events, [], RecordingObserver()), executor, Interrupt())
    records = store.read_records(directory)
    assert {each.case.model for each in records} == {"a", "b", "c", "d"}
    for record in records:
        assert record.notes[-1:] == ("resumed though mine.py has changed",)
        assert record.run_id == manifest.run_id
