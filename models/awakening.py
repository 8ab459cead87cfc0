"""Values for parameters that training starts at nothing, or at one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from dynamometer.common.suite import LoadedModel

_GAINS = (0.25, 0.75)
_NEAR_ONE = (0.9, 1.1)
_SMALL = 0.02
"""Standard deviation, as that of most transformers' weights."""

_LARGEST_GAIN = 1e-2  # scales of layers begin below it


def awake(loaded: LoadedModel) -> LoadedModel:
    """Give the parameters that training starts at zero or one a value, as training would have.

    Last layers, gains of branches and scales of layers begin at zero or nearly so. As they are, the
    outputs wouldn't depend on the inputs, or not on most of the layers. Biases begin at zero and
    weights of normalisations at one: a backend could leave them out.

    Returns:
        The same model, with a note that says so if it has any such parameter.
    """
    asleep = [
        (name, parameter)
        for name, parameter in loaded.module.named_parameters()
        if _is_plain(parameter) and _is_asleep(parameter.detach())
    ]
    if not asleep:
        return loaded
    for name, parameter in asleep:
        _wake(name, parameter)
    note = "Parameters that training starts at zero or one are random."
    return replace(loaded, notes=(*loaded.notes, note))


def _is_plain(parameter: nn.Parameter) -> bool:
    """Tell whether each value of a parameter is there, and can be written by itself."""
    return (
        not isinstance(parameter, nn.UninitializedParameter)
        and parameter.layout is torch.strided
        and parameter.device.type != "meta"
        and parameter.is_floating_point()
        and parameter.itemsize > 1
        and parameter.numel() > 0
        and all(
            stride or size == 1
            for size, stride in zip(parameter.shape, parameter.stride(), strict=True)
        )
    )


def _is_asleep(values: torch.Tensor) -> bool:
    low, high = float(values.min()), float(values.max())
    is_small = abs(low) < _LARGEST_GAIN and (values.numel() > 1 or not low)
    return low == high and (low == 1 or is_small)


@torch.no_grad()
def _wake(name: str, parameter: nn.Parameter) -> None:
    if bool(parameter.flatten()[0] == 1):
        nn.init.uniform_(parameter, *_NEAR_ONE)
    elif "bias" in name.rpartition(".")[2] or max(parameter.shape, default=1) != parameter.numel():
        nn.init.normal_(parameter, std=_SMALL)
    else:  # one value a channel, or one
        nn.init.uniform_(parameter, *_GAINS)
