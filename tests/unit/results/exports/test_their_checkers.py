"""PyTorch's own checkers read our CSV files and say what they should.

Run where TORCHBENCH_ROOT names a checkout of pytorch/benchmark that has them, or PYTORCH_ROOT one
of pytorch/pytorch, and where this Python, or that of PANDAS_PYTHON, has pandas.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import pytest
import stored

from dynamometer.results.exports import expected_accuracy, pytorch_csv
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.values.records import Record

FOLDERS = [
    Path(os.environ.get("PYTORCH_ROOT", "/no/where"), "benchmarks/dynamo"),
    Path(os.environ.get("TORCHBENCH_ROOT", "/no/where"), "userbenchmark/dynamo/dynamobench"),
]
THEIRS = next((each for each in FOLDERS if (each / "check_accuracy.py").is_file()), None)
PYTHON = os.environ.get("PANDAS_PYTHON", sys.executable)


def have_pandas() -> bool:
    """Return whether the checkers can be run."""
    found = subprocess.run([PYTHON, "-c", "import pandas"], capture_output=True, check=False)
    return found.returncode == 0


pytestmark = [
    pytest.mark.skipif(THEIRS is None, reason="neither root names a checkout with checkers"),
    pytest.mark.skipif(THEIRS is not None and not have_pandas(), reason="no pandas here"),
]


def check(script: str, *words: str) -> tuple[int, str]:
    """Run one of their scripts, and return its exit code and what it prints."""
    assert THEIRS is not None
    done = subprocess.run(
        [PYTHON, str(THEIRS / script), *words], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def run(inductor_s: float = 0.005, *, failed: str = "") -> StoredRun:
    """Store a run of two models, one of which may have failed."""
    cases: list[list[Record]] = []
    for model in ("alexnet", "resnet18"):
        case = factories.case(model)
        if model == failed:
            outcome = factories.failure(Status.FAIL_ACCURACY, factories.Stage.COMPARE)
            cases.append([factories.record(case, outcome=outcome)])
        else:
            seconds = {BASELINE: 0.010, "inductor": inductor_s}
            cases.append([factories.measured_record(case, seconds=seconds)])
    return stored.run_of(cases)


def written(folder: Path, of: StoredRun) -> dict[str, str]:
    """Write the CSV files and the table of a run; return their paths by kind."""
    found = {}
    for document in (*pytorch_csv.export(of), *expected_accuracy.export(of)):
        path = folder / document.name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(document.text)
        kind = path.stem.rpartition("_")[2]
        found["expected" if kind == "inference" else kind] = str(path)
    return found


def test_check_accuracy_passes_what_is_as_expected(tmp_path: Path) -> None:
    """A run against the table that was made of it: passes, and a failure that is expected."""
    ours = written(tmp_path, run(failed="resnet18"))
    code, said = check(
        "check_accuracy.py", "--actual", ours["accuracy"], "--expected", ours["expected"]
    )
    assert [line.split() for line in said.splitlines()] == [
        ["alexnet", "PASS"],
        ["resnet18", "XFAIL"],
    ]
    assert code == 0


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("", "resnet18", "FAIL:     accuracy=fail_accuracy, expected=pass"),
        ("resnet18", "", "IMPROVED: accuracy=pass, expected=fail_accuracy"),
    ],
)
def test_check_accuracy_names_what_changed(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    """A regression and an improvement, by the model's name; both end with 1."""
    expected = written(tmp_path / "before", run(failed=before))["expected"]
    actual = written(tmp_path / "after", run(failed=after))["accuracy"]
    code, said = check("check_accuracy.py", "--actual", actual, "--expected", expected)
    assert code == 1
    assert words in said


def test_check_perf_csv_reads_our_speedups(tmp_path: Path) -> None:
    """Twice as fast is over a threshold of 1.9 and under one of 2.1."""
    file = written(tmp_path, run())["performance"]
    code, said = check("check_perf_csv.py", "-f", file, "-t", "1.9")
    assert code == 0
    assert "speedup=2.000x" in said
    code, said = check("check_perf_csv.py", "-f", file, "-t", "2.1")
    assert code == 1
    assert "alexnet resnet18" in said


def test_check_perf_csv_fails_on_an_arm_that_did_not_pass(tmp_path: Path) -> None:
    """Its 0 is below every threshold."""
    file = written(tmp_path, run(failed="resnet18"))["performance"]
    code, said = check("check_perf_csv.py", "-f", file, "-t", "1.9")
    assert code == 1
    assert "Error: 1 model(s) performance regressed\n    resnet18" in said
