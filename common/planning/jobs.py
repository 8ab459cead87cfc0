"""How many cases run at the same time, and with how many threads each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.run_options import EXECUTOR, JOBS, SPAWN, THREADS
from dynamometer.common.interfaces.workload_options import DEVICE
from dynamometer.common.machine import cgroups
from dynamometer.common.studies.study import Jobs

if TYPE_CHECKING:
    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.studies.study import Study

_THREADS_OF_EACH = 2
"""Of a case that may run beside others, where there are so many cores: compiled code for one thread
is not the code that is timed."""


def jobs_of(study: Study, request: Request) -> int:
    """Return how many cases of a run may be executed at the same time.

    Raises:
        UsageError: several are asked for where that can't be; says why.
    """
    asked = request[JOBS]
    reason = _reason_for_one(study, request)
    if reason and asked is not None and asked > 1:
        msg = f"-j {asked} can't be: {reason}; leave it out"
        raise UsageError(msg)
    if reason:
        return 1
    if asked is None:
        return cores() if study.jobs is Jobs.ALL_CORES else 1
    return asked


def threads_of(study: Study, request: Request) -> int | None:
    """Return how many threads each case computes with; `None` leaves it to torch.

    It is the same whatever `-j` is: results depend on the number of threads by their rounding.
    """
    if request[THREADS] is not None or _reason_for_one(study, request):
        return request[THREADS]
    if study.usual_threads is not None:
        return study.usual_threads
    return min(_THREADS_OF_EACH, cores()) if study.jobs is Jobs.ALL_CORES else None


def cores(root: Path = Path("/")) -> int:
    """Count the cores this process may keep busy.

    Args:
        root: below which `proc` and `sys` are.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    usable = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    share = cgroups.processors(root)
    return usable if share is None else max(1, min(usable, int(share)))


def _reason_for_one(study: Study, request: Request) -> str | None:
    """Return why cases must run one after the other; `None` if they needn't."""
    if study.jobs is Jobs.ONE:
        return "what is asked runs one case at a time, as what is timed must"
    if request[DEVICE] != "cpu":
        return f"cases would share one {request[DEVICE]} device, and its memory"
    if request[SPAWN]:
        return "with --spawn each case has a fork server of its own"
    if request[EXECUTOR] != registry.DEFAULT_EXECUTOR:
        return f"the executor {request[EXECUTOR]} decides by itself how cases are run"
    return None
