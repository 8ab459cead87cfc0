"""What is said of simulated runs: nothing of identical ones, and what was planted of others.

Seeds are fixed, so nothing depends on luck. `bench/simulated_comparisons.py` prints the table.
"""

from __future__ import annotations

from collections import Counter

import pytest
from simulated import Machine
from simulated_runs import KNOWN, Made, side

from dynamometer.results.comparison.compare import compare
from dynamometer.results.values.comparison import Change, Comparison

pytestmark = pytest.mark.slow

PLANTED = Made(
    slower={3: 1.05, 11: 1.05, 19: 1.05}, failing=frozenset({5, 23}), missing=frozenset({28})
)
TRUTH = {
    *((Change.SLOWER, f"model_{each:02}") for each in PLANTED.slower),
    *((Change.NEWLY_FAILING, f"model_{each:02}") for each in PLANTED.failing),
    *((Change.GONE, f"model_{each:02}") for each in PLANTED.missing),
}


def named(found: Comparison) -> set[tuple[Change, str]]:
    """Return what a comparison names, but for what is unclear."""
    return {(each.change, each.model) for each in found.findings} - {
        (Change.UNCLEAR, each.model) for each in found.findings
    }


def test_identical_runs_and_planted_changes() -> None:
    """Of 20 pairs nothing is named where nothing changed, and never what did not change."""
    exact = 0
    for seed in range(20):
        before = side(Made(), 2 * seed)
        assert named(compare(before, side(Made(), 2 * seed + 1))) == set()
        found = named(compare(before, side(PLANTED, 2 * seed + 1)))
        assert found <= TRUTH
        assert {each for each in TRUTH if each[0] is not Change.SLOWER} <= found
        exact += found == TRUTH
    assert exact >= 17


def test_on_a_noisy_machine_less_is_noticed_and_nothing_made_up() -> None:
    """What can't be told is unclear."""
    machine = Machine(between=0.006, within=0.03, correlation=0.5)
    counts: Counter[Change] = Counter()
    for seed in range(5):
        sides = (
            side(made, 2 * seed + offset, machine=machine, known=KNOWN)
            for offset, made in enumerate((Made(), PLANTED))
        )
        found = compare(*sides)
        assert named(found) <= TRUTH
        counts.update(each.change for each in found.findings)
    assert counts[Change.SLOWER] < 12
    assert counts[Change.UNCLEAR] > 50
