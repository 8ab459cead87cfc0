"""`dynamometer compare`: what it reads, refuses and returns."""

from __future__ import annotations

import shutil
from pathlib import Path

import factories
import msgspec
import pytest
from test_start_up import start

from dynamometer.common.command_line import cli
from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.reports.csv_sink import CsvFiles
from dynamometer.results.statistics.summary import by_case
from dynamometer.results.store import store

ROOT = Path(__file__).resolve().parents[4]
STORED = ROOT / "tests" / "golden"
BEFORE, AFTER = (str(STORED / "comparison" / each) for each in ("before", "after"))

SMALL = str(STORED / "format_2" / "speedup")


@pytest.mark.parametrize("form", ["--json", "--markdown", None])
def test_it_never_imports_torch(tmp_path: Path, form: str | None) -> None:
    """Nor the packages of models, nor what only a live display needs."""
    words = ["-m", "dynamometer", "compare", BEFORE, AFTER, *([form] if form else [])]
    ended = start(ROOT, *words)
    assert ended.code == 0, ended.err
    assert "resnet18" in ended.out
    assert not ended.imported & {"torch", "torchvision", "timm", "transformers", "rich", "pyarrow"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["--fail-on", "regression"], 1),
        (["--fail-on", "captures-less,unclear"], 0),
        (["--fail-on", "passrate<50,speedup<1.0"], 0),
        (["--fail-on", "gone,speedup<3"], 1),
        (["--run-sd", "0.2", "--fail-on", "slower,faster"], 0),
        (["--arm", "inductor"], 0),
    ],
)
def test_exit_codes(words: list[str], code: int) -> None:
    """1 where a condition holds."""
    assert cli.main(None, ["compare", BEFORE, AFTER, *words]) == code


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["nowhere", AFTER],
            ["there is no nowhere, nor a run of that name in runs", "no such tag"],
        ),
        ([str(STORED), AFTER], ["holds neither manifest.json", "nor a CSV file"]),
        ([BEFORE, str(ROOT / "README.md")], ["is no CSV file of PyTorch's harness"]),
        ([BEFORE], ["with one run give two arms", "--arm NAME --arm NAME"]),
        ([BEFORE, "--arm", "inductor"], ["with one run give two arms"]),
        ([BEFORE, AFTER, *["--arm", "inductor"] * 3], ["--arm is given once or twice"]),
        ([BEFORE, AFTER, "--arm", "ts"], ["has no arm 'ts'; it has inductor"]),
        ([BEFORE, AFTER, "--fail-on", "slow"], ["--fail-on: 'slow' is no condition", "passrate<N"]),
        ([BEFORE, AFTER, "--fail-on", ""], ["--fail-on names no condition"]),
        ([BEFORE, AFTER, "--fail-on", " ,"], ["--fail-on names no condition"]),
        ([BEFORE, AFTER, "--json", "--markdown"], ["contradict each other"]),
        ([SMALL, str(STORED / "format_3" / "speedup")], ["threads", "--force"]),
        ([BEFORE, str(STORED / "format_2" / "coverage")], ["different questions"]),
    ],
)
def test_what_is_refused(
    words: list[str], says: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2, before anything is printed."""
    assert cli.main(None, ["compare", *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    for text in says:
        assert text in output.err


def test_a_forced_comparison_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """In every form."""
    paths = [str(STORED / form / "speedup") for form in ("format_2", "format_3")]
    marks = {"": "FORCED:", "--markdown": "**FORCED**", "--json": '"is_forced": true'}
    for form, says in marks.items():
        assert cli.main(None, ["compare", *paths, "--force", *filter(None, [form])]) == 0
        assert says in capsys.readouterr().out


@pytest.mark.parametrize("study", ["accuracy", "batch_sizes", "coverage", "sizes", "speedup"])
def test_stored_runs_of_every_study(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of an earlier format, too; beside itself nothing of it has changed, as far as is known.

    No speedup of it could be judged, as something disturbed it.
    """
    run = str(STORED / "format_2" / study)
    assert cli.main(None, ["compare", run, run]) == 0
    text = capsys.readouterr().out
    assert "nothing newly failing, newly passing, gone or new; no speedup was judged" in text
    assert "Passrate" in text


def test_coverage_is_compared_by_what_is_captured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The study says so, as it alone reads what it found."""
    before, after = STORED / "format_3" / "coverage", tmp_path / "after"
    shutil.copytree(before, after)
    text = (after / "events.jsonl").read_text()
    captured = text.split('"captured_ops":')[1].split(",")[0]
    (after / "events.jsonl").write_text(
        text.replace(f'"captured_ops":{captured},', f'"captured_ops":{int(captured) - 1},', 1)
    )
    assert cli.main(None, ["compare", str(before), str(after), "--fail-on", "captures-less"]) == 1
    assert f"{captured} captured ops became {int(captured) - 1}" in capsys.readouterr().out


def test_a_run_is_found_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the directory of runs."""
    words = ["compare", "before", "after", "--output-dir", str(STORED / "comparison"), "--json"]
    assert cli.main(None, words) == 0
    assert '"run_id": "after"' in capsys.readouterr().out


def test_our_files_in_their_columns_say_what_the_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--csv-compat` of two runs: the same statuses, and speedups with the error of a guess."""
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        sink = CsvFiles(STUDY, factories.destination(tmp_path / name, is_compatible=True))
        for records in by_case(store.read_records(STORED / "comparison" / name)):
            sink.write(records)
        sink.close()
    words = ["compare", str(tmp_path / "before"), str(tmp_path / "after"), "--json"]
    assert cli.main(None, words) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    found = {(each["change"], each["model"]) for each in told["findings"]}
    assert ("newly failing", "<script>|a_b") in found
    assert ("newly passing", "squeezenet1_1") in found
    assert ("gone", "vgg16") in found
    assert ("unclear", "resnet18") in found  # 7 % of numbers that may be off by more
    assert "slower" not in {change for change, _ in found}


def test_a_run_with_one_that_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Cases are paired by what both know; what a file doesn't tell is said."""
    path = tmp_path / "inductor_torchbench_float32_inference_cpu_performance.csv"
    path.write_text("dev,name,batch_size,speedup\ncpu,resnet18,4,1.1\ncpu,alexnet,4,0.98\n")
    assert cli.main(None, ["compare", BEFORE, str(path)]) == 0
    text = capsys.readouterr().out
    assert "slower (1):\n  torchbench/resnet18" in text
    assert (
        "(after) is CSV: it says nothing of scale, settings, versions, threads or hardware" in text
    )


def test_a_run_with_a_file_of_any_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Which doesn't tell suite or arm: `--arm` says which is meant."""
    path = tmp_path / "monday.csv"
    path.write_text("dev,name,batch_size,speedup\ncpu,resnet18,4,1.1\ncpu,alexnet,4,0.98\n")
    assert cli.main(None, ["compare", BEFORE, str(path)]) == 2
    assert "after has resnet18 compiled, alexnet compiled" in capsys.readouterr().err
    words = ["compare", BEFORE, str(path), "--arm", "inductor", "--arm", "compiled"]
    assert cli.main(None, words) == 0
    assert "slower (1):\n  resnet18 compiled" in capsys.readouterr().out


def test_a_run_of_which_nothing_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to compare."""
    store.create(tmp_path / "new", factories.manifest())
    assert cli.main(None, ["compare", str(tmp_path / "new"), AFTER]) == 2
    assert "holds no record" in capsys.readouterr().err
