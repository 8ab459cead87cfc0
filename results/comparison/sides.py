"""One side of a comparison: what it holds, and under which conditions. Pure; no torch."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from dynamometer.results.comparison.noise import learnt
from dynamometer.results.store.bounds import name_in_file
from dynamometer.results.values.cases import IDENTITY
from dynamometer.results.values.history import DEVICE_NAME
from dynamometer.results.values.records import unfinished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.values.cases import Protocol, RunPlan
    from dynamometer.results.values.records import Manifest, Record


SUITE_OPTION = "suite option "
"""Begins the names of conditions that a suite was opened with."""
_TARGET = "target"
"""The one of them that names a file or folder."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        source: the run directory, or where the CSV files are.
        entries: every arm of every case.
        conditions: what is known of how it came to be, by name.
        arm: the one that was asked for; `None` for all.
        run_id: of a run.
        created_at: likewise.
        unfinished: cases it was to run that have not ended; those with a record are compared, too.
        left_out: files that lie where its files are, and are none of them.
    """

    source: str
    entries: tuple[Entry, ...]
    conditions: Mapping[str, str] = field(default_factory=dict)
    arm: str | None = None
    run_id: str | None = None
    created_at: str | None = None
    unfinished: int = 0
    left_out: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """The parts of a case's identity that all of its entries tell."""
        return tuple(
            name for name in IDENTITY if all(name in each.identity for each in self.entries)
        )

    def values(self, name: str) -> set[str]:
        """Return which values a part of the identity has."""
        return {each.identity[name] for each in self.entries if name in each.identity}


def of_run(
    source: str, manifest: Manifest, records: Sequence[Record], entries: Sequence[Entry]
) -> Side:
    """Return a run as a side.

    Args:
        source: its directory.
        manifest: what it says of itself.
        records: of it.
        entries: what its study compares of these.
    """
    return Side(
        source=source,
        entries=learnt(entries),
        conditions={
            **_of_plan(manifest.plan),
            **_of_machine(manifest, records),
            **_of_sources(manifest.sources),
        },
        run_id=manifest.run_id,
        created_at=manifest.created_at,
        unfinished=len(unfinished(manifest.plan, records)),
    )


def of_cases(
    source: str,
    manifest: Manifest,
    cases: Iterable[Sequence[Record]],
    compared: Callable[[Sequence[Record]], Iterable[Entry]],
) -> Side:
    """Return a run as a side.

    Args:
        source: its directory.
        manifest: what it says of itself.
        cases: the records of each.
        compared: what its study compares of those of a case.
    """
    of_each = list(cases)
    records = [record for records in of_each for record in records]
    entries = [entry for records in of_each for entry in compared(records)]
    return of_run(source, manifest, records, entries)


def of_arm(side: Side, arm: str) -> Side:
    """Return one arm of a side.

    Raises:
        LookupError: there is none of that name; says which there are.
    """
    names_of_it = {arm} if side.conditions else {arm, name_in_file(arm)}
    found = tuple(each for each in side.entries if each.arm in names_of_it)
    if not found:
        names = ", ".join(dict.fromkeys(each.arm for each in side.entries))
        msg = f"{side.source} has no arm {arm!r}; it has {names or 'none'}"
        raise LookupError(msg)
    return replace(side, entries=found, arm=arm)


def named_alike(before: Side, after: Side) -> tuple[Side, Side]:
    """Call the arms of files as a run on the other side does: a file's name can't hold all of it.

    Args:
        before: one side.
        after: the other.
    """
    if not before.conditions and after.conditions:
        return _named_as(before, after), after
    if before.conditions and not after.conditions:
        return before, _named_as(after, before)
    return before, after


def _named_as(files: Side, run: Side) -> Side:
    """Leave the name of a file where two arms of the run may be meant by it."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for each in run.entries:
        arms = each.records[-1].case.arms if each.records else ()
        known[name_in_file(each.arm, arms)].add(each.arm)
    names = {name: arm for name, (arm, *others) in known.items() if not others}
    entries = (replace(each, arm=names.get(each.arm, each.arm)) for each in files.entries)
    return replace(files, entries=tuple(entries))


def _of_plan(plan: RunPlan) -> dict[str, str]:
    return {
        "study": plan.study,
        "scale": _all(each.scale for each in plan.cases),
        "dtype": _all(each.dtype for each in plan.cases),
        "matmul precision": _all(each.matmul_precision for each in plan.cases),
        "device": _all(each.device for each in plan.cases),
        "threads": "torch's choice" if plan.threads is None else str(plan.threads),
        "executor": plan.executor,
        **{name: f"{value:g}" if isinstance(value, float) else str(value)
           for name, value in _of_protocol(plan.protocol)},
        **{f"{SUITE_OPTION}{name}": _opened(name, value)
           for name, value in plan.suite_options.items()},
        "busy": _yes_or_no(plan.busy),
        "experiments": ", ".join(plan.experiments),
        "timeout": f"{plan.timeout_s:g} s",
        "memory limit": _gib(plan.memory_limit_bytes) if plan.memory_limit_bytes else "none",
        "jobs": str(plan.jobs),
        "retries for": _all(plan.retries_for) or "none",
        "no skip": _yes_or_no(plan.no_skip),
        "raise backend errors": _yes_or_no(plan.raise_backend_errors),
        "seed": str(plan.seed),
        **({"candidates": _all(plan.tuning.candidates) or "all"} if plan.tuning else {}),
    }  # fmt: skip


def _opened(name: str, value: str) -> str:
    """Leave out of a target `FILE.py::NAME` the name: like `--only`, it selects a model."""
    return value.partition("::")[0] if name == _TARGET else value


def _of_sources(sources: Mapping[str, str]) -> dict[str, str]:
    """Return the beginning of each measured file's hash, or that of all where there are many.

    A file has its name alone, and where several are called so it is named from the folder that all
    are in: those of two checkouts are the same, and so is one beside which others were measured.
    """
    parts = {path: PurePath(path).parts for path in sources}
    folders = [each[:-1] for each in parts.values()]
    shared = len(os.path.commonprefix(folders))  # noqa: RUF071  of parts, not of text
    times = Counter(each[-1] for each in parts.values())
    named = {
        "/".join(parts[path][shared if times[parts[path][-1]] > 1 else -1 :]): known
        for path, known in sorted(sources.items())
    }
    if len(named) > _MOST_SOURCES:
        known = hashlib.sha256(repr(list(named.items())).encode()).hexdigest()
        return {"sources": f"{len(named)} files, {known[:_HASH_DIGITS]}"}
    return {f"source {name}": known[:_HASH_DIGITS] for name, known in named.items()}


_MOST_SOURCES = 50
"""More, as of a corpus of test cases, are one condition."""
_HASH_DIGITS = 12


def _yes_or_no(is_so: bool) -> str:  # noqa: FBT001  it is all there is
    return "yes" if is_so else "no"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _of_protocol(protocol: Protocol) -> list[tuple[str, object]]:
    return [(name, getattr(protocol, name)) for name in protocol.__struct_fields__]


def _of_machine(manifest: Manifest, records: Sequence[Record]) -> dict[str, str]:
    machine = manifest.environment
    devices = [each.device_name for each in records if each.device_name]
    return {
        **({DEVICE_NAME: _all(devices)} if devices else {}),
        "cpu": machine.cpu,
        "cpus": str(machine.cpus),
        "machine": machine.machine,
        "memory": _gib(machine.memory_bytes),
        "os": machine.os,
        "python": machine.python,
        "governor": machine.governor or "not known",
        "commit": machine.measured_git or "not known",
        "commit of dynamometer": machine.git or "not known",
        **machine.packages,
        **{f"${name}": value for name, value in machine.variables.items()},
    }


def _all(values: Iterable[str]) -> str:
    return ", ".join(sorted({str(each) for each in values}))
