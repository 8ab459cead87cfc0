"""Builders of the graph networks of torch_geometric."""

from __future__ import annotations

import importlib

import torch

from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.interfaces.suite import LoadedModel


def basic_gnn(
    *, batch_size: int, architecture: str, channels: int, num_layers: int, nodes: int, edges: int
) -> LoadedModel:
    """Build a stack of message-passing layers over one random graph.

    Args:
        batch_size: number of graphs; these models take one.
        architecture: class in `torch_geometric.nn.models`, such as `GCN`.
        channels: features of a node, before and after every layer.
        num_layers: number of layers.
        nodes: number of nodes.
        edges: number of directed edges, drawn independently.

    Raises:
        SkippedError: if `batch_size` isn't 1.
    """
    if batch_size != 1:
        msg = f"{architecture} takes one graph, not a batch of {batch_size}"
        raise SkippedError(msg)
    zoo = importlib.import_module("torch_geometric.nn.models")
    module = getattr(zoo, architecture)(channels, channels, num_layers=num_layers)
    features = torch.randn(nodes, channels)
    edge_index = torch.randint(nodes, (2, edges))
    return LoadedModel(module=module, args=(features, edge_index))
