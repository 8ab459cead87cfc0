from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import factories
import msgspec
import pytest
import stored

from dynamometer.results.comparison.dashboard_files import read_files
from dynamometer.results.exports import (
    action_benchmark,
    bencher,
    benchmark_database,
    expected_accuracy,
    junit,
    markdown,
    openmetrics,
    pytorch_csv,
)
from dynamometer.results.exports.export import json_text
from dynamometer.results.exports.figures import certain_figures, figures
from dynamometer.results.reports.texts import is_shown
from dynamometer.results.store import their_expected
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import ArmResult, CaptureStats, Status

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.exports.export import Export, StoredRun
    from dynamometer.results.values.records import Record

LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
NAME = "[a-z_:][a-z0-9_:]*"
LINES = re.compile(
    rf"# TYPE {NAME} gauge|# UNIT {NAME} [a-z0-9_]+|# HELP {NAME} [^\n]*"
    rf"|{NAME}\{{{LABEL}(?:,{LABEL})*\}} -?[0-9.e+-]+|# EOF"
)
"""A line, as the grammar of OpenMetrics 1.0 has it, of what is written here."""


def passing(model: str = "alexnet") -> list[Record]:
    """Make the replicates of a model that is twice as fast."""
    seconds = {BASELINE: 0.010, "inductor": 0.005}
    case = factories.case(model)
    return [factories.measured_record(case, replicate=each, seconds=seconds) for each in range(3)]


def failing(model: str = "resnet18", status: Status = Status.FAIL) -> list[Record]:
    """Make a model whose only other arm failed."""
    outcome = factories.failure(status, reason="no <such> operator\x1b[0m & none")
    return [factories.record(factories.case(model), outcome=outcome)]


def disturbed() -> list[Record]:
    """Make a model that was measured while something else kept the machine busy."""
    return [
        msgspec.structs.replace(each, disturbed_blocks=(0, 1, 2, 3)) for each in passing("dcgan")
    ]


def text(export: Export, run: StoredRun) -> str:
    """Return the only document."""
    (document,) = export(run)
    return document.text


def test_what_is_missing_has_no_figure() -> None:
    """A failed arm has counts at most, never a 0 for what was not measured."""
    run = stored.run_of([passing(), failing()])
    assert {each.case.model for each in figures(run)} == {"alexnet"}
    assert all(name not in text(bencher.export, run) for name in ("resnet18", "null"))


def test_figures_have_intervals_and_ids_of_their_own() -> None:
    """The speedup with its bounds; no two figures of a run are the same."""
    found = figures(stored.run_of([passing(), passing("dcgan")]))
    speedups = [each for each in found if each.column.name == "speedup"]
    assert [each.case.model for each in speedups] == ["alexnet", "dcgan"]
    for each in speedups:
        assert each.low is not None
        assert each.high is not None
        assert each.low < each.value < each.high
    assert len({(each.id, each.column.name) for each in found}) == len(found)


def test_arms_that_differ_in_signs_alone_have_figures_of_their_own() -> None:
    """Their rows were in one file, where they can't be told from each other, and none was left."""
    names = ("mine:compile", "mine.compile")
    case = factories.case(arms=(BASELINE, *names))
    found = figures(stored.run_of([[factories.measured_record(case)]]))
    assert tuple(each.arm for each in found if each.column.name == "speedup") == names


def test_what_was_disturbed_is_left_out_where_alarms_are_raised() -> None:
    """Of a disturbed case there are no times; a page of a run shows them, marked."""
    run = stored.run_of([disturbed()])
    names = {each.column.name for each in certain_figures(run)}
    assert {"calls_captured", "compression_ratio"} <= names
    assert not names & {"speedup", "abs_latency", "eager_latency", "compilation_latency"}
    assert "speedup" not in json.loads(text(bencher.export, run)).popitem()[1]
    assert "(disturbed)" in text(markdown.comment, run)


def test_eager_of_a_disturbed_case_is_left_out_whatever_its_arms_did() -> None:
    """Its time is no surer beside an arm that failed."""
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    record = factories.measured_record(case)
    failed = msgspec.structs.replace(record.arms[1], outcome=factories.failure())
    arms = (record.arms[0], failed, record.arms[2])
    for blocks, is_left_out in (((), False), ((0, 1, 2, 3), True)):
        found = msgspec.structs.replace(record, arms=arms, disturbed_blocks=blocks)
        run = stored.run_of([[found]])
        eager = [each for each in certain_figures(run) if each.column.name == "eager_latency"]
        assert [each.arm for each in eager] == ([] if is_left_out else ["inductor", "ts"])


def test_bencher_has_values_with_bounds() -> None:
    """By benchmark and measure, as its schema has it; units are in the names."""
    found: dict[str, Any] = json.loads(text(bencher.export, stored.run_of([passing()])))
    ((name, measures),) = found.items()
    assert name == "torchbench/alexnet/inference/cpu/float32/static/full/b4/inductor"
    assert set(measures["speedup"]) == {"value", "lower_value", "upper_value"}
    assert measures["abs-latency-ms"]["value"] == pytest.approx(5, rel=0.01)
    assert all("value" in each and None not in each.values() for each in measures.values())


def test_action_benchmark_tells_directions_apart() -> None:
    """A list of what is better smaller, and one of what is better bigger."""
    documents = action_benchmark.export(stored.run_of([passing()]))
    found = {each.name: json.loads(each.text) for each in documents}
    assert sorted(found) == ["customBiggerIsBetter.json", "customSmallerIsBetter.json"]
    bigger = {entry["name"].rpartition(" ")[2] for entry in found["customBiggerIsBetter.json"]}
    assert "speedup" in bigger
    assert "abs_latency" not in bigger
    assert all(entry["extra"].startswith("./torchbench.py") for entry in found.popitem()[1])


def test_benchmark_database_has_a_record_for_each_metric() -> None:
    """Version 3; how an arm ended is extra, as a value is a number."""
    run = stored.run_of([passing(), failing()])
    found = [json.loads(line) for line in text(benchmark_database.export, run).splitlines()]
    words = {
        each["model"]["name"]: each["metric"]["extra_info"]["benchmark_values"]
        for each in found
        if each["metric"]["name"] == "accuracy"
    }
    assert words == {"alexnet": ["pass"], "resnet18": ["fail_to_run"]}
    assert {each["schema_version"] for each in found} == {"v3"}
    numbers = [each for each in found if each["metric"]["name"] != "accuracy"]
    assert {each["model"]["name"] for each in numbers} == {"alexnet"}
    for each in found:
        infos = (each["benchmark"]["extra_info"], each["metric"].get("extra_info", {}))
        assert all(isinstance(value, str | list) for info in infos for value in info.values())
    assert all(isinstance(each["metric"]["benchmark_values"][0], int | float) for each in numbers)


def test_openmetrics_keeps_to_the_grammar() -> None:
    """Each line is one of the format's; a family is in one piece, its samples differ."""
    hostile = [stored.renamed(each, 'a "b"\\c\nd') for each in passing()]
    lines = text(openmetrics.export, stored.run_of([passing(), hostile, failing()]))
    found = lines.splitlines()
    assert [line for line in found if not LINES.fullmatch(line)] == []
    assert found[-1] == "# EOF"
    types = [line.split()[2] for line in found if line.startswith("# TYPE")]
    assert len(set(types)) == len(types)
    units = dict(line.split()[2:] for line in found if line.startswith("# UNIT"))
    assert all(name.endswith(f"_{unit}") for name, unit in units.items())
    samples = [line.rpartition(" ")[0] for line in found if not line.startswith("#")]
    assert len(set(samples)) == len(samples)
    families = [name.partition("{")[0] for name in samples]
    assert sorted(set(families), key=families.index) == types
    # The textfile collector drops the whole file where it doesn't know a type.
    assert {line.split()[3] for line in found if line.startswith("# TYPE")} == {"gauge"}


def test_openmetrics_of_letters_beyond_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    """As columns of plugins may have: names hold none, and are as different as before."""
    (first, *_) = certain_figures(stored.run_of([passing()]))
    columns = [
        dataclasses.replace(first.column, name=name, unit=unit)
        for name in ("größe", "grüße", "latenz")
        for unit in ("µs", "s")
    ]
    found = [dataclasses.replace(first, column=each) for each in columns]
    monkeypatch.setattr(openmetrics, "certain_figures", lambda _: found)
    lines = text(openmetrics.export, stored.run_of([passing()])).splitlines()
    assert [line for line in lines if not LINES.fullmatch(line)] == []
    values = [line.rpartition(" ")[0] for line in lines if line.startswith("dynamometer_")]
    assert len(set(values)) == len(values)
    assert "# UNIT dynamometer_latenz_seconds seconds" in lines


def test_openmetrics_has_base_units() -> None:
    """Seconds and bytes, whatever the column has."""
    found = text(openmetrics.export, stored.run_of([passing()]))
    (line,) = re.findall(r"^dynamometer_abs_latency_seconds\{.*\} (.*)$", found, re.MULTILINE)
    assert float(line) == pytest.approx(0.005, rel=0.01)
    assert 'dynamometer_passed{suite="torchbench",model="alexnet"' in found
    for status in (Status.CRASH, Status.SKIP, Status.INFRA):
        found = text(openmetrics.export, stored.run_of([failing(status=status)]))
        assert ("dynamometer_passed{" in found) is (status is Status.CRASH)


@pytest.mark.parametrize(
    ("status", "tag"),
    [
        (Status.FAIL_ACCURACY, "failure"),
        (Status.NONDETERMINISTIC, "failure"),
        (Status.FAIL, "failure"),
        (Status.TIMEOUT, "error"),
        (Status.CRASH, "error"),
        (Status.OOM, "error"),
        (Status.INFRA, "error"),
        (Status.SKIP, "skipped"),
    ],
)
def test_junit_says_how_an_arm_ended(status: Status, tag: str) -> None:
    """A wrong result is a failure, none an error; control characters are gone, the rest is text."""
    suite = ET.fromstring(text(junit.export, stored.run_of([failing(status=status)])))[0]
    (case,) = suite.iter("testcase")
    assert case.get("classname") == "torchbench.inference.inductor"
    (found,) = case.iter(tag)
    assert "no <such> operator\ufffd[0m & none" in (found.get("message") or "")
    if tag != "skipped":
        assert found.get("type") == status
        assert "to repeat: ./torchbench.py --only resnet18" in (found.text or "")
    counted = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    plural = {"failure": "failures", "error": "errors", "skipped": "skipped"}[tag]
    zeros = dict.fromkeys(("failures", "errors", "skipped"), "0")
    assert counted == {"tests": "1", **zeros, plural: "1"}


EXPORTS: tuple[Export, ...] = (
    action_benchmark.export, bencher.export, benchmark_database.export, expected_accuracy.export,
    junit.export, markdown.step_summary, openmetrics.export, pytorch_csv.export,
)  # fmt: skip
OBEYED = "\x1b\x7f\x9b\u202e\u2028\U000e0001"


@pytest.mark.parametrize("export", EXPORTS)
def test_no_export_holds_what_a_terminal_obeys(export: Export) -> None:
    """Nor what shows text in another order than it has."""
    records = [*passing(f"a{OBEYED}"), *failing(f"b{OBEYED}")]
    told = [msgspec.structs.replace(each, command=f"./x.py {OBEYED}") for each in records]
    found = "".join(each.text for each in export(stored.run_of([told[:3], told[3:]])))
    assert not set(OBEYED) & set(found)
    assert all(is_shown(each) or each == "\n" for each in found)


def test_what_is_escaped_is_read_as_it_was() -> None:
    """JSON loses nothing by it."""
    assert json.loads(json_text([OBEYED, "ö"])) == [OBEYED, "ö"]
    assert "ö" in json_text("ö")


@pytest.mark.parametrize("export", [each for each in EXPORTS if each is not markdown.step_summary])
def test_spaces_of_every_script_are_kept(export: Export) -> None:
    """U+3000 and U+00A0 are obeyed by no terminal; a table of Markdown has a plain space."""
    run = stored.run_of([passing("a\u3000b\u00a0c"), failing("d\u3000e\u00a0f")])
    found = "".join(each.text for each in export(run))
    assert "a\u3000b\u00a0c" in found or "d\u3000e\u00a0f" in found


def test_junit_skips_what_was_not_run() -> None:
    """A case that an interrupted run did not come to is no pass."""
    run = stored.run_of([passing()], factories.case("dcgan"))
    suite = ET.fromstring(text(junit.export, run))[0]
    skipped = [
        case.get("name") for case in suite.iter("testcase") if case.find("skipped") is not None
    ]
    assert skipped == ["dcgan"]


def test_what_has_not_ended_is_exported_but_not_counted_as_ended() -> None:
    """One of three replicates is a result, with the interval it has; the run is told as it is."""
    run = stored.run_of([passing()], begun=[passing("dcgan")[:1]])
    assert [each.case.model for each in run.endings()] == ["alexnet", "dcgan"]
    assert {each.case.model for each in figures(run)} == {"alexnet", "dcgan"}
    assert "**Interrupted: 1 of 2 cases have ended.**" in text(markdown.step_summary, run)


def test_expected_accuracy_is_sorted_and_has_their_columns() -> None:
    """A row for each model, counts as they were captured."""
    capture = CaptureStats(frames=2, frames_ok=2, graphs=2, ops=9, breaks={"a": 1, "b": 2})
    arms = (
        ArmResult(arm=BASELINE, outcome=factories.PASSED),
        ArmResult(arm="inductor", outcome=factories.PASSED, capture=capture),
    )
    captured = [factories.record(factories.case("alexnet"), arms=arms)]
    documents = expected_accuracy.export(stored.run_of([failing(), captured]))
    assert [each.name for each in documents] == ["inductor_torchbench_inference.csv"]
    assert documents[0].text == (
        "name,accuracy,graph_breaks\n\n\n\nalexnet,pass,3\n\n\n\nresnet18,fail_to_run,\n"
    )


def test_names_in_tables_are_read_as_they_were(tmp_path: Path) -> None:
    """Also those that a spreadsheet would take for formulas."""
    names = {"=a", "'=a", "'a", "-b", "+c", "@d", "e"}
    run = stored.run_of([[factories.record(factories.case(each))] for each in sorted(names)])
    (table,) = expected_accuracy.export(run)
    (tmp_path / table.name).write_text(table.text)
    assert set(their_expected.read_table(tmp_path / table.name)) == names
    for file in pytorch_csv.export(run):
        (tmp_path / "csv").mkdir(exist_ok=True)
        (tmp_path / "csv" / file.name).write_text(file.text)
    found = read_files(tmp_path / "csv").entries
    assert {each.identity["model"] for each in found} == names


def test_their_csv_has_zeros_and_their_columns_alone() -> None:
    """As `--csv-compat` writes them."""
    documents = pytorch_csv.export(stored.run_of([passing(), failing()]))
    performance = documents[0].text.splitlines()
    assert performance[0].startswith("dev,name,batch_size,speedup,abs_latency,compilation_latency,")
    assert set(performance[2].split(",")[3:]) == {"0"}


@pytest.mark.parametrize(
    ("export", "most_bytes"),
    [(markdown.step_summary, 2**20), (markdown.comment, 65_536)],
    ids=["summary", "comment"],
)
@pytest.mark.parametrize(
    "failures", [0, pytest.param(4000, marks=pytest.mark.slow)], ids=["passing", "failing"]
)
def test_markdown_keeps_to_the_limit(export: Export, most_bytes: int, failures: int) -> None:
    """Rows are cut with a word, those that passed first; no line is cut in two."""
    long = {"command": f"./torchbench.py {'-k x ' * 60}"}
    cases = [
        [msgspec.structs.replace(record, **long) for record in failing(f"bad_model_{each}")]
        for each in range(failures)
    ]
    cases += [passing(f"model_{each}ü") for each in range(40)]
    page = text(export, stored.run_of(cases))
    assert most_bytes * (0.9 if failures else 0) < len(page.encode()) <= most_bytes
    assert ("more models, too many for GitHub" in page) == (failures > 0)
    assert ("more failures, too many for GitHub" in page) == (failures > 0)
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in table)


def test_markdown_shows_text_as_it_is() -> None:
    """Markup, HTML and mentions in names and reasons are shown, not obeyed."""
    hostile = [stored.renamed(each, "<b>*x*|`y`") for each in failing()]
    reason = factories.failure(reason="see ```text @octocat <img src=x>\n# big")
    run = stored.run_of([hostile, [factories.record(outcome=reason)]])
    page = text(markdown.comment, run)
    assert page.startswith(markdown.MARKER)
    outside = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", page.replace(markdown.MARKER, ""))
    assert r"\<b>\*x\*\|\`y\`" in outside
    assert not re.search(r"(?<!\\)<|@octocat|^# big", outside, re.MULTILINE)


def test_markdown_says_that_a_run_was_interrupted() -> None:
    """Before anything else."""
    run = stored.run_of([passing()], factories.case("dcgan"), factories.case("vgg16"))
    assert "**Interrupted: 1 of 3 cases have ended.**" in text(markdown.step_summary, run)
