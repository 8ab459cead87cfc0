"""Arms of cases that were timed or checked, as rows: PyTorch's columns, with ours after them.

Of an arm that did not pass there are a status, a reason and what was captured, but nothing that was
measured. PyTorch's columns have no place to say so, nor that a case was disturbed: with these alone
0 stands for what was measured, and a file of theirs says which arms passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.reports import overrides_report
from dynamometer.results.reports.csv_sink import file_name
from dynamometer.results.reports.dashboard_status import accuracy_string
from dynamometer.results.reports.sinks import Rows
from dynamometer.results.statistics.between_processes import shared
from dynamometer.results.statistics.replicates import replicates_needed_over
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.statistics.breakeven import Breakeven
    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary
    from dynamometer.results.statistics.verdicts import Judgement
    from dynamometer.results.values.records import Ratio

DASHBOARD_COLUMNS = (
    "dev",
    "name",
    "batch_size",
    "speedup",
    "abs_latency",
    "compilation_latency",
    "compression_ratio",
    "eager_peak_mem",
    "dynamo_peak_mem",
    "calls_captured",
    "unique_graphs",
    "graph_breaks",
    "unique_graph_breaks",
)
"""Names and order of `benchmarks/dynamo` in PyTorch; latency in ms, memory in GB.

Memory is that of the loaded model and its calls; what compiling leaves behind has our own columns.
"""

_RATIO_COLUMNS = (
    "speedup_low",
    "speedup_high",
    "p_value",
    "adjusted_p_value",
    "verdict",
    "replicates",
    "replicates_needed",
)
"""What stands beside a speedup, over eager or over another backend."""

OUR_COLUMNS = (
    *_RATIO_COLUMNS,
    "stopped",
    "isolated",
    "interference",
    "disturbed",
    "system_time_share",
    "minor_faults",
    "compile_low",
    "compile_high",
    "compile_n",
    "caches",
    "compile_dynamo",
    "compile_aot_autograd",
    "compile_backend",
    "breakeven_calls",
    "breakeven_low",
    "breakeven_high",
    "no_compression_ratio",
    "calls_mem",
    "calls_mem_low",
    "calls_mem_high",
    "residue_mem",
    "residue_mem_low",
    "residue_mem_high",
    "memory_n",
    "eager_calls_mem",
    "eager_residue_mem",
    "compile_warm",
    "breakeven_warm_calls",
    "breakeven_warm_low",
    "breakeven_warm_high",
    "eager_latency",
    "frames_ok",
    "frames",
    "recompiles",
    "guards",
    "guards_s",
    "fallbacks",
    "dynamic",
    "shapes",
    "steady",
    "checked_calls",
    "unchecked",
    "status",
    "stage",
    "reason",
    "scale",
)


ACCURACY_COLUMNS = (
    "dev",
    "name",
    "batch_size",
    "accuracy",
    "calls_captured",
    "unique_graphs",
    "graph_breaks",
    "unique_graph_breaks",
)
"""Names and order of `benchmarks/dynamo --accuracy` in PyTorch."""

OUR_ACCURACY_COLUMNS = (
    "max_error",
    "checked_calls",
    "unchecked",
    "frames_ok",
    "frames",
    "recompiles",
    "fallbacks",
    "dynamic",
    "shapes",
    "status",
    "stage",
    "reason",
    "scale",
)


PAIR_COLUMNS = (
    "dev",
    "name",
    "batch_size",
    "base",
    "arm",
    "speedup",
    *_RATIO_COLUMNS,
    "isolated",
    "interference",
    "disturbed",
    "scale",
)
"""Of backends against each other; each against eager stands in its own file."""


def rows(case: CaseSummary, *, compatible: bool) -> list[Rows]:
    """Return the row of each arm, in the file of that arm.

    A file is called `<arm>_<suite>_<dtype>_<mode>_<device>_<kind>.csv`; the kind is `performance`,
    or `accuracy` for cases that were not timed.

    Args:
        case: what was timed or checked.
        compatible: in the dashboards' columns alone; for a case that was timed in both of their
            files, as theirs say in one alone what failed.
    """
    make = _their_rows if compatible else _arm_rows
    return [each for arm in case.arms for each in make(case, arm)]


def closing_rows(cases: Sequence[CaseSummary]) -> list[Rows]:
    """Return the rows of timed cases once more, with what is known of them together.

    Backends against each other stand in `backends_..._pairs.csv`.
    """
    timed = shared([case for case in cases if case.is_timed])
    judged = judge(overrides_report.without_overrides(timed))
    over_eager = {(each.case.case.id, each.arm): each for each in judged if each.base == BASELINE}
    arms = [(case, arm) for case in timed for arm in case.arms]
    return [
        *(
            row
            for case, arm in arms
            for row in _arm_rows(case, arm, over_eager.get((case.case.id, arm.name)))
        ),
        *(
            Rows(_pairs_file(each), PAIR_COLUMNS, (_pair_row(each),))
            for each in judged
            if each.base != BASELINE
        ),
    ]


def _arm_rows(case: CaseSummary, arm: ArmSummary, judged: Judgement | None = None) -> list[Rows]:
    theirs, ours = (
        (DASHBOARD_COLUMNS, OUR_COLUMNS)
        if case.is_timed
        else (ACCURACY_COLUMNS, OUR_ACCURACY_COLUMNS)
    )
    row = {**_dashboard_row(case, arm), **_our_row(case, arm), **_judged_row(judged)}
    return [Rows(_arm_file(case, arm), theirs + ours, (row,))]


def _their_rows(case: CaseSummary, arm: ArmSummary) -> list[Rows]:
    name = file_name(case.case, arm.name, "accuracy")
    found = [Rows(name, ACCURACY_COLUMNS, (_dashboard_row(case, arm),))]
    if case.is_timed:
        certain = Rows(_arm_file(case, arm), DASHBOARD_COLUMNS, (_certain_row(case, arm),))
        return [certain, *found]
    return found


def _arm_file(case: CaseSummary, arm: ArmSummary) -> str:
    return file_name(case.case, arm.name, "performance" if case.is_timed else "accuracy")


def _pairs_file(judged: Judgement) -> str:
    return file_name(judged.case.case, "backends", "pairs")


def _dashboard_row(case: CaseSummary, arm: ArmSummary) -> dict[str, object]:
    capture = arm.capture
    return {
        "dev": case.case.device,
        "name": case.case.label,
        "batch_size": case.case.batch_size,
        "accuracy": accuracy_string(arm.outcome),
        "speedup": arm.speedup.value if arm.speedup else None,
        "abs_latency": _scaled(arm.latency_s, 1e3),
        "compilation_latency": arm.compile_s,
        "compression_ratio": case.compression(arm).ratio,
        "eager_peak_mem": _scaled(case.baseline.memory.needed_bytes, 1e-9),
        "dynamo_peak_mem": _scaled(arm.memory.needed_bytes, 1e-9),
        "calls_captured": capture.ops if capture else None,
        "unique_graphs": capture.graphs if capture else None,
        "graph_breaks": sum(capture.breaks.values()) if capture else None,
        "unique_graph_breaks": len(capture.breaks) if capture else None,
    }


_OF_ANY_ARM = frozenset({"dev", "name", "batch_size"})
_DOUBTFUL = frozenset({"speedup", "abs_latency"})


def _certain_row(case: CaseSummary, arm: ArmSummary) -> dict[str, object]:
    """Return what a reader may take for a result who sees PyTorch's columns alone.

    Of an arm that did not pass that is nothing, as in their files; of a case that was disturbed, or
    whose arms disturbed each other, all but speedup and latency.
    Source: `write_csv_when_exception` in `benchmarks/dynamo/common.py`, which writes 0 for both.
    """
    row = _dashboard_row(case, arm)
    if not arm.passed:
        return {key: value if key in _OF_ANY_ARM else None for key, value in row.items()}
    if not case.is_conclusive:
        return {key: None if key in _DOUBTFUL else value for key, value in row.items()}
    return row


def _judged_row(judged: Judgement | None) -> dict[str, object]:
    return {
        "adjusted_p_value": judged.adjusted_p if judged else None,
        "verdict": judged.verdict if judged else None,
    }


def _pair_row(judged: Judgement) -> dict[str, object]:
    case = judged.case.case
    return {
        "dev": case.device,
        "name": case.label,
        "batch_size": case.batch_size,
        "base": judged.base,
        "arm": judged.arm,
        "speedup": judged.ratio.value,
        **_ratio_row(judged.ratio),
        "replicates_needed": replicates_needed_over(judged.base, judged.arm, judged.case.records),
        **_judged_row(judged),
        **_doubts_row(judged.case),
        "scale": case.scale,
    }


def _doubts_row(case: CaseSummary) -> dict[str, object]:
    return {
        "isolated": case.is_isolated,
        "interference": case.interferes,
        "disturbed": case.is_disturbed,
    }


def _memory_row(case: CaseSummary, arm: ArmSummary) -> dict[str, object]:
    """Return what stands beside a compression ratio: its parts, and how far replicates differ."""
    found, eager = arm.memory, case.baseline.memory
    return {
        "no_compression_ratio": case.compression(arm).reason if arm.passed else None,
        **_range_row("calls_mem", found.calls_bytes, found.calls),
        **_range_row("residue_mem", found.residue_bytes, found.residue),
        "memory_n": len(found.needed) or None,
        "eager_calls_mem": _scaled(eager.calls_bytes, 1e-9),
        "eager_residue_mem": _scaled(eager.residue_bytes, 1e-9),
    }


def _range_row(name: str, middle: float | None, values: Sequence[float]) -> dict[str, object]:
    return {
        name: _scaled(middle, 1e-9),
        f"{name}_low": _scaled(min(values, default=None), 1e-9),
        f"{name}_high": _scaled(max(values, default=None), 1e-9),
    }


def _ratio_row(ratio: Ratio | None) -> dict[str, object]:
    return {
        "speedup_low": ratio.low if ratio else None,
        "speedup_high": ratio.high if ratio else None,
        "p_value": ratio.p_value if ratio else None,
        "replicates": ratio.n if ratio else None,
    }


_CACHES = {True: "cold", False: "warm", None: None}


def _our_row(case: CaseSummary, arm: ArmSummary) -> dict[str, object]:
    ratio, capture, compile_times_s = arm.speedup, arm.capture, arm.compile_times_s
    return {
        **_ratio_row(ratio),
        "replicates_needed": arm.replicates_needed,
        "stopped": case.stopped,
        **(_doubts_row(case) if ratio else {}),
        "system_time_share": arm.system_time_share,
        "minor_faults": arm.minor_faults,
        "compile_low": min(compile_times_s, default=None),
        "compile_high": max(compile_times_s, default=None),
        "compile_n": len(compile_times_s) or None,
        "caches": _CACHES[arm.compiled_cold],
        "compile_dynamo": arm.phases_s.get("dynamo"),
        "compile_aot_autograd": arm.phases_s.get("aot_autograd"),
        "compile_backend": arm.phases_s.get("backend"),
        **_breakeven_row("breakeven", case.breakeven(arm)),
        **_memory_row(case, arm),
        "compile_warm": arm.warm_compile_s,
        **_breakeven_row("breakeven_warm", case.warm_breakeven(arm)),
        "eager_latency": _scaled(case.baseline.latency_s, 1e3),
        "frames_ok": capture.frames_ok if capture else None,
        "frames": capture.frames if capture else None,
        "recompiles": capture.recompiles if capture else None,
        "guards": capture.guards if capture else None,
        "guards_s": capture.guards_s if capture else None,
        "fallbacks": capture.fallbacks if capture else None,
        "dynamic": " ".join(case.records[0].varies) or None,
        "shapes": case.case.shapes,
        "steady": arm.steady,
        "max_error": arm.max_error,
        "checked_calls": arm.checked_calls or None,
        "unchecked": "; ".join(arm.unchecked) or None,
        "status": arm.outcome.status,
        "stage": arm.outcome.stage,
        "reason": arm.outcome.reason or arm.untimed,
        "scale": case.case.scale,
    }


def _breakeven_row(name: str, found: Breakeven | None) -> dict[str, object]:
    return {
        f"{name}_calls": found.calls if found else None,
        f"{name}_low": found.low if found else None,
        f"{name}_high": found.high if found else None,
    }


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
