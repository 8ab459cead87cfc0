from __future__ import annotations

import operator
import weakref
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import pytest
import torch
from captured import ORIGIN, Net, captured, net_inputs
from cutting import Assembled, cut, live, operations, part
from hypothesis import given
from hypothesis import strategies as st
from torch import fx, nn

from dynamometer.dynamo.graphs.key import graph_key
from dynamometer.dynamo.graphs.saved import Captured, load
from dynamometer.dynamo.placeholders import is_weight, placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


def chain(x: torch.Tensor) -> torch.Tensor:
    """Compute one thing after the other."""
    return torch.relu(x).sin().cos() * 2 + 1


def skip(x: torch.Tensor) -> torch.Tensor:
    """Use a value again much later."""
    early = x.sin()
    late = early.cos().exp().tanh()
    return late + early


def pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Take a tuple apart."""
    one, two = x.chunk(2, dim=0)
    return one.sin() + two, two.cos()


def several(x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
    """Return inputs, values of every part, and one twice."""
    early = x + 1
    late = (early * y).sum()
    return {"all": [early, late, x], "again": (late, early.sin())}


def in_place(x: torch.Tensor) -> torch.Tensor:
    """Write to what was computed before, and read it by another name."""
    first = x * 2
    view = first.view(-1)
    first.add_(1)
    first[0] = 5.0
    return view.sin() + first.flatten()


def shared(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Use inputs in several parts."""
    first = (x + mask).sin()
    second = (first * mask).cos()
    return (second - x).tanh() * mask


def changes_inputs(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Write to inputs, in several parts."""
    first = x.sin()
    x.mul_(2)
    second = (first + x).cos()
    y.add_(second)
    return y.exp() - x


def with_constants(x: torch.Tensor) -> torch.Tensor:
    """Use a tensor of the graph's own in several parts."""
    known = torch.tensor([1.5, 2.5, 3.5])
    return ((x + known).sin() * known).cos() - known


def branches(x: torch.Tensor) -> torch.Tensor:
    """Hold a graph in a graph."""
    y = x.sin()
    z = torch.cond(y.sum() > 0, lambda each: each * 2, lambda each: each - 1, (y,))
    return z.cos() + y


def draws(x: torch.Tensor) -> torch.Tensor:
    """Use random numbers in several parts."""
    first = x + torch.rand(3)
    return first.sin() + torch.rand(3)


class Block(nn.Module):
    """Two layers, with what came in added to what comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute, and add."""
        return self.two(torch.relu(self.one(x))) + self.one(x)


CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "chain": (chain, (torch.randn(3, 3),)),
    "skip": (skip, (torch.randn(3, 3),)),
    "pair": (pair, (torch.randn(4, 3),)),
    "several": (several, (torch.randn(3), torch.randn(3))),
    "in place": (in_place, (torch.randn(3, 3),)),
    "shared": (shared, (torch.randn(3), torch.randn(3))),
    "changes inputs": (changes_inputs, (torch.randn(3), torch.randn(3))),
    "constants": (with_constants, (torch.randn(3),)),
    "branches": (branches, (torch.randn(3),)),
    "draws": (draws, (torch.randn(3),)),
    "net": (Net().eval(), net_inputs()),
    "block": (Block(), (torch.randn(2, 4),)),
}


def run(compute: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return what is computed of copies of inputs, and what has become of these."""
    own = [each.detach().clone() if isinstance(each, torch.Tensor) else each for each in inputs]
    torch.manual_seed(0)
    with torch.no_grad():
        return compute(*own), own


def assembled(graph: fx.GraphModule, places: Sequence[int]) -> Assembled:
    """Put the parts of a graph together as they are."""
    parts = cut(graph, places)
    return Assembled(graph, parts, [each.graph for each in parts])


def cuts_of(graph: fx.GraphModule) -> Iterator[tuple[int, ...]]:
    """Yield all ways to cut a graph in two and in three, and that in its operations."""
    every = range(1, len(operations(graph)))
    yield from ((), *combinations(every, 1), *combinations(every, 2), tuple(every))


def assert_same(graph: fx.GraphModule, places: Sequence[int], inputs: Sequence[Any]) -> None:
    """Hold a graph in parts to the graph: results, their structure, and inputs afterwards."""
    (one, before), (two, after) = (
        run(each, inputs) for each in (graph.forward, assembled(graph, places))
    )
    assert type(one) is type(two)
    torch.testing.assert_close(two, one, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(after, before, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_parts_compute_what_the_graph_does(name: str) -> None:
    """However a graph is cut, results are the same ones, and inputs are changed as they were."""
    function, args = CASES[name]
    graph, inputs = captured(function, *args)
    for places in cuts_of(graph):
        assert_same(graph, places, inputs)


def test_the_graph_is_left_as_it_was() -> None:
    """A part is a copy, which a compiler may change."""
    graph, inputs = captured(skip, torch.randn(3))
    before, code = run(graph.forward, inputs), graph.code
    for each in cut(graph, [2]):
        for node in reversed(each.graph.graph.nodes):
            if node.op == "call_function":
                node.replace_all_uses_with(node.all_input_nodes[0])
        each.graph.recompile()
    assert graph.code == code
    torch.testing.assert_close(run(graph.forward, inputs), before)


def test_what_crosses_is_what_is_used_on_the_other_side() -> None:
    """A value is live from when it is computed to when it is used last."""
    graph, _ = captured(skip, torch.randn(3))
    names = [[node.target for node in each] for each in live(graph)]
    assert names == [[], ["sin"], ["sin", "cos"], ["sin", "exp"], ["sin", "tanh"], []]


def test_inputs_cross_where_both_sides_use_them() -> None:
    """Weights never do, as each part has its own."""
    graph, _ = captured(shared, torch.randn(3), torch.randn(3))
    x, mask = placeholders(graph)
    crossing = live(graph)
    assert {place for place, each in enumerate(crossing) if x in each} == {1, 2, 3, 4}
    assert {place for place, each in enumerate(crossing) if mask in each} == {1, 2, 3, 4, 5, 6}
    graph, _ = captured(Block(), torch.randn(2, 4))
    assert any(map(is_weight, placeholders(graph)))
    assert not any(is_weight(node) for each in live(graph) for node in each)


def test_what_is_returned_alone_does_not_cross() -> None:
    """No part takes it."""
    graph, _ = captured(several, torch.randn(3), torch.randn(3))
    assert [len(each) for each in live(graph)] == [0, 1, 2, 1, 0]


def test_inputs_of_a_part_say_what_those_of_the_graph_do() -> None:
    """A weight is one in every part that uses it."""
    graph, _ = captured(Block(), torch.randn(2, 4))
    for each in cut(graph, [2]):
        own = placeholders(each.graph)
        assert [is_weight(node) for node in own] == [is_weight(node) for node in each.inputs]
        assert any(map(is_weight, own))


def test_a_part_is_the_same_however_the_rest_is_cut() -> None:
    """It is told by its first operation, and the first one after it."""
    graph, _ = captured(chain, torch.randn(3))
    middle = cut(graph, [1, 3])[1]
    alone = part(graph, 1, 3)
    assert (alone.inputs, alone.outputs) == (middle.inputs, middle.outputs)
    assert alone.graph.code == middle.graph.code


def test_a_part_of_a_loaded_graph_has_the_same_key(tmp_path: Path) -> None:
    """What was decided for it is found by who cuts the graph that Dynamo gives."""
    graph, inputs = captured(Block(), torch.randn(2, 4))
    Captured.of(graph, inputs).save(tmp_path / "one.graph", inputs, ORIGIN)
    loaded, _ = load(tmp_path / "one.graph")
    one, two = (cut(each, [2]) for each in (graph, loaded))
    given = [[torch.ones(2, 4) if node.op != "placeholder" else inputs[number]
              for number, node in enumerate(each.inputs)] for each in one]  # fmt: skip
    for ours, theirs, own in zip(one, two, given, strict=True):
        assert graph_key(ours.graph, own) == graph_key(theirs.graph, own)


@pytest.mark.parametrize("places", [[0], [5], [2, 2], [3, 1], [-1]])
def test_a_part_of_nothing_is_refused(places: list[int]) -> None:
    """The message says what was asked for."""
    graph, _ = captured(chain, torch.randn(3))
    with pytest.raises(ValueError, match="a graph of 5 operations can't be cut at"):
        cut(graph, places)


def test_a_value_is_let_go_after_its_last_use() -> None:
    """Else all that a model computes would be kept until its end."""
    graph, inputs = captured(chain, torch.randn(3))
    parts = cut(graph, [1, 2, 3, 4])
    made: list[weakref.ref[torch.Tensor]] = []
    gone: list[int] = []

    def look(compute: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            gone.append(sum(each() is None for each in made))
            result = compute(*given)
            made.append(weakref.ref(result[0]))
            return result

        return call

    Assembled(graph, parts, [look(each.graph) for each in parts])(*inputs)
    assert gone == [0, 0, 1, 2, 3]


UNARY = [torch.sin, torch.cos, torch.tanh]
BINARY = [operator.add, operator.mul, torch.maximum]


@st.composite
def graphs(take: st.DrawFn) -> fx.GraphModule:
    """Make graphs of two inputs: what each operation takes may be anything before it."""
    graph = fx.Graph()
    values = [graph.placeholder("x"), graph.placeholder("y")]
    for _ in range(take(st.integers(2, 10))):
        one, two = (take(st.sampled_from(values)) for _ in range(2))
        match take(st.sampled_from(["unary", "binary", "in place", "pair", "view"])):
            case "unary":
                values.append(graph.call_function(take(st.sampled_from(UNARY)), (one,)))
            case "binary":
                values.append(graph.call_function(take(st.sampled_from(BINARY)), (one, two)))
            case "in place":
                values.append(graph.call_method("add_", (one, two), {"alpha": 0.5}))
            case "pair":
                both = graph.call_function(torch.sort, (one,))
                values.append(graph.call_function(operator.getitem, (both, 0)))
            case _:
                values.append(graph.call_method("view", (one, -1)))
    some = take(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    graph.output(tuple(some))
    return fx.GraphModule(nn.Module(), graph)


@given(graphs(), st.data())
def test_any_graph_can_be_cut_anywhere(graph: fx.GraphModule, data: st.DataObject) -> None:
    """Whatever is shared, overwritten or returned; what crosses is what parts take."""
    count = len(operations(graph))
    places = sorted(data.draw(st.sets(st.integers(1, count - 1), max_size=4)))
    inputs = [torch.linspace(-2, 1, 4), torch.linspace(3, -1, 4)]
    assert_same(graph, places, inputs)
    crossing = live(graph)
    for start, stop in pairwise((0, *places, count)):
        taken = part(graph, start, stop).inputs
        computed = {node for node in taken if node.op != "placeholder"}
        assert computed <= set(crossing[start])
    for place, nodes in enumerate(crossing):
        before, after = (part(graph, *each) for each in ((0, place), (place, count)))
        known = {*before.outputs, *before.inputs}
        assert set(nodes) == known & set(after.inputs)
