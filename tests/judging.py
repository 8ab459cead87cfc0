"""Holding one callable to what eager computes, in this process, as a worker holds an arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import factories
import torch

from dynamometer.common.checking.checking import Checks, check_first_calls, check_later_calls
from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import reference_of
from dynamometer.common.checking.snapshots import Snapshot, state_of
from dynamometer.common.checking.steps import configure, make_step
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.accuracy import tolerance_of
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    Arm = Callable[[nn.Module], Callable[..., Any]]


def same(module: nn.Module) -> nn.Module:
    """Be the right arm: eager."""
    return module


def reservations_of(found: str | Checks) -> str:
    """Return what a pass does not vouch for."""
    assert isinstance(found, Checks), found
    return "; ".join(found.reservations)


def judge(  # noqa: PLR0913  each of a few tests differs in one of them
    model: LoadedModel | nn.Module,
    *inputs: object,
    arm: Arm = same,
    mode: Mode = Mode.INFERENCE,
    dtype: Dtype = Dtype.FLOAT32,
    optimizer: Callable[[Callable[[], object]], Callable[[], object]] | None = None,
    is_brief: bool = False,
    device: str = "cpu",
) -> str | Checks:
    """Return what is wrong with an arm, or what was compared of one that is right.

    Args:
        model: a module, or one with its inputs.
        inputs: of a module.
        arm: makes a callable of the arm's own copy.
        mode: inference or training.
        dtype: of weights and inputs.
        optimizer: compiles the optimizer's step.
        is_brief: whether it is called as seldom as may be.
        device: where it is called.
    """
    case = factories.case(mode=mode, dtype=dtype, device=device)
    made = model if isinstance(model, LoadedModel) else LoadedModel(module=model, args=inputs)
    with state.running(mode, None):
        loaded = configure(made, case, torch.device(device))
        tolerance = tolerance_of(device, dtype, mode)
        settings = Settings(seed=0, tolerance=tolerance, is_brief=is_brief)
        reference = reference_of(loaded, case, settings)
        own = loaded.copy()
        start, weights = Snapshot.of(own), state_of(own)
        step = make_step(arm(own.module), own, mode, 0, optimizer)
        start = start.compiled(weights, mode)
        try:
            checks = check_first_calls(step, start, reference)
            return check_later_calls(step, start, reference, checks, now=lambda: 0.0)
        except WrongResultError as error:
            return str(error)
