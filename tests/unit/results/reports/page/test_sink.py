"""The page that every run writes: when, where, and what it may cost."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.comparison.sides import of_run
from dynamometer.results.history.rows import indexed_run, rows
from dynamometer.results.reports.page import document
from dynamometer.results.reports.page.sink import FILE, ReportFile
from dynamometer.results.store import store
from dynamometer.results.store.index.index import Index, IndexedDirectory
from dynamometer.results.store.index.index_file import IndexFile
from dynamometer.results.store.index.indexing import refresh
from dynamometer.results.values.history import INDEX_FILE

if TYPE_CHECKING:
    from dynamometer.results.reports.page.run import RunToShow


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory without a record."""
    specs = [factories.model_spec(f"model_{each}") for each in range(10)]
    store.create(tmp_path / "run", factories.manifest(factories.plan(*specs)))
    return tmp_path / "run"


def end(run: Path, sink: ReportFile, model: str, replicates: int = 1) -> None:
    """Store the records of a case, and tell the sink."""
    case = factories.case(model)
    records = [factories.measured_record(case, replicate=each) for each in range(replicates)]
    with store.RunStore(run) as events:
        for record in records:
            events.append(record)
    sink.write(records)


def test_it_is_written_more_and_more_rarely(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 1, 2, 4 and 8 cases, and at the end."""
    counts = []
    monkeypatch.setattr(document, "page", lambda runs: counts.append(len(runs[0].cases)) or "")
    sink = ReportFile(STUDY, factories.destination(run), clock=lambda: 0.0)
    for each in range(10):
        end(run, sink, f"model_{each}")
    sink.close()
    sink.close()
    assert counts == [1, 2, 4, 8, 10]
    assert sink.paths == (run / FILE,)
    assert {path.name for path in run.iterdir()} == {FILE, store.MANIFEST, store.EVENTS}


def test_what_takes_long_is_written_more_rarely(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of 3 s, cases of 50 s: the second page comes after 150 s, whatever has ended."""
    counts: list[int] = []
    now = [0.0]

    def page(runs: list[RunToShow]) -> str:
        counts.append(len(runs[0].cases))
        now[0] += 3.0
        return ""

    monkeypatch.setattr(document, "page", page)
    sink = ReportFile(STUDY, factories.destination(run), clock=lambda: now[0])
    for each in range(9):
        now[0] += 50.0
        end(run, sink, f"model_{each}")
    sink.close()
    assert counts == [1, 4, 8, 9]


def test_what_is_resumed_is_there_from_the_first(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write holds all cases that had ended; the next comes at twice as many."""
    first = ReportFile(STUDY, factories.destination(run), clock=lambda: 0.0)
    for each in range(4):
        end(run, first, f"model_{each}")
    counts = []
    monkeypatch.setattr(document, "page", lambda runs: counts.append(len(runs[0].cases)) or "")
    resumed = ReportFile(STUDY, factories.destination(run))
    for each in range(4):  # cases that had ended are told of again
        resumed.write([factories.measured_record(factories.case(f"model_{each}"))])
    assert counts == [4]
    resumed.close()
    assert counts == [4, 4]


def test_cases_that_had_not_ended_are_in_it(run: Path) -> None:
    """As when a run is interrupted: what they have is shown, as `report` does."""
    sink = ReportFile(STUDY, factories.destination(run))
    end(run, sink, "model_0", replicates=3)
    with store.RunStore(run) as events:
        events.append(factories.measured_record(factories.case("model_1")))
    sink.close()
    text = (run / FILE).read_text()
    assert '"ended":1' in text
    assert 'id="details-0-1"' in text


def test_a_failure_is_said_and_ends_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored is stored; the page can be made later, and an old one is no result."""
    stream = io.StringIO()
    sink = ReportFile(STUDY, factories.destination(run, stream=stream))
    end(run, sink, "model_0")
    before = (run / FILE).read_text()

    def full(self: Path, *_: object, **__: object) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    end(run, sink, "model_1")
    sink.close()
    assert sink.paths == ()
    assert {path.name for path in run.iterdir()} == {FILE, store.MANIFEST, store.EVENTS}
    assert (run / FILE).read_text() == before
    assert "no page of the whole run: OSError: " in stream.getvalue()
    assert f"(dynamometer report {run} -o {run / FILE})" in stream.getvalue()


def test_ctrl_c_at_the_end_costs_the_page_alone(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has ended, and its exit code is what it would be."""

    def interrupt(_: object) -> str:
        raise KeyboardInterrupt

    stream = io.StringIO()
    sink = ReportFile(STUDY, factories.destination(run, stream=stream))
    end(run, sink, "model_0")
    monkeypatch.setattr(document, "page", interrupt)
    sink.close()
    assert "no page of the whole run: interrupted" in stream.getvalue()


def earlier_days(folder: Path, days: int) -> Path:
    """Make an index of a folder, with a run of model_0 for each of some days before."""
    path = folder / INDEX_FILE
    with IndexFile(path) as file:
        index = Index(file)
        index.add_folders([folder])
        for day in range(days):
            manifest = factories.manifest(
                run_id=f"day-{day}", created_at=f"2025-12-{day + 1:02}T00:00:00+00:00"
            )
            records = [factories.measured_record(factories.case("model_0"))]
            side = of_run("", manifest, records, STUDY.compared(records))
            known = IndexedDirectory(str(folder / f"day-{day}"), "1", 1, manifest.run_id)
            index.add(known, indexed_run(manifest, side), rows(side))
    return path


def test_earlier_runs_are_beside_it(run: Path) -> None:
    """Where an index has some: at the end, with the run itself, which it holds from then on."""
    index = earlier_days(run.parent, 5)
    sink = ReportFile(STUDY, factories.destination(run))
    end(run, sink, "model_0")
    assert '<script type="application/json" id="earlier-0">' not in (run / FILE).read_text()
    end(run, sink, "model_1")
    sink.close()
    text = (run / FILE).read_text()
    assert '<script type="application/json" id="earlier-0">' in text
    assert '"day-4"' in text
    with IndexFile(index) as file:
        assert len(Index(file).directories()) == 6
        found = refresh(Index(file), lambda _: pytest.fail("it is there as it is"))
        assert (found.read, found.gone) == (0, 5)


def test_no_index_is_made(run: Path) -> None:
    """Nor is anything said."""
    stream = io.StringIO()
    sink = ReportFile(STUDY, factories.destination(run, stream=stream))
    end(run, sink, "model_0")
    sink.close()
    assert [each.name for each in run.parent.iterdir()] == ["run"]
    assert stream.getvalue() == ""


def test_an_index_that_can_not_be_used(run: Path) -> None:
    """Costs the page what earlier runs were, which is said, and nothing else."""
    (run.parent / INDEX_FILE).write_text("no index " * 100)
    stream = io.StringIO()
    sink = ReportFile(STUDY, factories.destination(run, stream=stream))
    end(run, sink, "model_0")
    sink.close()
    assert sink.paths == (run / FILE,)
    assert "no earlier runs on report.html: " in stream.getvalue()
    assert "can't be used as an index" in stream.getvalue()


def test_what_could_not_be_written_once_is_written_later(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure that has passed is not spoken of."""
    stream = io.StringIO()
    sink = ReportFile(STUDY, factories.destination(run, stream=stream))
    with monkeypatch.context() as patch:
        patch.setattr(document, "page", lambda _: 1 / 0)
        end(run, sink, "model_0")
    end(run, sink, "model_1")
    sink.close()
    assert "model_1" in (run / FILE).read_text()
    assert stream.getvalue() == ""
