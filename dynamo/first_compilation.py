"""What the first compilation of a process imports and looks up, done once for all its forks.

In a process of its own it takes longer than compiling a small module does. Where compiling is
timed it stays where it is.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from pathlib import Path

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
_FUNCTION_NAMES = "torch._dynamo.funcname_cache"
_FILES = (
    "activation", "batchnorm", "container", "conv", "dropout", "linear", "module", "normalization",
    "pooling", "sparse",
)  # fmt: skip
"""Of torch.nn.modules, in which most calls are that Dynamo follows."""


def preload() -> None:
    """Import and look up; compiles nothing, and starts no thread."""
    for name in _MODULES:
        with suppress(ImportError):
            importlib.import_module(name)
    torch.overrides.get_overridable_functions()
    torch.overrides.get_testing_overrides()
    folder = Path(torch.nn.__file__).parent
    with suppress(ImportError, AttributeError):
        function_at = importlib.import_module(_FUNCTION_NAMES).get_funcname
        for file in (folder / "functional.py", *(folder / f"modules/{each}.py" for each in _FILES)):
            function_at(str(file), 1)
