"""Arms of cases that were timed or checked, as text: a line for each case, then a table."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING

from tabulate import tabulate

from dynamometer.results.listing import first_of
from dynamometer.results.reports import overrides_report
from dynamometer.results.reports.arms import ensemble, overhead
from dynamometer.results.reports.texts import (
    name_columns,
    number_text,
    pass_rate,
    rounded_to_3_digits,
    speedup_text,
)
from dynamometer.results.statistics.between_processes import is_provisional, is_told
from dynamometer.results.statistics.replicates import known_of
from dynamometer.results.statistics.significance import SIGNIFICANT_P, Verdict, geometric_mean
from dynamometer.results.statistics.summary import CaseSummary, summarize_suite
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dynamometer.results.statistics.breakeven import Breakeven
    from dynamometer.results.statistics.summary import ArmSummary, SuiteSummary
    from dynamometer.results.statistics.verdicts import Judgement


def case_line(case: CaseSummary, told: Collection[str] | None = None) -> str:
    """Render one case: device, name, frames, then each arm's speedup, p-value and interval.

    Args:
        case: over its replicates.
        told: the arms that it shows, besides those that failed; `None` for all.
    """
    shown = [arm for arm in case.arms if told is None or arm.name in told or not arm.passed]
    captures = [arm.capture for arm in case.arms if arm.capture]
    ok, total = (captures[0].frames_ok, captures[0].frames) if captures else ("-", "-")
    if {arm.outcome for arm in case.arms} == {case.outcome} != {PASSED}:
        arms = case.outcome.line  # no arm has anything of its own to say
    else:
        arms = "  ".join(_arm_text(case, arm) for arm in shown)
    again = f", {captures[0].recompiles} recompiles" if captures and case.case.dynamic else ""
    timed = any(arm.speedup for arm in case.arms)
    provisional = " PROVISIONAL" if timed and is_provisional(case) else ""
    marks = provisional + "".join(f" {mark}" for mark in _marks(case, shown))
    return f"{name_columns(case.case)} {ok:>3}/{total:>3} frames{again}, {arms}{marks}"


def _marks(case: CaseSummary, arms: Sequence[ArmSummary]) -> list[str]:
    """Name what a reader of the line must know of how it was measured."""
    found = {
        "ISOLATED": case.is_isolated,
        "INTERFERENCE": case.interferes,
        "DISTURBED": case.is_disturbed,
        "SYS_TIME": any(arm.system_time_shows for arm in (case.baseline, *arms)),
        "PARTIAL": any(arm.passed and arm.unchecked for arm in arms),
        "RECOMPILE_LIMIT": any(arm.capture and arm.capture.recompile_limit_hits for arm in arms),
    }
    return [mark for mark, holds in found.items() if holds]


_MEANINGS = {
    "ISOLATED": "its arms disturbed each other, and were timed in processes of their own",
    "INTERFERENCE": "its arms disturbed each other; left out of means and verdicts",
    "DISTURBED": "something else kept the machine busy; left out of means and verdicts",
    "SYS_TIME": "system time is over 5 % of an arm's latency, mostly for page faults",
    "PARTIAL": "some results could not be compared, or not closely; the CSV says which and why",
    "RECOMPILE_LIMIT": "Dynamo gave up compiling a frame again; calls that no compiled code fits"
    " run in eager",
}


def closing_lines(ended: Sequence[CaseSummary], known: Sequence[CaseSummary]) -> list[str]:
    """Render what a run's cases come to, and what overrides changed of it.

    Args:
        ended: as they were known when they ended.
        known: as they are among each other (`between_processes.shared`).
    """
    usual = overrides_report.counted(known)
    return [*suite_lines(usual), *_between_sd_lines(ended, known), *overrides_report.lines(known)]


def suite_lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Render what a run's cases come to, with how many each figure stands on."""
    suite = summarize_suite(cases)
    timed = any(case.is_timed for case in cases)
    lines = _timed_lines(suite, judge(cases)) if timed else _accuracy_lines(suite)
    replicates = {len(case.records) for case in cases if case.outcome.status is Status.PASS}
    if timed and replicates == {1}:
        text = "how much processes differ is assumed, or known from earlier runs"
        lines += ["", f"screening: one replicate; {text} (-r 3 measures it)"]
    lines += _wide_lines(cases) if timed else []
    lines += (
        ensemble.lines(cases)
        + _without_memory_ratio(cases)
        + overhead.lines(cases)
        + _reasons_against_one_graph(cases)
    )
    marks = {mark for case in cases for mark in _marks(case, case.arms)}
    explained = [f"{mark}: {text}" for mark, text in _MEANINGS.items() if mark in marks]
    return lines + (["", *explained] if explained else []) + _problems(cases)


def _wide_lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Name the speedups that are not known as well as was asked, and what it would take."""
    known = [
        (case, arm) for case in cases if case.is_conclusive for arm in case.arms if arm.speedup
    ]
    wide = sorted(
        (arm.replicates_needed, f"{case.case.label} {arm.name}")
        for case, arm in known
        if arm.replicates_needed
    )
    if not wide:
        return []
    needed = first_of([f"{name} {count}" for count, name in wide], _NAMED)
    text = f"less precise than --target: {len(wide)} of {len(known)} speedups"
    return ["", f"{text}; enough replicates (-r) would be: {needed}"]


_NAMED = 8
"""Named on the terminal; the CSV has them all."""


def _between_sd_lines(before: Sequence[CaseSummary], after: Sequence[CaseSummary]) -> list[str]:
    """Return what became of intervals that the lines of cases give for provisional."""
    if not any(map(is_provisional, before)):
        return []
    pairs = [
        (arm.name, known_of(case.records[0], arm.name), known_of(told.records[0], arm.name))
        for case, told in zip(before, after, strict=True)
        for arm in case.arms
        if is_told(case, arm)
    ]
    assumed = statistics.median(guess.sd_log for _, guess, _ in pairs)
    text = f"its interval assumes that speedups differ by {assumed:.1%} from process to process;"
    found = {
        name: statistics.median(told.sd_log for each, _, told in pairs if each == name)
        for name in dict.fromkeys(name for name, guess, told in pairs if told != guess)
    }
    if not found:
        return ["", f"PROVISIONAL: {text} no other case told more, so it stands"]
    least, most = (f"{each(found.values()):.1%}" for each in (min, max))
    shown = least if least == most else f"{least} to {most}, by arm"
    return ["", f"PROVISIONAL: {text} these cases show {shown}, which tables and CSV use"]


def _reasons_against_one_graph(cases: Sequence[CaseSummary]) -> list[str]:
    """Describe in full why models that had to be one graph are not, with what Dynamo advises."""
    found = [
        f"  {case.case.model}: {' '.join((arm.outcome.reason or str(arm.outcome.status)).split())}"
        for case in cases
        for arm in case.arms
        if case.case.nopython and arm.outcome.status is Status.FAIL
    ]
    return ["", "not one graph:", *found] if found else []


def _timed_lines(suite: Sequence[SuiteSummary], judged: Sequence[Judgement]) -> list[str]:
    means = " ".join(number_text(arm.mean, "{:.3f}") for arm in suite)
    geomeans = " ".join(
        number_text(arm.geomean.value if arm.geomean else None, "{:.3f}") for arm in suite
    )
    headers = ["arm", "pass rate", "geomean speedup", "n", "compile time", "memory ratio"]
    table = _table([_timed_row(arm) for arm in suite], headers)
    lines = ["", f"MEAN SPEEDUP [{means}]", f"GEOMEAN SPEEDUP [{geomeans}]", "", *table]
    return [*lines, "", *_verdict_lines(judged)] if judged else lines


def _verdict_lines(judged: Sequence[Judgement]) -> list[str]:
    """Count verdicts for each pair of arms; those of backends against each other come last."""
    pairs = sorted(
        dict.fromkeys((each.base, each.arm) for each in judged),
        key=lambda pair: pair[0] != BASELINE,
    )
    rows = []
    for base, arm in pairs:
        own = [each for each in judged if (each.base, each.arm) == (base, arm)]
        counts = Counter(each.verdict for each in own)
        average = geometric_mean([each.ratio for each in own if each.case.is_conclusive])
        rows.append([f"{arm} against {base}", speedup_text(average),
                     *(str(counts[verdict]) for verdict in Verdict)])  # fmt: skip
    table = _table(rows, ["pair", "geomean speedup", *(str(verdict) for verdict in Verdict)])
    return [*table, *_unclear_lines(judged)]


def _unclear_lines(judged: Sequence[Judgement]) -> list[str]:
    """Name the pairs of which nothing is concluded, and why."""
    found = [
        f"  {each.case.case.label}, {each.arm} against {each.base}: {each.reason}"
        for each in judged
        if each.verdict is Verdict.UNCLEAR
    ]
    more = [f"  and {len(found) - _NAMED} more; the CSV has all"] * (len(found) > _NAMED)
    return ["", "UNCLEAR:", *found[:_NAMED], *more] if found else []


def _accuracy_lines(suite: Sequence[SuiteSummary]) -> list[str]:
    rows = [
        [arm.name, pass_rate(arm.passed, arm.counted), number_text(arm.max_error, "{:.1e}")]
        for arm in suite
    ]
    return ["", *_table(rows, ["arm", "pass rate", "largest error"])]


def _table(rows: list[list[str]], headers: list[str]) -> list[str]:
    align = ("left", *("right" for _ in headers[1:]))
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=align).splitlines()


def _arm_text(case: CaseSummary, arm: ArmSummary) -> str:
    label = f"{arm.name} " if len(case.arms) > 1 else ""
    ratio = arm.speedup
    if not arm.passed:
        return label + arm.outcome.line
    if ratio is None:
        error = number_text(arm.max_error, "{:.1e}")
        passed = f"PASS error {error}{_fallbacks(arm)}"
        why = f": {arm.untimed}" if arm.untimed else ""
        return f"{label}not measured{why}" if case.is_timed else label + passed
    p_value = f"p={ratio.p_value:.2f}" if ratio.p_value <= SIGNIFICANT_P else "SAME"
    remarks = f"{'' if arm.steady else ' unsteady'}{_fallbacks(arm)}{_pays(case, arm)}"
    return f"{label}{ratio.value:.3f}x {p_value:6} [{ratio.low:.3f}, {ratio.high:.3f}]{remarks}"


def _fallbacks(arm: ArmSummary) -> str:
    """Return how many graphs run in eager, as the backend failed on them."""
    seen = arm.capture
    return f", {seen.fallbacks} of {seen.graphs} graphs in eager" if seen and seen.fallbacks else ""


def _pays(case: CaseSummary, arm: ArmSummary) -> str:
    """Return after how many calls compiling has paid, where it surely does."""
    form = "{} steps of several sizes {}" if case.case.dynamic else "{} calls {}"
    if not arm.compiled_cold:
        warm = _calls(case.warm_breakeven(arm), form)
        return warm and f", pays after {warm} (caches filled)"
    found, warm = _calls(case.breakeven(arm), form), _calls(case.warm_breakeven(arm), "{} {}")
    return (found and f", pays after {found}") + (warm and f" (caches filled: {warm})")


def _calls(found: Breakeven | None, form: str) -> str:
    if found is None or found.calls is None or found.low is None or found.high is None:
        return ""
    calls, low, high = (
        rounded_to_3_digits(round(each)) for each in (found.calls, found.low, found.high)
    )
    return form.format(calls, f"[{low}, {high}]")


def _timed_row(arm: SuiteSummary) -> list[str]:
    times, ratios = arm.compile_times_s, arm.compression_ratios
    return [
        arm.name,
        pass_rate(arm.passed, arm.counted),
        speedup_text(arm.geomean),
        str(len(arm.speedups)),
        number_text(sum(times) / len(times) if times else None, "{:.1f} s"),
        number_text(sum(ratios) / len(ratios) if ratios else None, "{:.2f}x")
        + f" of {len(ratios)}" * bool(ratios),
    ]


def _without_memory_ratio(cases: Sequence[CaseSummary]) -> list[str]:
    """Name some models without one, and why, in the words of the CSV."""
    found = [
        f"  {case.case.label}: {label}{reason}"
        for case in cases
        for arm in case.arms
        for label in [f"{arm.name}: " if len(case.arms) > 1 else ""]
        if case.is_timed and arm.passed and (reason := case.compression(arm).reason)
    ]
    more = [f"  and {len(found) - _SHOWN} more; the CSV has all"] * (len(found) > _SHOWN)
    return ["", "no memory ratio:", *found[:_SHOWN], *more] if found else []


_SHOWN = 5


def _problems(cases: Sequence[CaseSummary]) -> list[str]:
    """Count arms that did not pass by status, and cases that did not though their arms did."""
    counts = Counter(
        status
        for case in cases
        for status in [arm.outcome.status for arm in case.arms if not arm.passed]
        or [case.outcome.status]
        if status is not Status.PASS
    )
    if not counts:
        return []
    texts = (f"{n} {status}" for status, n in counts.items())
    return ["", "not passed, by arm: " + ", ".join(texts)]
