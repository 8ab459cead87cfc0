"""Compilers of whole models that come with torch compute what eager does."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from graph_cases import Net, Several
from torch import nn

# torch.jit warns of its own retirement, and Inductor of what it lacks here.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def load(name: str) -> Any:
    """Return a backend."""
    module, attribute = name.split(":")
    return getattr(importlib.import_module(f"dynamometer.dynamo.backends.{module}"), attribute)


@pytest.mark.parametrize("name", ["exported:export", "torchscript:ofi", "exported:aot_inductor"])
@torch.no_grad()
def test_it_computes_what_eager_does(name: str) -> None:
    """Results follow the inputs, and earlier ones are not overwritten."""
    module = Net().eval()
    one, two = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
    call = load(name).compile(module, (one,), {})
    first, second = call(one), call(two)
    torch.testing.assert_close((first, second), (module(one), module(two)))


@torch.no_grad()
def test_export_keeps_structures() -> None:
    """Nested inputs and outputs come through, and keyword inputs."""
    pair, scale = (torch.ones(2, 3), torch.ones(2, 3)), torch.tensor(2.0)
    found = load("exported:export").compile(Several(), (pair,), {"scale": scale})(pair, scale=scale)
    assert found["count"] == 3
    torch.testing.assert_close(found["total"], torch.full((2, 3), 3.0))


class Scaled(nn.Module):
    """Takes inputs by position and by name."""

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        return torch.relu(x) * scale


class Named(nn.Module):
    """Takes inputs of any name, as what wraps another module does."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        return self.module(*args, **kwargs)


class Weighs(nn.Module):
    """Tells its inputs apart."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return x - 2 * y * scale


@pytest.mark.parametrize("name", ["torchscript:ofi", "torchscript:torchscript"])
@torch.no_grad()
def test_names_of_inputs_may_be_any(name: str) -> None:
    """As under autocast, which wraps the model: TorchScript knew no such name."""
    x, y, scale = torch.ones(2), torch.full((2,), 3.0), torch.tensor(2.0)
    call = load(name).compile(Named(Weighs()).eval(), (x,), {"scale": scale, "y": y})
    torch.testing.assert_close(call(x, y=y, scale=scale), Weighs()(x, y, scale=scale))


@torch.no_grad()
def test_ofi_takes_inputs_by_position_and_by_name() -> None:
    """What is passed by name reaches the argument of that name."""
    x, scale = torch.ones(3), torch.tensor(2.0)
    call = load("torchscript:ofi").compile(Scaled().eval(), (x,), {"scale": scale})
    torch.testing.assert_close(call(x, scale=scale), torch.full((3,), 2.0))


def test_ofi_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch has it no more, that is the reason, and no failure."""
    monkeypatch.delattr(torch.jit, "optimize_for_inference")
    assert "no torch.jit.optimize_for_inference" in load("torchscript:ofi").available("cpu")


@pytest.mark.parametrize("name", ["exported:export", "torchscript:ofi", "exported:aot_inductor"])
def test_training_is_refused(name: str) -> None:
    """Nothing is computed for which there would be no gradients."""
    with pytest.raises(NotImplementedError, match="computes no gradients"):
        load(name).compile(nn.Linear(3, 3), (torch.ones(3),), {})


class Flagged(nn.Module):
    """Takes what is no tensor, by position and by name."""

    def forward(
        self, x: torch.Tensor, times: float, mask: None = None, *, doubled: bool = False
    ) -> torch.Tensor:
        """Compute something."""
        assert mask is None
        return x * times * (2 if doubled else 1)


@pytest.mark.parametrize("name", ["torchscript:ts", "torchscript:ofi"])
@pytest.mark.parametrize("named", [{}, {"doubled": True}, {"mask": None, "doubled": True}])
@torch.no_grad()
def test_torchscript_takes_what_is_no_tensor_for_constants(
    name: str, named: dict[str, Any]
) -> None:
    """And refuses a call with others, which it would compute with the first ones."""
    attribute = {"torchscript:ts": "torchscript"}.get(name, "ofi")
    module, x = Flagged().eval(), torch.randn(2, 3)
    call = load(f"torchscript:{attribute}").compile(module, (x, 1.5), named)
    torch.testing.assert_close(call(x + 1, 1.5, **named), module(x + 1, 1.5, **named))
    with pytest.raises(ValueError, match=r"traced for input 1 = 1\.5, not 2\.5"):
        call(x, 2.5, **named)
    for more, by_name in (((None,), named), ((), {**named, "other": 1}), ((), {"doubled": 1})):
        with pytest.raises(ValueError, match="traced for"):
            call(x, 1.5, *more, **by_name)
