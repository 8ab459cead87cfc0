"""U-Net, which says of every pixel what it belongs to.

Source: Ronneberger et al. 2015, arXiv:1505.04597. From the configuration TorchBench runs
(milesial/Pytorch-UNet) come batch normalisation, padded convolutions and bilinear upsampling.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import settled


def _double_convolution(channels_in: int, between: int, channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, between, 3, padding=1),
        nn.BatchNorm2d(between),
        nn.ReLU(),
        nn.Conv2d(between, channels, 3, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """A contracting path, an expanding one, and skips between equal sizes."""

    def __init__(self, width: int, depth: int, classes: int) -> None:
        """Build `depth` halvings below the first level.

        Args:
            width: channels of the first level; each further one doubles them, but the deepest,
                which upsampling without weights leaves as they are.
            depth: number of halvings.
            classes: number of classes.
        """
        super().__init__()
        sizes = [width * 2 ** min(level, depth - 1) for level in range(depth + 1)]
        self.first = _double_convolution(3, width, width)
        self.down = nn.ModuleList(
            _double_convolution(before, after, after) for before, after in pairwise(sizes)
        )
        self.up = nn.ModuleList(
            _double_convolution(2 * size, size, max(size // 2, width))
            for size in reversed(sizes[:-1])
        )
        self.classify = nn.Conv2d(width, classes, 1)
        self.pool = nn.MaxPool2d(2)
        self.upsample = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return logits `[B, classes, H, W]` for images `[B, 3, H, W]`."""
        features = self.first(images)
        skips = []
        for contract in self.down:
            skips.append(features)
            features = contract(self.pool(features))
        for expand in self.up:
            features = expand(self._join(features, skips.pop()))
        logits: torch.Tensor = self.classify(features)
        return logits

    def _join(self, features: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        """Upsample features, pad them to the size of the skip, and put them behind it."""
        larger = self.upsample(features)
        rows, columns = skip.shape[2] - larger.shape[2], skip.shape[3] - larger.shape[3]
        sides = (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2)
        return torch.cat([skip, functional.pad(larger, sides)], dim=1)


def build_unet(
    *, batch_size: int, height: int, image_width: int, width: int, depth: int, classes: int
) -> LoadedModel:
    """Build U-Net with random images.

    Args:
        batch_size: number of images.
        height: height in pixels.
        image_width: width in pixels.
        width: channels of the first level.
        depth: number of halvings.
        classes: number of classes.
    """
    images = torch.rand(batch_size, 3, height, image_width)
    return settled(LoadedModel(module=UNet(width, depth, classes), args=(images,)))
