"""Generators that translate images: of CycleGAN and of StarGAN.

Source: Zhu et al. 2017, arXiv:1703.10593, and Choi et al. 2017, arXiv:1711.09020. Both are the
network of Johnson et al. 2016, arXiv:1603.08155: two strided convolutions, residual blocks, and
two transposed convolutions. They differ in kernels, padding and normalisation.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import settled

DOWNSAMPLINGS = 2


class Style(NamedTuple):
    """What the two generators differ in."""

    kernel: int
    """Of strided and transposed convolutions."""
    padding: Literal["zeros", "reflect"]
    """Mode of padding of all others."""
    bias: bool
    own_statistics: bool
    """Whether an image is normalised by its own statistics in evaluation, too."""


CYCLEGAN = Style(kernel=3, padding="reflect", bias=True, own_statistics=True)
STARGAN = Style(kernel=4, padding="zeros", bias=False, own_statistics=False)


class Residual(nn.Module):
    """Adds what some layers make of their input to it."""

    def __init__(self, *layers: nn.Module) -> None:
        """Chain the layers."""
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Transform `[B, C, H, W]`."""
        transformed: torch.Tensor = features + self.body(features)
        return transformed


class Generator(nn.Module):
    """Translates images, towards a label where one is given."""

    def __init__(self, channels_in: int, width: int, blocks: int, style: Style) -> None:
        """Build the network.

        Args:
            channels_in: channels of an image and its label.
            width: channels of the first convolution; a downsampling doubles them.
            blocks: number of residual blocks.
            style: what the generators differ in.
        """
        super().__init__()
        sizes = [width * 2**level for level in range(DOWNSAMPLINGS + 1)]
        layers = [*_normalised(_wide(channels_in, width, style), style)]
        for size in sizes[:-1]:
            strided = nn.Conv2d(size, 2 * size, style.kernel, 2, 1, bias=style.bias)
            layers += _normalised(strided, style)
        for _ in range(blocks):
            first, second = _inner(sizes[-1], style), _inner(sizes[-1], style)
            layers.append(Residual(*_normalised(first, style), *_normalised(second, style)[:-1]))
        for size in reversed(sizes[:-1]):
            layers += _normalised(_transposed(2 * size, size, style), style)
        last = _wide(width, 3, style)
        self.layers = nn.Sequential(*layers, last, nn.Tanh())

    def forward(self, images: torch.Tensor, labels: torch.Tensor | None = None) -> torch.Tensor:
        """Translate images.

        Args:
            images: `[B, 3, H, W]`.
            labels: `[B, L]`, repeated over the image as further channels.

        Returns:
            Images `[B, 3, H, W]` from -1 to 1.
        """
        if labels is not None:
            everywhere = labels[:, :, None, None].expand(-1, -1, *images.shape[2:])
            images = torch.cat([images, everywhere], dim=1)
        translated: torch.Tensor = self.layers(images)
        return translated


def _wide(channels_in: int, channels: int, style: Style) -> nn.Conv2d:
    return nn.Conv2d(
        channels_in, channels, 7, padding=3, bias=style.bias, padding_mode=style.padding
    )


def _inner(channels: int, style: Style) -> nn.Conv2d:
    return nn.Conv2d(channels, channels, 3, padding=1, bias=style.bias, padding_mode=style.padding)


def _transposed(channels_in: int, channels: int, style: Style) -> nn.ConvTranspose2d:
    """Build what doubles an image, whichever the kernel."""
    return nn.ConvTranspose2d(
        channels_in, channels, style.kernel, 2, 1, output_padding=style.kernel % 2, bias=style.bias
    )


def _normalised(
    convolution: nn.Conv2d | nn.ConvTranspose2d, style: Style
) -> tuple[nn.Module, nn.Module, nn.Module]:
    """Follow a convolution by instance normalisation and ReLU."""
    tracked = not style.own_statistics
    norm = nn.InstanceNorm2d(convolution.out_channels, affine=tracked, track_running_stats=tracked)
    return convolution, norm, nn.ReLU()


def build_cyclegan(*, batch_size: int, image_size: int, width: int, blocks: int) -> LoadedModel:
    """Build CycleGAN's generator with random images.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        width: channels of the first convolution.
        blocks: number of residual blocks.
    """
    images = torch.rand(batch_size, 3, image_size, image_size) * 2 - 1
    return LoadedModel(module=Generator(3, width, blocks, CYCLEGAN), args=(images,))


def build_stargan(
    *, batch_size: int, image_size: int, labels: int, width: int, blocks: int
) -> LoadedModel:
    """Build StarGAN's generator with random images and labels.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        labels: number of labels, each of them set or not.
        width: channels of the first convolution.
        blocks: number of residual blocks.
    """
    images = torch.rand(batch_size, 3, image_size, image_size) * 2 - 1
    wanted = torch.randint(2, (batch_size, labels)).float()
    module = Generator(3 + labels, width, blocks, STARGAN)
    return settled(LoadedModel(module=module, args=(images, wanted)))
