"""DiT, a transformer that predicts the noise in the latent of an image.

Source: Peebles and Xie 2022, arXiv:2212.09748: blocks whose normalisation, and whose share in the
sum, the time step and the class decide (adaLN-Zero), sizes as in its table 1. Positions are encoded
along one axis, row after row, instead of two. The published model starts its last layers and the
blocks' shares at zero; here they start at random, or the output of an untrained model would be
zero whatever the computation.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.attention import merge_heads, sinusoidal_positions, split_heads

CHANNELS = 4  # of the latent
FREQUENCIES = 256
EXPANSION = 4  # of the feed-forward network
STEPS = 1000


class Block(nn.Module):
    """Self-attention and a feed-forward network, both modulated by the condition."""

    def __init__(self, width: int, heads: int) -> None:
        """Build the layers."""
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, EXPANSION * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(EXPANSION * width, width),
        )
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, tokens: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Update tokens `[B, T, width]` under a condition `[B, width]`."""
        modulation = self.modulation(condition).chunk(6, dim=1)
        shift_attention, scale_attention, share_attention, shift_mlp, scale_mlp, share_mlp = (
            modulation
        )
        normed = _modulated(self.norm_attention(tokens), shift_attention, scale_attention)
        query, key, value = (
            split_heads(part, self.heads) for part in self.qkv(normed).chunk(3, dim=-1)
        )
        attended = merge_heads(functional.scaled_dot_product_attention(query, key, value))
        tokens = tokens + share_attention[:, None] * self.out(attended)
        normed = _modulated(self.norm_mlp(tokens), shift_mlp, scale_mlp)
        updated: torch.Tensor = tokens + share_mlp[:, None] * self.mlp(normed)
        return updated


def _modulated(features: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return features * (1 + scale[:, None]) + shift[:, None]


class StepEmbedding(nn.Module):
    """Makes a vector of a time step: sines of it, then two linear layers."""

    def __init__(self, width: int) -> None:
        """Build the layers."""
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, steps: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Embed steps `[B]` as `[B, width]` of a dtype."""
        embedded: torch.Tensor = self.mlp(step_waves(steps, FREQUENCIES).to(dtype))
        return embedded


def step_waves(steps: torch.Tensor, width: int) -> torch.Tensor:
    """Encode time steps `[B]` as cosines and sines `[B, width]`, in float32."""
    half = width // 2
    rates = torch.exp(torch.arange(half, device=steps.device) * (-math.log(10000.0) / half))
    angles = steps[:, None] * rates
    return torch.cat([angles.cos(), angles.sin()], dim=1)


class DiffusionTransformer(nn.Module):
    """Cuts the latent into patches, updates them as tokens, and puts the result together."""

    def __init__(
        self, size: int, patch: int, width: int, depth: int, heads: int, classes: int
    ) -> None:
        """Build the model.

        Args:
            size: height and width of the latent.
            patch: height and width of a patch.
            width: features of a token.
            depth: number of blocks.
            heads: number of attention heads.
            classes: number of classes; one more stands for none.
        """
        super().__init__()
        self.patch = patch
        self.grid = size // patch
        self.embed = nn.Conv2d(CHANNELS, width, patch, stride=patch)
        self.register_buffer("positions", sinusoidal_positions(self.grid**2, width))
        self.step = StepEmbedding(width)
        self.label = nn.Embedding(classes + 1, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))
        # The noise and its variance.
        self.out = nn.Linear(width, patch * patch * 2 * CHANNELS)

    def forward(
        self, latents: torch.Tensor, steps: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """Predict noise and variance `[B, 8, H, W]` in latents `[B, 4, H, W]`.

        Args:
            latents: what noise was added to.
            steps: how often, `[B]`.
            labels: classes of the images, `[B]`.
        """
        tokens = self.embed(latents).flatten(2).transpose(1, 2) + self.get_buffer("positions")
        condition = self.step(steps, latents.dtype) + self.label(labels)
        for block in self.blocks:
            tokens = block(tokens, condition)
        shift, scale = self.modulation(condition).chunk(2, dim=1)
        patches: torch.Tensor = self.out(_modulated(self.norm(tokens), shift, scale))
        patches = patches.view(-1, self.grid, self.grid, self.patch, self.patch, 2 * CHANNELS)
        size = self.grid * self.patch
        return patches.permute(0, 5, 1, 3, 2, 4).reshape(-1, 2 * CHANNELS, size, size)


def build(
    *, batch_size: int, size: int, patch: int, width: int, depth: int, heads: int, classes: int
) -> LoadedModel:
    """Build the model with noisy latents, time steps and classes.

    The arguments are those of `DiffusionTransformer`.
    """
    latents = torch.randn(batch_size, CHANNELS, size, size)
    steps = torch.randint(STEPS, (batch_size,))
    labels = torch.randint(classes, (batch_size,))
    module = DiffusionTransformer(size, patch, width, depth, heads, classes)
    return LoadedModel(module=module, args=(latents, steps, labels))
