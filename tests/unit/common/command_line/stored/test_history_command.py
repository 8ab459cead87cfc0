"""`dynamometer index` and `history`: what they read, say and refuse."""

from __future__ import annotations

import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import factories
import msgspec
import pytest
from simulated_runs import KNOWN

from dynamometer.common.command_line import cli
from dynamometer.common.command_line.stored import history, indexing
from dynamometer.common.errors import UsageError
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.comparison.sides import Side
    from dynamometer.results.values.records import Manifest, Record

ROOT = Path(__file__).resolve().parents[5]
STORED = ROOT / "tests" / "golden"
DAYS = 9
UPGRADED = 6
"""From this day on torch is a later one, and inductor is slower."""


def make_runs(folder: Path, speedups: Sequence[float]) -> None:
    """Make a run of alexnet each day, with these speedups."""
    for day, speedup in enumerate(speedups):
        plan = factories.plan(factories.model_spec("alexnet"))
        torch = "2.11" if day < UPGRADED else "2.12"
        manifest = factories.manifest(
            plan,
            run_id=f"day-{day}",
            created_at=f"2026-01-{day + 1:02}T00:00:00+00:00",
            environment=factories.environment(packages={"torch": torch}),
            between_sd=KNOWN,
        )
        store.create(folder / manifest.run_id, manifest)
        with store.RunStore(folder / manifest.run_id) as events:
            for replicate in range(3):
                record = factories.measured_record(
                    plan.cases[0],
                    replicate=replicate,
                    seconds={BASELINE: 0.015, "inductor": 0.015 / speedup},
                )
                stopped = StopReason.REPLICATES if replicate == 2 else None
                record = msgspec.structs.replace(record, run_id=manifest.run_id)
                events.append(msgspec.structs.replace(record, stopped=stopped, between_sd=KNOWN))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Nine days; on the seventh torch is upgraded, and the speedup falls by a tenth."""
    make_runs(tmp_path / "runs", [1.5] * UPGRADED + [1.35] * (DAYS - UPGRADED))
    return tmp_path / "runs"


def said(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    """Run a command, and return what it prints."""
    capsys.readouterr()
    assert cli.main(None, list(map(str, words))) == code
    found = capsys.readouterr()
    return found.out + found.err


def values(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """Run a command, and return its JSON."""
    return msgspec.json.decode(said(capsys, *words, "--json"))


def test_a_history_with_its_change(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Between which runs it lies, and that torch changed there."""
    found = said(capsys, "history", "alexnet", "--output-dir", runs)
    assert "WORSE 2026-01-07: 1.500x -> 1.350x (-10.0%)" in found
    assert "after day-5, by day-6" in found
    assert "torch: 2.11 -> 2.12" in found
    assert found.count("day-3") == 6  # once in each series: status, speedup, ...
    everything = values(capsys, "history", "alexnet", "--output-dir", runs)
    metrics = {each["metric"]: each for each in everything["series"]}
    assert {"status", "speedup", "latency", "eager_latency"} <= metrics.keys()
    [change] = metrics["speedup"]["changes"]
    assert change["differences"] == [{"name": "torch", "before": "2.11", "after": "2.12"}]
    assert metrics["eager_latency"]["changes"] == []
    assert metrics["latency"]["changes"][0]["direction"] == "worse"


def test_an_odd_run_is_left_out(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And named; the others are there."""
    events = runs / "day-2" / store.EVENTS
    text = re.sub(
        r'"samples":\[[^]]*\]',
        lambda found: re.sub(r"\d[\d.e-]*", "0", found[0]),
        events.read_text(),
    )
    events.write_text(text)
    found = said(capsys, "history", "alexnet", "--metric", "speedup", "--output-dir", runs)
    assert re.search(r"left out: \S+day-2: \S+/events.jsonl:1 is damaged", found)
    assert "day-3" in found


def test_a_run_that_cannot_be_evaluated_is_left_out(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is odd about it."""
    usual = indexing.side_of

    def odd(directory: Path, manifest: Manifest, records: Sequence[Record]) -> Side:
        if directory.name == "day-2":
            msg = "math domain error"
            raise ValueError(msg)
        return usual(directory, manifest, records)

    monkeypatch.setattr(indexing, "side_of", odd)
    found = said(capsys, "history", "alexnet", "--metric", "speedup", "--output-dir", runs)
    assert re.search(r"left out: \S+day-2: .*can't be evaluated: ValueError: math", found)
    assert "day-3" in found


def test_a_directory_whose_name_is_no_text(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Is named, and the others are there."""
    (runs / "day-2").rename(runs / os.fsdecode(b"day-\xff"))
    found = said(capsys, "history", "alexnet", "--metric", "speedup", "--output-dir", runs)
    assert r"day-\xff: its name is not UTF-8" in found
    assert "day-3" in found


def test_one_run_is_counted_as_one(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And none of it as a copy; a run that lies in two places is one."""
    words = ("--output-dir", runs.parent / "nowhere", "--index", runs.parent / "index.sqlite")
    found = said(capsys, "index", runs / "day-0", *words)
    assert "1 run(s) in 1 folder(s); read 1" in found
    assert "copies 0," in found
    shutil.copytree(runs / "day-0", runs.parent / "such as it was")
    found = said(capsys, "index", runs.parent / "such as it was", *words)
    assert "1 run(s) in 2 folder(s); read 1 (0 rows), copies 1," in found


def test_a_page(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Instead of text, it is written to a file, whose name is said."""
    path = tmp_path / "pages" / "history.html"
    assert said(capsys, "history", "--output-dir", runs, "-o", path) == f"{path}\n"
    text = path.read_text()
    assert "<title>History</title>" in text
    assert '"day-6"' in text


def test_a_run_among_earlier_ones(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its page has them where there is an index beside it, or one is named; unless told not to."""
    path, holds = tmp_path / "page.html", '<script type="application/json" id="earlier-0">'
    words = ("report", runs / "day-7", "-o", path)
    assert said(capsys, *words) == f"{path}\n"
    assert holds not in path.read_text()
    said(capsys, "index", "--output-dir", runs)
    assert said(capsys, *words) == f"{path}\n"
    text = path.read_text()
    assert holds in text
    assert '"day-6"' in text
    assert '"day-8"' not in text  # which came later
    assert '"at":"2026-01-07T00:00:00+00:00"' in text
    assert "read 0" in said(capsys, "index", "--output-dir", runs)
    said(capsys, *words, "--no-history")
    assert holds not in path.read_text()
    (runs / "index.sqlite").rename(tmp_path / "index.sqlite")
    said(capsys, *words)
    assert holds not in path.read_text()
    said(capsys, *words, "--index", tmp_path / "index.sqlite")
    assert holds in path.read_text()
    found = said(capsys, *words, "--index", ROOT / "README.md")
    assert "no earlier runs on the page: " in found
    assert holds not in path.read_text()


def test_an_empty_file_is_no_index_of_earlier_runs(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page is made without, and the file stays as it is."""
    empty, page = tmp_path / "notes.txt", tmp_path / "page.html"
    empty.touch()
    found = said(capsys, "report", runs / "day-7", "-o", page, "--index", empty)
    assert f"no earlier runs on the page: {empty} is empty, and no index of runs" in found
    assert page.exists()
    assert empty.read_bytes() == b""


@pytest.mark.parametrize("is_there", [False, True], ids=["no index", "an index"])
def test_a_folder_of_runs_that_is_not_there(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_there: bool
) -> None:
    """It is named, whether or not there is an index; none is made where nothing is to be read."""
    index, nowhere = tmp_path / "index.sqlite", tmp_path / "nowhere"
    if is_there:
        said(capsys, "index", "--output-dir", runs, "--index", index)
    found = said(capsys, "index", "--output-dir", nowhere, "--index", index, code=2)
    assert f"there is no {nowhere}: name where runs are" in found
    assert index.exists() is is_there
    assert not nowhere.exists()


@pytest.mark.parametrize("choice", [["--since", "4w"], ["--regressed"], ["--json"]])
def test_what_the_page_lets_one_choose(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], choice: list[str]
) -> None:
    """Is not chosen for it."""
    path = tmp_path / "history.html"
    found = said(capsys, "history", "--output-dir", runs, "-o", path, *choice, code=2)
    assert f"{choice[0]} does not go with --output" in found
    assert not path.exists()


def test_what_regressed_lately(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of all models, since a time; earlier changes are left out."""
    words = ("history", "--regressed", "--output-dir", runs, "--since")
    found = said(capsys, *words, "2026-01-03")
    assert "torchbench/alexnet" in found
    assert "WORSE 2026-01-07" in found
    assert "day-3" not in found
    assert "changes since 2026-01-08: 0" in said(capsys, *words, "2026-01-08")


def test_selections(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By suite, arm and metric; of all models only how they ended and the speedup are shown."""
    for words, metrics in (
        ([], ["status", "speedup"]),
        (["--suite", "torchbench"], ["status", "speedup"]),
        (["--arm", "inductor", "--metric", "latency"], ["latency"]),
        (["--arm", "baseline", "--metric", "eager_latency"], ["eager_latency"]),
    ):
        found = values(capsys, "history", *words, "--output-dir", runs)
        assert [each["metric"] for each in found["series"]] == metrics


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["alexnte"], ["unknown model 'alexnte'", "did you mean alexnet"]),
        (["--suite", "torchbnech"], ["unknown suite", "did you mean torchbench"]),
        (["--arm", "inducter"], ["unknown arm", "did you mean inductor"]),
        (["--metric", "speed"], ["unknown metric 'speed'"]),
        (["--index", str(ROOT / "README.md")], ["can't be used as an index", "--index"]),
    ],
)
def test_what_is_refused(
    runs: Path, words: list[str], says: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was meant."""
    found = said(capsys, "history", *words, "--output-dir", runs, code=2)
    for text in says:
        assert text in found
    assert "remove it" not in found  # what was never an index


def test_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of which a model is asked."""
    found = said(capsys, "history", "alexnet", "--output-dir", tmp_path, code=2)
    assert "holds no run of anything" in found
    assert "runs: 0, series: 0" in said(capsys, "history", "--output-dir", tmp_path)


def test_a_change_of_protocol_or_machine_starts_a_new_series(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said in what they differ; a host of another name is the same machine."""
    for day, (old, new) in {
        7: ('"cpu": "Made-up CPU"', '"cpu": "Faster CPU"'),
        8: ('"burst_s": 0.008', '"burst_s": 0.5'),
        5: ('"machine": "testbed"', '"machine": "other host"'),
    }.items():
        path = runs / f"day-{day}" / store.MANIFEST
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    words = ("history", "--metric", "speedup", "--output-dir", runs)
    found = values(capsys, *words)
    assert [len(each["points"]) for each in found["series"]] == [7, 1, 1]
    text = said(capsys, *words)
    assert "series 1: burst_s 0.008, cpu Made-up CPU" in text
    assert "series 2: burst_s 0.008, cpu Faster CPU" in text
    assert "series 3: burst_s 0.5, cpu Made-up CPU" in text


def test_stored_runs_of_every_format_and_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of earlier formats are upgraded on reading."""
    folders = [STORED / each for each in ("format_2", "format_3", "comparison")]
    found = said(capsys, "index", "--index", tmp_path / "index.sqlite", *folders,
                 "--output-dir", tmp_path)  # fmt: skip
    count = sum(len(list(each.glob("*/manifest.json"))) for each in folders)
    assert f"{count} run(s) in 4 folder(s); read {count} " in found
    assert "unreadable 0" in found
    assert not list(STORED.rglob("index.sqlite"))
    again = said(capsys, "history", "lennard_jones", "--output-dir", tmp_path)
    for study in ("aot_eager", "batch_sizes", "coverage", "sizes"):
        assert study in again


def test_the_index_can_be_made_again(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--rebuild`, or by removing it; what it says is the same."""
    before = said(capsys, "history", "--output-dir", runs)
    assert f"read {DAYS}" in said(capsys, "index", "--rebuild", "--output-dir", runs)
    assert said(capsys, "history", "--output-dir", runs) == before
    assert "read 0" in said(capsys, "index", "--output-dir", runs)
    for each in runs.glob("index.sqlite*"):
        each.unlink()
    assert said(capsys, "history", "--output-dir", runs) == before


def test_runs_come_and_go(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`history` itself notices; what can't be read is named, and the rest is shown."""
    said(capsys, "index", "--output-dir", runs)
    shutil.rmtree(runs / "day-0")
    shutil.copytree(runs / "day-1", runs / "copy")
    (runs / "day-2" / store.EVENTS).write_text("{}\n")
    found = said(capsys, "history", "--output-dir", runs)
    assert f"left out: {runs}/day-2: " in found
    assert f"runs: {DAYS - 2}, " in found


def test_nothing_a_terminal_obeys(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of somebody else may hold anything."""
    for path in (runs / "day-8" / store.MANIFEST, runs / "day-8" / store.EVENTS):
        path.write_text(path.read_text().replace("alexnet", "alex\\u001b[31mnet"))
    found = said(capsys, "history", "--output-dir", runs)
    assert "alex [31mnet" in found
    assert "\x1b" not in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("4w", "2026-10-28T12:00:00+00:00"),
        ("30d", "2026-10-26T12:00:00+00:00"),
        ("12h", "2026-11-25T00:00:00+00:00"),
        ("2026-11-01", "2026-11-01T00:00:00+00:00"),
        ("2026-11-01T02:00+02:00", "2026-11-01T00:00:00+00:00"),
    ],
)
def test_times(text: str | None, expected: str | None) -> None:
    """A span before now, or a date."""
    assert history._time(text, datetime(2026, 11, 25, 12, tzinfo=UTC)) == expected


@pytest.mark.parametrize("text", ["", "4", "w", "4m", "yesterday", "-4w", "0001-01-01T00:00+14:00"])
def test_what_is_no_time(text: str) -> None:
    """Also one before all calendars."""
    with pytest.raises(UsageError, match="--since"):
        history._time(text, datetime(2026, 11, 25, tzinfo=UTC))
