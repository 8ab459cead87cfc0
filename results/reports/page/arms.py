"""What studies bring to the page that hold arms to eager: speedups, verdicts. Pure; no torch."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.reports import overrides_report
from dynamometer.results.reports.arms.speedup_columns import PAIRS
from dynamometer.results.reports.page.parts import (
    failures,
    group_of,
    pass_rate,
    rounded,
    table_of,
)
from dynamometer.results.reports.page.values import Bounds, Group, Look, Part, ShownArm
from dynamometer.results.statistics.significance import Verdict
from dynamometer.results.statistics.summary import summarize_suite
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary, SuiteSummary
    from dynamometer.results.statistics.verdicts import Judgement
    from dynamometer.results.values.records import Estimate


def part_of_arms(known: Sequence[CaseSummary]) -> Part:
    """Return speedups with verdicts, what each suite comes to, and what needs a look.

    Args:
        known: the cases of a run, as they are among each other (`between_processes.shared`).
    """
    usual = overrides_report.counted(known)
    counted = {each.case.id for each in usual}
    groups = list(_groups(usual))
    places = {(each.suite, each.mode, each.dtype, each.arm): n for n, each in enumerate(groups)}
    found = judge(usual)
    judged = {(each.case.case.id, each.arm): each for each in found if each.base == BASELINE}
    between = [each for each in found if each.base != BASELINE]
    arms = [
        msgspec.structs.replace(
            _arm(index, case, arm, judged.get((case.case.id, arm.name))),
            group=places.get((*group_of(case.records[0]), arm.name)),
        )
        if case.case.id in counted
        else _arm_with_overrides(index, case, arm)
        for index, case in enumerate(known)
        for arm in case.arms or (case.baseline,)
    ]
    return Part(
        arms=tuple(arms),
        groups=tuple(groups),
        looks=(*failures(arms), *_slower(arms), *_doubtful(known)),
        tables=(table_of(PAIRS, between),) if between else (),
        is_timed=any(case.is_timed for case in known),
    )


def _arm(index: int, case: CaseSummary, arm: ArmSummary, judged: Judgement | None) -> ShownArm:
    compression = case.compression(arm) if case.is_timed and arm.passed else None
    seen, pays = arm.capture, case.breakeven(arm)
    is_certain = pays is not None and pays.high is not None
    return ShownArm(
        case=index,
        arm=arm.name,
        status=arm.outcome.status,
        line=None if arm.passed else arm.outcome.line,
        speedup=bounds(arm.speedup),
        p_value=rounded(arm.speedup.p_value) if arm.speedup else None,
        adjusted_p=rounded(judged.adjusted_p) if judged else None,
        verdict=judged.verdict if judged else None,
        reason=judged.reason if judged else arm.untimed,
        eager_ms=_ms(case.baseline.latency_s),
        latency_ms=_ms(arm.latency_s),
        compile_s=rounded(arm.compile_s),
        compile_warm_s=rounded(arm.warm_compile_s),
        memory_ratio=rounded(compression.ratio) if compression else None,
        memory_reason=compression.reason if compression else None,
        graphs=seen.graphs if seen else None,
        breaks=sum(seen.breaks.values()) if seen else None,
        ops=seen.ops if seen else None,
        max_error=rounded(arm.max_error),
        pays_after=rounded(pays.calls) if pays and is_certain else None,
        marks=tuple(_marks(case, arm)),
    )


def _arm_with_overrides(index: int, case: CaseSummary, arm: ArmSummary) -> ShownArm:
    """Return an arm of a case that stands beside the usual one: it counts in nothing."""
    found = _arm(index, case, arm, None)
    if found.speedup is None:
        return found
    return msgspec.structs.replace(found, reason="with overrides: nothing is concluded of it")


def bounds(found: Estimate | None) -> Bounds | None:
    """Return an estimate as the page has it."""
    if found is None:
        return None
    value, low, high = (float(f"{each:.6g}") for each in (found.value, found.low, found.high))
    return Bounds(value=value, low=low, high=high, n=found.n)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else rounded(seconds * 1e3)


def _marks(case: CaseSummary, arm: ArmSummary) -> Iterator[str]:
    """Name what a reader must know of how an arm was measured."""
    seen = arm.capture
    found = {
        "disturbed": case.is_disturbed,
        "interference": case.interferes,
        "isolated": case.is_isolated,
        "system time": arm.system_time_shows or case.baseline.system_time_shows,
        "partly checked": bool(arm.passed and arm.unchecked),
        "unsteady": arm.steady is False,
        "screening": arm.speedup is not None and arm.speedup.n == 1,
        "graphs in eager": bool(seen and seen.fallbacks),
        "recompile limit": bool(seen and seen.recompile_limit_hits),
    }
    return (mark for mark, holds in found.items() if holds)


def _groups(cases: Sequence[CaseSummary]) -> Iterator[Group]:
    by_group: defaultdict[tuple[str, str, str], list[CaseSummary]] = defaultdict(list)
    for case in cases:
        by_group[group_of(case.records[0])].append(case)
    for key, own in sorted(by_group.items()):
        yield from (_group(key, each) for each in summarize_suite(own))


def _group(key: tuple[str, str, str], found: SuiteSummary) -> Group:
    suite, mode, dtype = key
    times, ratios = found.compile_times_s, found.compression_ratios
    return Group(
        suite=suite,
        mode=mode,
        dtype=dtype,
        arm=found.name,
        passed=found.passed,
        counted=found.counted,
        pass_rate=pass_rate(found.passed, found.counted),
        speedup=bounds(found.geomean),
        compile_s=rounded(statistics.fmean(times)) if times else None,
        compile_n=len(times),
        memory_ratio=rounded(statistics.fmean(ratios)) if ratios else None,
        memory_n=len(ratios),
    )


def _slower(arms: Sequence[ShownArm]) -> Iterator[Look]:
    """Yield arms that are slower than eager, the slowest first."""
    found = [(each.speedup.value, each) for each in arms if each.speedup]
    for _, each in sorted(found, key=lambda pair: pair[0]):
        if each.verdict == Verdict.SLOWER and each.speedup:
            text = f"{each.speedup.value:.3f}x: {each.reason}"
            yield Look(kind="slower than eager", text=text, case=each.case, arm=each.arm)


def _doubtful(cases: Sequence[CaseSummary]) -> Iterator[Look]:
    """Yield cases from whose speedups nothing is concluded."""
    words = {
        "disturbed": "something else kept the machine busy: measure again when nothing does",
        "interference": "its arms disturb each other: measure again with one backend",
    }
    for index, case in enumerate(cases):
        doubt = case.doubt if case.is_timed and any(arm.speedup for arm in case.arms) else None
        if doubt:
            yield Look(kind=doubt, text=words.get(doubt, doubt), case=index)
