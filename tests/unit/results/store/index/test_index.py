"""The index of runs: what is in it is what the run directories hold, whatever happens."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.index import indexing
from dynamometer.results.store.index.index import Index, IndexedDirectory
from dynamometer.results.store.index.index_file import IndexFile
from dynamometer.results.store.index.indexing import put, refresh
from dynamometer.results.values.history import DEVICE_NAME, INDEX_FILE, STATUS, IndexedRun, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any


def run(name: str, day: int = 1) -> IndexedRun:
    """Describe a run of some day."""
    return IndexedRun(
        run_id=name,
        created_at=f"2026-01-{day:02}T00:00:00+00:00",
        study="speedup",
        conditions={"torch": "2.11"},
        setting={"cpu": "Made-up CPU"},
    )


def row(model: str = "alexnet", value: float = 1.5, **fields: object) -> Row:
    """Describe what one run says of one model."""
    given: dict[str, object] = {
        "identity": {"suite": "torchbench", "model": model}, "arm": "inductor",
        "metric": "speedup", "status": "pass", "value": value, "low": value, "high": value,
        "error": 0.01, "n": 3, **fields,
    }  # fmt: skip
    return Row(**given)  # type: ignore[arg-type]  untyped


def known(name: str, size: int = 1) -> IndexedDirectory:
    """Describe a directory of a run."""
    return IndexedDirectory(f"/runs/{name}", "stamp", size, name.rpartition("/")[2])


def make(folder: Path, name: str, text: str) -> Path:
    """Make what looks like a run directory; its records are the run's name and values."""
    directory = folder / name
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text("{}")
    (directory / "events.jsonl").write_text(text)
    return directory


def read(directory: Path) -> tuple[IndexedRun, list[Row]]:
    """Read what `make` made."""
    name, *values = (directory / "events.jsonl").read_text().split()
    if name == "damaged":
        msg = f"{directory} is damaged"
        raise StoreError(msg)
    return run(name), [row(f"model_{number}", float(each)) for number, each in enumerate(values)]


def held(index: Index) -> dict[str, list[float | None]]:
    """Return the values of each run, by its name."""
    runs, series = index.read({})
    found: dict[str, list[float | None]] = {each.run_id: [] for each in runs.values()}
    for each in series:
        for point in each.points:
            found[runs[point.run].run_id].append(point.value)
    return {name: sorted(values, key=str) for name, values in found.items()}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Open an empty one that knows of a folder of runs."""
    (tmp_path / "runs").mkdir()
    with IndexFile(tmp_path / "index.sqlite") as file:
        found = Index(file)
        found.add_folders([tmp_path / "runs"])
        yield found


def test_points_come_in_the_order_of_time(index: Index) -> None:
    """Whatever the order in which runs were added."""
    for name, day in (("c", 3), ("a", 1), ("b", 2)):
        index.add(known(name), run(name, day), [row(value=float(day))])
    runs, [series] = index.read({"model": ("alexnet",)})
    assert [each.run_id for each in runs.values()] == ["a", "b", "c"]
    assert [each.value for each in series.points] == [1.0, 2.0, 3.0]
    assert series.identity == {"suite": "torchbench", "model": "alexnet"}


def test_a_series_needs_a_run(index: Index) -> None:
    """Of one whose runs are gone nothing is said."""
    index.add(known("a"), run("a"), [row()])
    index.add(known("b"), run("b", 2), [row("vgg16")])
    index.forget(["/runs/a"])
    runs, [series] = index.read({})
    assert [each.run_id for each in runs.values()] == ["b"]
    assert series.identity["model"] == "vgg16"


def test_what_must_be_equal_parts_series(index: Index) -> None:
    """Another processor, metric, arm or state of the caches is another series."""
    other = {"cpu": "Another CPU"}
    moved = IndexedRun(
        run_id="b", created_at="2026-01-02", study="speedup", conditions={}, setting=other
    )
    rows = [row(), row(metric="latency"), row(arm="ts"), row(condition="warm"), row("vgg16")]
    index.add(known("a"), run("a"), rows)
    index.add(known("b"), moved, [row()])
    _, series = index.read({})
    assert len(series) == 6
    _, series = index.read({"model": ("alexnet",), "metric": ("speedup",), "arm": ("inductor",)})
    assert sorted(each.setting["cpu"] for each in series) == ["Another CPU", *["Made-up CPU"] * 2]


def test_all_of_a_row_comes_back(index: Index) -> None:
    """Also that there is no value."""
    index.add(known("a"), run("a"), [row(value=None, status="crash", error=None, doubt="x")])
    _, [series] = index.read({})
    [point] = series.points
    assert (point.status, point.value, point.error, point.n, point.doubt) == (
        "crash", None, None, 3, "x",
    )  # fmt: skip


def test_a_run_is_put_in_once(index: Index) -> None:
    """Added again, it is as it is now; of two copies the one with more records counts."""
    index.add(known("a"), run("a"), [row(value=1.0), row("vgg16")])
    index.add(known("a"), run("a"), [row(value=2.0)])
    assert held(index) == {"a": [2.0]}
    assert not index.add(IndexedDirectory("/other/a", "s", 0, "a"), run("a"), [row(value=3.0)])
    assert held(index) == {"a": [2.0]}
    assert index.add(IndexedDirectory("/other/a", "s", 9, "a"), run("a"), [row(value=4.0)])
    assert held(index) == {"a": [4.0]}


def test_only_what_changed_is_read(index: Index, tmp_path: Path) -> None:
    """A run that goes on is read again, one that is as it was is not."""
    for name in ("a", "b"):
        make(tmp_path / "runs", name, f"{name} 1.5")
    assert refresh(index, read).read == 2
    assert refresh(index, read).read == 0
    (tmp_path / "runs" / "b" / "events.jsonl").write_text("b 1.5 1.25")
    found = refresh(index, read)
    assert (found.read, found.rows) == (1, 2)
    assert held(index) == {"a": [1.5], "b": [1.25, 1.5]}


def test_all_is_read_again_where_rows_are_made_otherwise(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a version whose intervals are others."""
    make(tmp_path / "runs", "a", "a 1.5")
    assert refresh(index, read).read == 1
    monkeypatch.setattr(indexing, "ROWS", indexing.ROWS + 1)
    assert refresh(index, read).read == 1
    assert refresh(index, read).read == 0


def test_runs_of_other_machines_are_a_set_union(index: Index, tmp_path: Path) -> None:
    """A folder that was copied adds what is new; the same run is the same, in any order."""
    make(tmp_path / "runs", "a", "a 1.5")
    make(tmp_path / "runs", "b", "b 1.5")
    make(tmp_path / "copied", "a", "a 1.5 1.25")
    make(tmp_path / "copied", "c", "c 1.75")
    index.add_folders([tmp_path / "copied"])
    assert refresh(index, read).read == 4
    union = {"a": [1.25, 1.5], "b": [1.5], "c": [1.75]}
    assert held(index) == union
    with IndexFile(tmp_path / "other.sqlite") as file:
        other = Index(file)
        other.add_folders([tmp_path / "copied"])
        refresh(other, read)
        other.add_folders([tmp_path / "runs"])
        found = refresh(other, read)
        assert held(other) == union
        assert found.copies == 1


def test_a_copy_that_became_the_smaller_one_counts_no_more(index: Index, tmp_path: Path) -> None:
    """The other is read in its place."""
    make(tmp_path / "runs", "a", "a 1.5 1.25")
    make(tmp_path / "copied", "a", "a 1.5 1.25 1.75")
    index.add_folders([tmp_path / "copied"])
    refresh(index, read)
    assert held(index) == {"a": [1.25, 1.5, 1.75]}
    (tmp_path / "copied" / "a" / "events.jsonl").write_text("a 9")
    refresh(index, read)
    assert held(index) == {"a": [1.25, 1.5]}
    for name, text in (("runs", "a 7"), ("copied", "a 9.5")):  # both at once
        (tmp_path / name / "a" / "events.jsonl").write_text(text)
    refresh(index, read)
    assert held(index) == {"a": [9.5]}


def test_one_run_is_put_in_by_itself(index: Index, tmp_path: Path) -> None:
    """Once, under whatever path; a copy of a run that is there changes nothing."""
    runs = make(tmp_path / "runs", "b", "b 1.5").parent
    make(tmp_path, "a copy", "b 1.5 1.25")
    for directory in (runs / "b", runs / ".." / "runs" / "b", tmp_path / "a copy"):
        assert put(index, directory, read) == "b"
        assert [*index.directories()] == [str(runs / "b")]
        assert held(index) == {"b": [1.5]}
    unnamed = make(tmp_path, os.fsdecode(b"caf\xe9"), "c 1.5")
    with pytest.raises(StoreError, match="not UTF-8"):
        put(index, unnamed, read)


def test_what_is_gone_is_gone(index: Index, tmp_path: Path) -> None:
    """Unless another directory holds the run: then it is read from there."""
    make(tmp_path / "runs", "a", "a 1.5 1.25")
    make(tmp_path / "runs", "copy", "a 1.5")
    make(tmp_path / "runs", "b", "b 1.5")
    refresh(index, read)
    shutil.rmtree(tmp_path / "runs" / "a")
    shutil.rmtree(tmp_path / "runs" / "b")
    assert refresh(index, read).gone == 2
    assert held(index) == {"a": [1.5]}


def test_a_folder_that_can_not_be_read_loses_nothing(index: Index, tmp_path: Path) -> None:
    """Such as one of a disk that isn't there today; it is named."""
    make(tmp_path / "runs", "a", "a 1.5")
    refresh(index, read)
    (tmp_path / "runs").rename(tmp_path / "away")
    found = refresh(index, read)
    assert list(found.unreadable) == [str(tmp_path / "runs")]
    assert held(index) == {"a": [1.5]}


def test_a_damaged_run_is_named_and_stops_nothing(index: Index, tmp_path: Path) -> None:
    """It is tried again each time, and is there once it can be read."""
    make(tmp_path / "runs", "a", "damaged")
    make(tmp_path / "runs", "b", "b 1.5")
    for _ in range(2):
        assert list(refresh(index, read).unreadable) == [str(tmp_path / "runs" / "a")]
    assert held(index) == {"b": [1.5]}
    (tmp_path / "runs" / "a" / "events.jsonl").write_text("a 1.5")
    assert refresh(index, read).unreadable == {}
    assert held(index) == {"a": [1.5], "b": [1.5]}


def test_it_is_made_again_at_will(index: Index, tmp_path: Path) -> None:
    """From the folders it knows of: rows are those that are made of the records now."""
    make(tmp_path / "runs", "a", "a 1.5")
    make(tmp_path / "runs", "b", "b 1.25 1.0")
    refresh(index, read)
    index.outdate()
    assert held(index) == {"a": [1.5], "b": [1.0, 1.25]}

    def read_anew(directory: Path) -> tuple[IndexedRun, list[Row]]:
        found, rows = read(directory)
        return found, [msgspec.structs.replace(each, value=2.0) for each in rows[:1]]

    assert refresh(index, read_anew).read == 2
    assert held(index) == {"a": [2.0], "b": [2.0]}


def test_made_again_it_keeps_what_is_out_of_reach(index: Index, tmp_path: Path) -> None:
    """As on a disk that isn't there."""
    make(tmp_path / "runs", "a", "a 1.5")
    make(tmp_path / "other", "b", "b 1.5")
    index.add_folders([tmp_path / "other"])
    refresh(index, read)
    (tmp_path / "other").rename(tmp_path / "away")
    index.outdate()
    assert list(refresh(index, read).unreadable) == [str(tmp_path / "other")]
    assert held(index) == {"a": [1.5], "b": [1.5]}


@pytest.mark.parametrize("first", ["pass", "crash"])
def test_a_run_in_which_all_crashed_is_in_the_series_of_its_device(
    index: Index, first: str
) -> None:
    """Workers tell what it is called: none did, and the crash was in no model's history.

    In whichever order they are read; where there are two devices, nobody knows which it was.
    """
    gpu, cpu = ({"suite": "torchbench", "model": "m", "device": name} for name in ("cuda", "cpu"))
    unknown, known_ = {"cpu": "x"}, {"cpu": "x", DEVICE_NAME: "Made-up GPU"}

    def add(name: str, day: int, setting: dict[str, str], *on: dict[str, str]) -> None:
        rows = [
            row(identity=each, metric=STATUS, status=name.partition(" ")[0], value=None, error=None)
            for each in on
        ]
        index.add(known(name), msgspec.structs.replace(run(name, day), setting=setting), rows)

    def found() -> list[tuple[str, dict[str, str], list[str]]]:
        return sorted(
            (
                (each.identity["device"], each.setting, [point.status for point in each.points])
                for each in index.read({})[1]
            ),
            key=str,
        )

    for name in ("pass", "crash") if first == "pass" else ("crash", "pass"):
        if name == "pass":
            add("pass", 1, known_, gpu)
        else:
            add("crash", 2, unknown, gpu, cpu)
    assert found() == [("cpu", unknown, ["crash"]), ("cuda", known_, ["pass", "crash"])]
    add("pass elsewhere", 3, {**known_, DEVICE_NAME: "Another GPU"}, gpu)
    assert found()[1:] == [
        ("cuda", {**known_, DEVICE_NAME: "Another GPU"}, ["pass"]),
        ("cuda", known_, ["pass"]),
        ("cuda", unknown, ["crash"]),
    ]


def test_a_run_on_one_of_two_devices_is_in_no_other_series(index: Index) -> None:
    """Though each of its models is known on one alone."""
    status = {"metric": STATUS, "value": None, "error": None}
    for name, device in (("a", "GPU A"), ("b", "GPU B")):
        gpu = {"suite": "torchbench", "model": name, "device": "cuda"}
        setting = {"cpu": "x", DEVICE_NAME: device}
        index.add(known(name), msgspec.structs.replace(run(name), setting=setting),
                  [row(identity=gpu, status="pass", **status)])  # fmt: skip
    models = ({"suite": "torchbench", "model": name, "device": "cuda"} for name in "ab")
    index.add(known("c"), msgspec.structs.replace(run("c", 2), setting={"cpu": "x"}),
              [row(identity=each, status="crash", **status) for each in models])  # fmt: skip
    assert [len(each.points) for each in index.read({})[1]] == [1, 1, 1, 1]
    index.forget(["/runs/b"])
    found = {each.identity["model"]: each for each in index.read({})[1]}
    assert [len(found[name].points) for name in "ab"] == [2, 1]
    assert {each.setting[DEVICE_NAME] for each in found.values()} == {"GPU A"}


def test_who_opens_it_while_it_is_made_finds_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables were seen, and not yet that they are ours."""
    path = tmp_path / "index.sqlite"

    class Slow(sqlite3.Connection):
        """Another process makes the tables between its first two questions, if it can."""

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            rows = super().execute(sql, *values)
            if sql != "PRAGMA application_id":
                return rows
            found = rows.fetchall()
            monkeypatch.undo()
            with suppress(StoreError), IndexFile(path, wait_s=0.0):
                pass
            return found  # type: ignore[return-value]  it is unpacked, as a cursor would be

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Slow))
    with IndexFile(path) as file:
        assert held(Index(file)) == {}


def test_readers_see_a_whole_run_or_none(index: Index, tmp_path: Path) -> None:
    """While one process writes, another reads what was there before."""
    index.add(known("a"), run("a"), [row()])
    with IndexFile(tmp_path / "index.sqlite") as other:
        reader = Index(other)
        with index._file.writing() as file:
            file.execute("DELETE FROM runs")
            assert held(reader) == {"a": [1.5]}
        assert held(reader) == {}


def _add_for_ever(path: Path) -> None:
    with IndexFile(path) as file:
        index, number = Index(file), 0
        while True:
            number += 1
            name = f"run_{number}"
            index.add(known(name), run(name), [row(f"model_{each}") for each in range(40)])


@pytest.mark.slow
def test_a_killed_writer_leaves_whole_runs(tmp_path: Path) -> None:
    """Killed at any moment: each run is in it with all its rows, or not at all."""
    path = tmp_path / "index.sqlite"
    context = multiprocessing.get_context("spawn")
    for number in range(3):
        writer = context.Process(target=_add_for_ever, args=(path,))
        writer.start()
        with IndexFile(path) as file:
            while len(Index(file).directories()) < 5 * (number + 1):
                assert writer.is_alive()
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        with IndexFile(path) as file:
            assert {len(values) for values in held(Index(file)).values()} == {40}
            assert file.read("PRAGMA integrity_check") == [("ok",)]


def test_one_process_writes_at_a_time(index: Index, tmp_path: Path) -> None:
    """Another one waits, and says so where that takes too long; then it can go on."""
    with IndexFile(tmp_path / "index.sqlite", wait_s=0.0) as file:
        with index._file.writing(), pytest.raises(StoreError, match="written by another process"):
            Index(file).outdate()
        Index(file).outdate()


def test_what_fails_leaves_what_was_there(index: Index) -> None:
    """A row that can't be put in takes the whole run back, and the index stays usable."""
    index.add(known("a"), run("a"), [row()])
    bad = [row(), msgspec.structs.replace(row("vgg16"), identity={})]
    with pytest.raises(KeyError):
        index.add(known("a"), run("a"), bad)
    assert held(index) == {"a": [1.5]}
    index.add(known("b"), run("b"), [row()])
    assert held(index) == {"a": [1.5], "b": [1.5]}


def test_what_has_the_name_of_ours_may_be_removed(tmp_path: Path) -> None:
    """Whatever stands in it now; what somebody else named may be theirs."""
    for name, is_ours in ((INDEX_FILE, True), ("notes.txt", False)):
        path = tmp_path / name
        path.write_text("no database at all, but some text" * 20)
        with pytest.raises(StoreError, match="can't be used as an index") as refused:
            IndexFile(path)
        assert ("or remove it: it is made of the runs" in str(refused.value)) is is_ours


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    """A file of anything else is left as it is."""
    text = tmp_path / "text.sqlite"
    text.write_text("no database at all, but some text that somebody wants to keep" * 20)
    with pytest.raises(StoreError, match=r"text.sqlite can't be used as an index"):
        IndexFile(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE mine (a)")
    file.close()
    with pytest.raises(StoreError, match="is no index of runs; choose another with --index"):
        IndexFile(other)
    later = tmp_path / "later.sqlite"
    with IndexFile(later) as file:
        file.read("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="made by a later version"):
        IndexFile(later)
    with pytest.raises(StoreError, match="can't be made"):
        IndexFile(text / "index.sqlite")


def test_an_index_is_made_of_an_empty_file_only_by_who_makes_one(tmp_path: Path) -> None:
    """Whoever only looks something up leaves the file as it is."""
    path = tmp_path / "empty.sqlite"
    path.touch()
    with pytest.raises(StoreError, match=r"empty.sqlite is empty, and no index of runs"):
        IndexFile(path, may_be_new=False)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b""
    with IndexFile(path):
        pass
    with IndexFile(path, may_be_new=False) as file:
        assert held(Index(file)) == {}


def test_what_was_fine_and_is_damaged(index: Index, tmp_path: Path) -> None:
    """It is held as if it had always been: a copy counts in its place, else it is left out."""
    make(tmp_path / "runs", "1", "a 1.5")
    make(tmp_path / "runs", "2", "a 1.5 1.25")
    make(tmp_path / "runs", "3", "b 1.5")
    refresh(index, read)
    for name in "23":
        (tmp_path / "runs" / name / "events.jsonl").write_text("damaged")
    assert len(refresh(index, read).unreadable) == 2
    assert held(index) == {"a": [1.5]}
