"""Whatever a series holds, what is said of it hangs together."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dynamometer.results.history.change_points import FEWEST_RUNS, change_points

FLOOR = math.log1p(0.02)
LEVELS = st.lists(
    st.tuples(st.floats(-3, 3), st.integers(1, 12)), max_size=8
).map(lambda parts: [level for level, count in parts for _ in range(count)])  # fmt: skip
NOISE = st.lists(st.floats(-0.05, 0.05), min_size=96, max_size=96)


@given(LEVELS, NOISE, st.sampled_from([0.0, 1e-9, 0.005, 1.0]))
@settings(deadline=None)
def test_changes_hang_together(levels: list[float], noise: list[float], least_sd: float) -> None:
    """In order, apart by two runs, each within its range, beyond the floor, and significant."""
    values = [sum(each) for each in zip(levels, noise, strict=False)]
    found = change_points(values, least_sd, FLOOR)
    edges = [0, *(each.index for each in found), len(values)]
    if found:
        assert all(after - before >= FEWEST_RUNS for before, after in pairwise(edges))
    for each in found:
        assert 0 < each.earliest <= each.index <= each.latest < len(values)
        assert abs(each.after - each.before) >= FLOOR
        assert 0 <= each.p_value <= 0.05
    for one, other in pairwise(found):
        assert one.after == other.before


@given(st.integers(0, 100), st.floats(-100, 100))
@settings(deadline=None)
def test_equal_values_hold_no_change(count: int, value: float) -> None:
    """However their sums are rounded."""
    assert change_points([value] * count, 0.0, FLOOR) == []
