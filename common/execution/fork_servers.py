"""The fork servers of a run: which there are, what they have imported, and how long that took."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from dynamometer.common.execution.process import ForkServer
from dynamometer.common.interfaces.messages import Job, Preload
from dynamometer.common.machine.allocator import environment_of
from dynamometer.results.values.cases import Allocator, StartMethod

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.common.execution.process import Limits, Worker
    from dynamometer.results.values.cases import RunPlan


class ForkServers:
    """Starts one for each allocator that is preloaded, and another where one has died.

    Attributes:
        starting_s: seconds that starting took since it was last asked.
    """

    def __init__(self, plan: RunPlan, log: Path) -> None:
        """Start nothing yet.

        Args:
            plan: of the run; says what is imported.
            log: where they write.
        """
        self._plan = plan
        self._log = log
        self._servers: dict[Allocator, ForkServer] = {}
        self.starting_s = 0.0

    def run(self, job: Job, log: Path, limits: Limits) -> Worker:
        """Run one worker process to its end.

        Raises:
            DynamometerError: none can be started.
        """
        server = self.ready(job.allocator)
        worker = server.run(job, log, limits)
        if server.died or self._plan.protocol.start_method is StartMethod.SPAWN:
            server.close()
            del self._servers[_preloaded(job.allocator)]
        return worker

    def ready(self, allocator: Allocator) -> ForkServer:
        """Return a server that workers can be forked from, starting one if there is none.

        An allocator that is preloaded needs a server of its own; the others are one library.

        Raises:
            DynamometerError: it can't be started.
        """
        key = _preloaded(allocator)
        if key in self._servers:
            return self._servers[key]
        started = time.monotonic()
        environment = environment_of(allocator, os.environ)
        server = self._servers[key] = ForkServer(self._log, environment)
        server.launch(
            Preload(
                study=self._plan.study,
                experiments=self._plan.experiments,
                suite=self._plan.suite,
                suite_options=self._plan.suite_options,
                specs=self._plan.models,
                arms=tuple({arm: None for case in self._plan.cases for arm in case.arms}),
                device=self._plan.cases[0].device,
            )
        )
        server.await_ready()
        self.starting_s += time.monotonic() - started
        return server

    def take_starting_s(self) -> float:
        """Return the seconds that starting took, and count anew."""
        spent_s, self.starting_s = self.starting_s, 0.0
        return spent_s

    def close(self) -> None:
        """End them, and with them their workers."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()


def _preloaded(allocator: Allocator) -> Allocator:
    """Return what a fork server must be started with: one library, or glibc whatever its policy."""
    return allocator if allocator.is_preloaded else Allocator.STOCK
