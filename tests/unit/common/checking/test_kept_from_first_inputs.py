"""Backends that keep what they took from the first inputs: a scale, a count, a mask, a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from judging import judge
from torch import nn
from torch.nn import functional as F  # noqa: N812  as everybody calls it

from dynamometer.common.checking.checking import Checks
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from judging import Arm

LENGTHS = torch.tensor([10, 7, 5, 3])
MASK = torch.arange(10)[None] < LENGTHS[:, None]


class Uses(nn.Module):
    """Computes with something that it takes from its inputs, or is given."""

    def __init__(self, taken: Callable[..., Any], used: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)
        self.taken, self.used = taken, used

    def forward(self, *inputs: torch.Tensor, kept: Any = None) -> torch.Tensor:
        """Take it unless it is given, and compute with it."""
        taken = self.taken(*inputs) if kept is None else kept
        return self.used(self.layer, taken, *inputs)


def keeping(taken: Callable[..., Any]) -> Arm:
    """Keep what a function gives of the first inputs."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        kept: list[Any] = []

        def call(*inputs: torch.Tensor) -> Any:
            if not kept:
                kept.append(taken(*inputs))
            return module(*inputs, kept=kept[0])

        return call

    return arm


def mean_of_used(layer: nn.Linear, count: Any, x: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    """Return the mean over what a mask leaves in."""
    return (layer(x) * (used != 0)[..., None]).sum(1) / count


CASES = {
    "largest size": (
        lambda x: x.abs().max(),
        lambda layer, scale, x: layer((x / scale * 127).round() * scale / 127),
        (torch.randn(5, 16),),
    ),
    "smallest and largest": (
        lambda x: (x.min(), x.max()),
        lambda layer, ends, x: layer((x - ends[0]) / (ends[1] - ends[0])),
        (torch.randn(3, 16),),
    ),
    "counts of a mask": (
        lambda _, mask: mask.sum(1, keepdim=True), mean_of_used, (torch.randn(4, 10, 16), MASK),
    ),
    "counts that are not padding": (
        lambda _, ids: (ids != 0).sum(1, keepdim=True),
        mean_of_used,
        (torch.randn(4, 10, 16), torch.arange(1, 41).reshape(4, 10) * MASK),
    ),
    "which rows are zero": (
        lambda x: x.any(-1, keepdim=True),
        lambda layer, is_used, x: (layer(x) * is_used).sum(1),
        (torch.randn(4, 10, 16) * MASK[..., None],),
    ),
    "where numbers are not zero": (
        lambda x: x.flatten().nonzero()[:, 0],
        lambda _, places, x: x.flatten()[places].exp(),
        (torch.randn(4, 16).relu(),),
    ),
    "sizes of two groups": (
        lambda _, groups: torch.bincount(groups, minlength=2)[:, None].clamp(min=1),
        lambda layer, sizes, x, groups: torch.zeros(2, 8).index_add(0, groups, layer(x)) / sizes,
        (torch.randn(40, 16), torch.arange(40) % 3 % 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("taken", "used", "inputs"), CASES.values(), ids=CASES)
def test_what_was_taken_from_the_first_inputs_is_wrong_for_others(
    taken: Callable[..., Any], used: Callable[..., torch.Tensor], inputs: tuple[torch.Tensor, ...]
) -> None:
    """And right where it is taken anew."""
    torch.manual_seed(0)
    assert isinstance(judge(Uses(taken, used), *inputs), Checks)
    found = judge(Uses(taken, used), *inputs, arm=keeping(taken))
    assert isinstance(found, str)
    assert "call on other inputs" in found


class Quantised(nn.Module):
    """Rounds weights to a scale of their own, which it computes or is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 12)

    def scale(self) -> torch.Tensor:
        """Compute it."""
        return self.layer.weight.detach().abs().max() / 127

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 12]`."""
        scale = self.scale() if scale is None else scale
        weight = self.layer.weight
        rounded = weight + ((weight / scale).round() * scale - weight).detach()
        return F.linear(x, rounded, self.layer.bias)


def test_what_was_taken_from_the_first_weights_is_wrong_in_training() -> None:
    """As they are others after each step."""

    def arm(module: Any) -> Callable[..., Any]:
        scale = module.module.scale()
        return lambda x: module(x, scale)

    torch.manual_seed(0)
    found = judge(Quantised(), torch.randn(4, 16), mode=Mode.TRAINING, arm=arm)
    assert isinstance(found, str)
    assert "call on other inputs" in found


class Counts(nn.Module):
    """Is another computation from its third call on, by a number that it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.calls = nn.Linear(16, 8), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 8]`."""
        self.calls += 1
        y: torch.Tensor = self.layer(x)
        return y * 2 if self.calls > 2 else y


@pytest.mark.parametrize("mode", Mode)
def test_no_more_than_two_calls_of_what_counts_them_are_compared(mode: Mode) -> None:
    """What a model keeps in plain attributes can't be put back."""
    found = judge(Counts(), torch.randn(4, 16), mode=mode)
    assert isinstance(found, Checks)
    assert "calls after the second" in " ".join(found.unchecked)


class FromItsFirstBatch(nn.Module):
    """Takes a mean from its first batch, and is another computation from then on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)
        self.register_buffer("done", torch.zeros((), dtype=torch.bool))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 8]`."""
        y: torch.Tensor = self.layer(x)
        if self.done:
            return y * 2
        self.done.fill_(value=True)
        return y - y.mean(0)


@pytest.mark.parametrize("mode", Mode)
def test_the_second_step_goes_on_from_the_buffers_of_the_first(mode: Mode) -> None:
    """Which is what is timed, in training, too."""

    def arm(module: Any) -> Callable[..., Any]:
        model = getattr(module, "module", module)
        return lambda x: module(x) * 0 + 123 if model.done else module(x)

    torch.manual_seed(0)
    model, x = FromItsFirstBatch(), torch.randn(4, 16)
    assert isinstance(judge(model, x, mode=mode), Checks)
    found = judge(model, x, mode=mode, arm=arm)
    assert isinstance(found, str)
    assert "second call" in found
