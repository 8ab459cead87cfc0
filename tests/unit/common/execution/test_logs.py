"""What is kept of what workers write."""

from __future__ import annotations

import gzip
import os
import random
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.execution.confinement.containment import Bounds
from dynamometer.common.execution.executors.logs import Logs
from dynamometer.results.store import logs

if TYPE_CHECKING:
    from pathlib import Path

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1\nOSError: no\nmore\n'
LONG = b"".join(b"line %d\n" % each for each in range(20_000))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where logs go, which isn't there yet."""
    return tmp_path / "run" / "logs"


@pytest.mark.parametrize(
    ("written", "quoted"),
    [
        (f"a\n{TRACEBACK}b\n{TRACEBACK}", f"OSError: no; {{}} ends with:\n{TRACEBACK[:-1]}"),
        (f"{TRACEBACK[:-9]} \nno\n", f"OSError: no; {{}} ends with:\n{TRACEBACK[:-9]} \nno"),
        ("Killed\n", "{} ends with:\nKilled"),
        ("", "{} ends with:\n"),
    ],
)
def test_what_a_log_ends_with(tmp_path: Path, written: str, quoted: str) -> None:
    """The last traceback alone, its error first; without one all there is."""
    (tmp_path / "log").write_text(written)
    found = logs.quoted_end(tmp_path / "log")
    assert found == quoted.format(tmp_path / "log")


def test_a_short_log_stays_as_it_is(folder: Path) -> None:
    """It can be read with `cat`, and goes on with the next replicate."""
    kept, case = Logs(folder), factories.case("a")
    for text in (b"one\n", b"two\n"):
        with kept.path(case).open("ab") as log:
            log.write(text)
        assert kept.settle(case)
    assert kept.path(case).read_bytes() == b"one\ntwo\n"
    assert [each.name for each in folder.iterdir()] == [kept.path(case).name]


def test_an_empty_log_is_none(folder: Path) -> None:
    """Most workers write nothing, and thousands of empty files are nobody's friend."""
    kept, case = Logs(folder), factories.case("a")
    kept.path(case).touch()
    assert not kept.settle(case)
    assert not kept.settle(case)
    assert [*folder.iterdir()] == []


def test_a_log_without_an_end_is_not_read_whole(folder: Path) -> None:
    """Its two ends are: the program had no memory for it, and the run ended."""
    kept, case = Logs(folder), factories.case("a")
    with kept.path(case).open("ab") as log:
        log.write(b"begin")
        log.truncate(2**40)  # a file with a hole takes no space
        log.seek(0, os.SEEK_END)
        log.write(b"end")
    assert kept.settle(case)
    text = logs.read(kept.path(case))
    assert text.startswith(b"begin")
    assert text.endswith(b"end")
    assert len(text) < 2**22
    with kept.path(case).open("ab") as log:
        log.truncate(2**40)
    assert kept.settle(case)
    assert logs.read(kept.path(case)).startswith(b"begin")


def test_what_was_there_before_is_no_part_of_a_tail(tmp_path: Path) -> None:
    """Nothing is, where nothing was written since."""
    log = tmp_path / "log"
    log.write_text("before")
    begin = log.stat().st_size
    assert logs.tail(log, begin) == ""
    with log.open("a") as sink:
        sink.write("since")
    assert (logs.tail(log, begin), logs.tail(log)) == ("since", "beforesince")


def test_a_log_that_grows_without_an_end_keeps_both_ends(tmp_path: Path) -> None:
    """While its worker goes on to write; what it wrote last says what ended it."""
    log = tmp_path / "log"
    with log.open("ab") as sink:
        sink.write(b"begin")
        sink.truncate(2**28)
        sink.write(b"what ended it")
        sink.flush()
        logs.bound(log)
        assert logs.tail(log).endswith("what ended it")
        assert logs.tail(log, 2**28).endswith("what ended it")  # though it began beyond that
        sink.write(b", and more")
    text = log.read_bytes()
    assert text.startswith(b"begin")
    assert text.endswith(b"what ended it, and more")
    assert logs.CUT in text
    assert len(text) < 2**22
    logs.bound(log)
    assert log.read_bytes() == text


def test_a_link_in_place_of_a_log_is_left_alone(tmp_path: Path) -> None:
    """It may lead to a file of the user's."""
    precious, log = tmp_path / "precious", tmp_path / "log"
    with precious.open("wb") as file:
        file.truncate(2**28)
    log.symlink_to(precious)
    logs.bound(log)
    assert precious.stat().st_size == 2**28


def test_foreign_code_reaches_the_end_of_its_log_first() -> None:
    """Files have a limit there, of which it would be told."""
    assert Bounds(cpu_s=1).file_bytes > logs._MOST_GROWING_BYTES


def test_a_case_of_any_name_has_a_log(folder: Path) -> None:
    """File systems allow 255 bytes; names that begin alike are told apart."""
    kept = Logs(folder)
    paths = [kept.path(factories.case("m" * length)) for length in (119, 200, 300)]
    assert len(set(paths)) == 3
    for path in paths:
        path.touch()


@pytest.mark.parametrize("names", [("net/small", "net_small"), ("a b", "ab"), ("fork-server", "")])
def test_no_two_cases_share_a_log(folder: Path, names: tuple[str, str]) -> None:
    """One had the other's text for its own, or lost its log as the other's worker ended."""
    kept = Logs(folder)
    one, other = (kept.path(factories.case(name)) if name else kept.of_servers for name in names)
    assert one != other


def test_a_long_log_is_compressed_and_goes_on(folder: Path) -> None:
    """What later replicates write is added; a replicate that writes nothing changes nothing."""
    kept, case = Logs(folder), factories.case("a")
    for text in (LONG, b"", b"and more\n"):
        with kept.path(case).open("ab") as log:
            log.write(text)
        assert kept.settle(case)
    assert logs.read(kept.path(case)) == LONG + b"and more\n"
    (only,) = folder.iterdir()
    assert only == logs.compressed(kept.path(case))
    assert only.stat().st_size < len(LONG) / 2


def test_what_a_killed_run_left_is_part_of_it(folder: Path) -> None:
    """Between two replicates of a case whose log is long, the new part is plain."""
    kept, case = Logs(folder), factories.case("a")
    kept.path(case).write_bytes(LONG)
    kept.settle(case)
    kept.path(case).write_bytes(b"killed here\n")
    assert logs.read(kept.path(case)).endswith(b"killed here\n")
    resumed = Logs(folder)
    assert resumed.settle(case)
    assert logs.read(kept.path(case)) == LONG + b"killed here\n"


def test_a_flood_keeps_its_beginning_and_its_end(folder: Path) -> None:
    """Two mebibytes of each case."""
    kept, case = Logs(folder), factories.case("a")
    kept.path(case).write_bytes(b"first\n" + b"x" * 5 * 2**20 + b"\nlast")
    kept.settle(case)
    text = logs.read(kept.path(case))
    assert text.startswith(b"first\n")
    assert b"[... cut ...]" in text
    assert text.endswith(b"\nlast")
    assert len(text) < 2 * 2**20 + 100


def test_a_run_has_a_limit(folder: Path) -> None:
    """Of further cases ends are kept; what was kept before stays, and a resumed run counts it."""
    draw = random.Random(0)
    cases = [factories.case(name) for name in "abcd"]
    for case in cases:
        kept = Logs(folder, limit_bytes=2**18)
        kept.path(case).write_bytes(draw.randbytes(2**17) + b"\nlast")
        kept.settle(case)
        kept.settle(case)
    lengths = [len(logs.read(kept.path(case))) for case in cases]
    assert lengths[:2] == [2**17 + 5] * 2
    assert max(lengths[2:]) < 2**13
    assert all(logs.read(kept.path(case)).endswith(b"\nlast") for case in cases)
    assert sum(each.stat().st_size for each in folder.iterdir()) < 2**18 + 2**15


@pytest.mark.parametrize("damage", [b"", b"no gzip", None])
def test_a_damaged_log_is_an_error_with_its_name(folder: Path, damage: bytes | None) -> None:
    """Or as much as can be read of one that was cut short."""
    kept, case = Logs(folder), factories.case("a")
    kept.path(case).write_bytes(LONG)
    kept.settle(case)
    long = logs.compressed(kept.path(case))
    content = long.read_bytes()
    long.write_bytes(content[:-100] if damage is None else damage)
    if damage == b"no gzip":
        with pytest.raises(OSError, match="no gzip file"):
            logs.read(kept.path(case))
    else:
        assert LONG.startswith(logs.read(kept.path(case)))


def test_a_log_that_grows_when_read_is_bounded(folder: Path) -> None:
    """A run of somebody else may hold a small file of very many zeros."""
    folder.mkdir(parents=True)
    path = folder / "a.log"
    logs.compressed(path).write_bytes(gzip.compress(bytes(64 * 2**20)))
    assert len(logs.read(path)) == 16 * 2**20
