"""DeepRecommender, an autoencoder of everything a user has rated.

Source: Kuchaiev and Ginsburg 2017, arXiv:1708.01715, in the configuration of
NVIDIA/DeepRecommender: decoder weights of its own, SELU after every layer, the last among them.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel


class RatingAutoencoder(nn.Module):
    """Fully connected layers down to a code and up again."""

    def __init__(self, items: int, hidden: list[int], dropout: float = 0.8) -> None:
        """Build the encoder, and the decoder that mirrors it.

        Args:
            items: number of things that can be rated.
            hidden: sizes of the encoder's layers; the last is the code's.
            dropout: probability of dropping a feature of the code, in training.
        """
        super().__init__()
        sizes = [items, *hidden]
        self.encoder = _layers(sizes)
        self.dropout = nn.Dropout(dropout)
        self.decoder = _layers(sizes[::-1])

    def forward(self, ratings: torch.Tensor) -> torch.Tensor:
        """Reconstruct ratings `[B, items]`."""
        reconstructed: torch.Tensor = self.decoder(self.dropout(self.encoder(ratings)))
        return reconstructed


def _layers(sizes: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for features_in, features_out in pairwise(sizes):
        linear = nn.Linear(features_in, features_out)
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.SELU()]
    return nn.Sequential(*layers)


def build_deeprecommender(*, batch_size: int, items: int, hidden: list[int]) -> LoadedModel:
    """Build the autoencoder with random ratings.

    Args:
        batch_size: number of users.
        items: number of things that can be rated.
        hidden: sizes of the encoder's layers.
    """
    ratings = torch.randn(batch_size, items)
    return LoadedModel(module=RatingAutoencoder(items, hidden), args=(ratings,))
