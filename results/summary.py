"""From records to what is reported: one arm of a case, one case, one suite."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results import metrics
from dynamometer.results.cases import BASELINE, Case
from dynamometer.results.records import Outcome, Ratio, Record, Status
from dynamometer.results.statistics import geometric_mean, log_speedup, speedup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.records import CaptureStats, Measurement

SMALLEST_PEAK_BYTES = 2**20
"""Peaks below this are noise of the allocator; no ratio is formed of them."""

SIGNIFICANT_P = 0.05


@dataclass(frozen=True)
class ArmSummary:
    """What all replicates of a case say of one arm; `None` is what they don't.

    Attributes:
        name: of the arm.
        outcome: the first that was not a pass, else a pass.
        speedup: over the baseline.
        latency_s: median over replicates of the median sample.
        compile_s: cold, from the first replicate.
        peak_bytes: memory of the loaded model and of what its calls take at the peak.
        capture: what Dynamo captured, from the first replicate.
        steady: whether every replicate had settled before it was measured.
        max_error: largest relative deviation from eager, of all replicates.
    """

    name: str
    outcome: Outcome
    speedup: Ratio | None
    latency_s: float | None
    compile_s: float | None
    peak_bytes: float | None
    capture: CaptureStats | None
    steady: bool | None
    max_error: float | None


@dataclass(frozen=True)
class CaseSummary:
    """A case over its replicates.

    Attributes:
        case: what was run.
        records: one for each replicate that was.
        baseline: the arm the others are compared with.
        arms: the others, in the case's order.
    """

    case: Case
    records: tuple[Record, ...]
    baseline: ArmSummary
    arms: tuple[ArmSummary, ...]

    @property
    def outcome(self) -> Outcome:
        """The first that was not a pass, else a pass."""
        return _first_failure([record.outcome for record in self.records])

    @property
    def is_timed(self) -> bool:
        """Whether latencies were asked for, rather than correctness alone."""
        return "speedup" in self.records[0].experiments


@dataclass(frozen=True)
class SuiteSummary:
    """One arm over all cases of a run.

    Attributes:
        name: of the arm.
        passed: cases it passed.
        counted: cases that were not skipped.
        speedups: of the cases it passed.
        compile_times_s: likewise, where measured.
        compression_ratios: baseline's peak over the arm's, likewise.
        max_error: largest relative deviation from eager of the cases it passed.
    """

    name: str
    passed: int
    counted: int
    speedups: tuple[float, ...]
    compile_times_s: tuple[float, ...]
    compression_ratios: tuple[float, ...]
    max_error: float | None

    @property
    def geomean(self) -> float | None:
        """Geometric mean of the speedups."""
        return geometric_mean(self.speedups)

    @property
    def mean(self) -> float | None:
        """Arithmetic mean of the speedups."""
        return statistics.fmean(self.speedups) if self.speedups else None


def summarize_case(records: Sequence[Record]) -> CaseSummary:
    """Summarize the replicates of one case.

    Raises:
        ValueError: there is none, or they are of several cases.
    """
    cases = {record.case.id for record in records}
    if len(cases) != 1:
        msg = f"expected the records of one case, got {len(cases)}"
        raise ValueError(msg)
    case = records[0].case
    arms = [_summarize_arm(arm, records) for arm in case.arms]
    return CaseSummary(case, tuple(records), arms[0], tuple(arms[1:]))


def summarize_cases(records: Iterable[Record]) -> list[CaseSummary]:
    """Group records by case, in order of first appearance."""
    groups: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[record.case.id].append(record)
    return [summarize_case(group) for group in groups.values()]


def summarize_suite(cases: Sequence[CaseSummary]) -> list[SuiteSummary]:
    """Summarize every arm over all cases that have it."""
    names = dict.fromkeys(arm.name for case in cases for arm in case.arms)
    return [_summarize_over_cases(name, cases) for name in names]


def compression_ratio(case: CaseSummary, arm: ArmSummary) -> float | None:
    """Divide the baseline's peak memory by the arm's; above 1 the arm needs less."""
    ours, theirs = arm.peak_bytes, case.baseline.peak_bytes
    if ours is None or theirs is None or min(ours, theirs) < SMALLEST_PEAK_BYTES:
        return None
    return theirs / ours


def _summarize_over_cases(name: str, cases: Sequence[CaseSummary]) -> SuiteSummary:
    pairs = [(case, arm) for case in cases for arm in case.arms if arm.name == name]
    skipped = [arm for _, arm in pairs if arm.outcome.status is Status.SKIP]
    passed = [(case, arm) for case, arm in pairs if arm.outcome.status is Status.PASS]
    ratios = [compression_ratio(case, arm) for case, arm in passed]
    errors = [arm.max_error for _, arm in passed if arm.max_error is not None]
    return SuiteSummary(
        name=name,
        passed=len(passed),
        counted=len(pairs) - len(skipped),
        speedups=tuple(arm.speedup.value for _, arm in passed if arm.speedup),
        compile_times_s=tuple(arm.compile_s for _, arm in passed if arm.compile_s is not None),
        compression_ratios=tuple(ratio for ratio in ratios if ratio is not None),
        max_error=max(errors, default=None),
    )


def _summarize_arm(name: str, records: Sequence[Record]) -> ArmSummary:
    results = [result for record in records for result in record.arms if result.arm == name]
    # A record without results of its arms stands for them as a whole.
    whole = [record.outcome for record in records if not record.arms]
    settled = [result.steady for result in results if result.steady is not None]
    errors = [result.max_error for result in results if result.max_error is not None]
    return ArmSummary(
        name=name,
        outcome=_first_failure([*whole, *(result.outcome for result in results)]),
        speedup=_speedup(name, records),
        latency_s=_median_of_medians(_find(records, metrics.LATENCY, name)),
        compile_s=_first_sample(_find(records, metrics.COMPILE_TIME, name)),
        peak_bytes=_peak_bytes(name, records),
        capture=next((result.capture for result in results if result.capture), None),
        steady=all(settled) if settled else None,
        max_error=max(errors) if errors else None,
    )


def _speedup(name: str, records: Sequence[Record]) -> Ratio | None:
    if name == BASELINE:
        return None
    replicates = []
    for record in records:
        before = _find([record], metrics.LATENCY, BASELINE)
        after = _find([record], metrics.LATENCY, name)
        if before and after:
            replicates.append(log_speedup(before[0], after[0]))
    return speedup(replicates) if replicates else None


def _peak_bytes(name: str, records: Sequence[Record]) -> float | None:
    """Add what the model takes when loaded, as a GPU's allocator counts it too."""
    loaded = _first_sample(_find(records, metrics.LOADED_MEMORY, name))
    beyond = _first_sample(_find(records, metrics.PEAK_MEMORY, name))
    return None if loaded is None or beyond is None else loaded + beyond


def _find(records: Iterable[Record], metric: str, arm: str) -> list[Measurement]:
    return [
        each
        for record in records
        for each in record.measurements
        if each.metric == metric and each.arm == arm
    ]


def _median_of_medians(measurements: list[Measurement]) -> float | None:
    medians = [statistics.median(each.samples) for each in measurements if each.samples]
    return statistics.median(medians) if medians else None


def _first_sample(measurements: list[Measurement]) -> float | None:
    return measurements[0].samples[0] if measurements else None


def _first_failure(outcomes: list[Outcome]) -> Outcome:
    passed = Outcome(status=Status.PASS)
    return next((each for each in outcomes if each.status is not Status.PASS), passed)
