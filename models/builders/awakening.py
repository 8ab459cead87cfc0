"""Values for parameters that training starts at nothing, at one, or where they hardly matter."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel

_GAINS = (0.25, 0.75)
_NEAR_ONE = (0.9, 1.1)
_SMALL = 0.02
"""Standard deviation, as that of most transformers' weights."""

_LARGEST_GAIN = 1e-2  # scales of layers begin below it

_LEAST_GAIN, _OWN_GAIN = 0.4, 3**-0.5
"""What a linear layer makes of inputs of size 1: layers that give less than the least get what
torch's own initialisation gives of any number of features. Weights of 0.02, as most transformers
begin with, give 0.55 of 768 features, but 0.16 of 64."""

_FEWEST = 64
"""Weights that don't fall below the least by chance."""


def awake(loaded: LoadedModel) -> LoadedModel:
    """Give the parameters that training starts at zero or one a value, as training would have.

    Last layers, gains of branches and scales of layers begin at zero or nearly so. As they are, the
    outputs wouldn't depend on the inputs, or not on most of the layers. Biases begin at zero and
    weights of normalisations at one: a backend could leave them out. Linear layers of few features
    give next to nothing with the small weights of many: attention would be to all alike, with a
    mask or without, and half precision would hide the difference.

    Returns:
        The same model, with notes that say so if it has any such parameter.
    """
    asleep = [
        (name, parameter)
        for name, parameter in loaded.module.named_parameters()
        if _is_plain(parameter) and _is_asleep(parameter.detach())
    ]
    for name, parameter in asleep:
        _wake(name, parameter)
    weak = [
        (weight, gain)
        for weight, features in _linear_weights(loaded.module)
        if 0 < (gain := _gain(weight, features)) < _LEAST_GAIN
    ]
    with torch.no_grad():
        for weight, gain in weak:
            weight.mul_(_OWN_GAIN / gain)
    notes = []
    if asleep:
        notes.append("Parameters that training starts at zero or one are random.")
    if weak:
        notes.append("Linear layers whose weights are so small that they hardly count have larger.")
    return replace(loaded, notes=(*loaded.notes, *notes)) if notes else loaded


def _linear_weights(module: nn.Module) -> list[tuple[nn.Parameter, int]]:
    """Give the weights of linear layers, each with how many features it takes.

    Those that are embeddings as well are left out: that is what they are first.
    """
    modules = list(module.modules())
    embeddings = {
        id(each.weight) for each in modules if isinstance(each, nn.Embedding | nn.EmbeddingBag)
    }
    found = {}
    for layer in modules:
        weight = dict(layer.named_parameters(recurse=False)).get("weight")
        if weight is None or id(weight) in embeddings or not _is_plain(weight):
            continue
        if weight.numel() < _FEWEST:
            continue
        if isinstance(layer, nn.Linear):
            found[id(weight)] = weight, layer.in_features
        elif hasattr(layer, "nf") and weight.dim() == 2:  # noqa: PLR2004  a matrix, as of transformers' Conv1D
            found[id(weight)] = weight, weight.shape[0]
    return list(found.values())


def _gain(weight: nn.Parameter, features: int) -> float:
    norm = float(torch.linalg.vector_norm(weight.detach(), dtype=torch.float64))
    return norm * math.sqrt(features / weight.numel())


def _is_plain(parameter: nn.Parameter) -> bool:
    """Return whether each value of a parameter is there, and can be written by itself."""
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
