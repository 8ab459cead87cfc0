"""The interface of the original TorchDynamo, over PyTorch's own engine.

    with optimize(my_compiler):
        model(x)

A backend is any callable from an FX graph module and example inputs to a callable.
"""

from __future__ import annotations

import copy
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from torch import fx
from torch.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    set_stance,
    substitute_in_graph,
)

from dynamometer.dynamo import state
from dynamometer.dynamo.capture import internals
from dynamometer.dynamo.capture.internals import (
    graph_break,
    mark_dynamic,
    mark_static,
    maybe_mark_dynamic,
)
from dynamometer.dynamo.state import forget_compiled as reset

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "Optimize",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "graph_break",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
    "set_stance",
    "substitute_in_graph",
]

Compiler = Callable[[fx.GraphModule, list[Any]], Callable[..., Any]]


@dataclass
class Fallback:
    """A backend whose failures leave a graph to eager, with a warning the first time.

    Attributes:
        backend: what compiles.
        failures: what it raised, one for each graph.
    """

    backend: Compiler
    failures: list[Exception] = field(default_factory=list)

    def __call__(self, graph: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        """Compile a graph, or give it back as it was."""
        # A backend may have changed what it was given when it raises.
        as_it_was = fx.GraphModule(graph, copy.deepcopy(graph.graph))
        try:
            return self._compiled(graph, example_inputs)
        except internals.control_flow():
            raise
        except Exception as error:  # noqa: BLE001  whatever a user's compiler raises
            # What the backend held when it failed, such as all memory there was, is let go.
            traceback.clear_frames(error.__traceback__)
            self.failures.append(error)
            if len(self.failures) == 1:
                name = getattr(self.backend, "__name__", repr(self.backend))
                warnings.warn(
                    f"the backend {name} failed on a graph, which runs in eager, as will others it"
                    f" fails on: {type(error).__name__}: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            forward: Callable[..., Any] = as_it_was.forward
            return forward

    def _compiled(self, graph: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        compiled: Any = self.backend(graph, example_inputs)
        if not callable(compiled):
            msg = f"a backend gives a callable, not {compiled!r}"
            raise TypeError(msg)
        found: Callable[..., Any] = compiled
        return found


class _Context:
    """One of Dynamo's own decorators, which it refuses to be entered as a context unless told."""

    _dynamo: Any

    def __call__(self, function: Callable[..., Any]) -> Any:
        """Apply it to a function, or a module, for when that is called."""
        return self._dynamo(function)

    def __enter__(self) -> Self:
        with state.context_managers():
            self._dynamo.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._dynamo.__exit__(kind, error, trace)


class Optimize(_Context):
    """Compiles what it is applied to, or what is called while it is entered."""

    def __init__(
        self,
        backend: str | Compiler,
        nopython: bool = False,  # noqa: FBT001, FBT002  as in the original
        *,
        dynamic: bool | None = None,
        raise_backend_errors: bool = False,
    ) -> None:
        """Compile nothing yet.

        Args:
            backend: a name PyTorch knows, or a callable.
            nopython: raise where what is called can't be captured in one graph.
            dynamic: whether sizes are dynamic dimensions from the start; `None` for once they vary.
            raise_backend_errors: whether a user's backend's failures are raised, as those of
                PyTorch's own always are.

        Raises:
            Exception: PyTorch knows no backend of that name; says which it knows.
        """
        compiler = internals.compiler_of(backend)
        self._fallback = Fallback(compiler)
        raises = raise_backend_errors or isinstance(backend, str)
        self._dynamo = internals.optimize(
            compiler if raises else self._fallback,
            nopython=nopython,
            dynamic=dynamic,
        )

    @property
    def backend_failures(self) -> tuple[Exception, ...]:
        """What the backend raised on graphs that run in eager instead, one for each."""
        return tuple(self._fallback.failures)


optimize = Optimize


class _Run(_Context):
    """Runs what is compiled, and compiles nothing new."""

    def __init__(self) -> None:
        self._dynamo = internals.run_only()


def run(function: Callable[..., Any] | None = None) -> Any:
    """Use what is compiled, in a function or in a `with`, and compile nothing new.

    Without a function what it gives is a context, and a decorator as well.

    What was compiled for other inputs than these runs in eager.
    """
    return _Run() if function is None else internals.run_only(function)
