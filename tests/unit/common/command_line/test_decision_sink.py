"""What becomes a decision, and what stays undecided."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.command_line.decisions.sink import DecisionSink
from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.tuning.worker import is_eager_failing
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.decisions import Tuned
from dynamometer.results.values.records import PASSED, ArmResult, Outcome, Stage, Status, packed

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.values.records import Record

RAISED = Outcome(status=Status.FAIL, stage=Stage.EAGER, reason="IndexError: out of range")


def record(*, is_eager_failing: bool) -> Record:
    """Make the record of a graph whose inputs were drawn."""
    about = Tuned(
        subject=Subject.GRAPH,
        key="ab" * 32,
        setting=factories.setting(),
        is_eager_failing=is_eager_failing,
    )
    outcome = RAISED if is_eager_failing else PASSED
    return factories.record(found=packed(about), outcome=outcome)


def test_nothing_is_decided_where_eager_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would count for good, with evidence that blames candidates nobody could judge."""
    decisions = Decisions(tmp_path / "decisions.sqlite")
    sink = DecisionSink(decisions)
    sink.write([record(is_eager_failing=True)])
    assert decisions.all() == []
    said = capsys.readouterr().err
    assert "stays undecided: eager did not pass: " in said
    assert "IndexError: out of range" in said
    sink.close()
    said = capsys.readouterr().err
    assert "inputs can't be drawn for 1 graph, as eager fails there" in said
    assert record(is_eager_failing=True).case.label in said


def later_round(eager: Outcome, candidate: Outcome) -> Record:
    """Make the second record of a graph that passed the first round."""
    arms = (
        ArmResult(arm=BASELINE, outcome=eager),
        ArmResult(arm="inductor", outcome=candidate),
    )
    first = record(is_eager_failing=False)
    return msgspec.structs.replace(first, replicate=1, arms=arms, outcome=candidate)


CRASHED = Outcome(status=Status.CRASH, stage=Stage.EAGER, reason="killed by SIGSEGV")
SPARED = Outcome(status=Status.SKIP, stage=Stage.WORKER, reason="not measured: inductor ended it")
LOST = Outcome(status=Status.INFRA, stage=Stage.WORKER, reason="the fork server died")
DIFFERS = Outcome(status=Status.NONDETERMINISTIC, stage=Stage.EAGER, reason="differs from itself")


@pytest.mark.parametrize(
    ("eager", "candidate", "is_decided"),
    [
        (CRASHED, CRASHED, False),
        (RAISED, RAISED, False),
        (LOST, LOST, False),
        (SPARED, LOST, False),
        (DIFFERS, DIFFERS, True),
        (PASSED, Outcome(status=Status.CRASH, stage=Stage.RUN), True),
    ],
)
def test_nothing_is_decided_where_eager_fails_in_a_later_round(
    eager: Outcome,
    candidate: Outcome,
    *,
    is_decided: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Candidates that passed would be blamed for it; one that ends its process has lost."""
    decisions = Decisions(tmp_path / "decisions.sqlite")
    sink = DecisionSink(decisions)
    sink.write([record(is_eager_failing=False), later_round(eager, candidate)])
    assert bool(decisions.all()) is is_decided
    said = capsys.readouterr().err
    assert ("stays undecided: eager did not pass" in said) is not is_decided
    sink.close()
    assert "inputs can't be drawn" not in capsys.readouterr().err


def test_another_graph_is_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the end there is nothing to name."""
    decisions = Decisions(tmp_path / "decisions.sqlite")
    sink = DecisionSink(decisions)
    sink.write([record(is_eager_failing=False)])
    assert [each.key for each in decisions.all()] == ["ab" * 32]
    capsys.readouterr()
    sink.close()
    assert not capsys.readouterr().err


def test_what_was_measured_before_replaces_nothing_newer(tmp_path: Path) -> None:
    """As a run that is resumed gives its finished cases once more."""
    decisions = Decisions(tmp_path / "decisions.sqlite")
    date = "2026-01-02T00:00:00.000+00:00"
    newer = factories.decision(key="ab" * 32, decided_at=date, run="another")
    decisions.put(newer)
    old = record(is_eager_failing=False)
    DecisionSink(decisions).write([old])
    assert decisions.all() == [newer]
    sink = DecisionSink(decisions)
    now = datetime.now(UTC).isoformat()
    sink.write([old, msgspec.structs.replace(old, started_at=now, replicate=1)])
    (found,) = decisions.all()
    assert found.run == old.run_id != newer.run
    assert found.decided_at >= now[:10]


def test_a_decision_is_as_old_as_what_it_rests_on(tmp_path: Path) -> None:
    """Where it is made once more of what was stored."""
    decisions = Decisions(tmp_path / "decisions.sqlite")
    old = record(is_eager_failing=False)
    DecisionSink(decisions).write([old])
    assert [each.decided_at for each in decisions.all()] == [old.started_at]


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        (Findings(outcome=RAISED), True),
        (Findings(outcome=Outcome(status=Status.OOM, stage=Stage.EAGER)), True),
        (Findings(outcome=Outcome(status=Status.NONDETERMINISTIC, stage=Stage.EAGER)), False),
        (Findings(outcome=Outcome(status=Status.FAIL, stage=Stage.LOAD)), False),
        (Findings(outcome=RAISED, arms=(ArmResult(arm=BASELINE, outcome=RAISED),)), True),
        (
            Findings(
                outcome=PASSED,
                arms=(
                    ArmResult(arm=BASELINE, outcome=PASSED),
                    ArmResult(arm="mine:bad", outcome=Outcome(status=Status.FAIL)),
                ),
            ),
            False,
        ),
    ],
)
def test_eager_fails_where_it_raises(*, findings: Findings, expected: bool) -> None:
    """Not where a candidate does, nor where eager merely differs from itself."""
    assert is_eager_failing(findings) is expected
