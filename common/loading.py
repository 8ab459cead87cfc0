"""From `module:attribute` to what stands there; where nothing of the kind does, why not."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dynamometer.common import plugins
from dynamometer.common.errors import UsageError
from dynamometer.results.values.cases import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager


def load(kind: str, name: str, path: str) -> Any:
    """Import `module:attribute`.

    Args:
        kind: of thing it is, for the message.
        name: what it is known by.
        path: where it is.

    Raises:
        UsageError: its module can't be imported, or lacks the attribute.
    """
    module_name, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(cannot_load(kind, name, path, str(error))) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin's module may do anything as it is imported
        reason = f"importing it raised {type(error).__name__}: {error}"
        raise UsageError(cannot_load(kind, name, path, reason)) from error


def cannot_load(kind: str, name: str, path: str, reason: str) -> str:
    """Say why something can't be loaded."""
    source = "" if path == name else f" from {origin(kind, name, path)}"
    return f"{singular(kind)} {name!r} can't be loaded{source}: {reason}"


def origin(kind: str, name: str, path: str) -> str:
    """Return where something is, and of which package if one registers it."""
    known = (each for each in plugins.registered(kind) if (each.name, each.place) == (name, path))
    return next((each.origin for each in known), path)


def not_found(package: str) -> str:
    """Say what to do about a package that isn't there.

    The current folder isn't searched unasked: what a file of decisions or a plan names would be
    taken from whichever folder the command happens to run in.
    """
    reason = f"no module named {package!r}"
    if Path(f"{package}.py").is_file() or Path(package).is_dir():
        return f"{reason} where Python looks, but one in the current folder: set PYTHONPATH=."
    return f"{reason}; install it, or put its folder on PYTHONPATH"


def is_there(package: str) -> bool:
    """Return whether Python finds a package."""
    return package in sys.modules or importlib.util.find_spec(package) is not None


def is_file(module_name: str) -> bool:
    """Return whether what is named as a module can only be a file."""
    if not module_name.endswith(".py"):
        return False
    package = module_name.partition(".")[0]
    return os.path.isfile(module_name) or not (package and is_there(package))  # noqa: PTH113  so is no name that is too long


def of_file(kind: str, file: str, attribute: str) -> str:
    """Say how a model of a file is named, or what else a module has."""
    name = attribute.lstrip(":")
    if kind == "suites":
        return f"did you mean {file}::{name}?"
    return f"{file} is a file: name its module, {Path(file).stem}:{name}"


def singular(kind: str) -> str:
    """Return what one of a kind is called."""
    return kind.removesuffix("ies") + "y" if kind.endswith("ies") else kind.removesuffix("s")


def misfit(kind: str, found: object) -> str | None:
    """Return why something is nothing of a kind, as far as that shows before it is used."""
    if kind not in _ASKED:
        its_type = type(found).__name__
        return None if callable(found) else f"its type is {its_type}, which can't be called"
    reason = lacking(found, _ASKED[kind])
    if reason and kind == "backends" and callable(found):  # a compiler for Dynamo
        return None
    if isinstance(found, type):
        it, example = found.__name__, singular(kind).upper()
        return f"{it} is a class: register an instance, such as {example} = {it}()"
    return reason


def lacking(found: object, asked: Sequence[str]) -> str | None:
    """Return what of its kind something lacks, in words; `None` if nothing."""
    names = [each for each in asked if not hasattr(found, each)]
    return f"its type is {type(found).__name__}, which lacks {', '.join(names)}" if names else None


_ASKED: dict[str, tuple[str, ...]] = {
    "suites": ("options", "target", "opening", "open"),
    "studies": ("asked_by", "options", "experiments", "experiment"),
    "backends": ("compile", "available", "captures"),
}
"""Kinds that are asked something as they are, and what every run asks; the others are called."""

ASKED_OF_MADE: dict[str, tuple[str, ...]] = {
    "sinks": ("write", "close", "paths"),
    "executors": ("prepare", "execute", "forget", "close"),
}
"""What each run asks of what it makes."""


class _Watched:
    """What a plugin brings, whose faults are said to be the plugin's."""

    def __init__(
        self,
        watched: Any,
        watch: Callable[..., AbstractContextManager[None]],
        blame: Callable[[str], NoReturn],
    ) -> None:
        """Watch something.

        Args:
            watched: what the plugin brings.
            watch: says of an error what it came from, but for those of the types it is given.
            blame: raises an error for a reason.
        """
        self._watched, self._watch, self._blame = watched, watch, blame

    def _suite(self, found: Any) -> WatchedSuite:
        kind = WatchedTellingSuite if hasattr(found, "telling") else WatchedSuite
        return kind(found, self._watch, self._blame)


class WatchedSource(_Watched):
    """What opens a plugin's suite. What it adds to the command line is the plugin's own."""

    def __getattr__(self, name: str) -> Any:
        """Return what the source has."""
        return getattr(self._watched, name)

    def open(self, opening: Mapping[str, str]) -> WatchedSuite:
        """Open the suite."""
        with self._watch(ValueError):
            found = self._watched.open(opening)
        if reason := lacking(found, ("specs", "preload", "load")):
            self._blame(f"what open gives is no Suite: {reason}")
        return self._suite(found)


class WatchedSuite(_Watched):
    """A plugin's suite."""

    def specs(self) -> list[ModelSpec]:
        """Describe the models."""
        with self._watch(ValueError):
            found = self._watched.specs()
            specs = [*found] if hasattr(found, "__iter__") else None
        if specs is None:
            self._blame(f"specs gives {type(found).__name__}, and no list of ModelSpec")
        odd = [type(each).__name__ for each in specs if not isinstance(each, ModelSpec)]
        if odd:
            self._blame(f"specs gives {odd[0]}, and no ModelSpec")
        return specs

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import what loading models will need."""
        with self._watch():
            self._watched.preload(specs)

    def load(self, spec: ModelSpec, case: object) -> Any:
        """Build a model; what that raises is its outcome."""
        found = self._watched.load(spec, case)
        if reason := lacking(found, ("module", "args", "kwargs")):
            self._blame(f"what load gives is no LoadedModel: {reason}")
        if reason := lacking(found.module, ("forward", "named_parameters")):
            self._blame(f"the module that load gives is none: {reason}")
        if not isinstance(found.args, tuple | list):
            self._blame(f"load gives args that are {type(found.args).__name__}, and no tuple")
        return found


class WatchedTellingSuite(WatchedSuite):
    """A plugin's suite that says how far loading a model came."""

    def telling(self, tell: Callable[[str], None]) -> WatchedSuite:
        """Return the same suite, that tells."""
        return self._suite(self._watched.telling(tell))
