"""Statistics for normalisation layers that were never trained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from dynamometer.models.builders.awakening import awake

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel

SAMPLES = 4  # of the inputs, from which the statistics are taken


def settled(loaded: LoadedModel, samples: tuple[torch.Tensor, ...] | None = None) -> LoadedModel:
    """Set a model's running statistics to those of some inputs, as training would have.

    With the zeros and ones they start from, random weights shrink or grow the signal with every
    layer, until the outputs agree with anything: mobilenet_v2 would give logits of 1e-9 and
    resnet152 some of 1e8, and YOLOv3's would hardly depend on the image.

    Args:
        loaded: a model whose positional inputs are tensors with the batch first.
        samples: positional inputs to take the statistics from; `None` for the model's first.

    Returns:
        The same model, with a note that says so if it has any such layer.
    """
    loaded = awake(loaded)  # what is given other values later would have other statistics
    # There is no public base class of all that track statistics.
    norms = [
        module
        for module in loaded.module.modules()
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.InstanceNorm2d)
        and module.track_running_stats
    ]
    if not norms:
        return loaded
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0  # keep nothing of what was there
    with torch.no_grad():
        loaded.module.train()(*(samples or (inputs[:SAMPLES] for inputs in loaded.args)))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    note = f"Normalisation has the statistics of {SAMPLES} inputs."
    return replace(loaded, notes=(*loaded.notes, note))
