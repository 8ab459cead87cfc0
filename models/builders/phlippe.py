"""The residual and the dense network for CIFAR-10 of a course at the University of Amsterdam.

Source: He et al. 2015, arXiv:1512.03385, section 4.2, and Huang et al. 2016, arXiv:1608.06993;
sizes from Phillip Lippe's tutorial on them (phlippe/uvadlc_notebooks, tutorial 5).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import settled

CLASSES = 10


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions added to their input, which a strided one fits to them if need be."""

    def __init__(self, channels_in: int, channels: int) -> None:
        """Build a block that halves the image where it changes the number of channels."""
        super().__init__()
        halves = channels_in != channels
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, 2 if halves else 1, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.shortcut = nn.Conv2d(channels_in, channels, 1, 2) if halves else nn.Identity()

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Transform `[B, C, H, W]`."""
        return functional.relu(self.body(image) + self.shortcut(image))


class DenseLayer(nn.Module):
    """A bottleneck and a 3x3 convolution whose output joins its input."""

    def __init__(self, channels: int, growth: int, bottleneck: int) -> None:
        """Build a layer that adds `growth` channels by way of `bottleneck * growth`."""
        super().__init__()
        between = bottleneck * growth
        self.body = nn.Sequential(
            *_activated(channels),
            nn.Conv2d(channels, between, 1, bias=False),
            *_activated(between),
            nn.Conv2d(between, growth, 3, padding=1, bias=False),
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Widen `[B, C, H, W]` to `[B, growth + C, H, W]`."""
        return torch.cat([self.body(image), image], dim=1)


def _activated(channels: int) -> tuple[nn.Module, nn.Module]:
    return nn.BatchNorm2d(channels), nn.ReLU()


def _head(channels: int) -> tuple[nn.Module, ...]:
    """Average over the image and classify."""
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)


def build_resnet(
    *, batch_size: int, image_size: int, stages: list[int], widths: list[int]
) -> LoadedModel:
    """Build the residual network with random images.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        stages: number of blocks in each stage.
        widths: channels of each stage; all but the first stage halve the image.
    """
    layers: list[nn.Module] = [
        nn.Conv2d(3, widths[0], 3, padding=1, bias=False),
        *_activated(widths[0]),
    ]
    before = widths[0]
    for count, channels in zip(stages, widths, strict=True):
        for _ in range(count):
            layers.append(ResidualBlock(before, channels))
            before = channels
    return _classifier([*layers, *_head(before)], "fan_out", batch_size, image_size)


def build_densenet(
    *, batch_size: int, image_size: int, stages: list[int], growth: int, bottleneck: int
) -> LoadedModel:
    """Build the dense network with random images.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        stages: number of layers in each dense block.
        growth: channels a layer adds.
        bottleneck: channels between a layer's convolutions, in multiples of `growth`.
    """
    channels = growth * bottleneck
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1)]
    for stage, count in enumerate(stages):
        if stage:
            layers += [
                *_activated(channels),
                nn.Conv2d(channels, channels // 2, 1, bias=False),
                nn.AvgPool2d(2),
            ]
            channels //= 2
        for _ in range(count):
            layers.append(DenseLayer(channels, growth, bottleneck))
            channels += growth
    layers += [*_activated(channels), *_head(channels)]
    return _classifier(layers, "fan_in", batch_size, image_size)


def _classifier(
    layers: list[nn.Module],
    kaiming_mode: Literal["fan_in", "fan_out"],
    batch_size: int,
    image_size: int,
) -> LoadedModel:
    """Chain layers, draw the convolutions' weights for ReLU, and add random images."""
    module = nn.Sequential(*layers)
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode=kaiming_mode, nonlinearity="relu")
    images = torch.randn(batch_size, 3, image_size, image_size)
    return settled(LoadedModel(module=module, args=(images,)))
