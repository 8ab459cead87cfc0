"""The CSV that PyTorch's dashboards read, one file for each arm, with our columns after theirs."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, TextIO

from dynamometer.results.reports import controls_report, coverage_report, sizes_report
from dynamometer.results.reports.dashboard_status import accuracy_string
from dynamometer.results.statistics.batch_sizes import is_search, summarize_search
from dynamometer.results.statistics.replicates import replicates_needed_over
from dynamometer.results.statistics.spreads import shared
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.statistics.batch_sizes import BatchSizeSummary
    from dynamometer.results.statistics.breakeven import Breakeven
    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary
    from dynamometer.results.statistics.verdicts import Judgement
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Ratio, Record

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
    "apart",
    "interference",
    "disturbed",
    "kernel_share",
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
    "apart",
    "interference",
    "disturbed",
    "scale",
)
"""Of backends against each other; each against eager stands in its own file."""


SEARCH_COLUMNS = ("dev", "name", "batch_size")

OUR_SEARCH_COLUMNS = (
    "samples_per_s",
    "fastest_batch_size",
    "fastest_samples_per_s",
    "end",
    "reason",
    "scale",
)


class CsvFiles:
    """Writes a row as each case ends; what is missing is empty, never 0.

    Of an arm that did not pass there are a status, a reason and what was captured, but nothing that
    was measured. PyTorch's columns have no place to say so, nor that a case was disturbed: with
    these alone 0 stands for what was measured, and a file of theirs says which arms passed.

    What can be said only of all cases together, verdicts and adjusted p-values, is filled in at
    the end; intervals are then those that all cases together give.
    """

    def __init__(self, directory: Path, *, compatible: bool = False) -> None:
        """Write to `<arm>_<suite>_<dtype>_<mode>_<device>_<kind>.csv` in a directory.

        The kind is `performance`, `accuracy` for cases that were not timed, `batch_sizes`,
        `coverage` (and `coverage_losses`, a row for each thing that is lost) or `sizes`. Backends
        against each other stand in `backends_..._pairs.csv`.

        Args:
            directory: where the files go.
            compatible: write the dashboards' columns alone, with their 0 for missing; for cases
                that were timed both of their files, as theirs say in one alone what failed.
        """
        self._directory = directory
        self._compatible = compatible
        self._files: dict[str, TextIO] = {}
        self._timed: list[CaseSummary] = []

    def write(self, records: Sequence[Record]) -> None:
        """Add a row for each arm of a case, or for each size, or that of a search or count."""
        if is_search(records):
            self._write_search(summarize_search(records))
            return
        if coverage_report.is_coverage(records):
            self._write_coverage(coverage_report.summarize(records))
            return
        if sizes_report.is_sweep(records):
            self._write_sweep(sizes_report.summarize_sweep(records))
            return
        case = summarize_case(records)
        for arm in case.arms:
            self._write_arm(case, arm, None)
        if case.is_timed:
            self._timed.append(case)

    def _write_arm(self, case: CaseSummary, arm: ArmSummary, judged: Judgement | None) -> None:
        if self._compatible:
            self._write_theirs(case, arm)
            return
        theirs, ours = (
            (DASHBOARD_COLUMNS, OUR_COLUMNS)
            if case.is_timed
            else (ACCURACY_COLUMNS, OUR_ACCURACY_COLUMNS)
        )
        row = {**_dashboard_row(case, arm), **_our_row(case, arm), **_judged_row(judged)}
        self._add(_arm_file(case, arm), theirs + ours, row)

    def _write_theirs(self, case: CaseSummary, arm: ArmSummary) -> None:
        if case.is_timed:
            self._add(_arm_file(case, arm), DASHBOARD_COLUMNS, _certain_row(case, arm))
        name = file_name(case.case, arm.name, "accuracy")
        self._add(name, ACCURACY_COLUMNS, _dashboard_row(case, arm))

    def _write_search(self, search: BatchSizeSummary) -> None:
        columns = SEARCH_COLUMNS if self._compatible else SEARCH_COLUMNS + OUR_SEARCH_COLUMNS
        name = file_name(search.case, search.case.arms[0], "batch_sizes")
        self._add(name, columns, _search_row(search))

    def _write_coverage(self, found: coverage_report.CoverageSummary) -> None:
        theirs, ours = coverage_report.COLUMNS, coverage_report.OUR_COLUMNS
        name = file_name(found.case, "dynamo", "coverage")
        self._add(name, theirs if self._compatible else theirs + ours, coverage_report.row(found))
        losses = file_name(found.case, "dynamo", "coverage_losses")
        for row in () if self._compatible else coverage_report.loss_rows(found):
            self._add(losses, coverage_report.LOSS_COLUMNS, row)

    def _write_sweep(self, found: sizes_report.SweepSummary) -> None:
        name = file_name(found.case, found.case.arms[-1], "sizes")
        for row in sizes_report.rows(found):
            self._add(name, sizes_report.COLUMNS, row)

    def _add(self, name: str, columns: tuple[str, ...], row: dict[str, object]) -> None:
        absent = "0" if self._compatible else ""
        texts = {key: absent if value is None else _text(value) for key, value in row.items()}
        file = self._open(name, columns)
        csv.DictWriter(file, columns, extrasaction="ignore").writerow(texts)
        file.flush()

    def close(self) -> None:
        """Write the rows of timed cases once more, with what is known of them now."""
        if not self._compatible:
            self._rewrite()
        for file in self._files.values():
            file.close()

    def _rewrite(self) -> None:
        timed = shared(self._timed)
        judged = judge(controls_report.without_controls(timed))
        over_eager = {
            (each.case.case.id, each.arm): each for each in judged if each.base == BASELINE
        }
        of_backends = [each for each in judged if each.base != BASELINE]
        arms = [(case, arm) for case in timed for arm in case.arms]
        again = {_arm_file(*each) for each in arms} | {_pairs_file(each) for each in of_backends}
        for name in again & self._files.keys():
            self._files.pop(name).close()
        for case, arm in arms:
            self._write_arm(case, arm, over_eager.get((case.case.id, arm.name)))
        for each in of_backends:
            self._add(_pairs_file(each), PAIR_COLUMNS, _pair_row(each))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files written so far."""
        return tuple(self._directory / name for name in self._files)

    def _open(self, name: str, columns: tuple[str, ...]) -> TextIO:
        if name not in self._files:
            file = (self._directory / name).open("w", newline="")
            csv.DictWriter(file, columns).writeheader()
            self._files[name] = file
        return self._files[name]


def _arm_file(case: CaseSummary, arm: ArmSummary) -> str:
    return file_name(case.case, arm.name, "performance" if case.is_timed else "accuracy")


def _pairs_file(judged: Judgement) -> str:
    return file_name(judged.case.case, "backends", "pairs")


def file_name(case: Case, arm: str, kind: str) -> str:
    """Name an arm's file as the dashboards parse it."""
    arm = "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in arm)
    return f"{arm}_{case.suite}_{case.dtype}_{case.mode}_{case.device}_{kind}.csv"


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
    """Give what a reader may take for a result who sees PyTorch's columns alone.

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
        "apart": case.is_apart,
        "interference": case.interferes,
        "disturbed": case.is_disturbed,
    }


def _memory_row(case: CaseSummary, arm: ArmSummary) -> dict[str, object]:
    """Give what stands beside a compression ratio: its parts, and how far replicates differ."""
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
        "kernel_share": arm.kernel_share,
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


def _search_row(search: BatchSizeSummary) -> dict[str, object]:
    largest, fastest = search.largest, search.fastest
    return {
        "dev": search.case.device,
        "name": search.case.model,
        "batch_size": largest.batch_size if largest else None,
        "samples_per_s": largest.samples_per_s if largest else None,
        "fastest_batch_size": fastest.batch_size if fastest else None,
        "fastest_samples_per_s": fastest.samples_per_s if fastest else None,
        "end": "limit" if search.end.status is Status.PASS else search.end.status,
        "reason": search.end.reason,
        "scale": search.case.scale,
    }


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
