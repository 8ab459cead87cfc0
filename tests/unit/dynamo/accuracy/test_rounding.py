from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.checking import Checks
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.rounding import (
    DrawsOf,
    OtherKernels,
    change_of,
    multiplied_in_tf32,
    nudge,
)
from dynamometer.results.values.cases import MatmulPrecision, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[torch.dtype], torch.Tensor]

DRAWS: dict[str, Draw] = {
    "rand": lambda dtype: torch.rand(9, dtype=dtype),
    "randn_like": lambda dtype: torch.randn_like(torch.zeros(9, dtype=dtype)),
    "uniform_": lambda dtype: torch.zeros(9, dtype=dtype).uniform_(),
    "dropout": lambda dtype: torch.nn.functional.dropout(torch.ones(9, dtype=dtype)),
    "bernoulli": lambda dtype: torch.bernoulli(torch.full((9,), 0.5, dtype=dtype)),
    "normal": lambda dtype: torch.normal(torch.zeros(9, dtype=dtype), 1.0),
    "randint": lambda dtype: torch.randint(7, (9,)).to(dtype),
}


def generator() -> torch.Generator:
    """Return a generator that always draws the same."""
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_nudge_is_as_small_as_rounding(dtype: torch.dtype) -> None:
    """No element moves by more than its share; most do move."""
    values = torch.rand(1000, generator=generator(), dtype=torch.float64).to(dtype) + 0.01
    nudged = nudge(values, change_of(torch.float32), generator())
    if dtype in {torch.bfloat16, torch.float16}:
        nudged = nudge(values, change_of(dtype), generator())
    moved = (nudged.double() / values.double() - 1).abs()
    assert nudged.dtype is dtype
    assert float(moved.max()) <= 5 * torch.finfo(dtype).eps
    assert float((moved > 0).double().mean()) > 0.3


def test_whole_numbers_stay_what_they_are() -> None:
    """Indices in floating point, masks, and weights that start as ones and zeros."""
    values = torch.tensor([0.0, 1.0, -3.0, torch.inf])
    assert torch.equal(nudge(values, 0.5, generator()), values)
    tokens = torch.arange(3)
    assert nudge(tokens, 0.5, generator()) is tokens


def test_a_nudge_leaves_the_models_own_draws_alone() -> None:
    """Eager and its other runs draw the same numbers."""
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    nudge(torch.rand(0), 0.1, generator())
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_float64_draws_what_eager_draws(name: str, dtype: torch.dtype) -> None:
    """Else a dropout would have another mask, and noise be other noise."""
    draw = DRAWS[name]
    torch.manual_seed(0)
    expected = draw(dtype)
    torch.manual_seed(0)
    with DrawsOf(dtype):
        found = draw(torch.float64)
    assert found.dtype is torch.float64
    assert torch.equal(found, expected.double())


def test_attention_without_dropout_computes_in_float64() -> None:
    """It may draw, says its tag, but does not; nor does it move the generator."""
    query = torch.randn(1, 2, 8, 16, dtype=torch.float64, generator=generator())
    weights = torch.softmax(query @ query.transpose(-1, -2) / 4, -1)
    torch.manual_seed(0)
    expected = torch.rand(3, dtype=torch.float64)
    torch.manual_seed(0)
    with torch.no_grad(), DrawsOf(torch.bfloat16):
        found = torch.nn.functional.scaled_dot_product_attention(query, query, query)
    torch.testing.assert_close(found, weights @ query, rtol=1e-12, atol=1e-12)
    assert torch.equal(torch.rand(3, dtype=torch.float64), expected)


def test_other_operators_compute_in_float64() -> None:
    """Only what draws is narrowed."""
    third = torch.ones((), dtype=torch.float64) / 3
    with DrawsOf(torch.float32):
        found = torch.ones((), dtype=torch.float64) / 3
    assert torch.equal(found, third)


@pytest.mark.parametrize("times", [1.0, 16.0])
def test_statistics_are_off_by_roundings_of_what_is_summed(times: float) -> None:
    """A mean of zero too, as where it is summed in float32; what is normalised hardly changes."""

    def statistics() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        norm = torch.nn.BatchNorm2d(4, affine=False, momentum=1.0)
        values = x.clone().requires_grad_()
        found = norm(values)
        found.backward(x.flip(0))
        assert norm.running_mean is not None
        assert values.grad is not None
        return found.detach(), norm.running_mean, values.grad

    size = torch.tensor([1.0, 10.0, 100.0, 0.01])
    x = torch.randn(8, 4, 32, 32, generator=generator()) * size.view(1, 4, 1, 1)
    x -= x.mean((0, 2, 3), keepdim=True)
    expected = statistics()
    with OtherKernels(0, times):
        found = statistics()
    roundings = (found[1] - expected[1]).abs() / (times * torch.finfo(x.dtype).eps * size)
    assert 0.5 < float(roundings.max()) < 6
    for index in (0, 2):  # what is normalised, and its gradient
        torch.testing.assert_close(found[index], expected[index], rtol=1e-3, atol=1e-4)


IN_TF32 = {"convolution": (0, 1), "convolution_backward": (0, 1, 2)}


def test_what_is_multiplied_in_tf32_is_off_by_a_fourth_of_its_roundings() -> None:
    """Forward and backward, other operators not at all."""
    torch.manual_seed(0)
    layer, other = torch.nn.Conv2d(8, 8, 3), torch.nn.Conv2d(8, 8, 1)
    x = torch.randn(2, 8, 16, 16, generator=generator())

    def step(convolution: torch.nn.Conv2d) -> tuple[torch.Tensor, ...]:
        found = convolution(x)
        return (found.detach(), *torch.autograd.grad((found * found).sum(), convolution.weight))

    expected, untouched = step(layer), step(other)
    rounded = convolved_in_tf32(layer, x) - expected[0]
    with OtherKernels(0, in_tf32=IN_TF32):
        found = step(layer)
    assert 0.15 < float((found[0] - expected[0]).norm() / rounded.norm()) < 0.4
    assert 1e-6 < float((found[1] - expected[1]).norm() / expected[1].norm()) < 1e-3
    with OtherKernels(0, in_tf32={"mm": (0, 1)}):
        assert all(torch.equal(*pair) for pair in zip(step(other), untouched, strict=True))


def convolved_in_tf32(layer: torch.nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
    """Convolve as tensor cores do: operands have ten bits of mantissa, sums are float32."""

    def rounded(values: torch.Tensor) -> torch.Tensor:
        mantissa, exponent = torch.frexp(values)
        return torch.ldexp((mantissa * 2**11).round() / 2**11, exponent)

    with torch.no_grad():
        return torch.nn.functional.conv2d(rounded(x), rounded(layer.weight), layer.bias)


@pytest.mark.parametrize(
    "values",
    [
        torch.ones(1, 2, 4, 4),
        torch.randn(1, 2, 4, 4, generator=generator()).bfloat16().float(),
        torch.randn(1, 2, 4, 4, generator=generator(), dtype=torch.bfloat16),
    ],
)
def test_what_tf32_has_numbers_for_is_not_off(values: torch.Tensor) -> None:
    """Masks, counts, means over powers of two; half precision, which is no wider, at all."""
    weight = torch.full((2, 2, 3, 3), 0.125, dtype=values.dtype)
    given = values.transpose(2, 3)
    expected = torch.nn.functional.conv2d(given, weight)
    with OtherKernels(0, 64.0, IN_TF32):
        assert torch.equal(torch.nn.functional.conv2d(given, weight), expected)


def test_what_is_multiplied_in_tf32_depends_on_device_and_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Convolutions by default, matrices where a lower precision is asked; no card, nothing."""
    with state.running(Mode.INFERENCE, None):
        monkeypatch.setattr(torch.cuda, "is_tf32_supported", lambda: False)
        assert not multiplied_in_tf32("cuda")
        monkeypatch.setattr(torch.cuda, "is_tf32_supported", lambda: True)
        assert not multiplied_in_tf32("cpu")
        assert not multiplied_in_tf32("a device of somebody's own")
        assert set(multiplied_in_tf32("cuda:0")) >= {"convolution", "convolution_backward"}
        assert "mm" not in multiplied_in_tf32("cuda")
    with state.running(Mode.INFERENCE, None, exact=True):
        assert not multiplied_in_tf32("cuda")
    with state.running(Mode.INFERENCE, None, precision=MatmulPrecision.HIGH):
        found = multiplied_in_tf32("cuda")
    assert set(found) >= {"convolution", "mm", "addmm", "bmm"}
    for name, places in found.items():
        operator = getattr(torch.ops.aten, name)
        arguments = getattr(operator, operator.overloads()[0])._schema.arguments
        assert all("Tensor" in str(arguments[place].type) for place in places), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parts_in_half_precision_are_off_by_a_rounding_at_times(dtype: torch.dtype) -> None:
    """What is computed; not whole numbers, nor what only looks at memory or copies it."""
    values = torch.randn(4096).to(dtype)
    with OtherKernels(0, has_half_parts=True):
        doubled, view, copy = values * 2, values.view(64, 64), values.clone()
        whole = torch.arange(64).to(dtype) * 2
        moved = torch.cat([values, values]).relu().amax()
        none = torch.tensor([-math.inf, math.inf, math.nan]).to(dtype) * 2
    changed = doubled != values * 2
    assert 0.08 < float(changed.double().mean()) < 0.17
    off = (doubled.double() / (values * 2).double() - 1).abs()
    assert float(off.max()) <= 2 * torch.finfo(dtype).eps
    assert view.data_ptr() == values.data_ptr()
    assert torch.equal(copy, values)
    assert moved == values.amax()
    assert none.tolist()[:2] == [-math.inf, math.inf]
    assert torch.equal(whole, torch.arange(64).to(dtype) * 2)
    with OtherKernels(0):
        assert torch.equal(values * 2, values + values)


class HasHalfParts(nn.Module):
    """A model in float32 that computes a part in bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Round twice, after each operator."""
        y = self.layer(x).relu().bfloat16()
        out: torch.Tensor = self.last((y * 1.3 + 0.2).float())
        return out


def _rounding_once(times: float = 1.0) -> Callable[[Any], Callable[..., Any]]:
    def arm(module: Any) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> Any:
            y = module.layer(x).relu().bfloat16().float()
            return module.last((y * 1.3 + 0.2).bfloat16().float()) * times

        return call

    return arm


def test_a_model_in_float32_may_have_parts_in_half_precision() -> None:
    """Who fuses their operators rounds more seldom; a factor is none of rounding."""
    torch.manual_seed(0)
    model, x = HasHalfParts(), torch.randn(16, 64)
    assert isinstance(judge(model, x, arm=_rounding_once()), Checks)
    assert isinstance(judge(model, x, arm=_rounding_once(1.1)), str)


class Attends(nn.Module):
    """Causal attention of a model in float32, in bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mask with infinity."""
        with torch.autocast("cpu", torch.bfloat16):
            q, k, v = self.layer(x).chunk(3, -1)
            later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
            out = (q @ k.transpose(1, 2)).masked_fill(later, -math.inf).softmax(-1) @ v
        return out.float()


def _without_a_number(module: Any) -> Callable[..., Any]:
    def call(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = module(x)
        out[0, 0] = math.nan
        return out

    return call


def test_what_rounding_does_to_parts_excuses_no_missing_number() -> None:
    """An infinity times nothing would be one in every run."""
    torch.manual_seed(0)
    model, x = Attends(), torch.randn(2, 8, 16)
    assert isinstance(judge(model, x), Checks)
    assert isinstance(judge(model, x, arm=_without_a_number), str)


class Picks(nn.Module):
    """Leaves the largest number, found in bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compare with it."""
        y = self.layer(x).bfloat16()
        return (y * (y == y.amax(-1, keepdim=True))).float()


def test_what_selects_rounds_nothing() -> None:
    """Else an arm that leaves out what is largest would be right."""
    torch.manual_seed(0)
    model, x = Picks(), torch.randn(32, 16)
    assert isinstance(judge(model, x), Checks)
    assert isinstance(judge(model, x, arm=lambda module: lambda x: module(x) * 0), str)


class FromTails(nn.Module):
    """Keeps little of a function that is near -1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Cancel."""
        return (1 + torch.tanh(x)) / 1000


@pytest.mark.parametrize(("dtype", "first"), [(torch.float32, -12.0), (torch.float64, -25.0)])
def test_functions_may_be_off_by_a_rounding(dtype: torch.dtype, first: float) -> None:
    """Inductor's tanh gives -1 in float64 where eager's gives the number beside it."""
    x = torch.linspace(first, 5.0, 512, dtype=dtype)

    def rounded_to_one(_: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
        def call(x: torch.Tensor) -> torch.Tensor:
            found = torch.tanh(x)
            near = found.abs() >= 1 - torch.finfo(dtype).eps
            return (1 + torch.where(near, found.sign(), found)) / 1000

        return call

    def without_one(module: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: torch.where(torch.arange(512) == 300, 0.0, module(x)).to(dtype)

    assert not bool((rounded_to_one(nn.Module())(x) == FromTails()(x)).all())
    assert isinstance(judge(FromTails(), x, arm=rounded_to_one), Checks)
    found = judge(FromTails(), x, arm=without_one)
    assert isinstance(found, str)
    assert "1 of 512 elements are wrong, the worst at [300]: 0 where" in found
