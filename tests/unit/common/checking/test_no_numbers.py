"""Where eager has no number, or a large one that stands for none: what an arm may have there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import torch
from judging import judge, precisely
from torch import nn

from dynamometer.common.checking.checking import Checks
from dynamometer.dynamo.accuracy.accuracy import compare
from dynamometer.dynamo.accuracy.expected import Expected
from dynamometer.dynamo.accuracy.leaves import collect
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.dynamo.accuracy.leaves import Leaf

HALF = [Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.AMP]
EVERY = [Dtype.FLOAT32, *HALF]


class Linear(nn.Module):
    """Sixteen numbers become sixty-four."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 64)


class Masked(Linear):
    """Logits of which a mask leaves some out."""

    def __init__(self, value: float | None = -math.inf) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Fill with a number, or the lowest the dtype has."""
        out: torch.Tensor = self.layer(x)
        return out.masked_fill(
            mask, torch.finfo(out.dtype).min if self.value is None else self.value
        )


def masked(value: float | None) -> tuple[Masked, torch.Tensor, torch.Tensor]:
    """Return a model and its inputs."""
    torch.manual_seed(0)
    return Masked(value), torch.randn(8, 16), torch.rand(8, 64) < 0.3


def filling(value: float) -> Callable[[nn.Module], Callable[..., Any]]:
    """Return an arm that fills with another number."""

    def arm(module: Any) -> Callable[..., Any]:
        return lambda x, mask: module(x, mask & False).masked_fill(mask, value)

    return arm


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("value", [-math.inf, None])
@pytest.mark.parametrize("wrong", [7.0, math.inf, math.nan])
def test_what_is_masked_stays_masked(dtype: Dtype, value: float | None, wrong: float) -> None:
    """Any number agreed with an infinity, and with the lowest number there is."""
    model, x, mask = masked(value)
    assert "where" in str(judge(model, x, mask, arm=filling(wrong), dtype=dtype))


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("value", [-math.inf, None])
def test_a_mask_accuses_nobody(dtype: Dtype, value: float | None) -> None:
    """The lowest number of float64 is none of float32: a right arm was off by nan of itself."""
    model, x, mask = masked(value)
    assert isinstance(judge(model, x, mask, arm=precisely, dtype=dtype), Checks)


class TwoMasks(nn.Module):
    """Attention under two masks, whose sum is a number in half precision, and none in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        """Leave out what is later, and what isn't kept."""
        lowest, length = torch.finfo(x.dtype).min, x.shape[1]
        later = torch.full((length, length), lowest, dtype=x.dtype).triu(1)
        left_out = (1 - keep[:, None].to(x.dtype)) * lowest
        scores = (x @ x.transpose(1, 2) + later).float() + left_out.float()
        out: torch.Tensor = scores.softmax(-1).to(x.dtype) @ self.value(x)
        return out


class RootOfZero(Linear):
    """The root of what is zero in float32, and a rounding below it in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("one", torch.tensor([0.4]))
        self.register_buffer("other", torch.tensor([0.6]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add noise of no size."""
        out: torch.Tensor = self.layer(x) + torch.sqrt(1 - (self.one + self.other))
        return out


def _without_truth() -> list[Any]:
    keep = torch.ones(2, 8)
    keep[0, :3] = 0
    two_masks = (TwoMasks(), torch.randn(2, 8, 16), keep)
    return [
        pytest.param(two_masks, Dtype.FLOAT16, id="two masks"),
        pytest.param((RootOfZero(), torch.randn(8, 16)), Dtype.FLOAT32, id="root of zero"),
    ]


@pytest.mark.parametrize(("model", "dtype"), _without_truth())
def test_no_number_in_float64_frees_none(model: tuple[Any, ...], dtype: Dtype) -> None:
    """Where float64 gave NaN and eager a number, any number passed."""
    torch.manual_seed(0)
    spoilt = judge(*model, arm=lambda own: lambda *args: own(*args) * 3 + 1, dtype=dtype)
    assert "where" in str(spoilt)
    assert isinstance(judge(*model, dtype=dtype), Checks)


def test_nor_in_training() -> None:
    """Then the loss is no number in float64, and gradients are none."""
    model, *inputs = _without_truth()[0].values[0]

    def arm(own: Any) -> nn.Module:
        forward = own.module.forward
        own.module.forward = lambda *args: forward(*args) * 3 - 1
        return own  # type: ignore[no-any-return]  # of the tests

    found = judge(model, *inputs, arm=arm, mode=Mode.TRAINING, dtype=Dtype.FLOAT16)
    assert "loss" in str(found)


class Observed(Linear):
    """Keeps the range of what passes, which begins with nothing."""

    def __init__(self, nothing: float) -> None:
        super().__init__()
        self.register_buffer("lowest", torch.full((64,), nothing))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Observe."""
        out: torch.Tensor = self.layer(x)
        self.lowest.copy_(torch.minimum(self.lowest, out.detach().amin(0)))
        return out


@pytest.mark.parametrize("nothing", [math.inf, 3e38, 1e10, 1e6, 1e4])
def test_what_is_written_over_a_state_counts(nothing: float) -> None:
    """The change from infinity, or from 1e10, is the same whatever is written there."""

    def misobserving(own: Any) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = own.layer(x)
            own.lowest.copy_(torch.minimum(own.lowest, torch.full((64,), -7.0)))
            return out

        return call

    torch.manual_seed(0)
    model, x = Observed(nothing), torch.randn(8, 16)
    assert "buffers.lowest" in str(judge(model, x, arm=misobserving))
    assert isinstance(judge(model, x, arm=precisely), Checks)


class Normed(Linear):
    """Divided by a norm and the smallest step of the dtype, which is another in float64."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise what is small."""
        out: torch.Tensor = self.layer(x) * 1e-4
        return out / (out.norm(dim=-1, keepdim=True) + torch.finfo(out.dtype).eps)


@pytest.mark.parametrize("factor", [2.0, 10.0, -1.0])
def test_another_computation_in_float64_is_no_rounding(factor: float) -> None:
    """All between eager's and float64's values passed, though that is 25 times as much."""
    torch.manual_seed(0)
    model, x = Normed(), torch.randn(8, 16)
    found = judge(model, x, arm=lambda own: lambda x: own(x) * factor, dtype=Dtype.BFLOAT16)
    assert "where" in str(found)
    assert isinstance(judge(model, x, dtype=Dtype.BFLOAT16), Checks)


def _leaf(*values: float) -> dict[str, Leaf]:
    return collect(torch.tensor(values))


def test_rounding_may_decide_whether_there_is_a_number_and_that_is_said() -> None:
    """An arm may have none where some run of eager has none, and nowhere else."""
    expected = Expected.of(_leaf(1.0, 3e38), _leaf(1.0, 3e38), [_leaf(1.0, math.inf)])
    found = compare(expected, _leaf(1.0, math.inf), 1e-4)
    assert (found.mismatch, found.loose) == (None, {"output": 1.0})
    assert compare(expected, _leaf(1.0, 3e38), 1e-4).loose == {}
    assert "7 where" in str(compare(expected, _leaf(1.0, 7.0), 1e-4).mismatch)
    assert "inf where" in str(compare(expected, _leaf(math.inf, 3e38), 1e-4).mismatch)


def test_an_arm_may_have_a_rare_jump_and_no_number_elsewhere() -> None:
    """Coarse runs explain the one, a run that has none there the other."""
    eager, truth = _leaf(1.0, 2.0, *[1.0] * 20), _leaf(1.0, 2.0, *[1.0] * 20)
    runs = [_leaf(1.0, math.inf, *[1.0 + 1e-7] * 20)]
    coarse = _leaf(1.01, 2.0, *[1.0 + 1e-6] * 20)
    expected = Expected.of(eager, truth, runs).with_run(coarse, coarse=True)
    actual = _leaf(1.01, math.inf, *[1.0] * 20)
    assert compare(expected, actual, 1e-4).mismatch is None


class Softmax(Linear):
    """Weights of an exponential that overflows: NaN where it does, zero beside that."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Divide by the sum."""
        scores = (self.layer(x) * 60).exp()
        return scores / scores.sum(-1, keepdim=True)


def _stable(module: Any) -> Callable[..., Any]:
    return lambda x: (module.layer(x) * 60).softmax(-1)


def _wide(module: Any) -> Callable[..., Any]:
    def call(x: torch.Tensor) -> torch.Tensor:
        weight, bias = module.layer.weight.double(), module.layer.bias.double()
        return ((x.double() @ weight.T + bias) * 60).softmax(-1).to(x.dtype)

    return call


def _half(module: Any) -> Callable[..., Any]:
    return lambda x: _wide(module)(x) / 2


@pytest.mark.parametrize(
    ("arm", "dtype"),
    [(_stable, Dtype.FLOAT32), (_wide, Dtype.FLOAT32), (_wide, Dtype.FLOAT16)],
)
def test_who_does_not_overflow_is_right(arm: Callable[..., Any], dtype: Dtype) -> None:
    """Where eager gives NaN, and where it divides by infinity; another number is wrong in both."""
    torch.manual_seed(0)
    model, x = Softmax(), torch.randn(32, 16) * 4
    assert not bool(model(x).isfinite().all())
    assert bool(model(x).isfinite().any())
    assert isinstance(judge(model, x, arm=arm, dtype=dtype), Checks)
    assert isinstance(judge(model, x, dtype=dtype), Checks)
    assert isinstance(judge(model, x, arm=_half, dtype=dtype), str)
