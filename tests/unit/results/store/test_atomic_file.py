"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import fakes
import pytest

from dynamometer.results.store.atomic_file import replacing, write_text


def test_it_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    """New folders are made for it, and nothing else is left."""
    path = tmp_path / "deep" / "page.html"
    for text in ("first", "äther"):
        write_text(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """Whole, and nothing beside it."""
    path = tmp_path / "page.html"
    write_text(path, "before")
    with fakes.files_of_at_most(10), pytest.raises(OSError, match="File too large"):
        write_text(path, "x" * 100)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_whatever_goes_wrong_leaves_what_was_there(tmp_path: Path) -> None:
    """A Ctrl-C, too."""
    path = tmp_path / "page.html"
    write_text(path, "before")

    def interrupted() -> None:
        with replacing(path) as unfinished:
            unfinished.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_are_not_in_each_others_way(tmp_path: Path) -> None:
    """The last to end has its file there, whole; a name as long as may be is no trouble."""
    path = tmp_path / ("x" * 255)
    with replacing(path) as first, replacing(path) as second:
        first.write_text("of the first")
        second.write_text("of the second")
    assert path.read_text() == "of the first"
    assert list(tmp_path.iterdir()) == [path]


def test_it_is_written_in_memory_as_elsewhere() -> None:
    """`/dev` has a folder for any files."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / "page.html"
        path.write_text("before")
        with fakes.files_of_at_most(10), pytest.raises(OSError, match="File too large"):
            write_text(path, "x" * 100)
        assert path.read_text() == "before"


def test_a_file_of_a_folder_that_is_not_ones_own_is_written_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As nothing can be made beside it."""
    path = tmp_path / "page.html"
    path.write_text("before")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with replacing(path) as file:
        assert file == path


def test_a_link_stays_one(tmp_path: Path) -> None:
    """What it leads to is written, beside where that is."""
    real = tmp_path / "elsewhere" / "real"
    real.parent.mkdir()
    (tmp_path / "link").symlink_to(real)
    for text in ("text", "other"):
        write_text(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert real.read_text() == text
    assert list(real.parent.iterdir()) == [real]


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    """One that others may not read, above all."""
    path = tmp_path / "page.html"
    path.touch(mode=0o600)
    write_text(path, "text")
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_replaced_is_written_itself(tmp_path: Path) -> None:
    """Another program waits for what comes through a pipe; `/dev/stdout` may be any file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(pipe, "text")
    reader.join(timeout=60)
    assert read == ["text"]
    with tempfile.TemporaryFile("w+") as file:  # has no name
        write_text(Path(f"/proc/self/fd/{file.fileno()}"), "text")
        assert file.read() == "text"


def test_links_in_a_circle_are_no_other_error(tmp_path: Path) -> None:
    """Than any that the operating system has; the file may take their place."""
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    write_text(circle, "text")
    assert circle.read_text() == "text"


def test_a_link_that_leads_nowhere_yet_is_written_through(tmp_path: Path) -> None:
    """Folders on the way to where it leads are made; it stays a link."""
    link = tmp_path / "link"
    link.symlink_to("far/away/file")
    write_text(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "far/away/file").read_text() == "text"
