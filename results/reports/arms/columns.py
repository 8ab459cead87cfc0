"""The columns of arms that were timed or checked: PyTorch's, with ours after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.reports.arms.dashboard_status import accuracy_string
from dynamometer.results.reports.arms.speedup_columns import doubts, over, verdict
from dynamometer.results.reports.columns import (
    Column,
    Table,
    column_of,
    ending,
    identity,
    of_part,
    scaled,
    theirs,
)
from dynamometer.results.values.metrics import (
    CALLS_MEMORY,
    COMPILE_PHASES,
    COMPILE_TIME,
    COMPILE_TIME_WARM,
    COUNTED,
    LATENCY,
    RESIDUE_MEMORY,
    Better,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dynamometer.results.statistics.breakeven import Breakeven
    from dynamometer.results.statistics.memory import ArmMemory
    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary
    from dynamometer.results.statistics.verdicts import Judgement
    from dynamometer.results.values.metrics import Metric
    from dynamometer.results.values.records import CaptureStats, Outcome, Ratio

_GB = 1e-9


@dataclass(frozen=True)
class ArmRow:
    """What a row of an arm is made of.

    Attributes:
        case: whose.
        arm: of it.
        judged: the arm over eager among all of a run; `None` until all cases have ended.
    """

    case: CaseSummary
    arm: ArmSummary
    judged: Judgement | None = None


def _capture_of(row: ArmRow) -> CaptureStats | None:
    return row.arm.capture


def _speedup_of(row: ArmRow) -> Ratio | None:
    return row.arm.speedup


def _outcome_of(row: ArmRow) -> Outcome:
    return row.arm.outcome


def _timed_case(row: ArmRow) -> CaseSummary | None:
    """Return the case if its eager was timed: that an arm failed makes eager's time no surer."""
    return None if row.case.baseline.latency_s is None else row.case


def _compression_ratio(row: ArmRow) -> float | None:
    return row.case.compression(row.arm).ratio


def _phase(name: str) -> Callable[[ArmRow], float | None]:
    return lambda row: row.arm.phases_s.get(name)


def _counted(metric: Metric) -> Callable[[ArmRow], float | None]:
    return lambda row: row.arm.counted.get(metric.name)


_captured, _speedup = of_part(_capture_of), of_part(_speedup_of)

_COUNTED_OVER = ", over the first two calls"

_CAPTURE = theirs(
    Column[ArmRow](
        "calls_captured", f"Operators in graphs{_COUNTED_OVER}.", _captured(lambda seen: seen.ops)
    ),
    Column(
        "unique_graphs", f"Graphs that Dynamo captured{_COUNTED_OVER}.",
        _captured(lambda seen: seen.graphs),
    ),
    Column(
        "fallbacks_to_eager", f"Frames that Dynamo looked at and left to eager{_COUNTED_OVER}.",
        _captured(lambda seen: seen.frames - seen.frames_ok),
    ),
    Column(
        "graph_breaks", f"Graph breaks{_COUNTED_OVER}.",
        _captured(lambda seen: sum(seen.breaks.values())),
    ),
    Column(
        "unique_graph_breaks", "Different reasons for them, by their first lines: breaks of one"
        " kind at several places count once.",
        _captured(lambda seen: len(seen.breaks)),
    ),
    Column(
        "autograd_captures", "Backward passes that compiled autograd captured.",
        _captured(lambda seen: seen.autograd_captures),
    ),
    Column(
        "autograd_compiles", "Those it compiled.", _captured(lambda seen: seen.autograd_compiles)
    ),
    Column(
        "cudagraph_skips", "Graphs that Inductor was to run as CUDA graphs, and didn't.",
        _captured(lambda seen: seen.cudagraph_skips),
    ),
)  # fmt: skip

_FRAMES = (
    Column[ArmRow](
        "frames_ok", f"Frames that Dynamo didn't fail on{_COUNTED_OVER}.",
        _captured(lambda seen: seen.frames_ok),
    ),
    Column(
        "frames", f"Frames that Dynamo looked at{_COUNTED_OVER}.",
        _captured(lambda seen: seen.frames),
    ),
    Column(
        "recompiles", "Compilations, after the first call, of a frame that was compiled before"
        f"{_COUNTED_OVER}.",
        _captured(lambda seen: seen.recompiles),
    ),
    Column(
        "recompile_limit_hits", "Frames that Dynamo gave up on, compiled too often, over all calls"
        " before any was timed; calls that no compiled code fits run in eager.",
        _captured(lambda seen: seen.recompile_limit_hits), better=Better.LOWER,
    ),
)  # fmt: skip

_GUARDS = (
    Column[ArmRow](
        "guards", f"Guards of all frames{_COUNTED_OVER}.", _captured(lambda seen: seen.guards)
    ),
    Column(
        "guards_s", "Time of a step in which guards are checked.",
        _captured(lambda seen: seen.guards_s), "s", Better.LOWER,
    ),
)  # fmt: skip

_SHAPES: tuple[Column[ArmRow], ...] = (
    Column[ArmRow](
        "fallbacks", f"Graphs the backend failed on, which ran in eager{_COUNTED_OVER}.",
        _captured(lambda seen: seen.fallbacks),
    ),
    Column(
        "dynamic", "Which sizes of the model's inputs differ in use, as its table says.",
        lambda row: " ".join(row.case.records[0].varies) or None,
    ),
    Column(
        "shapes", "Whether it was compiled for static shapes or dynamic ones.",
        lambda row: row.case.case.shapes,
    ),
)  # fmt: skip

_CHECKED: tuple[Column[ArmRow], ...] = (
    Column[ArmRow](
        "checked_calls", "Calls whose results were compared with eager's.",
        lambda row: row.arm.checked_calls or None,
    ),
    Column(
        "unchecked", "What was not compared, or not closely, and why.",
        lambda row: "; ".join(row.arm.unchecked) or None,
    ),
)  # fmt: skip

_ENDING: tuple[Column[ArmRow], ...] = (
    *ending(_outcome_of, lambda row: row.arm.outcome.reason or row.arm.untimed),
    Column("scale", "How far the model was shrunk.", lambda row: row.case.case.scale),
)


def _memory(
    metric: Metric, middle: Callable[[ArmMemory], float | None],
    values: Callable[[ArmMemory], Sequence[float]],
) -> tuple[Column[ArmRow], ...]:  # fmt: skip
    """Return a part of an arm's memory, with its least and most over replicates."""
    name = metric.column
    return (
        column_of(metric, lambda row: middle(row.arm.memory)),
        Column(
            f"{name}_low", "The least of all replicates.",
            lambda row: scaled(min(values(row.arm.memory), default=None), _GB), "GB",
        ),
        Column(
            f"{name}_high", "The most of all replicates.",
            lambda row: scaled(max(values(row.arm.memory), default=None), _GB), "GB",
        ),
    )  # fmt: skip


def _breakeven(
    name: str, caches: str, found: Callable[[ArmRow], Breakeven | None]
) -> tuple[Column[ArmRow], ...]:
    of = of_part(found)
    return (
        Column(
            f"{name}_calls",
            f"Calls after which compiling from {caches} caches has paid; with several sizes, of"
            " each.",
            of(lambda each: each.calls), better=Better.LOWER,
        ),
        Column(f"{name}_low", "Lower end of its 95 % interval.", of(lambda each: each.low)),
        Column(f"{name}_high", "Upper end; empty where it may never pay.",
               of(lambda each: each.high)),
    )  # fmt: skip


_CACHES = {True: "cold", False: "warm", None: None}

_COMPILING = (
    Column[ArmRow](
        "compile_low", "The least of all replicates.",
        lambda row: min(row.arm.compile_times_s, default=None), "s",
    ),
    Column(
        "compile_high", "The most of all replicates.",
        lambda row: max(row.arm.compile_times_s, default=None), "s",
    ),
    Column(
        "compile_n", "Replicates whose compile time is known.",
        lambda row: len(row.arm.compile_times_s) or None,
    ),
    Column(
        "caches", "Whether graph caches were empty (`cold`) or filled (`warm`).",
        lambda row: _CACHES[row.arm.compiled_cold],
    ),
    *(
        column_of(metric, _phase(phase))
        for phase, metric in COMPILE_PHASES.items()
    ),
)  # fmt: skip

PERFORMANCE = Table[ArmRow](
    "performance",
    "A row for each case that was timed. Of an arm that did not pass there is nothing that was"
    " measured of it; what was measured of eager (`eager_...`) stays.",
    (
        *identity(lambda row: row.case.case),
        *theirs(
            Column[ArmRow](
                "speedup", "Latency of eager over that of the arm.",
                _speedup(lambda ratio: ratio.value),
                "x", Better.HIGHER,
            ),
            column_of(LATENCY, lambda row: row.arm.latency_s),
            column_of(COMPILE_TIME, lambda row: row.arm.compile_s),
            Column(
                "compression_ratio",
                "What eager needs of memory over what the arm needs (the two columns that follow).",
                _compression_ratio, "x", Better.HIGHER,
            ),
            Column(
                "eager_peak_mem", "The same as `dynamo_peak_mem`, of eager.",
                lambda row: scaled(row.case.baseline.memory.needed_bytes, _GB), "GB", Better.LOWER,
            ),
            Column(
                "dynamo_peak_mem",
                "Memory that the arm needs: the loaded model, its calls, and what is left behind"
                " beyond 40 MiB.",
                lambda row: scaled(row.arm.memory.needed_bytes, _GB), "GB", Better.LOWER,
            ),
        ),
        *_CAPTURE,
        *over(_speedup_of),
        *verdict(lambda row: row.judged),
        Column(
            "replicates", "Worker processes the speedup is from.",
            _speedup(lambda ratio: ratio.n),
        ),
        Column(
            "replicates_needed", "How many would make the interval as narrow as asked for; empty"
            " where it is.", lambda row: row.arm.replicates_needed,
        ),
        Column(
            "stopped", "Why the case had no further replicate.", lambda row: row.case.stopped
        ),
        *doubts(_timed_case),
        Column(
            "system_time_share", "Processor time in the operating system over latency, the largest"
            " of all replicates; over 0.05 a line is marked SYS_TIME.",
            lambda row: row.arm.system_time_share, better=Better.LOWER,
        ),
        *(
            column_of(metric, _counted(metric))
            for metric in COUNTED
            if metric.column
        ),
        *_COMPILING,
        *_breakeven("breakeven", "empty", lambda row: row.case.breakeven(row.arm)),
        Column(
            "no_compression_ratio", "Why there is no compression ratio.",
            lambda row: row.case.compression(row.arm).reason if row.arm.passed else None,
        ),
        *_memory(CALLS_MEMORY, lambda found: found.calls_bytes, lambda found: found.calls),
        *_memory(RESIDUE_MEMORY, lambda found: found.residue_bytes, lambda found: found.residue),
        Column(
            "memory_n", "Replicates whose memory is known.",
            lambda row: len(row.arm.memory.needed) or None,
        ),
        Column(
            "eager_calls_mem", "The same as `calls_mem`, of eager.",
            lambda row: scaled(row.case.baseline.memory.calls_bytes, _GB), "GB",
        ),
        Column(
            "eager_residue_mem", "The same as `residue_mem`, of eager.",
            lambda row: scaled(row.case.baseline.memory.residue_bytes, _GB), "GB",
        ),
        column_of(COMPILE_TIME_WARM, lambda row: row.arm.warm_compile_s),
        *_breakeven("breakeven_warm", "filled", lambda row: row.case.warm_breakeven(row.arm)),
        Column(
            "eager_latency", "The same as `abs_latency`, of eager.",
            lambda row: scaled(row.case.baseline.latency_s, LATENCY.factor), "ms", Better.LOWER,
        ),
        *_FRAMES,
        *_GUARDS,
        *_SHAPES,
        Column(
            "steady", "Whether every replicate had reached steady state before it was timed.",
            lambda row: row.arm.steady,
        ),
        *_CHECKED,
        *_ENDING,
    ),
)  # fmt: skip
"""PyTorch's names and order are those of `benchmarks/dynamo`; latency in ms, memory in GB."""

ACCURACY = Table[ArmRow](
    "accuracy",
    "A row for each case that was checked and not timed.",
    (
        *identity(lambda row: row.case.case),
        *theirs(
            Column[ArmRow](
                "accuracy", "How it ended, in the words of PyTorch's dashboards.",
                lambda row: accuracy_string(row.arm.outcome),
            )
        ),
        *_CAPTURE,
        Column(
            "max_error", "Largest deviation of a result from eager's, relative, both in the root"
            " mean square.", lambda row: row.arm.max_error, better=Better.LOWER,
        ),
        *_CHECKED,
        *_FRAMES,
        *_SHAPES,
        *_ENDING,
    ),
)  # fmt: skip
"""PyTorch's names and order are those of `benchmarks/dynamo --accuracy`."""
