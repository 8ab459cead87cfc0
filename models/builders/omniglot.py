"""The classifier of Omniglot's characters that meta-learning is shown on.

Source: Vinyals et al. 2016, arXiv:1606.04080, section 4.1, as used by Finn et al. 2017,
arXiv:1703.03400: blocks of a 3x3 convolution, batch normalisation, ReLU and pooling. TorchBench
evaluates it without adapting it.
"""

from __future__ import annotations

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import settled

BLOCKS = 3
SIDE = 28  # pixels; three blocks leave one


def build_omniglot(
    *, batch_size: int, images: int, width: int, ways: int, batch_statistics: bool
) -> LoadedModel:
    """Build the classifier with random images.

    Args:
        batch_size: number of groups of images.
        images: number of images in a group.
        width: channels of every convolution.
        ways: number of classes.
        batch_statistics: normalise by the batch's own statistics in evaluation, too.
    """
    layers: list[nn.Module] = []
    channels = 1
    for _ in range(BLOCKS):
        norm = nn.BatchNorm2d(width, track_running_stats=not batch_statistics)
        layers += [nn.Conv2d(channels, width, 3), norm, nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    module = nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, ways))
    loaded = LoadedModel(module=module, args=(torch.rand(batch_size * images, 1, SIDE, SIDE),))
    return loaded if batch_statistics else settled(loaded)
