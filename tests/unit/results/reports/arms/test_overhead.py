"""What Dynamo costs without a backend, and what of it is guards."""

from __future__ import annotations

import dataclasses

import factories
import msgspec
import pytest

from dynamometer.results.reports.arms import overhead
from dynamometer.results.statistics.summary import CaseSummary, summarize_case
from dynamometer.results.values.cases import BASELINE, NO_BACKEND
from dynamometer.results.values.records import CaptureStats, Status


def timed(model: str, step_s: float, guards_s: tuple[float | None, ...]) -> CaseSummary:
    """Time a model whose step takes 10 ms in eager; a replicate for each time of its guards."""
    case = factories.case(model, (BASELINE, NO_BACKEND))
    records = []
    for replicate, spent_s in enumerate(guards_s):
        record = factories.measured_record(
            case, replicate=replicate, seconds={BASELINE: 0.010, NO_BACKEND: step_s}
        )
        capture = CaptureStats(frames=1, frames_ok=1, graphs=1, ops=4, guards=30, guards_s=spent_s)
        arms = tuple(
            msgspec.structs.replace(arm, capture=capture if arm.arm == NO_BACKEND else None)
            for arm in record.arms
        )
        records.append(msgspec.structs.replace(record, arms=arms))
    return summarize_case(records)


def test_the_share_of_guards_is_of_what_dynamo_adds() -> None:
    """0.5 of 2.5 ms; their time is the median of the replicates'."""
    case = timed("lennard_jones", 0.0125, (0.0005, 0.0001, 0.0007))
    (found,) = overhead.overheads([case])
    assert found.added_s == pytest.approx(0.0025, rel=0.01)
    assert found.guards_s == 0.0005
    assert found.share_of_guards == pytest.approx(0.2, rel=0.01)


@pytest.mark.parametrize("step_s", [0.008, 0.010])
def test_where_dynamo_adds_nothing_guards_have_no_share(step_s: float) -> None:
    """It may save time, or do neither for certain."""
    (found,) = overhead.overheads([timed("alexnet", step_s, (0.0005,) * 3)])
    assert found.share_of_guards is None


def test_guards_that_were_not_timed_are_not_free() -> None:
    """Where one replicate has their time, it is that; where none has, they have no share."""
    unknown, known = (timed("alexnet", 0.0125, (None, seconds, None)) for seconds in (None, 0.0005))
    assert overhead.overheads([known])[0].guards_s == 0.0005
    (found,) = overhead.overheads([unknown])
    assert found.guards_s is None
    assert found.share_of_guards is None
    assert not any("to check guards" in line for line in overhead.lines([unknown]))


def test_the_costliest_come_first() -> None:
    """Ten at most; the average is of all."""
    cases = [timed(f"m{each}", 0.0100 + 0.0002 * each, (0.0001,) * 3) for each in range(1, 13)]
    lines = overhead.lines(cases)
    assert "on average of 12 models; worst +24.0%" in lines[1]
    assert [line.split()[0] for line in lines[-10:]] == [f"m{each}" for each in range(12, 2, -1)]


def test_what_failed_or_was_disturbed_is_left_out() -> None:
    """The mean says so; where nothing is left, that is said."""
    good, bad = timed("alexnet", 0.0110, (0.0001,) * 3), timed("resnet18", 0.0130, (0.0001,) * 3)
    wrong = factories.failure(Status.FAIL_ACCURACY, factories.Stage.COMPARE, "wrong")
    arms = tuple(dataclasses.replace(arm, outcome=wrong) for arm in bad.arms)
    bad = dataclasses.replace(bad, arms=arms)
    lines = overhead.lines([good, bad])
    assert "on average of 1 model (1 left out: failed or disturbed); worst +10" in lines[1]
    assert "is not known" in overhead.lines([bad])[1]


def test_other_backends_have_no_overhead() -> None:
    """Their speedup is what a compiler makes of graphs."""
    records = [factories.measured_record(factories.case("alexnet", (BASELINE, "inductor")),
                                         replicate=each) for each in range(3)]  # fmt: skip
    assert overhead.lines([summarize_case(records)]) == []


def test_where_nothing_was_timed_nothing_is_said_of_the_cost() -> None:
    """Failures are counted elsewhere."""
    case = factories.case("alexnet", (BASELINE, NO_BACKEND))
    outcome = factories.failure(Status.FAIL)
    failed = summarize_case([factories.record(case, outcome=outcome)], timed=True)
    assert overhead.lines([failed]) == []
