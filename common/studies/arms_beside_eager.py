"""What workers share that hold arms to eager: the model with its reference, and what is found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.interfaces.outcome import worst
from dynamometer.common.measuring import arms
from dynamometer.dynamo.capture import capture
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED, ArmResult, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context


def load(context: Context, *, briefly: bool = False) -> tuple[LoadedModel, Reference]:
    """Load the case's model, and run what its arms are held to.

    Args:
        context: the job and what it is done with.
        briefly: whether calls are compared as seldom as may be.
    """
    with context.stages.at(Stage.LOAD):
        loaded = context.load()
    frames = capture.frames_seen()
    with context.stages.at(Stage.EAGER):
        reference = arms.run_reference(context, loaded, briefly=briefly)
    if capture.frames_seen() > frames:
        loaded = replace(loaded, notes=(*loaded.notes, _COMPILES))
    return loaded, reference


_COMPILES = "eager is not all eager: Dynamo compiles parts of the model there, too"
"""A function that the model gives to `torch.compile`, say, `torch.cond` or `flex_attention`; models
that are compiled as a whole are refused."""


def findings_of(
    context: Context,
    loaded: LoadedModel,
    results: dict[str, ArmResult],
    order: Sequence[str],
    changed_eager: str | None = None,
) -> Findings:
    """Return what a process found of its arms.

    Args:
        context: the job and what it is done with.
        loaded: the model.
        results: of each arm.
        order: in which they were built.
        changed_eager: the first arm that did; the others are run again without it.
    """
    ordered = tuple(results[name] for name in context.job.arms)
    failed = [
        result.outcome for result in ordered if result.arm == BASELINE and result.outcome != PASSED
    ]
    outcomes = failed or [result.outcome for result in ordered if result.arm != BASELINE]
    return Findings(
        # An arm that can't run here takes nothing from those that did.
        outcome=worst(
            [each for each in outcomes if each.status is not Status.SKIP] or outcomes or [PASSED]
        ),
        arms=ordered,
        build_order=tuple(order),
        # Without eager nothing can be run again.
        changed_eager=changed_eager if changed_eager != BASELINE else None,
        notes=loaded.notes,
        device_name=context.device.name,
    )
