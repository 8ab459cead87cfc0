"""What an arm's model may be once it is compiled, and what may be left on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from judging import judge
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from dynamometer.common.checking.checking import Checks
from dynamometer.common.checking.form import keeping_what_is_set
from dynamometer.common.checking.snapshots import Snapshot, state_of
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable


class Convolution(nn.Module):
    """A convolution and a normalisation that can be folded into it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve and normalise."""
        out: torch.Tensor = self.norm(self.layer(x))
        return out


def _folding(own: Any) -> nn.Module:
    own.layer, own.norm = fuse_conv_bn_eval(own.layer, own.norm), nn.Identity()
    return own  # type: ignore[no-any-return]  # of the tests


def _tracing(own: Any) -> nn.Module:
    own.train()(torch.randn(2, 3, 8, 8))
    return own.eval()  # type: ignore[no-any-return]  # of the tests


def _folding_into_its_memory(own: Any) -> nn.Module:
    folded = fuse_conv_bn_eval(own.layer, own.norm)
    with torch.no_grad():
        own.layer.weight.copy_(folded.weight)
        own.layer.bias.data = folded.bias.data
    own.norm = nn.Identity()
    return own  # type: ignore[no-any-return]  # of the tests


def _folding_wrongly(own: Any) -> nn.Module:
    _folding(own)
    with torch.no_grad():
        own.layer.weight[3] *= 1.1
    return own  # type: ignore[no-any-return]  # of the tests


@pytest.mark.parametrize("arm", [_folding, _folding_into_its_memory, _tracing])
def test_a_backend_may_change_its_own_copy(arm: Callable[[nn.Module], nn.Module]) -> None:
    """What was folded was overwritten with what eager begins with, and accused of the rest."""
    torch.manual_seed(0)
    assert isinstance(judge(Convolution().eval(), torch.randn(2, 3, 8, 8), arm=arm), Checks)


class Replaces(nn.Module):
    """Replaces buffers: at its first call one by another of another size, at each one of a size.

    Args:
        is_inference: whether within `torch.inference_mode`, so that nobody else may write to them.
    """

    def __init__(self, *, is_inference: bool = False) -> None:
        super().__init__()
        self.linear, self.is_inference = nn.Linear(8, 8), is_inference
        self.register_buffer("places", torch.zeros(1))
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Weigh each column by its place, and move the mean."""
        with torch.inference_mode(self.is_inference):
            if len(self.places) != x.shape[1]:
                self.places = torch.arange(1.0, x.shape[1] + 1)
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        out: torch.Tensor = self.linear(x) * self.places + self.mean
        return out


def _tracing_alone(own: Any) -> nn.Module:
    own(torch.randn(4, 8))
    return own  # type: ignore[no-any-return]  # of the tests


@pytest.mark.parametrize("is_inference", [False, True])
def test_buffers_that_tracing_replaces_are_no_sign_of_other_weights(is_inference: bool) -> None:  # noqa: FBT001  a parameter of the test
    """What calls began with was taken for what tracing had left, and right arms were accused."""
    found = judge(Replaces(is_inference=is_inference), torch.randn(4, 8), arm=_tracing_alone)
    assert isinstance(found, Checks), found
    assert not found.reservations


class Later(nn.Module):
    """Replaces a buffer from its second call on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Move the mean."""
        self.calls += 1
        if self.calls > 1:
            self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
        return x + self.mean


def test_what_several_calls_replace_is_no_sign_of_other_weights() -> None:
    """A backend may run the model more than once while it compiles."""

    def warmed(own: Any) -> nn.Module:
        return _tracing_alone(_tracing_alone(own))

    assert isinstance(judge(Later(), torch.randn(4, 8), arm=warmed), Checks)


class WithoutParameters(nn.Module):
    """Weights in buffers, as quantized models have them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(8, 8))
        self.register_buffer("scale", torch.full((8,), 3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the weight, as it is scaled."""
        return x @ (self.weight * self.scale)


def _folding_buffers(own: Any) -> Callable[..., Any]:
    own.weight = own.weight * own.scale
    return lambda x: x @ own.weight


def _folding_buffers_wrongly(own: Any) -> Callable[..., Any]:
    own.weight = own.weight * own.scale * 1.01
    return lambda x: x @ own.weight


def test_weights_that_are_buffers_may_be_folded_as_well() -> None:
    """The model doesn't replace them by itself: the backend did."""
    x = torch.randn(4, 8)
    assert isinstance(judge(WithoutParameters(), x, arm=_folding_buffers), Checks)
    assert "output" in str(judge(WithoutParameters(), x, arm=_folding_buffers_wrongly))


def test_what_it_computes_then_must_be_the_same() -> None:
    """Whoever folds wrongly is found out by results."""
    torch.manual_seed(0)
    found = judge(Convolution().eval(), torch.randn(2, 3, 8, 8), arm=_folding_wrongly)
    assert "output" in str(found)


class AddsToArray(nn.Module):
    """Changes an array in place."""

    def forward(self, x: np.ndarray[Any, Any]) -> torch.Tensor:
        """Count up."""
        x += 1
        return torch.from_numpy(x) * 2


def test_inputs_that_compiling_changes_are_put_back() -> None:
    """Those that are arrays, too, of which a tensor is made at each look."""
    own = LoadedModel(module=AddsToArray(), args=(np.ones(4, dtype=np.float32),)).copy()
    start, weights = Snapshot.of(own), state_of(own)
    own.module(*own.args)  # as whoever traces it does
    assert own.args[0].tolist() == [2.0] * 4
    start.compiled(weights, Mode.INFERENCE, set)
    assert own.args[0].tolist() == [1.0] * 4


class WithZeros(nn.Module):
    """A bias as it is created."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 64)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer."""
        out: torch.Tensor = self.layer(x)
        return out


def _folding_zeros(own: Any) -> nn.Module:
    inner = own.module.layer
    own.module.forward = lambda x: nn.functional.linear(
        x, inner.weight, inner.bias - inner.bias.detach()
    )
    return own  # type: ignore[no-any-return]  # of the tests


def test_a_weight_that_is_zero_is_another_later() -> None:
    """Its gradient is right, its value is left out: in training that is wrong after one step."""
    torch.manual_seed(0)
    model, x = WithZeros(), torch.randn(8, 16)
    found = judge(model, x, arm=_folding_zeros, mode=Mode.TRAINING)
    assert str(found).startswith("call on other inputs")
    assert isinstance(judge(model, x, mode=Mode.TRAINING), Checks)


def test_what_compiling_leaves_on_is_told_and_put_back() -> None:
    """Later arms paid for it."""
    told = pytest.raises(WrongResultError, match=r"dtype is torch.float64 once it is compiled")
    with told, keeping_what_is_set():
        torch.set_default_dtype(torch.float64)
    told = pytest.raises(WrongResultError, match="gradients are recorded until it is compiled")
    with told, keeping_what_is_set():
        torch.set_grad_enabled(False)
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()
