"""DLRM, which predicts clicks from dense features and bags of categories.

Source: Naumov et al. 2019, arXiv:1906.00091.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel


class Dlrm(nn.Module):
    """Embeddings and a bottom network, all pairs of their dot products, and a top network."""

    def __init__(self, rows: list[int], bottom: list[int], top: list[int]) -> None:
        """Build the model.

        Args:
            rows: number of categories of each table.
            bottom: sizes of the bottom network's layers, from the dense features to the width
                of an embedding.
            top: sizes of the top network's layers after its input, the last of them 1.
        """
        super().__init__()
        width = bottom[-1]
        vectors = len(rows) + 1
        self.bottom = _perceptron(bottom, nn.ReLU())
        self.tables = nn.ModuleList(_table(count, width) for count in rows)
        self.top = _perceptron([vectors * (vectors - 1) // 2 + width, *top], nn.Sigmoid())
        pairs = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("pairs", pairs, persistent=False)

    def forward(
        self, dense: torch.Tensor, offsets: torch.Tensor, indices: torch.Tensor
    ) -> torch.Tensor:
        """Predict clicks.

        Args:
            dense: `[B, bottom[0]]`.
            offsets: where the bag of each sample starts in `indices`, `[tables, B]`.
            indices: the categories of all samples one after the other, `[tables, N]`.

        Returns:
            Probabilities, `[B, 1]`.
        """
        reduced = self.bottom(dense)
        bags = [
            table(index, offset)
            for table, index, offset in zip(self.tables, indices, offsets, strict=True)
        ]
        vectors = torch.stack([reduced, *bags], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        row, column = self.get_buffer("pairs")
        clicks: torch.Tensor = self.top(torch.cat([reduced, products[:, row, column]], dim=1))
        return clicks


def _perceptron(sizes: list[int], last: nn.Module) -> nn.Sequential:
    """Build linear layers with Xavier weights and ReLU between them."""
    layers: list[nn.Module] = []
    for features_in, features_out in pairwise(sizes):
        linear = nn.Linear(features_in, features_out)
        nn.init.xavier_normal_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1], last)


def _table(rows: int, width: int) -> nn.EmbeddingBag:
    """Build a table of sums; its gradient is sparse, as it must be at this size."""
    bound = rows**-0.5
    # Drawn once: the class's own default would take as long again for gigabytes of weights.
    weight = torch.empty(rows, width).uniform_(-bound, bound)
    return nn.EmbeddingBag(rows, width, mode="sum", sparse=True, _weight=weight)


def build_dlrm(
    *, batch_size: int, rows: list[int], bottom: list[int], top: list[int], lookups: int
) -> LoadedModel:
    """Build DLRM with random features and bags.

    Args:
        batch_size: number of samples.
        rows: number of categories of each table.
        bottom: sizes of the bottom network's layers.
        top: sizes of the top network's layers.
        lookups: categories in a bag.
    """
    module = Dlrm(rows, bottom, top)
    dense = torch.rand(batch_size, bottom[0])
    offsets = torch.arange(0, batch_size * lookups, lookups).repeat(len(rows), 1)
    indices = torch.stack([torch.randint(count, (batch_size * lookups,)) for count in rows])
    return LoadedModel(module=module, args=(dense, offsets, indices))
