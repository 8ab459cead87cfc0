"""From specs and options to the cases of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.errors import UsageError
from dynamometer.results.values.cases import (
    BASELINE,
    NO_OVERRIDES,
    Case,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.results.values.cases import ModelSpec


def build_cases(specs: Sequence[ModelSpec], workload: Workload) -> tuple[Case, ...]:
    """Make one case of each model, and one more with overrides where there are any.

    Raises:
        UsageError: only the latter are wanted, and there are none.
    """
    found = tuple(case for spec in specs for case in _cases(spec, workload))
    if specs and not found:
        msg = "--only-overrides leaves nothing to run: no model is run with overrides"
        raise UsageError(msg)
    return found


def _cases(spec: ModelSpec, workload: Workload) -> Iterator[Case]:
    usual = Case(
        suite=spec.suite,
        model=spec.name,
        arms=(BASELINE, *workload.arms),
        device=workload.device,
        mode=workload.mode,
        dtype=workload.dtype,
        matmul_precision=workload.matmul_precision,
        channels_last=workload.channels_last,
        compiled_optimizer=workload.compiled_optimizer,
        nopython=workload.nopython,
        dynamic=workload.dynamic,
        dynamic_dims=workload.dynamic_dims,
        scale=workload.scale,
        batch_size=asked_batch_size(spec, workload)
        or spec.batch_size_at(
            workload.scale, workload.device, workload.mode, dynamic=workload.dynamic
        ),
    )
    if not workload.only_overrides:
        yield usual
    own = spec.overrides if workload.model_overrides else NO_OVERRIDES
    overrides = own.and_(workload.overrides)
    if overrides != NO_OVERRIDES:
        yield msgspec.structs.replace(usual, overrides=overrides)


def asked_batch_size(spec: ModelSpec, workload: Workload) -> int | None:
    """Return the batch size that was asked for, by the model's name or an alias of it or of all."""
    of_model = (workload.batch_sizes.get(name) for name in (spec.name, *spec.aliases))
    return next(filter(None, of_model), workload.batch_size)
