"""Arms of cases that were timed or checked, as rows of CSV files.

Of an arm that did not pass there are a status, a reason, what was captured, and what was measured
of eager, but nothing that was measured of the arm. PyTorch's columns have no place to say so, nor
that a case was disturbed: with these alone 0 stands for what was measured, and a file of theirs
says which arms passed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dynamometer.results.reports import overrides_report
from dynamometer.results.reports.arms.columns import ACCURACY, PERFORMANCE, ArmRow
from dynamometer.results.reports.arms.speedup_columns import PAIRS
from dynamometer.results.statistics.between_processes import shared
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.reports.columns import Rows
    from dynamometer.results.statistics.summary import CaseSummary
    from dynamometer.results.statistics.verdicts import Judgement


def rows(case: CaseSummary, *, compatible: bool) -> list[Rows]:
    """Return the row of each arm, in the file of that arm.

    Args:
        case: what was timed or checked.
        compatible: in the dashboards' columns alone; for a case that was timed in both of their
            files, as theirs say in one alone what failed.
    """
    make = _their_rows if compatible else _our_rows
    return [each for arm in case.arms for each in make(ArmRow(case, arm))]


def closing_rows(cases: Sequence[CaseSummary]) -> list[Rows]:
    """Return the rows of timed cases once more, with what is known of them together.

    Backends against each other stand in `backends_..._pairs.csv`.
    """
    timed = shared([case for case in cases if case.is_timed])
    judged = judge(overrides_report.counted(timed))
    over_eager = {(each.case.case.id, each.arm): each for each in judged if each.base == BASELINE}
    arms = [
        ArmRow(case, arm, over_eager.get((case.case.id, arm.name)))
        for case in timed
        for arm in case.arms
    ]
    return [
        *(each for row in arms for each in _our_rows(row)),
        *(_pair_rows(each) for each in judged if each.base != BASELINE),
    ]


def _our_rows(row: ArmRow) -> list[Rows]:
    table = PERFORMANCE if row.case.is_timed else ACCURACY
    return [table.rows(row.case.case, row.arm.name, [row])]


def _their_rows(row: ArmRow) -> list[Rows]:
    case, name = row.case.case, row.arm.name
    found = [ACCURACY.theirs().rows(case, name, [row])]
    if row.case.is_timed:
        found.insert(0, _certain(PERFORMANCE.theirs().rows(case, name, [row]), row))
    return found


def _pair_rows(judged: Judgement) -> Rows:
    return PAIRS.rows(judged.case.case, "backends", [judged])


_OF_ANY_ARM = frozenset({"dev", "name", "batch_size"})
_DOUBTFUL = frozenset({"speedup", "abs_latency"})


def _certain(found: Rows, row: ArmRow) -> Rows:
    """Leave what a reader may take for a result who sees PyTorch's columns alone.

    Of an arm that did not pass that is nothing, as in their files; of a case that was disturbed, or
    whose arms disturbed each other, all but speedup and latency.
    Source: `write_csv_when_exception` in `benchmarks/dynamo/common.py`, which writes 0 for both.
    """
    kept = frozenset(found.columns)
    if not row.arm.passed:
        kept = _OF_ANY_ARM
    elif not row.case.is_conclusive:
        kept -= _DOUBTFUL
    (values,) = found.rows
    certain = (
        value if name in kept else None for name, value in zip(found.columns, values, strict=True)
    )
    return replace(found, rows=(tuple(certain),))
