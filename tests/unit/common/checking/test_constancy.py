"""What arms make of torch is neither taken for rounding nor laid at another's door."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import factories
import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import Reference, reference_of
from dynamometer.common.checking.steps import configure
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.common.measuring.blame import attempt_arm
from dynamometer.common.studies.experiment import StageClock
from dynamometer.dynamo import state
from dynamometer.results.values.cases import BASELINE, Mode
from dynamometer.results.values.records import PASSED, Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DIFFERS = "since the arms are there eager differs"


class Replacing:
    """An arm that has a kernel of torch's replaced from its first call on, and computes by it."""

    def __init__(
        self, library: torch.library.Library, operator: str, kernel: Callable[..., Any]
    ) -> None:
        """Take a library for ATen's kernels, an operator, and what is to compute it on CPUs."""
        self._library, self._operator, self._kernel = library, operator, kernel
        self._is_there = False

    def replace(self) -> None:
        """Replace the kernel."""
        if not self._is_there:
            self._is_there = True
            with warnings.catch_warnings(action="ignore"):  # torch warns of the first one
                self._library.impl(self._operator, self._kernel, "CPU")

    def __call__(self, module: nn.Module) -> Callable[..., Any]:
        """Be the arm."""

        def call(*args: Any) -> Any:
            self.replace()
            return module(*args)

        return call


@contextmanager
def replacing(operator: str, kernel: Callable[..., Any]) -> Iterator[Replacing]:
    """Give such an arm, and put torch's own kernel back."""
    with torch.library._scoped_library("aten", "IMPL") as library:
        yield Replacing(library, operator, kernel)


class Watches(nn.Module):
    """Has a running statistic that nothing is computed from."""

    mean: torch.Tensor

    def __init__(self) -> None:
        """Begin at zero."""
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 8]` to `[B, 8]`."""
        self.mean.lerp_(torch.relu(x).mean(0), 0.1)
        return x.tanh()


def net() -> nn.Module:
    """Make a network with an activation."""
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def saturating() -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a kernel that knows the range of its first inputs alone."""
    largest: list[torch.Tensor] = []

    def relu(x: torch.Tensor) -> torch.Tensor:
        if not largest:
            largest.append(x.max().clone())
        return torch.minimum(x.clamp(min=0), largest[0])

    return relu


KERNELS: dict[str, tuple[Callable[[], nn.Module], str, Callable[..., Any], Mode]] = {
    "gradients": (net, "threshold_backward", lambda g, x, t: 3 * g * (x > t), Mode.TRAINING),
    "buffers": (Watches, "relu", lambda x: 2 * x.clamp(min=0), Mode.INFERENCE),
    "a little": (net, "relu", lambda x: 1.0009 * x.clamp(min=0), Mode.INFERENCE),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_is_wrong_for_eager_too_is_the_arms_doing(name: str) -> None:
    """Nothing of what it changes counts as rounding: neither of results nor of what is left."""
    model, operator, kernel, mode = KERNELS[name]
    with replacing(operator, kernel) as arm:
        found = judge(model(), torch.randn(16, 8), arm=arm, mode=mode)
    assert isinstance(found, str), found
    assert found.endswith(DIFFERS)


def test_a_kernel_that_is_wrong_on_other_inputs_alone_is_the_arms_doing() -> None:
    """Its first call is right, for the arm and for eager."""
    with replacing("relu", saturating()) as arm:
        found = judge(net(), torch.randn(64, 8), arm=arm)
    assert isinstance(found, str), found
    assert found.startswith("call on other inputs: ")


class Initialises(nn.Module):
    """Takes another branch from its second call on, as layers do that are initialised by data."""

    is_initialised: torch.Tensor

    def __init__(self) -> None:
        """Begin without."""
        super().__init__()
        self.register_buffer("is_initialised", torch.zeros((), dtype=torch.bool))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 8]` to `[B, 8]`."""
        if self.is_initialised:
            return torch.relu(x)
        self.is_initialised.fill_(value=True)
        return x.tanh()


@pytest.mark.parametrize("times", [1.0009, 1.05])
def test_a_kernel_that_is_wrong_in_the_second_call_alone_is_the_arms_doing(times: float) -> None:
    """The first one doesn't need it."""
    with replacing("relu", lambda x: times * x.clamp(min=0)) as arm:
        found = judge(Initialises(), torch.randn(16, 8), arm=arm)
    assert isinstance(found, str), found
    assert found == f"second call: output: {DIFFERS}"


class Noisy(nn.Module):
    """Rounds otherwise in each call."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 8]` to `[B, 8]`."""
        Noisy.calls += 1
        return torch.relu(x) * (1 + 1e-7 * (Noisy.calls % 3))


class Kinked(nn.Module):
    """Rounds otherwise in each call, of which it makes much where inputs are larger than 2."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 8]` to `[B, 8]`."""
        Kinked.calls += 1
        rounded = x * (1 + 1e-7 * (Kinked.calls % 7))
        return torch.where(x.abs().max() > 2, torch.sin(1e7 * rounded), rounded)


def test_who_rounds_otherwise_in_each_call_is_not_the_arms_doing() -> None:
    """Nobody knows how far it wanders on other inputs."""
    with reference_for(Kinked()) as reference:
        for name in ("right", "right too"):
            assert ended(reference, name, lambda: None) == RIGHT
        assert not reference.constancy.doubts  # it did so before


@contextmanager
def reference_for(model: nn.Module) -> Iterator[Reference]:
    """Run eager, and make its further runs, as a worker does."""
    case = factories.case()
    loaded = configure(
        LoadedModel(module=model, args=(torch.linspace(-2, 2, 128).reshape(16, 8),)),
        case,
        torch.device("cpu"),
    )
    with state.running(Mode.INFERENCE, None):
        reference = reference_of(loaded, case, Settings(seed=0, tolerance=1e-4))
        reference.make_runs()
        yield reference


def ended(reference: Reference, name: str, build: Callable[[], object]) -> tuple[Status, str]:
    """Return how an arm ends, and why."""
    context: Any = SimpleNamespace(stages=StageClock(lambda _: None))
    found = attempt_arm(context, name, reference, build)
    outcome = found if isinstance(found, Outcome) else PASSED
    return outcome.status, outcome.reason or ""


def fail() -> None:
    """Be wrong."""
    msg = "output: 2 of 4 elements are wrong"
    raise WrongResultError(msg)


RIGHT = (Status.PASS, "")


@pytest.mark.parametrize("model", [net, Noisy])
def test_an_arm_answers_for_what_eager_has_become(model: Callable[[], nn.Module]) -> None:
    """Also if its own results are right, and where eager rounds otherwise in each call."""
    with reference_for(model()) as reference:
        assert ended(reference, "right", lambda: None) == RIGHT
        with replacing("relu", lambda x: 2 * x.clamp(min=0)) as arm:
            status, reason = ended(reference, "replaces", arm.replace)
            assert status is Status.NONDETERMINISTIC
            assert "since the arms are there eager differs: by the arm's doing, or" in reason
            assert ended(reference, "next", lambda: None) == RIGHT  # who did it is known
        assert reference.constancy.moved_by == "replaces"


def test_an_arm_that_fails_may_have_changed_eager_as_well() -> None:
    """It ends as it did; the others are run without it."""
    with reference_for(net()) as reference:
        assert ended(reference, "fails", fail)[1] == "output: 2 of 4 elements are wrong"
        assert reference.constancy.moved_by is None
        with replacing("relu", lambda x: 2 * x.clamp(min=0)) as arm:

            def replace_and_fail() -> None:
                arm.replace()
                fail()

            assert ended(reference, "both", replace_and_fail)[1].startswith("output: 2 of 4")
        assert reference.constancy.moved_by == "both"


def test_an_arm_answers_for_eager_that_fails_since() -> None:
    """Later arms would fail alike."""

    def refuse(_: torch.Tensor) -> torch.Tensor:
        msg = "this runtime is the only one"
        raise RuntimeError(msg)

    with reference_for(net()) as reference, replacing("relu", refuse) as arm:
        status, reason = ended(reference, "refuses", arm.replace)
    assert status is Status.NONDETERMINISTIC
    assert "eager fails: RuntimeError: this runtime is the only one: by the arm's doing" in reason


def test_eager_answers_for_itself() -> None:
    """As a model does whose class keeps a state; no arm was there."""
    with reference_for(net()) as reference:
        status, reason = ended(reference, BASELINE, fail)
    assert status is Status.NONDETERMINISTIC
    assert reason == "two eager runs from one seed differ at output: 2 of 4 elements are wrong"
