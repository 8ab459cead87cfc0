"""A clock of their own for tests of what is timed."""

from __future__ import annotations

import pytest
from fakes import FakeClock

from dynamometer.common.measuring.timing import Stopwatch


@pytest.fixture
def clock() -> FakeClock:
    """A clock that only calls advance."""
    return FakeClock()


@pytest.fixture
def watch(clock: FakeClock) -> Stopwatch:
    """A watch that reads it."""
    return Stopwatch(now=clock.now, synchronize=clock.synchronize)
