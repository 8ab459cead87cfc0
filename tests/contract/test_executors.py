"""Every registered executor, as far as that starts no process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import pytest
from protocols import deviations

from dynamometer.common import registry
from dynamometer.common.execution.executor import Executor, HandsOver, StartUp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dynamometer.results.values.records import Manifest

    Make = Callable[[Manifest, Path], Executor]


@pytest.fixture(params=sorted(registry.targets("executors")))
def make(request: pytest.FixtureRequest) -> Make:
    """The executor of a name, to be made."""
    found: Make = registry.resolve("executors", request.param)
    return found


def test_it_has_the_protocols_methods(make: Make, tmp_path: Path) -> None:
    """Methods and their arguments are those of the interface."""
    executor = make(factories.manifest(), tmp_path)
    assert deviations(Executor, executor) == []
    executor.close()


def test_another_plan_may_go_on_with_its_processes(make: Make, tmp_path: Path) -> None:
    """Where it offers that, it makes another like itself, which alone is closed."""
    executor = make(factories.manifest(), tmp_path / "first")
    if isinstance(executor, HandsOver):
        assert deviations(HandsOver, executor) == []
        executor = executor.hand_over(factories.manifest(), tmp_path / "second")
    assert deviations(Executor, executor) == []
    executor.close()


def test_nothing_is_prepared_where_nothing_is_run(make: Make, tmp_path: Path) -> None:
    """A run that is skips only starts no process and takes no time."""
    plan = factories.plan(factories.model_spec("a", skipped="broken"))
    executor = make(factories.manifest(plan), tmp_path)
    assert executor.prepare(plan.cases) == StartUp()
    assert not (tmp_path / "logs" / "fork-server.log").exists()
    executor.close()


def test_closing_twice_is_closing_once(make: Make, tmp_path: Path) -> None:
    """Whoever cleans up need not know whether someone did."""
    executor = make(factories.manifest(), tmp_path)
    executor.close()
    executor.close()
