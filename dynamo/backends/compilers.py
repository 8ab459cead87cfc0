"""The two ways a compiler is applied: to each graph of Dynamo, or to a module as a whole.

Torch is imported by what compiles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from dynamometer.dynamo.backends.declared import Declared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import fx, nn

    from dynamometer.dynamo.backends.programs import Compute, Program


@dataclass(frozen=True, kw_only=True)
class ThroughDynamo(Declared):
    """`torch.compile` with a compiler.

    Attributes:
        compiler: a name `torch.compile` knows, or a callable from an FX graph module and example
            inputs to a callable.
        full_graph: whether Dynamo must capture all in one graph, or raise.
        dynamic: whether sizes are dynamic; `None` for as Dynamo is set, `False` for never.
        settings: what `torch.compile` hands to a compiler that it knows by name.
    """

    compiler: str | Callable[..., Any]
    full_graph: bool = False
    dynamic: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    captures: bool = True

    def preload(self, device: str) -> None:
        """Import Dynamo with what its backends share."""
        from dynamometer.dynamo.private import GoneError, private

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
        import torch

        from dynamometer.dynamo import state

        options: dict[str, Any] = {"fullgraph": self.full_graph, "dynamic": self.dynamic}
        if state.has_limit_per_arm():
            # Since torch 2.13. Arms are copies of one model and share its code objects: without
            # this each looks through the others' compiled entries and counts against their limit.
            options["isolate_recompiles"] = True
        if self.settings:
            options["options"] = dict(self.settings)
        compiled: Callable[..., Any] = torch.compile(function, backend=self.compiler, **options)
        return compiled

    def set_to(self, settings: Mapping[str, Any]) -> Self:
        """Return it with other settings of its compiler, or of `torch.compile` for a named one."""
        if isinstance(self.compiler, str):
            return replace(self, settings={**self.settings, **settings})
        return super().set_to(settings)


@dataclass(frozen=True, kw_only=True)
class WholeModel(Declared):
    """A compiler that takes a module as a whole, and never sees Dynamo's graphs.

    Attributes:
        compiler: turns a module with its positional and keyword inputs into a callable.
    """

    compiler: Callable[..., Any]

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Compile the module for inputs like these."""
        compiled: Callable[..., Any] = self.compiler(module, args, kwargs)
        return compiled


class Runtime(ABC):
    """What computes programs of tensors; its settings are the fields of who derives from it."""

    @abstractmethod
    def build(self, program: Program) -> Compute:
        """Return what computes a program.

        Raises:
            UnsupportedError: the runtime can't, or would compute something else.
            Exception: whatever the runtime raises of what it can't do.
        """


class GraphCompiler(Runtime):
    """A runtime as the compiler of Dynamo's graphs."""

    def __call__(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compile a graph."""
        from dynamometer.dynamo.backends.graphs import SpecializedGraph

        return SpecializedGraph(graph, inputs, self.build)


class ModuleCompiler(Runtime):
    """A runtime as the compiler of whole modules."""

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Compile a module for inputs like these."""
        from dynamometer.dynamo.backends.exported_module import ExportedModule

        return ExportedModule(module, args, kwargs, self.build)
