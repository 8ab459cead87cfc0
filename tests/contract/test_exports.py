"""Every registered export, with every kind of case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import pytest
import stored
from protocols import deviations
from test_sinks import CASES

from dynamometer.common import registry
from dynamometer.results.exports.export import Export

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.records import Record

HOSTILE = "<script>alert('1')</script>|`\x1b[31m\x00 \"x\"\\\n& @everyone ]]>"


@pytest.fixture(params=sorted(registry.targets("exports")))
def export(request: pytest.FixtureRequest) -> Export:
    """An export."""
    found: Export = registry.resolve("exports", request.param)
    return found


def of(records: Sequence[Record], model: str) -> list[Record]:
    """Return records as those of another model."""
    return [stored.renamed(record, model) for record in records]


@pytest.mark.parametrize("kind", CASES)
def test_every_kind_of_case_is_taken(export: Export, kind: str) -> None:
    """Whatever became of a case, it can be exported."""
    assert export(stored.run_of([CASES[kind]()])) is not None


def test_it_is_one_function_of_a_run(export: Export) -> None:
    """Its argument is that of the interface, and the same run comes to the same documents."""
    assert deviations(Export, export) == []
    run = stored.run_of([CASES["passing"]()])
    first, second = export(run), export(run)
    assert [(each.name, each.text) for each in first] == [(each.name, each.text) for each in second]


def test_every_model_is_named(export: Export) -> None:
    """A run of everything is taken at once; names of documents differ, and end lines."""
    run = stored.run_of(
        [of(make(), f"model_{number}") for number, make in enumerate(CASES.values())]
    )
    documents = export(run)
    assert len({each.name for each in documents}) == len(documents) > 0
    assert all(each.text.endswith("\n") for each in documents)
    assert any("model_0" in each.text.replace("\\", "") for each in documents)


def test_a_run_without_records(export: Export) -> None:
    """One that was interrupted at once has nothing wrong to say."""
    for each in export(stored.run_of([], factories.case())):
        assert "Traceback" not in each.text


def test_hostile_names_are_taken(export: Export) -> None:
    """A name or a reason may be any text; no document holds a control character of it."""
    failed = [factories.record(outcome=factories.failure(reason=HOSTILE))]
    run = stored.run_of([of(CASES["passing"](), HOSTILE), of(failed, f"{HOSTILE}2")])
    for each in export(run):
        assert not set(each.text) & {"\x00", "\x1b"} or each.name.endswith(".csv")
