"""What every transformer written here needs: heads and sinusoidal positions.

Source: Vaswani et al. 2017, arXiv:1706.03762, sections 3.2.2 and 3.5.
"""

from __future__ import annotations

import math

import torch


def split_heads(features: torch.Tensor, heads: int) -> torch.Tensor:
    """Give every head its own sequence: `[B, T, heads * D]` to `[B, heads, T, D]`."""
    batch, length, width = features.shape
    return features.view(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(features: torch.Tensor) -> torch.Tensor:
    """Undo `split_heads`: `[B, heads, T, D]` to `[B, T, heads * D]`."""
    batch, heads, length, width = features.shape
    return features.transpose(1, 2).reshape(batch, length, heads * width)


def sinusoidal_positions(length: int, width: int) -> torch.Tensor:
    """Encode positions as sines at even features and cosines at odd ones, `[length, width]`."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
