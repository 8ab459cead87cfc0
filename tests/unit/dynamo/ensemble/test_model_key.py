"""Models that compute something else, or on other inputs, have other keys."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from dynamometer.dynamo.ensemble.model_key import model_key

if TYPE_CHECKING:
    from collections.abc import Callable

X = torch.ones(2, 3)


def key(forward: Callable[[nn.Module, torch.Tensor], torch.Tensor], x: torch.Tensor = X) -> str:
    """Return the key of a model with some `forward`, as of a class that is called the same."""
    return model_key(type("Made", (nn.Module,), {"forward": forward})(), (x,), {})


def test_equal_models_have_equal_keys() -> None:
    """Made twice; what was drawn for their weights is not in it."""
    made = [nn.Sequential(nn.Linear(3, 4), nn.ReLU()) for _ in range(2)]
    assert model_key(made[0], (X,), {}) == model_key(made[1], (X + 1,), {})


@pytest.mark.parametrize(
    "other",
    [
        lambda self, x: x.cos() * 2.0,
        lambda self, x: x.sin() * 3.0,
        lambda self, x: x.sin() + 2.0,
        lambda self, x: torch.stack([each.sin() * 2.0 for each in x]),
    ],
)
def test_another_forward_is_another_model(
    other: Callable[[nn.Module, torch.Tensor], torch.Tensor],
) -> None:
    """Also where its bytecode differs in what it has by number alone: names and constants."""
    assert key(other) != key(lambda self, x: x.sin() * 2.0)


def nested(name: str) -> Callable[[nn.Module, torch.Tensor], torch.Tensor]:
    """Make a `forward` whose work is done by a function within it."""
    source = (
        f"def forward(self, x):\n    def inner(y):\n        return y.{name}()\n    return inner(x)"
    )
    found: dict[str, Any] = {}
    exec(source, found)
    forward: Callable[[nn.Module, torch.Tensor], torch.Tensor] = found["forward"]
    return forward


def decorated(
    forward: Callable[[nn.Module, torch.Tensor], torch.Tensor],
) -> Callable[[nn.Module, torch.Tensor], torch.Tensor]:
    """Wrap a `forward`, as transformers does."""

    @functools.wraps(forward)
    def call(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return forward(self, x)

    return call


def test_a_change_deep_inside_is_a_change() -> None:
    """Within a nested function, or under a decorator."""
    assert key(nested("sin")) == key(nested("sin"))
    assert key(nested("sin")) != key(nested("cos"))
    assert key(decorated(nested("sin"))) != key(decorated(nested("cos")))


def test_a_key_is_the_same_in_every_process() -> None:
    """Whatever order a set has in it."""
    code = (
        "import torch\n"
        "from dynamometer.dynamo.ensemble.model_key import model_key\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x if str(x.dtype) in {'one', 'two', 'three', 'four'} else -x\n"
        "print(model_key(Model(), (torch.ones(2),), {}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in (1, 2)
    }  # fmt: skip
    assert len(found) == 1


@pytest.mark.parametrize("x", [torch.ones(2, 4), torch.ones(3, 2).T, torch.ones(2, 3).double()])
def test_inputs_of_another_kind_make_another_key(x: torch.Tensor) -> None:
    """Their sizes, strides and dtypes count."""

    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x

    assert key(forward, x) != key(forward)


def test_modes_are_told_apart() -> None:
    """Training, inference, and whether gradients are recorded."""
    model = nn.Linear(3, 3)
    keys = {model_key(model, (X,), {}), model_key(model.eval(), (X,), {})}
    with torch.no_grad():
        keys.add(model_key(model, (X,), {}))
    assert len(keys) == 3
