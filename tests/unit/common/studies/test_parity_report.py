"""What the models of a run come to: scores of projects and tests, graphs, reasons."""

from __future__ import annotations

from dataclasses import replace

import factories
import msgspec

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.parity import page, report
from dynamometer.common.studies.parity.bugs import distinct, normalised
from dynamometer.common.studies.parity.experiment import ParityExperiment
from dynamometer.common.studies.parity.rows import PARITY
from dynamometer.common.studies.parity.study import STUDY
from dynamometer.common.studies.parity.summary import ParitySummary, entries, summarize
from dynamometer.common.studies.speedup.study import STUDY as SPEEDUP
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.coverage import CapturedGraph, Coverage, GraphBreak
from dynamometer.results.values.parity import (
    NO_FORWARD,
    NOT_A_MODULE,
    NOT_BUILT,
    NOT_IMPORTED,
    NOT_REACHED,
    NOT_READ,
    NOT_RUN,
    UNDER_WAY,
    CorpusEntry,
    FullGraph,
    Parity,
)
from dynamometer.results.values.records import (
    PASSED,
    ArmResult,
    CaptureStats,
    Outcome,
    Record,
    Stage,
    Status,
    packed,
)

BROKEN = factories.failure(Status.FAIL, reason="Unsupported: print")


def test_the_arm_that_fails_is_known() -> None:
    """In default mode before as one graph; a case that passes, or says nothing, has none."""
    arms = (BASELINE, "eager", "aot_eager", "inductor")
    case = factories.case("m.Net", arms)

    def record(**ends: Outcome) -> Record:
        results = tuple(ArmResult(arm=arm, outcome=ends.get(arm, PASSED)) for arm in arms)
        full = tuple(
            FullGraph(arm=arm, outcome=ends.get(f"{arm}_full", ends.get(arm, PASSED)))
            for arm in arms[1:]
        )
        return factories.record(case, arms=results, found=packed(Parity(full_graph=full)))

    def failing(**ends: Outcome) -> tuple[str, bool] | None:
        found = STUDY.failing([record(**ends)])
        return None if found is None else (*found.arms[1:], found.nopython)

    assert failing() is None
    assert failing(eager=factories.failure(Status.SKIP, reason="")) is None
    assert failing(eager_full=BROKEN) == ("eager", True)
    assert failing(eager_full=BROKEN, inductor=BROKEN) == ("inductor", False)
    assert failing(aot_eager=BROKEN, inductor=BROKEN) == ("aot_eager", False)
    timed = SPEEDUP.failing([record(), record(inductor=BROKEN, eager_full=BROKEN)])
    assert timed == msgspec.structs.replace(case, arms=(BASELINE, "inductor"))
    assert SPEEDUP.failing([record(baseline=BROKEN)]) is None


def captured(graphs: int, ops: int, breaks: int = 0) -> CaptureStats:
    """Make what was captured of an arm."""
    reasons = {"print": breaks} if breaks else {}
    return CaptureStats(frames=graphs, frames_ok=graphs, graphs=graphs, ops=ops, breaks=reasons)


def coverage(*ops: int, reasons: tuple[str, ...] = ("print",)) -> Coverage:
    """Make what was counted of a model of several graphs, with one operator outside of them."""
    breaks = tuple(
        GraphBreak(
            reason=each, file="test_p.py", line=3, function="forward", times=1, not_captured_ops=1
        )
        for each in reasons
    )
    graphs = tuple(CapturedGraph(ops=each, calls=1) for each in ops)
    total = sum(ops) + len(reasons)
    return Coverage(
        frames=1, frames_ok=1, frames_again=0, graphs=graphs, captured_ops=sum(ops),
        total_ops=total, breaks=breaks,
    )  # fmt: skip


def record(
    model: str,
    outcome: Outcome = PASSED,
    *,
    full: Outcome | None = None,
    seen: CaptureStats | None = None,
    counted: Coverage | None = None,
) -> Record:
    """Make the record of a model with one backend."""
    case = factories.case(model, (BASELINE, "eager"), suite="parity")
    found = Parity(full_graph=(FullGraph(arm="eager", outcome=full or outcome),), coverage=counted)
    arms = (
        ArmResult(arm=BASELINE, outcome=PASSED),
        ArmResult(arm="eager", outcome=outcome, capture=seen),
    )
    return factories.record(
        case, outcome=outcome, arms=arms, found=packed(found), experiments=("parity",)
    )


SKIPPED = Outcome(status=Status.SKIP, stage=Stage.EAGER, reason="it does not run in eager: oops")
RECORDS = [
    record("one.A", seen=captured(1, 10)),
    record("one.B", seen=captured(1, 30)),
    record("two.A", seen=captured(1, 5)),
    record("two.B", full=BROKEN, seen=captured(2, 7, 1), counted=coverage(3, 4)),
    record("two.C", full=BROKEN, seen=captured(3, 9, 2),
           counted=coverage(3, 3, 3, reasons=("print", "item"))),
    record("three.A", factories.failure(Status.CRASH, reason="killed by SIGSEGV")),
    record("four.A", SKIPPED),
]  # fmt: skip


def test_scores_are_of_projects_and_tests_in_either_mode() -> None:
    """A project passes whose tests all do; what eager can't run is not counted."""
    text = "\n".join(STUDY.closing_lines([[each] for each in RECORDS]))
    rows = {
        words[0]: words[1:]
        for row in text.splitlines()
        if (words := [each for each in row.split("  ") if each.strip()])
    }
    assert [each.strip() for each in rows["projects, default"]] == ["3", "2", "66.7%"]
    assert [each.strip() for each in rows["tests, default"]] == ["6", "5", "83.3%"]
    assert [each.strip() for each in rows["projects, full graph"]] == ["3", "1", "33.3%"]
    assert [each.strip() for each in rows["tests, full graph"]] == ["6", "3", "50.0%"]
    assert "(1 skip of 7 left out)" in text
    assert "graphs per model: 1.60 on average; 0: 0, 1: 3, 2: 1, 3 to 5: 1, 6 to 10: 0" in text
    assert "operators in graphs: 61" in text
    assert "largest graph: 30 operators, one.B" in text
    assert "killed by SIGSEGV" in text
    assert "it does not run in eager: oops" in text


def test_what_was_not_asked_or_not_tried_has_no_score() -> None:
    """A run that must be one graph has no default mode; what says nothing as one is left out."""
    drew = factories.failure(Status.NONDETERMINISTIC, reason="eager disagrees with itself")
    records = [record("one.A"), record("two.A", full=drew), record("two.B", full=NOT_REACHED)]
    found = [each for one in records for each in summarize(one)]
    assert report.scores(found) == [
        ("projects, default", 2, 2), ("tests, default", 3, 3),
        ("projects, full graph", 1, 1), ("tests, full graph", 1, 1),
    ]  # fmt: skip
    compared = {each.arm: each.outcome.status for each in entries([records[1]])}
    assert compared["eager, full graph"] is Status.SKIP
    strict = [
        replace(each, case=msgspec.structs.replace(each.case, nopython=True)) for each in found
    ]
    assert [what for what, *_ in report.scores(strict)] == [
        "projects, full graph", "tests, full graph",
    ]  # fmt: skip
    (table, *_) = page.tables(found[1:])
    assert [row[-1] for row in table.rows] == [1.0, 1.0, None, None]


def test_the_arm_that_was_run_as_one_graph_ended_as_its_process() -> None:
    """The one before it stands, and the one after it says nothing."""
    ends = {"eager": BROKEN, "aot_eager": UNDER_WAY, "inductor": NOT_REACHED}
    full = tuple(FullGraph(arm=arm, outcome=end) for arm, end in ends.items())
    kept = Findings(outcome=PASSED, found=packed(Parity(full_graph=full)))
    timeout = factories.failure(Status.TIMEOUT, reason="killed after 120 s")
    found = msgspec.json.decode(ParityExperiment().ended(kept, timeout).found, type=Parity)
    assert [each.outcome for each in found.full_graph] == [BROKEN, timeout, NOT_REACHED]


def test_a_reason_says_what_would_be_one_graph_without_it() -> None:
    """Of two reasons in one model neither does it alone."""
    lines = report.closing_lines([each for found in RECORDS for each in summarize(found)])
    (row,) = [each.split() for each in lines if each.startswith("print")]
    assert row == ["print", "2", "2", "2", "16.7%"]
    (row,) = [each.split() for each in lines if each.startswith("item")]
    assert row == ["item", "1", "1", "1", "0.0%"]


def test_the_page_shows_what_all_come_to() -> None:
    """What the terminal prints, as tables, before the row of each test."""
    part = STUDY.on_page([[each] for each in RECORDS]).part
    tables = {each.title: each for each in part.tables}
    assert [*tables] == [
        "what works with eager", "why graphs end with eager", "what fails with eager", "parity",
        "coverage not captured",
    ]  # fmt: skip
    assert ("tests, full graph", 6, 3, 0.5) in tables["what works with eager"].rows
    assert tables["why graphs end with eager"].rows[0] == ("print", 2, 2, 2, 1 / 6)
    ((bug, place, projects, tests, smallest),) = tables["what fails with eager"].rows
    assert (bug, place) == ("crash: killed by SIGSEGV", None)
    assert (projects, tests, smallest) == (1, 1, "three.A")
    for table in part.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert STUDY.on_page([[RECORDS[-1]]]).part.tables[0].title == "parity"


def test_a_line_says_both_modes() -> None:
    """In how many graphs, and whether as one."""
    lines = [text for each in RECORDS for text in STUDY.lines([each])]
    assert lines[0].endswith("PASS  1 graphs   10 ops, full graph PASS")
    assert "full graph FAIL" in lines[3]
    assert "CRASH" in lines[5]


def test_an_arm_that_failed_has_no_error() -> None:
    """One that fell back to eager would have none at all, the best value."""
    found = []
    for outcome in (PASSED, factories.failure(Status.FAIL)):
        case = factories.case("p.A", (BASELINE, "eager"))
        result = ArmResult(arm="eager", outcome=outcome, max_error=0.0)
        summary = ParitySummary(case, result, full_graph=PASSED, coverage=None)
        found += [column.value(summary) for column in PARITY.columns if column.name == "max_error"]
    assert found == [0.0, None]


def test_either_mode_is_compared() -> None:
    """A model that is no longer one graph is newly failing, though it works."""
    found = {each.arm: each.passed for each in entries([RECORDS[3]])}
    assert found == {"eager": True, "eager, full graph": False}


def test_what_eager_cant_run_is_skipped() -> None:
    """Also where it ends its process; what Dynamo does is not."""
    experiment, arms = ParityExperiment(), (BASELINE, "eager")
    for status, stage, expected in (
        (Status.FAIL, Stage.LOAD, Status.SKIP),
        (Status.CRASH, Stage.EAGER, Status.SKIP),
        (Status.TIMEOUT, Stage.EAGER, Status.SKIP),
        (Status.NONDETERMINISTIC, Stage.EAGER, Status.NONDETERMINISTIC),
        (Status.CRASH, Stage.COMPILE, Status.CRASH),
        (Status.INFRA, Stage.LOAD, Status.INFRA),
    ):
        outcome = Outcome(status=status, stage=stage, reason="why")
        found = experiment.salvage(Findings(outcome=outcome), arms)
        assert found.outcome.status is expected
        assert [each.outcome.status for each in found.arms] == [expected] * 2
        assert "why" in (found.outcome.reason or "")


def test_how_far_it_came_is_how_a_reason_begins() -> None:
    """Also of a class that ended the process, where the worker said what it was at."""
    for reason in (f"{NOT_BUILT}: the process exited", f"{NOT_IMPORTED}: KeyboardInterrupt"):
        outcome = Outcome(status=Status.CRASH, stage=Stage.LOAD, reason=reason)
        found = ParityExperiment().salvage(Findings(outcome=outcome), (BASELINE, "eager"))
        assert (found.outcome.status, found.outcome.reason) == (Status.SKIP, reason)


TRACEBACK = """Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/convert.py", line {line}, in inner
    return go()
  File "/home/somebody/test_{name}.py", line 3, in forward
ValueError: oops
"""


def failing(name: str, reason: str, *, line: int = 1, where: str = "convert") -> Record:
    """Make the record of a test that fails."""
    detail = TRACEBACK.format(line=line, name=name).replace("convert", where)
    failed = factories.failure(Status.FAIL, reason=reason)
    return record(name, msgspec.structs.replace(failed, detail=detail))


def test_failures_of_one_cause_are_one_bug() -> None:
    """Sizes, names, addresses, places and lines differ; another function is another bug."""
    same = [
        failing("one.Long", "ValueError: 'A' of size [4, 4] at 0x7f3a (test_one.py:3)"),
        failing("one.B", "ValueError: 'B' of size [2, 3] at 0x1 (test_one.py:9)", line=20),
        failing("two.A", "ValueError: 'x y' of size [7, 1, 5] at 0xff"),
    ]
    other = failing("two.B", "ValueError: 'A' of size [4, 4] at 0x7f3a", where="elsewhere")
    summaries = [each for found in (*same, other) for each in summarize(found)]
    bugs = distinct(summaries)
    assert [(each.projects, len(each.tests)) for each in bugs] == [(2, 3), (1, 1)]
    assert bugs[0].message == "ValueError: '_' of size [N, ...] at ADDRESS"
    assert bugs[0].place == "torch/_dynamo/convert.py:inner"
    assert bugs[0].smallest.case.model == "one.B"
    assert distinct(summaries[::-1]) == bugs


def test_what_is_missing_and_what_is_wrong_tell_bugs_apart() -> None:
    """An attribute that isn't there is known by name; of two wrong results nothing says more."""
    missing = [
        failing(name, f"AttributeError: 'X' object has no attribute '{what}'")
        for name, what in (("one.A", "numpy"), ("one.B", "tolist"), ("two.A", "numpy"))
    ]
    wrong = [
        record(name, factories.failure(Status.FAIL_ACCURACY, reason="output: error 0.5"))
        for name in ("one.C", "one.D")
    ]
    bugs = distinct(each for found in (*missing, *wrong) for each in summarize(found))
    assert [[test.case.model for test in each.tests] for each in bugs] == [
        ["one.A", "two.A"], ["one.B"], ["one.C"], ["one.D"],
    ]  # fmt: skip
    assert bugs[0].message == "AttributeError: '_' object has no attribute 'numpy'"


def test_why_tests_are_left_out_is_said_to_its_end() -> None:
    """Which package is missing, and not how the reason begins."""
    reason = "it does not run in eager: ModuleNotFoundError: No module named '{}'"
    found = [
        record(f"p.{name}", Outcome(status=Status.SKIP, stage=Stage.LOAD, reason=text))
        for name, text in enumerate(map(reason.format, ("detectron2", "mmcv", "mmcv")))
    ]
    lines = STUDY.closing_lines([[each] for each in found])
    text = " ".join(" ".join(lines[lines.index("why tests are left out:") :]).split())
    assert text.index("'mmcv'") < text.index("'detectron2'")


def test_what_is_not_judged_is_no_failure_beside_another_run() -> None:
    """A test whose eager wanders says as little of Dynamo as one that is skipped."""
    for status in (Status.NONDETERMINISTIC, Status.INFRA):
        found = entries([record("p.A", factories.failure(status, reason="why"))])
        assert [each.arm for each in found] == ["eager", "eager, full graph"]
        assert all(each.is_skipped for each in found)
        assert all((each.outcome.reason or "").startswith(status) for each in found)


def test_what_is_captured_is_of_arms_that_work() -> None:
    """It is counted once for all arms of a model."""
    broken = record("p.A", BROKEN, counted=coverage(3, 4))
    assert [each.coverage for each in summarize(broken)] == [None]


def test_normalising_is_idempotent() -> None:
    """What is said of a bug is what it is known by."""
    for text in ("a 'b' 3.5e-3 [1, 2] /x/y/z.py l_self_x_", "", "0x12 `f` -1", "Eq(u0, 1) float32",
                 "remove `torch.compile`, or `f`: no attribute 'g'"):  # fmt: skip
        assert normalised(normalised(text)) == normalised(text)
    assert normalised("see https://a.org/b/c.html of /tmp/d/e") == "see https://a.org/b/c.html of e"
    assert normalised("shapes (4x16 and 3x3)") == normalised("shapes (2x8 and 5x7)")
    unread = f"{NOT_IMPORTED}: No module named 'mmcv'; it isn't 'there'"
    assert normalised(unread) == f"{NOT_IMPORTED}: No module named 'mmcv'; it isn't '_'"
    assert normalised(text) == "remove `torch.compile`, or '_': no attribute 'g'"


def test_what_dynamo_met_tells_bugs_apart() -> None:
    """The message that it quotes, whatever the sizes in that."""
    met = "RuntimeError when making fake tensor call (test_a.py:3). got RuntimeError({})"
    broadcast = met.format("'Attempting to broadcast a dimension of length 1024 at -2!'")
    assert normalised(broadcast) == normalised(broadcast.replace("1024", "256"))
    assert "broadcast a dimension of length N" in normalised(broadcast)
    where = met.format("'expected predicate to be bool, got torch.uint8'")
    assert normalised(where) != normalised(broadcast)
    named = met.format("\"unknown layer 'a'\"")
    assert normalised(named) == normalised(named.replace("'a'", "'b'"))
    assert normalised(normalised(named)) == normalised(named)
    assert normalised("KeyError('abc')") == normalised("KeyError('xyz')") == "KeyError('_')"


def test_what_is_not_shown_is_counted() -> None:
    """A table that ends at ten rows says so."""
    found = [[record(f"p.{n}", factories.failure(Status.FAIL, reason=f"not '{n}'\n" + "x" * n))]
             for n in range(13)]  # fmt: skip
    lines = STUDY.closing_lines(found)
    assert "what fails: 13 distinct, of 13 tests:" in lines
    assert "and 3 more" in lines
    assert not any(each.endswith("more") for each in STUDY.closing_lines(found[:10]))


def test_how_far_classes_of_projects_came_is_counted() -> None:
    """Where arguments had to be found; what can't be called has none."""

    def skipped(name: str, reason: str) -> Record:
        outcome = Outcome(status=Status.SKIP, stage=Stage.LOAD, reason=reason)
        return record(name, outcome)

    entry = CorpusEntry(module="p", class_name="A", init_args="([], {})", forward_args="([], {})")
    works = msgspec.structs.replace(RECORDS[0], found=packed(Parity(entry=entry)))
    cases = [
        works, record("p.B", factories.failure()), skipped("p.C", f"{NOT_RUN}: oops"),
        skipped("p.D", f"{NOT_BUILT}: oops"), skipped("p.E", f"{NOT_IMPORTED}: oops"),
        skipped("p.F", NO_FORWARD), skipped("p.G", NOT_A_MODULE),
        skipped("p.CLASSES", f"{NOT_READ}: SyntaxError: oops"),
    ]  # fmt: skip
    lines = STUDY.closing_lines([[each] for each in cases])
    rows = [line.rpartition(" ")[::2] for line in lines[3:9]]
    assert [(what.strip(), int(number)) for what, number in rows] == [
        ("classes of nn.Module with a forward", 5), ("imported", 4), ("built", 3),
        ("run in eager", 2), ("work compiled", 1), ("are one graph", 1),
    ]  # fmt: skip
    assert "modules of projects:" not in STUDY.closing_lines([[each] for each in RECORDS])


def test_a_project_is_what_a_name_begins_with() -> None:
    """A file of a corpus, or a package; a model of another suite stands for itself."""
    for name, project in {
        "owner_net.Block": "owner_net", "owner_net.Block.2": "owner_net", "resnet18": "resnet18",
        "timm.layers.mlp.Mlp": "timm", "mixer_b16_224.1": "mixer_b16_224.1",
    }.items():  # fmt: skip
        assert summarize(record(name))[0].project == project
