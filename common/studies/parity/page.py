"""What the page of a run shows of parity beside each model: what all come to. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.studies.parity.bugs import distinct
from dynamometer.common.studies.parity.report import by_arm, ranked_reasons, scores
from dynamometer.results.reports.page.values import ShownColumn, ShownTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dynamometer.common.studies.parity.summary import ParitySummary
    from dynamometer.results.reports.page.values import Cell


def tables(found: Iterable[ParitySummary]) -> list[ShownTable]:
    """Return tables of scores, of why graphs end, and of bugs, of each backend."""
    arms = by_arm(each for each in found if each.is_judged)
    return [table for arm, judged in arms.items() for table in _tables_of(arm, judged)]


def _tables_of(arm: str, judged: Sequence[ParitySummary]) -> Iterator[ShownTable]:
    yield _table(
        f"what works with {arm}",
        "Projects, all of whose tests pass, and tests: in as many graphs as it takes, and as one.",
        (("", ""), ("total", ""), ("passing", ""), ("score", "From 0 to 1.")),
        [
            (what, total, passing, passing / total if total else None)
            for what, total, passing in scores(judged)
        ],
    )
    reasons = ranked_reasons(judged)
    if reasons:
        yield _table(
            f"why graphs end with {arm}",
            "Each reason, by how many tests it concerns.",
            (
                ("reason", "As Dynamo says it."),
                ("tests", "That have it."),
                ("breaks", "Graph breaks."),
                ("ops", "Operators that are not captured for it."),
                ("one graph without", "Share of tests whose graphs end for that reason alone."),
            ),
            [
                (each.text, each.models, each.times, each.not_captured_ops, alone)
                for each, alone in reasons
            ],
        )
    bugs = distinct(each for each in judged if not each.works)
    if bugs:
        yield _table(
            f"what fails with {arm}",
            "Distinct bugs: failures whose messages and stacks say the same.",
            (
                ("bug", "What they say."),
                ("in", "The innermost of torch's functions on their stacks."),
                ("projects", "That have it."),
                ("tests", "That fail so."),
                ("smallest test", "Of the fewest operators."),
            ),
            [
                (f"{each.smallest.outcome.status}: {each.message}", each.place or None,
                 each.projects, len(each.tests), each.smallest.case.model)
                for each in bugs
            ],
        )  # fmt: skip


def _table(
    title: str, doc: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Cell, ...]]
) -> ShownTable:
    return ShownTable(
        title=title,
        doc=doc,
        columns=tuple(ShownColumn(name=name, doc=text) for name, text in columns),
        rows=tuple(rows),
    )
