"""Eager that comes to something else by being called, and what is no excuse for an arm."""

from __future__ import annotations

from typing import Any

import factories
import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import Reference, reference_of
from dynamometer.common.checking.steps import configure
from dynamometer.common.interfaces.outcome import NondeterministicError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.dynamo import state
from dynamometer.results.values.cases import Mode


class Counts(nn.Module):
    """A layer whose results are halved from some call on, or once in so many."""

    def __init__(self, *, after: int = 10**9, each: int = 10**9) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.after, self.each, self.calls = after, each, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 4]` to `[B, 4]`."""
        self.calls += 1
        halved = self.calls > self.after or self.calls % self.each == 0
        out: torch.Tensor = self.layer(x)
        return out / 2 if halved else out


def reference_for(module: nn.Module, mode: Mode = Mode.INFERENCE) -> Reference:
    """Run eager."""
    case = factories.case(mode=mode)
    loaded = configure(
        LoadedModel(module=module, args=(torch.randn(2, 4),)), case, torch.device("cpu")
    )
    return reference_of(loaded, case, Settings(seed=0, tolerance=1e-4))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    ("model", "calls", "moves"),
    [
        (Counts(after=5), 20, True),
        (Counts(after=5), 5, False),
        (Counts(each=7), 20, True),
        (Counts(after=300), 400, True),
        (Counts(), 400, False),
        (nn.Linear(4, 4), 20, False),
    ],
)
def test_a_model_that_counts_its_calls_moves_on(
    model: nn.Module, calls: int, mode: Mode, *, moves: bool
) -> None:
    """From then on its calls are not compared; those of any other model are."""
    with state.running(mode, None):
        reference = reference_for(model, mode)
        assert reference.is_repeatable
        assert reference.moves_on(calls) is moves
    assert reference.is_repeatable is not moves


def test_what_others_do_to_eager_is_no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that puts a kernel of its own in the place of torch's, wrong now and then."""
    linear, calls = nn.functional.linear, [0]

    def worse(*args: Any) -> torch.Tensor:
        calls[0] += 1
        return linear(*args) / (1 if calls[0] < 6 else 2)

    with state.running(Mode.INFERENCE, None):
        reference = reference_for(nn.Linear(4, 4))
        monkeypatch.setattr(nn.functional, "linear", worse)
        assert not reference.moves_on(20)
    assert reference.is_repeatable


class Aging(nn.Module):
    """Every copy of it gives twice what the one before does."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor

    def __deepcopy__(self, memo: dict[int, Any]) -> Aging:
        """Make one."""
        self.factor *= 2
        return Aging(self.factor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale."""
        return x * self.factor


@pytest.mark.parametrize("is_brief", [False, True])
def test_a_model_whose_copies_differ_is_not_the_arms_fault(*, is_brief: bool) -> None:
    """Briefly no second copy is called, until an arm would be wrong."""
    with pytest.raises(NondeterministicError, match="two eager runs from one seed"):
        judge(Aging(), torch.randn(2, 4), is_brief=is_brief)


class Buffered(nn.Linear):
    """Counts in a buffer."""

    def __init__(self) -> None:
        super().__init__(4, 4)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 4]` to `[B, 4]`."""
        self.count += 1
        return super().forward(x)


@pytest.mark.parametrize(
    ("model", "is_brief", "calls"),
    [
        (nn.Linear(4, 4), True, 2),
        (Buffered(), True, 3),
        (nn.Linear(4, 4), False, 6),
    ],
)
def test_briefly_eager_is_called_as_seldom_as_may_be(
    model: nn.Module, *, is_brief: bool, calls: int
) -> None:
    """Once, once on other inputs, and again where a call changes what the next begins with."""
    seen: list[int] = []
    model.register_forward_pre_hook(lambda *_: seen.append(1))
    case = factories.case()
    with state.running(Mode.INFERENCE, None):
        loaded = configure(
            LoadedModel(module=model, args=(torch.randn(2, 4),)), case, torch.device("cpu")
        )
        reference_of(loaded, case, Settings(seed=0, tolerance=1e-4, is_brief=is_brief))
    assert len(seen) == calls


class Hoards(nn.Module):
    """Keeps numbers where nobody looks, and uses how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale."""
        self.seen.append(1)
        return x * len(self.seen)


def test_state_that_is_not_seen_is_not_the_arms_fault() -> None:
    """Briefly eager's second call is made before an arm is accused of its own."""
    with pytest.raises(NondeterministicError, match="differ at output"):
        judge(Hoards(), torch.randn(2, 4), is_brief=True)
