"""BERT with both heads it is pretrained with: masked words, and whether two sentences follow.

Source: Devlin et al. 2018, arXiv:1810.04805. From the configuration TorchBench runs (a
reimplementation, codertimo/BERT-pytorch) come: layers normalise their input instead of their
output, positions are sinusoids, attention is masked where a token is padding.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.attention import merge_heads, sinusoidal_positions, split_heads

PADDING = 0
SEGMENTS = 3  # padding, first sentence, second sentence


class Encoding(nn.Module):
    """Adds what a token is, where it stands, and in which sentence."""

    def __init__(self, vocabulary: int, width: int, max_length: int) -> None:
        """Build the two learned tables and the fixed one of positions."""
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, padding_idx=PADDING)
        self.segments = nn.Embedding(SEGMENTS, width, padding_idx=PADDING)
        self.register_buffer("positions", sinusoidal_positions(max_length, width))

    def forward(self, ids: torch.Tensor, segment_ids: torch.Tensor) -> torch.Tensor:
        """Embed `[B, T]` ids as `[B, T, width]`."""
        positions = self.get_buffer("positions")[: ids.shape[1]]
        embedded: torch.Tensor = self.tokens(ids) + self.segments(segment_ids) + positions
        return embedded


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each added to what it was computed from."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        """Build a layer of `width` features, with four times as many in between."""
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.attention_out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        """Transform `[B, T, width]`, attending where `visible`, `[B, 1, 1, T]`, is true."""
        hidden = hidden + self.dropout(self._attend(self.attention_norm(hidden), visible))
        transformed: torch.Tensor = hidden + self.feed_forward(hidden)
        return transformed

    def _attend(self, hidden: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        query, key, value = (split_heads(p(hidden), self.heads) for p in self.query_key_value)
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
        attended: torch.Tensor = self.attention_out(
            merge_heads(self.dropout(scores.softmax(dim=-1)) @ value)
        )
        return attended


class BertForPretraining(nn.Module):
    """The encoder with a linear classifier over the first token and one over every token."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        layers: int,
        heads: int,
        max_length: int = 512,
        dropout: float = 0.1,
    ) -> None:
        """Build the encoder and its two classifiers."""
        super().__init__()
        self.encoding = Encoding(vocabulary, width, max_length)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(layers))
        self.next_sentence = nn.Linear(width, 2)
        self.masked_words = nn.Linear(width, vocabulary)

    def forward(
        self, ids: torch.Tensor, segment_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Read token ids and segment ids.

        Args:
            ids: `[B, T]`, 0 where padded.
            segment_ids: `[B, T]`, 1 or 2; 0 where padded.

        Returns:
            Log-probabilities that the sentences follow, `[B, 2]`, and of words,
            `[B, T, vocabulary]`.
        """
        visible = (ids != PADDING)[:, None, None, :]
        hidden = self.dropout(self.encoding(ids, segment_ids))
        for layer in self.layers:
            hidden = layer(hidden, visible)
        return (
            functional.log_softmax(self.next_sentence(hidden[:, 0]), dim=-1),
            functional.log_softmax(self.masked_words(hidden), dim=-1),
        )


def build_bert(  # one for each size that a scale may replace
    *,
    batch_size: int,
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    sequence_length: int,
    longest_sentence: int = 3,
) -> LoadedModel:
    """Build BERT with pairs of short random sentences, padded to `sequence_length`.

    Args:
        batch_size: number of pairs.
        vocabulary: number of tokens, the padding among them.
        width: features of a token.
        layers: number of layers.
        heads: attention heads of a layer.
        sequence_length: tokens in a pair, with padding.
        longest_sentence: words in a sentence, at most. TorchBench's corpus has one to three.
    """
    module = BertForPretraining(vocabulary, width, layers, heads)
    # A pair is delimited by three special tokens: before, between and after.
    first = torch.randint(3, 3 + longest_sentence, (batch_size, 1))
    total = first + torch.randint(2, 2 + longest_sentence, (batch_size, 1))
    position = torch.arange(sequence_length)
    ids = torch.randint(1, vocabulary, (batch_size, sequence_length)) * (position < total)
    segment_ids = torch.where(position < first, 1, 2) * (position < total)
    return LoadedModel(module=module, args=(ids, segment_ids))
