"""Compiling one graph with any backend, whole-model ones among them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.dynamo.backends.graphs import MOST_VARIANTS, as_key, put_weights
from dynamometer.dynamo.capture import internals
from dynamometer.dynamo.placeholders import is_of_dynamo, is_weight, placeholders
from dynamometer.dynamo.private import private

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dynamometer.dynamo.backends.backends import Backend


def compile_graph(
    backend: Backend, graph: fx.GraphModule, inputs: Sequence[Any]
) -> Callable[..., Any]:
    """Return what computes a graph.

    Args:
        backend: the chosen one.
        graph: of Dynamo or AOTAutograd; may be changed.
        inputs: that it is called with, as Dynamo hands them to backends.

    Raises:
        Exception: whatever the backend raises.
    """
    # A graph of AOTAutograd is captured anew, as it was when it was tuned: compilers that are given
    # it as it is raise at its first call, and runtimes take its inputs for numbers.
    of_dynamo = all(map(is_of_dynamo, placeholders(graph)))
    if of_dynamo and isinstance(backend, ThroughDynamo) and not backend.settings.get("freezing"):
        compiled: Callable[..., Any] = _compiler(backend)(graph, list(inputs))
        return compiled
    return WithWeightsInside(backend, graph)


def _compiler(backend: ThroughDynamo) -> Callable[..., Any]:
    """Return what a backend hands each graph to."""
    named = backend.compiler
    if not isinstance(named, str):
        return named
    if not backend.settings:
        return internals.compiler_of(named)
    settings = dict(backend.settings)
    wrapper = "_TorchCompileInductorWrapper" if named == "inductor" else "_TorchCompileWrapper"
    of_name = () if named == "inductor" else (named,)
    found: Callable[..., Any] = private(f"torch.{wrapper}")(*of_name, None, settings, None)
    return found


class NotCompiledError(Exception):
    """Raised where a graph can't be compiled when it is called; its cause says why."""


class WithWeightsInside:
    """A graph as a module that holds its weights, as backends want it that make them constants.

    There is one module for each set of weights that the graph is called with, and for each set of
    sizes, unless the backend goes through Dynamo, which sees to sizes itself. Weights are as they
    were when it was compiled. Graphs of AOTAutograd have none: parameters are inputs as others are.
    """

    def __init__(self, backend: Backend, graph: fx.GraphModule) -> None:
        """Compile nothing yet."""
        self._backend = backend
        self._graph = fx.GraphModule(graph, copy.deepcopy(graph.graph))
        nodes = placeholders(self._graph)
        self._weights = [index for index, node in enumerate(nodes) if is_weight(node)]
        self._others = [index for index, node in enumerate(nodes) if not is_weight(node)]
        self._variants: list[tuple[list[torch.Tensor], list[Any], Callable[..., Any]]] = []

    def __call__(self, *given: Any) -> Any:
        """Compute what the graph does."""
        others = [_as_input(given[index]) for index in self._others]
        sizes = [] if self._backend.captures else list(map(_size, others))
        for weights, known, compiled in self._variants:
            if known == sizes and all(
                given[index] is each for index, each in zip(self._weights, weights, strict=True)
            ):
                return compiled(*others)
        weights = [given[index] for index in self._weights]
        try:
            compiled = self._backend.compile(self._module(weights), tuple(others), {})
        except Exception as error:  # whatever a backend raises
            raise NotCompiledError(error) from error
        self._variants = [(weights, sizes, compiled), *self._variants[: MOST_VARIANTS - 1]]
        return compiled(*others)

    def _module(self, weights: Sequence[torch.Tensor]) -> fx.GraphModule:
        module = fx.GraphModule(self._graph, copy.deepcopy(self._graph.graph))
        put_weights(module, dict(zip(self._weights, weights, strict=True)))
        module.recompile()
        return module.eval()


def _as_input(value: Any) -> Any:
    """Return a parameter as a tensor, which nobody takes for a constant: training changes it."""
    return value.detach() if isinstance(value, nn.Parameter) else value


def _size(value: Any) -> Any:
    """Return what of an input a module that was compiled as a whole is made for."""
    return value.shape if isinstance(value, torch.Tensor) else as_key(value)
