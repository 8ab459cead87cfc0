"""Arms: anything that turns a module and its inputs into a callable of the same signature.

A backend of Dynamo is one kind; TorchScript, which never sees Dynamo, another; the module as it
is, the baseline, a third. What is returned is called by the very same step for every arm.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch

from dynamometer.dynamo import state
from dynamometer.dynamo.private import GoneError, private

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
            module: on the device, in the mode it is run in; this arm's own copy.
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


@dataclass(frozen=True)
class Baseline:
    """The module as it is."""

    captures: bool = False

    def available(self, device: str) -> str | None:
        """Give no reason against any device type."""
        del device
        return None

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return the module back."""
        del args, kwargs
        return module

    def compile_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function back."""
        return function


@dataclass(frozen=True)
class DynamoBackend:
    """`torch.compile` with a backend.

    Attributes:
        compiler: a name `torch.compile` knows, or a callable from an FX graph module and example
            inputs to a callable.
        devices: device types it works on; empty for all.
        package: an importable package it needs.
        full_graph: whether Dynamo must capture all in one graph, or raise.
        dynamic: whether sizes are dynamic; `None` for as Dynamo is set, `False` for never.
    """

    compiler: str | Callable[..., Any]
    devices: tuple[str, ...] = ()
    package: str | None = None
    full_graph: bool = False
    captures: bool = True
    dynamic: bool | None = None

    def available(self, device: str) -> str | None:
        """Check the device type and the package."""
        if self.devices and device not in self.devices:
            return f"{self.compiler} runs on {', '.join(self.devices)} only"
        if self.package and find_spec(self.package) is None:
            return f"{self.compiler} needs the package {self.package}: pip install {self.package}"
        return None

    def preload(self, device: str) -> None:
        """Import Dynamo with what its backends share."""
        del device
        with suppress(GoneError):  # whoever compiles first imports it then
            private("torch._inductor.compile_fx")

    def prepare(self, device: str) -> None:
        """Keep nothing beyond the process."""

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Wrap the module; graphs are captured and compiled at the first call."""
        del args, kwargs
        return self.compile_function(module)

    def compile_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function, or a module, which is one as well."""
        options: dict[str, Any] = {"fullgraph": self.full_graph, "dynamic": self.dynamic}
        if state.has_limit_per_arm():
            # Since torch 2.13. Arms are copies of one model and share its code objects: without
            # this each looks through the others' compiled entries and counts against their limit.
            options["isolate_recompiles"] = True
        compiled: Callable[..., Any] = torch.compile(function, backend=self.compiler, **options)
        return compiled


@dataclass(frozen=True)
class TorchScript(Baseline):
    """`torch.jit.trace` and `torch.jit.freeze`: the baseline that never sees Dynamo.

    torch 2.15 says that both are deprecated.
    """

    def available(self, device: str) -> str | None:
        """Return why it can't be used where torch has it no more."""
        del device
        for name in ("trace", "freeze"):
            if not hasattr(getattr(torch, "jit", None), name):
                return f"torch {torch.__version__} has no torch.jit.{name} any more"
        return None

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Trace on the example inputs and freeze.

        Positional inputs are traced by position, keyword inputs by name; a model that takes
        both is traced by name, its positional inputs bound to the names of its `forward`.
        """
        if not kwargs:
            return _frozen_trace(module, example_inputs=args)
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
        frozen = _frozen_trace(module, example_kwarg_inputs=bound)
        names = list(bound)[: len(args)]

        def call(*positional: Any, **named: Any) -> Any:
            return frozen(**dict(zip(names, positional, strict=True)), **named)

        return call if args else frozen


def _frozen_trace(module: nn.Module, **examples: Any) -> Callable[..., Any]:
    trace: Callable[..., Any] = torch.jit.trace  # not annotated by torch
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # that both are deprecated
        # Of copies: tracing runs the module, which may change its inputs.
        traced = trace(module, strict=False, check_trace=False, **copy.deepcopy(examples))
        frozen: Callable[..., Any] = torch.jit.freeze(traced)
    return frozen


baseline = Baseline()
eager = DynamoBackend("eager")
aot_eager = DynamoBackend("aot_eager")
cudagraphs = DynamoBackend("cudagraphs", devices=("cuda",))
torchscript = TorchScript()


def as_backend(value: object) -> Backend:
    """Take a backend as it is, and any other callable as a compiler for Dynamo.

    Raises:
        TypeError: it is neither.
    """
    if all(hasattr(value, method) for method in ("compile", "available", "captures")):
        return value  # type: ignore[return-value]  # the three members were just checked
    if callable(value):
        return DynamoBackend(value)
    msg = f"{value!r} is neither a backend nor a callable from a graph module to a callable"
    raise TypeError(msg)
