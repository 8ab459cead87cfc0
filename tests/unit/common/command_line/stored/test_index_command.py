"""`dynamometer index` with Parquet files: what it reads, writes, says and refuses."""

from __future__ import annotations

import gc
import shutil
import sys
from threading import Lock
from typing import TYPE_CHECKING

import fakes
import pyarrow.parquet as pq
import pytest
from test_history_command import DAYS, make_runs, said, values

from dynamometer.common.command_line.stored.indexing import FOLDERS, INDEX, RUNS
from dynamometer.common.command_line.stored.serve import OPTIONS, Pages
from dynamometer.common.interfaces.option import defaults
from dynamometer.results.store.index import parquet

ROWS = 6 * DAYS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Nine days."""
    make_runs(tmp_path / "runs", [1.5] * DAYS)
    return tmp_path / "runs"


@pytest.fixture
def handed(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Write these as a file."""
    path = tmp_path / "handed on" / "all.parquet"
    found = said(capsys, "index", "--output-dir", runs, "--parquet", path)
    assert f"{path}: {DAYS} run(s), {ROWS} rows\n" in found
    return path


def test_histories_are_handed_on(
    runs: Path, handed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To a machine without any of the runs, where they stay and are told alike."""
    there = tmp_path / "there"
    found = said(capsys, "index", "--output-dir", there, "--from-parquet", handed)
    assert f"{handed}: {DAYS} run(s) added ({ROWS} rows), 0 stayed as they were" in found
    assert f"{DAYS} run(s) in 1 folder(s)" in found
    before = values(capsys, "history", "--output-dir", runs)
    assert values(capsys, "history", "--output-dir", there) == before
    for words in ([], ["--rebuild"], ["--from-parquet", handed]):
        found = said(capsys, "index", "--output-dir", there, *words)
        assert f"{DAYS} run(s) in 1 folder(s)" in found
    assert f"0 run(s) added (0 rows), {DAYS} stayed as they were" in found
    assert values(capsys, "history", "--output-dir", there) == before


def test_files_and_directories_together(
    runs: Path, handed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is in both is one; what is written again has all of it."""
    shutil.copytree(runs / "day-3", tmp_path / "there" / "day-3")
    again = tmp_path / "again.parquet"
    found = said(
        capsys, "index", "--output-dir", tmp_path / "there", "--from-parquet", handed,
        "--parquet", again,
    )  # fmt: skip
    assert f"{DAYS - 1} run(s) added" in found
    assert "1 stayed as they were" in found
    assert pq.read_table(again).equals(pq.read_table(handed))


def test_runs_without_a_directory_have_no_page(
    runs: Path, handed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are in the list and in the history, which say so where others are linked."""
    there = tmp_path / "there"
    said(capsys, "index", "--output-dir", there, "--from-parquet", handed)
    shutil.copytree(runs / "day-3", there / "day-3")
    asked = defaults(OPTIONS).but(RUNS, there).but(INDEX, None).but(FOLDERS, ())
    pages = Pages(asked, Lock())
    text = pages.of("/") or ""
    assert '<a href="/run/day-3">' in text
    assert "day-4" in text
    assert '<a href="/run/day-4">' not in text
    assert 'value="day-4"' not in text
    assert pages.of("/run/day-4") is None
    for address in ("/history", "/history/alexnet"):
        text = pages.of(address) or ""
        assert "day-4" in text
        without = [each for each in range(DAYS) if each != 3]
        assert f'"without_page":{without}'.replace(" ", "") in text
    path = tmp_path / "history.html"
    said(capsys, "history", "--output-dir", there, "-o", path)
    text = path.read_text()
    assert '"without_page":[]' in text
    assert '"home":null' in text  # so that nothing is linked


@pytest.mark.parametrize("option", ["--parquet", "--from-parquet"])
def test_without_pyarrow(
    runs: Path, handed: Path, option: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It is said before anything is read what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    shutil.rmtree(runs / "day-3")
    found = said(capsys, "index", "--output-dir", runs, option, handed, code=2)
    assert "pip install '.[parquet]' in a clone" in found
    assert "gone 1" in said(capsys, "index", "--output-dir", runs)


def test_a_place_that_can_not_be_written(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Is said before anything is read, as it takes long; with what to do."""
    shutil.rmtree(runs / "day-3")
    file = tmp_path / "file"
    file.write_text("")
    circle = runs / "circle"
    circle.symlink_to(circle)
    for place in (tmp_path, circle, file / "all.parquet", "/proc/none/all.parquet", "/dev/full"):
        found = said(capsys, "index", "--output-dir", runs, "--parquet", place, code=2)
        assert f"error: {place} can't be written: " in found
        assert "; name another file with --parquet\n" in found
    assert not (runs / "index.sqlite").exists()
    assert set(tmp_path.iterdir()) == {runs, file}


def test_a_disk_that_is_full(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is an error as any other, though runs were still to come; nothing is left there."""
    monkeypatch.setattr(parquet, "ROWS_OF_A_GROUP", 1)  # so that a file of few rows is a large one
    said(capsys, "index", "--output-dir", runs)
    path = tmp_path / "all.parquet"
    with fakes.files_of_at_most(40_000):  # more than SQLite has beside it
        found = said(capsys, "index", "--output-dir", runs, "--parquet", path, code=2)
        gc.collect()
    assert f"error: {path} can't be written: File too large; name another file" in found
    assert list(tmp_path.iterdir()) == [runs]


def test_what_is_refused(
    runs: Path, handed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is none, and one that is the index."""
    text = tmp_path / "text.parquet"
    text.write_text("no Parquet")
    index = runs / "index.sqlite"
    before = index.read_bytes()
    found = said(capsys, "index", "--output-dir", runs, "--from-parquet", text, code=2)
    assert f"{text} can't be read, or is no Parquet file" in found
    found = said(capsys, "index", "--output-dir", runs, "--parquet", index, code=2)
    assert "is the index itself: name another file" in found
    assert index.read_bytes() == before
    found = said(capsys, "index", "--output-dir", runs, "--from-parquet", runs / "none", code=2)
    assert "does not exist" in found
