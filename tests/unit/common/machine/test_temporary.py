from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from dynamometer.common.errors import UsageError
from dynamometer.common.machine import temporary
from dynamometer.common.machine.temporary import (
    folder_without_spaces,
    link_without_spaces,
    needs_quoting,
    temporary_files_in,
)


def test_files_that_are_left_lie_in_the_folder(tmp_path: Path) -> None:
    """And those of whoever comes later where they did before."""
    before = tempfile.gettempdir()
    with temporary_files_in(tmp_path / "own"):
        left = Path(tempfile.mkdtemp())
    assert left.parent == tmp_path / "own"
    assert tempfile.gettempdir() == before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b.c-d", False), ("/a/é", False), ("/a/#b", False), ("/a/My Project", True),
        ("/a/it's", True), ('/a/"b"', True), ("/a/b\\c", True), ("/a/b\nc", True),
    ],
)  # fmt: skip
def test_what_splits_a_command_line(path: str, *, expected: bool) -> None:
    """Spaces, quotes and backslashes; not what is a word by itself."""
    assert needs_quoting(path) is expected


def test_the_folder_that_compilers_can_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of temporary files, or a usual one; where there is none it is said what to set."""
    spaced, usual = tmp_path / "a b", tmp_path / "usual"
    usual.mkdir()
    monkeypatch.setattr(temporary, "_USUAL", (str(tmp_path / "not there"), str(usual)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert folder_without_spaces() == tmp_path
    monkeypatch.setattr(tempfile, "tempdir", str(spaced))
    assert folder_without_spaces() == usual
    monkeypatch.setattr(temporary, "_USUAL", ())
    with pytest.raises(UsageError, match=r"a b, .*: set TMPDIR"):
        folder_without_spaces()


def test_a_link_that_was_left_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever links the same folder; something else in its place is not touched."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "My Project"
    link = link_without_spaces(folder)
    assert (link.parent, link.readlink()) == (tmp_path, folder)
    assert link_without_spaces(folder) == link
    assert link_without_spaces(tmp_path / "it's") != link
    link.unlink()
    link.write_text("of others")
    with pytest.raises(UsageError, match=f"{link} is in the way"):
        link_without_spaces(folder)
    assert link.read_text() == "of others"
