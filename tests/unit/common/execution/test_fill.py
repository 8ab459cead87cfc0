"""What fills the caches of a run with `--warm`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dynamometer.common.execution.preparation.fill import Fill
from dynamometer.common.measuring import arms
from dynamometer.common.studies.experiment import StageClock
from dynamometer.results.values.records import PASSED


@pytest.mark.parametrize("fails_at", [None, 2])
def test_what_is_compiled_at_a_second_call_is_in_the_caches(
    fails_at: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a model that keeps a table of its first one; what fails will fail in its place."""
    calls = []

    def call() -> None:
        calls.append(1)
        if len(calls) == fails_at:
            raise ValueError

    monkeypatch.setattr(arms, "compiled_step", lambda *_: SimpleNamespace(call=call))
    context = SimpleNamespace(
        job=SimpleNamespace(arms=("inductor",)), stages=StageClock(lambda _: None),
        load=lambda: None,
    )  # fmt: skip
    assert Fill().measure(cast("Any", context)).outcome == PASSED
    assert len(calls) == (fails_at or 3)
