"""Results on standard output: a line as each case ends, then the suite's table."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TextIO

from tabulate import tabulate

from dynamometer.results.batch_sizes import is_search, summarize_search
from dynamometer.results.records import PASSED, Status
from dynamometer.results.summary import (
    SIGNIFICANT_P,
    CaseSummary,
    summarize_case,
    summarize_suite,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.batch_sizes import BatchSizeSummary
    from dynamometer.results.records import Outcome, Record
    from dynamometer.results.summary import ArmSummary, SuiteSummary

_NAME_WIDTH = 30
_REASON_CHARACTERS = 100


class Console:
    """Prints results as text."""

    def __init__(self, stream: TextIO) -> None:
        """Print to a stream."""
        self._stream = stream
        self._cases: list[CaseSummary] = []

    def write(self, records: Sequence[Record]) -> None:
        """Print the line of a case."""
        if is_search(records):
            print(search_line(summarize_search(records)), file=self._stream, flush=True)
            return
        case = summarize_case(records)
        self._cases.append(case)
        print(case_line(case), file=self._stream, flush=True)

    def close(self) -> None:
        """Print what the cases come to."""
        if self._cases:
            print("\n".join(suite_lines(self._cases)), file=self._stream, flush=True)


def search_line(search: BatchSizeSummary) -> str:
    """Render one search: the largest batch, the fastest, and what ended it."""
    name = f"{search.case.device:4} {search.case.model:<{_NAME_WIDTH}}"
    passed = search.end.status is Status.PASS
    end = search.end.reason if passed else f"then {_failure_text(search.end)}"
    if search.largest is None or search.fastest is None:
        return f"{name} {_failure_text(search.end)}"
    largest, fastest = search.largest, search.fastest
    return (
        f"{name} batch size {largest.batch_size} ({largest.samples_per_s:.3g} samples/s); fastest"
        f" {fastest.batch_size} ({fastest.samples_per_s:.3g} samples/s); {end}"
    )


def case_line(case: CaseSummary) -> str:
    """Render one case: device, name, frames, then each arm's speedup, p-value and interval."""
    captures = [arm.capture for arm in case.arms if arm.capture]
    ok, total = (captures[0].frames_ok, captures[0].frames) if captures else (0, 0)
    if {arm.outcome for arm in case.arms} == {case.outcome} != {PASSED}:
        arms = _failure_text(case.outcome)  # no arm has anything of its own to say
    else:
        arms = "  ".join(
            _arm_text(arm, named=len(case.arms) > 1, timed=case.is_timed) for arm in case.arms
        )
    name = f"{case.case.model:<{_NAME_WIDTH}}"
    again = f", {captures[0].recompiles} recompiles" if captures and case.case.dynamic else ""
    return f"{case.case.device:4} {name} {ok:3}/{total:3} frames{again}, {arms}"


def suite_lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Render what a run's cases come to, with how many each figure stands on."""
    suite = summarize_suite(cases)
    timed = any(case.is_timed for case in cases)
    lines = (_timed_lines if timed else _accuracy_lines)(suite)
    replicates = {len(case.records) for case in cases if case.outcome.status is Status.PASS}
    if timed and replicates == {1}:
        lines += [
            "",
            "screening: one replicate; intervals rest on an assumed spread (-r 3 for more)",
        ]
    return lines + _problems(cases)


def _timed_lines(suite: Sequence[SuiteSummary]) -> list[str]:
    means = " ".join(_number(arm.mean, "{:.3f}") for arm in suite)
    geomeans = " ".join(_number(arm.geomean, "{:.3f}") for arm in suite)
    headers = ["arm", "pass rate", "geomean speedup", "n", "compile time", "memory ratio"]
    table = _table([_timed_row(arm) for arm in suite], headers)
    return ["", f"MEAN SPEEDUP [{means}]", f"GEOMEAN SPEEDUP [{geomeans}]", "", *table]


def _accuracy_lines(suite: Sequence[SuiteSummary]) -> list[str]:
    rows = [[arm.name, _rate(arm), _number(arm.max_error, "{:.1e}")] for arm in suite]
    return ["", *_table(rows, ["arm", "pass rate", "largest error"])]


def _table(rows: list[list[str]], headers: list[str]) -> list[str]:
    align = ("left", *("right" for _ in headers[1:]))
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=align).splitlines()


def _arm_text(arm: ArmSummary, *, named: bool, timed: bool) -> str:
    label = f"{arm.name} " if named else ""
    ratio = arm.speedup
    if arm.outcome.status is not Status.PASS:
        return label + _failure_text(arm.outcome)
    if ratio is None:
        error = _number(arm.max_error, "{:.1e}")
        return f"{label}not measured" if timed else f"{label}PASS error {error}"
    p_value = f"p={ratio.p_value:.2f}" if ratio.p_value <= SIGNIFICANT_P else "SAME"
    unsteady = "" if arm.steady else " unsteady"
    return f"{label}{ratio.value:.3f}x {p_value:6} [{ratio.low:.3f}, {ratio.high:.3f}]{unsteady}"


def _failure_text(outcome: Outcome) -> str:
    reason = " ".join((outcome.reason or "no reason given").split())[:_REASON_CHARACTERS]
    stage = f" ({outcome.stage})" if outcome.stage else ""
    return f"{outcome.status.upper()}{stage} {reason}"


def _rate(arm: SuiteSummary) -> str:
    return f"{arm.passed / arm.counted:.0%}, {arm.passed}/{arm.counted}" if arm.counted else "-"


def _timed_row(arm: SuiteSummary) -> list[str]:
    times, ratios = arm.compile_times_s, arm.compression_ratios
    return [
        arm.name,
        _rate(arm),
        _number(arm.geomean, "{:.3f}x"),
        str(len(arm.speedups)),
        _number(sum(times) / len(times) if times else None, "{:.1f} s"),
        _number(sum(ratios) / len(ratios) if ratios else None, "{:.2f}x"),
    ]


def _problems(cases: Sequence[CaseSummary]) -> list[str]:
    """Count what was not a pass, by status."""
    counts = Counter(case.outcome.status for case in cases)
    del counts[Status.PASS]
    if not counts:
        return []
    return ["", "not passed: " + ", ".join(f"{n} {status}" for status, n in counts.items())]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
