"""Speech-Transformer, which spells out spectrograms character by character.

Source: Dong et al. 2018, "Speech-Transformer: a no-recurrence sequence-to-sequence model for
speech recognition", without convolutions before the encoder; sizes from
kaituoxu/Speech-Transformer for Aishell.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.attention import merge_heads, sinusoidal_positions, split_heads

START, END = 0, 1
IGNORED = -1  # marks the padding of targets


class Shape(NamedTuple):
    """Sizes of a layer: features outside and between a feed-forward network's layers, heads."""

    width: int
    inner: int
    heads: int
    dropout: float = 0.1


class Attention(nn.Module):
    """Attention whose output is added to the queries and normalised."""

    def __init__(self, shape: Shape) -> None:
        """Build the four projections."""
        super().__init__()
        width = shape.width
        self.heads = shape.heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(shape.dropout)
        self.norm = nn.LayerNorm(width)

    def forward(
        self, hidden: torch.Tensor, memory: torch.Tensor, visible: torch.Tensor
    ) -> torch.Tensor:
        """Attend from `[B, T, width]` to `[B, S, width]`.

        Args:
            hidden: what asks.
            memory: what is asked.
            visible: true where attention may go, `[B, 1, T or 1, S]`.
        """
        query = split_heads(self.query(hidden), self.heads)
        key = split_heads(self.key(memory), self.heads)
        value = split_heads(self.value(memory), self.heads)
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        weights = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
        attended = self.out(merge_heads(self.dropout(weights) @ value))
        normed: torch.Tensor = self.norm(hidden + self.dropout(attended))
        return normed


class FeedForward(nn.Module):
    """Two layers whose output is added to their input and normalised."""

    def __init__(self, shape: Shape) -> None:
        """Build the layers."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(shape.width, shape.inner),
            nn.ReLU(),
            nn.Linear(shape.inner, shape.width),
            nn.Dropout(shape.dropout),
        )
        self.norm = nn.LayerNorm(shape.width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Transform `[B, T, width]`."""
        normed: torch.Tensor = self.norm(hidden + self.layers(hidden))
        return normed


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network; padding is zeroed after each."""

    def __init__(self, shape: Shape) -> None:
        """Build a layer."""
        super().__init__()
        self.attention = Attention(shape)
        self.feed_forward = FeedForward(shape)

    def forward(self, hidden: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Transform `[B, T, width]`, of which `real`, `[B, T]`, is not padding."""
        kept = real[:, :, None]
        hidden = self.attention(hidden, hidden, real[:, None, None, :]) * kept
        transformed: torch.Tensor = self.feed_forward(hidden) * kept
        return transformed


class DecoderLayer(nn.Module):
    """Self-attention, attention to the encoder, and a feed-forward network."""

    def __init__(self, shape: Shape) -> None:
        """Build a layer."""
        super().__init__()
        self.attention = Attention(shape)
        self.cross_attention = Attention(shape)
        self.feed_forward = FeedForward(shape)

    def forward(
        self,
        hidden: torch.Tensor,
        memory: torch.Tensor,
        real: torch.Tensor,
        memory_real: torch.Tensor,
    ) -> torch.Tensor:
        """Transform `[B, T, width]` by what it may see of itself and of `[B, S, width]`.

        Args:
            hidden: the characters.
            memory: the encoder's output.
            real: which characters are no padding, `[B, T]`.
            memory_real: which frames are none, `[B, S]`.
        """
        length = hidden.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=hidden.device).tril()
        kept = real[:, :, None]
        hidden = self.attention(hidden, hidden, causal & real[:, None, None, :]) * kept
        hidden = self.cross_attention(hidden, memory, memory_real[:, None, None, :]) * kept
        transformed: torch.Tensor = self.feed_forward(hidden) * kept
        return transformed


class SpeechTransformer(nn.Module):
    """An encoder of frames and a decoder of characters."""

    def __init__(
        self, features: int, vocabulary: int, layers: int, shape: Shape, max_length: int = 5000
    ) -> None:
        """Build `layers` layers of each."""
        super().__init__()
        width = shape.width
        self.frames = nn.Sequential(nn.Linear(features, width), nn.LayerNorm(width))
        self.characters = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(shape.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(shape) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(shape) for _ in range(layers))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        self.register_buffer("positions", sinusoidal_positions(max_length, width))

    def forward(
        self, frames: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Predict each character from those before it.

        Args:
            frames: `[B, S, features]`.
            lengths: frames that are no padding, `[B]`.
            targets: characters, `[B, T]`, -1 where padded.

        Returns:
            Logits, `[B, T + 1, vocabulary]`, and what they should predict, `[B, T + 1]`.
        """
        memory, memory_real = self._encode(frames, lengths)
        shifted = functional.pad(targets, (1, 0), value=START)
        real = shifted != IGNORED
        hidden = self.characters(shifted.masked_fill(~real, END))
        hidden = self._place(hidden * hidden.shape[-1] ** 0.5)
        for layer in self.decoder:
            hidden = layer(hidden, memory, real, memory_real)
        # The table of characters is read backwards as well.
        return functional.linear(hidden, self.characters.weight), _ended(targets)

    def _encode(
        self, frames: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return encoded frames `[B, S, width]`, and which are no padding, `[B, S]`."""
        real = torch.arange(frames.shape[1], device=frames.device) < lengths[:, None]
        hidden = self._place(self.frames(frames))
        for layer in self.encoder:
            hidden = layer(hidden, real)
        return hidden, real

    def _place(self, hidden: torch.Tensor) -> torch.Tensor:
        """Add positions to `[B, T, width]`."""
        placed: torch.Tensor = self.dropout(
            hidden + self.get_buffer("positions")[: hidden.shape[1]]
        )
        return placed


def _ended(targets: torch.Tensor) -> torch.Tensor:
    """Put the end behind the last character of `[B, T]`, which makes it `[B, T + 1]`."""
    padded = functional.pad(targets, (0, 1), value=IGNORED)
    last = (targets != IGNORED).sum(dim=1, keepdim=True)
    return padded.scatter(1, last, END)


def build_speech_transformer(  # one for each size that a scale may replace
    *,
    batch_size: int,
    frames: int,
    features: int,
    characters: int,
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    inner: int,
) -> LoadedModel:
    """Build the model with a random utterance and a random transcript of it.

    Args:
        batch_size: number of utterances.
        frames: frames in an utterance.
        features: features of a frame: 80 bands, 4 frames stacked.
        characters: characters in a transcript.
        vocabulary: number of characters.
        width: features of a frame or character inside.
        layers: layers of the encoder, and of the decoder.
        heads: attention heads of a layer.
        inner: features between the layers of a feed-forward network.
    """
    module = SpeechTransformer(features, vocabulary, layers, Shape(width, inner, heads))
    spectrogram = torch.randn(batch_size, frames, features)
    lengths = torch.full((batch_size,), frames)
    targets = torch.randint(END + 1, vocabulary, (batch_size, characters))
    return LoadedModel(module=module, args=(spectrogram, lengths, targets))
