"""The fork servers of a run: which there are, what they have imported, and how long that took."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import DynamometerError
from dynamometer.common.execution.confinement.containment import without_secrets
from dynamometer.common.execution.process import ForkServer
from dynamometer.common.interfaces.messages import Preload
from dynamometer.common.machine.allocator import environment_of
from dynamometer.common.machine.temporary import (
    can_hold_caches,
    folder_without_spaces,
    needs_quoting,
)
from dynamometer.results.values.workers import Allocator, StartMethod

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.common.execution.process import Limits, Worker
    from dynamometer.common.interfaces.messages import Job
    from dynamometer.results.values.cases import RunPlan

_WAITING_ASLEEP = {"KMP_BLOCKTIME": "0", "OMP_WAIT_POLICY": "PASSIVE"}
"""For threads of cases that run at the same time: those that wait awake take others' cores. OpenMP
5.2, 21.2.7, and libiomp's own variable."""
_NO_SHARED_HEADERS = {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}
"""Inductor keeps these in a folder that all its processes write to, and foreign code may not. For
processes that workers start; they themselves have it from `state.without_shared_headers`."""
_COUNTS_BY_NVML = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Lets torch count CUDA devices without CUDA's runtime, which doesn't survive a fork: importing
Inductor counts them. Source: torch.cuda.is_available."""
_CACHE_DIR = "TORCHINDUCTOR_CACHE_DIR"
_Key = tuple[Allocator, bool]
"""The library that is preloaded, and whether foreign code is run."""
_MOST_FAILED = 2
"""Servers in a row that end while they start, before the run does."""
_WERE_ENDED = "fork servers were ended while a case was run"


class ForkServers:
    """Starts one for each allocator that is preloaded, and another where one has died.

    Foreign code has servers of its own, which are started without what it must not see.

    They may serve several plans, one after the other: what each needs is imported into those that
    run. Where that keeps the device from their forks, each worker imports for itself.

    Attributes:
        starting_s: seconds that starting took since it was last asked.
    """

    def __init__(self, log: Path) -> None:
        """Start nothing yet.

        Args:
            log: where they write.
        """
        self._log = log
        self._servers: dict[_Key, ForkServer] = {}
        self._wanted: tuple[RunPlan, Preload] | None = None
        self._is_closed = False
        self._failed_in_a_row = 0
        self._harmful: list[Preload] = []
        self.starting_s = 0.0

    def beside(self) -> ForkServers:
        """Return others, which serve at the same time."""
        return ForkServers(self._log)

    def run(self, plan: RunPlan, job: Job, log: Path, limits: Limits) -> Worker:
        """Run one worker process of a plan to its end.

        Where none was forked, as its server died before, nothing of the job was run: another server
        gets it, once.

        Raises:
            DynamometerError: none can be started.
        """
        worker = self._run_once(plan, job, log, limits)
        return worker if worker.pid else self._run_once(plan, job, log, limits)

    def _run_once(self, plan: RunPlan, job: Job, log: Path, limits: Limits) -> Worker:
        server = self.ready(plan, job.allocator)
        worker = server.run(job, log, limits)
        if server.died or plan.protocol.start_method is StartMethod.SPAWN:
            self._end(_key(plan, job.allocator))
        return worker

    def ready(self, plan: RunPlan, allocator: Allocator) -> ForkServer:
        """Return a server that a plan's workers can be forked from, starting one if there is none.

        An allocator that is preloaded needs a server of its own; the others are one library.

        Raises:
            DynamometerError: it can't be started, or all were ended by another thread.
        """
        if self._is_closed:
            raise DynamometerError(_WERE_ENDED)
        key, wanted = _key(plan, allocator), self._wanted_by(plan)
        known = self._servers.get(key)
        if known is not None and known.preloaded == wanted:
            return known
        started = time.monotonic()
        server = known or self._launched(key, plan)
        try:
            server.preload(wanted)
        except DynamometerError:
            self._end(key)
            # One that had died with nothing to do is replaced, as is one that something ends while
            # it starts. What can't be imported can't be imported again.
            if known is None:
                self._failed_in_a_row += 1
                if not server.was_killed or self._failed_in_a_row > _MOST_FAILED:
                    raise
            return self.ready(plan, allocator)
        self._failed_in_a_row = 0
        self.starting_s += time.monotonic() - started
        if server.device_works:
            return server
        self._end(key)
        if not wanted.is_ahead:
            msg = (
                f"no worker can use {wanted.device}, as Python uses it whenever it starts: look at"
                " sitecustomize, usercustomize and .pth files"
            )
            raise DynamometerError(msg)
        self._harmful.append(wanted)
        self._wanted = None
        return self.ready(plan, allocator)

    def _launched(self, key: _Key, plan: RunPlan) -> ForkServer:
        allocator, is_foreign = key
        environment = environment_of(allocator, os.environ)
        if plan.jobs > 1:
            environment = {**_WAITING_ASLEEP, **environment}
        if is_foreign:
            environment = {**without_secrets(environment), **_NO_SHARED_HEADERS}
        # Inductor has headers and probes compiled there.
        if needs_quoting(tempfile.gettempdir()):
            environment["TMPDIR"] = str(folder_without_spaces())
        if _CACHE_DIR in environment and not can_hold_caches(environment[_CACHE_DIR]):
            del environment[_CACHE_DIR]  # as in its own folder, torch makes it when it is imported
        environment = {**_COUNTS_BY_NVML, **environment}
        server = self._servers[key] = ForkServer(self._log, environment, is_foreign=is_foreign)
        server.launch()
        if self._is_closed:  # by another thread, which may not have seen it, or before it ran
            server.close()
            raise DynamometerError(_WERE_ENDED)
        return server

    def _wanted_by(self, plan: RunPlan) -> Preload:
        """Return what workers of a plan need, which is looked through but once."""
        if self._wanted is None or self._wanted[0] is not plan:
            wanted = _preload_of(plan)
            is_ahead = wanted not in self._harmful
            self._wanted = plan, msgspec.structs.replace(wanted, is_ahead=is_ahead)
        return self._wanted[1]

    def take_starting_s(self) -> float:
        """Return the seconds that starting took, and count anew."""
        spent_s, self.starting_s = self.starting_s, 0.0
        return spent_s

    def close(self) -> None:
        """End them, and with them their workers; there will be no others."""
        self._is_closed = True
        for key in [*self._servers]:
            self._end(key)

    def _end(self, key: _Key) -> None:
        server = self._servers.pop(key, None)
        if server is not None:
            server.close()


def _preload_of(plan: RunPlan) -> Preload:
    """Return what workers of a plan need; of models that need the same, one stands for all."""
    needs = {
        (spec.build.partition(":")[0], spec.requires, spec.is_never_run): spec
        for spec in reversed(plan.models)
    }
    return Preload(
        study=plan.study,
        experiments=plan.experiments,
        suite=plan.suite,
        suite_options=plan.suite_options,
        specs=tuple(reversed(needs.values())),
        arms=tuple({arm: None for case in plan.cases for arm in case.arms}),
        device=plan.cases[0].device,
    )


def _key(plan: RunPlan, allocator: Allocator) -> _Key:
    """Return what a fork server must be started for: one library, or glibc whatever its policy."""
    library = allocator if allocator.is_preloaded else Allocator.STOCK
    return library, registry.suite(plan.suite).is_foreign
