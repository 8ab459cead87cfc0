"""The discriminator of DCGAN, which is what TorchBench evaluates of the pair.

Source: Radford et al. 2015, arXiv:1511.06434.
"""

from __future__ import annotations

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import settled

COARSEST = 4  # height and width of the last feature map


class Discriminator(nn.Module):
    """Strided convolutions down to a 4x4 map, and one that reads it off."""

    def __init__(self, image_size: int, width: int) -> None:
        """Build the layers.

        Args:
            image_size: height and width in pixels, 4 times a power of 2.
            width: channels after the first convolution; each further one doubles them.
        """
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
        size, channels = image_size // 2, width
        while size > COARSEST:
            layers += [
                nn.Conv2d(channels, 2 * channels, 4, 2, 1, bias=False),
                nn.BatchNorm2d(2 * channels),
                nn.LeakyReLU(0.2),
            ]
            size, channels = size // 2, 2 * channels
        layers += [nn.Conv2d(channels, 1, COARSEST, bias=False), nn.Sigmoid()]
        self.layers = nn.Sequential(*layers)
        self.apply(_initialise)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the probability that `[B, 3, H, W]` images are real, `[B, 1, 1, 1]`."""
        probability: torch.Tensor = self.layers(images)
        return probability


def _initialise(module: nn.Module) -> None:
    """Draw weights as section 4 of the paper does."""
    if isinstance(module, nn.Conv2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)


def build_dcgan(*, batch_size: int, image_size: int, width: int) -> LoadedModel:
    """Build the discriminator with random images.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels, 4 times a power of 2.
        width: channels after the first convolution.
    """
    images = torch.randn(batch_size, 3, image_size, image_size)
    return settled(LoadedModel(module=Discriminator(image_size, width), args=(images,)))
