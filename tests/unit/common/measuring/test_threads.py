"""Which threads a step keeps busy, and waiting for those of others."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.measuring import threads
from dynamometer.common.measuring.threads import ArmThreads, busy_threads, wait_until_idle

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="this kernel doesn't tell of threads"
)


class Spinner:
    """One thread that computes while it is told to."""

    def __init__(self) -> None:
        """Start it."""
        self.spins, self.ends = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def number(self) -> int:
        """What the kernel calls it."""
        assert self.thread.native_id is not None
        return self.thread.native_id

    @property
    def computed_s(self) -> float:
        """Seconds it had of a processor."""
        path = Path(f"/proc/self/task/{self.number}/schedstat")
        return 1e-9 * int(path.read_text().split()[0])

    def _run(self) -> None:
        data = bytes(1_000_000)
        while not self.ends.is_set():
            self.spins.wait()
            hashlib.sha256(data)  # without Python's lock


@pytest.fixture
def spinner() -> Iterator[Spinner]:
    """Have one that is idle."""
    found = Spinner()
    yield found
    found.ends.set()
    found.spins.set()
    found.thread.join()


def test_a_thread_that_computes_meanwhile_is_a_steps_own(spinner: Spinner) -> None:
    """One that is asleep is not. The step takes until it had its share, on a busy machine too."""

    def step() -> None:
        started_s, before_s = time.perf_counter(), spinner.computed_s
        spinner.spins.set()
        while spinner.computed_s - before_s <= 0.12 * (time.perf_counter() - started_s) + 0.01:
            time.sleep(0.005)
        spinner.spins.clear()

    assert spinner.number in busy_threads(step)
    assert spinner.number not in busy_threads(lambda: time.sleep(0.001))


def test_a_wait_ends_when_others_sleep(spinner: Spinner, monkeypatch: pytest.MonkeyPatch) -> None:
    """An arm's own threads may run on."""
    monkeypatch.setattr(threads, "_LONGEST_WAIT_S", 30.0)
    arms = ArmThreads({"own": frozenset({spinner.number}), "other": frozenset()}, processors=2)
    spinner.spins.set()
    arms.wait("own")
    assert spinner.spins.is_set()
    threading.Timer(0.05, spinner.spins.clear).start()
    arms.wait("other")
    assert not spinner.spins.is_set()


def test_what_never_sleeps_is_not_waited_for_for_ever(spinner: Spinner) -> None:
    """Nor does an arm wait for itself."""
    spinner.spins.set()
    wait_until_idle()
    assert spinner.spins.is_set()


def test_threads_that_have_ended_are_nobodys(spinner: Spinner) -> None:
    """A pool that grew again has others."""
    found = ArmThreads.now({"a": frozenset({spinner.number, 2**30})})
    assert found.of == {"a": {spinner.number}}
    assert found.processors >= 1


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
