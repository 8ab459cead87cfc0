"""What a comparison of two runs found: the values behind its text, its Markdown and its JSON."""

from __future__ import annotations

from enum import StrEnum

from dynamometer.results.values.cases import Value
from dynamometer.results.values.records import Estimate, Ratio

COMPARISON_SCHEMA = 1


class Condition(Value, frozen=True, kw_only=True):
    """Something in which the two sides differ."""

    name: str
    before: str
    after: str
    why_not: str | None = None
    """Why runs that differ in it can't be compared; `None` if they can."""


class SideSummary(Value, frozen=True, kw_only=True):
    """One side of a comparison."""

    source: str
    """The run directory, or where the CSV files are."""
    run_id: str | None = None
    created_at: str | None = None
    arm: str | None = None
    """The arm that was asked for; `None` for all."""
    cases: int
    """Arms of cases it holds."""

    @property
    def is_of_files(self) -> bool:
        """Whether it is CSV files, which don't say under which conditions they came to be."""
        return self.run_id is None


class Change(StrEnum):
    """What became of one arm of a case, in the order in which they are told."""

    NEWLY_FAILING = "newly failing"
    SLOWER = "slower"
    COMPILES_LONGER = "compiles longer"
    NEEDS_MORE_MEMORY = "needs more memory"
    CAPTURES_LESS = "captures less"
    NEWLY_PASSING = "newly passing"
    FASTER = "faster"
    COMPILES_SOONER = "compiles sooner"
    NEEDS_LESS_MEMORY = "needs less memory"
    CAPTURES_MORE = "captures more"
    EAGER_FASTER = "eager is faster"
    EAGER_SLOWER = "eager is slower"
    FAILS_OTHERWISE = "fails otherwise"
    UNCLEAR = "unclear"
    GONE = "gone"
    NEW = "new"
    NOT_COMPARED = "not compared"


REGRESSIONS = frozenset({Change.SLOWER, Change.COMPILES_LONGER, Change.NEEDS_MORE_MEMORY})
"""What was measured and is worse."""


class Finding(Value, frozen=True, kw_only=True):
    """One arm of a case of which there is something to say."""

    change: Change
    suite: str
    model: str
    mode: str
    arm: str
    apart: str = ""
    """How the case is set, where there are several of the model and mode."""
    metric: str | None = None
    before: float | None = None
    after: float | None = None
    ratio: Ratio | None = None
    """What it is after over what it was before, with its interval."""
    adjusted_p: float | None = None
    """Among all that were judged by the same metric."""
    text: str
    """What it was and is, in words."""
    command: str | None = None
    """What repeats the case alone, on the side after; before, where it is gone from there."""

    @property
    def subject(self) -> str:
        """The arm of the case, as far as both are known."""
        suite = f"{self.suite}/" if self.suite else ""
        apart = f"({self.apart})" if self.apart else ""
        return " ".join(filter(None, (f"{suite}{self.model}", self.mode, self.arm, apart)))


class Share(Value, frozen=True, kw_only=True):
    """How many passed, of those that were not skipped."""

    passed: int
    counted: int


class Cell(Value, frozen=True, kw_only=True):
    """One figure of the table, on both sides; `None` where there is no model to form it of."""

    before: float | None
    after: float | None
    n_before: int
    n_after: int
    ratio: Estimate | None = None
    """After over before, of models that both sides have, with what measuring them leaves open."""


class Column(Value, frozen=True, kw_only=True):
    """A suite, or all cases whose sizes vary, in the table of one arm."""

    name: str
    passrate: tuple[Share, Share]
    speedup: Cell
    """Geometric mean of each side's own models, as that of PyTorch's table."""
    compile_time: Cell
    """Arithmetic mean in seconds."""
    memory_ratio: Cell
    """Arithmetic mean of eager's memory over the arm's."""
    common_passrate: tuple[Share, Share]
    """The same four of the models that both sides have; of the measured ones that passed on both
    sides and were measured on both."""
    common_speedup: Cell
    common_compile_time: Cell
    common_memory_ratio: Cell


class Table(Value, frozen=True, kw_only=True):
    """The table that PyTorch's team posts every week, of one arm in one mode."""

    title: str
    columns: tuple[Column, ...]


class Drift(Value, frozen=True, kw_only=True):
    """How eager's own latency moved between the sides."""

    n: int
    """Cases that both sides have."""
    ratio: float
    """The median of what it is after over what it was before."""
    middle_half: tuple[float, float]
    """Between which the middle half of these ratios lies."""
    is_apart: bool
    """Whether there are enough cases to tell a model's eager from the machine."""


class Count(Value, frozen=True, kw_only=True):
    """What judging one metric came to."""

    metric: str
    judged: int
    worse: int
    better: int
    equivalent: int
    unclear: int
    by_eager: int = 0
    """Of the worse and better ones those that are so as eager moved, not the compiled code."""


class Gate(Value, frozen=True, kw_only=True):
    """One condition of `--fail-on`."""

    condition: str
    hits: tuple[str, ...]
    """What met it; empty where nothing did."""
    unjudged: tuple[str, ...] = ()
    """Metrics it asks about of which nothing could be judged: that it isn't met says nothing."""


class Comparison(Value, frozen=True, kw_only=True):
    """Everything that is said of two sides."""

    schema: int = COMPARISON_SCHEMA
    before: SideSummary
    after: SideSummary
    conditions: tuple[Condition, ...]
    """What differs; what would have to be equal comes first."""
    is_forced: bool
    """Whether it was made in spite of what can't be compared."""
    notes: tuple[str, ...]
    """What is not known, and what is assumed."""
    tables: tuple[Table, ...]
    counts: tuple[Count, ...]
    drift: Drift | None
    findings: tuple[Finding, ...]
    gates: tuple[Gate, ...] = ()

    def of(self, change: Change) -> list[Finding]:
        """Return what was found of one kind."""
        return [each for each in self.findings if each.change is change]
