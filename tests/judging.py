"""Holding one callable to what eager computes, in this process, as a worker holds an arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import factories
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dynamometer.common.checking.checking import (
    Checks,
    check_after_timing,
    check_first_calls,
)
from dynamometer.common.checking.further import Further, check_further_calls
from dynamometer.common.checking.looking import Settings, replaced_by
from dynamometer.common.checking.reference import reference_of
from dynamometer.common.checking.snapshots import Snapshot, state_of
from dynamometer.common.checking.steps import configure, make_step
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.accuracy import tolerance_of
from dynamometer.dynamo.trees import tree_map_only
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    Arm = Callable[[nn.Module], Callable[..., Any]]


def same(module: nn.Module) -> nn.Module:
    """Be the right arm: eager."""
    return module


class InFloat64(TorchDispatchMode):
    """Kernels that compute in float64 and round once: right, and unlike eager's."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call an operator with wider numbers, and narrow what it gives."""
        given, name = kwargs or {}, func.overloadpacket.__name__
        narrow: set[torch.dtype] = set()

        def widen(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.is_floating_point() or tensor.dtype is torch.float64:
                return tensor
            narrow.add(tensor.dtype)
            return tensor.double()

        wide_args, wide_kwargs = tree_map_only(torch.Tensor, widen, (args, given))
        stays = name.endswith("_") or func.is_view or "to_copy" in name or len(narrow) != 1
        if stays or torch.Tag.nondeterministic_seeded in func.tags:
            return func(*args, **given)
        dtype = narrow.pop()
        return tree_map_only(
            torch.Tensor,
            lambda each: each.to(dtype) if each.dtype is torch.float64 else each,
            func(*wide_args, **wide_kwargs),
        )


def precisely(module: nn.Module) -> Callable[..., Any]:
    """Be right in another way than eager: rounded less often."""

    def call(*args: Any) -> Any:
        with InFloat64():
            return module(*args)

    return call


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
    calls: int = 0,
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
        calls: how often it is called between the first two calls and those that are compared then.
    """
    case = factories.case(mode=mode, dtype=dtype, device=device)
    made = model if isinstance(model, LoadedModel) else LoadedModel(module=model, args=inputs)
    with state.running(mode, None):
        loaded = configure(made, case, torch.device(device))
        tolerance = tolerance_of(device, dtype, mode)
        settings = Settings(seed=0, tolerance=tolerance, is_brief=is_brief)
        reference = reference_of(loaded, case, settings)
        if not is_brief:
            reference.make_runs()
        own = loaded.copy()
        start, weights = Snapshot.of(own, beside=reference.original), state_of(own)
        step = make_step(arm(own.module), own, mode, 0, optimizer)
        start = start.compiled(weights, mode, lambda: replaced_by(reference.fresh()[0]))
        try:
            checks = check_first_calls(step, start, reference)
            with state.keeping_settings():
                for _ in range(calls):
                    step.call()
            further = Further(calls, now=lambda: 0.0, rewritten=not is_brief)
            checks = check_further_calls(step, start, reference, checks, further)
            if is_brief:
                return checks
            with state.keeping_settings():
                step.call()
            return check_after_timing(step, start, reference, checks)
        except WrongResultError as error:
            return str(error)
