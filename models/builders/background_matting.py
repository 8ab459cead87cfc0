"""Background Matting, which cuts a person out, given a picture of what is behind.

Source: Sengupta et al. 2020, arXiv:2004.00626, section 3.1 and supplement: context switching of
four encodings, and decoders for matte and foreground.
"""

from __future__ import annotations

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.image_translation import Residual
from dynamometer.models.builders.settling import settled

IMAGE, BACKGROUND, SEGMENTATION, MOTION = 3, 3, 1, 4  # channels


class Matting(nn.Module):
    """Encodes an image and three hints about it, and decodes matte and foreground."""

    def __init__(self, width: int, shared_blocks: int, own_blocks: int) -> None:
        """Build the network.

        Args:
            width: channels of the first convolutions and of what a hint contributes.
            shared_blocks: residual blocks before the decoders part.
            own_blocks: residual blocks of each decoder.
        """
        super().__init__()
        deep = 4 * width
        self.image_shallow = nn.Sequential(*_first(IMAGE, width), *_halve(width))
        self.image_deep = nn.Sequential(*_halve(2 * width))
        hints = (BACKGROUND, SEGMENTATION, MOTION)
        self.hints = nn.ModuleList(
            nn.Sequential(*_first(channels, width), *_halve(width), *_halve(2 * width))
            for channels in hints
        )
        self.selectors = nn.ModuleList(nn.Sequential(*_mix(2 * deep, width)) for _ in hints)
        self.shared = nn.Sequential(
            *_mix(deep + len(hints) * width, deep), *_blocks(deep, shared_blocks)
        )
        self.matte = nn.Sequential(
            *_blocks(deep, own_blocks),
            *_double(deep, deep // 2),
            *_double(deep // 2, width),
            _last(width, 1),
            nn.Tanh(),
        )
        self.foreground = nn.Sequential(*_blocks(deep, own_blocks), *_double(deep, deep // 2))
        self.foreground_out = nn.Sequential(*_double(deep, width), _last(width, IMAGE))

    def forward(
        self,
        image: torch.Tensor,
        background: torch.Tensor,
        segmentation: torch.Tensor,
        motion: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Cut out.

        Args:
            image: `[B, 3, H, W]`.
            background: the same without the person, `[B, 3, H, W]`.
            segmentation: roughly where the person is, `[B, 1, H, W]`.
            motion: four neighbouring frames in grey, `[B, 4, H, W]`.

        Returns:
            The matte from -1 to 1, `[B, 1, H, W]`, and the foreground, `[B, 3, H, W]`.
        """
        shallow = self.image_shallow(image)
        deep = self.image_deep(shallow)
        selected = [
            select(torch.cat([deep, encode(hint)], dim=1))
            for select, encode, hint in zip(
                self.selectors, self.hints, (background, segmentation, motion), strict=True
            )
        ]
        shared = self.shared(torch.cat([deep, *selected], dim=1))
        foreground = torch.cat([self.foreground(shared), shallow], dim=1)
        return self.matte(shared), self.foreground_out(foreground)


def _activated(channels: int) -> tuple[nn.Module, nn.Module]:
    return nn.BatchNorm2d(channels), nn.ReLU()


def _first(channels_in: int, channels: int) -> list[nn.Module]:
    convolution = nn.Conv2d(channels_in, channels, 7, padding=3, padding_mode="reflect")
    return [convolution, *_activated(channels)]


def _last(channels_in: int, channels: int) -> nn.Conv2d:
    return nn.Conv2d(channels_in, channels, 7, padding=3, padding_mode="reflect")


def _halve(channels: int) -> list[nn.Module]:
    """Halve the image and double its channels."""
    return [nn.Conv2d(channels, 2 * channels, 3, 2, 1), *_activated(2 * channels)]


def _double(channels_in: int, channels: int) -> list[nn.Module]:
    """Double the image."""
    return [
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        nn.Conv2d(channels_in, channels, 3, padding=1),
        *_activated(channels),
    ]


def _mix(channels_in: int, channels: int) -> list[nn.Module]:
    return [nn.Conv2d(channels_in, channels, 1, bias=False), *_activated(channels)]


def _blocks(channels: int, count: int) -> list[nn.Module]:
    def convolution() -> nn.Conv2d:
        return nn.Conv2d(channels, channels, 3, padding=1, padding_mode="reflect")

    return [
        Residual(convolution(), *_activated(channels), convolution(), nn.BatchNorm2d(channels))
        for _ in range(count)
    ]


def build_background_matting(
    *, batch_size: int, image_size: int, width: int, shared_blocks: int, own_blocks: int
) -> LoadedModel:
    """Build Background Matting with random images.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        width: channels of the first convolutions.
        shared_blocks: residual blocks before the decoders part.
        own_blocks: residual blocks of each decoder.
    """
    module = Matting(width, shared_blocks, own_blocks)
    inputs = (
        torch.rand(batch_size, channels, image_size, image_size) * 2 - 1
        for channels in (IMAGE, BACKGROUND, SEGMENTATION, MOTION)
    )
    return settled(LoadedModel(module=module, args=tuple(inputs)))
