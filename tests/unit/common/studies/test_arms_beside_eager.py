"""What a process comes to by what became of its arms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import factories
import pytest

from dynamometer.common.studies.arms_beside_eager import findings_of
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED, ArmResult, Outcome, Status

SKIPPED, CRASHED = (factories.failure(each) for each in (Status.SKIP, Status.CRASH))


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({BASELINE: PASSED}, PASSED),
        ({BASELINE: CRASHED}, CRASHED),
        ({BASELINE: PASSED, "a": SKIPPED}, SKIPPED),
        ({BASELINE: PASSED, "a": SKIPPED, "b": PASSED}, PASSED),
        ({BASELINE: PASSED, "a": CRASHED, "b": PASSED}, CRASHED),
    ],
)
def test_a_process_ends_as_the_worst_of_its_arms(
    ends: dict[str, Outcome], expected: Outcome
) -> None:
    """Those beside eager, if there are any; what can't run here takes nothing from the others."""
    context = SimpleNamespace(
        job=SimpleNamespace(arms=tuple(ends)), device=SimpleNamespace(name="Made-up CPU")
    )
    results = {arm: ArmResult(arm=arm, outcome=end) for arm, end in ends.items()}
    loaded = cast("Any", SimpleNamespace(notes=()))
    found = findings_of(cast("Any", context), loaded, results, [*ends])
    assert found.outcome == expected
    assert [each.arm for each in found.arms] == [*ends]
