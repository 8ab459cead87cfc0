"""Super SloMo, which makes up the frames between two of a video.

Source: Jiang et al. 2017, arXiv:1712.00080: one U-Net estimates the flow between the frames, one
refines the flow to the frame between and tells what is visible; sections 3.1 to 3.3. The loss is
part of the forward pass, as in TorchBench; its perceptual part needs VGG-16 up to conv4_3
(Simonyan and Zisserman 2014, arXiv:1409.1556), here with random weights.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel

BETWEEN = 7  # frames that can be made up
RECONSTRUCTION_WEIGHT, WARPING_WEIGHT, PERCEPTUAL_WEIGHT = 204.0, 102.0, 0.005
PERCEPTION = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512)
"""Channels of the convolutions of VGG-16; 0 is a pooling."""


class Flows(NamedTuple):
    """Displacements in pixels, `[B, 2, H, W]`, horizontal first."""

    forward: torch.Tensor
    backward: torch.Tensor


def _double_convolution(channels_in: int, channels: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, kernel, padding=kernel // 2),
        nn.LeakyReLU(0.1),
        nn.Conv2d(channels, channels, kernel, padding=kernel // 2),
        nn.LeakyReLU(0.1),
    )


class UNet(nn.Module):
    """Average pooling on the way down, interpolation on the way up, and skips between."""

    def __init__(self, channels_in: int, channels_out: int, widths: list[int]) -> None:
        """Build a network with these channels at each level; its first kernels are larger."""
        super().__init__()
        kernels = [5] + [3] * (len(widths) - 2)
        self.first = _double_convolution(channels_in, widths[0], 7)
        self.down = nn.ModuleList(
            _double_convolution(before, after, kernel)
            for (before, after), kernel in zip(pairwise(widths), kernels, strict=True)
        )
        upward = list(pairwise(widths[::-1]))
        self.lift = nn.ModuleList(nn.Conv2d(*sizes, 3, padding=1) for sizes in upward)
        self.join = nn.ModuleList(nn.Conv2d(2 * size, size, 3, padding=1) for _, size in upward)
        self.last = nn.Conv2d(widths[0], channels_out, 3, padding=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Transform `[B, channels_in, H, W]` to `[B, channels_out, H, W]`."""
        features = self.first(images)
        skips = []
        for down in self.down:
            skips.append(features)
            features = down(functional.avg_pool2d(features, 2))
        for lift, join in zip(self.lift, self.join, strict=True):
            larger = functional.interpolate(features, scale_factor=2.0, mode="bilinear")
            lifted = functional.leaky_relu(lift(larger), 0.1)
            features = functional.leaky_relu(join(torch.cat([lifted, skips.pop()], dim=1)), 0.1)
        return functional.leaky_relu(self.last(features), 0.1)


class SuperSloMo(nn.Module):
    """Interpolates frames, and compares them with the true ones."""

    def __init__(self, widths: list[int], perception: list[int]) -> None:
        """Build both networks and the one that compares.

        Args:
            widths: channels of the U-Nets' levels.
            perception: channels of the comparing network's convolutions; 0 is a pooling.
        """
        super().__init__()
        self.flow = UNet(6, 4, widths)
        self.refinement = UNet(20, 5, widths)
        self.perception = _perception(perception)

    def forward(
        self,
        index: torch.Tensor,
        first: torch.Tensor,
        last: torch.Tensor,
        truth: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Interpolate between frames `[B, 3, H, W]`.

        Args:
            index: which of the frames between is wanted, 0 to 6, `[B]`.
            first: the frames before.
            last: the frames after.
            truth: the true frames between.

        Returns:
            The frames between, `[B, 3, H, W]`, and the loss.
        """
        estimated = self.flow(torch.cat([first, last], dim=1))
        flows = Flows(estimated[:, :2], estimated[:, 2:])
        time = ((index + 1).to(first.dtype) / (BETWEEN + 1))[:, None, None, None]
        to_first = time * (time * flows.backward - (1 - time) * flows.forward)
        to_last = (1 - time) * ((1 - time) * flows.forward - time * flows.backward)
        warped = (_warp(first, to_first), _warp(last, to_last))
        refined = self.refinement(
            torch.cat([first, last, *flows, to_last, to_first, warped[1], warped[0]], dim=1)
        )
        seen_first = (1 - time) * refined[:, 4:].sigmoid()
        seen_last = time * (1 - refined[:, 4:].sigmoid())
        from_first = seen_first * _warp(first, to_first + refined[:, :2])
        from_last = seen_last * _warp(last, to_last + refined[:, 2:4])
        frame = (from_first + from_last) / (seen_first + seen_last)
        warping = sum(functional.l1_loss(image, truth) for image in warped)
        warping += functional.l1_loss(_warp(first, flows.backward), last)
        warping += functional.l1_loss(_warp(last, flows.forward), first)
        smoothness = _roughness(flows.forward) + _roughness(flows.backward)
        return frame, self._loss(frame, truth) + WARPING_WEIGHT * warping + smoothness

    def _loss(self, frame: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Compare frames by their pixels and by what a classifier makes of them."""
        perceived = functional.mse_loss(self.perception(frame), self.perception(truth))
        pixels = functional.l1_loss(frame, truth)
        return RECONSTRUCTION_WEIGHT * pixels + PERCEPTUAL_WEIGHT * perceived


def _perception(sizes: list[int]) -> nn.Sequential:
    """Build VGG's convolutions, without activation after the last; they aren't trained."""
    layers: list[nn.Module] = []
    channels = 3
    for size in sizes:
        if size:
            layers += [nn.Conv2d(channels, size, 3, padding=1), nn.ReLU()]
            channels = size
        else:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers[:-1]).requires_grad_(requires_grad=False)


def _warp(image: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    """Look up every pixel of `[B, C, H, W]` where its flow `[B, 2, H, W]` points."""
    rows, columns = image.shape[2:]
    x = torch.arange(columns, device=image.device) + flow[:, 0]
    y = torch.arange(rows, device=image.device)[:, None] + flow[:, 1]
    grid = torch.stack([2 * x / columns - 1, 2 * y / rows - 1], dim=-1)
    return functional.grid_sample(image, grid, align_corners=False)


def _roughness(flow: torch.Tensor) -> torch.Tensor:
    """Average how much neighbouring pixels' flows differ."""
    return flow.diff(dim=3).abs().mean() + flow.diff(dim=2).abs().mean()


def build_super_slomo(
    *, batch_size: int, image_size: int, widths: list[int], perception: list[int] | None = None
) -> LoadedModel:
    """Build Super SloMo with random frames.

    Args:
        batch_size: number of frames to be made up.
        image_size: height and width in pixels, divisible by 2 to the number of poolings.
        widths: channels of the U-Nets' levels.
        perception: channels of the comparing network's convolutions, VGG-16's by default.
    """
    module = SuperSloMo(widths, perception or list(PERCEPTION))
    index = torch.randint(BETWEEN, (batch_size,))
    frames = (torch.rand(batch_size, 3, image_size, image_size) for _ in range(3))
    return LoadedModel(module=module, args=(index, *frames))
