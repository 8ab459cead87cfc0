"""Parameters that say nothing where training starts are given values."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.awakening import awake


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


def test_biases_of_recurrent_layers_are_no_gains() -> None:
    """Their names end with the layer's number."""
    module = nn.LSTM(4, 4)
    for name, parameter in module.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
    awake(LoadedModel(module=module))
    assert 0 < module.bias_ih_l0.abs().max() < 0.2


@pytest.mark.parametrize("value", [0.0, 0.004, 1.0])
def test_a_single_value_is_awakened_once(value: float) -> None:
    """However small what it is given."""
    module = nn.Module()
    module.bias = nn.Parameter(torch.tensor([value]))
    awake(LoadedModel(module=module))
    kept = module.bias.clone()
    assert (kept.item() == pytest.approx(value)) == (value == 0.004)
    assert awake(LoadedModel(module=module)).notes == ()
    assert torch.equal(module.bias, kept)


@pytest.mark.parametrize(
    "parameter",
    [
        nn.UninitializedParameter(),
        nn.Parameter(torch.zeros(4).to(torch.float8_e4m3fn), requires_grad=False),
        nn.Parameter(torch.zeros(4, device="meta")),
        nn.Parameter(torch.zeros(4, 4).to_sparse()),
        nn.Parameter(torch.zeros(1).expand(4)),
        nn.Parameter(torch.zeros(4, dtype=torch.complex64)),
        nn.Parameter(torch.zeros(0)),
    ],
    ids=["uninitialised", "fp8", "meta", "sparse", "expanded", "complex", "empty"],
)
def test_unusual_parameters_are_left(parameter: nn.Parameter) -> None:
    """Whose values are not there, or not each by itself."""
    module = nn.Module()
    module.register_parameter("weight", parameter)
    assert awake(LoadedModel(module=module)).notes == ()


def test_linear_layers_give_as_much_as_torchs_own() -> None:
    """Weights of 0.02 give next to nothing of 64 features; torch's own are left."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Embedding(64, 64))
    for layer in (module[0], module[2]):
        nn.init.normal_(layer.weight, std=0.02)  # type: ignore[arg-type]  # a parameter
    kept = [module[index].weight.clone() for index in (1, 2)]  # type: ignore[operator]  # likewise
    loaded = awake(LoadedModel(module=module))
    inputs = torch.randn(256, 64)
    assert module[0](inputs).std().item() == pytest.approx(3**-0.5, rel=0.1)
    assert torch.equal(module[1].weight, kept[0])  # type: ignore[arg-type]  # likewise
    assert torch.equal(module[2].weight, kept[1])  # type: ignore[arg-type]  # likewise
    assert len(loaded.notes) == 1
    assert awake(LoadedModel(module=module)).notes == ()


def test_a_linear_layer_that_is_an_embedding_is_left() -> None:
    """As the last layer of many language models is."""
    embedding, head = nn.Embedding(64, 64), nn.Linear(64, 64, bias=False)
    nn.init.normal_(embedding.weight, std=0.02)
    head.weight = embedding.weight
    kept = embedding.weight.clone()
    assert awake(LoadedModel(module=nn.Sequential(embedding, head))).notes == ()
    assert torch.equal(embedding.weight, kept)
