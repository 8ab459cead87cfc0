from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamometer.results.statistics.summary import summarize_cases
from dynamometer.results.store.expected import (
    Change,
    Expectation,
    Kind,
    compare,
    observed,
    read_table,
    write_table,
)
from dynamometer.results.store.store import StoreError
from dynamometer.results.values.cases import (
    BASELINE,
    NO_OVERRIDES,
    Case,
    Dtype,
    DynamicDims,
    Mode,
    Overrides,
    Scale,
)
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from pathlib import Path

KEY = ("torchbench/alexnet/inference/cpu/float32/static/full/b4", "inductor")
BEFORE = Expectation(status=Status.PASS, captured_ops=40, graph_breaks=3)


def change(**fields: object) -> Change | None:
    """Compare one arm with what it was."""
    now = Expectation(**{"status": Status.PASS, "captured_ops": 40, "graph_breaks": 3, **fields})  # type: ignore[arg-type]  # untyped
    changes = compare({KEY: BEFORE}, {KEY: now})
    return changes[0] if changes else None


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"status": Status.CRASH}, Kind.REGRESSION, "pass became crash"),
        ({"captured_ops": 39}, Kind.REGRESSION, "40 captured ops became 39"),
        ({"captured_ops": None}, Kind.REGRESSION, "40 captured ops became None"),
        ({"captured_ops": 84, "graph_breaks": 5}, Kind.IMPROVEMENT, "40 captured ops became 84"),
        ({"graph_breaks": 4}, Kind.NOTE, "3 graph breaks became 4, with as many ops captured"),
    ],
)
def test_what_a_change_means(fields: dict[str, object], kind: Kind, text: str) -> None:
    """Fewer operators are lost ground; more breaks by themselves are not."""
    found = change(**fields)
    assert found == Change(KEY, kind, text)
    assert found.is_unexpected is (kind is not Kind.NOTE)


def test_what_is_as_expected_is_no_change() -> None:
    """Nor are expected cases that were not run."""
    assert change() is None
    assert compare({KEY: BEFORE}, {}) == []


def test_what_the_table_does_not_know_and_what_got_better() -> None:
    """Both have to go into the table before a run is as expected again."""
    failed = Expectation(status=Status.FAIL)
    assert [each.kind for each in compare({}, {KEY: BEFORE})] == [Kind.NEW]
    assert [each.kind for each in compare({KEY: failed}, {KEY: BEFORE})] == [Kind.IMPROVEMENT]
    crashed = Expectation(status=Status.CRASH)
    assert [each.kind for each in compare({KEY: failed}, {KEY: crashed})] == [Kind.CHANGE]


def test_a_run_is_observed_by_arm() -> None:
    """A case is known by everything but the arms it was compared with."""
    cases = summarize_cases([factories.measured_record()])
    assert observed(cases) == {KEY: BEFORE}


WORDS = st.text("ab/%+=:.- ", min_size=1, max_size=3)  # nobody is called nothing
SOME = st.lists(WORDS, max_size=2).map(tuple)
CASES = st.builds(
    Case,
    suite=WORDS, model=WORDS, arms=SOME, device=WORDS,
    mode=st.sampled_from(Mode), dtype=st.sampled_from(Dtype), scale=st.sampled_from(Scale),
    channels_last=st.booleans(), compiled_optimizer=st.booleans(), nopython=st.booleans(),
    dynamic=st.booleans(), dynamic_dims=st.sampled_from(DynamicDims),
    batch_size=st.none() | st.integers(1, 9),
    overrides=st.builds(
        Overrides, allow_in_graph=SOME, disable=SOME,
        substitute=st.lists(st.tuples(WORDS, WORDS), max_size=2).map(tuple),
    ),
)  # fmt: skip
"""Whatever a user may call a model, a backend or a function, separators of an id included."""


@given(one=CASES, other=CASES, field=st.sampled_from(Case.__struct_fields__))
def test_only_cases_that_differ_in_their_arms_alone_share_a_row(
    one: Case, other: Case, field: str
) -> None:
    """Of two cases that differ in one field, and of two that differ in many."""
    near = msgspec.structs.replace(one, **{field: getattr(other, field)})
    for second in (near, other):
        without = [msgspec.structs.replace(each, arms=()) for each in (one, second)]
        assert (one.id_without_arms == second.id_without_arms) == (without[0] == without[1])
        assert (one.id == second.id) == (one == second)


@given(case=CASES, name=st.from_regex(r"[A-Za-z0-9_.:-]+", fullmatch=True))
def test_tables_of_ordinary_cases_are_read_as_they_were(case: Case, name: str) -> None:
    """Without overrides a key is what stood before the arms in the id, letter by letter."""
    ordinary = msgspec.structs.replace(
        case, suite=name, model=name, device="cpu", arms=(BASELINE, name), overrides=NO_OVERRIDES
    )
    batch = "own" if case.batch_size is None else case.batch_size
    assert ordinary.id == f"{ordinary.id_without_arms}/{BASELINE}+{name}"
    assert ordinary.id_without_arms.startswith(f"{name}/{name}/{case.mode}/cpu/{case.dtype}/")
    assert ordinary.id_without_arms.endswith(f"/{case.scale}/b{batch}")


@pytest.mark.parametrize("arm", ["inductor", "my/backends.py:fast"])
def test_what_dynamo_is_told_of_functions_is_part_of_the_case(tmp_path: Path, arm: str) -> None:
    """Each function that is left out has rows of its own, which are found again."""
    told = [NO_OVERRIDES, *(Overrides(disable=(each,)) for each in ("mine:one", "mine:other/two"))]
    cases = [factories.case(arms=(BASELINE, arm), overrides=each) for each in told]
    found = observed(summarize_cases([factories.measured_record(each) for each in cases]))
    assert [key[0].removeprefix(KEY[0]) for key in found] == [
        "",
        "/--disable-frame/mine:one",
        "/--disable-frame/mine:other%2Ftwo",
    ]
    assert {key[1] for key in found} == {arm}
    write_table(tmp_path / "table.csv", found)
    assert compare(read_table(tmp_path / "table.csv"), found) == []


COUNTS = st.none() | st.integers(0, 1000)
EXPECTATIONS = st.builds(
    Expectation, status=st.sampled_from(Status), captured_ops=COUNTS, graph_breaks=COUNTS
)
NAMES = st.text("abc/_,\" '", min_size=1)


@given(table=st.dictionaries(st.tuples(NAMES, NAMES), EXPECTATIONS))
def test_a_table_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, table: dict[tuple[str, str], Expectation]
) -> None:
    """Whatever the names hold."""
    path = tmp_path_factory.mktemp("expected") / "new" / "table.csv"
    write_table(path, table)
    assert read_table(path) == table


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,accuracy\n", "its columns must be"),
        (
            "case,arm,status,captured_ops,graph_breaks\na,b,fine,1,1\n",
            "line 2: 'fine' is no status; there are pass, ",
        ),
        ("case,arm,status,captured_ops,graph_breaks\na,b,pass,one,1\n", "line 2: invalid literal"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """With the line that is damaged."""
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(StoreError, match=says):
        read_table(path)


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    """With what makes one."""
    with pytest.raises(StoreError, match="--update-expected makes it"):
        read_table(tmp_path / "none.csv")
