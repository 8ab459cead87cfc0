"""Telling Dynamo how to treat functions that are named, for the rest of the process."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from torch.compiler import allow_in_graph, disable, substitute_in_graph

if TYPE_CHECKING:
    from dynamometer.results.values.cases import Overrides


def apply_overrides(overrides: Overrides) -> None:
    """Apply what a case asks for, once its model has imported what it needs.

    Args:
        overrides: functions by name; what is disabled is replaced where it is defined, so a module
            that has imported it by its own name keeps the original.

    Raises:
        LookupError: there is no such function; names it.
    """
    for name in overrides.allow_in_graph:
        allow_in_graph(_find(name))  # type: ignore[no-untyped-call]  # torch's
    for name in overrides.disable:
        _disable(*_owner(name))
    for original, replacement in overrides.substitute:
        substitute_in_graph(_find(original))(_find(replacement))


def _disable(owner: Any, attribute: str) -> None:
    found = inspect.getattr_static(owner, attribute)
    if isinstance(found, staticmethod | classmethod):
        left: Any = disable(found.__func__)  # type: ignore[no-untyped-call]  # torch's
        setattr(owner, attribute, type(found)(left))
    else:
        left = disable(getattr(owner, attribute))  # type: ignore[no-untyped-call]  # torch's
        setattr(owner, attribute, left)


def _find(name: str) -> Any:
    owner, attribute = _owner(name)
    return getattr(owner, attribute)


def _owner(name: str) -> tuple[Any, str]:
    """Return what has a function as an attribute, and that attribute."""
    module_name, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    try:
        owner: Any = importlib.import_module(module_name)
        for each in owners:
            owner = getattr(owner, each)
        getattr(owner, attribute)
    except (ImportError, AttributeError) as error:
        msg = f"there is no function {name}: {error}"
        raise LookupError(msg) from error
    return owner, attribute
