"""What is known of graphs that were cut, and what that says of computing them part by part.

Without torch. A graph has pieces between neighbouring cuts; a part is some pieces that follow each
other; a plan is parts that are all of the graph, each with a backend.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import combinations, groupby, pairwise
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.values.cases import NO_BACKEND
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from dynamometer.results.store.decisions import Decisions
    from dynamometer.results.values.decisions import Decision, Setting
    from dynamometer.results.values.records import Ratio

FOLDER = "cuts"
"""In the corpus of parts: a file for each graph that was looked at."""


class Crossing(msgspec.Struct, frozen=True):
    """A tensor that crosses a cut."""

    shape: tuple[int, ...]
    dtype: str
    bytes: int


class CutPoint(msgspec.Struct, frozen=True):
    """A cut of a graph.

    Attributes:
        place: how many operations come before.
        share: of the graph's time in eager that these take.
        live: what crosses.
    """

    place: int
    share: float
    live: tuple[Crossing, ...]


class CutPart(msgspec.Struct, frozen=True):
    """Some pieces of a graph that follow each other.

    Attributes:
        first: piece.
        end: the piece after the last one.
        key: of its graph.
        why_not: it is not in the corpus of parts.
    """

    first: int
    end: int
    key: str
    why_not: str | None = None


class CutGraph(msgspec.Struct, frozen=True):
    """What became of a graph.

    Attributes:
        key: of the graph.
        name: of the model that it was captured of.
        operations: how many it has.
        seconds: that these took in eager, one by one.
        points: where it was cut.
        parts: that were made of it, from two pieces on without the graph as a whole.
        why_not: it was not cut.
    """

    key: str
    name: str
    operations: int
    seconds: float | None = None
    points: tuple[CutPoint, ...] = ()
    parts: tuple[CutPart, ...] = ()
    why_not: str | None = None

    @property
    def pieces(self) -> int:
        """How many pieces it has."""
        return len(self.points) + 1

    def places(self, first: int, end: int) -> tuple[int, int]:
        """Return how many operations come before a piece, and how many before another."""
        edges = (0, *(each.place for each in self.points), self.operations)
        return edges[first], edges[end]


class PlannedPart(msgspec.Struct, frozen=True):
    """A part with the backend that computes it.

    Attributes:
        start: operations of the graph before it.
        stop: operations of the graph before what follows it.
        arm: the backend.
    """

    start: int
    stop: int
    arm: str


def write(folder: Path, found: CutGraph) -> None:
    """Keep what became of a graph, whole or not at all."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{found.key}.json"
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_bytes(msgspec.json.encode(found))
    beside.replace(path)


def read(folder: Path) -> list[CutGraph]:
    """Return what is known of all graphs, by the names of their models."""
    found = [msgspec.json.decode(each.read_bytes(), type=CutGraph)
             for each in sorted(folder.glob("*.json"))]  # fmt: skip
    return sorted(found, key=lambda each: (each.name, each.key))


@dataclass(frozen=True)
class Gain:
    """How much faster one way of computing a graph is than another, with a 95 % interval.

    Attributes:
        log: the logarithm of it.
        half: half the interval's width, of the logarithm.
    """

    log: float
    half: float

    @classmethod
    def of(cls, ratio: Ratio) -> Gain:
        """Return what was measured."""
        return cls(math.log(ratio.value), math.log(ratio.high / ratio.low) / 2)

    @property
    def value(self) -> float:
        """The quotient."""
        return math.exp(self.log)

    def __str__(self) -> str:
        """Return it with its interval."""
        low, high = (math.exp(self.log + sign * self.half) for sign in (-1, 1))
        return f"{self.value:.3f}x [{low:.3f}, {high:.3f}]"


@dataclass(frozen=True)
class Timed:
    """What a graph, or a part, takes with each candidate that was right.

    Attributes:
        eager_s: seconds of a call of eager, in the same processes.
        speedups: of each over eager, and of eager itself.
    """

    eager_s: float
    speedups: Mapping[str, Gain]

    @property
    def arm(self) -> str:
        """The fastest, whether that is sure or not."""
        return max(self.speedups, key=lambda each: self.speedups[each].log)

    @property
    def speedup(self) -> Gain:
        """Of the fastest."""
        return self.speedups[self.arm]

    def seconds(self, arm: str | None = None) -> float:
        """Return what a call takes with a candidate; with the fastest unless one is named."""
        return self.eager_s / self.speedups[arm or self.arm].value


@dataclass(frozen=True)
class Plan:
    """A way of computing a graph part by part.

    Attributes:
        parts: of the graph, in order: first piece, the one after the last, and the backend.
        bound: how much faster it is than the best single candidate for the whole graph if nothing
            is spent at boundaries.
        over_one: the same over that candidate in each of the parts; `None` if one of them can't be
            computed so.
        eager_sum: seconds of the parts in eager, each by itself, over those of the graph.
    """

    parts: tuple[tuple[int, int, str], ...]
    bound: Gain
    over_one: float | None
    eager_sum: float

    def planned(self, graph: CutGraph) -> list[PlannedPart]:
        """Return its parts as they are to be computed."""
        return [PlannedPart(*graph.places(first, end), arm) for first, end, arm in self.parts]


@dataclass(frozen=True)
class Decided:
    """What was decided for graphs and parts.

    Attributes:
        setting: that it holds for; `None` where nothing is decided.
        timed: by the keys of graphs and parts.
    """

    setting: Setting | None
    timed: Mapping[str, Timed]


def decided(decisions: Decisions, graphs: Iterable[CutGraph]) -> Decided:
    """Return what was decided for graphs and their parts.

    Raises:
        ValueError: it was decided in several settings.
    """
    keys = {key for each in graphs for key in (each.key, *(part.key for part in each.parts))}
    found = [each for each in decisions.all()
             if each.subject is Subject.GRAPH and each.key in keys]  # fmt: skip
    settings = {each.setting.key: each.setting for each in found}
    if len(settings) > 1:
        msg = f"{decisions.path} has decisions of {len(settings)} settings: keep those of one"
        raise ValueError(msg)
    known = ((each.key, _timed(each)) for each in found)
    return Decided(next(iter(settings.values()), None), {key: each for key, each in known if each})


def _timed(decision: Decision) -> Timed | None:
    """Return what was timed; nothing where eager itself could not be."""
    if decision.eager_s is None:
        return None
    speedups = {NO_BACKEND: Gain(0.0, 0.0)}
    speedups |= {
        each.arm: Gain.of(each.speedup)
        for each in decision.evidence
        if each.speedup and each.outcome.status is Status.PASS
    }
    return Timed(decision.eager_s, speedups)


def plans(graph: CutGraph, timed: Mapping[str, Timed]) -> list[Plan]:
    """Return ways of computing a graph in two parts or more, the best one first.

    None where the graph, or too many of its parts, were not timed. Neighbours with the same backend
    are one part, whose times are added up where it was not timed as one.
    """
    found: dict[tuple[tuple[int, int, str], ...], Plan] = {}
    for parts in divisions(graph, timed):
        plan = _plan(parts, timed[graph.key])
        if len(plan.parts) > 1:
            found.setdefault(plan.parts, plan)
    return sorted(found.values(), key=lambda each: -each.bound.log)


def divisions(graph: CutGraph, timed: Mapping[str, Timed]) -> list[dict[tuple[int, int], Timed]]:
    """Return the ways to divide a graph of which all parts were timed, as the graph was.

    Those of few parts first; each part by its first piece, and the one after the last.
    """
    parts = {(each.first, each.end): timed[each.key] for each in graph.parts if each.key in timed}
    return [
        {each: parts[each] for each in pairwise(edges)}
        for edges in _edges(graph.pieces)
        if graph.key in timed and all(each in parts for each in pairwise(edges))
    ]


def _edges(pieces: int) -> Iterator[tuple[int, ...]]:
    """Yield the edges of parts in all ways to divide pieces into two parts or more, few first."""
    for count in range(1, pieces):
        for inner in combinations(range(1, pieces), count):
            yield (0, *inner, pieces)


def _plan(parts: Mapping[tuple[int, int], Timed], whole: Timed) -> Plan:
    """Return what a plan comes to.

    Speedups over eager were measured within processes and latencies are of different ones, so that
    it is shares of eager's time that are added up, each divided by its speedup.
    """
    own = tuple(parts.values())
    eager_s = math.fsum(each.eager_s for each in own)
    seconds = math.fsum(each.seconds() for each in own)
    half = math.hypot(*(each.seconds() / seconds * each.speedup.half for each in own))
    can = all(whole.arm in each.speedups for each in own)
    return Plan(
        parts=tuple(_merged((*place, each.arm) for place, each in parts.items())),
        bound=Gain(
            math.log(eager_s / seconds) - whole.speedup.log, math.hypot(half, whole.speedup.half)
        ),
        over_one=math.fsum(each.seconds(whole.arm) for each in own) / seconds if can else None,
        eager_sum=eager_s / whole.eager_s,
    )


def _merged(parts: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    for arm, own in groupby(parts, key=lambda each: each[2]):
        places = list(own)
        yield places[0][0], places[-1][1], arm
