"""Cases of dynamic shapes: which sizes a step goes through, and the inputs of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.interfaces.outcome import SkippedError, is_out_of_memory
from dynamometer.common.interfaces.suite import Inputs

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel, Suite
    from dynamometer.results.values.cases import Case, ModelSpec

SIZES = 5
"""As many as a step goes through."""

_STEP_SHARE = 8


def sizes_from(published: int, multiple: int = 1) -> tuple[int, ...]:
    """Return the sizes of one dimension, the published one first.

    The others are smaller, each by an eighth of it, so that they need no more memory and stay
    within what tables of positions reach. Small ones grow instead.

    Args:
        published: size at the case's scale.
        multiple: what all sizes are multiples of.
    """
    step = published // _STEP_SHARE // multiple * multiple
    return tuple(published + index * (-step or multiple) for index in range(SIZES))


def variants(spec: ModelSpec, case: Case) -> tuple[tuple[ModelSpec, Case], ...]:
    """Return the case at every size of a step, as it is first.

    What varies is what the model's table says, otherwise the batch size.
    """
    options = spec.options_at(case.scale, case.device)
    columns = {
        name: sizes_from(int(options[name]), multiple) for name, multiple in spec.varies.items()
    }
    if columns:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return tuple((_with_options(spec, options | row), case) for row in rows)
    if case.batch_size is None:
        return ((spec, case),)
    sizes = sizes_from(case.batch_size)
    return tuple((spec, msgspec.structs.replace(case, batch_size=size)) for size in sizes)


def with_other_sizes(loaded: LoadedModel, suite: Suite, spec: ModelSpec, case: Case) -> LoadedModel:
    """Add the inputs of a step's other sizes, by building the model at each of them.

    Raises:
        SkippedError: it can't be built at another size.
    """
    if loaded.others:
        msg = "it has several calls of its own, whose sizes can't be varied"
        raise SkippedError(msg)
    others = variants(spec, case)[1:]
    try:
        # Each model is dropped at once: several of them may not fit.
        inputs = tuple(_inputs(suite.load(*each)) for each in others)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        msg = f"it can't be built at other sizes: {error}"
        raise SkippedError(msg) from error
    return replace(loaded, others=inputs, notes=(*loaded.notes, describe(spec, case)))


def names(spec: ModelSpec, case: Case) -> tuple[str, ...]:
    """Describe in a few words what each size of a step is."""
    if not spec.varies:
        return tuple(f"batch size {each.batch_size}" for _, each in variants(spec, case))
    return tuple(
        ", ".join(f"{name} {each.options[name]}" for name in spec.varies)
        for each, _ in variants(spec, case)
    )


def describe(spec: ModelSpec, case: Case) -> str:
    """Describe in a sentence what varies, and how."""
    found = variants(spec, case)
    if not spec.varies:
        return f"Batch sizes of a step: {', '.join(str(each.batch_size) for _, each in found)}."
    sizes = [
        f"{name} {', '.join(str(each.options[name]) for each, _ in found)}" for name in spec.varies
    ]
    return f"Sizes of a step: {'; '.join(sizes)}."


def _inputs(loaded: LoadedModel) -> Inputs:
    return Inputs(args=loaded.args, kwargs=loaded.kwargs)


def _with_options(spec: ModelSpec, options: dict[str, object]) -> ModelSpec:
    """Return a spec whose options are the same at every scale and on every device type."""
    return msgspec.structs.replace(spec, options=options, cpu={}, small={}, tiny={})
