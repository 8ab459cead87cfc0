"""Which threads a step keeps busy, and waiting for those of others."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from dynamometer.common.threads import Pools, busy_threads, wait_for_rest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="this kernel doesn't tell of threads"
)


class Spinner:
    """A thread that computes while it is told to."""

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

    def _run(self) -> None:
        numbers = torch.ones(200_000)
        while not self.ends.is_set():
            self.spins.wait()
            numbers.sum()  # without Python's lock


@pytest.fixture
def spinner() -> Iterator[Spinner]:
    """Have one that is at rest."""
    found = Spinner()
    yield found
    found.ends.set()
    found.spins.set()
    found.thread.join()


def test_a_thread_that_computes_meanwhile_is_a_steps_own(spinner: Spinner) -> None:
    """One that is asleep is not."""

    def step() -> None:
        spinner.spins.set()
        time.sleep(0.05)
        spinner.spins.clear()

    assert spinner.number in busy_threads(step)
    assert spinner.number not in busy_threads(lambda: time.sleep(0.001))


def test_what_others_left_spinning_is_not(spinner: Spinner) -> None:
    """They come to rest first."""
    spinner.spins.set()
    threading.Timer(0.05, spinner.spins.clear).start()
    assert spinner.number not in busy_threads(lambda: time.sleep(0.001))


def test_a_rest_ends_when_others_sleep(spinner: Spinner) -> None:
    """An arm's own threads may run, and one that never stops is not waited for for ever."""
    spinner.spins.set()
    pools = Pools({"a": frozenset({spinner.number}), "b": frozenset()})
    pools.rest("a")
    assert spinner.spins.is_set()
    pools.rest("b")
    threading.Timer(0.01, spinner.spins.clear).start()
    wait_for_rest()
    spinner.spins.clear()


@pytest.mark.parametrize(
    ("own", "clash"),
    [
        ([{1}, {1}], False),
        ([{1, 2, 3}, {1}], False),
        ([{1}, set()], False),
        ([{1}, {2}], True),
        ([{1}, {1}, {1, 2}, {1, 3}], True),
        ([set()], False),
    ],
)
def test_arms_clash_where_each_has_threads_of_its_own(own: list[set[int]], *, clash: bool) -> None:
    """Arms of one pool don't, though one may need less of it."""
    assert Pools({str(i): frozenset(each) for i, each in enumerate(own)}).clash is clash
