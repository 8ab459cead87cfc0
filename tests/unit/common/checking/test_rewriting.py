"""Who answers from memory, or no longer computes when it was timed, is found out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import factories
import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.checking import (
    Checks,
    check_first_calls,
    check_later_calls,
)
from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import reference_of
from dynamometer.common.checking.rewriting import check_rewritten
from dynamometer.common.checking.snapshots import Snapshot
from dynamometer.common.checking.steps import configure, make_step
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.common.measuring.arms import CompiledArm, check_at_last
from dynamometer.dynamo import state
from dynamometer.dynamo.capture.phases import Phases
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dynamometer.common.checking.reference import Reference

TOLERANCE = 1e-4


def remembering(module: nn.Module) -> Callable[..., Any]:
    """Return what computes once for each place and version of its inputs."""
    known: dict[Any, Any] = {}

    def call(*args: torch.Tensor) -> Any:
        key = tuple((each.data_ptr(), each._version, each.shape) for each in args)
        if key not in known:
            known[key] = module(*args)
        return known[key].clone()

    return call


class Counts(nn.Module):
    """Writes to its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add to it, and double."""
        return x.add_(1) * 2


class Tiring:
    """Computes so often, and gives zeros from then on."""

    def __init__(self, module: nn.Module, calls: int) -> None:
        """Take a module."""
        self.module, self.left = module, calls

    def __call__(self, *args: torch.Tensor) -> Any:
        """Compute, or no longer do."""
        self.left -= 1
        found = self.module(*args)
        return found if self.left >= 0 else found * 0


def remembering_inputs(module: nn.Module) -> Callable[..., Any]:
    """Return what keeps a copy of each input, as a packed one would be."""
    packed: dict[Any, torch.Tensor] = {}

    def call(x: torch.Tensor) -> Any:
        return module(packed.setdefault((x.data_ptr(), x._version), x.detach().clone()))

    return call


def judged(
    module: nn.Module,
    x: torch.Tensor,
    arm: Callable[[nn.Module], Any],
    mode: Mode = Mode.INFERENCE,
) -> Checks:
    """Compare all calls of an arm."""
    case = factories.case(mode=mode)
    with state.running(mode, None):
        loaded = configure(LoadedModel(module=module, args=(x,)), case, torch.device("cpu"))
        reference = reference_of(loaded, case, Settings(seed=0, tolerance=TOLERANCE))
        own = loaded.copy()
        start = Snapshot.of(own)
        step = make_step(arm(own.module), own, mode, 0)
        checks = check_first_calls(step, start, reference)
        checks = check_later_calls(step, start, reference, checks, now=lambda: 0.0)
        before = checks.calls
        checks = check_rewritten(step, start, reference, checks)
        assert start.changes() == {}
        return Checks(calls=checks.calls - before)


def test_who_remembers_by_place_and_version_is_wrong() -> None:
    """Nothing else tells: every other call has memory of its own, or another version."""
    with pytest.raises(WrongResultError, match="other values in the same memory"):
        judged(nn.Linear(8, 8), torch.randn(4, 8), remembering)


@pytest.mark.parametrize("mode", Mode)
def test_who_keeps_inputs_by_place_and_version_is_wrong(mode: Mode) -> None:
    """In training weights are written to by each step, and inputs are not."""
    with pytest.raises(WrongResultError, match="other values in the same memory"):
        judged(nn.Linear(8, 8), torch.randn(4, 8), remembering_inputs, mode)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("x", [torch.randn(4, 8), torch.randn(1, 8).expand(4, 8)])
def test_who_computes_is_right(x: torch.Tensor, mode: Mode) -> None:
    """Also where elements of an input share memory; inputs are as before afterwards."""
    assert judged(nn.Linear(8, 8), x, lambda module: module, mode).calls == 1


@contextmanager
def timed(mode: Mode) -> Iterator[tuple[CompiledArm, LoadedModel, Reference]]:
    """Give an arm that was called two hundred times, the model it is a copy of, and eager."""
    model = LoadedModel(module=nn.Linear(8, 8), args=(torch.randn(4, 8),))
    case = factories.case(mode=mode)
    with state.running(mode, None):
        loaded = configure(model, case, torch.device("cpu"))
        reference = reference_of(loaded, case, Settings(seed=0, tolerance=TOLERANCE))
        own = loaded.copy()
        start = Snapshot.of(own)
        step = make_step(Tiring(own.module, 1000), own, mode, 0)
        checks = check_first_calls(step, start, reference)
        for _ in range(200):
            step.call()
        arm = CompiledArm(
            name="mine", step=step, preparing_s=0.0, first_steps_s=(), capture=None,
            start=start.beside_parameters(), checks=checks, spent=Phases({}), cached_graphs=0,
        )  # fmt: skip
        yield arm, loaded, reference


@pytest.mark.parametrize("mode", Mode)
def test_who_goes_wrong_while_it_is_timed_is_wrong(mode: Mode) -> None:
    """After the last call that is compared before."""
    with timed(mode) as (arm, loaded, reference):
        assert check_at_last(arm, loaded, reference).checks.calls == arm.checks.calls + 2
        for _ in range(800):
            arm.step.call()
        with pytest.raises(WrongResultError, match="later call after it was timed"):
            check_at_last(arm, loaded, reference)


@pytest.mark.parametrize("mode", Mode)
def test_an_arm_is_checked_at_last_from_where_it_began(mode: Mode) -> None:
    """Names alone of its weights are kept; in training they are put back to the model's."""
    with timed(mode) as (arm, loaded, reference):
        changed = loaded if mode is Mode.TRAINING else arm.step.loaded
        with torch.no_grad():
            next(changed.module.parameters()).mul_(1.1)
        with pytest.raises(WrongResultError, match="after it was timed"):
            check_at_last(arm, loaded, reference)


def test_what_writes_to_its_inputs_is_left_alone() -> None:
    """Each call gives them another version, so that nobody can rely on that."""
    assert judged(Counts(), torch.randn(4, 8), lambda module: module).calls == 0


class Registers(nn.Module):
    """Makes a buffer at its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale by numbers that are made once."""
        if not hasattr(self, "numbers"):
            self.register_buffer("numbers", torch.arange(1.0, 5.0))
        out: torch.Tensor = self.layer(x) * self.numbers
        return out


@pytest.mark.parametrize("mode", Mode)
def test_what_a_call_registers_is_put_back(mode: Mode) -> None:
    """In training buffers are others in the call on other inputs, and as they were after it."""
    assert isinstance(judge(Registers(), torch.randn(4, 8), mode=mode), Checks)


class Resizes(nn.Module):
    """A model whose first call replaces a buffer by one of another size, as ConViT does."""

    def __init__(self) -> None:
        """Draw weights; what the buffer is depends on the input."""
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("places", torch.zeros(1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add to each column its place."""
        if len(self.places) != x.shape[1]:
            self.places = torch.arange(1.0, x.shape[1] + 1)
        return self.linear(x) * self.places


def test_a_buffer_that_was_replaced_is_what_it_was_after_each_call() -> None:
    """A call on other weights and buffers leaves none of these to the next one."""
    checks = judge(Resizes(), torch.randn(4, 8), mode=Mode.TRAINING)
    assert isinstance(checks, Checks), checks
