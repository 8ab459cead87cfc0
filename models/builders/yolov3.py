"""YOLOv3 with spatial pyramid pooling: boxes at three resolutions, before any is suppressed.

Source: Redmon and Farhadi 2018, arXiv:1804.02767; the pyramid is that of He et al. 2014,
arXiv:1406.4729, as placed by the configuration yolov3-spp.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import settled

CLASSES = 80
ANCHORS = (
    ((116, 90), (156, 198), (373, 326)),
    ((30, 61), (62, 45), (59, 119)),
    ((10, 13), (16, 30), (33, 23)),
)
"""Widths and heights in pixels, from the coarsest resolution to the finest."""
POOLS = (5, 9, 13)
SCALES = len(ANCHORS)


def _convolution(channels_in: int, channels: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(channels),
        nn.LeakyReLU(0.1),
    )


class ResidualBlock(nn.Module):
    """A 1x1 convolution to half the channels and a 3x3 one back, added to their input."""

    def __init__(self, channels: int) -> None:
        """Build the convolutions."""
        super().__init__()
        half = channels // 2
        self.body = nn.Sequential(_convolution(channels, half, 1), _convolution(half, channels, 3))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Transform `[B, C, H, W]`."""
        transformed: torch.Tensor = features + self.body(features)
        return transformed


class PyramidPool(nn.Module):
    """Joins features with their maxima over ever larger squares."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Widen `[B, C, H, W]` to `[B, 4 C, H, W]`."""
        pooled = [functional.max_pool2d(features, size, 1, size // 2) for size in POOLS]
        return torch.cat([*reversed(pooled), features], dim=1)


class Neck(nn.Module):
    """What makes one resolution's features out of the backbone's and the coarser neck's."""

    def __init__(self, channels_in: int, channels: int, *, pyramid: bool) -> None:
        """Alternate 1x1 convolutions to `channels` and 3x3 ones to twice as many."""
        super().__init__()
        first = [_convolution(channels_in, channels, 1), _convolution(channels, 2 * channels, 3)]
        layers = [*first, _convolution(2 * channels, channels, 1)]
        if pyramid:
            joined = (len(POOLS) + 1) * channels
            layers += [nn.Sequential(PyramidPool(), _convolution(joined, channels, 1))]
        layers += [_convolution(channels, 2 * channels, 3), _convolution(2 * channels, channels, 1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Transform `[B, channels_in, H, W]` to `[B, channels, H, W]`."""
        transformed: torch.Tensor = self.layers(features)
        return transformed


class Head(nn.Module):
    """Predicts boxes at one resolution: three for each cell, sized by anchors."""

    def __init__(self, channels: int, anchors: tuple[tuple[int, int], ...]) -> None:
        """Build the convolutions; the first has twice as many channels as its input."""
        super().__init__()
        numbers = 5 + CLASSES
        self.layers = nn.Sequential(
            _convolution(channels, 2 * channels, 3),
            nn.Conv2d(2 * channels, len(anchors) * numbers, 1),
        )
        self.register_buffer("anchors", torch.tensor(anchors).float()[:, None, None])

    def forward(self, features: torch.Tensor, stride: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Predict boxes.

        Args:
            features: `[B, C, H, W]`.
            stride: pixels between two cells.

        Returns:
            Centres, sizes, objectness and classes as probabilities, `[B, 3 H W, 85]`, and the
            numbers these were made from, `[B, 3, H, W, 85]`.
        """
        batch, _, rows, columns = features.shape
        anchors = self.get_buffer("anchors")
        raw = self.layers(features).view(batch, len(anchors), -1, rows, columns)
        raw = raw.permute(0, 1, 3, 4, 2)
        y = torch.arange(rows, device=features.device)
        x = torch.arange(columns, device=features.device)
        cells = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)
        centres = (raw[..., :2].sigmoid() + cells) * stride
        sizes = raw[..., 2:4].exp() * anchors
        boxes = torch.cat([centres, sizes, raw[..., 4:].sigmoid()], dim=-1)
        return boxes.flatten(1, 3), raw


class YoloV3(nn.Module):
    """Darknet-53 with a neck and a head for each of its last three resolutions."""

    def __init__(self, width: int, blocks: list[int]) -> None:
        """Build the network.

        Args:
            width: channels of the first convolution; each of Darknet's stages doubles them.
            blocks: number of residual blocks in each stage, at least three stages.
        """
        super().__init__()
        sizes = [width * 2 ** (stage + 1) for stage in range(len(blocks))]
        self.first = _convolution(3, width, 3)
        self.stages = nn.ModuleList(
            nn.Sequential(
                _convolution(size // 2, size, 3, stride=2),
                *(ResidualBlock(size) for _ in range(count)),
            )
            for size, count in zip(sizes, blocks, strict=True)
        )
        coarse_to_fine = sizes[: -SCALES - 1 : -1]
        self.necks = nn.ModuleList()
        self.lifts = nn.ModuleList()
        for scale, size in enumerate(coarse_to_fine):
            if scale:
                self.lifts.append(_convolution(size, size // 2, 1))
            joined = size + size // 2 if scale else size
            self.necks.append(Neck(joined, size // 2, pyramid=scale == 0))
        self.heads = nn.ModuleList(
            Head(size // 2, anchors) for size, anchors in zip(coarse_to_fine, ANCHORS, strict=True)
        )

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Predict boxes in images `[B, 3, H, W]`, whose sides the last stride must divide.

        Returns:
            Boxes of all resolutions, `[B, N, 85]`, and for each what they were made from.
        """
        features = self.first(images)
        maps = []
        for stage in self.stages:
            features = stage(features)
            maps.append(features)
        boxes, raw = [], []
        for scale, (neck, head) in enumerate(zip(self.necks, self.heads, strict=True)):
            backbone = maps.pop()
            if scale:
                lifted = functional.interpolate(self.lifts[scale - 1](features), scale_factor=2.0)
                backbone = torch.cat([lifted, backbone], dim=1)
            features = neck(backbone)
            predicted, numbers = head(features, images.shape[-1] // features.shape[-1])
            boxes.append(predicted)
            raw.append(numbers)
        return torch.cat(boxes, dim=1), raw


def build_yolov3(
    *, batch_size: int, height: int, image_width: int, width: int, blocks: list[int]
) -> LoadedModel:
    """Build YOLOv3 with random images.

    Args:
        batch_size: number of images.
        height: height in pixels.
        image_width: width in pixels.
        width: channels of the first convolution.
        blocks: number of residual blocks in each stage.
    """
    images = torch.rand(batch_size, 3, height, image_width)
    return settled(LoadedModel(module=YoloV3(width, blocks), args=(images,)))
