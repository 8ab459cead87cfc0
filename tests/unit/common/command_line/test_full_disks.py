"""A disk that is full at any byte of any file: it is named, and the run can be finished."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from fakes import FakeExecutor

from dynamometer.results.store import store

if TYPE_CHECKING:
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[4]
TESTS = (ROOT, ROOT / "tests", Path(__file__).parent)
PROGRAM = """
import contextlib, io, json, resource, sys
from pathlib import Path
from dynamometer.common.command_line import cli

def said(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = cli.main("torchbench" if words[0].startswith("-") else None, list(words))
    return code, out.getvalue()

for size in json.loads(sys.argv[1]):
    home = f"runs-{size}"
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    code, text = said("--only", "alexnet", "--only", "resnet18", "--accuracy", "--output-dir", home,
                      "--executor", "test_full_disks:checking")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    again = [said("resume", str(each)) for each in Path(home).glob("*")]
    print(json.dumps([size, code, text, again]))
"""
SIZES = (0, 700, 6000, 15_000, 22_000, 30_000, 45_000, 100_000, 10**7)
"""Below and above the lengths of a manifest, of one record, of two, of a CSV file and of a page."""


class Checking(FakeExecutor):
    """Makes records of a run that times nothing, and says something at length."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Leave out latencies."""
        record = super().execute(case, replicate)
        return msgspec.structs.replace(record, measurements=(), notes=("at length " * 2000,))


def checking(manifest: object, directory: Path) -> FakeExecutor:
    """Make records without workers."""
    return Checking(experiments=("accuracy",))


def test_the_file_is_named_and_the_run_can_be_finished(tmp_path: Path) -> None:
    """Whatever could not be written; no traceback, no half-made directory, nothing twice.

    Files may have so many bytes (`ulimit -f`); Python ignores the signal that says so.
    """
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(SIZES)], capture_output=True, text=True,
        check=False, cwd=tmp_path,
        # Python itself leaves a module's code cut off where the disk is full.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, TESTS)),
             "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    kept = []
    for line in ended.stdout.splitlines():
        size, code, said, resumed = json.loads(line)
        assert "Traceback" not in said
        assert ("File too large" in said) == (size < SIZES[-1]), said
        assert ("events.jsonl can't be written" in said) == (code == 3), said
        assert [each[0] for each in resumed] == [0] * len(resumed), resumed
        left = [*(tmp_path / f"runs-{size}").iterdir()]
        for directory in left:
            models = [record.case.model for record in store.read_records(directory)]
            assert sorted(models) == ["alexnet", "resnet18"]
            assert (directory / "report.html").exists()
        kept.append((code, bool(left)))
    assert len(kept) == len(SIZES)
    assert set(kept) == {(2, False), (3, False), (3, True), (0, True)}
