"""An executor of a plugin: what fails in it, or is not what was asked for, is said to be its."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import msgspec

from dynamometer.common import registry
from dynamometer.common.ending import tell
from dynamometer.common.execution.executor import HandsOver, StartUp
from dynamometer.results.values.records import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.common.execution.executor import Executor
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest

Faults = dict[tuple[registry.Kind, str], str]
"""What plugins failed with that did not end the run, by kind and name."""


def made_executor(manifest: Manifest, directory: Path, faults: Faults) -> Executor:
    """Make the executor of a plan.

    Args:
        manifest: of the run.
        directory: of the run.
        faults: what one of a plugin fails with as it is closed is added to these.

    Raises:
        UsageError: it can't be imported, or is none.
        DynamometerError: making one of a plugin failed.
    """
    name = manifest.plan.executor
    made: Executor = registry.made("executors", name, manifest, directory)
    return made if registry.is_built_in("executors", name) else _of_plugin(name, made, faults)


def _of_plugin(name: str, executor: Executor, faults: Faults) -> PluginExecutor:
    kind = HandingOver if isinstance(executor, HandsOver) else PluginExecutor
    return kind(name, executor, faults)


class PluginExecutor:
    """Has another one work, and looks at what that gives."""

    def __init__(self, name: str, executor: Executor, faults: Faults) -> None:
        """Take the other one, by its name; start nothing yet."""
        self._name, self._executor, self._faults = name, executor, faults

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Leave it to the other one."""
        with registry.named("executors", self._name):
            found: object = self._executor.prepare(cases)
            if isinstance(found, StartUp):
                found = msgspec.convert(msgspec.to_builtins(found), StartUp)
        if not isinstance(found, StartUp):
            self._blame(f"prepare gives {type(found).__name__}, and no StartUp")
        return found

    def execute(self, case: Case, replicate: int) -> Record:
        """Have one replicate run, and read its record as it would be stored."""
        with registry.named("executors", self._name):
            found: object = self._executor.execute(case, replicate)
            if isinstance(found, Record):
                found = msgspec.json.decode(msgspec.json.encode(found), type=Record)
        if not isinstance(found, Record):
            self._blame(f"execute gives {type(found).__name__}, and no Record")
        if (found.case.id, found.replicate) != (case.id, replicate):
            self._blame("execute gives the Record of another replicate")
        return found

    def forget(self, case: Case) -> None:
        """Leave it to the other one."""
        with registry.named("executors", self._name):
            self._executor.forget(case)

    def close(self) -> None:
        """Close the other one; what it fails with takes nothing back, and hides no other error."""
        try:
            self._executor.close()
        except (Exception, SystemExit) as error:  # noqa: BLE001  a plugin may raise anything
            fault = registry.fault("executors", self._name, error)
            if self._faults.setdefault(("executors", self._name), fault) is fault:
                tell(f"error: {fault}")

    def _blame(self, reason: str) -> NoReturn:
        registry.blame("executors", self._name, reason)


class HandingOver(PluginExecutor):
    """One whose processes another plan may go on with."""

    def hand_over(self, manifest: Manifest, directory: Path) -> Executor:
        """Leave it to the other one."""
        assert isinstance(self._executor, HandsOver)
        with registry.named("executors", self._name):
            following = self._executor.hand_over(manifest, directory)
        return _of_plugin(self._name, following, self._faults)
