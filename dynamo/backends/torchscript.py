"""TorchScript, which never sees Dynamo: `ts` traced and frozen, `ofi` optimized as well.

Torch 2.15 says that torch.jit is deprecated.
"""

from __future__ import annotations

import copy
import warnings
from types import NoneType
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
    does, TorchScript knows no names. Numbers, texts and None, which it can't trace, are constants.
    """
    names, given = list(kwargs), (*args, *kwargs.values())
    constants = {index: value for index, value in enumerate(given) if isinstance(value, _PLAIN)}
    if not kwargs and not constants:
        return _finished(finish, module, args)
    from torch import nn

    from dynamometer.dynamo.backends.graphs import as_key

    places = [index for index in range(len(given)) if index not in constants]

    class ByPosition(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module
            self.training = module.training

        def forward(self, *traced: Any) -> Any:
            known = {**constants, **dict(zip(places, traced, strict=True))}
            every = [known[index] for index in range(len(given))]
            named = zip(names, every[len(args) :], strict=True)
            return self.module(*every[: len(args)], **dict(named))

    finished = _finished(finish, ByPosition(), tuple(given[index] for index in places))

    def call(*positional: Any, **named: Any) -> Any:
        if len(positional) != len(args) or named.keys() != kwargs.keys():
            given_now = f"{len(positional)} inputs by position and {[*named]} by name"
            msg = f"the module was traced for {len(args)} and {names}, not for {given_now}"
            raise ValueError(msg)
        every = (*positional, *(named[name] for name in names))
        for index, value in constants.items():
            if as_key(every[index]) != as_key(value):
                msg = f"the module was traced for input {index} = {value!r}, not {every[index]!r}"
                raise ValueError(msg)
        return finished(*(every[index] for index in places))

    return call


_PLAIN = (NoneType, bool, int, float, complex, str)


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
