"""The warm process that workers are forked from; it imports, and runs nothing.

Started by `process`. On the control socket it reads one request at a time. `Preload` says what to
import, first and whenever workers of another plan follow. `Fork` comes with the worker's result
pipe and log as descriptors, and is answered with the worker's process id and, when it has ended,
its wait status. No thread that runs Python, no device context, no operator run: a fork
of it is as good as a fresh process, seconds sooner.

Spawning goes the same way: a fork server that is asked for one worker and then closed.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import resource
import selectors
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import registry
from dynamometer.common.execution import worker
from dynamometer.common.execution.confinement.keeper import adopt_orphans, children, die_with_parent
from dynamometer.common.execution.confinement.namespaces import is_first_process
from dynamometer.common.interfaces import arm_names
from dynamometer.common.interfaces.messages import (
    LONGEST_MESSAGE,
    Answer,
    Command,
    Ended,
    Fork,
    Job,
    Preload,
    Ready,
    Started,
)
from dynamometer.common.machine.processes import resident_bytes
from dynamometer.common.studies.study import Jobs

if TYPE_CHECKING:
    from dynamometer.common.studies.experiment import Experiment

_WORKER_MODULES = (
    "dynamometer.common.execution.preparation.fill",
    "dynamometer.common.execution.preparation.toolchain",
    "dynamometer.common.measuring.timed_arms",
    "dynamometer.dynamo.backends.backends",
    "dynamometer.dynamo.capture.overrides",
    "dynamometer.dynamo.capture.sizes",
    "dynamometer.dynamo.device",
    "dynamometer.dynamo.state",
)
"""What a worker would otherwise import, and be charged for, itself."""


_MOST_GROWN_BYTES = 256 << 20
"""By what it reads for its workers, who all inherit it: one that has grown further is replaced."""


def main(descriptor: int) -> None:
    """Serve requests until the parent closes the socket or dies."""
    die_with_parent(os.getppid())
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(socket.socket(fileno=descriptor))


def prepare(preload: Preload) -> None:
    """Import torch, what the registered backends need and the model packages.

    A backend of the user's own is first imported by a worker: its module may do anything.
    """
    gc.disable()  # imports make hardly any garbage, and a quarter of them is looking for it
    try:
        _import_all(preload)
    finally:
        gc.enable()
    # What was imported is here to stay: collections in workers, of which there is one before
    # each stretch of blocks, need not look through it, nor copy its pages by touching them.
    gc.collect()
    gc.freeze()


def _import_all(preload: Preload) -> None:
    for name in _WORKER_MODULES:
        importlib.import_module(name)
    study = registry.study(preload.study)
    if study.jobs is Jobs.ALL_CORES:  # it times no compiling
        from dynamometer.dynamo import first_compilation

        first_compilation.preload()
    for name in preload.experiments:
        _import_worker(study.experiment(name))
    from dynamometer.common.measuring.arm_backends import load_backend
    from dynamometer.dynamo.backends.backends import PreparesToolchain
    from dynamometer.dynamo.backends.compilers import ThroughDynamo

    device = preload.device
    for arm in preload.arms:
        known = registry.is_built_in("backends", arm_names.read(arm).backend)
        backend = load_backend(arm) if known else ThroughDynamo(name=arm, compiler=arm)
        if isinstance(backend, PreparesToolchain) and backend.available(device) is None:
            backend.preload(device)
    suite = registry.suite(preload.suite).open(preload.suite_options)
    suite.preload(preload.specs)


def _works_in_forks(device: str) -> bool:
    """Return whether forks of this process can use a device, which one fork tries.

    They can't once the device was used here, as some packages do when they are imported.
    """
    if device == "cpu" or "torch" not in sys.modules:
        return True
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    status = 1
    try:
        from dynamometer.dynamo.device import holds_tensors

        status = 0 if holds_tensors(device) else 1
    finally:
        os._exit(status)


def _import_worker(experiment: Experiment) -> None:
    """Import what does its work: the module `worker` beside each of its classes, if any."""
    for kind in type(experiment).__mro__:
        package = kind.__module__.rpartition(".")[0]
        if package and importlib.util.find_spec(f"{package}.worker") is not None:
            importlib.import_module(f"{package}.worker")


def _serve(control: socket.socket) -> None:
    limits, bytes_at_first = _limits(), 0
    preload: Preload | None = None
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is control:
                match _receive(control):
                    case Preload() as asked, _:
                        preload = asked
                        if preload.is_ahead:
                            prepare(preload)
                        bytes_at_first = resident_bytes(os.getpid())
                        _send(control, Ready(device_works=_works_in_forks(preload.device)))
                    case Fork() as request, descriptors:
                        late = None if preload is None or preload.is_ahead else preload
                        pid = _fork(request, descriptors, control, late)
                        worker_ = os.pidfd_open(pid)
                        selector.register(worker_, selectors.EVENT_READ, pid)
                        _send(control, Started(), worker_)
                    case _:
                        return
            else:
                selector.unregister(key.fileobj)
                os.close(key.fd)
                ended = _reap(key.data)
                grown = resident_bytes(os.getpid()) - bytes_at_first
                altered = _limits() != limits or grown > _MOST_GROWN_BYTES
                _send(control, msgspec.structs.replace(ended, has_altered_server=altered))


def _limits() -> tuple[object, ...]:
    """Return what a worker inherits, and one of the same user can change from outside."""
    kinds = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return (
        [resource.getrlimit(getattr(resource, each)) for each in kinds],
        os.sched_getaffinity(0),
        os.sched_getscheduler(0),
        os.getpriority(os.PRIO_PROCESS, 0),
    )


def _reap(pid: int) -> Ended:
    """Kill what an ended worker left running, then collect it.

    In this order: its process group can't be reused as long as it has not been waited for.
    There is one worker at a time, so every other child of this process is an orphan of it.
    """
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, wait_status, usage = os.wait4(pid, 0)
    _kill_orphans()
    return Ended(pid=pid, wait_status=wait_status, peak_bytes=usage.ru_maxrss * 1024)


def _kill_orphans() -> None:
    """Kill and collect adopted processes, and what is handed on when these die."""
    if is_first_process():
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # all but itself in its PID namespace, at once
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
    while orphans := children():
        for pid in orphans:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _fork(
    request: Fork, descriptors: list[int], control: socket.socket, late: Preload | None
) -> int:
    """Start a worker, which imports by itself what was not to be imported here."""
    results, log = descriptors
    if late is None:
        _read_ahead(request.job)
    server = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(results)
        os.close(log)
        return pid
    status = 1
    try:
        os.setsid()
        die_with_parent(server)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        control.close()
        _redirect(log)
        if late is not None:
            prepare(late)
        worker.run(request.job, results, request.token)
        sys.stdout.flush()
        sys.stderr.flush()
        status = 0
    except BaseException:  # noqa: BLE001  a worker must never go on as a second fork server
        traceback.print_exc()
    finally:
        # Skips exit handlers: those of the fork server are not the worker's to run.
        os._exit(status)


def _read_ahead(job: Job) -> None:
    """Read what workers of other models need as well; one that can't be read says so itself."""
    with suppress(Exception):
        registry.suite(job.case.suite).read_ahead(job.suite_options, job.spec)


def _redirect(log: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(nothing)
    os.close(log)


def _receive(control: socket.socket) -> tuple[Command | None, list[int]]:
    data, descriptors, _, _ = socket.recv_fds(control, LONGEST_MESSAGE, 2)
    if not data:
        return None, []
    return msgspec.json.decode(data, type=Command), descriptors


def _send(control: socket.socket, answer: Answer, *descriptors: int) -> None:
    try:
        socket.send_fds(control, [msgspec.json.encode(answer)], descriptors)
    except BrokenPipeError:
        sys.exit(0)
