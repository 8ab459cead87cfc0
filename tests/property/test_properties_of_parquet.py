"""Runs go out of an index and into another one as they are, in whatever order that is."""

from __future__ import annotations

from datetime import UTC

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamometer.results.history.changes import KIND
from dynamometer.results.store.index import parquet
from dynamometer.results.store.index.index import Index
from dynamometer.results.store.index.index_file import IndexFile
from dynamometer.results.store.index.whole_runs import Part, add, parts
from dynamometer.results.values.cases import IDENTITY
from dynamometer.results.values.history import STATUS, IndexedRun, Row
from dynamometer.results.values.records import Status

pytestmark = pytest.mark.slow

METRICS = {STATUS, *KIND}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
words = st.dictionaries(texts, texts, max_size=3)
numbers = st.floats(1e-300, 1e300)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Return a row of any kind."""
    metric = draw(st.sampled_from(sorted(METRICS)))
    known = draw(st.sets(st.sampled_from(IDENTITY))) | {"model"}
    low, value, high = sorted(draw(st.tuples(numbers, numbers, numbers)))
    figures = {"low": low, "value": value, "high": high, "error": draw(st.floats(0, 1e300))}
    return Row(
        identity={name: draw(texts) for name in IDENTITY if name in known},
        arm=draw(texts),
        metric=metric,
        condition=draw(st.none() | texts.filter(bool)),
        status=draw(st.sampled_from([*map(str, Status)])),
        n=draw(st.integers(0, 2**63 - 1)),
        doubt=draw(st.none() | texts),
        **({} if metric == STATUS else figures),
    )


@st.composite
def runs(draw: st.DrawFn) -> Part:
    """Return a run with a few rows, none of which is there twice."""
    run = IndexedRun(
        run_id=draw(st.sampled_from("abc") | texts.filter(bool)),
        created_at=draw(st.datetimes(timezones=st.just(UTC))).isoformat(),
        study=draw(texts),
        conditions=draw(words),
        setting=draw(words),
    )
    found = draw(st.lists(rows(), min_size=1, max_size=4, unique_by=_key))
    return Part(run, draw(st.integers(0, 2**63 - 1)), len(found), found)


def _key(row: Row) -> bytes:
    key = (row.identity, row.arm, row.metric, row.condition)
    return msgspec.json.encode(key, order="sorted")


def _by_id(found: list[Part]) -> dict[str, Part]:
    return {each.run.run_id: each._replace(rows=sorted(each.rows, key=_key)) for each in found}


usual = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@usual
@given(found=st.lists(runs(), max_size=4, unique_by=lambda each: each.run.run_id))
def test_what_goes_out_comes_in(
    found: list[Part], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All of each run; an index that it went into gives the same file, byte by byte."""
    folder = tmp_path_factory.mktemp("files")
    with IndexFile(folder / "one.sqlite") as one, IndexFile(folder / "other.sqlite") as other:
        add(one, "runs", found)
        count = parquet.write(folder / "one.parquet", parts(one))
        assert count == (len(found), sum(len(each.rows) for each in found))
        added = add(other, "a file", parquet.read(folder / "one.parquet", METRICS))
        assert added == (*count, 0)
        assert _by_id(list(parts(other))) == _by_id(found)
        assert [*Index(one).read({})[0].values()] == [*Index(other).read({})[0].values()]
        parquet.write(folder / "other.parquet", parts(other))
    assert (folder / "one.parquet").read_bytes() == (folder / "other.parquet").read_bytes()


@usual
@given(data=st.data(), found=st.lists(runs(), max_size=6))
def test_files_are_a_set_union(
    data: st.DataObject, found: list[Part], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the order in which they are added, and however often."""
    sized = [each._replace(size=number) for number, each in enumerate(found)]  # none has as many
    folder = tmp_path_factory.mktemp("files")
    results = []
    for name in ("one", "other"):
        order = data.draw(st.permutations(sized))
        with IndexFile(folder / f"{name}.sqlite") as file:
            for each in (*order, *order[:2]):
                add(file, "runs", [each])
            results.append(_by_id(list(parts(file))))
    assert results[0] == results[1]
    assert results[0].keys() == {each.run.run_id for each in found}
