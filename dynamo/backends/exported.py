"""`torch.export` and nothing else: what exporting a model as a whole costs and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.declared import WholeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn


def _exported(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return the exported program as a module, on the same weights."""
    import torch

    from dynamometer.dynamo.backends.programs import refuse_training

    refuse_training(args, kwargs.values(), module.parameters())
    return torch.export.export(module, args, dict(kwargs), strict=False).module()


export = WholeModel(
    name="export",
    summary="torch.export of the model as a whole, run in eager; inference",
    compiler=_exported,
)
