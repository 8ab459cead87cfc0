"""The workflow that users copy does what it says, but for what is GitHub's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = yaml.safe_load((ROOT / "examples" / "github-workflow.yml").read_text())
(JOB,) = WORKFLOW["jobs"].values()
STEPS: list[dict[str, Any]] = [each for each in JOB["steps"] if "run" in each]
SMALL = "--only lennard_jones --scale tiny --backend aot_eager -r 1 -n 20"
GATED = 1
"""Exit code of a gate: two runs of so little may differ in truth."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A runner's folder: two checkouts, our command, and stand-ins for what reaches outside."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, line in (
        ("dynamometer", f'exec "{sys.executable}" -m dynamometer "$@"'),
        ("pip", f'echo "pip $@" >> "{tmp_path}/outside.txt"'),
        ("gh", f'echo "gh $@" >> "{tmp_path}/outside.txt"; cat "{tmp_path}/answer.txt"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "answer.txt").touch()
    for name in ("base", "head"):
        (tmp_path / name).mkdir()
    return tmp_path


def run_step(home: Path, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does, with its job's environment and few models."""
    own = {name: value for name, value in step.get("env", {}).items() if "${{" not in str(value)}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=home / step.get("working-directory", ""),
        env={
            **os.environ,
            **JOB["env"],
            **own,
            "OPTIONS": SMALL,
            "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(home / "summary.md"),
            "PULL_REQUEST": "https://example.org/pull/1",
            "COMMENTS": "repos/me/mine/issues/1/comments",
            "COMMENT": "repos/me/mine/issues/comments",
        },
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )


def test_every_command_of_the_workflow_runs(home: Path) -> None:
    """From two runs to a summary, a report of tests, CSV files, a comparison and a comment."""
    assert sum(bool(re.search("^dynamometer ", step["run"], re.MULTILINE)) for step in STEPS) == 5
    for step in STEPS:
        done = run_step(home, step)
        allowed = {0, GATED} if "dynamometer compare" in step["run"] else {0}
        assert done.returncode in allowed, (step["name"], done.stdout, done.stderr)
    assert (home / "summary.md").read_text().startswith("## Dynamometer: torchbench, speedup")
    suite = ET.parse(home / "junit.xml").getroot()[0]
    assert [case.get("name") for case in suite.iter("testcase")] == ["lennard_jones"]
    assert len(list((home / "csv").iterdir())) == 2
    compared = (home / "comparison.md").read_text()
    assert (home / "summary.md").read_text().endswith(compared)
    assert (home / "comment.md").read_text() == f"<!-- dynamometer torchbench -->\n{compared}"
    assert (
        "gh pr comment https://example.org/pull/1 --body-file comment.md"
        in (home / "outside.txt").read_text()
    )


def test_a_later_comment_takes_the_place_of_the_one_before(home: Path) -> None:
    """Of this workflow's: what others say in the same name stays."""
    (step,) = (each for each in STEPS if "gh pr comment" in each["run"])
    (home / "comparison.md").write_text("## What differs\n")
    (home / "answer.txt").write_text("17\n23\n")
    done = run_step(home, step)
    assert done.returncode == 0, done.stderr
    asked, told = (home / "outside.txt").read_text().splitlines()
    assert asked.startswith("gh api --paginate repos/me/mine/issues/1/comments --jq .[] | select(")
    assert told == (
        "gh api --silent --method PATCH repos/me/mine/issues/comments/23 --field body=@comment.md"
    )


def test_a_comparison_that_was_not_made_is_no_comment(home: Path) -> None:
    """Where measuring failed, the comment of the last time stays."""
    (home / "answer.txt").write_text("17\n")
    for step in STEPS[-2:]:
        assert run_step(home, step).returncode == 0
    assert not (home / "outside.txt").exists()


def test_forks_get_a_summary_alone() -> None:
    """GitHub gives their pull requests no right to comment, which must not fail the job."""
    (step,) = (each for each in STEPS if "gh pr comment" in each["run"])
    is_own = "github.event.pull_request.head.repo.full_name == github.repository"
    assert step["if"] == f"(success() || failure()) && {is_own}"


def test_the_gate_is_the_jobs_own(home: Path) -> None:
    """A comparison that fails fails the job, and is told all the same."""
    names = [step["name"] for step in STEPS]
    compare = STEPS[names.index("Compare")]
    assert "continue-on-error" not in compare
    assert compare["run"].startswith("dynamometer compare ")
    assert STEPS[names.index("Compare") + 1]["if"] == "success() || failure()"
