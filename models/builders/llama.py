"""LLaMA, a small one, reading tokens after some that it has already read.

Source: Touvron et al. 2023, arXiv:2302.13971: RMS normalisation before each part, SwiGLU, and
rotary positions (Su et al. 2021, arXiv:2104.09864), rotated in real arithmetic here.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.attention import merge_heads, split_heads

MULTIPLE = 256  # the feed-forward width is rounded up to one


class Attention(nn.Module):
    """Self-attention over cached positions and new ones."""

    def __init__(self, width: int, heads: int) -> None:
        """Build the four projections."""
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(
        self,
        hidden: torch.Tensor,
        rotation: tuple[torch.Tensor, torch.Tensor],
        cache: tuple[torch.Tensor, torch.Tensor],
        visible: torch.Tensor,
    ) -> torch.Tensor:
        """Attend from the new positions to the cached and the new ones.

        Args:
            hidden: `[B, T, width]`.
            rotation: cosines and sines, `[T, D / 2]` each.
            cache: keys and values of the P positions before, `[B, heads, P, D]` each.
            visible: `[T, P + T]`, true where attention may go.
        """
        query = _rotate(split_heads(self.query(hidden), self.heads), rotation)
        key = _rotate(split_heads(self.key(hidden), self.heads), rotation)
        value = split_heads(self.value(hidden), self.heads)
        keys = torch.cat([cache[0], key], dim=2)
        values = torch.cat([cache[1], value], dim=2)
        scores = query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~visible, -torch.inf)
        weights = scores.float().softmax(dim=-1).to(query.dtype)
        attended: torch.Tensor = self.out(merge_heads(weights @ values))
        return attended


def _rotate(features: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Turn each pair of neighbouring features, `[B, heads, T, D]`, by its position's angle."""
    cosine, sine = rotation
    even, odd = features[..., ::2].float(), features[..., 1::2].float()
    turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
    return turned.flatten(-2).to(features.dtype)


class Layer(nn.Module):
    """Attention and SwiGLU, each added to what it was computed from."""

    def __init__(self, width: int, heads: int) -> None:
        """Build a layer of `width` features."""
        super().__init__()
        hidden = MULTIPLE * math.ceil(8 * width / 3 / MULTIPLE)
        self.attention_norm = nn.RMSNorm(width, eps=1e-5)
        self.attention = Attention(width, heads)
        self.feed_forward_norm = nn.RMSNorm(width, eps=1e-5)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(
        self,
        hidden: torch.Tensor,
        rotation: tuple[torch.Tensor, torch.Tensor],
        cache: tuple[torch.Tensor, torch.Tensor],
        visible: torch.Tensor,
    ) -> torch.Tensor:
        """Transform `[B, T, width]`; the other arguments are those of `Attention`."""
        hidden = hidden + self.attention(self.attention_norm(hidden), rotation, cache, visible)
        normed = self.feed_forward_norm(hidden)
        transformed: torch.Tensor = hidden + self.down(
            functional.silu(self.gate(normed)) * self.up(normed)
        )
        return transformed


class Llama(nn.Module):
    """Layers between an embedding and a classifier of the next token."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, length: int) -> None:
        """Build the model for positions below `length`."""
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        rates = 10000.0 ** -(torch.arange(0, width // heads, 2) / (width // heads))
        angles = torch.outer(torch.arange(length).float(), rates)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, ids: torch.Tensor, cached: torch.Tensor) -> torch.Tensor:
        """Predict the token after the last one.

        Args:
            ids: `[B, T]`.
            cached: keys and values of the P positions before, `[layers, 2, B, heads, P, D]`.

        Returns:
            Logits, `[B, vocabulary]`.
        """
        length, past = ids.shape[1], cached.shape[4]
        span = slice(past, past + length)
        rotation = self.get_buffer("cosine")[span], self.get_buffer("sine")[span]
        visible = torch.ones(length, past + length, dtype=torch.bool, device=ids.device).tril(past)
        hidden = self.embedding(ids)
        for layer, cache in zip(self.layers, cached, strict=True):
            hidden = layer(hidden, rotation, (cache[0], cache[1]), visible)
        logits: torch.Tensor = self.head(self.norm(hidden)[:, -1])
        return logits.float()


def build_llama(  # one for each size that a scale may replace
    *,
    batch_size: int,
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    max_length: int,
    sequence_length: int,
    past_length: int,
) -> LoadedModel:
    """Build LLaMA with random tokens after an empty past.

    Args:
        batch_size: number of sequences.
        vocabulary: number of tokens.
        width: features of a token.
        layers: number of layers.
        heads: attention heads of a layer.
        max_length: positions there are angles for.
        sequence_length: tokens read.
        past_length: positions before them, whose keys and values are zero.
    """
    module = Llama(vocabulary, width, layers, heads, max_length)
    ids = torch.randint(vocabulary, (batch_size, sequence_length))
    cached = torch.zeros(layers, 2, batch_size, heads, past_length, width // heads)
    return LoadedModel(module=module, args=(ids, cached))
