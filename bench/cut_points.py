"""Where a graph is best cut in parts: at few live tensors, into comparable shares of its time."""

from __future__ import annotations

import math
import operator
import time
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from cutting import live, operations
from torch import fx

from dynamometer.dynamo.graphs.targets import name_of
from dynamometer.dynamo.placeholders import is_weight, placeholders
from dynamometer.dynamo.trees import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TIMED = 7
"""Runs of a graph that are timed, after one that isn't."""

_MODE = "torch._C._set_grad_enabled"
"""What changes how the operations after it are computed."""


@dataclass(frozen=True)
class Value:
    """What a node gave, where that is one tensor.

    Attributes:
        shape: of it.
        dtype: of it.
        bytes: of its elements.
        memory: a number that tensors have in common that share memory.
    """

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    memory: int


@dataclass(frozen=True)
class Observed:
    """What running a graph showed.

    Attributes:
        seconds: of each operation, in order: the least of some runs, as others may disturb them.
        values: of nodes that gave one tensor.
        changes: of each operation, the memory that it wrote to in place.
    """

    seconds: tuple[float, ...]
    values: dict[fx.Node, Value]
    changes: tuple[frozenset[int], ...]


class _Observer(fx.Interpreter):
    """Runs a graph node by node, and keeps what `Observed` says."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        self.seconds: dict[fx.Node, float] = {}
        self.values: dict[fx.Node, Value] = {}
        self.changes: dict[fx.Node, frozenset[int]] = {}
        self._memory: dict[fx.Node, dict[int, int]] = {}
        self._memories = 0

    def run_node(self, n: fx.Node) -> Any:
        """Run a node, and look at what it was given and at what it gave."""
        given = [each for node in n.all_input_nodes for each in _tensors(self.env[node])]
        # Addresses are used again, so that they say something of what a node is given alone.
        known = {key: memory for node in n.all_input_nodes
                 for key, memory in self._memory[node].items()}  # fmt: skip
        versions = [each._version for each in given]  # noqa: SLF001  there is no other way to ask
        started_s = time.perf_counter()
        value = super().run_node(n)
        self.seconds[n] = time.perf_counter() - started_s
        self.changes[n] = frozenset(
            known[_address(each)]
            for each, version in zip(given, versions, strict=True)
            if each._version != version and _address(each) in known  # noqa: SLF001  there is no other way to ask
        )
        self._memory[n] = own = {}
        for each in _tensors(value):
            own[_address(each)] = known.get(_address(each), self._memories)
            self._memories += 1
        if isinstance(value, torch.Tensor):
            self.values[n] = Value(
                shape=tuple(value.shape),
                dtype=str(value.dtype).removeprefix("torch."),
                bytes=value.numel() * value.element_size(),
                memory=own[_address(value)],
            )
            _give_example(n, value)
        return value


def _tensors(value: object) -> list[torch.Tensor]:
    return [each for each in tree_leaves(value) if isinstance(each, torch.Tensor)]


def _address(tensor: torch.Tensor) -> int:
    """Return where a tensor's memory is; of one without, something that no other has."""
    return tensor.untyped_storage().data_ptr() or id(tensor)


def _give_example(node: fx.Node, value: torch.Tensor) -> None:
    """Say of a node what kind of tensor it gives, as Dynamo does."""
    if "example_value" not in node.meta:
        node.meta["example_value"] = torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device="meta"
        )


def observe(graph: fx.GraphModule, given: Sequence[Any]) -> Observed:
    """Run a graph some times, and say what it did. Its nodes get examples of what they give.

    Args:
        graph: that was loaded.
        given: its inputs, which stay as they are.
    """
    weights = [is_weight(node) for node in placeholders(graph)]
    runs = []
    for _ in range(1 + _TIMED):
        runs.append(_Observer(graph))
        own = [
            each.clone() if isinstance(each, torch.Tensor) and not weight else each
            for each, weight in zip(given, weights, strict=True)
        ]
        with torch.no_grad():
            runs[-1].run(*own)
    nodes, first, timed = operations(graph), runs[0], runs[1:]
    return Observed(
        seconds=tuple(min(run.seconds[node] for run in timed) for node in nodes),
        values=first.values,
        changes=tuple(first.changes[node] for node in nodes),
    )


@dataclass(frozen=True)
class Point:
    """Where a graph can be cut.

    Attributes:
        place: how many operations come before.
        share: of the graph's time that these take.
        live: what crosses.
    """

    place: int
    share: float
    live: tuple[Value, ...]

    @property
    def bytes(self) -> int:
        """Of all that crosses."""
        return sum(each.bytes for each in self.live)


def points(graph: fx.GraphModule, seen: Observed, most_live: int) -> list[Point]:
    """Return where a graph can be cut, so that each part can be had by itself.

    What crosses is tensors, at most so many. They share no memory with each other or with an input,
    and are not written to by what comes after: of a part that is tried by itself no input would be
    like that. A mode is not left on.
    """
    shares = list(accumulate(seen.seconds, initial=0.0))
    modes = [place for place, node in enumerate(operations(graph)) if _is_mode(node)]
    found = []
    for place, crossing in enumerate(live(graph)[1:-1], start=1):
        values = [seen.values[node] for node in crossing if node in seen.values]
        if not len(values) == len(crossing) <= most_live:
            continue
        mine = {each.memory for each in values}
        taken = _memory_of_inputs(graph, seen, crossing).union(*seen.changes[place:])
        within_mode = bool(modes) and modes[0] < place <= modes[-1]
        if len(mine) == len(values) and mine.isdisjoint(taken) and not within_mode:
            found.append(Point(place, shares[place] / shares[-1], tuple(values)))
    return found


def _memory_of_inputs(
    graph: fx.GraphModule, seen: Observed, crossing: Sequence[fx.Node]
) -> set[int]:
    """Return the memory of inputs but for those that cross."""
    return {
        seen.values[node].memory
        for node in placeholders(graph)
        if node in seen.values and node not in crossing
    }


def _is_mode(node: fx.Node) -> bool:
    return callable(node.target) and name_of(node.target) == _MODE


def choose(found: Sequence[Point], most_cuts: int) -> list[Point]:
    """Return the points that cut a graph into the most equal shares of its time.

    That is the least sum of their squares, to which each cut adds for what crosses. A tensor less
    is worth that a cut among four equal shares is off by 7 % of the time.

    Args:
        found: in order.
        most_cuts: how many are chosen at most.
    """
    most_bytes = max((each.bytes for each in found), default=0) or 1
    best: tuple[float, tuple[Point, ...]] = (1.0, ())
    ends: list[tuple[float, tuple[Point, ...]]] = [(0.0, ())]
    for _ in range(most_cuts):
        ends = [
            (cost + _CROSSING * (len(point.live) + point.bytes / most_bytes), (*before, point))
            for point in found
            for cost, before in [_cheapest(ends, point.share)]
            if math.isfinite(cost)
        ]
        best = min(best, _cheapest(ends, 1.0), key=operator.itemgetter(0))
    return list(best[1])


_CROSSING, _LEAST_SHARE = 0.01, 1 / 16


def _cheapest(
    ends: Iterable[tuple[float, tuple[Point, ...]]], share: float
) -> tuple[float, tuple[Point, ...]]:
    """Return the cheapest cuts before one at a share of the time, with the part between."""
    best: tuple[float, tuple[Point, ...]] = (math.inf, ())
    for cost, before in ends:
        own = share - (before[-1].share if before else 0.0)
        if own >= _LEAST_SHARE and cost + own**2 < best[0]:
            best = (cost + own**2, before)
    return best
