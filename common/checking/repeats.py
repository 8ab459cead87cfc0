"""Whether eager comes to the same again: on other inputs, with other random numbers, later on."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import torch

from dynamometer.common.checking.alteration import Alteration, left_alone
from dynamometer.common.checking.looking import Call, make_call
from dynamometer.common.checking.snapshots import (
    Snapshot,
    attributes_of,
    numbers_of,
    written,
)
from dynamometer.dynamo.accuracy.accuracy import Comparison, is_result
from dynamometer.dynamo.accuracy.agreement import differ
from dynamometer.dynamo.accuracy.expected import CHANGE, are_identical
from dynamometer.dynamo.accuracy.numbers import is_all_nan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dynamometer.common.checking.looking import Look, Settings
    from dynamometer.common.checking.steps import Step
    from dynamometer.dynamo.accuracy.leaves import Leaves

BY_FAR = 10.0
"""Tolerances that two results must differ by for one not to pass for the other."""

_MOST_LOOKS = 256
"""Calls of many that are compared, from the first on; of the others the last is."""


def first_calls(
    own: Step, start: Snapshot, settings: Settings
) -> tuple[dict[Call, Look], tuple[str, ...]]:
    """Make eager's first two calls.

    Briefly, the second is not made where the first changed nothing that a second could find and
    drew no random numbers. Before an arm is accused it is.

    Args:
        own: a step on a copy of the model.
        start: its state.
        settings: of these calls.

    Returns:
        What they came to, and the plain attributes that hold tensors and were written.
    """
    numbers, tensors = numbers_of(own.loaded), attributes_of(own.loaded)
    first = make_call(own, start, Call.FIRST, settings)
    changed = dict.fromkeys(written(tensors, attributes_of(own.loaded)))
    moved = changed or first.draws or numbers != numbers_of(own.loaded)
    if settings.is_brief and not moved and not any(path.startswith(CHANGE) for path in first.found):
        return {Call.FIRST: first, Call.SECOND: first}, ()
    second = make_call(own, start, Call.SECOND, settings)
    changed |= dict.fromkeys(written(tensors, attributes_of(own.loaded)))
    return {Call.FIRST: first, Call.SECOND: second}, tuple(changed)


def on_other_inputs(
    fresh: Callable[[], Step],
    called: tuple[Step, Snapshot] | None,
    first: Leaves,
    settings: Settings,
) -> tuple[Look, tuple[str, ...], Settings] | None:
    """Make eager's call on other inputs, as many of them others as it takes.

    Args:
        fresh: gives a step on a copy of the model.
        called: one that has been called, as an arm has by then, and the state it began with.
        first: what the first call came to.
        settings: of the first call.

    Returns:
        What it came to, which inputs have no other values, and the settings with what was altered;
        `None` where eager fails on all of them, or gives NaN in place of numbers.
    """
    overlaps = (True, False) if settings.overlapping else (False,)
    for alteration, overlapping in product(Alteration, overlaps):
        altered = replace(settings, alteration=alteration, overlapping=overlapping)
        given, called = called, None  # whoever fails may leave it as it should not be
        try:
            own, start = given or _called(fresh, settings)
            found = make_call(own, start, Call.ALTERED, altered)
        except Exception:  # noqa: BLE001, S112  not every model takes any inputs
            continue
        if not _without_numbers(found.found) - _without_numbers(first):
            start.restore()
            return found, left_alone(own.loaded, alteration), altered
    return None


def _called(fresh: Callable[[], Step], settings: Settings) -> tuple[Step, Snapshot]:
    own = fresh()
    start = Snapshot.of(own.loaded)
    make_call(own, start, Call.FIRST, settings)
    return own, start


def counts_calls(
    fresh: Callable[[], Step], calls: int, settings: Settings, is_other: Callable[[Look], object]
) -> bool:
    """Return whether so many calls make eager come to something else by what it has counted, say.

    Args:
        fresh: gives a step on a copy of the model.
        calls: how many are made; those that are compared begin with the state of the first.
        settings: of the first call.
        is_other: whether a call came to something else than the first.
    """
    own = fresh()
    start = Snapshot.of(own.loaded)
    numbers, tensors = numbers_of(own.loaded), attributes_of(own.loaded)
    for index in range(calls):
        if index >= _MOST_LOOKS and index < calls - 1:
            own.call()
        elif is_other(make_call(own, start, Call.LATER, settings)):
            # The model's own doing: else it is that of whoever has changed torch since.
            return numbers != numbers_of(own.loaded) or bool(
                written(tensors, attributes_of(own.loaded))
            )
    return False


def once_more(
    fresh: Callable[[], Step], before: Mapping[Call, Look], settings: Settings, *, briefly: bool
) -> Comparison:
    """Make eager's first calls again, and compare them with what they came to before.

    A runtime may have put kernels or settings of its own in the place of torch's. Runs of eager
    that are made from then on would take for rounding what these do.

    Args:
        fresh: gives a step on a copy of the model.
        before: what calls came to.
        settings: of these calls.
        briefly: make one call, not two.
    """
    try:
        own = fresh()
        start = Snapshot.of(own.loaded)
        calls = (Call.FIRST,) if briefly else (Call.FIRST, Call.SECOND)
        now = {call: make_call(own, start, call, settings).found for call in calls}
    except Exception:  # noqa: BLE001  whatever a model raises; it is said
        return Comparison(unchecked=("what rounding does: eager fails since the arms are there",))
    if all(are_identical(before[call].found, found) for call, found in now.items()):
        return Comparison()
    for call, found in now.items():
        for path, leaf in before[call].found.items():
            # A gradient may be zero but for rounding, and then differs from itself by all it is.
            if is_result(path) and differ({path: leaf}, found, BY_FAR * settings.tolerance):
                return Comparison(math.inf, f"{path}: since the arms are there eager differs, too")
    doubt = "what rounding does: since the arms are there eager rounds otherwise"
    return Comparison(unchecked=(doubt,))


_SEEDS = 8
"""Further seeds that are tried until one changes a result: few of them may skip no layer."""


NO_DRAWS = f"random numbers: it draws none, {_SEEDS} seeds change nothing"


def do_draws_matter(fresh: Callable[[], Step], first: Leaves, settings: Settings) -> bool:
    """Return whether eager's first call comes to something else with other random numbers."""

    def differs(seed: int) -> bool:
        own = fresh()
        other = replace(settings, seed=seed)
        found = make_call(own, Snapshot.of(own.loaded), Call.FIRST, other).found
        return differ(first, found, settings.tolerance)

    return any(map(differs, range(settings.seed + 1, settings.seed + 1 + _SEEDS)))


def _without_numbers(found: Leaves) -> set[str]:
    """Return the paths of results that are NaN throughout."""
    return {
        path
        for path, leaf in found.items()
        if isinstance(leaf.value, torch.Tensor) and is_all_nan(leaf.value)
    }
