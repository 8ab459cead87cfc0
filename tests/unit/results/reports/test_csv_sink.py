"""What a reader of a CSV, ours or PyTorch's, can take for a result."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.reports.console import Console
from dynamometer.results.reports.csv_sink import CsvFiles
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.store.bounds import name_in_file
from dynamometer.results.store.expected import observed
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Absence, Status

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from dynamometer.results.values.records import Outcome, Record

Rows = dict[str, list[dict[str, str]]]

ARMS = (BASELINE, "inductor", "ts")
WRONG = factories.failure(Status.FAIL_ACCURACY, factories.Stage.COMPARE, "output: error 0.5")
IDENTITY = {"dev", "name", "batch_size"}
TIMED = {"speedup", "abs_latency"}


def written(folder: Path, records: Iterable[Record], *, compatible: bool = False) -> Rows:
    """Write a case, and read the rows of each file by how its name begins and ends."""
    sink = CsvFiles(STUDY, factories.destination(folder, is_compatible=compatible))
    sink.write(list(records))
    sink.close()
    found = {}
    for path in sink.paths:
        name = path.stem.replace("_torchbench_float32_inference_cpu", "")
        with path.open(newline="") as file:
            found[name] = list(csv.DictReader(file))
    return found


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("@SUM(1)", "'@SUM(1)"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("a\nb\x1b[2Jc", "a b [2Jc"),
        ("usual-name", "usual-name"),
    ],
)
def test_a_cell_is_one_line_and_no_formula(tmp_path: Path, name: str, cell: str) -> None:
    """Whatever a model is called, in a run of others too."""
    rows = written(tmp_path, [factories.measured_record(factories.case(name))])
    assert {row["name"] for of_file in rows.values() for row in of_file} == {cell}


def printed(records: Iterable[Record]) -> str:
    """Return the line of a case."""
    stream = io.StringIO()
    Console(STUDY, factories.destination(stream=stream)).write(list(records))
    return stream.getvalue()


def one_arm_wrong(outcome: Outcome = WRONG) -> list[Record]:
    """Make a case of three arms, everything of which was measured, with one that did not pass."""
    record = factories.measured_record(factories.case(arms=ARMS))
    arms = tuple(
        msgspec.structs.replace(each, outcome=outcome) if each.arm == "inductor" else each
        for each in record.arms
    )
    return [msgspec.structs.replace(record, arms=arms, outcome=outcome)]


def disturbed() -> list[Record]:
    """Make a case most blocks of which something else disturbed."""
    record = factories.measured_record(factories.case(arms=ARMS))
    return [msgspec.structs.replace(record, disturbed_blocks=(0, 1, 2))]


@pytest.mark.parametrize("status", [each for each in Status if each is not Status.PASS])
def test_an_arm_that_did_not_pass_leaves_nothing_to_read(tmp_path: Path, status: Status) -> None:
    """In ours a status, a reason and counts of what was captured; not one figure of its own."""
    rows = written(tmp_path, one_arm_wrong(factories.failure(status, reason="so it was")))
    (row,) = rows["inductor_performance"]
    figures = {key for key, value in row.items() if value and key not in IDENTITY}
    assert figures == {
        "calls_captured", "unique_graphs", "fallbacks_to_eager", "graph_breaks",
        "unique_graph_breaks", "frames_ok", "frames", "recompiles", "guards", "fallbacks",
        "shapes", "status", "stage", "reason", "scale", "eager_peak_mem", "eager_latency",
        "eager_calls_mem", "eager_residue_mem", "isolated", "interference", "disturbed",
    }  # fmt: skip
    assert (row["status"], row["reason"]) == (status, "so it was")
    assert rows["ts_performance"][0]["speedup"]
    assert "backends_pairs" not in rows


def test_their_columns_hold_0_of_an_arm_that_did_not_pass(tmp_path: Path) -> None:
    """As PyTorch's harness writes it; their other file says what became of the arm."""
    rows = written(tmp_path, one_arm_wrong(), compatible=True)
    (row,) = rows["inductor_performance"]
    assert {value for key, value in row.items() if key not in IDENTITY} == {"0"}
    assert row["name"] == "alexnet"
    assert rows["inductor_accuracy"][0]["accuracy"] == "fail_accuracy"
    assert float(rows["ts_performance"][0]["speedup"]) == pytest.approx(1.25)
    assert rows["ts_accuracy"][0]["accuracy"] == "pass"


def test_their_columns_hold_no_speedup_of_a_disturbed_case(tmp_path: Path) -> None:
    """They have no place for a mark; compile time, memory and capture were not disturbed."""
    rows = written(tmp_path, disturbed(), compatible=True)
    (row,) = rows["inductor_performance"]
    none = {"fallbacks_to_eager", "autograd_captures", "autograd_compiles", "cudagraph_skips"}
    assert {key for key, value in row.items() if value == "0"} == TIMED | none
    assert rows["inductor_accuracy"][0]["accuracy"] == "pass"


def test_ours_mark_a_disturbed_case_wherever_its_speedup_stands(tmp_path: Path) -> None:
    """In each arm's file and in that of pairs, with no verdict but UNCLEAR, and none that pays."""
    rows = written(tmp_path, disturbed())
    for name in ("inductor_performance", "ts_performance", "backends_pairs"):
        (row,) = rows[name]
        assert row["speedup"]
        assert (row["disturbed"], row["interference"]) == ("True", "False")
        assert (row["verdict"], row["adjusted_p_value"]) == ("UNCLEAR", "")
        assert not row.get("breakeven_calls")
    assert printed(disturbed()).rstrip().endswith("DISTURBED")
    assert "pays" not in printed(disturbed())


def test_all_say_the_same_of_an_arm_that_did_not_pass(tmp_path: Path) -> None:
    """Line, CSV, expected results and record; no speedup of it in any."""
    records = one_arm_wrong()
    (row,) = written(tmp_path, records)["inductor_performance"]
    line = printed(records)
    table = {arm: each.status for (_, arm), each in observed([summarize_case(records)]).items()}
    assert "inductor FAIL_ACCURACY (compare) output: error 0.5  ts 1.250x" in line
    assert table == {"inductor": "fail_accuracy", "ts": "pass"}
    assert row["status"] == records[0].arms[1].outcome.status == table["inductor"]


def test_all_say_why_an_arm_that_passed_was_not_timed(tmp_path: Path) -> None:
    """The reason its record has; it is no failure."""
    record = factories.measured_record()
    records = [
        msgspec.structs.replace(
            record,
            measurements=tuple(each for each in record.measurements if each.metric != "latency"),
            absent=(Absence(metric="latency", arm="inductor", reason="nobody to beat"),),
        )
    ]
    (row,) = written(tmp_path, records)["inductor_performance"]
    assert (row["status"], row["reason"], row["speedup"]) == ("pass", "nobody to beat", "")
    assert printed(records).rstrip().endswith("not measured: nobody to beat")


def test_memory_has_a_spread_and_its_parts(tmp_path: Path) -> None:
    """Of calls and of what compiling left behind, in GB, over the replicates that measured it."""
    records = [
        factories.measured_record(
            replicate=each, peaks_mib={"inductor": peak}, residues_mib={"inductor": residue}
        )
        for each, (peak, residue) in enumerate(((100.0, 36.0), (104.0, 30.0), (101.0, 33.0)))
    ]
    (row,) = written(tmp_path, records)["inductor_performance"]
    mib = {
        key: round(float(value) * 1e9 / factories.MIB)
        for key, value in row.items()
        if key.endswith(("_mem", "_mem_low", "_mem_high"))
    }
    assert mib == {
        "eager_peak_mem": 400, "dynamo_peak_mem": 401,
        "calls_mem": 101, "calls_mem_low": 100, "calls_mem_high": 104,
        "residue_mem": 33, "residue_mem_low": 30, "residue_mem_high": 36,
        "eager_calls_mem": 100, "eager_residue_mem": 30,
    }  # fmt: skip
    assert row["memory_n"] == "3"
    assert float(row["compression_ratio"]) == pytest.approx(400 / 401, rel=1e-5)


@pytest.mark.parametrize("compatible", [False, True])
def test_no_memory_ratio_is_explained_alike(tmp_path: Path, *, compatible: bool) -> None:
    """In the CSV and below the table; PyTorch's column has 0, which their mean leaves out."""
    measured = factories.measured_record(residues_mib={"baseline": 0.0, "inductor": 30.0})
    records = [factories.of_small_model(measured)]
    (row,) = written(tmp_path, records, compatible=compatible)["inductor_performance"]
    reason = "the arm leaves 30 MiB behind and needs 21 MiB"
    assert row["compression_ratio"] == ("0" if compatible else "")
    assert compatible or row["no_compression_ratio"] == reason
    stream = io.StringIO()
    console = Console(STUDY, factories.destination(stream=stream))
    console.write(records)
    console.close()
    assert f"no memory ratio:\n  alexnet: {reason}\n" in stream.getvalue()


def test_arms_of_any_length_have_files() -> None:
    """No file system allows names of more than 255 bytes; those of two arms differ."""
    settings = ",".join(f"config.setting_{number}=True" for number in range(20))
    arms = [f"inductor:{settings},{last}" for last in ("freezing", "cpp-wrapper")]
    names = [name_in_file(arm) for arm in (*arms, "\u00e4" * 300, "inductor:freezing")]
    assert max(len(each.encode()) for each in names) < 150
    assert len(set(names)) == 4
    assert names[-1] == "inductor-freezing"


@pytest.mark.parametrize("compatible", [False, True])
def test_arms_that_differ_in_signs_alone_have_files_of_their_own(
    tmp_path: Path, *, compatible: bool
) -> None:
    """In one, nobody could tell the rows of one from those of the other."""
    case = factories.case(arms=(BASELINE, "mine:compile", "mine.compile", "ts"))
    found = written(tmp_path, [factories.measured_record(case)], compatible=compatible)
    timed = [each for each in found if each.endswith("_performance")]
    assert len(timed) == 3
    assert "ts_performance" in timed
    assert sum(each.startswith("mine-compile-") for each in timed) == 2
    assert all(len(found[each]) == 1 for each in timed)
