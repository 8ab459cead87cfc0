"""A history as the page has it: columns by run, changes with what is said of them."""

from __future__ import annotations

import msgspec
from simulated_histories import Noise, indexed, series, stored

from dynamometer.results.history.changes import history
from dynamometer.results.reports.page.history import shown_history
from dynamometer.results.values.history import STATUS

MADE_AT = "2026-06-01T00:00:00+00:00"
STEP = (20, -0.05)


def test_columns_are_by_run() -> None:
    """Each value stands beside the run that it is of; what did not pass is marked."""
    values = stored("alexnet", [1.5, None, 1.2345678, 1.25])
    endings = stored("alexnet", ["pass", "fail", "pass", "pass"], metric=STATUS)
    found = shown_history(history(indexed(4), [values, endings]), MADE_AT)
    assert [each.run_id for each in found.runs] == ["run-0", "run-1", "run-2", "run-3"]
    ended, timed = found.series
    assert (timed.suite, timed.model, timed.arm, timed.metric, timed.unit) == (
        "torchbench", "alexnet", "inductor", "speedup", "x",
    )  # fmt: skip
    assert timed.runs == (0, 2, 3)
    assert timed.values == (1.5, 1.23457, 1.25)
    assert ended.marks == ((1, "fail", None),)


def test_what_is_in_doubt_says_why() -> None:
    """And is no change of level."""
    found = shown_history(
        history(indexed(3), [stored("a", [1.5, 1.0, 1.5], doubt="busy")]), MADE_AT
    )
    assert found.series[0].marks == tuple((each, "pass", "busy") for each in range(3))
    assert found.series[0].changes == ()
    assert found.series[0].last == "1.500x [1.500x, 1.500x], busy"


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
    assert (change.direction, change.is_lasting) == ("worse", True)
    assert change.last_before < 20 <= change.first_after
    assert change.levels is not None
    before, after = change.levels
    assert (change.before, change.after) == (f"{before:.3f}x", f"{after:.3f}x")
    assert ("torch", "2.11", "2.12") in change.differences


def test_what_was_made_good_does_not_last() -> None:
    """It is a change all the same; what made it good lasts."""
    given = stored("alexnet", ["pass", "fail", "pass"], metric=STATUS)
    found = shown_history(history(indexed(3), [given]), MADE_AT)
    changes = found.series[0].changes
    assert [(each.direction, each.is_lasting) for each in changes] == [
        ("worse", False), ("better", True),
    ]  # fmt: skip
    assert changes[0].levels is None


def test_series_of_different_machines_say_so() -> None:
    """In what they differ, the older first, in whichever order they were indexed."""
    one = stored("alexnet", [1.0, 1.0], setting={"cpu": "A"})
    other = stored("alexnet", [1.0, 1.0], setting={"cpu": "B"}, first=2)
    found = shown_history(history(indexed(4), [other, one, stored("dcgan", [1.0])]), MADE_AT)
    assert [each.apart for each in found.series] == ["cpu A", "cpu B", ""]


def test_a_change_that_is_eagers() -> None:
    """Is told as such, and does not last."""
    found = history(indexed(40), [stored("a", [1.5] * 20 + [1.2] * 20)])
    (change,) = found.series[0].changes
    by_eager = msgspec.structs.replace(change, by_eager=True)
    series_ = msgspec.structs.replace(found.series[0], changes=(by_eager,))
    shown = shown_history(msgspec.structs.replace(found, series=(series_,)), MADE_AT)
    assert [(each.by_eager, each.is_lasting) for each in shown.series[0].changes] == [(True, False)]


def test_runs_without_a_page() -> None:
    """Are named where a server has pages of the others; a file leads to no page anyway."""
    found = history(indexed(3), [stored("alexnet", [1.5, 1.5, 1.5])])
    assert shown_history(found, MADE_AT, {"run-0", "run-2"}).without_page == (1,)
    assert shown_history(found, MADE_AT).without_page == ()


def test_no_run() -> None:
    """A page of it can be made as well."""
    assert shown_history(history({}, []), MADE_AT).runs == ()
