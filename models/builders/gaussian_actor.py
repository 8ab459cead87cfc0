"""Policies that act by a squashed Gaussian, from a state or from pixels.

Source: soft actor-critic, Haarnoja et al. 2018, arXiv:1812.05905, with the range of deviations
and the orthogonal weights of its common implementations; DrQ, Kostrikov et al. 2020,
arXiv:2004.13649, appendix B, for the encoder of pixels.
"""

from __future__ import annotations

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel

LOG_DEVIATION = (-10.0, 2.0)  # range a deviation's logarithm is squashed into
FILTERS = 32


class GaussianActor(nn.Module):
    """A perceptron that gives mean and deviation of every action before squashing."""

    def __init__(self, encoder: nn.Module, features: int, hidden: int, actions: int) -> None:
        """Build the policy.

        Args:
            encoder: turns observations into features.
            features: number of these.
            hidden: features of the two hidden layers.
            actions: dimensions of an action.
        """
        super().__init__()
        self.encoder = encoder
        self.trunk = nn.Sequential(
            nn.Linear(features, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2 * actions),
        )
        self.apply(_initialise)

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return means and deviations, `[B, actions]` each, for a batch of observations."""
        mean, raw = self.trunk(self.encoder(observation)).chunk(2, dim=-1)
        low, high = LOG_DEVIATION
        return mean, torch.exp(low + (high - low) * (torch.tanh(raw) + 1) / 2)


class PixelEncoder(nn.Module):
    """Four 3x3 convolutions, of which only the first is strided, and a bounded projection."""

    def __init__(self, channels: int, image_size: int, features: int) -> None:
        """Build the encoder of square images."""
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(channels, FILTERS, 3, stride=2), nn.ReLU()]
        for _ in range(3):
            layers += [nn.Conv2d(FILTERS, FILTERS, 3), nn.ReLU()]
        size = (image_size - 3) // 2 + 1 - 3 * 2
        self.convolutions = nn.Sequential(*layers)
        self.projection = nn.Sequential(
            nn.Flatten(),
            nn.Linear(FILTERS * size * size, features),
            nn.LayerNorm(features),
            nn.Tanh(),
        )

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return `[B, features]` for pixels from 0 to 255, `[B, C, H, H]`."""
        encoded: torch.Tensor = self.projection(self.convolutions(pixels / 255))
        return encoded


def _initialise(module: nn.Module) -> None:
    """Draw orthogonal weights, with the gain of ReLU for convolutions."""
    if isinstance(module, nn.Linear | nn.Conv2d):
        gain = nn.init.calculate_gain("relu") if isinstance(module, nn.Conv2d) else 1.0
        nn.init.orthogonal_(module.weight, gain)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def build_state_actor(*, batch_size: int, state: int, actions: int, hidden: int) -> LoadedModel:
    """Build a policy that sees the state, with random states.

    Args:
        batch_size: number of states.
        state: dimensions of a state.
        actions: dimensions of an action.
        hidden: features of the hidden layers.
    """
    module = GaussianActor(nn.Identity(), state, hidden, actions)
    return LoadedModel(module=module, args=(torch.randn(batch_size, state),))


def build_pixel_actor(
    *,
    batch_size: int,
    channels: int,
    image_size: int,
    features: int,
    actions: int,
    hidden: int,
) -> LoadedModel:
    """Build a policy that sees stacked frames, with random pixels.

    Args:
        batch_size: number of observations.
        channels: channels of all frames of an observation.
        image_size: height and width in pixels.
        features: features the encoder gives.
        actions: dimensions of an action.
        hidden: features of the hidden layers.
    """
    encoder = PixelEncoder(channels, image_size, features)
    module = GaussianActor(encoder, features, hidden, actions)
    pixels = torch.randint(11, 228, (batch_size, channels, image_size, image_size)).float()
    return LoadedModel(module=module, args=(pixels,))
