"""What became of each arm of each case, told one by one. Pure functions; no torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.comparison.quantities import (
    COMPILE_TIME,
    EAGER_LATENCY,
    LATENCY,
    MEMORY_RATIO,
    SPEEDUP,
)
from dynamometer.results.statistics.significance import MOST_REPLICATES, Verdict
from dynamometer.results.statistics.summary import is_counted
from dynamometer.results.store import expected
from dynamometer.results.values.comparison import Change, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.judging import Judged
    from dynamometer.results.comparison.pairing import Pair, Pairs
    from dynamometer.results.values.comparison import Drift

OF_VERDICT = {
    (SPEEDUP.name, Verdict.SLOWER): Change.SLOWER,
    (SPEEDUP.name, Verdict.FASTER): Change.FASTER,
    (SPEEDUP.name, Verdict.UNCLEAR): Change.UNCLEAR,
    (COMPILE_TIME.name, Verdict.SLOWER): Change.COMPILES_LONGER,
    (COMPILE_TIME.name, Verdict.FASTER): Change.COMPILES_SOONER,
    (MEMORY_RATIO.name, Verdict.SLOWER): Change.NEEDS_MORE_MEMORY,
    (MEMORY_RATIO.name, Verdict.FASTER): Change.NEEDS_LESS_MEMORY,
    (EAGER_LATENCY.name, Verdict.SLOWER): Change.EAGER_SLOWER,
    (EAGER_LATENCY.name, Verdict.FASTER): Change.EAGER_FASTER,
}
"""What is told; that a compile time is unclear, which is compiled once, would be told of most."""


def findings(
    pairs: Pairs, judged: Iterable[Judged], moved: Sequence[Judged], drift: Drift | None
) -> list[Finding]:
    """Tell everything, in the order of `Change`; within a kind what changed most comes first."""
    found = [finding for each in pairs.common for finding in _of_status(each)]
    found += [finding for pair in pairs.common if (finding := _not_compared(pair))]
    told = told_drift(drift)
    explained: dict[int, list[Judged]] = {
        id(each): [] for each in moved if told and _is_far(each, told)
    }
    for each in judged:
        change = OF_VERDICT.get((each.kind.name, each.verdict))
        if each.by_eager is not None and told is None:
            found.append(_undecided(each))
        elif each.by_eager is not None:
            explained.setdefault(id(each.by_eager), []).append(each)
        elif change:
            found.append(_measured(change, each))
    found += [_of_eager(each, explained[id(each)]) for each in moved if id(each) in explained]
    found += [_of_one_side(Change.GONE, each) for each in pairs.gone]
    found += [_of_one_side(Change.NEW, each) for each in pairs.new]
    order = list(Change)
    return sorted(found, key=lambda each: (order.index(each.change), -_size(each)))


def told_drift(drift: Drift | None) -> Drift | None:
    """Return the drift that eager's moves are told by; `None` if it is of too few cases."""
    return drift if drift and drift.is_apart else None


def _size(finding: Finding) -> float:
    return abs(math.log(finding.ratio.value)) if finding.ratio else 0.0


def _of_eager(eager: Judged, explained: Sequence[Judged]) -> Finding:
    """Tell that eager moved, and which speedups changed with it."""
    finding = _measured(OF_VERDICT[eager.kind.name, eager.verdict], eager)
    told = [
        f"; the speedup of {each.pair.after.arm} is {SPEEDUP.form.format(each.before.value)} ->"
        f" {SPEEDUP.form.format(each.after.value)} as eager moved"
        for each in explained
    ]
    return msgspec.structs.replace(finding, text="".join([finding.text, *told]))


def _undecided(each: Judged) -> Finding:
    """Tell of a speedup that changed with eager, among too few cases to know why."""
    finding = _measured(Change.UNCLEAR, each, settled=False)
    why = (
        "; eager moved, and not surely the compiled code: with so few cases that may be the machine"
    )
    return msgspec.structs.replace(finding, text=finding.text + why)


def _is_far(eager: Judged, drift: Drift) -> bool:
    """Return whether eager moved so far that it is told by itself, as when a model has changed.

    Its latency is not compared with another's in the same moment, so less is not worth a line; nor
    is what is not far out among all cases. On a machine whose speed varies by the hour eager of all
    of them scatters, which processes of one run don't tell. Far out is what lies beyond Tukey's
    outer fences (Exploratory Data Analysis, 1977): three times the middle half's width from it.
    """
    low, high = (math.log(each / drift.ratio) for each in (eager.ratio.low, eager.ratio.high))
    least = math.log1p(EAGER_LATENCY.floor)
    if not (low > least or high < -least):
        return False
    if drift.n < FEWEST_FOR_FENCES:
        return True
    inner = [math.log(each) for each in drift.middle_half]
    width = _FENCES * (inner[1] - inner[0])
    return not inner[0] - width <= math.log(eager.ratio.value) <= inner[1] + width


_FENCES = 3.0
"""How many times the middle half's width they lie beyond it."""
FEWEST_FOR_FENCES = 10
"""Cases whose middle half says how far eager scatters."""


def _of_status(pair: Pair) -> Iterator[Finding]:
    """Yield what changed of how an arm ended, or of what was captured of one that passed."""
    was, now = pair.before, pair.after
    if was.outcome.status is now.outcome.status:
        if was.passed and not pair.why_incomparable:
            yield from _of_capture(pair)
        return
    text = f"was {_ended(was)}, is {_ended(now)}"
    if not (is_counted(now.outcome) and is_counted(was.outcome)):
        change = Change.NEW if is_counted(now.outcome) else Change.GONE
    elif was.passed or now.passed:
        change = Change.NEWLY_FAILING if was.passed else Change.NEWLY_PASSING
    else:
        change = Change.FAILS_OTHERWISE
    yield _finding(change, now, text)


def _of_capture(pair: Pair) -> Iterator[Finding]:
    """Yield what `--expect` would say, but for what it calls a note."""
    key = ("", "")
    changes = expected.compare({key: pair.before.expectation}, {key: pair.after.expectation})
    kinds = {
        expected.Kind.REGRESSION: Change.CAPTURES_LESS,
        expected.Kind.IMPROVEMENT: Change.CAPTURES_MORE,
    }
    if None in {each.expectation.captured_ops for each in (pair.before, pair.after)}:
        return
    for each in changes:
        if each.kind in kinds:
            yield _finding(kinds[each.kind], pair.after, each.text)


def _ended(entry: Entry) -> str:
    return "pass" if entry.passed else entry.outcome.line


def _not_compared(pair: Pair) -> Finding | None:
    """Return why an arm that passed on both sides is in no list."""
    if not pair.both_passed:
        return None
    if pair.why_incomparable:
        return _finding(Change.NOT_COMPARED, pair.after, pair.why_incomparable)
    for name, entry in (("after", pair.after), ("before", pair.before)):
        if entry.doubt:
            return _finding(Change.NOT_COMPARED, pair.after, f"{_DOUBTS[entry.doubt]}, {name}")
    timed = [SPEEDUP.name in each.quantities for each in (pair.before, pair.after)]
    if any(timed) and not all(timed):
        side = "before" if timed[1] else "after"
        return _finding(Change.NOT_COMPARED, pair.after, f"it has no speedup {side}")
    return None


_DOUBTS = {
    "disturbed": "something else kept the machine busy",
    "interference": "its arms disturbed each other",
}


def _of_one_side(change: Change, entry: Entry) -> Finding:
    speedup = entry.quantities.get(SPEEDUP.name)
    told = f", {SPEEDUP.form.format(speedup.value)}" if speedup else ""
    return _finding(
        change, entry, f"{'was' if change is Change.GONE else 'is'} {_ended(entry)}{told}"
    )


def _measured(change: Change, each: Judged, *, settled: bool = True) -> Finding:
    before, after = each.before.value, each.after.value
    form, found = each.kind.form, each.ratio
    text = (
        f"{form.format(before)} -> {form.format(after)}, {found.value:.3f}x"
        f" [{found.low:.3f}, {found.high:.3f}], p={each.adjusted_p:.2g}"
    )
    if each.kind in (SPEEDUP, EAGER_LATENCY):
        text += _latencies(each)
    if change is Change.UNCLEAR and settled:
        text += f"; {_what_settles(each)}"
    name = "eager" if each.kind is EAGER_LATENCY else None
    finding = _finding(change, each.pair.after, text, each.pair.before.command, arm=name)
    return _with_figures(finding, each)


def _what_settles(each: Judged) -> str:
    if not (each.pair.before.records and each.pair.after.records):
        return "CSV files hold one number each: compare run directories"
    needed = each.settled_by
    return (
        f"-r {needed} in both would settle it"
        if needed
        else f"no number of replicates up to {MOST_REPLICATES} in both would settle it"
    )


def _with_figures(finding: Finding, each: Judged) -> Finding:
    return msgspec.structs.replace(
        finding,
        metric=each.kind.name,
        before=each.before.value,
        after=each.after.value,
        ratio=each.ratio,
        adjusted_p=each.adjusted_p,
    )


def _latencies(each: Judged) -> str:
    """Say where the latencies moved: a speedup falls as well where eager becomes faster."""
    kinds = {EAGER_LATENCY: "eager", LATENCY: each.pair.after.arm}
    if each.kind is EAGER_LATENCY:
        del kinds[EAGER_LATENCY]
    told = [
        f"{name} {kind.form.format(was.value)} -> {kind.form.format(now.value)}"
        for kind, name in kinds.items()
        if (was := each.pair.before.quantities.get(kind.name))
        and (now := each.pair.after.quantities.get(kind.name))
    ]
    return f"; {', '.join(told)}" if told else ""


def _finding(
    change: Change, entry: Entry, text: str, otherwise: str | None = None, *, arm: str | None = None
) -> Finding:
    identity: Mapping[str, str] = entry.identity
    return Finding(
        change=change,
        suite=identity.get("suite", ""),
        model=identity["model"],
        mode=identity.get("mode", ""),
        arm=arm or entry.arm,
        apart=entry.apart,
        text=text,
        command=entry.command or otherwise,
    )
