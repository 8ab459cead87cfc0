from __future__ import annotations

import copy
import keyword
import operator
from typing import TYPE_CHECKING, Any

import pytest
import torch
from captured import Net, captured, net_inputs
from hypothesis import given
from hypothesis import strategies as st
from torch import fx

from dynamometer.dynamo.graphs.key import graph_key
from dynamometer.dynamo.graphs.recorder import by_parts
from dynamometer.dynamo.placeholders import is_weight, placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def example(constant: float = 2.0, target: Callable[..., Any] = operator.mul) -> fx.GraphModule:
    """Make a graph of two inputs."""
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    product = graph.call_function(target, (x, constant))
    added = graph.call_method("add", (product, y), {"alpha": 3})
    graph.output((added, [product, {"a": x}]))
    return fx.GraphModule(torch.nn.Module(), graph)


INPUTS = (torch.ones(4, 6), torch.ones(4, 6))
NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name)
)


@given(st.lists(NAMES, min_size=4, max_size=4, unique=True))
def test_names_are_not_in_it(names: list[str]) -> None:
    """Whatever nodes are called, the key is the same."""
    graph = example()
    renamed = copy.deepcopy(graph)
    for node, name in zip(renamed.graph.nodes, names, strict=False):
        node._rename(name)
        if node.op == "placeholder":
            node.target = name
    renamed.recompile()
    assert graph_key(renamed, INPUTS) == graph_key(graph, INPUTS)


@given(st.floats(allow_nan=False))
def test_a_constant_is_in_it(constant: float) -> None:
    """Another constant is another key, infinite ones and a zero's type included."""
    same = graph_key(example(constant), INPUTS) == graph_key(example(), INPUTS)
    assert same == (constant == 2.0)
    assert graph_key(example(2), INPUTS) != graph_key(example(2.0), INPUTS)


SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@given(SHAPES, SHAPES)
def test_shapes_are_in_it(one: list[int], two: list[int]) -> None:
    """Keys are equal exactly when shapes are."""
    keys = [graph_key(example(), (torch.ones(each), torch.ones(3))) for each in (one, two)]
    assert (keys[0] == keys[1]) == (one == two)


@pytest.mark.parametrize(
    "other",
    [
        torch.ones(6, 4).t(),
        torch.ones(4, 6, dtype=torch.float64),
        torch.ones(4, 6, device="meta"),
        torch.ones(4, 1).expand(4, 6),
        torch.nn.Parameter(torch.ones(4, 6)),
        torch.ones(4, 6).to_sparse(),
        torch._neg_view(torch.ones(4, 6)),
        3.0,
        None,
    ],
)
def test_the_kind_of_an_input_is_in_it(other: Any) -> None:
    """Strides, dtype, device, layout, and whether a gradient is needed make other keys."""
    key = graph_key(traced_by_dynamo(), INPUTS)
    assert graph_key(traced_by_dynamo(), (other, INPUTS[1])) != key


def test_a_conjugate_is_told_from_what_is_stored() -> None:
    """As its values are others."""
    stored = torch.ones(4, 6, dtype=torch.complex64)
    keys = {graph_key(example(), (each, stored)) for each in (stored, stored.conj())}
    assert len(keys) == 2


def traced_by_dynamo() -> fx.GraphModule:
    """Return the example as Dynamo gives graphs, with examples at its inputs."""
    graph = example()
    for node, value in zip(placeholders(graph), INPUTS, strict=True):
        node.meta["example_value"] = value
    return graph


def test_values_of_inputs_and_weights_are_not_in_it() -> None:
    """Two models of the same structure have the same key, in other places of a source as well."""
    keys = {graph_key(*captured(Net().eval(), *net_inputs())) for _ in range(2)}
    assert len(keys) == 1


@pytest.mark.parametrize("target", [operator.add, torch.mul, torch.add])
def test_the_function_is_in_it(target: Callable[..., Any]) -> None:
    """Another function is another key."""
    assert graph_key(example(target=target), INPUTS) != graph_key(example(), INPUTS)


def test_a_weight_is_told_from_an_input() -> None:
    """Dynamo says which inputs are a module's own, and runtimes make constants of these."""
    linear = torch.nn.Linear(3, 3).eval().requires_grad_(requires_grad=False)
    of_module, inputs = captured(linear, torch.ones(2, 3))
    assert [is_weight(node) for node in placeholders(of_module)].count(True) == 2
    of_function, others = captured(
        torch.nn.functional.linear, torch.ones(2, 3), torch.ones(3, 3), torch.ones(3)
    )
    assert not any(map(is_weight, placeholders(of_function)))
    assert graph_key(of_module, inputs) != graph_key(of_function, others)


def sizes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute with a size."""
    return x.sum(0) * x.shape[0] + y


def test_sizes_that_vary_are_in_it_by_order_alone() -> None:
    """The same program has one key at any size, however symbols are called, and another static."""
    keys = []
    for rows in (4, 9):
        graph, inputs = captured(sizes, torch.ones(rows, 3), torch.ones(3), dynamic=True)
        keys.append(graph_key(graph, inputs))
    static, inputs = captured(sizes, torch.ones(4, 3), torch.ones(3), dynamic=False)
    assert keys[0] == keys[1] != graph_key(static, inputs)


def test_graphs_within_a_graph_are_in_it() -> None:
    """What a branch computes is part of what is computed."""

    def choose(factor: float) -> Callable[[torch.Tensor], Any]:
        return lambda x: torch.cond(x.sum() > 0, lambda y: y * factor, lambda y: y - 1, (x,))

    x = torch.ones(3)
    keys = [graph_key(*captured(choose(factor), x)) for factor in (2.0, 3.0, 2.0)]
    assert keys[0] == keys[2] != keys[1]


def test_forward_and_backward_have_the_same_keys_again() -> None:
    """AOTAutograd's graphs, compiled for fake inputs and run on real ones, are recognised."""

    def run() -> list[tuple[str, str, str]]:
        seen: list[tuple[str, str, str]] = []

        def compiler_of(part: str) -> Any:
            def compile_part(graph: fx.GraphModule, fakes: Sequence[Any]) -> Any:
                early = graph_key(graph, fakes)

                def call(*given: Any) -> Any:
                    seen.append((part, early, graph_key(graph, given)))
                    return graph.forward(*given)

                return call

            return compile_part

        torch.compiler.reset()
        torch.compile(Net(), backend=by_parts(compiler_of))(*net_inputs()).sum().backward()
        return seen

    one, two = run(), run()
    assert [part for part, *_ in one] == ["forward", "backward"]
    assert one == two
    assert all(early == late for _, early, late in one)


class Foreign:
    """What no graph holds but by accident."""

    def __repr__(self) -> str:
        return "0"  # which is put into a graph's source


def test_an_argument_of_a_foreign_class_changes_nothing_from_call_to_call() -> None:
    """What can't be written is told by its class, never by its address."""
    keys = {graph_key(example(constant=Foreign()), INPUTS) for _ in range(2)}  # type: ignore[arg-type]
    assert len(keys) == 1
