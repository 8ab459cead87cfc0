"""nanoGPT: GPT-2 by itself, predicting the next token.

Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", in the
configuration of karpathy/nanoGPT.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.attention import merge_heads, split_heads

DEVIATION = 0.02


class Layer(nn.Module):
    """Causal attention and a feed-forward network, each added to what it was computed from."""

    def __init__(self, width: int, heads: int) -> None:
        """Build a layer of `width` features."""
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * width, width),
        )

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Transform `[B, T, width]`."""
        projected = self.query_key_value(self.attention_norm(hidden)).chunk(3, dim=-1)
        query, key, value = (split_heads(features, self.heads) for features in projected)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.attention_out(merge_heads(attended))
        transformed: torch.Tensor = hidden + self.feed_forward(hidden)
        return transformed


class Gpt(nn.Module):
    """Layers between an embedding and the same embedding read backwards."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, length: int) -> None:
        """Build the model for at most `length` tokens."""
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(_initialise)
        self.head.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Predict the token after the last of `[B, T]`: logits `[B, 1, vocabulary]`."""
        hidden = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            hidden = layer(hidden)
        logits: torch.Tensor = self.head(self.norm(hidden)[:, -1:])
        return logits


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=DEVIATION)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def build_nanogpt(  # one for each size that a scale may replace
    *,
    batch_size: int,
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    max_length: int,
    sequence_length: int,
) -> LoadedModel:
    """Build GPT-2 with random tokens.

    Args:
        batch_size: number of sequences.
        vocabulary: number of tokens.
        width: features of a token.
        layers: number of layers.
        heads: attention heads of a layer.
        max_length: positions there are embeddings for.
        sequence_length: tokens in a sequence.
    """
    module = Gpt(vocabulary, width, layers, heads, max_length)
    ids = torch.randint(vocabulary, (batch_size, sequence_length))
    return LoadedModel(module=module, args=(ids,))
