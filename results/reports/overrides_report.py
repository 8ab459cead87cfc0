"""What telling Dynamo how to treat functions changed, model by model. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from tabulate import tabulate

from dynamometer.results.reports.texts import speedup_text
from dynamometer.results.values.cases import NO_OVERRIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary
    from dynamometer.results.values.cases import Case


class OfCase(Protocol):
    """What was found of a case."""

    @property
    def case(self) -> Case:
        """Return the case."""
        ...


Found = TypeVar("Found", bound=OfCase)


def without_overrides(found: Sequence[Found]) -> list[Found]:
    """Leave the cases in which Dynamo does as it would."""
    return [each for each in found if each.case.overrides == NO_OVERRIDES]


def counted(found: Sequence[Found]) -> list[Found]:
    """Leave the cases that a run's figures are of: those without, or all where none is without."""
    return without_overrides(found) or list(found)


def lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Render each arm with and without: graphs, breaks, operators, speedup, outcome."""
    rows = [
        [before.case.model, first.name, *changes(_cells(before, first), _cells(after, second))]
        for before, after in pairs(cases)
        for first, second in zip(before.arms, after.arms, strict=True)
    ]
    headers = ["model", "arm", "graphs", "breaks", "ops", "speedup", "outcome"]
    return table([each.case for each in cases], rows, headers)


def pairs(found: Sequence[Found]) -> Iterator[tuple[Found, Found]]:
    """Yield each case with overrides beside the same without."""
    usual = {each.case.id: each for each in without_overrides(found)}
    for each in found:
        before = usual.get(msgspec.structs.replace(each.case, overrides=NO_OVERRIDES).id)
        if before is not None and before is not each:
            yield before, each


def changes(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return what was and what is; once where that is the same."""
    return [
        one if one == other else f"{one} -> {other}"
        for one, other in zip(before, after, strict=True)
    ]


def table(
    cases: Sequence[Case], rows: Sequence[Sequence[str]], headers: Sequence[str]
) -> list[str]:
    """Render rows, if there are any, below the overrides that were asked for."""
    if not rows:
        return []
    kinds = dict.fromkeys(
        " ".join(case.overrides.argv) for case in cases if case.overrides != NO_OVERRIDES
    )
    text = tabulate(rows, headers=headers, disable_numparse=True).splitlines()
    return ["", f"changed by {'; '.join(kinds)}:", *text]


def _cells(case: CaseSummary, arm: ArmSummary) -> list[str]:
    seen = arm.capture
    return [
        str(seen.graphs) if seen else "-",
        str(sum(seen.breaks.values())) if seen else "-",
        str(seen.ops) if seen else "-",
        case.doubt if arm.speedup and case.doubt else speedup_text(arm.speedup),
        str(arm.outcome.status),
    ]
