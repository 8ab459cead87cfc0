"""What the tests with real worker processes share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from browser import PROGRAM, Browser

from dynamometer.common.execution import runner
from dynamometer.common.execution.executors import local
from dynamometer.common.execution.executors.local import LocalExecutor
from dynamometer.common.execution.fork_servers import ForkServers
from dynamometer.common.execution.runner import Interrupt, Remaining, RunInProgress
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.machine.environment import read_environment
from dynamometer.common.planning.cases import build_cases
from dynamometer.common.planning.selection import Selection, select
from dynamometer.results.store import store
from dynamometer.results.values.cases import Mode, Protocol, RunPlan
from dynamometer.results.values.records import Manifest, Record
from dynamometer.results.values.workers import StartMethod

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.common.execution.process import Limits, Worker
    from dynamometer.common.interfaces.messages import Job

HERE = Path(__file__).resolve().parent
SUITE = "hostile_suite:SUITE"
LONG = (
    "test_what_outlives_a_run.py",
    "test_hostile_models.py",
    "test_run.py",
    "test_ensemble.py",
    "test_runs_without_private_names.py",
    "test_examples.py",
    "test_plugin.py",
    "test_variants.py",
    "test_plugin_study.py",
    "test_measuring_protocol.py",
    "test_ensemble_again.py",
)
"""Where files are handed out to several processes, those that take long must not come last."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files that take long first, in this order, and leave the others as they are."""
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONG)))


@pytest.fixture(scope="session", autouse=True)
def importable_suite() -> Iterator[None]:
    """Let worker processes import the suites beside the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HERE))
        patch.syspath_prepend(str(HERE))
        yield


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; none of them may do what `Seen` is about."""
    assert PROGRAM is not None
    with Browser(tmp_path_factory.mktemp("profile"), PROGRAM) as found:
        yield found


@pytest.fixture
def browser(tab: Browser) -> Iterator[Browser]:
    """The browser, which has seen no request, no error and no dialog when a test has ended."""
    yield tab
    tab.evaluate("1")  # what happened before has been told by now
    others = [each for each in tab.seen.requests if not each.startswith(("file:", "about:"))]
    assert (others, tab.seen.errors, tab.seen.dialogs) == ([], [], [])


class KeptForkServers(ForkServers):
    """Fork servers that serve one run after the other, in the environment they are started in."""

    def __init__(self, log: Path) -> None:
        super().__init__(log)
        self.surroundings = _surroundings()
        self._second: KeptForkServers | None = None

    def run(self, plan: RunPlan, job: Job, log: Path, limits: Limits) -> Worker:
        """Run a worker; after an error nobody knows what a server will say next."""
        try:
            return super().run(plan, job, log, limits)
        except BaseException:
            self.end()
            raise

    def beside(self) -> ForkServers:
        """Return the second ones, which are kept likewise."""
        if self._second is None:
            self._second = KeptForkServers(self._log)
        return self._second

    def close(self) -> None:
        """Leave them to the next run."""

    def end(self) -> None:
        """End them."""
        if self._second is not None:
            self._second.end()
        super().close()
        self._is_closed = False


def _surroundings() -> tuple[str, dict[str, str]]:
    """Return what a process that is started now inherits."""
    own = {name: text for name, text in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return str(Path.cwd()), own


@pytest.fixture(scope="session", autouse=True)
def kept_fork_servers(
    importable_suite: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Let runs of this process share fork servers: to import torch takes longer than most runs.

    A test that changes the environment or the folder has servers of its own.
    """
    kept = KeptForkServers(tmp_path_factory.mktemp("kept") / "fork-server.log")

    def servers(log: Path) -> ForkServers:
        return kept if _surroundings() == kept.surroundings else ForkServers(log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "ForkServers", servers)
        yield
    kept.end()


@pytest.fixture
def own_fork_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test about fork servers have its own."""
    monkeypatch.setattr(local, "ForkServers", ForkServers)


class Unobserved:
    """Watches nothing."""

    def case_started(self, case: object) -> None:
        """Pass over it."""

    def record_made(self, record: object) -> None:
        """Pass over it."""

    def case_ended(self, case: object) -> None:
        """Pass over it."""


def hostile_manifest(
    names: Sequence[str],
    arms: Sequence[str] = ("eager",),
    *,
    start_method: StartMethod = StartMethod.FORK,
    mode: Mode = Mode.INFERENCE,
    timeout_s: float = 9000.0,
    **fields: Any,
) -> Manifest:
    """Plan one quick replicate of some hostile models."""
    from hostile_suite import HostileSuite

    specs = select(HostileSuite().specs(), Selection(only=tuple(names)))
    return Manifest(
        run_id="hostile",
        created_at="2026-01-01T00:00:00",
        version="0",
        program="dynamometer run hostile",
        command="dynamometer run hostile",
        environment=read_environment(),
        plan=RunPlan(
            suite=SUITE,
            models=specs,
            cases=build_cases(specs, Workload(arms=tuple(arms), mode=mode)),
            protocol=Protocol(
                replicates=1,
                most_replicates=1,
                arm_budget_s=0.05,
                min_blocks=2,
                start_method=start_method,
            ),
            timeout_s=timeout_s,
            threads=1,
            **fields,
        ),
    )


def with_protocol(manifest: Manifest, **fields: Any) -> Manifest:
    """Change how a plan is measured."""
    replace = msgspec.structs.replace
    protocol = replace(manifest.plan.protocol, **fields)
    return replace(manifest, plan=replace(manifest.plan, protocol=protocol))


def run_manifest(manifest: Manifest, directory: Path) -> dict[str, Record]:
    """Run a plan through real workers and give each model's last record."""
    return {record.case.model: record for record in run_replicates(manifest, directory)}


def run_replicates(manifest: Manifest, directory: Path) -> list[Record]:
    """Run a plan through real workers and give all records; every case has one."""
    store.create(directory, manifest)
    executor = LocalExecutor(manifest, directory)
    try:
        with store.RunStore(directory) as events:
            rest = Remaining(manifest, store.read_records(directory))
            assert runner.run(RunInProgress(rest, events, [], Unobserved()), executor, Interrupt())
    finally:
        executor.close()
    records = store.read_records(directory)
    assert {record.case.id for record in records} == {case.id for case in manifest.plan.cases}
    assert len({(record.case.id, record.replicate) for record in records}) == len(records)
    return records
