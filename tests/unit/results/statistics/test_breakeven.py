from __future__ import annotations

import pytest

from dynamometer.results.statistics.breakeven import Breakeven, breakeven
from dynamometer.results.values.records import Ratio


def speedup(value: float, low: float, high: float) -> Ratio:
    """Make an estimate."""
    return Ratio(value=value, low=low, high=high, n=3, p_value=0.01)


def test_by_hand() -> None:
    """10 s for a call that takes 5 ms instead of 10; at 4x it saves 7.5 ms."""
    found = breakeven(10.0, 0.010, speedup(2.0, 1.25, 4.0))
    assert found.calls == pytest.approx(2000)
    assert found.low == pytest.approx(10.0 / 0.0075)
    assert found.high == pytest.approx(5000)


def test_what_is_no_faster_never_pays() -> None:
    """Nor does it for certain where the interval reaches 1."""
    assert breakeven(1.0, 0.010, speedup(0.9, 0.8, 0.95)) == Breakeven(None, None, None)
    unsure = breakeven(1.0, 0.010, speedup(1.1, 0.95, 1.25))
    assert unsure.calls is not None
    assert unsure.low is not None
    assert unsure.high is None
    hope = breakeven(1.0, 0.010, speedup(0.99, 0.9, 1.1))
    assert (hope.calls, hope.high) == (None, None)
    assert hope.low is not None


def test_compiling_for_nothing_pays_at_once() -> None:
    """And twice the compiling takes twice the calls."""
    assert breakeven(0.0, 0.010, speedup(2.0, 1.5, 3.0)) == Breakeven(0.0, 0.0, 0.0)
    one = breakeven(1.0, 0.010, speedup(2.0, 1.5, 3.0)).calls
    two = breakeven(2.0, 0.010, speedup(2.0, 1.5, 3.0)).calls
    assert one is not None
    assert two == pytest.approx(2 * one)
