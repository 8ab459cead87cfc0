"""What ends a fork server and all that ever came of it, whatever ends the program.

The process that the program starts splits in two before it imports anything: the fork server, and
its keeper. The keeper runs nothing but what is below. It is the nearest subreaper (prctl(2)) above
whatever the server and its workers leave behind, in sessions of their own or not. It waits for the
server to end, or for a pipe to close that the program holds open: on SIGKILL, too. Then it kills
its children until there are no more, which are all that is left.

Where foreign code is to run, the server is the first process of a PID namespace if that may be:
the kernel ends all that is in one when its first process ends.

Where there is no Linux it kills the server's process group alone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress

from dynamometer.common.execution.confinement import namespaces
from dynamometer.common.execution.confinement.libc import call

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def split(program: int, descriptors: tuple[int, ...], *, apart: bool) -> None:
    """Return in the process that is to be the fork server, and never in its keeper.

    Args:
        program: a pipe's end that reads nothing until the program has ended.
        descriptors: of the server, which the keeper closes.
        apart: whether its workers are to see no other processes.
    """
    adopt_orphans()
    apart = apart and namespaces.unshare_processes()
    server = os.fork()
    if not server:
        if apart:
            namespaces.mount_proc()
        # A group of its own, so that no signal to it is one to the keeper.
        os.setpgid(0, 0)
        os.close(program)
        return
    for each in descriptors:
        os.close(each)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)  # should it be stopped when the program ends
    _wait(server, program)
    os._exit(kill_all(server))


def adopt_orphans() -> None:
    """Become the parent of what descendants leave behind; does nothing where there is no prctl."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when the one that started it dies.

    Args:
        parent: its process id, to notice that it died before Linux was asked.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def kill_all(server: int) -> int:
    """Kill children, and what is handed on when these die, until there are none.

    Args:
        server: whose end is told.

    Returns:
        The exit status of the server, or 128 and the number of the signal that ended it.
    """
    status = 1
    with suppress(ProcessLookupError):
        os.killpg(server, signal.SIGKILL)
    while True:
        for child in children():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            pid, wait_status = os.wait()
        except ChildProcessError:
            return status
        if pid == server:
            code = os.waitstatus_to_exitcode(wait_status)
            status = code if code >= 0 else 128 - code


def children() -> set[int]:
    """Return the processes whose parent this one is; none where proc(5) doesn't tell."""
    with suppress(OSError), open("/proc/thread-self/children", "rb") as file:  # noqa: PTH123  pathlib takes 10 ms to import
        return {int(word) for word in file.read().split()}
    return set()


def _wait(server: int, program: int) -> None:
    """Wait until the server has ended, or the program."""
    waiting = [program]
    with suppress(AttributeError, OSError):  # no Linux
        waiting.append(os.pidfd_open(server))
    select.select(waiting, [], [])


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        call("prctl", option, value, 0, 0, 0)
