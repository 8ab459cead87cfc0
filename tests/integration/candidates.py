"""A model that computes much in vain, and backends for it, most of them bad in one way.

Imported by worker processes, through `PYTHONPATH`, as `candidates:<name>`. On their clock every
call takes the same, so nothing is ever faster than eager: which candidate is chosen is tested on
records that are made up, and here what becomes of the bad ones.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from simulated_machine import install
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Compiled = Callable[..., Any]

_WASTE = 3

install(reading_s=0.002, start_s=time.perf_counter())


class Wasteful(nn.Module):
    """Doubles its input, after computing much that comes to nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Double."""
        y = x
        for _ in range(_WASTE):
            y = (y @ x).sin()
        return x * 2 + (y * 0).sum()


def wasteful() -> tuple[nn.Module, torch.Tensor]:
    """Make the model with its input."""
    return Wasteful(), torch.rand(16, 16)


def in_two_calls() -> tuple[nn.Module, list[tuple[torch.Tensor]]]:
    """Make the model with the inputs of a step that calls it twice."""
    return Wasteful(), [(torch.rand(16, 16),), (torch.ones(16, 16),)]


def with_threads_of_its_own() -> tuple[nn.Module, torch.Tensor]:
    """Make the model, which sets how many threads it is computed with."""
    torch.set_num_threads(2)
    return wasteful()


class TwoParts(nn.Module):
    """The same with a break between two graphs."""

    def __init__(self) -> None:
        """Make the parts, which can be trained."""
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Call one part, then the other."""
        y = self.first(x).relu()
        torch._dynamo.graph_break()
        return self.second(y).tanh()


def two_parts() -> tuple[nn.Module, torch.Tensor]:
    """Make the model with its input."""
    return TwoParts(), torch.rand(4, 8)


def _input(args: Sequence[Any]) -> torch.Tensor:
    (found,) = (each for each in args if isinstance(each, torch.Tensor))
    return found


def honest(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute what is needed alone."""
    del graph, inputs
    return lambda *args: (_input(args) * 2,)


def wrong(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Be faster still."""
    del graph, inputs
    return lambda *args: (_input(args) + 1e-3,)


def remembers(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Give what was right for the inputs it is compiled with."""
    del graph
    answer = _input(inputs) * 2
    return lambda *_: (answer.clone(),)


def changes_inputs(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly, in place."""
    del graph, inputs

    def call(*args: Any) -> tuple[torch.Tensor]:
        x = _input(args)
        answer = x * 2
        x.add_(1)
        return (answer,)

    return call


def crashes(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """End the process while compiling."""
    del inputs
    os.kill(os.getpid(), signal.SIGSEGV)
    return graph.forward


def hangs(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Never come back from a call, and say so in a file where the test looks for it."""
    del graph, inputs

    def call(*_: Any) -> None:
        with Path(os.environ["HANGS"]).open("a") as file:
            file.write(".")
        signal.pause()

    return call


def hoards(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Take more memory than there is."""
    del inputs
    kept: list[torch.Tensor] = []
    while len(kept) < 10**6:
        kept.append(torch.ones(2**28, dtype=torch.uint8))
    return graph.forward


def fails(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Know no operator at all."""
    del graph, inputs
    msg = "not today"
    raise NotImplementedError(msg)


def as_it_is(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Run the graph."""
    del inputs
    return graph.forward
