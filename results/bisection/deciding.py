"""Whether a point is like the good end of a search or like the bad one. Pure; no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from scipy import special

from dynamometer.results.comparison.judging import judge
from dynamometer.results.comparison.pairing import Pair
from dynamometer.results.comparison.quantities import JUDGED, SPEEDUP
from dynamometer.results.statistics.significance import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.quantities import Kind, Quantity
    from dynamometer.results.comparison.sides import Side

    Key = tuple[str, ...]


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
        good: the arm at the good end.
        bad: at the bad one.
        kind: of quantity; `None` for how it ends.
    """

    good: Entry
    bad: Entry
    kind: Kind | None

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


def pooled(sides: Iterable[Side]) -> dict[Key, Entry]:
    """Return the arms of runs of one point, with the replicates of all of these.

    An arm that did not pass in all runs has the first outcome that was no pass.
    """
    found: dict[Key, Entry] = {}
    for side in sides:
        for each in side.entries:
            key = _key(each)
            found[key] = _both(found[key], each) if key in found else each
    return found


def watch(good: Iterable[Entry], bad: Iterable[Entry], run_sd: float = 0.0) -> Watched | None:
    """Return what became worse from one end to the other, and most surely.

    An arm that no longer passes comes first, then what was measured; `None` where nothing has.

    Args:
        good: arms of the good end.
        bad: of the bad one.
        run_sd: standard deviation of a speedup between runs, beyond what their processes show.
    """
    by_key = {_key(each): each for each in bad}
    pairs = [Pair(each, by_key[_key(each)]) for each in good if _key(each) in by_key]
    for pair in pairs:
        if pair.before.passed and not (pair.after.passed or pair.after.is_skipped):
            return Watched(pair.before, pair.after, None)
    worse = [
        each
        for kind in JUDGED
        for each in judge(kind, pairs, _of_two(run_sd) if kind is SPEEDUP else 0.0)
        if each.verdict is Verdict.SLOWER
    ]
    if not worse:
        return None
    best = max(worse, key=lambda each: abs(each.mean.value) / (each.mean.error or math.inf))
    return Watched(best.pair.before, best.pair.after, best.kind)


def doubts(entries: Iterable[Entry]) -> list[str]:
    """Return of which arms nothing is concluded, and why."""
    return [f"{each.identity['model']} {each.arm}: {each.doubt}" for each in entries if each.doubt]


def decide(
    watched: Watched, found: Iterable[Entry], wrong_p: float, run_sd: float = 0.0
) -> Decision:
    """Conclude which end a point is like.

    A quantity is nearer to the level of one end than to that of the other if its logarithm lies on
    that side of their middle. How probably that is chance is told by a t test of the difference,
    whose error has those of the point and of both ends.

    Args:
        watched: what tells.
        found: arms of the point.
        wrong_p: how probably the conclusion may be wrong.
        run_sd: standard deviation of a speedup between runs, beyond what their processes show.
    """
    own = next((each for each in found if _key(each) == _key(watched.good)), None)
    if own is None:
        return Decision(Nearer.UNTESTABLE, "it has no result")
    if watched.kind is None or not own.passed:
        return _by_status(watched, own)
    if own.doubt:
        return Decision(Nearer.UNCLEAR, own.doubt)
    entries = (watched.good, watched.bad, own)
    quantities = [
        each.quantities[watched.kind.name]
        for each in entries
        if watched.kind.name in each.quantities
    ]
    if len(quantities) < len(entries) or len({each.condition for each in quantities}) > 1:
        return Decision(Nearer.UNTESTABLE, f"its {watched.kind.title} was not measured likewise")
    return _by_value(watched.kind, quantities, wrong_p, run_sd)


def _of_two(run_sd: float) -> float:
    """Return the standard deviation of the change from one run to another."""
    return run_sd * math.sqrt(2)


def _by_status(watched: Watched, own: Entry) -> Decision:
    status = own.outcome.status
    if own.passed:
        return Decision(Nearer.GOOD, "it passes")
    if watched.kind is None and status is watched.bad.outcome.status:
        return Decision(Nearer.BAD, f"it ended with {status}, too")
    return Decision(Nearer.UNTESTABLE, f"it ended with {status}")


def _by_value(
    kind: Kind, quantities: Sequence[Quantity], wrong_p: float, run_sd: float
) -> Decision:
    good, bad, here = (each.mean for each in quantities)
    own_sd = run_sd if kind is SPEEDUP else 0.0
    squares = [
        (each.error**2 + own_sd**2) * weight
        for each, weight in ((here, 1.0), (good, 0.25), (bad, 0.25))
    ]
    variance = math.fsum(squares)
    dfs = (here.df, good.df, bad.df)
    parts = math.fsum(each**2 / df for each, df in zip(squares, dfs, strict=True))
    df = variance**2 / parts if parts else here.df
    away = here.value - (good.value + bad.value) / 2
    t = abs(away) / math.sqrt(variance) if variance else math.inf
    chance = float(special.stdtr(df, -t))
    value = f"{kind.form.format(math.exp(here.value))} of {here.n} replicates"
    if chance > wrong_p:
        return Decision(Nearer.UNCLEAR, f"{value}: either may be, p {chance:.2g}", chance)
    is_bad = (away > 0) == (bad.value > good.value)
    nearer = Nearer.BAD if is_bad else Nearer.GOOD
    return Decision(nearer, f"{value}: like the {nearer} end, p {chance:.2g}", chance)


def _key(entry: Entry) -> Key:
    return (*(f"{name}={value}" for name, value in sorted(entry.identity.items())), entry.arm)


def _both(one: Entry, other: Entry) -> Entry:
    """Return an arm with the replicates of two runs, or of the one that is in no doubt."""
    if not (one.passed and other.passed):
        return one if not one.passed else other
    if bool(one.doubt) != bool(other.doubt):
        return other if one.doubt else one
    quantities = {
        name: replace(each, replicates=(*one.quantities[name].replicates, *each.replicates))
        if name in one.quantities
        else each
        for name, each in other.quantities.items()
    }
    return replace(other, quantities={**one.quantities, **quantities}, doubt=other.doubt)
