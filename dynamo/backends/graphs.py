"""Graphs of Dynamo for runtimes that want weights to be constants, and sizes to be numbers.

Dynamo hands weights in at every call, and lets one graph serve several modules and several sizes.
Here a program is built for each set of weights and each set of sizes that a graph is called with.
"""

from __future__ import annotations

import copy
import operator
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from dynamometer.dynamo.backends.programs import build_of, export, program_of, put_constant
from dynamometer.dynamo.backends.unsupported import refuse_training
from dynamometer.dynamo.placeholders import is_weight, placeholders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.dynamo.backends.programs import Build, Compute, Program

MOST_VARIANTS = 256
"""Programs that are kept of one graph: of as many layers, or sizes; the oldest makes room. Of more
that take turns each would be built anew at every call."""


@dataclass
class _Variant:
    """A program for some weights and sizes.

    Attributes:
        key: the weights' identities, and the sizes.
        weights: that are constants of it.
        versions: of these weights, which say whether anyone wrote to them.
        digests: of their values.
    """

    key: tuple[Any, ...]
    program: Program
    compute: Compute
    weights: list[torch.Tensor]
    versions: list[int]
    digests: list[int]

    def is_current(self) -> bool:
        """Return whether the weights still have the values it was built with."""
        versions = [each._version for each in self.weights]  # noqa: SLF001  there is no other way to ask
        if versions == self.versions:
            return True
        if any(
            one != two and _digest(weight) != digest
            for one, two, weight, digest in zip(
                versions, self.versions, self.weights, self.digests, strict=True
            )
        ):
            return False
        self.versions = versions
        return True


class SpecializedGraph:
    """A graph of Dynamo, with a program for each set of weights and sizes it is called with.

    Weights that were written to get a new program, unless that went through their `data`: torch
    doesn't count it, and asking where each lies would take longer than some kernels. What Dynamo
    guards on is not looked at again.
    """

    def __init__(self, graph: fx.GraphModule, example_inputs: Sequence[Any], build: Build) -> None:
        """Build the first program, where the example's sizes are known.

        Raises:
            UnsupportedError: the runtime would compute something else, or can't.
        """
        refuse_training(example_inputs)
        self._graph = fx.GraphModule(graph, copy.deepcopy(graph.graph))
        self._build = build
        nodes = placeholders(self._graph)
        self._weights = [index for index, node in enumerate(nodes) if is_weight(node)]
        self._numbers = [index for index, node in enumerate(nodes) if _is_number(node)]
        fixed = {*self._weights, *self._numbers}
        self._tensors = [index for index in range(len(nodes)) if index not in fixed]
        self._varies = bool(self._numbers)
        self._variants: list[_Variant] = []
        sizes = _sizes(nodes, example_inputs)
        values = [sizes.get(str(each), each) for each in example_inputs]
        if not any(isinstance(each, torch.SymInt) for each in values):
            self._variants.append(self._variant(values))

    def __call__(self, *given: Any) -> list[Any]:
        """Compute what the graph does."""
        for variant in self._variants:
            if self._fits(variant, given) and variant.is_current():
                return variant.program.run(variant.compute, given)
        variant = self._variant(given)
        others = [each for each in self._variants if not self._fits(each, given)]
        self._variants = [variant, *others[: MOST_VARIANTS - 1]]
        return variant.program.run(variant.compute, given)

    def _fits(self, variant: _Variant, given: Sequence[Any]) -> bool:
        weights, sizes = variant.key
        mine = (given[index] for index in self._weights)
        if not all(map(operator.is_, weights, mine)):
            return False
        return not self._varies or sizes == self._sizes_of(given)

    def _sizes_of(self, given: Sequence[Any]) -> list[Any]:
        numbers = [as_key(_as_number(given[index])) for index in self._numbers]
        return [*numbers, *(given[index].shape for index in self._tensors)]

    def _variant(self, given: Sequence[Any]) -> _Variant:
        module, places = self._specialized(given)
        values = tuple(given[index] for index in places)
        program = program_of(export(module, values), values).moved(places)
        weights = [given[index] for index in self._weights]
        frozen = [each for each in weights if not (program.changes(each) or each.is_inference())]
        key = (weights, self._sizes_of(given) if self._varies else [])
        compute = build_of(program, self._build)
        versions = [each._version for each in frozen]  # noqa: SLF001  as above
        return _Variant(key, program, compute, frozen, versions, list(map(_digest, frozen)))

    def _specialized(self, given: Sequence[Any]) -> tuple[fx.GraphModule, list[int]]:
        """Return the graph with weights and numbers inside, and which inputs are left."""
        graph = copy.deepcopy(self._graph.graph)
        module = fx.GraphModule(self._graph, graph)
        nodes = placeholders(module)
        put_weights(module, {index: given[index] for index in self._weights})
        for index in self._numbers:
            _put_number(graph, nodes[index], _as_number(given[index]))
        module.recompile()
        return module, self._tensors


def put_weights(module: fx.GraphModule, weights: Mapping[int, torch.Tensor]) -> None:
    """Make inputs of a graph buffers of its module; one that is given twice is one buffer.

    Args:
        module: is changed, and has to be recompiled.
        weights: by the places of these inputs.
    """
    names: dict[int, str] = {}
    nodes = placeholders(module)
    for index, value in weights.items():
        name = names.setdefault(id(value), f"given_weight_{index}")
        module.register_buffer(name, value)
        put_constant(module.graph, nodes[index], name)


def _is_number(node: fx.Node) -> bool:
    """Return whether an input is a number, or one that Dynamo has wrapped in a tensor."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return True
    wrapped = bool(node.users) and all(
        (user.op, user.target) == ("call_method", "item") for user in node.users
    )
    return value.dim() == 0 and wrapped


def _as_number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def as_key(number: Any) -> Any:
    """Return what tells a number from all others: -0.0 equals 0.0, and NaN not even itself."""
    return type(number), number.hex() if isinstance(number, float) else number


def _put_number(graph: fx.Graph, node: fx.Node, value: Any) -> None:
    for user in list(node.users):
        if (user.op, user.target) == ("call_method", "item"):
            user.replace_all_uses_with(value)
            graph.erase_node(user)
    node.replace_all_uses_with(value)
    graph.erase_node(node)


def _sizes(nodes: Sequence[fx.Node], examples: Sequence[Any]) -> dict[str, int]:
    """Map the names of sizes that vary to what they are in the example."""
    found: dict[str, int] = {}
    for node, example in zip(nodes, examples, strict=True):
        fake = node.meta.get("example_value")
        if isinstance(fake, torch.Tensor) and isinstance(example, torch.Tensor):
            sizes: zip[tuple[Any, int]] = zip(fake.shape, example.shape, strict=True)
            found |= {str(one): two for one, two in sizes if isinstance(one, torch.SymInt)}
    return found


def _digest(weight: torch.Tensor) -> int:
    data = weight.detach().cpu().contiguous().flatten().view(torch.uint8)
    return zlib.crc32(data.numpy().data)
