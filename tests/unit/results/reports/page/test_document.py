"""The page as a file: what it holds, that nothing in it is obeyed, and that it asks for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import factories
import msgspec
import pytest
import stored

from dynamometer.results.reports.columns import Column, Table
from dynamometer.results.reports.page import document
from dynamometer.results.reports.page.document import page
from dynamometer.results.reports.page.parts import _groups, table_of
from dynamometer.results.reports.page.run import RunToShow, shown
from dynamometer.results.reports.page.values import PageData, ShownComparison
from dynamometer.results.statistics import summary
from dynamometer.results.statistics.between_processes import with_between_sd
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.cases import BASELINE, Overrides
from dynamometer.results.values.records import Absence, BetweenProcessSd, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record

HOSTILE = "<script>alert(1)</script>"
ASSETS = Path(document.__file__).parent / "assets"


def run_of(
    *cases: Sequence[Record],
    missing: Sequence[Case] = (),
    begun: Sequence[Sequence[Record]] = (),
) -> RunToShow:
    """Return a run to be shown that has no directory."""
    found = stored.run_of(cases, *missing, begun=begun)
    return RunToShow(found.manifest, found.cases, found.reporter, Path("/no/where"))


def test_what_is_in_no_pass_rate() -> None:
    """What was skipped, and what ended by a fault of the harness; as in the tables of arms."""
    cases = [[factories.record(factories.case(each), outcome=factories.failure(each))]
             for each in (Status.PASS, Status.CRASH, Status.SKIP, Status.INFRA)]  # fmt: skip
    (group,) = _groups((records, records[0].outcome) for records in cases)
    assert (group.passed, group.counted) == (1, 2)


@pytest.mark.parametrize("is_timed", [True, False])
def test_how_was_timed_is_said_where_something_was(*, is_timed: bool) -> None:
    """Of correctness alone blocks and the allocator of what is timed are not true."""
    record = factories.measured_record() if is_timed else factories.record()
    run, _ = shown(run_of([record]))
    protocol = dict(run.facts)["protocol"]
    assert ("allocator keep" in protocol, " blocks" in protocol) == (is_timed, is_timed)
    assert "caches first_cold, fork" in protocol


def test_samples_are_summarized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the table, the lines of each case and those of all: of each case once, as it ended."""
    ended: list[Case] = []

    def noted(records: Sequence[Record], **more: bool) -> summary.CaseSummary:
        ended.append(records[0].case)
        return summarize_case(records, **more)

    monkeypatch.setattr(summary, "summarize_case", noted)
    cases = [factories.case(name) for name in ("alexnet", "vgg16")]
    # With what earlier runs taught, as else all are judged again once the run is over.
    learnt = BetweenProcessSd(sd_log=0.01, df=20)
    records = [with_between_sd(factories.measured_record(each), learnt) for each in cases]
    page([run_of(*([each] for each in records))])
    assert ended == cases


def replicates(model: str = "alexnet") -> list[Record]:
    """Make a case that passed."""
    case = factories.case(model)
    return [factories.measured_record(case, replicate=each) for each in range(3)]


class _Parser(HTMLParser):
    """Collects elements with their attributes, and the text of scripts and style."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] in {"script", "style"} and data.strip():
            self.texts.append((self.elements[-1][1].get("id") or self.elements[-1][0], data))


def parsed(text: str) -> _Parser:
    """Read a page as a browser does."""
    parser = _Parser()
    parser.feed(text)
    return parser


def json_of(text: str, name: str) -> Any:
    """Return what one of the page's elements holds."""
    return json.loads(dict(parsed(text).texts)[name])


def test_it_holds_what_is_known() -> None:
    """Its JSON is that of `PageData`, with the speedup of each arm and its verdict."""
    text = page([run_of(replicates())])
    data = msgspec.convert(json_of(text, "data"), PageData)
    (arm,) = data.runs[0].part.arms
    assert arm.speedup is not None
    assert arm.speedup.low < 1.25 < arm.speedup.high
    assert arm.verdict == "FASTER"
    assert arm.memory_ratio is not None
    (group,) = data.runs[0].part.groups
    assert (group.passed, group.counted, group.compile_n) == (1, 1, 1)


def test_samples_stand_in_their_order() -> None:
    """Block by block, in ms, for each replicate."""
    found = json_of(page([run_of(replicates())]), "details-0-0")
    first = found["replicates"][0]["samples"][0]
    assert first["blocks"] == [[0, [10.0]], [1, [10.02]], [2, [9.98]], [3, [10.01]]]
    assert len(found["replicates"]) == 3


def test_what_is_missing_has_its_reason() -> None:
    """An absent metric, a failed arm, and a case that was not run."""
    (record,) = replicates()[:1]
    kept = tuple(each for each in record.measurements if each.metric != "calls_memory")
    absent = (Absence(metric="calls_memory", arm=BASELINE, reason="no cgroup"),)
    partial = msgspec.structs.replace(record, measurements=kept, absent=absent)
    failed = factories.record(
        factories.case("dcgan"), outcome=factories.failure(Status.OOM, reason="too large")
    )
    text = page([run_of([partial], [failed], missing=[factories.case("vgg16")])])
    (run,) = msgspec.convert(json_of(text, "data"), PageData).runs
    reasons = [each.memory_reason or each.line for each in run.part.arms]
    assert "no cgroup" in (reasons[0] or "")
    assert "too large" in (reasons[1] or "")
    assert [each.status for each in run.cases] == ["pass", "oom", "not run"]
    assert (run.ended, run.planned) == (2, 3)
    assert {each.kind for each in run.part.looks} == {"oom", "not run"}
    assert json_of(text, "details-0-0")["missing"] == ["calls_memory of baseline: no cgroup"]


def test_what_has_not_ended_is_not_all_well() -> None:
    """A case with one of its three replicates has figures, and is no pass that may be relied on."""
    begun = [factories.measured_record(factories.case("vgg16"))]
    (run,) = msgspec.convert(
        json_of(page([run_of(replicates(), begun=[begun])]), "data"), PageData
    ).runs
    assert (run.ended, run.planned, run.good) == (1, 2, "")
    assert [(each.kind, each.case) for each in run.part.looks] == [("unfinished", 1)]
    assert dict(run.facts)["cases"] == "1 of 2 ended"


def test_no_name_is_obeyed() -> None:
    """Whatever a model or a message is called, there are as many elements as without it."""
    failed = factories.record(
        factories.case("--><!--"),
        outcome=factories.failure(reason=f"{HOSTILE}</script><img src=x onerror=alert(1)>"),
    )
    plain = factories.record(factories.case("b"), outcome=factories.failure(reason="c"))
    hostile, usual = (
        page([run_of(replicates(name), [other])])
        for name, other in ((HOSTILE, failed), ("a", plain))
    )
    assert HOSTILE not in hostile
    assert [name for name, _ in parsed(hostile).elements] == [
        name for name, _ in parsed(usual).elements
    ]
    assert json_of(hostile, "data")["runs"][0]["cases"][0]["label"] == HOSTILE


def test_only_its_own_script_and_style_may_run() -> None:
    """The policy has their hashes and allows nothing else."""
    found = parsed(page([run_of(replicates())]))
    (policy,) = [
        attributes["content"]
        for name, attributes in found.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    texts = dict(found.texts)
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(texts[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in (policy or "")
    assert (policy or "").startswith("default-src 'none';")
    assert "unsafe" not in (policy or "")


def test_nothing_is_fetched() -> None:
    """There is no address in any element, style or script, but the name of SVG's namespace."""
    found = parsed(page([run_of(replicates())]))
    assert not [
        attributes for _, attributes in found.elements if {"src", "action"} & attributes.keys()
    ]
    texts = dict(found.texts)
    for text in (texts["script"], texts["style"]):
        assert set(re.findall(r"https?://[^\"']*", text)) <= {"http://www.w3.org/2000/svg"}
        assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|import\(", text)


@pytest.mark.parametrize("path", sorted(ASSETS.glob("*.js")), ids=lambda path: path.name)
def test_scripts_make_elements_of_text_alone(path: Path) -> None:
    """Nothing is read as HTML or code."""
    script = path.read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|srcdoc", script
    )
    assert script.count("\n") < 400


def test_it_is_small_and_always_the_same() -> None:
    """Without data it is far below a megabyte; nothing of it depends on when it is made."""
    run = run_of(replicates())
    assert page([run]) == page([run])
    assert len(page([run])) < 100_000


def test_runs_that_cannot_be_compared() -> None:
    """The page says why."""
    runs = [run_of(replicates())] * 2
    text = page(runs, ShownComparison(refused="of two machines"))
    assert json_of(text, "data")["comparison"]["refused"] == "of two machines"
    assert {"details-0-0", "details-1-0"} <= dict(parsed(text).texts).keys()


def test_without_javascript() -> None:
    """What the study says is there to read, escaped."""
    text = page([run_of(replicates("<b>"))])
    assert "GEOMEAN SPEEDUP" in text.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "<b>" not in text


def test_a_case_with_overrides_counts_in_nothing() -> None:
    """It stands beside the same without, and no verdict is made up for it."""
    usual = factories.case("alexnet")
    told = msgspec.structs.replace(usual, overrides=Overrides(disable=("a:b",)))
    slow = [
        factories.measured_record(told, replicate=each, seconds={BASELINE: 0.01, "inductor": 0.02})
        for each in range(3)
    ]
    (run,) = msgspec.convert(json_of(page([run_of(replicates(), slow)]), "data"), PageData).runs
    assert [(each.group, each.verdict) for each in run.part.arms] == [(0, "FASTER"), (None, None)]
    assert run.part.arms[1].reason == "with overrides: nothing is concluded of it"
    assert run.part.groups[0].pass_rate == "100%, 1/1"


def test_nothing_to_look_at_says_no_more_than_is_known() -> None:
    """Not that all passed where all was left out, nor that none is slower where none was timed."""
    skipped = factories.record(
        factories.case("a"), outcome=factories.failure(Status.SKIP, reason="needs CUDA")
    )
    (run,) = msgspec.convert(json_of(page([run_of([skipped])]), "data"), PageData).runs
    assert run.good == "Nothing was run: all was left out."
    assert run.part.groups[0].pass_rate is None
    (run,) = msgspec.convert(json_of(page([run_of(replicates())]), "data"), PageData).runs
    assert run.good == "Nothing: 1 of 1 passed, none is SLOWER than eager."
    lost = factories.record(
        factories.case("a"),
        absent=(Absence(metric="latency", arm="inductor", reason="no time"),),
    )
    told = msgspec.structs.replace(factories.case("b"), overrides=Overrides(disable=("a:b",)))
    timed = [factories.measured_record(told, replicate=each) for each in range(3)]
    left_out = msgspec.structs.replace(skipped, case=factories.case("c"))
    (run,) = msgspec.convert(
        json_of(page([run_of([lost], [left_out], timed)]), "data"), PageData
    ).runs
    assert run.good.endswith("passed, none is SLOWER than eager; 1 without a speedup.")


def test_whole_numbers_are_whole() -> None:
    """A column of bytes is what the CSV file has."""
    column = Column("bytes", "Of it.", lambda value: value)
    (row,) = table_of(Table("sizes", "Some.", (column,)), [244_403_360]).rows
    assert row == (244_403_360,)


def test_a_directory_whose_name_is_no_text(tmp_path: Path) -> None:
    """As Linux lets it be: the page names it as well as it can."""
    directory = tmp_path / os.fsdecode(b"ru\xffn")
    directory.mkdir()
    (directory / "a.log").write_text("\x1b[31mred\n")
    (record,) = replicates()[:1]
    failed = msgspec.structs.replace(record, log="a.log")
    found = stored.run_of([[failed]])
    text = page([RunToShow(found.manifest, found.cases, found.reporter, directory)])
    assert "\x1b" not in "".join(json_of(text, "details-0-0")["log"])
    text.encode()
