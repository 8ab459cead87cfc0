"""Graphs that tests capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from dynamometer.results.values.graphs import Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ORIGIN = Origin(suite="mine", model="net")


class Net(nn.Module):
    """A module with weights, a buffer that it writes to, and an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.linear = nn.Linear(8, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, places: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Look up, and mix."""
        found = self.table(places).mean(dim=1) * scale
        return torch.softmax(self.norm(self.linear(found)).masked_fill(found[:, :4] > 1, -1.0), -1)


def net_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs of a `Net`."""
    return torch.randint(0, 11, (6, 3)), torch.rand(6, 1)


def captured(
    function: Callable[..., Any], *args: Any, **options: Any
) -> tuple[fx.GraphModule, list[Any]]:
    """Return the one graph that Dynamo captures of a function, with its inputs."""
    found: list[tuple[fx.GraphModule, list[Any]]] = []

    def keep(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            found.append((graph, list(given)))
            return graph.forward(*given)

        return run

    torch.compiler.reset()
    with torch.no_grad():
        torch.compile(function, backend=keep, fullgraph=True, **options)(*args)
    ((graph, inputs),) = found
    return graph, inputs
