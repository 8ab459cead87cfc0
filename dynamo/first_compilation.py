"""What compiling a small module spends most of its time on, and need not where nothing is timed.

That is what the first compilation of a process imports and looks up, which is done once for all its
forks, and what every compilation finds out for logs alone.
"""

from __future__ import annotations

import importlib
import os
from contextlib import suppress

import torch

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
    # Times the guards once, after it has written 32 MB to flush the caches: microseconds.
    ("torch._dynamo.guards", "profile_guard_manager", 0.0),
)
"""Functions of torch 2.13 whose results are logged and not used, with what they give instead."""
_SHOW_LOGS = ("TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_DEBUG")


def preload() -> None:
    """Import and look up; compiles nothing, and starts no thread."""
    for name in _MODULES:
        with suppress(ImportError):
            importlib.import_module(name)
    torch.compiler.list_backends()  # imports them, and looks for others' entry points
    torch.overrides.get_overridable_functions()
    torch.overrides.get_testing_overrides()
    if not any(map(os.environ.get, _SHOW_LOGS)):
        _leave_out_what_is_logged()


def _leave_out_what_is_logged() -> None:
    for module_name, name, given in _FOR_LOGS:
        with suppress(ImportError):
            module = importlib.import_module(module_name)
            if hasattr(module, name):
                setattr(module, name, lambda *_, given=given: given)
