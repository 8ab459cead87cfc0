"""A captured graph as a module: weights belong to it, and what else it takes is its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.dynamo.graphs.inputs import draw
from dynamometer.dynamo.graphs.saved import load
from dynamometer.results.values.graphs import TensorInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def load_graph(path: Path, device: str) -> LoadedModel:
    """Read a graph, with inputs that are drawn anew.

    Args:
        path: of its file.
        device: type of the one it is to be run on.

    Raises:
        NotImplementedError: it was captured on another type of device.
        StoreError: the file is damaged.
        UnsaveableError: the graph calls what a file may not name.
    """
    graph, description = load(path)
    tensors = [each for each in description.inputs if isinstance(each, TensorInput)]
    if any(each.device.partition(":")[0] not in {device, "cpu"} for each in tensors) or (
        device != "cpu" and all(each.device == "cpu" for each in tensors)
    ):
        msg = f"it was captured on {description.origin.device}, and holds that device"
        raise NotImplementedError(msg)
    given = draw(description.inputs, torch.initial_seed() % 2**63)
    weights = [isinstance(each, TensorInput) and each.is_weight for each in description.inputs]
    args = tuple(each for each, is_weight in zip(given, weights, strict=True) if not is_weight)
    return LoadedModel(
        module=Replay(graph, given, weights),
        args=args,
        keeps_dtypes=True,
        graph_key=description.key,
    )


class Replay(nn.Module):
    """A graph with its weights."""

    def __init__(
        self, graph: fx.GraphModule, given: Sequence[Any], weights: Sequence[bool]
    ) -> None:
        """Take a graph, all it takes, and which of that are weights."""
        super().__init__()
        self.graph = graph
        self._weights = [
            f"weight_{place}" if is_weight else None for place, is_weight in enumerate(weights)
        ]
        for name, value in zip(self._weights, given, strict=True):
            if name is not None and value.requires_grad:
                self.register_parameter(name, nn.Parameter(value.detach()))
            elif name is not None:
                self.register_buffer(name, value)

    def forward(self, *args: Any) -> Any:
        """Call the graph."""
        rest = iter(args)
        return self.graph(
            *[next(rest) if name is None else getattr(self, name) for name in self._weights]
        )
