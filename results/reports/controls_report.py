"""What telling Dynamo how to treat functions changed, model by model. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from tabulate import tabulate

from dynamometer.results.reports.texts import speedup_text
from dynamometer.results.values.cases import NO_CONTROLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dynamometer.results.reports.coverage_report import CoverageSummary
    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary
    from dynamometer.results.values.cases import Case

Found = TypeVar("Found", "CaseSummary", "CoverageSummary")


def without_controls(found: Sequence[Found]) -> list[Found]:
    """Leave the cases in which Dynamo does as it would."""
    return [each for each in found if each.case.controls == NO_CONTROLS]


def lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Render each arm with and without: graphs, breaks, operators, speedup, outcome."""
    rows = [
        [before.case.model, first.name, *_changes((before, first), (after, second), _of_arm)]
        for before, after in _pairs(cases)
        for first, second in zip(before.arms, after.arms, strict=True)
    ]
    return _table(cases, rows, ["model", "arm", "graphs", "breaks", "ops", "speedup", "outcome"])


def coverage_lines(found: Sequence[CoverageSummary]) -> list[str]:
    """Render each model with and without: graphs, breaks, and the shares that are captured."""
    rows = [
        [before.case.model, *_changes(before, after, _of_coverage)]
        for before, after in _pairs(found)
    ]
    return _table(found, rows, ["model", "graphs", "breaks", "ops captured", "of time", "outcome"])


def _pairs(found: Sequence[Found]) -> Iterator[tuple[Found, Found]]:
    """Give each case with controls beside the same without."""
    usual = {each.case.id: each for each in without_controls(found)}
    for each in found:
        before = usual.get(msgspec.structs.replace(each.case, controls=NO_CONTROLS).id)
        if before is not None and before is not each:
            yield before, each


def _of_arm(found: tuple[CaseSummary, ArmSummary]) -> list[str]:
    case, arm = found
    seen = arm.capture
    return [
        str(seen.graphs) if seen else "-",
        str(sum(seen.breaks.values())) if seen else "-",
        str(seen.ops) if seen else "-",
        case.doubt if arm.speedup and case.doubt else speedup_text(arm.speedup),
        str(arm.outcome.status),
    ]


def _of_coverage(found: CoverageSummary) -> list[str]:
    seen = found.coverage
    if seen is None:
        return ["-", "-", "-", "-", str(found.outcome.status)]
    of_time = "-" if seen.share_of_time is None else f"{seen.share_of_time:.0%}"
    return [
        str(len(seen.graphs)),
        str(sum(each.times for each in seen.breaks)),
        f"{seen.captured_ops}/{seen.total_ops}",
        of_time,
        str(found.outcome.status),
    ]


def _changes(before: Any, after: Any, cells: Callable[[Any], list[str]]) -> list[str]:
    """Say what was and what is; once where that is the same."""
    return [
        one if one == other else f"{one} -> {other}"
        for one, other in zip(cells(before), cells(after), strict=True)
    ]


def _table(
    found: Sequence[CaseSummary] | Sequence[CoverageSummary],
    rows: Sequence[Sequence[str]],
    headers: Sequence[str],
) -> list[str]:
    if not rows:
        return []
    asked: list[Case] = [each.case for each in found if each.case.controls != NO_CONTROLS]
    kinds = dict.fromkeys(" ".join(case.controls.words) for case in asked)
    table = tabulate(rows, headers=headers, disable_numparse=True).splitlines()
    return ["", f"changed by {'; '.join(kinds)}:", *table]
