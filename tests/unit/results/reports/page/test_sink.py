"""The page that every run writes: when, where, and what it may cost."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.reports.page import document
from dynamometer.results.reports.page.sink import FILE, ReportFile
from dynamometer.results.store import store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory without a record."""
    specs = [factories.model_spec(f"model_{each}") for each in range(10)]
    store.create(tmp_path / "run", factories.manifest(factories.plan(*specs)))
    return tmp_path / "run"


def test_it_is_written_more_and_more_rarely(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 1, 2, 4 and 8 cases, and at the end: all of it takes twice as long as the last."""
    counts = []
    monkeypatch.setattr(document, "page", lambda runs: counts.append(len(runs[0].cases)) or "")
    sink = ReportFile(STUDY, factories.destination(run))
    for each in range(10):
        sink.write([factories.measured_record(factories.case(f"model_{each}"))])
    sink.close()
    sink.close()
    assert counts == [1, 2, 4, 8, 10]
    assert sink.paths == (run / FILE,)
    assert {path.name for path in run.iterdir()} == {FILE, store.MANIFEST, store.EVENTS}


def test_a_failure_is_said_and_ends_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored is stored; the page can be made later."""

    def fail(_: object) -> str:
        msg = "no such thing"
        raise KeyError(msg)

    monkeypatch.setattr(document, "page", fail)
    stream = io.StringIO()
    sink = ReportFile(STUDY, factories.destination(run, stream=stream))
    sink.write([factories.measured_record()])
    sink.close()
    assert sink.paths == ()
    assert stream.getvalue() == f"no page: KeyError: 'no such thing' (dynamometer report {run})\n"


def test_what_could_not_be_written_once_is_written_later(run: Path) -> None:
    """A failure that has passed is not spoken of."""
    stream = io.StringIO()
    sink = ReportFile(STUDY, factories.destination(run, stream=stream))
    manifest = (run / store.MANIFEST).rename(run / "elsewhere")
    sink.write([factories.measured_record(factories.case("model_0"))])
    manifest.rename(run / store.MANIFEST)
    sink.write([factories.measured_record(factories.case("model_1"))])
    sink.close()
    assert "model_1" in (run / FILE).read_text()
    assert stream.getvalue() == ""
