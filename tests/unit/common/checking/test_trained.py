"""What a call of training leaves to whoever goes on, and which outputs its loss tells apart."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import torch
from judging import judge, reservations_of
from torch import nn

from dynamometer.common.checking.checking import Checks
from dynamometer.common.checking.form import Form
from dynamometer.common.checking.steps import own_module
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable


class Branches(nn.Module):
    """Two layers whose biases have the same gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what they give."""
        out: torch.Tensor = self.one(x) + self.two(x)
        return out


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *weights: torch.Tensor) -> Any:
        return tuple(each.view_as(each) for each in weights)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        one = gradients[0].clone()
        return tuple(one.view_as(one) for _ in gradients)


def instead(forward: Callable[..., Any]) -> Callable[[nn.Module], nn.Module]:
    """Return an arm with another forward, below the loss."""

    def arm(module: nn.Module) -> nn.Module:
        own = own_module(module)
        own.forward = partial(forward, type(own).forward.__get__(own))
        return module

    return arm


def _sharing(forward: Any, x: torch.Tensor) -> Any:
    module = forward.__self__
    one, two = _Once.apply(module.one.bias, module.two.bias)  # type: ignore[no-untyped-call]  # torch's
    return x @ module.one.weight.T + one + x @ module.two.weight.T + two


def test_gradients_have_memory_of_their_own() -> None:
    """Who adds to one, or clips it, would change the other."""
    found = judge(Branches(), torch.randn(4, 8), arm=instead(_sharing), mode=Mode.TRAINING)
    assert "bias: it shares memory with another" in str(found)
    assert isinstance(judge(Branches(), torch.randn(4, 8), mode=Mode.TRAINING), Checks)


def test_gradients_may_lie_in_one_piece_of_memory() -> None:
    """Beside each other, or in places of their own between each other's."""
    memory = torch.zeros(4, 8)
    beside = {"a": memory[:2], "b": memory[2:], "none": None}
    between = {"a": memory[:, :4], "b": memory[:, 4:]}
    assert not Form().with_gradients(beside).limits
    assert not Form().with_gradients(between).limits
    assert len(Form().with_gradients({"a": memory.T, "b": memory[1:]}).limits) == 2


class Two(nn.Module):
    """Two outputs of one shape."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.scale = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Give both."""
        return self.mean(x), self.scale(x)


def _swapping(forward: Any, x: torch.Tensor) -> Any:
    return forward(x)[::-1]


@pytest.mark.parametrize("mode", Mode)
def test_the_order_of_outputs_counts(mode: Mode) -> None:
    """A loss of both alike would be the same of either order."""
    torch.manual_seed(0)
    inputs = torch.randn(4, 8)
    assert isinstance(judge(Two(), inputs, arm=instead(_swapping), mode=mode), str)
    assert isinstance(judge(Two(), inputs, mode=mode), Checks)


class Detects(nn.Linear):
    """Gives what it found, and what of that is large: nothing."""

    def forward(self, x: torch.Tensor) -> Any:
        """Give both."""
        found = super().forward(x)
        return found, found[found[:, 0] > 1e9]


def test_an_output_without_elements_has_no_part_in_the_loss() -> None:
    """The mean of nothing is NaN, and nothing could be compared with it."""
    found = judge(Detects(8, 4), torch.randn(4, 8), mode=Mode.TRAINING)
    assert "NaN" not in reservations_of(found)
    wrong = judge(
        Detects(8, 4), torch.randn(4, 8), mode=Mode.TRAINING,
        arm=instead(lambda forward, x: (forward(x)[0] * 1.1, forward(x)[1])),
    )  # fmt: skip
    assert isinstance(wrong, str)


def test_statistics_that_are_as_created_are_named() -> None:
    """Whoever leaves them out can't be told."""
    layer = nn.BatchNorm1d(8)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    assert "buffers.running_mean and 1 more" in reservations_of(judge(layer, torch.randn(4, 8)))
    layer.running_mean, layer.running_var = torch.randn(8), torch.rand(8) + 0.5
    assert "could be left out" not in reservations_of(judge(layer, torch.randn(4, 8)))


class MakesHead(nn.Module):
    """Makes its last layer in the first call, as large as what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 8]` to `[B, 4]`."""
        if self.head is None:
            self.head = nn.Linear(x.shape[-1], 4)
        out: torch.Tensor = self.head(self.body(x))
        return out


@pytest.mark.parametrize("is_brief", [False, True])
@pytest.mark.parametrize("mode", Mode)
def test_weights_that_a_call_makes_are_not_the_optimizers(mode: Mode, *, is_brief: bool) -> None:
    """It has never heard of them; the others are looked at all the same."""
    model, x = MakesHead(), torch.randn(4, 8)
    assert isinstance(judge(model, x, mode=mode, is_brief=is_brief), Checks)
    doubled = instead(lambda forward, x: forward(x) * 2)
    assert isinstance(judge(model, x, mode=mode, is_brief=is_brief, arm=doubled), str)
    if mode is Mode.TRAINING:
        idle = judge(model, x, mode=mode, is_brief=is_brief, optimizer=lambda _: lambda: None)
        assert "parameters.body" in str(idle)
        assert "optimizer's step" in str(idle)


class WritesTo(nn.Module):
    """Writes what it computes where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """Give what was written to, and is no part of the next call."""
        return out.detach_().copy_(self.layer(x))


@pytest.mark.parametrize("mode", Mode)
def test_an_input_that_a_call_gives_a_history_is_compared(mode: Mode) -> None:
    """Its like on other inputs has none."""
    inputs = torch.randn(4, 8), torch.zeros(4, 8)
    assert isinstance(judge(WritesTo(), *inputs, mode=mode), Checks)
    doubled = instead(lambda forward, x, out: forward(x, out).mul_(2))
    assert isinstance(judge(WritesTo(), *inputs, mode=mode, arm=doubled), str)
