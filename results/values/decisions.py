"""The vocabulary of decisions: which backend computes a graph, or a model, on one machine."""

from __future__ import annotations

import hashlib

import msgspec

from dynamometer.results.values.cases import NO_BACKEND, MatmulPrecision, Value
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.graphs import RecordedGraph
from dynamometer.results.values.records import Outcome, Ratio
from dynamometer.results.values.workers import Allocator

DECISION_FORMAT = 1


class Setting(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What a decision holds for; under any other it has to be made anew."""

    device: str
    device_name: str
    threads: int
    """Intra-op threads of torch, which runtimes follow."""
    processor: str
    versions: dict[str, str]
    """Of torch and of the runtimes that are installed."""
    matmul_precision: MatmulPrecision = MatmulPrecision.HIGHEST
    allocator: Allocator = Allocator.KEEP
    """That runs are timed under."""

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
        own = (each for each in self.evidence if each.arm == self.arm != NO_BACKEND)
        return next(own, None)

    @property
    def chosen_s(self) -> float | None:
        """Seconds of a call of the chosen arm: eager's, divided by the speedup."""
        speedup = self.chosen.speedup if self.chosen else None
        if self.eager_s is None or speedup is None:
            return self.eager_s
        return self.eager_s / speedup.value


class Tuned(Value, frozen=True, kw_only=True):
    """What a worker says of the graph or model it tuned."""

    subject: Subject
    key: str
    setting: Setting
    calls: int = 1
    """Of a step that was timed: one for each set of inputs."""
    is_eager_failing: bool = False
    """Whether eager raised, as on inputs that are drawn: nothing is decided then."""


class Recorded(Value, frozen=True, kw_only=True):
    """What a worker says of the graphs of a model."""

    key: str
    """Of the model."""
    setting: Setting
    is_decided: bool = False
    """Whether there is a decision for the model; its graphs were not recorded then."""
    graphs: tuple[RecordedGraph, ...] = ()
