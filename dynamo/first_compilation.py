"""What compiling a small module spends most of its time on, and need not unless that is timed.

That is what the first compilation of a process imports and looks up, which is done once for all its
forks, and what every compilation finds out for logs alone. Studies that time it do neither.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from dynamometer.dynamo import state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import fx

_MODULES = (
    "torch._dynamo.dce_extra_outputs", "torch._dynamo.repro.after_dynamo",
    "torch._export.passes._node_metadata_hook",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._inductor.compiler_bisector", "torch._subclasses.schema_check_mode",
    "torch.distributed.tensor.experimental", "torch.export._leakage_detection_utils",
    "torch.export._trace", "torch.export._unlift", "torch.fx.experimental.validator",
)  # fmt: skip
"""Of torch 2.13; where another release has none of a name, it is left for the compilation."""

_FOR_LOGS = (
    # Splits whole source files into tokens, for the names of functions in traces of calls.
    ("torch._dynamo.symbolic_convert", "get_funcname", None),
    # Calls the guards some times and times one, after it has written 32 MB to flush the caches.
    ("torch._dynamo.guards", "profile_guard_manager", 0.0),
    # Write the whole configuration of Dynamo, Inductor, the compiler and functorch as JSON.
    ("torch._dynamo.utils", "_get_dynamo_config_for_logging", None),
    ("torch._dynamo.utils", "_scrubbed_inductor_config_for_logging", None),
    ("torch._dynamo.utils", "_compiler_config_for_logging", None),
    ("torch._dynamo.utils", "_functorch_config_for_logging", None),
    # Names and lines of all frames above the call.
    ("torch._dynamo.convert_frame", "log_dynamo_start", None),
)
"""Functions of torch 2.13 whose results are logged and not used, with what they give instead."""
_SHOW_LOGS = ("TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_DEBUG")


def preload() -> None:
    """Import, look up and trace; runs no kernel, and starts no thread."""
    for name in _MODULES:
        with suppress(ImportError):
            importlib.import_module(name)
    with suppress(Exception):  # of a backend's own; whoever compiles meets it again
        torch.compiler.list_backends()
    torch.overrides.get_overridable_functions()
    torch.overrides.get_testing_overrides()
    # It asks accelerators for the state of their generators, and forks can't use one that was used.
    if not torch.accelerator.is_available() and not _logs_are_read():
        _trace()


def _logs_are_read() -> bool:
    return any(map(os.environ.get, _SHOW_LOGS))


def _trace() -> None:
    """Have Dynamo trace a small model, and keep in its caches what it finds out once a process."""
    model = _Sample().eval()
    with suppress(Exception), state.without_gradients():  # whoever compiles meets it again
        torch.compile(model, backend=_never_run)(torch.empty(2, 3, 8, 8))
    state.forget_compiled()


class _Sample(nn.Module):
    """Layers that many models have."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=()):
            self.features = nn.Sequential(
                nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
                nn.MaxPool2d(2), nn.Dropout(),
            )  # fmt: skip
            self.blocks = nn.ModuleList([nn.Conv2d(4, 4, 1)])
            self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return an output for each image; in eager its inputs, as kernels start threads."""
        if not torch.compiler.is_compiling():
            return x
        x = self.features(x)
        for block in self.blocks:
            x = torch.cat([x, torch.sigmoid(block(x))], dim=1)[:, :4] + x
        x = nn.functional.relu(x).mean((2, 3)).view(x.size(0), -1)
        return torch.softmax(self.head(x), dim=-1)


def _never_run(_: fx.GraphModule, __: list[torch.Tensor]) -> Callable[..., Any]:
    """Return what gives the sample's only output without computing it."""
    return lambda *_: (torch.empty(()),)


@contextmanager
def without_what_is_logged() -> Iterator[None]:
    """Leave out what compilations find out for logs alone, unless a variable asks for logs.

    Of modules that nothing has imported nothing is left out.
    """
    left_out = () if _logs_are_read() else _FOR_LOGS
    with ExitStack() as putting_back:
        for module_name, name, given in left_out:
            module = sys.modules.get(module_name)
            if hasattr(module, name):
                putting_back.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, lambda *_, given=given, **__: given)
        yield
