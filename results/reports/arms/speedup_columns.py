"""What stands beside a speedup, over eager or over another backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dynamometer.results.reports.columns import Column, Table, identity, of_part
from dynamometer.results.statistics.replicates import replicates_needed_over
from dynamometer.results.statistics.verdicts import Judgement
from dynamometer.results.values.metrics import Better

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.results.statistics.summary import CaseSummary
    from dynamometer.results.values.records import Ratio

T = TypeVar("T")


def over(ratio: Callable[[T], Ratio | None]) -> tuple[Column[T], ...]:
    """Return what stands beside a speedup, over eager or over another backend."""
    of = of_part(ratio)
    return (
        Column("speedup_low", "Lower end of its 95 % interval.", of(lambda each: each.low), "x"),
        Column("speedup_high", "Upper end.", of(lambda each: each.high), "x"),
        Column("p_value", "Two-sided, of no difference.", of(lambda each: each.p_value)),
    )


def verdict(judged: Callable[[T], Judgement | None]) -> tuple[Column[T], ...]:
    """Return what is concluded of a pair of arms among all of a run."""
    of = of_part(judged)
    return (
        Column(
            "adjusted_p_value", "The same, adjusted for all pairs of the run.",
            of(lambda each: each.adjusted_p),
        ),
        Column(
            "verdict", "FASTER, SLOWER, EQUIVALENT or UNCLEAR (measuring.md).",
            of(lambda each: each.verdict),
        ),
        Column(
            "verdict_reason",
            "Why, and how many replicates would narrow an interval that leaves it UNCLEAR.",
            of(lambda each: each.reason),
        ),
    )  # fmt: skip


def doubts(case: Callable[[T], CaseSummary | None]) -> tuple[Column[T], ...]:
    """Return what is to be known of how a speedup, or a latency of eager, was measured.

    Args:
        case: of a row; `None` where it was not timed.
    """
    of = of_part(case)
    return (
        Column(
            "isolated", "Whether arms disturbed each other, and were timed in isolated runs.",
            of(lambda each: each.is_isolated),
        ),
        Column(
            "interference", "Whether arms disturbed each other, so that nothing is concluded.",
            of(lambda each: each.interferes),
        ),
        Column(
            "disturbed", "Whether something else kept the machine busy for most of the time.",
            of(lambda each: each.is_disturbed),
        ),
    )  # fmt: skip


def _itself(judged: Judgement) -> Judgement:
    return judged


PAIRS = Table[Judgement](
    "pairs",
    "A row for each two backends of a case; each against eager stands in its own file.",
    (
        *identity(lambda judged: judged.case.case),
        Column[Judgement](
            "base", "The arm the other is compared with.", lambda judged: judged.base
        ),
        Column("arm", "The other.", lambda judged: judged.arm),
        Column(
            "speedup", "Latency of `base` over that of `arm`.",
            lambda judged: judged.ratio.value, "x", Better.HIGHER,
        ),
        *over(lambda judged: judged.ratio),
        *verdict(_itself),
        Column("replicates", "Worker processes it is from.", lambda judged: judged.ratio.n),
        Column(
            "replicates_needed", "How many would make the interval as narrow as asked for; empty"
            " where it is.",
            lambda judged: replicates_needed_over(judged.base, judged.arm, judged.case.records),
        ),
        *doubts(lambda judged: judged.case),
        Column("scale", "How far the model was shrunk.", lambda judged: judged.case.case.scale),
    ),
)  # fmt: skip
