"""Models whose copies lead to their original: functions and weak references aren't copied."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import pytest
import torch
from judging import judge, reservations_of
from torch import nn

from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable


class CallsItself(nn.Module):
    """A normalisation that is reached by a function that was made for the original."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.normalised = lambda x: self.norm(x).relu()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 4]` to `[B, 4]`."""
        out: torch.Tensor = self.normalised(self.layer(x))
        return out


class CountsByFunction(nn.Module):
    """A layer that counts its calls in a buffer of the original's."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.count = self._counting()

    def _counting(self) -> Callable[[], object]:
        return lambda: self.seen.add_(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 4]` to `[B, 4]`."""
        self.count()
        out: torch.Tensor = self.layer(x)
        return out


class CountsByReference(CountsByFunction):
    """The same by a weak reference."""

    def _counting(self) -> Callable[[], object]:
        own = weakref.ref(self)

        def count() -> object:
            found = own()
            return None if found is None else found.seen.add_(1)

        return count


class CountsByHook(nn.Module):
    """A layer whose mean is followed by a hook."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))

        def follow(_: nn.Module, __: object, out: torch.Tensor) -> None:
            self.mean.mul_(0.9).add_(out.detach().mean(0), alpha=0.1)

        self.layer.register_forward_hook(follow)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 4]` to `[B, 4]`."""
        out: torch.Tensor = self.layer(x)
        return out * 2


MODELS = (CallsItself, CountsByFunction, CountsByReference, CountsByHook)
INPUTS = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def _replays(model: nn.Module) -> Callable[..., object]:
    kept: list[torch.Tensor] = []

    def call(*args: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = model(*args)
        if not kept:
            kept.append(out.clone())
        return kept[0].clone()

    return call


@pytest.mark.parametrize("is_brief", [False, True])
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("model", MODELS)
def test_what_copies_do_to_the_original_is_no_change(
    model: type[nn.Module], mode: Mode, *, is_brief: bool
) -> None:
    """No call of a right arm is left out, and no buffer is said to change."""
    torch.manual_seed(0)
    found = judge(model().train(mode is Mode.TRAINING), INPUTS, mode=mode, is_brief=is_brief)
    assert "change of buffers" not in reservations_of(found)
    assert "state of its own" not in reservations_of(found)


@pytest.mark.parametrize("is_brief", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_an_arm_that_replays_is_found_out(model: type[nn.Module], *, is_brief: bool) -> None:
    """The call on other inputs tells, as of any other model."""
    torch.manual_seed(0)
    found = judge(model().eval(), INPUTS, arm=_replays, is_brief=is_brief)
    assert isinstance(found, str)
    assert found.startswith("call on other inputs")
