"""From two sides to all that is said of them. Pure; no torch."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.comparison import gates
from dynamometer.results.comparison.conditions import differences
from dynamometer.results.comparison.findings import FEWEST_FOR_FENCES, findings
from dynamometer.results.comparison.judging import drift, explained, judge, spread
from dynamometer.results.comparison.pairing import IncomparableError, paired
from dynamometer.results.comparison.quantities import COMPILE_TIME, EAGER_LATENCY, JUDGED, SPEEDUP
from dynamometer.results.comparison.sides import named_alike
from dynamometer.results.comparison.table import tables
from dynamometer.results.listing import first_of
from dynamometer.results.statistics.significance import Verdict
from dynamometer.results.values.cases import IDENTITY
from dynamometer.results.values.comparison import Comparison, Count, SideSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dynamometer.results.comparison.judging import Judged
    from dynamometer.results.comparison.pairing import Pairs
    from dynamometer.results.comparison.quantities import Kind
    from dynamometer.results.comparison.sides import Side
    from dynamometer.results.values.comparison import Drift


def compare(
    before: Side,
    after: Side,
    conditions: Sequence[gates.Condition] = (),
    *,
    run_sd: float = 0.0,
    forced: bool = False,
) -> Comparison:
    """Compare two sides.

    Args:
        before: one side.
        after: the other.
        conditions: that fail it.
        run_sd: how far speedups change between runs, beyond what their processes show; of two arms
            of one run nothing.
        forced: whether to go on where they can't be compared.

    Raises:
        IncomparableError: they can't be compared, have nothing in common, or what they have can't
            be told apart.
    """
    before, after = named_alike(before, after)
    differing = differences(before, after)
    against = [each for each in differing if each.why_not]
    if against and not forced:
        reasons = "; ".join(
            f"{each.name} was {each.before}, is {each.after}: {each.why_not}" for each in against
        )
        raise IncomparableError(reasons, may_be_forced=True)
    pairs = paired(before, after, [each.name for each in against])
    if not pairs.common:
        raise IncomparableError(_nothing_in_common(before, after))
    is_one_run = _is_one_run(before, after)
    between_runs_sd = 0.0 if is_one_run else run_sd
    judged = {
        kind.name: judge(kind, pairs.common, between_runs_sd if kind is SPEEDUP else 0.0)
        for kind in JUDGED
    }
    drifted, moved = (None, []) if is_one_run else drift(pairs.common)
    if drifted:
        judged[SPEEDUP.name] = explained(judged[SPEEDUP.name], moved, drifted)
    every = [each for found in judged.values() for each in found]
    found = Comparison(
        before=_summary(before),
        after=_summary(after),
        conditions=tuple(differing),
        is_forced=bool(against),
        notes=(
            *_notes(before, after, pairs, run_sd),
            *_doubts(drifted, [] if is_one_run else judged[SPEEDUP.name]),
        ),
        tables=tuple(tables(pairs, every)),
        counts=tuple(_count(kind, judged[kind.name]) for kind in JUDGED if judged[kind.name]),
        drift=drifted,
        findings=tuple(findings(pairs, every, moved, drifted)),
    )
    evaluated = tuple(gates.evaluated(each, found) for each in conditions)
    return msgspec.structs.replace(found, gates=evaluated)


def _is_one_run(before: Side, after: Side) -> bool:
    return before.run_id is not None and before.run_id == after.run_id


def _summary(side: Side) -> SideSummary:
    return SideSummary(
        source=side.source,
        run_id=side.run_id,
        created_at=side.created_at,
        arm=side.arm,
        cases=len(side.entries),
    )


def _nothing_in_common(before: Side, after: Side) -> str:
    """Say that no arm of a case is on both sides, of which there is one on each, and why."""
    reasons = [
        f"{name} was {_listed(was)}, is {_listed(now)}"
        for name in IDENTITY
        if name not in _TOLD_BESIDES
        if (was := before.values(name)) and (now := after.values(name)) and not was & now
    ]
    arms_before, arms_after = ({each.arm for each in side.entries} for side in (before, after))
    if not (before.arm and after.arm) and not arms_before & arms_after:
        reasons.append("--arm of each side makes two arms one")
    return (
        f"no arm of a case is on both sides: before has {_some(before)}, after has {_some(after)}"
        + (f" ({'; '.join(reasons)})" if reasons else "")
    )


def _some(side: Side) -> str:
    """Name the first arms of cases of a side."""
    names = [f"{each.identity['model']} {each.arm}" for each in side.entries]
    return first_of(names) or "nothing"


_OF_EVERY_CASE = ("mode", "device", "dtype", "shapes", "scale", "settings")
"""Of an identity: what changes results, and is named where a side doesn't tell it."""

_TOLD_BESIDES = ("model", "batch_size")
"""Of an identity: what is named anyway, and what need not be the same."""


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(each or "none" for each in values))


def _count(kind: Kind, judged: Sequence[Judged]) -> Count:
    found = Counter(each.verdict for each in judged)
    return Count(
        metric=kind.name,
        judged=len(judged),
        worse=found[Verdict.SLOWER],
        better=found[Verdict.FASTER],
        equivalent=found[Verdict.EQUIVALENT],
        unclear=found[Verdict.UNCLEAR],
        by_eager=sum(each.by_eager is not None for each in judged),
    )


def _notes(before: Side, after: Side, pairs: Pairs, run_sd: float) -> Iterator[str]:
    """Say what is not known, and what is assumed."""
    yield from _of_side("before", before)
    yield from _of_side("after", after)
    yield from _of_one_run(before, after)
    if run_sd and _is_one_run(before, after):
        yield "both sides are of one run, so that nothing is allowed for between runs (--run-sd)"
    elif run_sd:
        yield f"intervals allow for runs whose speedups differ by a further {run_sd:.1%}"
    yield from _of_screening(pairs)
    yield from _of_caches(pairs)


def _of_side(name: str, side: Side) -> Iterator[str]:
    """Say what a side lacks."""
    if side.unfinished:
        yield (
            f"{side.source} ({name}) is unfinished: {side.unfinished} of its cases have not"
            " ended (dynamometer resume)"
        )
    if not side.conditions:
        untold = [
            *(each for each in _OF_EVERY_CASE if each not in side.known),
            "versions",
            "threads",
        ]
        yield (
            f"{side.source} ({name}) is CSV: it says nothing of {', '.join(untold)} or hardware,"
            " nor how far its numbers scatter"
        )
    if side.left_out:
        names = ", ".join(side.left_out)
        yield f"{side.source} ({name}): left out, as they are no tables of models: {names}"


def _of_one_run(before: Side, after: Side) -> Iterator[str]:
    """Say so where a run is compared with itself."""
    if before.run_id is not None and (before.run_id, before.arm) == (after.run_id, after.arm):
        is_all = before.entries == after.entries
        yield (
            "both sides are the same run: there is nothing to find"
            if is_all
            else "both sides are copies of one run, with different records"
        )


def _of_screening(pairs: Pairs) -> Iterator[str]:
    """Say what is assumed of cases with one replicate."""
    assumed = [
        quantity.between_sd
        for pair in pairs.common
        for entry in (pair.before, pair.after)
        if (quantity := entry.quantities.get(SPEEDUP.name)) and len(quantity.replicates) == 1
    ]
    if assumed:
        sd = max(each.sd_log for each in assumed)
        yield (
            f"screening: some cases have one replicate; intervals assume that speedups differ by"
            f" {sd:.1%} from process to process"
        )


def _of_caches(pairs: Pairs) -> Iterator[str]:
    """Say how many compile times are not compared, as caches were not the same."""
    conditions = [
        tuple(each.quantities[COMPILE_TIME.name].condition for each in (pair.before, pair.after))
        for pair in pairs.common
        if all(COMPILE_TIME.name in each.quantities for each in (pair.before, pair.after))
    ]
    other = [each for each in conditions if each[0] != each[1]]
    unknown = sum(None in each for each in other)
    if unknown:
        yield (
            f"{unknown} compile times are not compared: one side doesn't tell whether caches were"
            " empty"
        )
    if len(other) > unknown:
        yield (
            f"{len(other) - unknown} compile times are not compared: caches were empty on one side"
            " alone"
        )


def _doubts(drifted: Drift | None, judged: Sequence[Judged]) -> Iterator[str]:
    """Say what speaks against the machine's having been the same."""
    if drifted and abs(math.log(drifted.ratio)) > math.log1p(EAGER_LATENCY.floor):
        yield (
            f"eager itself takes {drifted.ratio:.2f} times as long as before: the machine has"
            " changed, or torch's eager has, and speedups may differ for that reason alone; to"
            " tell, measure both sides again, one after the other"
        )
    if drifted and drifted.n >= FEWEST_FOR_FENCES:
        low, high = drifted.middle_half
        if math.log(high / low) > math.log1p(EAGER_LATENCY.floor):
            yield (
                f"eager of these models moved by {low:.2f} to {high:.2f} times in the middle half:"
                " the machine has changed from hour to hour, or torch's eager has for many of them;"
                " of single ones only what lies far outside is told"
            )
    found = spread(judged)
    if found is not None and found[0] > _USUAL_SPREAD:
        yield (
            f"speedups differ between the sides by {found[0]:.1f} times what their processes"
            " explain: most models have changed, or the machine has; where nothing was changed,"
            f" --run-sd {found[1]:.3f} allows for it"
        )


_USUAL_SPREAD = 2.0
"""Standard errors: of 30 models nearly never more by chance (tests)."""
