"""What counts of several models come to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.studies import not_captured
from dynamometer.common.studies.coverage import report as coverage_report
from dynamometer.common.studies.coverage.rows import rows as make_rows
from dynamometer.common.studies.coverage.study import STUDY
from dynamometer.common.studies.coverage.summary import CoverageSummary, coverage_of, summarize
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE, Protocol
from dynamometer.results.values.coverage import CapturedGraph, Coverage, GraphBreak
from dynamometer.results.values.records import Record, Status, StopReason, packed

if TYPE_CHECKING:
    from pathlib import Path


def graph_break(
    reason: str, line: int, not_captured_ops: int, not_captured_s: float = 0.001
) -> GraphBreak:
    """Make a break at a line of a file."""
    return GraphBreak(
        reason=reason, file="/x/model.py", line=line, function="forward", code="x.item()",
        times=1, not_captured_ops=not_captured_ops, not_captured_s=not_captured_s,
    )  # fmt: skip


def counted(model: str, captured: int, *breaks: GraphBreak, total: int = 100) -> Record:
    """Make the record of a model."""
    graphs = tuple(CapturedGraph(ops=captured, calls=1) for _ in range(len(breaks) + 1))
    coverage = Coverage(
        frames=len(graphs), frames_ok=len(graphs), frames_again=0, graphs=graphs,
        captured_ops=captured, total_ops=total, captured_s=0.006, total_s=0.010, breaks=breaks,
        guards=7, guards_s=2e-6,
    )  # fmt: skip
    return factories.record(
        factories.case(model, (BASELINE,)), experiments=("coverage",), found=packed(coverage)
    )


FULL = counted("full", 100)
ITEM = counted("item", 60, graph_break("item", 3, 30), graph_break("print", 4, 0))
BOTH = counted("both", 50, graph_break("item", 8, 10), graph_break("jump", 9, 40))
FAILED = factories.record(
    factories.case("failed", (BASELINE,)), experiments=("coverage",),
    outcome=factories.failure(Status.CRASH, reason="killed by SIGSEGV"),
)  # fmt: skip
ALL = [summarize([each]) for each in (FULL, ITEM, BOTH, FAILED)]


def test_shares() -> None:
    """Of operators, of time, and whether one graph is all of it."""
    full, item = map(coverage_of, (FULL, ITEM))
    assert full is not None
    assert item is not None
    assert (full.share_of_ops, full.is_full_graph) == (1.0, True)
    assert (item.share_of_ops, item.is_full_graph) == (0.6, False)
    assert item.share_of_time == pytest.approx(0.6)
    assert (item.graph_calls, item.largest_graph) == (3, 60)


def test_of_how_many_models_is_without_what_the_harness_failed_on() -> None:
    """As without what was skipped."""
    for status, expected in ((Status.CRASH, "3 of 4"), (Status.INFRA, "3 of 3")):
        ended = replace(ALL[3], outcome=factories.failure(status))
        assert f"models: {expected} counted" in coverage_report.lines([*ALL[:3], ended])


def test_a_model_without_operators_has_no_share() -> None:
    """Nothing of nothing is neither all nor none."""
    found = Coverage(frames=1, frames_ok=1, frames_again=0, captured_ops=0, total_ops=0)
    assert (found.share_of_ops, found.share_of_time, found.largest_graph) == (None, None, 0)
    assert not found.is_full_graph
    timed = msgspec.structs.replace(found, captured_s=0.0, total_s=0.001)
    assert timed.share_of_time is None


def test_reasons_are_ranked_by_what_they_cost() -> None:
    """Over all models; one that costs nothing comes last, however often it happens."""
    ranked = not_captured.reasons([each.coverage for each in ALL if each.coverage])
    assert [(each.text, each.models, each.times, each.not_captured_ops) for each in ranked] == [
        ("item", 2, 2, 40), ("jump", 1, 1, 40), ("print", 1, 1, 0),
    ]  # fmt: skip
    assert ranked[0].not_captured_s == pytest.approx(0.002)


def test_what_to_fix_first_is_the_largest_share() -> None:
    """Of operators, then of time; lines that lose nothing are not in the list."""
    text = "\n".join(coverage_report.lines(ALL))
    assert "models: 3 of 4 counted" in text
    assert "mean:  70% of ops,  60% of time, 2.3 graphs, 2.3 calls of them" in text
    assert "one graph is all of it: 1 of 3" in text
    fixes = text.partition("fix these first:")[2]
    assert [line.split()[:2] for line in fixes.splitlines()[3:7]] == [
        ["both", "model.py:9"], ["item", "model.py:3"], ["both", "model.py:8"],
        ["item", "model.py:4"],
    ]  # fmt: skip


def test_nearly_all_is_not_all() -> None:
    """Of operators and of time, of one model and of all."""
    seen = Coverage(
        frames=1, frames_ok=1, frames_again=0, captured_ops=9997, total_ops=10_000,
        captured_s=0.9997, total_s=1.0,
    )  # fmt: skip
    found = replace(ALL[0], coverage=seen)
    said = coverage_report.line(found)
    assert said.endswith("9997/10000 = 99.9% ops, 99.9% time")
    assert "mean: 99.9% of ops, 99.9% of time" in "\n".join(coverage_report.lines([found]))
    nearly_nothing = msgspec.structs.replace(seen, captured_ops=3, captured_s=0.0003)
    said = coverage_report.line(replace(ALL[0], coverage=nearly_nothing))
    assert said.endswith("3/10000 = 0.1% ops, 0.1% time")


def test_what_no_place_explains_is_said() -> None:
    """It is in no table, so it would be missed."""
    assert coverage_report.lines(ALL)[-1].endswith("to no line and no function: 10")
    explained = [each for each in ALL if each.coverage and not each.coverage.unexplained_ops]
    assert "no function" not in "\n".join(coverage_report.lines(explained))


def test_nothing_counted_says_nothing() -> None:
    """A run in which all failed has lines of its models alone."""
    assert coverage_report.lines(ALL[3:]) == []
    assert coverage_report.lines([]) == []
    assert coverage_report.line(ALL[3]).endswith(
        "failed".ljust(31) + "CRASH (compile) killed by SIGSEGV"
    )


def test_what_is_not_known_is_empty() -> None:
    """A row of what was counted, and one of a model that failed."""

    def row(found: CoverageSummary) -> dict[str, object]:
        (rows,) = [
            each for each in make_rows(found, compatible=False) if "not_captured" not in each.file
        ]
        (row,) = rows.by_column()
        return row

    counted = row(ALL[1])
    assert (counted["graphs"], counted["graph_calls"], counted["pct_ops"]) == (3, 3, 0.6)
    assert (counted["breaks"], counted["unique_breaks"], counted["full_graph"]) == (2, 2, False)
    failed = row(ALL[3])
    assert (failed["status"], failed["graphs"], failed["pct_time"]) == (Status.CRASH, None, None)


def test_counting_once_is_enough() -> None:
    """Whatever came of it."""
    rules = Protocol(replicates=1, most_replicates=1)
    assert STUDY.stop_reason([FULL], rules) is StopReason.REPLICATES
    assert STUDY.stop_reason([FAILED], rules) is StopReason.REPLICATES


def test_it_is_kept(tmp_path: Path) -> None:
    """A run directory gives back what was counted."""
    plan = factories.plan(factories.model_spec("item"), arms=(BASELINE,))
    store.create(tmp_path / "run", factories.manifest(plan))
    with store.RunStore(tmp_path / "run") as events:
        events.append(ITEM)
    (again,) = store.read_records(tmp_path / "run")
    assert again == ITEM
