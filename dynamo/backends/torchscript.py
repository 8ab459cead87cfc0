"""TorchScript, which never sees Dynamo: `ts` traced and frozen, `ofi` optimized as well.

Torch 2.15 says that torch.jit is deprecated.
"""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.compilers import WholeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn


def _frozen(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Trace on the example inputs and freeze.

    Positional inputs are traced by position, keyword inputs by name; a model that takes
    both is traced by name, its positional inputs bound to the names of its `forward`.
    """
    return _traced(module, args, kwargs, lambda frozen: frozen)


def _optimized(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Trace, freeze and optimize."""
    import torch

    from dynamometer.dynamo.backends.unsupported import refuse_training

    refuse_training(args, kwargs.values(), module.parameters())
    return _traced(module, args, kwargs, torch.jit.optimize_for_inference)


def _traced(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    finish: Callable[[Any], Callable[..., Any]],
) -> Callable[..., Any]:
    """Trace and freeze a module, and finish what comes of it.

    Inputs by name are traced by their places: of a module that takes any, as what wraps another
    does, TorchScript knows no names.
    """
    if not kwargs:
        return _finished(finish, module, args)
    from torch import nn

    names, count = list(kwargs), len(args)

    class ByPosition(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module
            self.training = module.training

        def forward(self, *given: Any) -> Any:
            return self.module(*given[:count], **dict(zip(names, given[count:], strict=True)))

    finished = _finished(finish, ByPosition(), (*args, *kwargs.values()))

    def call(*positional: Any, **named: Any) -> Any:
        return finished(*positional, *(named[name] for name in names))

    return call


def _finished(
    finish: Callable[[Any], Callable[..., Any]], module: nn.Module, inputs: tuple[Any, ...]
) -> Callable[..., Any]:
    import torch

    trace: Callable[..., Any] = torch.jit.trace  # not annotated by torch
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # that all of it is deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        # Of copies: tracing runs the module, which may change its inputs.
        traced = trace(module, copy.deepcopy(inputs), strict=False, check_trace=False)
        return finish(torch.jit.freeze(traced))


torchscript = WholeModel(
    name="ts",
    summary="TorchScript: torch.jit.trace and freeze; inference; deprecated by torch",
    of_torch=("jit.trace", "jit.freeze"),
    compiler=_frozen,
)
ofi = WholeModel(
    name="ofi",
    summary="torch.jit.trace, freeze and optimize_for_inference (oneDNN fusions); inference",
    devices=("cpu",),
    of_torch=("jit.trace", "jit.freeze", "jit.optimize_for_inference"),
    compiler=_optimized,
)
