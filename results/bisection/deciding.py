"""Whether a point is like the good end of a search or like the bad one. Pure; no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from scipy import special

from dynamometer.results.comparison.conditions import differences
from dynamometer.results.comparison.judging import drift, explained, judge
from dynamometer.results.comparison.pairing import paired
from dynamometer.results.comparison.quantities import JUDGED, SPEEDUP
from dynamometer.results.statistics.significance import Verdict, widest
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.judging import Judged
    from dynamometer.results.comparison.pairing import Pair
    from dynamometer.results.comparison.quantities import Kind, Quantity
    from dynamometer.results.comparison.sides import Side

_BATCH = "batch_size"
_LEAST_ENDINGS = 2
"""Runs that end alike before anything is concluded from how: one may be an accident."""


class Nearer(StrEnum):
    """Which end a point is like."""

    GOOD = "good"
    BAD = "bad"
    UNCLEAR = "unclear"
    """More replicates may tell."""
    UNTESTABLE = "untestable"
    """They can't: it does not build, or fails in another way."""


@dataclass(frozen=True)
class Watched:
    """What tells bad points from good ones: one quantity of one arm of a case, or how it ends.

    Attributes:
        good: the arm at the good end, with the replicates of all its runs.
        bad: at the bad one.
        kind: of quantity; `None` for how it ends.
        runs: of the good end, and of the bad one.
    """

    good: Entry
    bad: Entry
    kind: Kind | None
    runs: tuple[int, int]

    @property
    def text(self) -> str:
        """Say what became worse from the good end to the bad one."""
        name = f"{self.good.identity.get('model', '')} {self.good.arm}"
        if self.kind is None:
            return f"{name}: {self.good.outcome.status} became {self.bad.outcome.status}"
        values = (each.quantities[self.kind.name].value for each in (self.good, self.bad))
        was, now = map(self.kind.form.format, values)
        return f"{name}: {self.kind.title} was {was}, is {now}"


@dataclass(frozen=True)
class Decision:
    """What is concluded of a point.

    Attributes:
        nearer: which end it is like.
        text: why, in words.
        wrong_p: how probably it is like the other; `None` where no measurement decided.
    """

    nearer: Nearer
    text: str
    wrong_p: float | None = None


def why_apart(one: Side, other: Side) -> str | None:
    """Return why runs can't be compared, such as of two machines; `None` if they can."""
    against = [each for each in differences(one, other) if each.why_not]
    return "; ".join(f"{each.name} {each.before}, then {each.after}" for each in against) or None


def doubts(sides: Sequence[Side]) -> list[str]:
    """Return of which arms nothing is concluded, and why."""
    return [
        f"{each.identity['model']} {each.arm}: {each.doubt}"
        for side in sides
        for each in side.entries
        if each.doubt
    ]


def watch(good: Sequence[Side], bad: Sequence[Side], run_sd: float = 0.0) -> Watched | None:
    """Return what became worse from one end to the other, and most surely.

    An arm that no longer passes comes first, then what was measured; `None` where nothing has. A
    speedup that fell as eager became faster is none of them.

    Args:
        good: runs of the good end; at least one.
        bad: of the bad one.
        run_sd: standard deviation of a speedup between runs, beyond what their processes show.
    """
    pairs = paired(_pooled(good), _pooled(bad)).common
    runs = len(good), len(bad)
    for pair in pairs:
        if _fails_since(pair, good, bad):
            return Watched(pair.before, pair.after, None, runs)
    change_sd = run_sd * math.sqrt(sum(1 / each for each in runs))
    worse = [
        each for kind in JUDGED for each in _worse(kind, pairs, change_sd) if each.by_eager is None
    ]
    if not worse:
        return None
    best = max(worse, key=lambda each: abs(each.mean.value) / (each.mean.error or math.inf))
    return Watched(best.pair.before, best.pair.after, best.kind, runs)


def again(watched: Watched, good: Sequence[Side], bad: Sequence[Side]) -> Watched:
    """Return what is watched, with the levels of further runs of the ends."""
    before, after = (_of(watched, _pooled(each)) for each in (good, bad))
    if before is None or after is None or not (before.passed and after.passed):
        return watched
    return replace(watched, good=before, bad=after, runs=(len(good), len(bad)))


def decide(
    watched: Watched, sides: Sequence[Side], wrong_p: float, run_sd: float = 0.0
) -> Decision:
    """Conclude which end a point is like.

    A quantity is nearer to the level of one end than to that of the other if its logarithm lies on
    that side of their middle. How probably that is chance is told by a t test of the difference,
    whose error has those of the point and of both ends.

    Args:
        watched: what tells.
        sides: runs of the point; at least one.
        wrong_p: how probably the conclusion may be wrong.
        run_sd: standard deviation of a speedup between runs, beyond what their processes show.
    """
    own = _of(watched, _pooled(sides))
    if own is None:
        return Decision(Nearer.UNTESTABLE, "it has no result")
    if watched.kind is None or not own.passed:
        return _by_ending(watched, _statuses(sides, own))
    if own.doubt:
        return Decision(Nearer.UNCLEAR, own.doubt)
    batch_sizes = {each.identity.get(_BATCH) for each in (watched.good, watched.bad, own)}
    if len(batch_sizes) > 1:
        return Decision(Nearer.UNTESTABLE, f"its batch size is {own.identity.get(_BATCH)}")
    quantities = [
        each.quantities.get(watched.kind.name) for each in (watched.good, watched.bad, own)
    ]
    found = [each for each in quantities if each is not None]
    if len(found) < len(quantities) or len({each.condition for each in found}) > 1:
        return Decision(Nearer.UNTESTABLE, f"its {watched.kind.title} was not measured likewise")
    squares = [run_sd**2 / each if watched.kind is SPEEDUP else 0.0 for each in watched.runs]
    own_square = run_sd**2 / len(sides) if watched.kind is SPEEDUP else 0.0
    return _by_value(found, (*squares, own_square), wrong_p)


def _worse(kind: Kind, pairs: Sequence[Pair], change_sd: float) -> Iterator[Judged]:
    judged = judge(kind, pairs, change_sd if kind is SPEEDUP else 0.0)
    if kind is SPEEDUP:
        drifted, moved = drift(pairs)
        judged = explained(judged, moved, drifted) if drifted else judged
    return (each for each in judged if each.verdict is Verdict.SLOWER)


def _fails_since(pair: Pair, good: Sequence[Side], bad: Sequence[Side]) -> bool:
    """Return whether an arm passed in all runs of one end and failed alike in all of the other."""
    was, now = _statuses(good, pair.before), _statuses(bad, pair.after)
    if min(len(was), len(now)) < _LEAST_ENDINGS or len({*was}) > 1 or len({*now}) > 1:
        return False
    return was[0] is Status.PASS and now[0] not in {Status.PASS, Status.SKIP, Status.INFRA}


def _by_ending(watched: Watched, statuses: Sequence[Status]) -> Decision:
    """Conclude from how a point's runs ended; of one run nothing."""
    if len({*statuses}) > 1:
        return Decision(Nearer.UNTESTABLE, f"it is flaky: {', '.join(statuses)}")
    status = statuses[0]
    if status is Status.INFRA or (watched.kind is None and len(statuses) < _LEAST_ENDINGS):
        return Decision(Nearer.UNCLEAR, f"it ended with {status}")
    if watched.kind is None and status is Status.PASS:
        return Decision(Nearer.GOOD, f"it passes, in each of {len(statuses)} runs")
    if watched.kind is None and status is watched.bad.outcome.status:
        return Decision(Nearer.BAD, f"it ended with {status}, in each of {len(statuses)} runs")
    return Decision(Nearer.UNTESTABLE, f"it ended with {status}")


def _by_value(
    quantities: Sequence[Quantity], run_squares: Sequence[float], wrong_p: float
) -> Decision:
    """Conclude from a quantity at the good end, at the bad one and here."""
    good, bad, here = (each.mean for each in quantities)
    squares = [
        (each.error**2 + of_runs) * weight
        for each, of_runs, weight in zip(
            (good, bad, here), run_squares, (0.25, 0.25, 1.0), strict=True
        )
    ]
    variance = math.fsum(squares)
    parts = math.fsum(
        each**2 / mean.df for each, mean in zip(squares, (good, bad, here), strict=True)
    )
    df = variance**2 / parts if parts else here.df
    away = here.value - (good.value + bad.value) / 2
    t = abs(away) / math.sqrt(variance) if variance else math.inf
    chance = float(special.stdtr(df, -t))
    value = f"{quantities[2].kind.form.format(math.exp(here.value))} of {here.n} replicates"
    if chance > wrong_p:
        return Decision(Nearer.UNCLEAR, f"{value}: either may be, p {chance:.2g}", chance)
    is_bad = (away > 0) == (bad.value > good.value)
    nearer = Nearer.BAD if is_bad else Nearer.GOOD
    return Decision(nearer, f"{value}: like the {nearer} end, p {chance:.2g}", chance)


def _pooled(sides: Sequence[Side]) -> Side:
    """Return runs of one point as one, with the replicates of all of them.

    An arm that did not pass in all runs has the first outcome that was no pass.
    """
    entries = list(sides[0].entries)
    for side in sides[1:]:
        for number, each in enumerate(entries):
            other = next((one for one in side.entries if _is_same(each, one)), None)
            entries[number] = each if other is None else _both(each, other)
    return replace(sides[0], entries=tuple(entries))


def _both(one: Entry, other: Entry) -> Entry:
    """Return an arm with the replicates of two runs, or of the one that is in no doubt."""
    if not (one.passed and other.passed):
        return one if not one.passed else other
    if bool(one.doubt) != bool(other.doubt):
        return other if one.doubt else one
    quantities = dict(one.quantities)
    for name, each in other.quantities.items():
        own = quantities.setdefault(name, each)
        if own is not each and own.condition == each.condition:
            quantities[name] = replace(
                own,
                replicates=(*own.replicates, *each.replicates),
                between_sd=widest((own.between_sd, each.between_sd)),
            )
    return replace(one, quantities=quantities)


def _statuses(sides: Sequence[Side], entry: Entry) -> list[Status]:
    return [each.outcome.status for side in sides for each in side.entries if _is_same(entry, each)]


def _of(watched: Watched, side: Side) -> Entry | None:
    """Return the arm that is watched; of a batch size of its own where there are several."""
    found = [each for each in side.entries if _key(each) == _key(watched.good)]
    same = [each for each in found if _is_same(each, watched.good)]
    return next(iter(same or found), None)


def _is_same(one: Entry, other: Entry) -> bool:
    return _key(one) == _key(other) and one.identity.get(_BATCH) == other.identity.get(_BATCH)


def _key(entry: Entry) -> tuple[str, ...]:
    own = sorted((name, value) for name, value in entry.identity.items() if name != _BATCH)
    return (*(word for pair in own for word in pair), entry.arm)
