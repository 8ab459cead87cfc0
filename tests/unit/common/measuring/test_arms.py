"""What is known of an arm once all its calls have been compared."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import factories
import pytest
import torch
from torch import nn

from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import Reference, reference_of
from dynamometer.common.checking.steps import configure
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.common.measuring.arms import CompiledArm, checked_arm
from dynamometer.common.studies.experiment import StageClock
from dynamometer.common.studies.parity.worker import _arm
from dynamometer.dynamo import state
from dynamometer.results.values.cases import Case, Mode
from dynamometer.results.values.records import PASSED, CaptureStats, Stage, Status


class Counting(nn.Module):
    """Is another model for Dynamo in each call, and computes the same."""

    def __init__(self) -> None:
        """Begin at no call."""
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        self.calls += 1
        return x.sin() + 0 * self.calls


class Nothing(nn.Module):
    """Runs no operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute nothing."""
        return x


T = TypeVar("T")
Build = Callable[[Any, LoadedModel, str, Reference], T]


def checked(module: nn.Module, **fields: object) -> CompiledArm:
    """Compile an arm of a model, and compare all its calls."""
    return built(checked_arm, module, **fields)


def built(build: Build[T], module: nn.Module, **fields: object) -> T:
    """Have an arm of a model built that Dynamo alone compiles."""
    case = factories.case(mode=Mode.INFERENCE, **fields)
    state.forget_compiled()
    with state.running(case.mode, None):
        model = LoadedModel(module=module, args=(torch.randn(4, 8),))
        loaded = configure(model, case, torch.device("cpu"))
        reference = reference_of(loaded, case, Settings(seed=0, tolerance=1e-4))
        return build(context(case), loaded, "eager", reference)


def context(case: Case) -> Any:
    """Make what an arm is built with, as far as it needs that."""
    job = SimpleNamespace(case=case, seed=0, replicate=0, raise_backend_errors=False)
    device = SimpleNamespace(synchronize=lambda: None)
    stages = StageClock(lambda _: None)
    return SimpleNamespace(
        job=job, device=device, stages=stages, is_guarded=False, guarding=nullcontext
    )


def captured(arm: CompiledArm) -> CaptureStats:
    """Return what Dynamo captured of an arm."""
    return cast("CaptureStats", arm.capture)


@pytest.mark.parametrize("nopython", [False, True])
def test_an_arm_without_an_operator_in_graphs_compiled_nothing(*, nopython: bool) -> None:
    """Where all must be one graph, Dynamo gives an empty one."""
    arm = checked(Nothing(), nopython=nopython)
    assert captured(arm).graphs == int(nopython)
    assert (arm.outcome.status, arm.outcome.stage) == (Status.FAIL, Stage.COMPILE)
    what = "operator" if nopython else "graph"
    assert arm.outcome.reason == f"Dynamo captured no {what}, so nothing was compiled"


@pytest.mark.parametrize("nopython", [False, True])
def test_in_parity_a_model_without_operators_works(*, nopython: bool) -> None:
    """There it isn't asked whether compiling it is worth anything."""
    assert built(_arm, Nothing(), nopython=nopython).result.outcome == PASSED


def test_frames_that_dynamo_gave_up_are_counted_over_all_calls() -> None:
    """Other figures are of the first two; the arm passes, as that is what compiling it gives."""
    arm = checked(Counting())
    assert arm.outcome == PASSED
    assert captured(arm).recompile_limit_hits == 1
    assert captured(arm).graphs == 2
    assert captured(checked(nn.Linear(8, 8))).recompile_limit_hits == 0
