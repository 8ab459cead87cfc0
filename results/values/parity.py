"""Whether a model works compiled, in as many graphs as it takes and as one. Pure values."""

from __future__ import annotations

from dynamometer.results.values.cases import Value
from dynamometer.results.values.coverage import Coverage
from dynamometer.results.values.records import Outcome


class FullGraph(Value, frozen=True, kw_only=True):
    """How an arm ended where Dynamo had to capture all of the model in one graph, or fail."""

    arm: str
    outcome: Outcome
    is_inferred: bool = False
    """Whether it follows from the other mode, in which one graph was all there was."""


class Parity(Value, frozen=True, kw_only=True):
    """What is known of a model's arms beside whether each computes what eager does."""

    full_graph: tuple[FullGraph, ...] = ()
    """Of each arm but the baseline."""
    coverage: Coverage | None = None
    """What is captured and what isn't where; `None` where one graph is all of it, and where that
    could not be counted."""
