"""From specs and options to a plan: which cases, in which order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.errors import NothingSelectedError, UnknownNameError, UsageError
from dynamometer.results.values.cases import (
    BASELINE,
    NO_OVERRIDES,
    Case,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.results.values.cases import ModelSpec


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which models of a suite are run.

    Attributes:
        include: regular expressions, any of which a name or alias must contain a match of (`-k`).
        exclude: regular expressions, none of which it may (`-x`).
        only: exact names; the order given is not kept.
        quick: take the suite's quick selection.
        partition: index and number of equal parts the selection is cut into.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    quick: bool = False
    partition: tuple[int, int] = (0, 1)


def select(
    specs: Iterable[ModelSpec], selection: Selection, hint: str = "--list shows all."
) -> tuple[ModelSpec, ...]:
    """Choose models, sorted by name; parts are cut after filtering, so they are balanced.

    Args:
        specs: all there are.
        selection: of them.
        hint: what shows the names there are, for whoever typed another.

    Raises:
        UsageError: a regular expression is bad, options exclude each other, or a part that
            there is not was asked for.
        UnknownNameError: `only` names a model the suite doesn't have.
        NothingSelectedError: nothing is left.
    """
    _check(selection)
    known = {spec.name: spec for spec in specs}
    names = {alias: spec.name for spec in known.values() for alias in (spec.name, *spec.aliases)}
    for name in selection.only:
        if name not in names:
            raise UnknownNameError("model", name, names, hint)  # noqa: EM101  what kind of name it is, no message
    only = {names[name] for name in selection.only}
    include = [_pattern(text, "-k") for text in selection.include]
    exclude = [_pattern(text, "-x") for text in selection.exclude]
    chosen = [
        spec
        for name, spec in sorted(known.items())
        if (not only or name in only)
        and (not selection.quick or spec.quick)
        and (not include or _matches(spec, include))
        and not _matches(spec, exclude)
    ]
    index, parts = selection.partition
    part = chosen[index * len(chosen) // parts : (index + 1) * len(chosen) // parts]
    if not part:
        msg = f"the selection holds none of the suite's {len(known)} models; --list shows them"
        raise NothingSelectedError(msg)
    return tuple(part)


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


def _check(selection: Selection) -> None:
    if selection.only and selection.quick:
        msg = "--only and --quick are two selections of models; leave out one"
        raise UsageError(msg)
    index, parts = selection.partition
    if not 0 <= index < parts:
        msg = f"--partition-id {index} is not below --total-partitions {parts}"
        raise UsageError(msg)


def _matches(spec: ModelSpec, patterns: Iterable[re.Pattern[str]]) -> bool:
    names = (spec.name, *spec.aliases)
    return any(pattern.search(name) for pattern in patterns for name in names)


def _pattern(text: str, option: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        msg = f"{option} {text!r} is not a regular expression: {error}"
        raise UsageError(msg) from error
