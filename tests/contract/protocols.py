"""Comparing an implementation with the Protocol of its interface."""

from __future__ import annotations

import inspect
from typing import Protocol


def members(kind: type) -> dict[str, object]:
    """Return the public members a Protocol declares; `None` for an attribute that is annotated."""
    declared = {
        name: value
        for each in reversed(kind.__mro__)
        if getattr(each, "_is_protocol", False) and each is not Protocol
        for name, value in {**dict.fromkeys(each.__annotations__), **vars(each)}.items()
    }
    return {name: value for name, value in declared.items() if not name.startswith("_")}


def deviations(protocol: type, implementation: object) -> list[str]:
    """Say in which members an implementation is not what its Protocol asks for.

    Args:
        protocol: the interface.
        implementation: an instance, or a class.
    """
    found = []
    for name, wanted in members(protocol).items():
        own = getattr(implementation, name, None)
        if not hasattr(implementation, name):
            found.append(f"{name} is missing")
        elif not callable(wanted):
            continue
        elif not callable(own):
            found.append(f"{name} is not a method")
        else:
            bound = isinstance(implementation, type)
            parameters = list(inspect.signature(wanted).parameters)[0 if bound else 1 :]
            ours = list(inspect.signature(own).parameters)
            if parameters != ours:
                found.append(f"{name} takes {ours}, not {parameters}")
    return found
