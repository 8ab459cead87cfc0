"""What a backend says of itself, and the two ways a compiler is applied: per graph, or once.

Imports no torch, so that backends can be listed by a process that never needs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import fx, nn

    from dynamometer.dynamo.backends.programs import Compute, Program


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What is known of a backend before it is loaded.

    Attributes:
        name: what messages call it.
        summary: one line for whoever chooses.
        devices: device types it works on; empty for all.
        packages: importable packages it needs.
        extra: the extra of this distribution that installs them.
        trains: whether what it compiles can be trained.
    """

    name: str
    summary: str
    devices: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    extra: str | None = None
    trains: bool = False

    def available(self, device: str) -> str | None:
        """Return why it can't be used on a device type here, and what to install."""
        if self.devices and device not in self.devices:
            return f"{self.name} runs on {', '.join(self.devices)} only"
        missing = [package for package in self.packages if find_spec(package) is None]
        if not missing:
            return None
        noun = "package" if len(missing) == 1 else "packages"
        wanted = f"'dynamometer[{self.extra}]'" if self.extra else " ".join(missing)
        return f"{self.name} needs the {noun} {', '.join(missing)}: pip install {wanted}"

    def refusal(self, mode: Mode) -> str | None:
        """Return why it can't be used in a mode."""
        if mode is Mode.TRAINING and not self.trains:
            return f"{self.name} computes no gradients; leave out --training"
        return None


@dataclass(frozen=True, kw_only=True)
class ThroughDynamo(Declared):
    """`torch.compile` with a compiler that is imported where it is used.

    Attributes:
        compiler: turns an FX graph module and example inputs into a callable.
        full_graph: whether Dynamo must capture all in one graph, or raise.
        dynamic: whether sizes are dynamic; `None` for as Dynamo is set, `False` for never.
    """

    compiler: Callable[..., Any]
    full_graph: bool = False
    dynamic: bool | None = None
    captures: bool = True

    def preload(self, device: str) -> None:
        """Import Dynamo with what its backends share."""
        self._backend().preload(device)

    def prepare(self, device: str) -> None:
        """Keep nothing beyond the process."""

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Wrap the module; graphs are captured and compiled at the first call."""
        compiled: Callable[..., Any] = self._backend().compile(module, args, kwargs)
        return compiled

    def compile_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function, or a module, which is one as well."""
        compiled: Callable[..., Any] = self._backend().compile_function(function)
        return compiled

    def _backend(self) -> Any:
        from dynamometer.dynamo.backends.backends import DynamoBackend

        return DynamoBackend(self.compiler, full_graph=self.full_graph, dynamic=self.dynamic)


@dataclass(frozen=True, kw_only=True)
class WholeModel(Declared):
    """A compiler that takes a module as a whole, and never sees Dynamo's graphs.

    Attributes:
        compiler: turns a module with its positional and keyword inputs into a callable.
    """

    compiler: Callable[..., Any]
    captures: bool = False

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
