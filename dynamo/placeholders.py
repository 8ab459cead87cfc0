"""The inputs of a graph that Dynamo captured, and which of them are weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import fx

_WEIGHT = "_dynamo_static_input_type"


def placeholders(graph: fx.GraphModule) -> list[fx.Node]:
    """Return the nodes that stand for a graph's inputs, in order."""
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def is_weight(node: fx.Node) -> bool:
    """Return whether an input is a parameter or a buffer: always the same tensor of a module."""
    return _WEIGHT in node.meta.get("tensor_dict", {}) or isinstance(
        node.meta.get("example_value"), torch.nn.Parameter
    )


def is_of_dynamo(node: fx.Node) -> bool:
    """Return whether an input is of a graph of Dynamo: else gradients are computed around it."""
    return "example_value" in node.meta


def mark_weight(node: fx.Node) -> None:
    """Say of an input of a graph that it is a weight, as Dynamo does."""
    node.meta["tensor_dict"] = {_WEIGHT: "guarded"}
