"""What a call must be given, as its signature says."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from dynamometer.models.parity.source.arguments import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable


def needed_by(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters that have no default; none where they can't be told."""
    parameters = _parameters_of(function)
    if parameters and parameters[0].name == "self":
        del parameters[0]
    variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return [
        Parameter(
            each.name,
            "" if each.annotation is each.empty else _annotation(each.annotation),
            each.kind is inspect.Parameter.POSITIONAL_ONLY,
        )
        for each in parameters
        if each.default is each.empty and each.kind not in variadic
    ]


def any_number_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return one parameter of a function that takes any number of them; none of another."""
    kinds = {each.kind for each in _parameters_of(function)}
    takes_any = inspect.Parameter.VAR_POSITIONAL in kinds
    return [Parameter("inputs", "", is_positional=True)] if takes_any else []


def _parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []


def _annotation(annotation: object) -> str:
    if isinstance(annotation, str):
        return annotation
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
