"""A network fitted to the Lennard-Jones potential, with the force as its derivative.

Source: the potential is Lennard-Jones 1931; a pair at distance r has energy E(r) and feels the
force -dE/dr along the line between the two. TorchBench's configuration: four hidden layers of 16.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.func import jacrev, vmap

from dynamometer.common.suite import LoadedModel

NEAREST, FARTHEST = 0.5, 1.0  # one and two of the potential's lengths


class PairPotential(nn.Module):
    """Energy of a pair by its distance, and the force by differentiating that."""

    def __init__(self, hidden: list[int]) -> None:
        """Build a network with hidden layers of these sizes."""
        super().__init__()
        layers: list[nn.Module] = []
        for features_in, features_out in pairwise([1, *hidden, 1]):
            layers += [nn.Linear(features_in, features_out), nn.Tanh()]
        self.energy = nn.Sequential(*layers[:-1])

    def forward(self, displacements: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Give energies `[B, 1]` and forces `[B, 3]` of pairs displaced by `[B, 3]`."""
        distances = torch.linalg.norm(displacements, dim=1, keepdim=True)
        slopes = vmap(jacrev(self.energy))(distances).squeeze(-1)
        return self.energy(distances), -slopes * displacements / distances


def build_lennard_jones(*, batch_size: int, hidden: list[int]) -> LoadedModel:
    """Build the potential with pairs at evenly spaced distances along one axis.

    Args:
        batch_size: number of pairs.
        hidden: sizes of the hidden layers.
    """
    distances = torch.linspace(NEAREST, FARTHEST, batch_size)
    displacements = torch.outer(distances, torch.tensor([1.0, 0.0, 0.0]))
    return LoadedModel(module=PairPotential(hidden), args=(displacements,))
