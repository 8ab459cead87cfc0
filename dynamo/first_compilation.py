"""What compiling a small module spends most of its time on, and need not unless that is timed.

That is what the first compilation of a process imports and looks up, which is done once for all its
forks, and what every compilation finds out for logs alone. Studies that time it do neither.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Import and look up; compiles nothing, and starts no thread."""
    for name in _MODULES:
        with suppress(ImportError):
            importlib.import_module(name)
    with suppress(Exception):  # of a backend's own; whoever compiles meets it again
        torch.compiler.list_backends()
    torch.overrides.get_overridable_functions()
    torch.overrides.get_testing_overrides()


@contextmanager
def without_what_is_logged() -> Iterator[None]:
    """Leave out what compilations find out for logs alone, unless a variable asks for logs.

    Of modules that nothing has imported nothing is left out.
    """
    left_out = () if any(map(os.environ.get, _SHOW_LOGS)) else _FOR_LOGS
    with ExitStack() as putting_back:
        for module_name, name, given in left_out:
            module = sys.modules.get(module_name)
            if hasattr(module, name):
                putting_back.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, lambda *_, given=given, **__: given)
        yield
