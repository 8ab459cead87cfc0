"""Who remembers answers by where tensors are, and how often they were written to, is found out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import factories
import pytest
import torch
from torch import nn

from dynamometer.common.checking.checking import Checks, check_first_calls, check_later_calls
from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import reference_of
from dynamometer.common.checking.rewriting import check_rewritten
from dynamometer.common.checking.snapshots import Snapshot
from dynamometer.common.checking.steps import configure, make_step
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.dynamo import state
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

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


def judged(module: nn.Module, x: torch.Tensor, arm: Callable[[nn.Module], Any]) -> Checks:
    """Compare all calls of an arm."""
    case = factories.case()
    with state.running(Mode.INFERENCE, None):
        loaded = configure(LoadedModel(module=module, args=(x,)), case, torch.device("cpu"))
        reference = reference_of(loaded, case, Settings(seed=0, tolerance=TOLERANCE))
        own = loaded.copy()
        start = Snapshot.of(own)
        step = make_step(arm(own.module), own, Mode.INFERENCE, 0)
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


@pytest.mark.parametrize(
    ("x", "calls"), [(torch.randn(4, 8), 1), (torch.randn(1, 8).expand(4, 8), 1)]
)
def test_who_computes_is_right(x: torch.Tensor, calls: int) -> None:
    """Also where elements of an input share memory; inputs are as before afterwards."""
    assert judged(nn.Linear(8, 8), x, lambda module: module).calls == calls


def test_what_writes_to_its_inputs_is_left_alone() -> None:
    """Each call gives them another version, so that nobody can rely on that."""
    assert judged(Counts(), torch.randn(4, 8), lambda module: module).calls == 0
