"""What every backend satisfies, and the backends that need no package of their own.

A backend turns a module and its inputs into a callable of the same signature. One of Dynamo is
one kind; TorchScript, which never sees Dynamo, another; the module as it is, the baseline, a third.
What is returned is called by the very same step for every arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.dynamo.backends.declared import Declared
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn


class Backend(Protocol):
    """A way of compiling a module."""

    @property
    def captures(self) -> bool:
        """Whether graphs come from Dynamo: capturing none is then a failure."""
        ...

    def available(self, device: str) -> str | None:
        """Return why this backend can't be used on a device type here, or `None` if it can."""
        ...

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return a callable with the module's signature; it may compile at its first call.

        Args:
            module: on the device, in the mode it is run in; this arm's own copy, of which it
                may replace parameters in inference.
            args: example positional inputs, on the device.
            kwargs: example keyword inputs, on the device.
        """
        ...


@runtime_checkable
class PreparesToolchain(Protocol):
    """A backend with work to do before anything is compiled that no model should be charged for."""

    def preload(self, device: str) -> None:
        """Import what compiling needs, once for all workers.

        Must start no thread and touch no device: worker processes are forked afterwards.
        """
        ...

    def prepare(self, device: str) -> None:
        """Make ready what lasts beyond this process, once per machine."""
        ...


@runtime_checkable
class FunctionBackend(Protocol):
    """A backend that compiles functions as well, such as an optimizer's step."""

    def compile_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callable with the function's signature; it may compile at its first call."""
        ...


@dataclass(frozen=True, kw_only=True)
class Baseline(Declared):
    """The module as it is."""

    name: str = BASELINE
    summary: str = "The module as it is, in eager"
    trains: bool = True

    @property
    def kind(self) -> str:
        """Say that it is what others are compared with."""
        return "baseline"

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return the module back."""
        del args, kwargs
        return module

    def compile_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function back."""
        return function


baseline = Baseline()
eager = ThroughDynamo(
    name="eager",
    summary="Dynamo's graphs run as they are: what capturing alone costs",
    compiler="eager",
    trains=True,
)
aot_eager = ThroughDynamo(
    name="aot_eager",
    summary="Dynamo's graphs and their backward graphs, traced by AOTAutograd, in eager",
    compiler="aot_eager",
    trains=True,
)
cudagraphs = ThroughDynamo(
    name="cudagraphs",
    summary="Dynamo's graphs in eager, recorded and replayed as CUDA graphs",
    compiler="cudagraphs",
    devices=("cuda",),
    trains=True,
)


def as_backend(value: object) -> Backend:
    """Take a backend as it is, and any other callable as a compiler for Dynamo.

    Raises:
        TypeError: it is neither.
    """
    if all(hasattr(value, method) for method in ("compile", "available", "captures")):
        return value  # type: ignore[return-value]  # the three members were just checked
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        return ThroughDynamo(name=name, compiler=value, trains=True)
    msg = f"{value!r} is neither a backend nor a callable from a graph module to a callable"
    raise TypeError(msg)
