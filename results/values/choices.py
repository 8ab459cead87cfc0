"""What an arm that is made of decisions uses: the part of them that records hold."""

from __future__ import annotations

from enum import StrEnum

from dynamometer.results.values.cases import Value


class Subject(StrEnum):
    """What is decided about."""

    GRAPH = "graph"
    MODEL = "model"


class Choice(Value, frozen=True, kw_only=True):
    """What an arm of decisions used for one graph, or for the whole model."""

    subject: Subject
    key: str
    arm: str
    is_decided: bool = True
    """Whether there was a decision; without one it is eager."""
    count: int = 1
    """How many graphs of the model it is."""
    eager_s: float | None = None
    chosen_s: float | None = None
    tuning_s: float = 0.0
