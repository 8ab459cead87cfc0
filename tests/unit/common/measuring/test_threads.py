"""Which threads a step keeps busy, and waiting for those of others, on a clock of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from fakes import FakeClock

from dynamometer.common.measuring.threads import ArmThreads, Linux, busy_threads, wait_until_idle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NUMBER = 2**30


class Thread:
    """What the kernel would tell of a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.computed_s = folder, 0.0
        folder.mkdir(parents=True)
        self.sleeps()

    def sleeps(self) -> None:
        """Say that it waits."""
        self._say("S")

    def runs(self) -> None:
        """Say that it computes."""
        self._say("R")

    def computes(self, seconds: float) -> None:
        """Add what it had of a processor."""
        self.computed_s += seconds
        self._say("S")

    def _say(self, state: str) -> None:
        (self.folder / "stat").write_text(f"{NUMBER} (a (name) of) {state} 1 2 3")
        (self.folder / "schedstat").write_text(f"{round(1e9 * self.computed_s)} 0 1")


@pytest.fixture
def clock() -> FakeClock:
    """Have a clock that calls and naps advance."""
    return FakeClock()


@pytest.fixture
def thread(tmp_path: Path) -> Thread:
    """Have one that is idle."""
    return Thread(tmp_path / "task" / str(NUMBER))


@pytest.fixture
def linux(tmp_path: Path, clock: FakeClock, thread: Thread) -> Linux:
    """Tell of that thread."""

    def nap(seconds: float) -> None:
        clock.time_s += seconds

    return Linux(tmp_path / "task", clock.now, nap)


@pytest.mark.parametrize(
    ("share", "is_busy"), [(1.0, True), (0.11, True), (0.09, False), (0, False)]
)
def test_a_thread_that_computes_meanwhile_is_a_steps_own(
    clock: FakeClock, linux: Linux, thread: Thread, share: float, *, is_busy: bool
) -> None:
    """For a tenth of the time that calls take; one that is asleep is not."""
    thread.computes(100.0)  # before

    def step() -> None:
        clock.time_s += 0.004
        thread.computes(share * 0.004)

    assert busy_threads(step, linux) == ({NUMBER} if is_busy else set())
    assert 0.030 <= clock.time_s < 0.030 + 0.004


def test_one_long_step_is_enough(clock: FakeClock, linux: Linux, thread: Thread) -> None:
    """It is not made again to find out."""
    made = []

    def step() -> None:
        made.append(clock.time_s)
        clock.time_s += 2.0
        thread.computes(1.0)

    assert busy_threads(step, linux) == {NUMBER}
    assert len(made) == 1


def test_a_thread_that_is_new_counts_from_nothing(
    clock: FakeClock, linux: Linux, tmp_path: Path
) -> None:
    """A pool may grow in a step."""

    def step() -> None:
        clock.time_s += 0.030
        Thread(tmp_path / "task" / str(NUMBER + 1)).computes(0.030)

    assert busy_threads(step, linux) == {NUMBER + 1}


def test_a_wait_ends_when_others_sleep(clock: FakeClock, linux: Linux, thread: Thread) -> None:
    """An arm's own threads may run on."""
    naps = []

    def nap(seconds: float) -> None:
        clock.time_s += seconds
        naps.append(seconds)
        if len(naps) == 5:
            thread.sleeps()

    told = Linux(linux.tasks, clock.now, nap)
    arms = ArmThreads({"own": frozenset({NUMBER}), "other": frozenset()}, 2, told)
    thread.runs()
    arms.wait("own")
    assert not naps
    arms.wait("other")
    assert len(naps) == 5


def test_what_never_sleeps_is_not_waited_for_for_ever(
    clock: FakeClock, linux: Linux, thread: Thread
) -> None:
    """Nor longer than the slowest runtime spins."""
    thread.runs()
    wait_until_idle(linux=linux)
    assert clock.time_s == pytest.approx(0.3, abs=0.001)


def test_where_the_kernel_tells_nothing_nothing_is_busy(clock: FakeClock, tmp_path: Path) -> None:
    """There is no such directory but on Linux."""
    told = Linux(tmp_path / "nothing", clock.now, clock.step(lambda _: 1.0))  # type: ignore[arg-type]  # not called
    assert busy_threads(clock.step(lambda _: 0.01), told) == frozenset()


@pytest.fixture
def sleeper() -> Iterator[int]:
    """Have a real thread, and give its number."""
    ends = threading.Event()
    real = threading.Thread(target=ends.wait, daemon=True)
    real.start()
    assert real.native_id is not None
    yield real.native_id
    ends.set()
    real.join()


def test_threads_that_have_ended_are_nobodys(sleeper: int) -> None:
    """A pool that grew again has others."""
    if not Linux().tasks.is_dir():
        pytest.skip("this kernel doesn't tell of threads")
    found = ArmThreads.now({"a": frozenset({sleeper, NUMBER})})
    assert found.of == {"a": {sleeper}}
    assert found.processors >= 1
    assert sleeper in Linux().computed_s()


@pytest.mark.parametrize(
    ("of", "processors", "clash"),
    [
        ([{1}, {1}], 2, False),
        ([{1}, set()], 2, False),
        ([{1}, {2}], 2, True),
        ([{1}, {1, 2}], 2, True),
        ([{1}, {1}, {2}], 2, True),
        ([{1, 2}, {2, 3}], 4, False),  # of one pool of three
        ([{1, 2, 3}, {4, 5, 6}], 8, False),
        ([{1, 2, 3}, {4, 5, 6}], 6, True),
        ([{1, 2, 3}, {1, 2, 3}], 2, False),
    ],
)
def test_arms_clash_where_their_threads_do_not_fit(
    of: list[set[int]], processors: int, *, clash: bool
) -> None:
    """Those of one pool do, and so do arms that need exactly the same."""
    arms = {str(index): frozenset(each) for index, each in enumerate(of)}
    assert ArmThreads(arms, processors).clash is clash
