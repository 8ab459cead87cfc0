"""Runs that are handed around: a set union, which directories that come and go don't spoil."""

from __future__ import annotations

import shutil
import sqlite3
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
import pytest
from test_index import held, index, known, make, read, row, run

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.index import index_file
from dynamometer.results.store.index.index import Index
from dynamometer.results.store.index.index_file import IndexFile
from dynamometer.results.store.index.indexing import refresh
from dynamometer.results.store.index.whole_runs import Part, add, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["index"]


def handed(name: str, *values: float, size: int = 5) -> Part:
    """Describe a run as a file brings it; a run of `make` has as many bytes as its text."""
    rows = [row(f"model_{number}", each) for number, each in enumerate(values)]
    return Part(run(name), size, len(rows), rows)


def test_what_goes_out_comes_in(index: Index, tmp_path: Path) -> None:
    """All of it, in the order of time, whatever else there is."""
    index.add(known("b"), run("b", 2), [row(value=2.0), row("vgg16", condition="warm")])
    index.add(known("a", 7), run("a", 1), [row(value=1.0, doubt="busy")])
    index.add(known("none"), run("none", 3), [])
    found = list(parts(index.file))
    assert [(each.run.run_id, each.size, len(each.rows)) for each in found] == [
        ("a", 7, 1), ("b", 1, 2),
    ]  # fmt: skip
    assert found[0] == Part(run("a", 1), 7, 1, [row(value=1.0, doubt="busy")])
    with IndexFile(tmp_path / "other.sqlite") as file:
        assert add(file, "a file", found) == (2, 3, 0)
        assert list(parts(file)) == found
        assert add(file, "a file", found) == (0, 0, 2)


def test_the_copy_with_more_records_counts(index: Index) -> None:
    """Of two with as many, that which is there."""
    assert add(index.file, "one", [handed("a", 1.0, size=5)]) == (1, 1, 0)
    assert add(index.file, "two", [handed("a", 2.0, size=5)]) == (0, 0, 1)
    assert add(index.file, "three", [handed("a", 3.0, size=4)]) == (0, 0, 1)
    assert held(index) == {"a": [1.0]}
    assert add(index.file, "four", [handed("a", 4.0, 5.0, size=6)]) == (1, 2, 0)
    assert held(index) == {"a": [4.0, 5.0]}


@pytest.mark.parametrize("is_directory_first", [True, False])
@pytest.mark.parametrize(("size", "expected"), [(4, 1.5), (5, 1.5), (6, 9.0)])
def test_a_directory_and_a_file_in_any_order(
    index: Index, tmp_path: Path, size: int, expected: float, *, is_directory_first: bool
) -> None:
    """Of as many records the directory's count, which can be read anew."""
    steps = [
        lambda: make(tmp_path / "runs", "a", "a 1.5"),
        lambda: add(index.file, "a file", [handed("a", 9.0, size=size)]),
    ]
    for step in steps if is_directory_first else reversed(steps):
        step()
        refresh(index, read)
    assert held(index) == {"a": [expected]}
    assert refresh(index, read).read == 0


def test_what_a_file_brought_stays(index: Index, tmp_path: Path) -> None:
    """Through each update, `--rebuild`, and whatever becomes of directories of the same run."""
    add(index.file, "a file", [handed("a", 9.0), handed("b", 8.0)])
    directory = make(tmp_path / "runs", "b", "b 1.5 1.25")
    make(tmp_path / "runs", "c", "c 1.5")
    for _ in range(2):
        refresh(index, read)
        assert held(index) == {"a": [9.0], "b": [1.25, 1.5], "c": [1.5]}
    index.outdate()
    refresh(index, read)
    assert held(index) == {"a": [9.0], "b": [1.25, 1.5], "c": [1.5]}
    shutil.copytree(directory, tmp_path / "runs" / "copy of b")
    (tmp_path / "runs" / "copy of b" / "events.jsonl").write_text("b 7.0")
    refresh(index, read)
    shutil.rmtree(directory)
    shutil.rmtree(tmp_path / "runs" / "c")
    for _ in range(2):
        refresh(index, read)
        assert held(index) == {"a": [9.0], "b": [1.25, 1.5]}
    (tmp_path / "runs" / "copy of b" / "events.jsonl").write_text("damaged")
    refresh(index, read)
    assert held(index) == {"a": [9.0], "b": [1.25, 1.5]}


def test_a_directory_that_lost_records(index: Index, tmp_path: Path) -> None:
    """What a file brought of its run, or the directory held then, stays."""
    directory = make(tmp_path / "runs", "a", "a 1.5 1.25")
    refresh(index, read)
    add(index.file, "a file", [handed("a", 9.0)])
    (directory / "events.jsonl").write_text("a 1.5")
    for _ in range(2):
        refresh(index, read)
        assert held(index) == {"a": [1.25, 1.5]}


def test_rows_in_any_order(index: Index) -> None:
    """A program may have sorted them otherwise; those of a run count together."""
    one, other = handed("a", 1.0, 2.0), handed("b", 3.0, 4.0)
    mixed = [each._replace(rows=[each.rows[place]]) for place in (1, 0) for each in (one, other)]
    assert add(index.file, "a file", mixed) == (2, 4, 0)
    assert held(index) == {"a": [1.0, 2.0], "b": [3.0, 4.0]}


def _contradicting() -> Iterator[Part]:
    yield handed("a", 1.0)
    changed = msgspec.structs.replace(run("a"), conditions={"torch": "other"})
    yield Part(changed, 5, 1, [row("vgg16")])


def _twice() -> Iterator[Part]:
    yield handed("a", 1.0)._replace(all_rows=2)
    yield handed("a", 2.0)._replace(all_rows=2)


def _too_many() -> Iterator[Part]:
    yield handed("a", 1.0, 2.0)._replace(all_rows=1)


def _filtered() -> Iterator[Part]:
    yield handed("a", 1.0, 2.0)
    yield handed("c", 1.0, 2.0)._replace(all_rows=3)


def _filtered_and_there() -> Iterator[Part]:
    yield handed("b", 1.0, size=1)._replace(all_rows=2)


def _cut_off() -> Iterator[Part]:
    yield handed("a", 1.0)
    msg = "it is cut off"
    raise StoreError(msg)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (_contradicting, "a file is damaged: rows of the run a contradict each other"),
        (_twice, "a file is damaged: some row of the run a is there twice"),
        (_too_many, "a file is damaged: some row of the run a is there twice"),
        (_filtered, "a file has 2 of the 3 rows of the run c: only whole runs can be added"),
        (_filtered_and_there, "a file has 1 of the 2 rows of the run b"),
        (_cut_off, "it is cut off"),
    ],
)
def test_all_or_nothing(index: Index, found: Callable[[], Iterator[Part]], says: str) -> None:
    """What was there is as it was."""
    index.add(known("b", 1), run("b"), [row()])
    with pytest.raises(StoreError, match=says):
        add(index.file, "a file", chain([handed("d", 7.0)], found()))
    assert held(index) == {"b": [1.5]}
    assert add(index.file, "a file", [handed("c", 1.0)]) == (1, 1, 0)


def test_memory_ratios_of_format_3_go(tmp_path: Path) -> None:
    """What an arm keeps was no part of them; a run without a directory can't be read again."""
    path = tmp_path / "index.sqlite"
    with sqlite3.connect(path) as old:
        old.executescript(index_file._TABLES)
        for run_id, is_kept in ((1, 1), (2, 0)):
            old.execute("INSERT INTO runs VALUES (?, ?, '', '', '{}', 0, ?)",
                        (run_id, str(run_id), is_kept))  # fmt: skip
        for series, metric in ((1, "memory_ratio"), (2, "speedup")):
            old.execute("INSERT INTO series VALUES (?, '', '', ?, '', '', '', '', '')",
                        (series, metric))  # fmt: skip
            for run_id in (1, 2):
                old.execute("INSERT INTO points VALUES (?, ?, 'pass', 1, 1, 1, 0, 1, NULL)",
                            (series, run_id))  # fmt: skip
        old.execute("INSERT INTO directories VALUES ('/runs/2', 'stamp', 5, '2')")
        old.execute(f"PRAGMA application_id = {index_file._APPLICATION}")
        old.execute("PRAGMA user_version = 3")
    old.close()
    with IndexFile(path) as file:
        left = file.read("SELECT series, run FROM points ORDER BY series, run")
        assert left == [(1, 2), (2, 1), (2, 2)]
        assert file.read("SELECT stamp FROM directories") == [("",)]  # to be read again


def test_an_index_of_the_format_before(tmp_path: Path) -> None:
    """It is made one of this, with all that it holds, and how much each run is of."""
    path = tmp_path / "index.sqlite"
    before = index_file._TABLES.replace(
        "value TEXT NOT NULL,\n    size INTEGER NOT NULL,\n    is_kept INTEGER NOT NULL",
        "value TEXT NOT NULL",
    )
    with sqlite3.connect(path) as old:
        old.executescript(before)
        old.execute("INSERT INTO runs VALUES (1, 'a', '/runs/a', '2026-01-01', ?)",
                    (msgspec.json.encode(run("a")).decode(),))  # fmt: skip
        old.execute("INSERT INTO directories VALUES ('/runs/a', 'stamp', 5, 'a')")
        old.execute(f"PRAGMA application_id = {index_file._APPLICATION}")
        old.execute("PRAGMA user_version = 1")
    old.close()
    with IndexFile(path) as file:
        assert held(Index(file)) == {"a": []}
        assert file.read("SELECT size, is_kept FROM runs") == [(5, 0)]
        assert file.read("SELECT stamp FROM directories") == [("",)]  # to be read again
        assert add(file, "a file", [handed("a", 1.0, size=5)]) == (0, 0, 1)
    with IndexFile(path) as file:
        assert file.read("PRAGMA user_version") == [(index_file._FORMAT,)]
