"""The parent's view of fork servers and workers: start, watch, stop."""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

import dynamometer
from dynamometer.common.ending import SIGNALLED
from dynamometer.common.errors import DynamometerError
from dynamometer.common.execution.channel import Receiver
from dynamometer.common.interfaces.messages import (
    LONGEST_MESSAGE,
    Answer,
    Contained,
    Ended,
    Fork,
    Interim,
    Preload,
    Progress,
    Ready,
    Report,
    Started,
)
from dynamometer.common.machine.processes import JointMemory, descendants, resident_bytes
from dynamometer.results.store import logs

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings, Job, Message

_BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv[1]); import dynamometer; del sys.path[0]; "
    "control, program, apart = map(int, sys.argv[2:]); del sys.argv[1:]; "
    "from dynamometer.common.execution.confinement.keeper import split; "
    "split(program, (control,), apart=bool(apart)); "
    "from dynamometer.common.execution.fork_server import main; main(control)"
)
"""Makes the package importable without leaving its folder on the path, where a model's own
`import common` or `import results` would find ours. Its arguments are removed from `sys.argv`, as a
model that parses that would take them for its own."""

_POLL_S = 0.1
"""How often limits are checked: 30 microseconds of reading, on the core the model may be using;
more where foreign code may start processes, for each of them and of their threads."""
_GRACE_S = 3.0
"""Between SIGTERM and SIGKILL, and for a worker to end once it has reported."""
_IMPORTING_S = 900.0
"""For a fork server to import what it must, and to answer at all: one that is stopped does not."""
_ANSWER_S = 120.0
"""For it to start a worker, which takes milliseconds."""
_ENDING_S = 30.0
"""For it to tell that a worker has ended that was killed, and for its keeper to end all."""
_READ_BYTES = 1 << 20
_READS = 64
"""At a time at most; each gives what the pipe holds, 64 KiB or up to 1 MiB."""
_SERVER_AND_WORKER = 2
"""Processes below a keeper whose worker has started none."""


@dataclass(frozen=True)
class Limits:
    """What a worker may use before it is killed."""

    timeout_s: float
    memory_bytes: int | None
    processes: int | None = None
    """Of the worker and all it has started."""
    is_of_each_arm: bool = False
    """Whether the timeout starts anew with each arm: one that exceeds it is left out for good."""


@dataclass
class Worker:
    """A running worker process."""

    pid: int
    results: int
    receiver: Receiver
    started: float
    report: Report | None = None
    progress: Progress | None = None
    arm_since: float = 0.0
    """When it said that another arm is at work."""
    interim: Findings | None = None
    """What stands if there is no report."""
    keeper: int = 0
    """The process that is above it and all it starts."""
    killed: Literal["timeout", "memory", "processes"] | None = None
    deadline: float | None = None
    """When SIGKILL follows, once it was asked to end."""
    ending: Ended | None = None
    uncontained: tuple[str, ...] = ()
    """What foreign code in it could do that it should not."""
    log: Path | None = None
    """Where what it writes is added."""
    log_begins: int = 0
    """How many bytes others had written there before."""
    joint: JointMemory = field(default_factory=JointMemory)
    """What it and all it has started take."""

    @classmethod
    def unborn(cls) -> Worker:
        """Stand in for a worker whose fork server died before it could be started."""
        return cls(pid=0, results=-1, receiver=Receiver(""), started=time.monotonic())

    def read(self) -> bool:
        """Take in what is on the result pipe now, and tell whether more is of interest.

        Not all that comes while it is read: who writes without an end is still over its limits.
        """
        with suppress(BlockingIOError):
            for _ in range(_READS):
                if self._has_reported:  # what comes after that is not its own
                    return False
                data = os.read(self.results, _READ_BYTES)
                if not data:
                    return False
                for message in self.receiver.feed(data):
                    self._take(message)
        return not self._has_reported

    @property
    def _has_reported(self) -> bool:
        return self.report is not None

    def _take(self, message: Message) -> None:
        match message:
            case Progress():
                if self.progress is None or self.progress.arm != message.arm:
                    self.arm_since = time.monotonic()
                self.progress = message
            case Contained():
                self.uncontained = message.missing
            case Interim():
                self.interim = message.findings
            case Report():
                self.report = message
                self.deadline = self.deadline or time.monotonic() + _GRACE_S

    def kill(self) -> None:
        """Kill it with its process group, without anything to wait for."""
        self._signal(signal.SIGKILL)

    def finish(self) -> None:
        """Take in the last of the result pipe and close it."""
        if self.results >= 0:
            self.read()
            os.close(self.results)
            self.results = -1

    @property
    def is_overdue(self) -> bool:
        """Whether it was killed so long ago that its end must have been told."""
        return self.deadline is not None and time.monotonic() > self.deadline + _ENDING_S

    def enforce(self, limits: Limits) -> None:
        """Kill the worker's process group if it is over a limit; cut a log that has no end."""
        if self.log is not None:
            logs.bound(self.log)
        now = time.monotonic()
        since = max(self.started, self.arm_since) if limits.is_of_each_arm else self.started
        if self.deadline is not None:
            if now > self.deadline:
                self.kill()
        elif now - since > limits.timeout_s:
            self._ask_to_end("timeout", signal.SIGTERM)
        elif limits.memory_bytes and resident_bytes(self.pid) > limits.memory_bytes:
            self._ask_to_end("memory", signal.SIGKILL)
        elif limits.processes is not None:
            self._bound_all(limits, limits.processes)

    def _bound_all(self, limits: Limits, most: int) -> None:
        """Kill it if all it has started is too much; detached processes are its server's."""
        all_ = descendants(self.keeper, most)
        others = all_[1:] if len(all_) > _SERVER_AND_WORKER else []
        if len(all_) > most:
            self._ask_to_end("processes", signal.SIGKILL)
        elif limits.memory_bytes and self.joint.exceeds(others, limits.memory_bytes):
            self._ask_to_end("memory", signal.SIGKILL)

    def _ask_to_end(
        self, why: Literal["timeout", "memory", "processes"], number: signal.Signals
    ) -> None:
        self.killed = why
        self.deadline = time.monotonic() + _GRACE_S
        self._signal(number)

    def _signal(self, number: signal.Signals) -> None:
        if not self.pid:
            return  # it was never born; group 0 is our own
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


@dataclass
class ForkServer:
    """A warm process of which workers are forked (`dynamometer.common.execution.fork_server`)."""

    log: Path
    environment: dict[str, str]
    is_foreign: bool = False
    """Whether workers run foreign code, and are to see no other processes."""
    died: bool = False
    """Whether it has, or is as good as dead."""
    preloaded: Preload | None = None
    """What it was last asked to import, once that is done."""
    device_works: bool = True
    """Whether its forks can use the device of that."""
    _keeper: subprocess.Popen[bytes] | None = None
    _control: socket.socket | None = None
    _alive: int = -1
    """A pipe's end that is open as long as this program is there and wants the server."""

    def launch(self) -> None:
        """Start the process; it waits to be told what to import."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_MESSAGE)
        self._control.settimeout(_IMPORTING_S)
        root = str(Path(dynamometer.__file__).parent.parent)
        program, self._alive = os.pipe()
        passed = (theirs.fileno(), program)
        words = map(str, (*passed, int(self.is_foreign)))
        try:
            with theirs, self.log.open("ab") as log:
                self._keeper = subprocess.Popen(  # noqa: S603  our own interpreter and code
                    [sys.executable, "-P", "-c", _BOOTSTRAP, root, *words],
                    pass_fds=passed,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        finally:
            os.close(program)

    def preload(self, preload: Preload) -> None:
        """Let it import what workers will need, and wait until it has.

        Raises:
            DynamometerError: it ended before that; names its log and quotes the end of it.
        """
        if self._control is not None:
            self._control.settimeout(_IMPORTING_S)
            with suppress(BrokenPipeError, TimeoutError):  # then there is no answer, either
                self._control.send(msgspec.json.encode(preload))
        answer, _ = self._receive()
        if not isinstance(answer, Ready):
            if self._keeper is not None:
                with suppress(subprocess.TimeoutExpired):  # else its end would be our doing
                    self._keeper.wait(_ENDING_S)
            msg = f"the fork server did not start: {logs.quoted_end(self.log)}"
            raise DynamometerError(msg)
        self.preloaded = preload
        self.device_works = answer.device_works
        if self._control is not None:
            self._control.settimeout(_ANSWER_S)

    def run(self, job: Job, log: Path, limits: Limits) -> Worker:
        """Run a job in a worker and return when that has ended.

        Should the fork server die, its worker dies with it: it comes back without an ending, and
        `died` is set.

        Args:
            job: what the worker does.
            log: what it prints is appended to it.
            limits: it is killed over one.
        """
        worker = None
        try:
            worker = self._fork(job, log)
            self._wait(worker, limits)
        except _ForkServerDiedError:
            self.died = True
            if worker is None:
                return Worker.unborn()
            worker.kill()
        except BaseException:
            # The fork server, which would reap what the worker leaves behind, is about to be ended.
            if worker is not None:
                worker.kill()
                worker.finish()
            raise
        worker.finish()
        return worker

    def _fork(self, job: Job, log: Path) -> Worker:
        if self._control is None:
            raise _ForkServerDiedError
        token = secrets.token_hex(16)
        results, theirs = os.pipe()
        os.set_blocking(results, False)
        with log.open("ab") as sink:
            begins = sink.tell()
            request = msgspec.json.encode(Fork(job=job, token=token))
            try:
                socket.send_fds(self._control, [request], [theirs, sink.fileno()])
            except OSError as error:
                os.close(results)
                if isinstance(error, BrokenPipeError | TimeoutError):
                    raise _ForkServerDiedError from error
                raise
            finally:
                os.close(theirs)
        answer, pid = self._receive()
        if not isinstance(answer, Started):
            os.close(results)
            raise _ForkServerDiedError
        keeper = self._keeper.pid if self._keeper else 0
        started = time.monotonic()
        return Worker(
            pid, results, Receiver(token), started, keeper=keeper, log=log, log_begins=begins
        )

    def _wait(self, worker: Worker, limits: Limits) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(worker.results, selectors.EVENT_READ)
            if self._control is not None:
                selector.register(self._control, selectors.EVENT_READ)
            due = 0.0  # limits are not checked with each of a worker's messages
            while worker.ending is None:
                if self._control is None:  # another thread has ended the fork server
                    raise _ForkServerDiedError
                for key, _ in selector.select(max(0.0, due - time.monotonic())):
                    if key.fileobj is self._control:
                        worker.ending = self._ending()
                    elif not worker.read():
                        selector.unregister(key.fileobj)
                is_last = worker.ending is not None or worker.deadline is not None
                if is_last or time.monotonic() >= due:
                    worker.enforce(limits)
                    due = time.monotonic() + _POLL_S
                if worker.is_overdue:  # its server is stopped, or stuck: it would have told
                    raise _ForkServerDiedError

    def _ending(self) -> Ended:
        answer, _ = self._receive()
        if not isinstance(answer, Ended):
            raise _ForkServerDiedError
        self.died = answer.has_altered_server
        return answer

    def close(self) -> None:
        """End the fork server and with it every worker that still runs."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
        if self._keeper is not None:
            self._keeper.send_signal(signal.SIGCONT)  # should somebody have stopped it
            try:
                self._keeper.wait(_ENDING_S)
            except subprocess.TimeoutExpired:  # what it waits for can't be killed
                self._keeper.kill()
                self._keeper.wait()

    @property
    def was_killed(self) -> bool:
        """Whether a signal has ended it, or its keeper, rather than what it was to import."""
        code = self._keeper.returncode if self._keeper else None
        return code is not None and (code < 0 or code > SIGNALLED)

    def _receive(self) -> tuple[Answer | None, int]:
        """Return an answer, or none if there will be none, and the process id that came with it."""
        if self._control is None:
            return None, 0
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, LONGEST_MESSAGE, 1)
        except (ConnectionResetError, TimeoutError):
            return None, 0
        answer = msgspec.json.decode(data, type=Answer) if data else None
        return answer, sum(map(_taken_pid, descriptors))


class _ForkServerDiedError(Exception):
    """The fork server process has ended, and its workers with it."""


def _taken_pid(descriptor: int) -> int:
    """Return the process id that a descriptor of a process has here, and close that."""
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    finally:
        os.close(descriptor)
    return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))
