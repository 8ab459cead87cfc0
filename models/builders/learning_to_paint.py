"""The painter of Learning to Paint: chooses the next strokes from canvas and target.

Source: Huang et al. 2019, arXiv:1903.04411. The actor is the ResNet-18 of He et al. 2015,
arXiv:1512.03385, begun by a strided 3x3 convolution and ended by a sigmoid; five strokes of
thirteen numbers each make its 65 outputs.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import settled

STROKES = 5
STROKE_NUMBERS = 13  # ten of shape and position, three of colour


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, added to their input."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        """Build a block; its shortcut is a convolution where it changes the shape."""
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Transform `[B, C, H, W]`."""
        return functional.relu(self.body(image) + self.shortcut(image))


class Painter(nn.Module):
    """A residual network whose stages all halve the image."""

    def __init__(self, channels_in: int, width: int, stages: list[int]) -> None:
        """Build the network.

        Args:
            channels_in: channels of the observation.
            width: channels of the first stage; each further one doubles them.
            stages: number of blocks in each stage.
        """
        super().__init__()
        blocks: list[nn.Module] = [
            nn.Conv2d(channels_in, width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
        before = width
        for stage, count in enumerate(stages):
            channels = width * 2**stage
            for block in range(count):
                blocks.append(ResidualBlock(before, channels, stride=2 if block == 0 else 1))
                before = channels
        self.features = nn.Sequential(*blocks)
        self.strokes = nn.Linear(before, STROKES * STROKE_NUMBERS)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Choose strokes, `[B, 65]` in (0, 1), for an observation `[B, 9, H, W]`."""
        pooled = functional.adaptive_avg_pool2d(self.features(observation), 1).flatten(1)
        return torch.sigmoid(self.strokes(pooled))


def build_learning_to_paint(
    *, batch_size: int, image_size: int, width: int, stages: list[int]
) -> LoadedModel:
    """Build the painter with random canvases and targets, at the first of 40 steps.

    Args:
        batch_size: number of paintings.
        image_size: height and width in pixels.
        width: channels of the first stage.
        stages: number of blocks in each stage.
    """
    canvas_and_target = torch.rand(batch_size, 6, image_size, image_size)
    step = torch.full((batch_size, 1, image_size, image_size), 1 / 40)
    axis = torch.linspace(0, 1, image_size)
    coordinates = torch.stack(torch.meshgrid(axis, axis, indexing="ij")).expand(
        batch_size, -1, -1, -1
    )
    observation = torch.cat([canvas_and_target, step, coordinates], dim=1)
    return settled(LoadedModel(module=Painter(9, width, stages), args=(observation,)))
