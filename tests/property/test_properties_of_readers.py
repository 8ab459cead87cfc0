"""Whatever a file holds: it is read, or an error of ours says which file it is."""

from __future__ import annotations

import io
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamometer.common.command_line.bisect.command import Searched, read_search
from dynamometer.common.command_line.project import read_project
from dynamometer.common.errors import DynamometerError
from dynamometer.common.planning.batch_size_file import read_batch_sizes
from dynamometer.models.parity.corpus import cases_of
from dynamometer.models.suites.tables import TableSuite
from dynamometer.models.suites.user_models import ModelFile
from dynamometer.results.comparison.dashboard_files import read_files
from dynamometer.results.comparison.entries import of_arms
from dynamometer.results.reports.csv_file import CsvFile
from dynamometer.results.statistics.summary import by_case, summarize_case
from dynamometer.results.store import expected, overview, store, their_expected
from dynamometer.results.store.decisions import exported, imported
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.graphs.corpus import DESCRIPTION, read_description
from dynamometer.results.store.index import parquet
from dynamometer.results.store.index.index import Index
from dynamometer.results.store.index.index_file import IndexFile
from dynamometer.results.store.index.whole_runs import Part, add
from dynamometer.results.store.reading import file_text
from dynamometer.results.values.graphs import Origin, SavedGraph
from dynamometer.results.values.history import IndexedRun, Row

if TYPE_CHECKING:
    from collections.abc import Callable

OURS = (DynamometerError, StoreError)

EVENT = msgspec.json.encode(factories.record()) + b"\n"
MEASURED = msgspec.json.encode(factories.measured_record()) + b"\n"
EARLIER_EVENTS = {
    f"events of format {number}": EVENT.replace(b'"schema":4', b'"schema":%d' % number)
    for number in (2, 3)
}
MANIFEST = msgspec.json.encode(factories.manifest())
NOW = datetime(2026, 1, 2, tzinfo=UTC)
DECISION = exported([factories.decision()]).encode()
EXPECTED = b"case,arm,status,captured_ops,graph_breaks\na,inductor,pass,3,0\n"
THEIRS = b"name,accuracy,graph_breaks\nresnet18,pass,0\n"
DASHBOARD = b"dev,name,batch_size,speedup\ncpu,resnet18,4,1.5\n"
PROJECT = b'[tool.dynamometer]\nmodels = "FILE.py"\nbackend = ["inductor"]\n'
SEARCHED = Searched(
    command=("measure",), points=("a", "b"), repository=None, build=None, switch="to {}", at=""
)
SEARCH = msgspec.json.encode(SEARCHED)
MODELS = b"def build(batch_size=2): ...\nMODELS = {'a': build}\n"


def _events(path: Path) -> None:
    store.create(path.parent / "run", factories.manifest())
    events = path.parent / "run" / store.EVENTS
    events.write_bytes(path.read_bytes())
    store.read_records(events.parent)
    overview.read_overview(events.parent)


def _figures(path: Path) -> None:
    _events(path)
    for case in by_case(store.read_records(path.parent / "run")):
        summarize_case(case)
        of_arms(case)


def _manifest(path: Path) -> None:
    run = path.parent / "run"
    run.mkdir()
    (run / store.MANIFEST).write_bytes(path.read_bytes())
    (run / store.EVENTS).write_bytes(EVENT)
    store.read_manifest(run)
    overview.read_overview(run)
    store.read_records(run)


def _specs(path: Path) -> None:
    [*TableSuite("any")._read(path)]


def _models(path: Path) -> None:
    try:
        ModelFile(path, "").specs()
    except ValueError as error:
        raise DynamometerError(str(error)) from error


def _test_cases(path: Path) -> None:
    file = path.with_name("test_some.py")
    file.write_bytes(path.read_bytes())
    try:
        cases_of(str(file))
    except ValueError as error:
        raise DynamometerError(str(error)) from error


def _index(path: Path) -> None:
    with IndexFile(path) as file:
        Index(file).read({})


METRICS = ("status", "speedup")
PART = Part(
    IndexedRun(
        run_id="a", created_at="2026-01-01T00:00:00+00:00", study="speedup",
        conditions={"torch": "2.13"}, setting={"cpu": "Made-up CPU"},
    ),
    9,
    2,
    [
        Row(identity={"model": "a"}, arm="inductor", metric="status", status="pass", n=3),
        Row(
            identity={"model": "a", "suite": "s"}, arm="inductor", metric="speedup", status="pass",
            n=3, value=1.5, low=1.4, high=1.6, error=0.01, doubt="busy", condition="cold",
        ),
    ],
)  # fmt: skip


def _good_parquet() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "some.parquet")
        parquet.write(path, [PART])
        return path.read_bytes()


def _parquet(path: Path) -> None:
    with IndexFile(path.with_name("index.sqlite")) as file:
        index = Index(file)
        try:
            add(file, str(path), parquet.read(path, METRICS))
        except StoreError:
            assert index.read({}) == ({}, [])  # nothing half
            raise
        index.read({})


def _graph(path: Path) -> None:
    read_description(path)


def _good_graph() -> bytes:
    graph = SavedGraph(
        key="ab" * 32, origin=Origin(suite="mine", model="net"), ops={}, inputs=(), torch="2.13"
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(DESCRIPTION, msgspec.json.encode(graph))
    return data.getvalue()


TEST_CASES = b"class A: ...\nTESTCASES = [\n    (A, lambda: ([], {}), lambda: ([1], {})),\n]\n"


READERS: dict[str, tuple[bytes, Callable[[Path], object]]] = {
    "events": (EVENT, _events),
    "figures of events": (MEASURED, _figures),
    **{name: (event, _events) for name, event in EARLIER_EVENTS.items()},
    "manifest": (MANIFEST, _manifest),
    "expected": (EXPECTED, expected.read_table),
    "theirs": (THEIRS, their_expected.read_table),
    "dashboard": (DASHBOARD, read_files),
    "output": (DASHBOARD, lambda path: CsvFile(None, path, "all")),  # type: ignore[arg-type]  not asked
    "project": (PROJECT, read_project),
    "batch sizes": (b"resnet18,64\n# none\n", read_batch_sizes),
    "decisions": (DECISION, lambda path: imported(file_text(path), str(path), NOW)),
    "tables": (b'[a]\ntask = "t"\n', _specs),
    "models": (MODELS, _models),
    "test cases": (TEST_CASES, _test_cases),
    "graph": (_good_graph(), _graph),
    "index": (b"", _index),
    "parquet": (_good_parquet(), _parquet),
    "search": (SEARCH, read_search),
}

pieces = st.sampled_from(
    [b"\xff", b"\x00", b"\n", b'"', b",", b"[", b"{", b"}", b"null", b"-1", b"1e999", b"9" * 400,
     b"\xed\xa0\x80", b'"\\ud800"', b"true", b"=", b"[" * 3000]
)  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, good: bytes) -> bytes:
    """Return a good file, cut, or with something in place of a part of it."""
    start = draw(st.integers(0, len(good)))
    end = draw(st.integers(start, len(good)))
    return good[:start] + draw(pieces | st.binary(max_size=6)) + good[end:]


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_are_read_or_refused_by_name(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Never another exception, which would be a traceback to whoever has such a file."""
    good, read = READERS[name]
    path = tmp_path_factory.mktemp("files") / "some"
    path.write_bytes(data.draw(changed(good) | st.binary(max_size=40)))
    try:
        read(path)
    except OURS as error:
        assert str(path.parent) in str(error) or "pyproject" in str(error), error  # noqa: PT017  only some raise


@pytest.mark.parametrize("case", ['{"experiments":[[]]}', '{"a":' * 700 + "1" + "}" * 700])
def test_a_damaged_case_of_an_earlier_format(case: str, tmp_path: Path) -> None:
    """Bringing it up to the present one fails otherwise than reading does."""
    line = f'{{"schema":3,"run_id":"x","replicate":0,"case":{case}}}\n'
    (tmp_path / "some").write_text(line)
    store.create(tmp_path / "run", factories.manifest())
    (tmp_path / "run" / store.EVENTS).write_text(line)
    for read in (store.read_records, overview.read_overview):
        with pytest.raises(StoreError, match=f"{store.EVENTS}:1 is damaged"):
            read(tmp_path / "run")


@pytest.mark.parametrize("name", READERS)
def test_what_is_right_is_read(name: str, tmp_path: Path) -> None:
    """What is changed above was good before."""
    good, read = READERS[name]
    (tmp_path / "some").write_bytes(good)
    if name == "tables":
        with pytest.raises(DynamometerError, match="missing required field"):
            read(tmp_path / "some")
    else:
        read(tmp_path / "some")
