"""Files of runs: what they hold, and what is said of those that are damaged or of others."""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fakes
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_index import row, run

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.index import parquet
from dynamometer.results.store.index.parquet_rows import COLUMNS, READ
from dynamometer.results.store.index.whole_runs import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[5]
METRICS = ("status", "speedup")
PART = Part(
    run("a", 2),
    9,
    3,
    [row(), row("vgg16", condition="cold", doubt="busy"), row(metric="status", value=None,
     error=None)],
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a file of one run."""
    found = tmp_path / "some.parquet"
    assert parquet.write(found, [PART]) == (1, 3)
    return found


def read(path: Path) -> list[Part]:
    """Read all of a file."""
    return list(parquet.read(path, METRICS))


def test_what_a_program_sees(path: Path) -> None:
    """A row says all of its run; what isn't known is missing, and no other value."""
    [first, second, third] = pq.read_table(path).to_pylist()
    assert first["run_id"] == "a"
    assert first["time"] == datetime(2026, 1, 2, tzinfo=UTC)
    assert (first["torch"], first["cpu"], first["commit"]) == ("2.11", "Made-up CPU", None)
    assert (first["suite"], first["model"], first["mode"]) == ("torchbench", "alexnet", None)
    assert (first["arm"], first["metric"], first["value"], first["n"]) == (
        "inductor", "speedup", 1.5, 3,
    )  # fmt: skip
    assert first["run_conditions"] == '{"torch":"2.11"}'
    assert (second["condition"], second["doubt"]) == ("cold", "busy")
    assert third["value"] is None


def test_types_are_as_the_page_says() -> None:
    """Each column, in order, with its type."""
    text = (ROOT / "docs" / "exports.md").read_text()
    _, _, text = text.partition("| column | type")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| `([^`]+)`: .* \|$", text, re.MULTILINE)
    told = [(name, kind) for names, kind in rows for name in re.findall(r"`(\w+)`", names)]
    assert told == [(each.name, str(each.type)) for each in parquet.schema()]


def test_columns_that_are_told_are_known() -> None:
    """No two have one name."""
    assert len({each.name for each in COLUMNS}) == len(COLUMNS)


def test_no_rows(tmp_path: Path) -> None:
    """A file of an empty index has columns, and can be read."""
    assert parquet.write(tmp_path / "none", []) == (0, 0)
    assert pq.read_table(tmp_path / "none").num_rows == 0
    assert read(tmp_path / "none") == []


def _many(runs: int) -> Iterator[Part]:
    for number in range(runs):
        yield Part(run(f"run {number:04}"), 9, 500, [row(f"model {each}") for each in range(500)])


@pytest.mark.slow
def test_memory_is_that_of_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows there are, to write and to read."""
    monkeypatch.setattr(parquet, "ROWS_OF_A_GROUP", 1_000)
    monkeypatch.setattr(parquet, "_ROWS_AT_A_TIME", 1_000)
    peaks = []
    for runs in (4, 40):
        path = tmp_path / f"{runs}.parquet"
        tracemalloc.start()
        assert parquet.write(path, _many(runs)) == (runs, 500 * runs)
        assert sum(len(each.rows) for each in parquet.read(path, METRICS)) == 500 * runs
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert pq.ParquetFile(path).metadata.num_row_groups == runs // 2
    assert peaks[1] < 1.3 * peaks[0]


def test_runs_that_groups_part_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group ends anywhere in a run."""
    monkeypatch.setattr(parquet, "ROWS_OF_A_GROUP", 300)
    monkeypatch.setattr(parquet, "_ROWS_AT_A_TIME", 7)
    path = tmp_path / "some.parquet"
    parquet.write(path, _many(2))
    rows = {"run 0000": 0, "run 0001": 0}
    for part in parquet.read(path, METRICS):
        rows[part.run.run_id] += len(part.rows)
    assert set(rows.values()) == {500}


def changed(path: Path, **columns: pa.Array | None) -> Path:
    """Write a file anew as another program would, with other columns; `None` leaves one out."""
    table = pq.read_table(path)
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.remove_column(place)
        if values is not None:
            table = table.add_column(place, name, values)
    pq.write_table(table.replace_schema_metadata(None), path)
    return path


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"low": None, "arm": None}, "it has no column arm, low, or has it twice"),
        ({"n": pa.array(["3", "3", "3"])}, "its column n is string, not int64"),
        ({"model": pa.array([1, 2, 3])}, "its column model is int64, not string"),
        ({"model": pa.array([None] * 3, pa.string())}, "row 1: it has no model"),
        ({"n": pa.array([2**63, 1, 1], pa.uint64())}, "some.parquet can't be read.*9223372036854"),
        ({"n": pa.array([3, 3, -1])}, "row 3: a count is negative"),
        ({"rows_of_run": pa.array([3, 3, -1])}, "row 3: a count is negative"),
        ({"metric": pa.array(["speedup", "speed", "status"])}, "row 2: nothing is .* 'speed'"),
        ({"status": pa.array(["pass", "pass", "passed"])}, "row 3: nothing ends 'passed'"),
        ({"value": pa.array([1.5, float("nan"), None])}, "row 2: value, low, high and error are"),
        ({"value": pa.array([1.5, 9.0, None])}, "row 2: value, low, high and error are no"),
        ({"value": pa.array([1.5, None, None])}, "row 2: value, low, high and error are no"),
        ({"value": pa.array([1.5, 1.5, 1.5])}, "row 3: a status has no value"),
        ({"created_at": pa.array(["monday"] * 3)}, "row 1: the run 'a' was made at 'monday'"),
        ({"run_id": pa.array([""] * 3)}, "row 1: the run '' was made"),
        ({"run_conditions": pa.array(['{"a":1}'] * 3)}, "row 1: Expected `str`, got `int`"),
        ({"run_setting": pa.array(['{"a":"\\ud800"}'] * 3)}, "row 1: "),
        ({"run_setting": pa.array(["[" * 5000] * 3)}, "row 1: "),
    ],
)
def test_files_of_others(path: Path, columns: dict[str, Any], says: str) -> None:
    """It is said which, and what is wrong."""
    with pytest.raises(StoreError, match=says) as caught:
        read(changed(path, **columns))
    assert str(path) in str(caught.value)


def test_types_of_other_programs(path: Path) -> None:
    """Pandas and Polars have texts of their own, smaller numbers, and further columns."""
    table = pq.read_table(path)
    columns = {
        "run_id": table["run_id"].dictionary_encode(),
        "model": table["model"].cast(pa.large_string()),
        "arm": table["arm"].cast(pa.string_view()),
        "n": table["n"].cast(pa.int8()),
        "mode": pa.nulls(3),
    }
    pq.write_table(table.append_column("mine", pa.array([1, 2, 3])), path)
    assert read(changed(path, **columns, time=None, torch=None)) == [PART]


def test_times_of_other_places_are_those_of_utc(path: Path) -> None:
    """Runs are sorted by them as texts."""
    table = pq.read_table(path)
    there = pa.array(["2026-01-02T03:00:00+09:00"] * 3)
    place = table.column_names.index("created_at")
    pq.write_table(table.set_column(place, "created_at", there), path)
    assert [each.run.created_at for each in read(path)] == ["2026-01-01T18:00:00+00:00"]


def test_what_is_no_parquet_file(path: Path, tmp_path: Path) -> None:
    """Any other file, a folder, one that is cut short, one of which a byte has changed."""
    text = tmp_path / "text"
    text.write_text("no Parquet file")
    short = tmp_path / "short"
    short.write_bytes(path.read_bytes()[:-9])
    flipped = tmp_path / "flipped"
    data = bytearray(path.read_bytes())
    data[len(data) // 8] ^= 1
    flipped.write_bytes(data)
    for each in (text, short, flipped, tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match=re.escape(str(each))):
            read(each)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StoreError, match="pipe can't be read, or is no Parquet file: Is a pipe"):
        read(pipe)


def test_a_later_version(path: Path) -> None:
    """It may hold what this one would misread."""
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"dynamometer.index": "2"}), path)
    with pytest.raises(StoreError, match=r"some\.parquet was made by a later version"):
        read(path)


def _failing() -> Iterator[Part]:
    yield PART
    msg = "the index is damaged"
    raise StoreError(msg)


def test_what_fails_leaves_what_was_there(path: Path, tmp_path: Path) -> None:
    """And nothing beside it."""
    before = path.read_bytes()
    with pytest.raises(StoreError, match="the index is damaged"):
        parquet.write(path, _failing())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(StoreError, match="no column for colour"):
        parquet.write(path, [Part(PART.run, 1, 1, [row(identity={"model": "a", "colour": "red"})])])


def test_where_it_can_not_be_written(path: Path, tmp_path: Path) -> None:
    """A device is no file to be replaced; below a file there is no folder; a link stays one."""
    with pytest.raises(StoreError, match="/dev/null can't be written: it is there, and is no file"):
        parquet.write(Path("/dev/null"), [PART])
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    before = path.read_bytes()
    for place, why in (
        (path / "below", "Not a directory"),
        (tmp_path, "it is a folder"),
        (Path("/proc/none/all.parquet"), "No such file or directory"),
        (tmp_path / ("a" * 300), "File name too long"),
        (circle, "Too many levels of symbolic links"),
    ):
        says = rf"{re.escape(str(place))} can't be written: ({why}); name another file with --parq"
        for attempt in (parquet.check_place, lambda each: parquet.write(each, [PART])):
            with pytest.raises(StoreError, match=says):
                attempt(place)
    assert path.read_bytes() == before
    assert set(tmp_path.iterdir()) == {path, circle}
    link = tmp_path / "link"
    link.symlink_to(path)
    parquet.write(link, [])
    assert link.is_symlink()
    assert read(path) == []


def test_a_place_that_will_do(tmp_path: Path) -> None:
    """Its folder is made; nothing else is left there until there is a file."""
    place = tmp_path / "of a project" / "all.parquet"
    parquet.check_place(place)
    assert list(place.parent.iterdir()) == []


@pytest.mark.parametrize("most", [0, 900, 3_000])
def test_a_disk_that_is_full(path: Path, tmp_path: Path, most: int) -> None:
    """At any byte: it is said once, what was there stays, and nothing is beside it."""
    before = path.read_bytes()
    with fakes.files_of_at_most(most):
        with pytest.raises(StoreError, match=r"can't be written: File too large; name another"):
            parquet.write(path, _many(20))
        gc.collect()  # what arrow made of it must not try again
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_is_found_to_be_full_at_the_end(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When all that was written is to be on it."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device; make room there, or name"):
        parquet.write(path, [])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_without_pyarrow(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StoreError, match=r"pip install '\.\[parquet\]' in a clone"):
        read(path)
    with pytest.raises(StoreError, match=r"pip install '\.\[parquet\]' in a clone"):
        parquet.write(path, [PART])


def test_all_that_is_read_is_written() -> None:
    """What is not is derived from it."""
    assert {each.name for each in COLUMNS} - {each.name for each in READ} == {
        "time", "commit", "dynamometer_commit", "machine", "cpu", "threads", "device_name",
        "torch", "python",
    }  # fmt: skip
