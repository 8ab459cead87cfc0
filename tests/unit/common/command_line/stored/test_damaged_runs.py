"""`rm` of runs that are damaged, or half removed."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.command_line.stored import removal
from dynamometer.results.store import store
from dynamometer.results.values.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of one model, with logs."""
    plan = factories.plan(factories.model_spec("alexnet"))
    directory = tmp_path / "runs" / "one"
    store.create(directory, factories.manifest(plan))
    (directory / "logs").mkdir()
    (directory / "logs" / "alexnet.log").write_text("x")
    with store.RunStore(directory) as events:
        events.append(factories.record(plan.cases[0], stopped=StopReason.REPLICATES))
    return directory


def said(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 0) -> str:
    """Run a command, and return what it prints."""
    assert cli.main(None, [*map(str, words)]) == code
    found = capsys.readouterr()
    return found.out + found.err


def without_events(run: Path) -> None:
    """As a `rm` of earlier versions may have left it."""
    (run / store.EVENTS).unlink()


def without_manifest(run: Path) -> None:
    """Likewise."""
    (run / store.MANIFEST).unlink()


def with_a_damaged_line(run: Path) -> None:
    """No JSON."""
    (run / store.EVENTS).write_text("{\n")


def with_a_manifest_cut_short(run: Path) -> None:
    """As a full disk leaves files of others."""
    os.truncate(run / store.MANIFEST, 100)


def with_a_folder_in_place_of_records(run: Path) -> None:
    """Nothing can be held there."""
    without_events(run)
    (run / store.EVENTS).mkdir()


def with_a_pipe_in_place_of_records(run: Path) -> None:
    """Likewise."""
    without_events(run)
    os.mkfifo(run / store.EVENTS)


DAMAGES = (
    (without_events, "events.jsonl can't be read: No such file"),
    (without_manifest, "is not a run directory: manifest.json"),
    (with_a_damaged_line, "events.jsonl:1 is damaged"),
    (with_a_manifest_cut_short, "manifest.json is damaged"),
    (with_a_folder_in_place_of_records, "events.jsonl can't be read: Is a directory"),
    (with_a_pipe_in_place_of_records, "events.jsonl can't be read: Is a pipe"),
)


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
@pytest.mark.parametrize("by_name", [False, True])
def test_rm_of_a_damaged_run(
    run: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], None],
    why: str,
    *,
    by_name: bool,
) -> None:
    """It says what is damaged, and how that can be removed all the same."""
    damage(run)
    name = ("one", "--output-dir", run.parent) if by_name else (run,)
    found = said(capsys, "rm", "--yes", *name, code=2)
    assert why in found
    assert "--damaged removes" in found
    assert (run / "logs" / "alexnet.log").exists()
    found = said(capsys, "rm", "--yes", "--damaged", *name)
    assert f"{run}: damaged, 0.0 MB" in found
    assert not run.exists()


def test_rm_of_damaged_runs_takes_whole_ones_too(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that all that is wanted gone goes at once."""
    with_a_damaged_line(shutil.copytree(run, run.parent / "two"))
    said(capsys, "rm", "--yes", "--damaged", run, run.parent / "two")
    assert list(run.parent.iterdir()) == []


def refused(capsys: pytest.CaptureFixture[str], directory: Path) -> str:
    """Try to remove a directory as a damaged run, and return why that is refused."""
    before = sorted(directory.rglob("*"))
    found = said(capsys, "rm", "--yes", "--damaged", directory, code=2)
    assert sorted(directory.rglob("*")) == before
    return found


def test_rm_of_damaged_runs_refuses_what_is_none(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A manifest or events may be those of another program; a folder of runs is none."""
    other = tmp_path / "extension"
    other.mkdir()
    (other / store.MANIFEST).write_text('{"manifest_version": 3}')
    assert "--damaged" not in refused(capsys, other)
    (other / store.MANIFEST).unlink()
    for text in ('{"event": "click"}\n', "{\n", "[]\n", ""):
        (other / store.EVENTS).write_text(text)
        assert "--damaged" not in refused(capsys, other)
        (other / store.MANIFEST).write_text('{"short_name": "web"}')  # of one with both
        assert "--damaged" not in refused(capsys, other)
        (other / store.MANIFEST).unlink()
    assert "is not a run directory" in refused(capsys, run.parent)
    assert "is not a run directory" in refused(capsys, tmp_path / "nowhere")


def test_rm_of_damaged_runs_refuses_what_a_later_version_reads(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It isn't damaged."""
    for file in (store.MANIFEST, store.EVENTS):
        text = (run / file).read_text()
        (run / file).write_text(re.sub(r'"schema": ?\d+', '"schema": 99', text))
    found = said(capsys, "rm", "--yes", run, code=2)
    assert "is of format 99" in found
    assert "--damaged" not in found
    assert "is of format 99" in refused(capsys, run)


def test_rm_of_damaged_runs_refuses_what_is_elsewhere_or_in_use(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it does of whole ones."""
    with_a_manifest_cut_short(run)
    with store.RunStore(run):
        assert "is being written by another process" in refused(capsys, run)
    kept = (run / store.EVENTS).rename(tmp_path / "events.jsonl")
    (run / store.EVENTS).symlink_to(kept)
    assert "is no file of its own" in refused(capsys, run)


def test_a_killed_rm_leaves_what_another_can_finish(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it came to: `ls runs` shows the rest, and `rm` takes it."""
    unlink = Path.unlink
    for most in range(3):
        copy = shutil.copytree(run, run.parent / "copy")
        left = [most]

        def stopped(path: Path, *, left: list[int] = left, **_: bool) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            unlink(path)

        with monkeypatch.context() as patched:
            patched.setattr(removal.Path, "unlink", stopped)
            assert cli.main(None, ["rm", "--yes", str(copy)]) == (0 if most == 2 else 130)
        capsys.readouterr()
        if most < 2:
            assert "copy" in said(capsys, "ls", "runs", run.parent)
            said(capsys, "rm", "--yes", "--damaged", copy)
        assert not copy.exists()
