"""Statistics for normalisation layers that were never trained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from dynamometer.common.suite import LoadedModel

SAMPLES = 4  # of the inputs, from which the statistics are taken


def settled(loaded: LoadedModel) -> LoadedModel:
    """Set a model's running statistics to those of its first inputs, as training would have.

    With the zeros and ones they start from, random weights shrink the signal with every layer,
    until the outputs agree with anything: YOLOv3's would hardly depend on the image.

    Args:
        loaded: a model whose positional inputs are tensors with the batch first.

    Returns:
        The same model, with a note that says so.
    """
    # There is no public base class of all that track statistics.
    norms = [
        module
        for module in loaded.module.modules()
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.InstanceNorm2d)
        and module.track_running_stats
    ]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0  # keep nothing of what was there
    with torch.no_grad():
        loaded.module.train()(*(inputs[:SAMPLES] for inputs in loaded.args))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    note = f"Normalisation has the statistics of the first {SAMPLES} inputs."
    return replace(loaded, notes=(*loaded.notes, note))
