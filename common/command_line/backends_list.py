"""`dynamometer ls backends --long`: what each backend is, whether it works here, what can be set.

Torch isn't imported, nor is a runtime: versions are those of installed distributions.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import DynamometerError
from dynamometer.common.interfaces import arm_names
from dynamometer.dynamo.backends import torch_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.dynamo.backends.declared import BackendOption, Declared


class Option(msgspec.Struct, frozen=True):
    """What can be set of a backend: how it is typed, what it does, what it can't go with."""

    option: str
    does: str
    excludes: tuple[str, ...] = ()
    inference_only: bool = False


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a backend.

    Attributes:
        name: what `--backend` is given.
        kind: `through Dynamo` or `whole model`.
        summary: what it does.
        devices: types of device it works on; empty for all.
        version: of the distribution that brings it, if that is installed.
        works: on which types of device it works here.
        reason: why it doesn't, or not everywhere, and what to install.
        trains: whether models can be trained with it.
        options: what can be set.
    """

    name: str
    kind: str
    summary: str = ""
    devices: tuple[str, ...] = ()
    version: str | None = None
    works: tuple[str, ...] = ()
    reason: str | None = None
    trains: bool = False
    options: tuple[Option, ...] = ()


def entries() -> list[Entry]:
    """Return all backends: ours, those of plugins, and then those that `torch.compile` knows."""
    devices = _devices()
    ours = registry.choices("backends")
    others = sorted((torch_names.names_of_torch() | {*torch_names.entry_points()}) - {*ours})
    return [_entry(name, devices) for name in (*ours, *others)]


def _devices() -> tuple[str, ...]:
    """Return the types of device that are here, of those that can be asked without torch."""
    from dynamometer.common.machine.environment import require_device

    try:
        require_device("cuda")
    except DynamometerError:
        return ("cpu",)
    return ("cpu", "cuda")


def _entry(name: str, devices: Sequence[str]) -> Entry:
    try:
        found = arm_names.declared(name)
        if found is None:
            return Entry(name=name, kind="through Dynamo", works=tuple(devices), trains=True)
        return _entry_of(name, found, devices)
    except Exception as error:  # noqa: BLE001  a plugin may raise anything
        reason = registry.why_not("backends", name, error)
        return Entry(name=name, kind="unknown", reason=reason)


def _entry_of(name: str, found: Declared, devices: Sequence[str]) -> Entry:
    reasons = {device: _reason(found, device) for device in devices}
    return Entry(
        name=name,
        kind=found.kind,
        summary=found.summary,
        devices=found.devices,
        version=_version(found),
        works=tuple(device for device, reason in reasons.items() if reason is None),
        reason=next(filter(None, reasons.values()), None),
        trains=found.trains,
        options=tuple(_option(each, found.options) for each in found.options),
    )


def _reason(backend: Declared, device: str) -> str | None:
    """Return why there is nothing to measure with a backend on a type of device."""
    name = backend.name
    if torch_names.tests_torch(name):
        return f"{name} is for tests of torch itself: it fails on purpose, or looks for failures"
    return backend.available(device)


def _option(option: BackendOption, known: Sequence[BackendOption]) -> Option:
    names = {each.name for each in known}
    excludes = tuple(name for name in option.excludes if name in names)
    return Option(option.form, option.does, excludes, not option.trains)


def _version(backend: Declared) -> str | None:
    try:
        return metadata.version(backend.distribution)
    except metadata.PackageNotFoundError:
        return None


def as_json(found: Sequence[Entry]) -> str:
    """Render backends for programs."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def as_table(found: Sequence[Entry]) -> str:
    """Render backends for people: a table, then what doesn't work here, then options."""
    from tabulate import tabulate

    rows = [
        [
            each.name,
            each.kind,
            ", ".join(each.devices) or "all",
            each.version or "-",
            ", ".join(each.works) or "no",
            "yes" if each.trains else "no",
            each.summary,
        ]
        for each in found
    ]
    headers = ["name", "kind", "devices", "version", "works here", "trains", ""]
    lines = [tabulate(rows, headers=headers, disable_numparse=True)]
    reasons = [f"  {each.reason}" for each in found if each.reason and not each.works]
    lines += ["", "don't work here:", *reasons] if reasons else []
    for each in found:
        lines += ["", f"options of {each.name}:"] if each.options else []
        lines += [_option_line(option) for option in each.options]
    return "\n".join(lines)


def _option_line(option: Option) -> str:
    against = f"; not with {', '.join(option.excludes)}" if option.excludes else ""
    return f"  {option.option:27} {option.does}{against}"
