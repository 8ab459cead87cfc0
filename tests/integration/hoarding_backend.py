"""Backends that run graphs as they are, and keep memory they don't need.

Imported by worker processes, through `PYTHONPATH`, as `hoarding_backend:<name>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MIB = 2**20
HOARD: list[torch.Tensor] = []


def _keep(mib: int) -> None:
    HOARD.append(torch.ones(mib * MIB, dtype=torch.uint8))


def keeps_16_mib(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Keep less than a call takes."""
    _keep(16)
    return graph.forward


def keeps_128_mib(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Keep more than the model and a call take."""
    _keep(128)
    return graph.forward


def takes_32_mib_more(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Keep nothing, but hold more while a call runs."""

    def call(*args: Any) -> Any:
        more = torch.ones(32 * MIB, dtype=torch.uint8)
        outputs = graph(*args)
        del more
        return outputs

    return call
