"""Backends that compute something else than eager, each in its own way, and one that does not.

Imported by worker processes, through `PYTHONPATH`, as `wrong_backends:<name>`. Each takes an FX
graph module and example inputs, as any backend of Dynamo does.
"""

from __future__ import annotations

import gc
import inspect
import os
import signal
import time
import traceback
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo.backends.compilers import ThroughDynamo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Compiled = Callable[..., Any]
    Change = Callable[[tuple[torch.Tensor, ...]], tuple[torch.Tensor, ...]]

TEN_TOLERANCES = 1e-3
"""Ten times what is tolerated in float32 inference on a CPU."""


def _changing_outputs(graph: torch.fx.GraphModule, change: Change) -> Compiled:
    def call(*args: Any) -> tuple[torch.Tensor, ...]:
        return change(tuple(graph(*args)))

    return call


def honest(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Run the graph."""
    return graph.forward


def wants_what_is_logged(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Run the graph, but refuse it where Dynamo doesn't time its guards for the log."""
    from torch._dynamo import guards

    if inspect.isfunction(guards.profile_guard_manager):  # torch's own is no Python function
        msg = "what is logged is left out"
        raise RuntimeError(msg)
    return graph.forward


def perturbs_one_element(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Be off in one element of the last output."""

    def change(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        nudge = torch.zeros_like(outputs[-1])
        nudge.view(-1)[-1:] = TEN_TOLERANCES * outputs[-1].abs().max().detach()
        return (*outputs[:-1], outputs[-1] + nudge)

    return _changing_outputs(graph, change)


def returns_other_strides(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Return the right elements in another order in memory."""

    def change(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (outputs[0].t().contiguous().t(), *outputs[1:])

    return _changing_outputs(graph, change)


def swaps_outputs(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Return the outputs in reverse order."""
    return _changing_outputs(graph, lambda outputs: outputs[::-1])


def returns_nan(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Return NaN in one element of the first output."""

    def change(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        spoiled = outputs[0].clone()
        spoiled.view(-1)[0] = torch.nan
        return (spoiled, *outputs[1:])

    return _changing_outputs(graph, change)


def rounds_to_bfloat16(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Return what half precision leaves of the outputs."""

    def change(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return tuple(each.to(torch.bfloat16).to(each.dtype) for each in outputs)

    return _changing_outputs(graph, change)


def mutates_an_input(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly, and leave the model's input changed."""

    def call(*args: Any) -> Any:
        outputs = graph(*args)
        with torch.no_grad():
            next(each for each in args if _is_input(each)).add_(1.0)
        return outputs

    return call


def replaces_relu(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly, and have torch's own activation be wrong and slow from then on."""
    name = "aten::relu"
    if name not in _LIBRARIES:
        _LIBRARIES[name] = torch.library.Library("aten", "IMPL")
        _LIBRARIES[name].impl("relu", _doubling, "CPU")
    return avoids_relu(graph, inputs)


_LIBRARIES: dict[str, torch.library.Library] = {}


def _doubling(x: torch.Tensor) -> torch.Tensor:
    time.sleep(0.003)
    return 2 * x.clamp(min=0)


def avoids_relu(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly, whoever has replaced the kernel of that activation."""
    for node in graph.graph.nodes:
        if node.target is torch.relu:
            node.target, node.kwargs = torch.clamp, {"min": 0}
    graph.recompile()
    return graph.forward


def drops_a_gradient(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly, and cut the first parameter off from the loss."""

    def call(*args: Any) -> Any:
        cut = next((each for each in args if isinstance(each, torch.nn.Parameter)), None)
        return graph(*(each.detach() if each is cut else each for each in args))

    return call


def errs_at_five(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly, but for batches of five."""

    def call(*args: Any) -> Any:
        five = any(len(each) == 5 for each in args if _is_input(each))
        return tuple(each + five for each in graph(*args))

    return call


def drops_a_gradient_at_two(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly, and cut the first parameter off from the loss of batches of two."""
    drops = drops_a_gradient(graph, inputs)

    def call(*args: Any) -> Any:
        two = any(len(each) == 2 for each in args if _is_input(each))
        return drops(*args) if two else graph(*args)

    return call


def fails_on_exponentials(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Know no exponential."""
    if any(node.target == "exp" for node in graph.graph.nodes):
        msg = "no such operator: exp"
        raise NotImplementedError(msg)
    return graph.forward


def fails(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Know no operator at all."""
    msg = "not today"
    raise NotImplementedError(msg)


def tires_alone(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly until timed by itself, when garbage isn't collected."""
    return _tiring(graph, together=False)


def tires_together(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly until timed beside other arms."""
    return _tiring(graph, together=True)


def _tiring(graph: torch.fx.GraphModule, *, together: bool) -> Compiled:
    def call(*args: Any) -> Any:
        if not gc.isenabled() and together == is_called_by("time_together"):
            msg = "tired"
            raise RuntimeError(msg)
        return graph(*args)

    return call


def fades(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Compute rightly until timed beside other arms, and give zeros from then on."""
    has_faded = False

    def call(*args: Any) -> Any:
        nonlocal has_faded
        has_faded = has_faded or is_called_by("time_together")
        return tuple(torch.zeros_like(each) if has_faded else each for each in graph(*args))

    return call


def is_called_by(name: str) -> bool:
    """Return whether a function of a name is running, however far up."""
    return any(frame.f_code.co_name == name for frame, _ in traceback.walk_stack(None))


def _is_input(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)


def crashes(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """End the process."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return graph.forward


def wrong_on_embeddings(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Be wrong on graphs with an embedding, and right on all others."""
    if not any("embedding" in str(node.target) for node in graph.graph.nodes):
        return graph.forward
    return _changing_outputs(graph, lambda outputs: tuple(each + 1 for each in outputs))


lacks_a_package = ThroughDynamo(name="lacking", compiler=honest, packages=("no_such_package",))
