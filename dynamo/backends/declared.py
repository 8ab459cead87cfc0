"""What a backend says of itself before it is loaded, and what can be set of it. No torch."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, is_dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from dynamometer.dynamo.backends.settings.values import Values
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SWITCH = "PYTORCH_JIT"
_OFF = {"0", "0v", "false", "no"}
"""Values of it by which `torch.jit` gives modules back as they are. Source: torch.jit._state."""


@dataclass(frozen=True, kw_only=True)
class BackendOption:
    """One thing that can be set: a word such as `freezing`, or a key as in `precision=bf16`.

    Attributes:
        name: how it is typed; of a family, such as `config.KEY`, the part before the key.
        does: what it does, in a line.
        sets: settings of the compiler, by name, that a word stands for.
        means: what these come to, where one of them stands for others, as a mode does.
        key: the setting that takes the value which is typed; `None` for a word.
        values: which that may be.
        excludes: options that contradict it.
        overrides: options that may be given together with it although it switches part of them off.
        trains: whether a model can be trained with it.
        family: what keys a family has, with their values, asked for when one is typed; `None` for
            no family.
    """

    name: str
    does: str
    sets: Mapping[str, Any] = field(default_factory=dict)
    means: Callable[[], Mapping[str, Any]] | None = None
    key: str | None = None
    values: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    trains: bool = True
    family: Callable[[], Mapping[str, Values]] | None = None

    @property
    def form(self) -> str:
        """How it is typed, for a list."""
        if self.family is not None:
            return f"{self.name}KEY=VALUE"
        return f"{self.name}={'|'.join(self.values)}" if self.key else self.name

    @property
    def takes_value(self) -> bool:
        """Whether it is typed with a value."""
        return self.family is not None or self.key is not None

    def settings(self, name: str, value: str | None) -> dict[str, Any]:
        """Return what it sets.

        Args:
            name: as typed; of a family, with the key.
            value: as typed, if it takes one.

        Raises:
            ValueError: it is no value of that setting; says which are.
        """
        if self.family is not None:
            key = name.removeprefix(self.name)
            return {key: self.family().get(key, Values()).read(value or "")}
        return {self.key: value} if self.key else dict(self.sets)

    def resolved(self, name: str, value: str | None) -> dict[str, Any]:
        """Return what it sets in the end; arguments and errors are those of `settings`."""
        return dict(self.means() if self.means else {}) or self.settings(name, value)

    def default(self, key: str) -> tuple[Any, ...]:
        """Return the value that a setting of its family has unless it is set, if that is known."""
        return self.family().get(key, Values()).default if self.family is not None else ()


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What is known of a backend before it is loaded.

    Attributes:
        name: what messages call it.
        summary: one line for whoever chooses.
        compiler: what compiles; its fields are its settings, if it is a dataclass.
        devices: device types it works on; empty for all.
        packages: importable packages it needs.
        extra: the extra of this distribution that installs them.
        distribution: whose version is the backend's.
        of_torch: names of `torch` that a release may have no more.
        trains: whether what it compiles can be trained.
        options: what can be set of it.
        captures: whether graphs come from Dynamo: capturing none is then a failure.
    """

    name: str
    summary: str = ""
    compiler: Any = None
    devices: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    extra: str | None = None
    distribution: str = "torch"
    of_torch: tuple[str, ...] = ()
    trains: bool = False
    options: tuple[BackendOption, ...] = ()
    captures: bool = False

    @property
    def kind(self) -> str:
        """Say how it gets at models."""
        return "through Dynamo" if self.captures else "whole model"

    def available(self, device: str) -> str | None:
        """Return why it can't be used on a device type here, and what to install.

        What torch lacks is known where torch has been imported.
        """
        if self.devices and device not in self.devices:
            return f"{self.name} runs on {', '.join(self.devices)} only"
        missing = [package for package in self.packages if find_spec(package) is None]
        if missing:
            noun = "package" if len(missing) == 1 else "packages"
            wanted = f"'.[{self.extra}]' in a clone" if self.extra else " ".join(missing)
            return f"{self.name} needs the {noun} {', '.join(missing)}: pip install {wanted}"
        off = os.environ.get(_SWITCH)
        if off and off.lower() in _OFF and any(name.startswith("jit.") for name in self.of_torch):
            return f"{_SWITCH}={off} turns TorchScript off: unset it"
        torch = sys.modules.get("torch")
        gone = [name for name in self.of_torch if torch and not _has(torch, name)]
        if torch and gone:
            return f"torch {torch.__version__} has no torch.{gone[0]} any more"
        return None

    def refusal(self, mode: Mode) -> str | None:
        """Return why it can't be used in a mode."""
        if mode is Mode.TRAINING and not self.trains:
            return f"{self.name} computes no gradients; leave out --training"
        return None

    def default(self, key: str) -> tuple[Any, ...]:
        """Return the value that a setting has unless it is set, if that is known."""
        if is_dataclass(self.compiler) and hasattr(self.compiler, key):
            return (getattr(self.compiler, key),)
        return next(filter(None, (each.default(key) for each in self.options)), ())

    def set_to(self, settings: Mapping[str, Any]) -> Self:
        """Return the backend with other settings of its compiler."""
        if not settings:
            return self
        assert is_dataclass(self.compiler)
        assert not isinstance(self.compiler, type)
        return replace(self, compiler=replace(self.compiler, **settings))


def _has(found: object, path: str) -> bool:
    """Return whether an object has something of a dotted name."""
    for name in path.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True
