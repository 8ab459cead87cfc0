"""Calls on other values in memory that an arm has seen, where nothing else tells of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dynamometer.common.checking.alteration import alter
from dynamometer.common.checking.checking import check
from dynamometer.common.checking.looking import Call, look, look_on_others
from dynamometer.common.checking.snapshots import distinct, inputs_of
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.expected import CHANGE

if TYPE_CHECKING:
    from dynamometer.common.checking.checking import Checks
    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.checking.snapshots import Snapshot
    from dynamometer.common.checking.steps import Step
    from dynamometer.common.interfaces.suite import LoadedModel


def check_rewritten(step: Step, start: Snapshot, reference: Reference, checks: Checks) -> Checks:
    """Compare a call whose inputs have other values, at the addresses and versions they had.

    Whoever remembers answers by where a tensor is and how often it was written to gives an old one.
    Memory that torch's allocator gives out again is just like that.

    Args:
        step: the arm's, which has been called.
        start: the state its model began with, and is left in.
        reference: what the arm is held to.
        checks: what was compared before.

    Raises:
        WrongResultError: it came to something else than eager's.
        Exception: whatever the backend or the model raises.
    """
    settings = reference.settings
    if settings.alteration is None or not reference.is_repeatable:
        return checks
    if not all(map(_can_be_written, inputs_of(step.loaded).values())):
        return checks
    start.restore()
    new = start.of_what_is_new()
    try:
        with state.keeping_settings():
            seen = look(step, start, settings.seed)
        if any(path.startswith(f"{CHANGE}inputs") for path in seen.found):
            return checks  # what a call writes to has another version after each
        start.restore()
        with state.keeping_settings():
            own = step.with_forward_between() if settings.overlapping else step
            other = step.on_other_memory().loaded
            alter(other, settings.alteration, step.mode)
            _write(step.loaded, other)
            found = look_on_others(own, settings, start)
    finally:
        start.restore()
        new.restore()
    what = "call on other values in the same memory"
    return check(checks, reference, Call.ALTERED, found, what=what)


def _write(own: LoadedModel, other: LoadedModel) -> None:
    """Write the values of other inputs where these are, unseen by their version counters."""
    values = inputs_of(other)
    for path, each in inputs_of(own).items():
        value = values[path]
        if isinstance(each, torch.Tensor) and isinstance(value, torch.Tensor):
            data = each.data
            distinct(data, of=data).copy_(distinct(value.data, of=data))


def _can_be_written(value: object) -> bool:
    """Return whether an input has plain memory, or is no tensor, which stays as it is."""
    if not isinstance(value, torch.Tensor):
        return True
    return value.layout is torch.strided and not value.is_nested
