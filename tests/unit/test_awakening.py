"""Parameters that say nothing where training starts are given values."""

from __future__ import annotations

import torch
from torch import nn

from dynamometer.common.suite import LoadedModel
from dynamometer.models.awakening import awake


def test_no_parameter_can_be_left_out() -> None:
    """Gains, last layers, biases and weights of normalisations are random; what was so stays."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 4), nn.LayerNorm(4))
    for parameter in (module[1].weight, module[2].weight, module[2].bias):
        nn.init.zeros_(parameter)  # type: ignore[arg-type]  # a parameter
    kept = module[0].weight.clone()  # type: ignore[operator]  # likewise
    loaded = awake(LoadedModel(module=module))
    assert torch.equal(module[0].weight, kept)  # type: ignore[arg-type]  # likewise
    named = {name: each.detach() for name, each in module.named_parameters()}
    assert all(each.std() > 0 for each in named.values())
    assert named["1.weight"].min() > 0
    assert (named["3.weight"] - 1).abs().max() < 0.2
    assert named["2.bias"].abs().max() < 0.2
    assert len(loaded.notes) == 1
    assert awake(LoadedModel(module=module)).notes == ()
