"""A run on a torch that has none of the names it doesn't promise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.dynamo.private import RESTS_ON

if TYPE_CHECKING:
    import pytest


def test_a_run_without_any_of_them_is_timed_and_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every arm has latencies; the record names each that is gone, with what rests on it."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "bench"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    import without_private_names

    assert without_private_names.run_without(tuple(RESTS_ON)) == without_private_names.GOOD
