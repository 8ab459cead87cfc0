"""A network fitted to the Lennard-Jones potential: the energy of a pair by its distance.

TorchBench's configuration: four hidden layers of 16, a thousand distances. Its own training also
differentiates the network for the force; what its `get_module` gives, and dashboards measure, is
the network.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel

NEAREST, FARTHEST = 0.5, 2.0  # in lengths of the potential


def build_lennard_jones(*, batch_size: int, hidden: list[int]) -> LoadedModel:
    """Build the network, with inputs `[B, 1]`: evenly spaced distances.

    Args:
        batch_size: number of pairs.
        hidden: sizes of the hidden layers.
    """
    layers: list[nn.Module] = []
    for features_in, features_out in pairwise([1, *hidden, 1]):
        layers += [nn.Linear(features_in, features_out), nn.Tanh()]
    distances = torch.linspace(NEAREST, FARTHEST, batch_size).reshape(-1, 1)
    return LoadedModel(module=nn.Sequential(*layers[:-1]), args=(distances,))
