"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from dynamometer.results.store.whole_file import replacing, write_text

if TYPE_CHECKING:
    from pathlib import Path


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
    (tmp_path / "page.html.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_text(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_whatever_goes_wrong_leaves_what_was_there(tmp_path: Path) -> None:
    """A Ctrl-C, too; of two writers each has a name of its own."""
    path, own = tmp_path / "page.html", tmp_path / "own"
    write_text(path, "before")

    def interrupted() -> None:
        with replacing(path, own) as unfinished:
            unfinished.write_text("half")
            assert own.read_text() == "half"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one(tmp_path: Path) -> None:
    """What it leads to is written."""
    real = tmp_path / "real"
    (tmp_path / "link").symlink_to(real)
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert real.read_text() == "text"


def test_a_pipe_is_written_itself(tmp_path: Path) -> None:
    """Another program reads it, which would wait for ever on a file that was replaced."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "text")
    reader.join()
    assert read == ["text"]
