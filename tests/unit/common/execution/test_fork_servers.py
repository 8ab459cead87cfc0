"""Which fork servers there are: kept, and replaced where one has ended."""

from __future__ import annotations

import gc
import os
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import factories
import msgspec
import pytest

from dynamometer.common.errors import DynamometerError
from dynamometer.common.execution import fork_server, fork_servers
from dynamometer.common.execution.fork_servers import ForkServers
from dynamometer.common.execution.process import ForkServer, Limits, Worker
from dynamometer.common.interfaces.messages import Preload
from dynamometer.common.machine.temporary import folder_without_spaces
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dynamometer.results.values.cases import RunPlan


@dataclass
class FakeServer:
    """Starts, or doesn't, as a script says."""

    log: Path
    environment: dict[str, str]
    is_foreign: bool
    script: Iterator[bool]
    was_killed: bool
    preloaded: Preload | None = None
    closed: int = 0
    died: bool = False
    device_works: ClassVar[Any] = True
    births: ClassVar[Iterator[bool]] = iter(())

    def launch(self) -> None:
        """Start nothing."""

    def run(self, job: object, log: Path, limits: Limits) -> Worker:
        """Give a worker, or none where it has died before."""
        del job, log, limits
        self.died = not next(self.births)
        return Worker.unborn() if self.died else replace(Worker.unborn(), pid=1)

    def preload(self, preload: Preload) -> None:
        """Be ready, or end."""
        if not next(self.script):
            msg = "the fork server did not start"
            raise DynamometerError(msg)
        self.preloaded = preload

    def close(self) -> None:
        """Count."""
        self.closed += 1


@dataclass
class Launched:
    """The servers that were launched, in order."""

    servers: list[FakeServer] = field(default_factory=list)


def scripted(
    monkeypatch: pytest.MonkeyPatch, starts: list[bool], *, by_signal: bool = True
) -> Launched:
    """Let servers start or end as they start, in this order."""
    launched, script = Launched(), iter(starts)

    def made(log: Path, environment: dict[str, str], *, is_foreign: bool) -> FakeServer:
        launched.servers.append(FakeServer(log, environment, is_foreign, script, by_signal))
        return launched.servers[-1]

    monkeypatch.setattr(fork_servers, "ForkServer", made)
    return launched


def test_a_server_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all workers that need the same."""
    launched = scripted(monkeypatch, [True])
    servers, plan = ForkServers(Path("log")), factories.plan()
    first = servers.ready(plan, Allocator.KEEP)
    assert servers.ready(plan, Allocator.KEEP) is first
    assert len(launched.servers) == 1


@pytest.mark.parametrize("error", [None, ImportError("no torch")])
def test_garbage_is_looked_for_again_when_all_is_imported(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not that went well."""
    seen = []

    def import_all(_: Preload) -> None:
        seen.append(gc.isenabled())
        if error:
            raise error

    monkeypatch.setattr(fork_server, "_import_all", import_all)
    wanted = Preload(
        study="speedup", experiments=(), suite="user", suite_options={}, specs=(), arms=(),
        device="cpu",
    )  # fmt: skip
    try:
        with pytest.raises(ImportError) if error else nullcontext():
            fork_server.prepare(wanted)
        assert (seen, gc.isenabled()) == ([False], True)
    finally:
        gc.unfreeze()


def test_foreign_code_has_servers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was started for other code sees what foreign code must not."""
    launched = scripted(monkeypatch, [True, True])
    servers = ForkServers(Path("log"))
    own = factories.plan()
    foreign = msgspec.structs.replace(own, suite="parity")
    found = [servers.ready(each, Allocator.KEEP) for each in (own, foreign, own, foreign)]
    assert found == [*launched.servers] * 2
    assert [each.is_foreign for each in launched.servers] == [False, True]
    assert "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS" in launched.servers[1].environment


def test_a_folder_of_caches_that_cannot_be_made_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing torch makes it, and workers have others: no run may end for it."""
    (tmp_path / "file").touch()
    for path, is_there in (("file/caches", False), ("new/caches", True)):
        launched = scripted(monkeypatch, [True])
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / path))
        ForkServers(Path("log")).ready(factories.plan(), Allocator.KEEP)
        assert ("TORCHINDUCTOR_CACHE_DIR" in launched.servers[0].environment) is is_there


@pytest.mark.parametrize("suite", ["user", "parity"])
def test_compilers_can_use_the_folder_of_temporary_files(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inductor's probes and headers are compiled there; another folder stays as it is."""
    launched = scripted(monkeypatch, [True])
    plan = msgspec.structs.replace(factories.plan(), suite=suite)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a b"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "a b"))
    ForkServers(Path("log")).ready(plan, Allocator.KEEP)
    assert "TORCHINDUCTOR_CACHE_DIR" not in launched.servers[0].environment
    assert launched.servers[0].environment["TMPDIR"] == str(folder_without_spaces())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("TMPDIR", raising=False)
    launched = scripted(monkeypatch, [True])
    ForkServers(Path("log")).ready(plan, Allocator.KEEP)
    assert "TMPDIR" not in launched.servers[0].environment


def run(servers: ForkServers) -> Worker:
    """Run a job of which nothing matters."""
    job: Any = SimpleNamespace(allocator=Allocator.KEEP)
    return servers.run(factories.plan(), job, Path("log"), Limits(timeout_s=1, memory_bytes=None))


@pytest.mark.parametrize("births", [[True], [False, True], [False, False]])
def test_a_server_that_died_with_nothing_to_do_costs_no_replicate(
    monkeypatch: pytest.MonkeyPatch, births: list[bool]
) -> None:
    """Another one has the job, once: what two in a row die of may be the job."""
    launched = scripted(monkeypatch, [True] * 3)
    monkeypatch.setattr(FakeServer, "births", iter(births))
    assert bool(run(ForkServers(Path("log"))).pid) == births[-1]
    assert [each.closed for each in launched.servers] == [int(not born) for born in births]


def test_a_server_that_starts_while_all_are_ended_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where another thread ends them after this one has looked whether they are."""
    launched, servers, done = scripted(monkeypatch, [True]), ForkServers(Path("log")), list[str]()

    def launch(fake: FakeServer) -> None:
        servers.close()
        done.append("launched")

    monkeypatch.setattr(FakeServer, "launch", launch)
    monkeypatch.setattr(FakeServer, "close", lambda fake: done.append("closed"))
    with pytest.raises(DynamometerError, match="were ended"):
        servers.ready(factories.plan(), Allocator.KEEP)
    assert len(launched.servers) == 1
    assert done[-1] == "closed"


def test_where_nothing_can_be_imported_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second would fail as the first did."""
    launched = scripted(monkeypatch, [False], by_signal=False)
    with pytest.raises(DynamometerError, match="did not start"):
        ForkServers(Path("log")).ready(factories.plan(), Allocator.KEEP)
    assert [each.closed for each in launched.servers] == [1]


@pytest.mark.parametrize("failed", [1, 2, 3])
def test_what_kills_a_server_as_it_starts_costs_no_run(
    monkeypatch: pytest.MonkeyPatch, failed: int
) -> None:
    """After three in a row something is wrong."""
    launched = scripted(monkeypatch, [*[False] * failed, True])
    servers = ForkServers(Path("log"))
    if failed == 3:
        with pytest.raises(DynamometerError, match="did not start"):
            servers.ready(factories.plan(), Allocator.KEEP)
    else:
        assert servers.ready(factories.plan(), Allocator.KEEP) is launched.servers[-1]
    assert [each.closed for each in launched.servers[:failed]] == [1] * failed


@pytest.mark.parametrize(("jobs", "policy"), [(1, None), (2, "PASSIVE")])
def test_threads_wait_asleep_where_cases_run_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, jobs: int, policy: str | None
) -> None:
    """Where one is timed they wait as they usually do; what the user has set stays."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    launched = scripted(monkeypatch, [True])
    plan = msgspec.structs.replace(factories.plan(), jobs=jobs)
    ForkServers(Path("log")).ready(plan, Allocator.KEEP)
    environment = launched.servers[0].environment
    assert environment.get("OMP_WAIT_POLICY") == policy
    assert environment["KMP_BLOCKTIME"] == "7"


UNIMPORTABLE = """
import os, sys, time
for each in os.listdir("/proc/self/fd"):
    if os.path.islink(f"/proc/self/fd/{each}"):
        if os.readlink(f"/proc/self/fd/{each}").startswith("socket:"):
            os.close(int(each))
sys.stderr.write('Traceback (most recent call last):' + os.linesep)
sys.stderr.write('ImportError: no such torch' + os.linesep)
sys.stderr.flush()
time.sleep(1)
os._exit(1)
"""
"""A torch at which the control socket is closed before the process ends, as interpreters do."""


def test_what_cannot_be_imported_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the server takes a while to end; the error comes first in what is said."""
    (tmp_path / "torch.py").write_text(UNIMPORTABLE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    log = tmp_path / "log"
    servers = ForkServers(log)
    with pytest.raises(DynamometerError) as caught:
        servers.ready(factories.plan(), Allocator.KEEP)
    servers.close()
    first = "the fork server did not start: ImportError: no such torch; "
    assert str(caught.value).startswith(first)
    assert log.read_text().count("ImportError") == 1


def test_what_kills_a_keeper_counts_as_well(tmp_path: Path) -> None:
    """It dies of a signal itself, where its server's is told by an exit code."""
    server = ForkServer(tmp_path / "log", dict(os.environ))
    server.launch()
    assert not server.was_killed
    assert server._keeper is not None
    server._keeper.kill()
    server.close()
    assert server.was_killed


def test_where_importing_costs_the_device_nothing_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some packages use it when they are imported, and no fork can then; other plans may."""
    launched = scripted(monkeypatch, [True] * 5)
    servers, plan = ForkServers(Path("log")), factories.plan()
    other = factories.plan(factories.model_spec("other", build="elsewhere:other"))
    monkeypatch.setattr(FakeServer, "device_works", property(works_for(plan)))
    first = servers.ready(plan, Allocator.KEEP)
    assert first is launched.servers[1]
    assert [ahead(each) for each in launched.servers] == [True, False]
    assert [each.closed for each in launched.servers] == [1, 0]
    assert servers.ready(plan, Allocator.KEEP) is first
    assert ahead(servers.ready(other, Allocator.KEEP))
    assert not ahead(servers.ready(plan, Allocator.KEEP))
    assert len(launched.servers) == 2


def works_for(harmful: RunPlan) -> Callable[[FakeServer], bool]:
    """Return whether a fake server's forks can use the device: not if it imports for this plan."""

    def works(fake: FakeServer) -> bool:
        assert fake.preloaded is not None
        return not ahead(fake) or fake.preloaded.specs != harmful.models

    return works


def test_where_no_fork_can_use_the_device_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself uses it, so that importing nothing is no help."""
    launched = scripted(monkeypatch, [True, True])
    monkeypatch.setattr(FakeServer, "device_works", False)
    with pytest.raises(DynamometerError, match="sitecustomize"):
        ForkServers(Path("log")).ready(factories.plan(), Allocator.KEEP)
    assert [each.closed for each in launched.servers] == [1, 1]


def ahead(server: ForkServer | FakeServer) -> bool:
    """Return whether a server has imported for its workers."""
    assert server.preloaded is not None
    return server.preloaded.is_ahead


def test_cuda_devices_are_counted_without_their_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the user has said otherwise."""
    name = "PYTORCH_NVML_BASED_CUDA_CHECK"
    for said, expected in ((None, "1"), ("0", "0")):
        if said is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, said)
        launched = scripted(monkeypatch, [True])
        ForkServers(Path("log")).ready(factories.plan(), Allocator.KEEP)
        assert launched.servers[0].environment[name] == expected
