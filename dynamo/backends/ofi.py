"""TorchScript's own optimizations for inference, oneDNN's fusions among them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.declared import WholeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn


@dataclass(frozen=True, kw_only=True)
class OptimizedForInference(WholeModel):
    """`torch.jit.optimize_for_inference`, while torch has it."""

    def available(self, device: str) -> str | None:
        """Return why it can't be used where torch has it no more."""
        import torch

        if not hasattr(torch.jit, "optimize_for_inference"):
            return f"torch {torch.__version__} has no torch.jit.optimize_for_inference any more"
        return super().available(device)


def _optimized(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Trace, freeze and optimize; keyword inputs are bound to the names of `forward`."""
    import inspect

    import torch

    from dynamometer.dynamo.backends.backends import TorchScript
    from dynamometer.dynamo.backends.programs import refuse_training

    refuse_training(args, kwargs.values(), module.parameters())
    names: list[str] = []
    if args and kwargs:  # what is traced by both position and name is no script module
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
        names = list(bound)[: len(args)]
        args, kwargs = (), bound
    frozen: Any = TorchScript().compile(module, args, kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit is deprecated
        optimized: Callable[..., Any] = torch.jit.optimize_for_inference(frozen)
    if not names:
        return optimized

    def call(*positional: Any, **named: Any) -> Any:
        return optimized(**dict(zip(names, positional, strict=True)), **named)

    return call


ofi = OptimizedForInference(
    name="ofi",
    summary="torch.jit.trace, freeze and optimize_for_inference (oneDNN fusions); inference",
    devices=("cpu",),
    compiler=_optimized,
)
