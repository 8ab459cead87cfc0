"""The vocabulary of decisions: which backend computes a graph, or a model, on one machine."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

from dynamometer.results.values.cases import Value
from dynamometer.results.values.records import Outcome, Ratio

DECISION_FORMAT = 1


class Subject(StrEnum):
    """What is decided about."""

    GRAPH = "graph"
    MODEL = "model"


class Setting(Value, frozen=True, kw_only=True):
    """What a decision holds for; under any other it has to be made anew."""

    device: str
    device_name: str
    threads: int
    """Intra-op threads of torch, which runtimes follow."""
    processor: str
    versions: dict[str, str]
    """Of torch and of the runtimes that are installed."""

    @property
    def key(self) -> str:
        """A short hash that is equal exactly when two settings are."""
        ordered = msgspec.json.encode(self, order="deterministic")
        return hashlib.sha256(ordered).hexdigest()[:12]


class Evidence(Value, frozen=True, kw_only=True):
    """What became of one candidate."""

    arm: str
    outcome: Outcome
    speedup: Ratio | None = None
    """Over eager; `None` where it was not timed."""
    latency_s: float | None = None
    compile_s: float | None = None
    samples: int = 0
    """Timed samples over all replicates."""


class Decision(Value, frozen=True, kw_only=True):
    """Which arm computes a graph or a model in one setting, and why."""

    format: int = DECISION_FORMAT
    subject: Subject
    key: str
    """Of the graph or the model."""
    label: str
    """Where it was seen, for who reads it."""
    setting: Setting
    arm: str
    eager_s: float | None = None
    """Seconds of a call of eager, where that was timed."""
    evidence: tuple[Evidence, ...] = ()
    """Of each candidate, in the order they were asked for."""
    tuning_s: float
    """Wall seconds it took to decide."""
    decided_at: str
    """UTC, ISO 8601."""
    run: str
    """The run that measured."""

    @property
    def chosen(self) -> Evidence | None:
        """The evidence for the chosen arm; `None` where that is eager."""
        return next((each for each in self.evidence if each.arm == self.arm), None)

    @property
    def chosen_s(self) -> float | None:
        """Seconds of a call of the chosen arm: eager's, divided by the speedup."""
        speedup = self.chosen.speedup if self.chosen else None
        if self.eager_s is None or speedup is None:
            return self.eager_s
        return self.eager_s / speedup.value


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


class Tuned(Value, frozen=True, kw_only=True):
    """What a worker says of the graph or model it tuned."""

    subject: Subject
    key: str
    setting: Setting
