"""What is said at the end of a run of arms that are made of decisions."""

from __future__ import annotations

import factories
import msgspec
import pytest

from dynamometer.results.reports.arms import ensemble, lines
from dynamometer.results.statistics.summary import CaseSummary, summarize_case
from dynamometer.results.values.cases import BASELINE, NO_BACKEND
from dynamometer.results.values.choices import ASSEMBLED, ENSEMBLE, Choice, Subject
from dynamometer.results.values.records import Status


def graph(arm: str, eager_ms: float | None, chosen_ms: float | None, **fields: object) -> Choice:
    """Choose an arm for a graph; deciding took 20 s."""
    return choice(Subject.GRAPH, arm, eager_ms, chosen_ms, **fields)


def model(arm: str, eager_ms: float, chosen_ms: float) -> Choice:
    """Choose an arm for a model as a whole; deciding took 20 s."""
    return choice(Subject.MODEL, arm, eager_ms, chosen_ms)


def choice(
    subject: Subject, arm: str, eager_ms: float | None, chosen_ms: float | None, **fields: object
) -> Choice:
    """Choose an arm."""
    made = Choice(
        subject=subject,
        key=f"{subject}-{arm}-{eager_ms}",
        arm=arm,
        eager_s=None if eager_ms is None else eager_ms / 1e3,
        chosen_s=None if chosen_ms is None else chosen_ms / 1e3,
        tuning_s=20.0,
    )
    return msgspec.structs.replace(made, **fields)


UNDECIDED = Choice(subject=Subject.GRAPH, key="new", arm=NO_BACKEND, is_decided=False, count=2)


def case(*choices: Choice, step_s: float = 0.005, name: str = "alexnet") -> CaseSummary:
    """Run a model whose step takes 10 ms in eager."""
    of = factories.case(name, (BASELINE, "inductor", ENSEMBLE))
    seconds = {BASELINE: 0.010, "inductor": 0.009, ENSEMBLE: step_s}
    made = factories.measured_record(of, seconds=seconds)
    arms = tuple(
        msgspec.structs.replace(each, choices=choices) if each.arm == ENSEMBLE else each
        for each in made.arms
    )
    return summarize_case([msgspec.structs.replace(made, arms=arms)])


def cells(line: str) -> list[str]:
    """Split a line of a table."""
    return [each.strip() for each in line.split("  ") if each.strip()]


def test_without_decisions_nothing_is_said() -> None:
    """Nor is there a table of no rows."""
    assert ensemble.lines([case()]) == []
    assert ensemble.uses([]) == []


def test_what_may_be_no_faster_may_never_pay() -> None:
    """Its interval reaches 1: no number of calls is said."""
    (use,) = ensemble.uses([case(graph("inductor", 4, 2), step_s=0.00998)])
    assert use.achieved == pytest.approx(1.002, rel=1e-3)
    assert use.pays_after_calls is None


def test_a_model_is_what_its_graphs_are_made_of() -> None:
    """Graphs of one backend are counted together; those that came up more often count so."""
    found = case(
        model(ASSEMBLED, 10, 4),
        graph("inductor", 4, 2),
        graph("inductor", 1, 0.5),
        graph("ov", 2, 1, count=3),
    )
    (use,) = ensemble.uses([found])
    assert use.made_of == {"ov": 3, "inductor": 2}
    assert use.predicted == pytest.approx(2.5)
    assert use.achieved == pytest.approx(2.0)
    assert use.tuning_s == 80.0
    assert use.pays_after_calls == pytest.approx(80 / 0.005, rel=0.01)


def test_graphs_alone_predict_a_speedup_if_each_has_a_decision() -> None:
    """What is not known of one is not known of their sum."""
    known = graph("inductor", 4, 2), graph("ov", 2, 1, count=3)
    assert ensemble.uses([case(*known)])[0].predicted == pytest.approx(2.0)
    assert ensemble.uses([case(*known, UNDECIDED)])[0].predicted is None


def test_what_saves_nothing_never_pays() -> None:
    """Whatever was predicted."""
    (use,) = ensemble.uses([case(model("inductor", 10, 5), step_s=0.011)])
    assert use.predicted == pytest.approx(2.0)
    assert use.pays_after_calls is None


def test_an_arm_that_was_not_timed_has_achieved_nothing() -> None:
    """As with `--accuracy`, or where it failed after it had chosen."""
    made = case(graph("inductor", 4, 2))
    (timed,) = made.records
    failed = tuple(
        msgspec.structs.replace(each, outcome=factories.failure(Status.FAIL_ACCURACY))
        if each.arm == ENSEMBLE
        else each
        for each in timed.arms
    )
    (use,) = ensemble.uses([summarize_case([msgspec.structs.replace(timed, arms=failed)])])
    assert (use.predicted, use.achieved, use.pays_after_calls) == (2.0, None, None)


def test_a_model_that_was_disturbed_has_achieved_nothing() -> None:
    """What was timed then is in no other table either."""
    (timed,) = case(graph("inductor", 4, 2)).records
    disturbed = msgspec.structs.replace(timed, disturbed_blocks=(0, 1, 2, 3))
    (use,) = ensemble.uses([summarize_case([disturbed])])
    assert use.arm.speedup is not None
    assert (use.predicted, use.achieved, use.pays_after_calls) == (2.0, None, None)


def test_shares_of_time_that_is_not_known_of_all() -> None:
    """A graph whose time is not known doesn't take none: its model counts for no share."""
    partly = case(graph("inductor", 4, 2), graph("ov", 2, None), UNDECIDED)
    said = ensemble.lines([partly])
    rows = [cells(each) for each in said]
    assert sorted(rows[3:6]) == [["eager", "2", "-"], ["inductor", "1", "-"], ["ov", "1", "-"]]
    said = ensemble.lines([partly, case(graph("inductor", 4, 2))])
    assert ["inductor", "2", "100%"] in [cells(each) for each in said]
    assert said[-1] == "shares of time are of 1 of the 2 rows of which all graphs' times are known"


def test_the_tables_of_a_run() -> None:
    """Shares are of the time that was predicted, over all models."""
    assembled = case(model(ASSEMBLED, 10, 4), graph("inductor", 4, 1), graph("ov", 2, 1, count=2))
    whole = case(model("inductor", 10, 5), name="resnet18", step_s=0.004)
    said = ensemble.lines([assembled, whole])
    rows = [cells(each) for each in said]
    assert rows[3:5] == [["inductor", "2", "75%"], ["ov", "2", "25%"]]
    assert rows[-2:] == [
        ["alexnet", "ensemble", "2 ov, 1 inductor", "2.50x", "2.00x", "60 s", "11,994"],
        ["resnet18", "ensemble", "1 inductor", "2.00x", "2.50x", "20 s", "3,332"],
    ]
    assert all(each in lines.suite_lines([assembled, whole]) for each in said)


def test_graphs_without_a_decision_are_counted() -> None:
    """As often as they came up."""
    said = ensemble.lines([case(graph("inductor", 4, 2), UNDECIDED)])
    assert said[-1] == "2 graphs have no decision: they are eager"
    one = msgspec.structs.replace(UNDECIDED, count=1)
    assert ensemble.lines([case(one)])[-1] == "1 graph has no decision: it is eager"
