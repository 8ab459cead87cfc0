"""A history as the page has it: columns by run, changes with what is said of them."""

from __future__ import annotations

from simulated_histories import Noise, indexed, series, stored

from dynamometer.results.history.changes import history
from dynamometer.results.reports.page.history import shown_history
from dynamometer.results.values.history import STATUS

MADE_AT = "2026-06-01T00:00:00+00:00"
STEP = (20, -0.05)


def test_columns_are_by_run() -> None:
    """Each value stands beside the run that it is of; what did not pass is marked."""
    values = [1.5, None, 1.2345678, 1.25]
    found = shown_history(history(indexed(4), [stored("alexnet", values)]), MADE_AT)
    assert [each.run_id for each in found.runs] == ["run-0", "run-1", "run-2", "run-3"]
    (only,) = found.series
    assert (only.suite, only.model, only.arm, only.metric) == (
        "torchbench", "alexnet", "inductor", "speedup",
    )  # fmt: skip
    assert only.runs == (0, 1, 2, 3)
    assert only.values == (1.5, None, 1.23457, 1.25)
    assert only.marks == ((1, "fail", None),)


def test_runs_of_all_series_are_numbered_together() -> None:
    """A series that lacks a run has no place for it."""
    late = stored("dcgan", [1.0, 1.0], first=2)
    found = shown_history(history(indexed(4), [stored("alexnet", [1.0] * 4), late]), MADE_AT)
    assert [each.runs for each in found.series] == [(0, 1, 2, 3), (2, 3)]


def test_a_regression_is_told_with_what_came_with_it() -> None:
    """Its levels are on the axis, and in words."""
    values = series(Noise(), 1, [STEP], 40)
    given = stored("alexnet", [1.5 * 2.718281828459045**each for each in values])
    found = shown_history(history(indexed(40, upgraded_at=20), [given]), MADE_AT)
    (change,) = found.series[0].changes
    assert (change.direction, change.is_regression) == ("worse", True)
    assert change.last_before < 20 <= change.first_after
    assert change.levels is not None
    before, after = change.levels
    assert (change.before, change.after) == (f"{before:.3f}x", f"{after:.3f}x")
    assert ("torch", "2.11", "2.12") in change.differences


def test_what_was_made_good_is_no_regression() -> None:
    """It is a change all the same."""
    given = stored("alexnet", ["pass", "fail", "pass"], metric=STATUS)
    found = shown_history(history(indexed(3), [given]), MADE_AT)
    changes = found.series[0].changes
    assert [(each.direction, each.is_regression) for each in changes] == [
        ("worse", False), ("better", False),
    ]  # fmt: skip
    assert changes[0].levels is None


def test_series_of_different_machines_say_so() -> None:
    """In what they differ; a series that is the only one of its kind says nothing."""
    one = stored("alexnet", [1.0, 1.0], setting={"cpu": "A"})
    other = stored("alexnet", [1.0, 1.0], setting={"cpu": "B"}, first=2)
    found = shown_history(history(indexed(4), [one, other, stored("dcgan", [1.0])]), MADE_AT)
    assert [each.apart for each in found.series] == ["cpu A", "cpu B", ""]
