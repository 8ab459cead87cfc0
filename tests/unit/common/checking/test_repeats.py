"""Eager that comes to something else by being called, and what is no excuse for an arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import factories
import pytest
import torch
from judging import judge, reservations_of
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from dynamometer.common.checking.checking import KEEPS_STATE, Checks, check_first_calls
from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import reference_of
from dynamometer.common.checking.snapshots import Snapshot, state_of
from dynamometer.common.checking.steps import configure, make_step
from dynamometer.common.interfaces.outcome import (
    NondeterministicError,
    SkippedError,
    WrongResultError,
)
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.dynamo import state
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER = 10**9


class Counts(nn.Module):
    """A layer whose results are halved from some call on, or once in so many."""

    def __init__(self, *, after: int = NEVER, each: int = NEVER, raises: int = NEVER) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.after, self.each, self.raises, self.calls = after, each, raises, [0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 4]` to `[B, 4]`."""
        self.calls[0] += 1
        if self.calls[0] > self.raises:
            msg = "no more"
            raise ValueError(msg)
        halved = self.calls[0] > self.after or self.calls[0] % self.each == 0
        out: torch.Tensor = self.layer(x)
        return out / 2 if halved else out


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    ("model", "calls"),
    [
        (Counts(after=5), 0),
        (Counts(each=7), 0),
        (Counts(after=14), 0),
        (Counts(after=20), 30),
        (Counts(each=100), 90),
    ],
)
def test_no_arm_is_to_blame_for_a_model_that_counts(
    model: nn.Module, calls: int, mode: Mode
) -> None:
    """Where it comes to something else eager does so, too; that is said."""
    found = judge(model, torch.randn(2, 4), mode=mode, calls=calls)
    assert KEEPS_STATE in reservations_of(found)


def test_a_model_that_only_counts_is_compared() -> None:
    """As any other is."""
    assert KEEPS_STATE not in reservations_of(judge(Counts(), torch.randn(2, 4), calls=30))


def replaying(module: nn.Module) -> Callable[..., Any]:
    """Return what gives the first answer for ever."""
    answers: list[torch.Tensor] = []

    def call(x: torch.Tensor) -> torch.Tensor:
        if not answers:
            answers.append(module(x).detach().clone())
        return answers[0].clone()

    return call


@pytest.mark.parametrize(
    ("after", "calls", "is_brief"),
    [(10, 0, True), (100, 60, False), (10, 0, False), (14, 0, False), (3, 0, False)],
)
def test_a_model_that_counts_is_no_excuse_for_another_call(
    after: int, calls: int, *, is_brief: bool
) -> None:
    """Where eager is not wrong in the very call in which the arm is, the arm is."""
    arm, x = replaying, torch.randn(2, 4)
    found = judge(Counts(after=after), x, arm=arm, calls=calls, is_brief=is_brief)
    assert isinstance(found, str)
    assert found.startswith("call on other inputs: output")


def fading(module: nn.Module) -> Callable[..., Any]:
    """Return what is wrong from its tenth call on."""
    calls = [0]

    def call(x: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        out: torch.Tensor = module(x)
        return out if calls[0] < 10 else out * 2

    return call


@pytest.mark.parametrize("model", [Counts(), Counts(after=40), Counts(raises=6), nn.Linear(4, 4)])
def test_an_arm_that_goes_wrong_is_found(model: nn.Module) -> None:
    """Whether or not the model counts, or raises when it is called once more by itself."""
    found = judge(model, torch.randn(2, 4), arm=fading if not _raises(model) else later)
    assert isinstance(found, str)
    assert found.startswith("later call (number ")


def _raises(model: nn.Module) -> bool:
    return isinstance(model, Counts) and model.raises < NEVER


def later(module: nn.Module) -> Callable[..., Any]:
    """Return what is wrong from its fifth call on, and calls the model no more."""
    calls, kept = [0], []

    def call(x: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        if calls[0] < 5:
            kept.append(module(x).detach())
        return kept[-1] * (1 if calls[0] < 5 else 2)

    return call


@pytest.mark.parametrize(("model", "right"), [(nn.Linear(4, 4), 6), (Counts(), 0)])
def test_what_others_do_to_eager_is_no_excuse(
    model: nn.Module, right: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel in the place of torch's that is wrong at once, or from some call on."""
    linear, calls = nn.functional.linear, [0]

    def worse(*args: Any) -> torch.Tensor:
        calls[0] += 1
        return linear(*args) / (1 if calls[0] <= right else 2)

    def arm(module: nn.Module) -> nn.Module:
        monkeypatch.setattr(nn.functional, "linear", worse)
        return module

    assert isinstance(judge(model, torch.randn(2, 4), arm=arm), str)


_MOVED = "since the arms are there eager differs"


@pytest.mark.parametrize("is_right", [False, True])
def test_no_arm_is_held_to_what_one_before_it_has_made_of_eager(*, is_right: bool) -> None:
    """A hook for all modules; runs of eager that are made by then would take that for rounding."""
    model, hooks = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), []

    def as_eager_is_by_now(own: nn.Module) -> nn.Module:
        if not hooks:
            hooks.append(register_module_forward_hook(lambda _, __, output: output * 1.2))
        return own

    case = factories.case()
    loaded = configure(
        LoadedModel(module=model, args=(torch.randn(4, 8),)), case, torch.device("cpu")
    )
    settings = Settings(seed=0, tolerance=1e-4)
    with state.running(Mode.INFERENCE, None):
        reference = reference_of(loaded, case, settings)

        def check(arm: Callable[[nn.Module], Callable[..., Any]]) -> None:
            own = loaded.copy()
            step = make_step(arm(own.module), own, Mode.INFERENCE, 0)
            check_first_calls(step, Snapshot.of(own), reference)

        def as_eager_was(own: nn.Module) -> Callable[..., Any]:
            """Compute what eager did, and have it compute something else from then on."""
            own = as_eager_is_by_now(own)
            return lambda x: nn.functional.relu(nn.functional.linear(x, own[0].weight, own[0].bias))

        try:
            if is_right:
                check(as_eager_was)
            else:
                with pytest.raises(WrongResultError, match=_MOVED):
                    check(as_eager_is_by_now)
            assert _MOVED in (reference.constancy.blame("first") or "")
            with pytest.raises(SkippedError, match="run it without those before it"):
                check(lambda own: lambda x: own(x) * 1.15)
            reference.constancy.blame("second")
            assert reference.constancy.moved_by == "first"
        finally:
            hooks[0].remove()


def test_briefly_kernels_that_are_replaced_are_the_arms_doing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eager differs since then, and does so in every copy."""
    linear = nn.functional.linear

    def arm(module: nn.Module) -> nn.Module:
        monkeypatch.setattr(nn.functional, "linear", lambda *args: linear(*args) * 1.5)
        return module

    found = judge(nn.Linear(4, 4), torch.randn(2, 4), arm=arm, is_brief=True)
    assert found == "output: since the arms are there eager differs"


def test_briefly_a_kernel_that_is_unsteady_is_the_arms_doing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No copy of the model repeats itself then."""
    linear, calls = nn.functional.linear, [0]

    def worse(*args: Any) -> torch.Tensor:
        calls[0] += 1
        return linear(*args) * (1 + calls[0])

    def arm(module: nn.Module) -> nn.Module:
        monkeypatch.setattr(nn.functional, "linear", worse)
        return module

    found = judge(nn.Linear(4, 4), torch.randn(2, 4), arm=arm, is_brief=True)
    assert found == "output: since the arms are there eager differs"


@pytest.mark.parametrize("right", [1, 2, 3, 4])
def test_briefly_a_kernel_that_fails_later_is_the_arms_doing(
    right: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where no copy can be called any more."""
    linear, calls = nn.functional.linear, [0]

    def worse(*args: Any) -> torch.Tensor:
        calls[0] += 1
        if calls[0] > right:
            msg = "no more"
            raise ValueError(msg)
        return linear(*args) * 1.5

    def arm(module: nn.Module) -> Callable[..., Any]:
        monkeypatch.setattr(nn.functional, "linear", worse)
        return lambda x: linear(x, module.weight, module.bias) * 1.5

    found = judge(nn.Linear(4, 4), torch.randn(2, 4), arm=arm, is_brief=True)
    assert found == "output: since the arms are there eager differs"


class HoldsItself(Counts):
    """Has an attribute without an end."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[object] = []
        self.kept.append(self.kept)


def test_a_model_that_cannot_be_copied_again_is_no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arm was wrong without that."""

    def no_more(*_: object) -> None:
        msg = "no more copies"
        raise MemoryError(msg)

    def arm(module: nn.Module) -> Callable[..., Any]:
        monkeypatch.setattr(HoldsItself, "__deepcopy__", no_more, raising=False)
        return fading(module)

    found = judge(HoldsItself(), torch.randn(2, 4), arm=arm)
    assert isinstance(found, str)
    assert found.startswith("later call (number ")


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


def test_a_model_that_memory_is_too_small_for_is_not_wrong() -> None:
    """Whether its copies differ, when two are made for that, can't be told then."""

    def end(copies: int) -> type[Exception]:
        left = [None] * copies

        class Large(Aging):
            def __deepcopy__(self, memo: dict[int, Any]) -> Aging:
                if not left:
                    raise MemoryError
                left.pop()
                return super().__deepcopy__(memo)

        with pytest.raises((MemoryError, NondeterministicError)) as raised:
            judge(Large(), torch.randn(2, 4), is_brief=True)
        return raised.type

    assert {*map(end, range(3, 12))} == {MemoryError, NondeterministicError}


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
    [(nn.Linear(4, 4), True, 3), (Buffered(), True, 3), (nn.Linear(4, 4), False, 6)],
)
def test_briefly_eager_is_called_as_seldom_as_may_be(
    model: nn.Module, *, is_brief: bool, calls: int
) -> None:
    """Twice, and once on other inputs, or on another copy where it keeps state."""
    seen: list[int] = []
    model.register_forward_pre_hook(lambda *_: seen.append(1))
    case = factories.case()
    with state.running(Mode.INFERENCE, None):
        loaded = configure(
            LoadedModel(module=model, args=(torch.randn(2, 4),)), case, torch.device("cpu")
        )
        reference_of(loaded, case, Settings(seed=0, tolerance=1e-4, is_brief=is_brief))
    assert len(seen) == calls


def test_a_right_arm_passes() -> None:
    """With nothing to say of it."""
    assert judge(nn.Linear(4, 4), torch.randn(2, 4), is_brief=True) == Checks(calls=3)


@pytest.mark.parametrize("is_brief", [False, True])
def test_what_arms_begin_with_is_kept_once_where_none_is_timed(*, is_brief: bool) -> None:
    """It is a copy. Elsewhere it would be held while arms are timed."""
    case = factories.case()
    with state.running(Mode.INFERENCE, None):
        loaded = configure(
            LoadedModel(module=nn.Linear(4, 4), args=(torch.rand(2, 4),)), case, torch.device("cpu")
        )
        settings = Settings(seed=0, tolerance=1e-4, is_brief=is_brief)
        reference = reference_of(loaded, case, settings)
        (_, first), (_, second) = reference.fresh(), reference.fresh()
    for path, value in state_of(loaded).items():
        assert isinstance(value, torch.Tensor)
        kept = first.kept[path]
        assert (kept is second.kept[path]) is is_brief
        assert (kept is reference.original.get(path)) is is_brief
        assert isinstance(kept, torch.Tensor)
        assert kept.data_ptr() != value.data_ptr()
