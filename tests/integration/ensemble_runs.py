"""Runs with `ensemble` over candidates of the tests' own, and what these decide."""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.command_line import cli
from dynamometer.results.store import store
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.values.choices import Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.decisions import Decision
    from dynamometer.results.values.records import ArmResult

CANDIDATES = Path(__file__).resolve().parent / "candidates.py"
DECISIONS = Path("runs", "decisions.sqlite")


def words(folder: Path, model: str, candidates: Sequence[str], *more: str) -> list[str]:
    """Return the words that run a model, with decisions over some candidates, in a folder.

    A graph is measured once: nothing here depends on how well a speedup is known.
    """
    chosen = [word for name in candidates for word in ("--candidate", f"candidates:{name}")]
    return [
        *("run", f"{CANDIDATES}::{model}", "--backend", "ensemble", "-n", "2", "-t", "1"),
        *(
            *chosen,
            "--tuning-seconds",
            "0.001",
            "--accuracy",
            "--output-dir",
            str(folder / "runs"),
            *more,
        ),
    ]


def run(arguments: Sequence[str]) -> str:
    """Run the program to the end, and give what was said on the way."""
    with redirect_stderr(StringIO()) as said:
        assert cli.main(None, arguments) == 0, said.getvalue()
    return said.getvalue()


def decisions(path: Path) -> dict[Subject, list[Decision]]:
    """Read what was decided."""
    found = Decisions(path).all()
    return {subject: [each for each in found if each.subject is subject] for subject in Subject}


def run_directory(folder: Path) -> Path:
    """Return the directory of the one run in a folder."""
    (directory,) = (each for each in (folder / "runs").iterdir() if each.is_dir())
    return directory


def ensemble_result(folder: Path) -> ArmResult:
    """Return what became of `ensemble` in the one run in a folder, which passed."""
    (record,) = store.read_records(run_directory(folder))
    (result,) = (each for each in record.arms if each.arm == "ensemble")
    return result
