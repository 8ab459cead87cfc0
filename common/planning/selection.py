"""Which models of a suite are run."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import NothingSelectedError, UnknownNameError, UsageError
from dynamometer.common.interfaces.workload_options import (
    EXCLUDE,
    INCLUDE,
    ONLY,
    PARTITION_ID,
    QUICK,
    TOTAL_PARTITIONS,
)
from dynamometer.results.listing import first_of
from dynamometer.results.reports.texts import count_text
from dynamometer.results.store.bounds import MOST_MODEL_NAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.suite import Suite
    from dynamometer.common.interfaces.suite_source import SuiteSource
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
        if name in names:
            continue
        if name.startswith(_THEIR_FILE):
            msg = f"--only {name}: for a model in a file type dynamometer run FILE.py::NAME"
            raise UsageError(msg)
        raise UnknownNameError("model", name, names, hint)  # noqa: EM101  what kind of name it is, no message
    only = {names[name] for name in selection.only}
    include = [_pattern(text, "-k") for text in selection.include]
    exclude = [_pattern(text, "-x") for text in selection.exclude]
    wanted = [
        spec
        for name, spec in sorted(known.items())
        if (not only or name in only)
        and (not include or _matches(spec, include))
        and not _matches(spec, exclude)
    ]
    chosen = [spec for spec in wanted if not selection.quick or spec.quick]
    index, parts = selection.partition
    part = chosen[index * len(chosen) // parts : (index + 1) * len(chosen) // parts]
    if not part and selection.quick and not any(spec.quick for spec in known.values()):
        msg = "the suite has no quick selection: leave out --quick; -k and -x choose models"
        raise NothingSelectedError(msg)
    if wanted and not chosen:
        names_wanted = first_of([spec.name for spec in wanted])
        msg = f"the quick selection has none of these: {names_wanted}; leave out --quick"
        raise NothingSelectedError(msg)
    if chosen and not part:
        count = f"{count_text(len(chosen), 'model')} {'is' if len(chosen) == 1 else 'are'}"
        msg = f"part {index} of {parts} is empty: only {count} selected; make fewer parts"
        raise NothingSelectedError(msg)
    if not part:
        msg = (
            f"the selection holds none of the suite's {len(known)} models; --list alone shows them"
        )
        raise NothingSelectedError(msg)
    _check_names(part)
    return tuple(part)


_THEIR_FILE = "path:"
"""How PyTorch's harness is told of a file: `--only path:FILE,class:NAME`."""


def _check_names(specs: Iterable[ModelSpec]) -> None:
    """Refuse names that no file, line or table can hold.

    Raises:
        UsageError: there is one.
    """
    for spec in specs:
        size = len(spec.name.encode(errors="replace"))
        if not spec.name.strip() or not spec.name.isprintable() or size > MOST_MODEL_NAME_BYTES:
            shown = repr(spec.name if size <= MOST_MODEL_NAME_BYTES else f"{spec.name[:40]}...")
            msg = (
                f"the model {shown} can't be run under this name: give it one of 1 to"
                f" {MOST_MODEL_NAME_BYTES} bytes that can be printed on a line"
            )
            raise UsageError(msg)


def asked_selection(request: Request) -> Selection:
    """Return what was asked for of a suite's models."""
    return Selection(
        include=request[INCLUDE],
        exclude=request[EXCLUDE],
        only=request[ONLY],
        quick=request[QUICK],
        partition=(request[PARTITION_ID], request[TOTAL_PARTITIONS]),
    )


def opened(source: SuiteSource, opening: Mapping[str, str]) -> Suite:
    """Open a suite.

    Raises:
        UsageError: there is nothing of the kind; says what to do.
    """
    try:
        return source.open(opening)
    except ValueError as error:
        raise UsageError(str(error)) from error


def listed(suite: Suite) -> list[ModelSpec]:
    """Return what a suite holds.

    Raises:
        UsageError: there is nothing, or what there is could not be told apart or found again; says
            what to do.
    """
    try:
        specs = [*suite.specs()]
    except ValueError as error:
        raise UsageError(str(error)) from error
    _check_listed(specs)
    return specs


def _check_listed(specs: Sequence[ModelSpec]) -> None:
    """Refuse two models of one name or alias, and models of a suite that is not registered.

    Raises:
        UsageError: several have one name or alias, or one is of a suite that is not registered;
            names them.
    """
    counts = Counter(name for spec in specs for name in {spec.name, *spec.aliases})
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        suite = specs[0].suite
        msg = f"several models of the suite {suite} have one name or alias: {', '.join(twice)}"
        raise UsageError(msg)
    for spec in {spec.suite: spec for spec in specs}.values():
        try:
            registry.target("suites", spec.suite)
        except UsageError as error:
            msg = f"the model {spec.name} is of a suite that no worker can open: {error}"
            raise UsageError(msg) from error


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
