"""The call on other inputs: an input that is taken for a constant shows, or is named."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.alteration import Alteration, alter, left_alone
from dynamometer.common.checking.checking import Checks
from dynamometer.common.checking.copies import nudged
from dynamometer.common.checking.snapshots import state_of
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable


class Scores(nn.Module):
    """Scores tokens, with a bias for each that is given, and by their language."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.languages = nn.Linear(8, 8), nn.Embedding(4, 8)

    def forward(self, x: torch.Tensor, bias: torch.Tensor, language: torch.Tensor) -> torch.Tensor:
        """Map `[B, L, 8]`, `[B, L]` and indices `[B, L]` to `[B, L]`."""
        found = self.layer(x) * self.languages(language)
        return (found.sum(-1) + bias).softmax(-1)


def padding(value: float) -> torch.Tensor:
    """Return a mask that is added, which leaves out the last tokens of each row."""
    return torch.zeros(2, 6).index_fill(1, torch.tensor([4, 5]), value)


def keeping(index: int) -> Callable[[nn.Module], Callable[..., Any]]:
    """Make an arm that takes one input for what it was in the first call."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        first: list[torch.Tensor] = []

        def call(*args: torch.Tensor) -> Any:
            first.append(args[index].clone())
            return module(*args[:index], first[0], *args[index + 1 :])

        return call

    return arm


X = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
ROWS = torch.tensor([[1], [3]]).expand(2, 6).contiguous()


@pytest.mark.parametrize(
    "bias",
    [torch.zeros(2, 6), *map(padding, (-torch.inf, torch.finfo(torch.float32).min, -1e4))],
    ids=["zeros", "-inf", "min", "-1e4"],
)
def test_what_is_added_to_scores_is_looked_at(bias: torch.Tensor) -> None:
    """Also where it adds nothing, or leaves out: half of infinity is as much."""
    found = judge(Scores(), X, bias, ROWS, arm=keeping(1))
    assert isinstance(found, str)
    assert found.startswith("call on other inputs: output")
    assert isinstance(judge(Scores(), X, bias, ROWS), Checks)


def test_indices_that_are_the_same_in_a_row_are_looked_at() -> None:
    """Moved along the last dimension they are what they were; rows change places."""
    found = judge(Scores(), X, torch.rand(2, 6), ROWS, arm=keeping(2))
    assert isinstance(found, str)
    assert found.startswith("call on other inputs: output")


def test_inputs_of_which_no_other_values_are_tried_are_named() -> None:
    """An index of zero has no neighbour that is sure to be in range."""
    found = judge(Scores(), X, torch.rand(2, 6), torch.zeros_like(ROWS), arm=keeping(2))
    assert isinstance(found, Checks)
    assert found.reservations == ("other values of inputs.args[2]",)


def test_indices_of_sparse_inputs_are_named() -> None:
    """Of these the values alone change."""
    matrix = torch.eye(8).to_sparse()
    model = LoadedModel(module=nn.Linear(8, 8), args=(matrix, torch.ones(3), torch.ones(0)))
    named = left_alone(model, Alteration.ALL)
    assert named == ("inputs.args[0]: indices",)


def test_eager_that_fails_on_numbers_instead_of_zeros_is_given_zeros() -> None:
    """The other inputs still change."""

    class Root(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            if bool((y < 0).any()):
                msg = "there is no such root"
                raise ValueError(msg)
            return x * y.exp()

    zeros = torch.zeros(6)
    assert isinstance(judge(Root(), X[0, :, 0], zeros, arm=keeping(0)), str)
    found = judge(Root(), X[0, :, 0], zeros, arm=keeping(1))
    assert isinstance(found, Checks)
    assert found.reservations == ("other values of inputs.args[1]",)


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16])
def test_a_mask_that_rounding_changes_is_a_mask(dtype: Dtype) -> None:
    """-1e4 is -9984 in bfloat16, and other runs of eager may have others."""
    found = judge(Scores(), X, padding(-1e4), ROWS, arm=keeping(1), dtype=dtype)
    assert isinstance(found, str)
    assert found.startswith("call on other inputs: output")


def test_a_branch_that_a_tracer_took_is_another_one() -> None:
    """All numbers change sign, so that what depends on their sum does."""

    class Branches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if bool(x.sum() > 0) else x - 1

    def traced(module: nn.Module) -> Callable[..., Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.jit.trace(module, (X + 0.1,), check_trace=False)

    found = judge(Branches(), X + 0.1, arm=traced)
    assert isinstance(found, str)
    assert found.startswith("call on other inputs: output")
    assert isinstance(judge(Branches(), X + 0.1), Checks)


def test_results_that_become_nan_on_other_inputs_are_named() -> None:
    """Nothing is shown of them there. Other inputs that give fewer are preferred."""

    class Log(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - 0.3).log()

    found = judge(Log(), torch.linspace(0.35, 2, 64))
    assert isinstance(found, Checks)
    assert found.reservations == ("other values of output where it is NaN on other inputs",)

    class Root(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * (y + 0.1).sqrt()

    zeros = judge(Root(), X[0, :, 0], torch.zeros(6))
    assert isinstance(zeros, Checks)
    assert zeros.reservations == ("other values of inputs.args[1]",)


PLACES = torch.randperm(64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("alteration", list(Alteration))
def test_what_is_altered_is_not_for_rounding_to_decide(alteration: Alteration, mode: Mode) -> None:
    """Neither which number of a row is the largest, nor whether any is beyond 1."""
    share, module = 2.0**-6, nn.Linear(64, 64)
    with torch.no_grad():
        module.weight[:, :8] = 0.5 + 0.001 * torch.arange(8)
    inputs = (
        torch.rand(8, 64).clamp(max=0.99), 2 - 0.001 * torch.rand(8, 64), padding(-100.0),
        padding(-60.5).expand(3, 2, 6), torch.rand(1, 64).expand(8, 64),
        torch.cat([torch.zeros(8, 32), torch.rand(8, 30), torch.full((8, 2), 4.0)], 1)[:, PLACES],
    )  # fmt: skip
    model = LoadedModel(module=module, args=inputs)
    exact, copies = model.copy(), [nudged(model, share, seed) for seed in range(4)]
    for each in (exact, *copies):
        alter(each, alteration, mode)
    for each in copies:
        for path, value in state_of(each).items():
            wanted = state_of(exact)[path]
            assert isinstance(value, torch.Tensor)
            assert isinstance(wanted, torch.Tensor)
            torch.testing.assert_close(value, wanted, rtol=1.1 * share, atol=0)
            is_whole = wanted == wanted.round()
            assert torch.equal(value[is_whole], wanted[is_whole])
            assert bool((value != wanted)[~is_whole].float().mean() > 0.9) or is_whole.all()


class Products(nn.Module):
    """Takes from sums of products what they are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Leave on the diagonal what rounding leaves."""
        return x @ x.mT - (x * x).sum(-1)


class OneByOne(nn.Module):
    """Adds products one after another."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Round each sum."""
        products = torch.zeros(len(x), len(x))
        for column in x.unbind(1):
            products = products + column[:, None] * column
        return products - (x * x).sum(-1)


def test_numbers_are_off_by_rounding_wherever_zeros_were() -> None:
    """What is moved to the place of a zero, too: a right arm sums in another order."""
    inputs = 1 + torch.rand(32, 1024, generator=torch.Generator().manual_seed(0))
    inputs[:, ::2] = 0.0
    assert isinstance(judge(Products(), inputs, arm=lambda _: OneByOne()), Checks)


class Expanded(nn.Module):
    """Has a weight whose rows are one in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.weight = nn.Linear(16, 16), nn.Parameter(torch.randn(1, 16).expand(8, 16))

    def forward(self, x: torch.Tensor) -> Any:
        """Weigh, and map."""
        return self.layer(x * self.weight)


class Overlapping(nn.Module):
    """Has a buffer that is part of another."""

    whole: torch.Tensor
    part: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)
        self.register_buffer("whole", torch.zeros(8, 16))
        self.register_buffer("part", self.whole[:, :8])

    def forward(self, x: torch.Tensor) -> Any:
        """Use both."""
        return self.layer(x + self.whole) + self.part


class Widened(nn.Module):
    """Puts another dtype in the place of a buffer."""

    kept: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.register_buffer("kept", torch.zeros(16))

    def forward(self, x: torch.Tensor) -> Any:
        """Keep it from the first call on."""
        self.kept = torch.full((16,), 1.5, dtype=torch.float64)
        return self.layer(x) * self.kept.float()


@pytest.mark.parametrize("kind", [Expanded, Overlapping, Widened])
def test_a_replay_is_found_whatever_memory_a_model_has(kind: Callable[[], nn.Module]) -> None:
    """Runs that show rounding see the same other weights and buffers as eager."""
    torch.manual_seed(0)

    def replaying(module: nn.Module) -> Callable[..., Any]:
        kept: list[torch.Tensor] = []

        def call(x: torch.Tensor) -> Any:
            now = module(x)
            kept.append(now.detach())
            return now + (kept[0] - now.detach())

        return call

    found = judge(kind(), torch.randn(8, 16), arm=replaying, mode=Mode.TRAINING)
    assert isinstance(found, str)
    assert found.startswith("call on other inputs")
