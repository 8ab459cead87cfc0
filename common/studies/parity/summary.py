"""What became of a model's arms in either mode, from its record. Pure; no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.comparison.entries import of_arms
from dynamometer.results.store.expected import Expectation
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.parity import Parity
from dynamometer.results.values.records import ArmResult, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.coverage import Coverage
    from dynamometer.results.values.records import Outcome, Record

FULL_GRAPH = "full graph"
"""What is added to an arm's name where all of a model had to be one graph."""

_PROJECT = re.compile(r"([^.]+)\..*[^.\d].*")
"""A test case is named `<project>.<class>`, with a number where the class has several; a class of a
package by where it is imported from."""


@dataclass(frozen=True)
class ParitySummary:
    """One arm of a model.

    Attributes:
        case: what was run.
        result: how the arm ended in as many graphs as it takes, and what was captured.
        full_graph: how it ended as one graph.
        coverage: what is captured and what isn't where; `None` where one graph is all of it, and
            where it could not be counted.
        is_given_arguments: whether it is a class that came without any, for which some were found.
    """

    case: Case
    result: ArmResult
    full_graph: Outcome
    coverage: Coverage | None
    is_given_arguments: bool = False

    @property
    def project(self) -> str:
        """What the model is part of; it stands for itself where its name says nothing of that."""
        found = _PROJECT.fullmatch(self.case.model)
        return found[1] if found else self.case.model

    @property
    def outcome(self) -> Outcome:
        """How the arm ended in as many graphs as it takes."""
        return self.result.outcome

    @property
    def is_judged(self) -> bool:
        """Whether it says anything of Dynamo: eager runs and agrees with itself."""
        return _is_judged(self.outcome)

    @property
    def is_judged_as_one(self) -> bool:
        """Whether it says anything of Dynamo that must capture one graph."""
        return _is_judged(self.full_graph)

    @property
    def works(self) -> bool:
        """Whether it computes what eager does."""
        return self.outcome.status is Status.PASS

    @property
    def works_as_one(self) -> bool:
        """Whether it does as one graph."""
        return self.full_graph.status is Status.PASS

    @property
    def graphs(self) -> int | None:
        """How many graphs were captured; `None` where that isn't known."""
        return self.result.capture.graphs if self.result.capture else None

    @property
    def ops(self) -> int | None:
        """Operators in graphs, as Dynamo counts them."""
        return self.result.capture.ops if self.result.capture else None

    @property
    def largest_graph(self) -> int | None:
        """Operators of the largest graph; `None` where only their sum is known."""
        if self.coverage is not None:
            return self.coverage.largest_graph
        return self.ops if self.graphs == 1 else None

    @property
    def share_of_ops(self) -> float | None:
        """Of the operators of a step the share inside graphs; `None` where that isn't known."""
        if self.coverage is not None:
            return self.coverage.share_of_ops
        return 1.0 if self.works and self.works_as_one else None


def _is_judged(outcome: Outcome) -> bool:
    return outcome.is_fault or outcome.status is Status.PASS


def summarize(record: Record) -> list[ParitySummary]:
    """Summarize each arm of a model but the baseline, from its one record."""
    found = msgspec.json.decode(record.found, type=Parity | None) or Parity()
    full = {each.arm: each.outcome for each in found.full_graph}
    results = record.arms or tuple(
        ArmResult(arm=arm, outcome=record.outcome) for arm in record.case.arms
    )
    return [
        ParitySummary(
            case=record.case,
            result=each,
            full_graph=full.get(each.arm, each.outcome),
            # Counted of the model, whatever arms there are.
            coverage=found.coverage if each.outcome.status is Status.PASS else None,
            is_given_arguments=found.entry is not None,
        )
        for each in results
        if each.arm != BASELINE
    ]


def entries(records: Sequence[Record]) -> list[Entry]:
    """Return how each arm ended, and how it did as one graph, which is compared by itself.

    What is not judged is skipped, whatever it is called: it says nothing of Dynamo.
    """
    full = {each.result.arm: each.full_graph for each in summarize(records[-1])}
    default = [_of_outcome(each, each.outcome) for each in of_arms(records)]
    return [
        *default,
        *(
            _of_outcome(replace(each, arm=f"{each.arm}, {FULL_GRAPH}"), full[each.arm])
            for each in default
            if each.arm in full
        ),
    ]


def _of_outcome(entry: Entry, outcome: Outcome) -> Entry:
    """Return an entry that ended so; what was captured is known where that is as it was."""
    if not _is_judged(outcome) and outcome.status is not Status.SKIP:
        reason = f"{outcome.status}: {outcome.reason}"
        outcome = msgspec.structs.replace(outcome, status=Status.SKIP, reason=reason)
    elif outcome == entry.outcome:
        return entry
    return replace(entry, outcome=outcome, expectation=Expectation(status=outcome.status))
