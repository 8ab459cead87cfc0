"""Where graphs may be cut, and where they are."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from cut_points import Observed, Point, Value, choose, observe, points
from cutting import operations
from torch import fx, nn


def graph_of(*calls: tuple[Any, ...]) -> fx.GraphModule:
    """Make a graph of two inputs, from functions or methods and the numbers of what they take.

    The last value is returned.
    """
    graph = fx.Graph()
    values = [graph.placeholder("x"), graph.placeholder("y")]
    for target, *args in calls:
        given = tuple(each if isinstance(each, bool) else values[each] for each in args)
        make = graph.call_method if isinstance(target, str) else graph.call_function
        values.append(make(target, given))
    graph.output((values[-1],))
    return fx.GraphModule(nn.Module(), graph)


def inputs() -> list[torch.Tensor]:
    """Draw two inputs."""
    return [torch.ones(4), torch.ones(4)]


def places(graph: fx.GraphModule, most_live: int = 2) -> list[int]:
    """Return where a graph can be cut."""
    return [each.place for each in points(graph, observe(graph, inputs()), most_live)]


def first(x: Any) -> Any:
    """Give the first of several."""
    return x[0]


def test_a_chain_can_be_cut_anywhere() -> None:
    """One tensor crosses each cut, of the shape and size that it has."""
    graph = graph_of((torch.sin, 0), (torch.cos, 2), (torch.exp, 3))
    seen = observe(graph, inputs())
    found = points(graph, seen, 1)
    assert [each.place for each in found] == [1, 2]
    assert [(each.shape, each.dtype, each.bytes) for each in found[0].live] == [
        ((4,), "float32", 16)
    ]
    assert 0 < found[0].share < found[1].share < 1
    assert len(seen.seconds) == len(operations(graph)) == 3


def test_no_more_than_so_many_tensors_cross() -> None:
    """An input that both sides use is one of them."""
    graph = graph_of((torch.add, 0, 1), (torch.sin, 2), (torch.add, 3, 0), (torch.add, 4, 2))
    assert [places(graph, most) for most in (1, 2, 3)] == [[], [1, 3], [1, 2, 3]]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(torch.sort, 0), (first, 2), (torch.sin, 3)], [2]),
        ([(torch.sin, 0), ("relu_", 2), (torch.cos, 3)], [2]),
        ([(torch.sin, 0), ("view_as", 2, 1), ("relu_", 3), (torch.cos, 2)], [3]),
        ([(torch.sin, 0), (torch.cos, 2), ("add_", 2, 3), (torch.exp, 4)], [3]),
        ([(torch.sin, 0), ("view_as", 2, 1), (torch.add, 3, 2), (torch.cos, 4)], [1, 3]),
        ([("view_as", 0, 1), (torch.sin, 2), (torch.cos, 3)], [2]),
        ([("add_", 0, 1), (torch.sin, 0), (torch.cos, 3)], [1, 2]),
        ([(torch.sin, 0), ("add_", 0, 1), (torch.cos, 2)], [2]),
    ],
    ids=[
        *("tuple", "written later", "written by another name", "added to later"),
        *("two of one memory", "view of an input", "an input was written to"),
        "an input is written to later",
    ],
)
def test_each_part_can_be_had_by_itself(calls: list[tuple[Any, ...]], expected: list[int]) -> None:
    """What crosses is tensors of their own memory, which nobody writes to any more."""
    assert places(graph_of(*calls)) == expected


def test_no_mode_is_left_on() -> None:
    """It is changed, and changed back, in one part."""
    mode = torch._C._set_grad_enabled
    graph = graph_of((torch.sin, 0), (mode, False), (torch.cos, 2), (mode, True), (torch.exp, 4))
    assert places(graph) == [1, 4]


def test_an_address_that_is_used_again_is_no_memory_in_common() -> None:
    """Of what was let go the next tensor often gets the place."""
    calls = [(torch.sin, number) for number in (0, *range(2, 40))]
    assert places(graph_of(*calls), 1) == list(range(1, 39))


def test_nodes_say_what_they_give() -> None:
    """As Dynamo's do: without that a part would take an input for none of a graph of Dynamo."""
    graph = graph_of((torch.sort, 0), (operator.getitem, 2, False))
    observe(graph, inputs())
    *_, pair, one, _ = graph.graph.nodes
    assert "example_value" not in pair.meta
    assert one.meta["example_value"].shape == (4,)
    assert one.meta["example_value"].device.type == "meta"


def at(share: float, *sizes: int) -> Point:
    """Make a point at which tensors of some sizes cross."""
    values = (Value(shape=(size,), dtype="float32", bytes=4 * size, memory=0) for size in sizes)
    return Point(round(share * 1000), share, tuple(values))


def shares(found: list[Point], most_cuts: int) -> list[float]:
    """Return of what is chosen the shares before."""
    return [each.share for each in choose(found, most_cuts)]


def test_the_least_that_crosses_near_equal_shares_is_chosen() -> None:
    """Few tensors, few bytes and comparable shares are weighed."""
    found = [at(0.45, 10), at(0.49, 20), at(0.5, 5, 5), at(0.52, 10), at(0.8, 1)]
    assert shares(found, 1) == [0.52]
    assert shares([at(0.3, 10), at(0.5, 10)], 1) == [0.5]


def test_shares_are_as_equal_as_can_be() -> None:
    """No part is less than a sixteenth; where nothing is to be gained there are less cuts."""
    assert shares([at(number / 100, 1) for number in range(1, 100)], 3) == [0.25, 0.5, 0.75]
    assert shares([at(each, 1) for each in (0.01, 0.3, 0.36, 0.4, 0.99)], 3) == [0.3, 0.4]
    assert shares([at(each, 1) for each in (0.13, 0.6)], 3) == [0.13, 0.6]
    assert shares([at(0.01, 1), at(0.99, 1)], 3) == []
    assert shares([], 3) == []


def test_a_graph_of_one_operation_cannot_be_cut() -> None:
    """There is nothing before or after it."""
    graph = graph_of((torch.sin, 0))
    assert places(graph) == []
    assert isinstance(observe(graph, inputs()), Observed)
