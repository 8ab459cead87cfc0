"""How much of what a model says is kept."""

from __future__ import annotations

import factories
import msgspec
import pytest

from dynamometer.common.interfaces.outcome import classify
from dynamometer.results.store.bounds import LONGEST_TEXT, bounded
from dynamometer.results.values.records import Stage


@pytest.fixture(scope="module")
def huge() -> str:
    """A text of 50 MB."""
    return "b" + "x" * 50_000_000 + "e"


@pytest.mark.slow
def test_an_exception_of_50_megabytes_is_known_by_its_ends(huge: str) -> None:
    """Of one raised in a worker; nothing as large is sent or stored."""
    outcome = classify(ValueError(huge), Stage.LOAD)
    assert len(msgspec.json.encode(outcome)) < 20_000
    assert outcome.reason is not None
    assert outcome.reason.startswith("ValueError: bxxx")
    assert "characters left out" in outcome.reason
    assert outcome.reason.endswith("xe")


@pytest.mark.slow
def test_no_text_of_a_record_is_longer_than_can_be_read(huge: str) -> None:
    """Whoever wrote it, and wherever it stands, such as in what a study found."""
    found = msgspec.Raw(msgspec.json.encode({"a": [huge, 1]}))
    record = factories.record(outcome=factories.failure(reason=huge), notes=(huge,), found=found)
    kept = bounded(record)
    assert len(msgspec.json.encode(kept)) < 6 * LONGEST_TEXT
    assert kept.case == record.case
    assert kept.notes[0].endswith("xe")


def test_a_usual_record_stays_as_it_is() -> None:
    """It is not even looked through."""
    record = factories.record()
    assert bounded(record) is record
