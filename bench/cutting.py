"""A captured graph cut into parts: its operations in order, some at a time, each part a graph.

Composed they compute what the graph does, operation by operation on the same tensors: what one part
changes in place the next one sees changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from torch import fx
from torch.fx.node import map_arg

from dynamometer.dynamo.placeholders import is_weight, placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_NO_OPERATION = frozenset({"placeholder", "get_attr", "output"})


@dataclass(frozen=True)
class Part:
    """Some operations of a graph that follow each other, as a graph of their own.

    Attributes:
        graph: computes them, on the tensors that are attributes of the whole graph's module.
        inputs: nodes of the whole graph whose values it takes, in order.
        outputs: nodes of the whole graph whose values it gives, in order, as a tuple.
    """

    graph: fx.GraphModule
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]


def operations(graph: fx.GraphModule) -> list[fx.Node]:
    """Return what a graph computes, in order: all but its inputs, attributes and output."""
    return [node for node in graph.graph.nodes if node.op not in _NO_OPERATION]


def live(graph: fx.GraphModule) -> list[tuple[fx.Node, ...]]:
    """Return the values that would cross each cut: there before it, and used by what comes after.

    Weights and attributes of the graph are left out, as are inputs that only one side uses, and
    what is returned alone.

    Returns:
        Nodes in the order of the graph, by the number of operations before the cut: none for 0, and
        for all of them.
    """
    places = {node: place for place, node in enumerate(operations(graph))}
    found: list[list[fx.Node]] = [[] for _ in range(len(places) + 1)]
    for node in graph.graph.nodes:
        uses = [places[user] for user in node.users if user in places]
        if not uses or node.op == "get_attr" or (node.op == "placeholder" and is_weight(node)):
            continue
        since = places.get(node, min(uses))
        for place in range(since + 1, max(uses) + 1):
            found[place].append(node)
    return [tuple(each) for each in found]


def part(graph: fx.GraphModule, start: int, stop: int) -> Part:
    """Return the operations from one place up to another as a graph.

    Inputs that are those of the whole graph say of themselves what these do. What else it takes is
    an input as others are, and says what its node does. Attributes go into each part that uses
    them.

    Args:
        graph: of Dynamo or AOTAutograd, or loaded; is left as it is.
        start: how many operations come before.
        stop: how many come before what comes after.
    """
    nodes = operations(graph)[start:stop]
    inside = set(nodes)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    return _made(graph, nodes, outputs, tuple(outputs))


def cut(graph: fx.GraphModule, places: Iterable[int]) -> list[Part]:
    """Return the parts of a graph between cuts.

    Args:
        graph: as for `part`.
        places: of the cuts: how many operations come before each, rising.

    Raises:
        ValueError: a cut leaves nothing on one of its sides, or comes before the last one.
    """
    edges = [0, *places, len(operations(graph))]
    if any(one >= two for one, two in pairwise(edges)):
        msg = f"a graph of {edges[-1]} operations can't be cut at {edges[1:-1]}"
        raise ValueError(msg)
    return [part(graph, start, stop) for start, stop in pairwise(edges)]


@dataclass(frozen=True)
class _Step:
    """A call.

    Attributes:
        compute: what is called.
        takes: places of its inputs.
        gives: places of its outputs.
        drops: places of what nobody uses any more.
    """

    compute: Callable[..., Any]
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    drops: tuple[int, ...]


class Assembled:
    """What computes a graph part by part. A value is let go after its last use."""

    def __init__(
        self, graph: fx.GraphModule, parts: Sequence[Part], computes: Sequence[Callable[..., Any]]
    ) -> None:
        """Find out which value goes where.

        Args:
            graph: that was cut.
            parts: of it, all of them in order.
            computes: what computes each, given and giving what its graph does, or that as a list.
        """
        output = next(iter(reversed(graph.graph.nodes)))
        ending = _made(graph, (), output.all_input_nodes, output.args[0])
        given = placeholders(graph)
        every = (*parts, ending)
        names = dict.fromkeys([*given, *(node for each in parts for node in each.outputs)])
        places = {node: place for place, node in enumerate(names)}
        last = {node: number for number, each in enumerate(every) for node in each.inputs}
        self._room = [None] * (len(places) - len(given))
        self._steps = [
            _Step(
                compute,
                tuple(places[node] for node in each.inputs),
                tuple(places[node] for node in each.outputs),
                tuple(places[node] for node in each.inputs if last[node] == number),
            )
            for number, (each, compute) in enumerate(zip(parts, computes, strict=True))
        ]
        self._result = ending.graph.forward
        self._returned = tuple(places[node] for node in ending.inputs)

    def __call__(self, *given: Any) -> Any:
        """Compute what the graph does."""
        values: list[Any] = [*given, *self._room]
        for step in self._steps:
            made = step.compute(*[values[place] for place in step.takes])
            for place, value in zip(step.gives, made, strict=True):
                values[place] = value
            for place in step.drops:
                values[place] = None
        return self._result(*[values[place] for place in self._returned])


def _made(
    graph: fx.GraphModule,
    nodes: Sequence[fx.Node],
    outputs: Iterable[fx.Node],
    result: Any,
) -> Part:
    """Return a graph of some nodes.

    Args:
        graph: that they are of.
        nodes: operations, in order.
        outputs: whose values are in its result.
        result: what it returns, made of nodes.
    """
    inside = set(nodes)
    needed = {each for node in nodes for each in node.all_input_nodes} | set(outputs)
    outside = [node for node in graph.graph.nodes if node in needed and node not in inside]
    made, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in outside:
        if node.op == "get_attr":
            continue
        copies[node] = made.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in (*(node for node in outside if node.op == "get_attr"), *nodes):
        copies[node] = made.node_copy(node, copies.__getitem__)
    made.output(map_arg(result, copies.__getitem__))
    return Part(
        graph=fx.GraphModule(graph, made),
        inputs=tuple(node for node in outside if node.op != "get_attr"),
        outputs=tuple(node for node in outputs if node in inside),
    )
