"""What the page holds, as its JSON has it. Frozen values; `None` is what is not known."""

from __future__ import annotations

from dynamometer.results.values.cases import Value
from dynamometer.results.values.comparison import Comparison

Cell = str | int | float | bool | None


class Bounds(Value, frozen=True, kw_only=True):
    """A ratio with its 95 % interval, of `n` replicates or models."""

    value: float
    low: float
    high: float
    n: int


class ShownColumn(Value, frozen=True, kw_only=True):
    """A column of a study's table."""

    name: str
    doc: str
    unit: str = ""


class ShownTable(Value, frozen=True, kw_only=True):
    """A table of a study, as its CSV files have it."""

    title: str
    doc: str
    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    order: str = ""
    """The column it is sorted by at first, after a `-` where the largest comes first."""


class ShownArm(Value, frozen=True, kw_only=True):
    """One arm of a case."""

    case: int
    """Which of the run's cases."""
    arm: str
    status: str
    line: str | None = None
    """How it ended, where that is no pass."""
    speedup: Bounds | None = None
    p_value: float | None = None
    adjusted_p: float | None = None
    verdict: str | None = None
    reason: str | None = None
    """Of the verdict; or why there is no speedup."""
    eager_ms: float | None = None
    latency_ms: float | None = None
    compile_s: float | None = None
    compile_warm_s: float | None = None
    memory_ratio: float | None = None
    memory_reason: str | None = None
    """Why there is no memory ratio."""
    graphs: int | None = None
    breaks: int | None = None
    ops: int | None = None
    max_error: float | None = None
    pays_after: float | None = None
    """Calls, where it surely does."""
    marks: tuple[str, ...] = ()
    """What must be known of how it was measured."""
    group: int | None = None
    """Which of the groups it counts in; `None` with overrides, beside the same without."""


class Group(Value, frozen=True, kw_only=True):
    """An arm over the cases of a suite: a row of the overview, as PyTorch's weekly table has it."""

    suite: str
    mode: str
    dtype: str
    arm: str
    passed: int
    counted: int
    pass_rate: str | None
    """As the terminal has it; `None` where all were skipped."""
    speedup: Bounds | None = None
    """Geometric mean."""
    compile_s: float | None = None
    compile_n: int = 0
    memory_ratio: float | None = None
    memory_n: int = 0


class Look(Value, frozen=True, kw_only=True):
    """Something that needs a look."""

    kind: str
    text: str
    case: int
    arm: str | None = None


class Part(Value, frozen=True, kw_only=True):
    """What a study brings to the page of a run."""

    arms: tuple[ShownArm, ...]
    groups: tuple[Group, ...]
    looks: tuple[Look, ...] = ()
    tables: tuple[ShownTable, ...] = ()
    is_timed: bool = False
    """Whether there are speedups to show."""


class ShownCase(Value, frozen=True, kw_only=True):
    """A case of a run."""

    id: str
    label: str
    suite: str
    mode: str
    device: str
    dtype: str
    shapes: str
    batch_size: int | None
    status: str
    """`not run` of one that has no record."""
    replicates: int


class ShownRun(Value, frozen=True, kw_only=True):
    """A run: all but the details of its cases."""

    run_id: str
    title: str
    facts: tuple[tuple[str, str], ...]
    """What was measured where and how: name and value."""
    warnings: tuple[str, ...]
    planned: int
    ended: int
    """Cases that have had their last replicate."""
    absent: str
    """Said of a case without a record."""
    good: str
    """Said where nothing needs a look."""
    cases: tuple[ShownCase, ...]
    part: Part
    lines: tuple[str, ...]
    """What the study prints at the end."""


class ShownSamples(Value, frozen=True, kw_only=True):
    """Samples of an arm in one replicate, in ms, in the order they were taken."""

    arm: str
    metric: str
    blocks: tuple[tuple[int, tuple[float, ...]], ...]
    """The number of each block, and its samples."""


class ShownReplicate(Value, frozen=True, kw_only=True):
    """A replicate of a case."""

    name: str
    status: str
    started_at: str
    seconds: str
    stopped: str | None
    build_order: tuple[str, ...]
    disturbed: tuple[int, ...]
    """Blocks that something else disturbed."""
    samples: tuple[ShownSamples, ...]


class ShownCompared(Value, frozen=True, kw_only=True):
    """One of the tables of a comparison, as text."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ShownComparison(Value, frozen=True, kw_only=True):
    """What two runs come to beside each other; without `found`, why that is not said."""

    refused: str | None = None
    found: Comparison | None = None
    tables: tuple[ShownCompared, ...] = ()
    lines: tuple[str, ...] = ()
    """What judging came to, and how eager moved."""
    nothing: str | None = None
    """Of which of the usual kinds there is nothing."""


class ShownPastRun(Value, frozen=True, kw_only=True):
    """A run in a history."""

    run_id: str
    created_at: str
    """UTC, ISO 8601."""
    torch: str | None


class ShownChange(Value, frozen=True, kw_only=True):
    """A change of level in a series; runs are numbers of the history's."""

    direction: str
    at: str
    """When the run was begun that most likely is the first after it; UTC, ISO 8601."""
    last_before: int
    first_after: int
    before: str
    after: str
    levels: tuple[float, float] | None = None
    """Before and after, on the axis; `None` of a status."""
    ratio: float | None = None
    """After over before."""
    adjusted_p: float | None = None
    by_eager: bool = False
    is_lasting: bool = False
    """Whether it is beyond chance, not eager's, and nothing that came later has undone it."""
    differences: tuple[tuple[str, str | None, str | None], ...] = ()
    """What of the environment is other: name, before, after."""


class ShownSeries(Value, frozen=True, kw_only=True):
    """A metric of an arm of a case over runs: columns are by run, in the order of time."""

    model: str
    suite: str
    mode: str
    arm: str
    metric: str
    configuration: str
    apart: str
    """In what it differs from other series of the same; empty where there are none."""
    unit: str
    """Of values; `x` of ratios."""
    last: str
    """What it was in the last of these runs."""
    runs: tuple[int, ...]
    """Numbers of the history's runs."""
    values: tuple[float | None, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    replicates: tuple[int, ...]
    marks: tuple[tuple[int, str, str | None], ...]
    """Runs of the series that did not pass or are in doubt: place, status, why in doubt."""
    changes: tuple[ShownChange, ...]


class ShownHistory(Value, frozen=True, kw_only=True):
    """What became of models over many runs."""

    made_at: str
    """When the page was made: weeks are counted back from there; UTC, ISO 8601."""
    runs: tuple[ShownPastRun, ...]
    """In the order of time."""
    series: tuple[ShownSeries, ...]
    without_page: tuple[int, ...] = ()
    """Runs of which a file brought the rows alone: a server has no page of them."""


class ShownEarlier(Value, frozen=True, kw_only=True):
    """What became of a run's models in earlier runs and in it, where an index has some."""

    history: ShownHistory
    cases: tuple[int, ...]
    """Of each series which of the run's cases it is of."""


class Details(Value, frozen=True, kw_only=True):
    """All that is known of a case besides; read by the browser when it is looked at."""

    told: tuple[str, ...]
    """What the study prints of it."""
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    """What was not measured, and why."""
    failures: tuple[tuple[str, str], ...]
    """How each arm ended that did not pass, and all that was kept of it."""
    replicates: tuple[ShownReplicate, ...]
    log: tuple[str, ...]
    command: str | None


class PageData(Value, frozen=True, kw_only=True):
    """All that the page shows, but for the details of cases."""

    version: str
    runs: tuple[ShownRun, ...]
    comparison: ShownComparison | None = None
    history: ShownHistory | None = None
    home: str | None = None
    """Where the list of runs is; `None` of a page that is a file."""
