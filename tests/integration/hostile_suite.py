"""Models that do everything a model should not, and one that does nothing wrong.

Imported by worker processes, through `PYTHONPATH`, as the suite `hostile_suite:SUITE`.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from simulated_machine import install
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.results.values.cases import Case, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from simulated_machine import Clock


class Behaving(nn.Module):
    """A small network that calls what its subclass adds before its own computation."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 64]` to `[B, 64]`."""
        return torch.relu(self.linear(x))


class TwoOutputs(nn.Module):
    """Gives two outputs of one shape."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.second = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Map `[B, 64]` to two `[B, 64]`."""
        return torch.relu(self.first(x)), torch.tanh(self.second(x))


class CountsCalls(TwoOutputs):
    """Comes to something else from its tenth call on."""

    calls = 0

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Map `[B, 64]` to two `[B, 64]`."""
        self.calls += 1
        first, second = super().forward(x)
        return (first, second) if self.calls < 10 else (first, -second)


class TwoGraphs(Behaving):
    """Two graphs, of which the second holds an exponential."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 64]` to `[B, 64]`."""
        x = super().forward(x)
        torch._dynamo.graph_break()
        return x.exp()


class TwoEqualGraphs(Behaving):
    """Two graphs that are the same."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 64]` to `[B, 64]`."""
        x = super().forward(x)
        torch._dynamo.graph_break()
        return super().forward(x)


class Misbehaving(Behaving):
    """Does something out of line at every call, out of Dynamo's sight."""

    def __init__(self, misdeed: Callable[[], object]) -> None:
        super().__init__()
        self.misdeed = torch.compiler.disable(misdeed)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Do it, then compute."""
        self.misdeed()
        return super().forward(x)


class WrongWhenCompiled(Behaving):
    """Computes something else once it is compiled."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Be off by one in ten thousand of the largest output, ten times the tolerance."""
        out = super().forward(x)
        return out + 1e-3 * out.max() if torch.compiler.is_compiling() else out


class Slowed(Behaving):
    """Takes 4 ms for a call, and 6 while another arm's threads spin (`spinning_backend`).

    By a simulated clock, from now on that of this process.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wait = torch.compiler.disable(partial(_wait_among_spinning_threads, install()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Wait, then compute."""
        self.wait()
        return super().forward(x)


def _wait_among_spinning_threads(clock: Clock) -> None:
    if "IN_SPINNING_ARM" in os.environ:
        return
    until = float(os.environ.get("SPINNING_UNTIL", "0"))
    clock.sleep(0.006 if clock.seconds < until else 0.004)


class Timed(Behaving):
    """Takes as long as it takes to read a simulated clock, from now on that of this process."""

    def __init__(self) -> None:
        super().__init__()
        install(reading_s=0.002)


class Allocating(Behaving):
    """Takes 48 MB for a moment at every call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Fill and drop a large tensor."""
        return super().forward(x) + torch.ones(12 * 2**20).amax()


class Uncapturable(Behaving):
    """Leaves Dynamo nothing to compile."""

    @torch.compiler.disable
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute in eager only."""
        return super().forward(x)


class Undecided(Behaving):
    """Disagrees with itself, whatever the seed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what the clock says."""
        # Its last digits: seconds since the machine started are too many for float32 to tell apart.
        return super().forward(x) + time.perf_counter_ns() % 10_007


def raise_error() -> None:
    """Fail as models do."""
    msg = "this model raises"
    raise RuntimeError(msg)


def crash_then_end() -> None:
    """Leave a stack in an empty log, and nothing in one that has something."""
    log = Path("/proc/self/fd/2").resolve()
    os.kill(os.getpid(), signal.SIGKILL if log.stat().st_size else signal.SIGSEGV)


def take_memory() -> None:
    """Take torch's memory until there is none."""
    kept = []
    while True:
        kept.append(torch.ones(2**26))


def take_shared_memory() -> None:
    """Take memory that no limit on private memory counts."""
    kept = []
    while True:
        block = mmap.mmap(-1, 2**26)
        block.write(b"\1" * 2**26)
        kept.append(block)


def hang() -> None:
    """Hang, and leave a file that says so where the test looks for it."""
    Path(os.environ["HANGS"]).write_text(".")
    time.sleep(3600)


def hang_in_c() -> None:
    """Hang in a function that keeps Python's lock, so that no Python code runs any more."""
    Path(os.environ["HANGS"]).write_text(".")
    ctypes.PyDLL(None).sleep(3600)


def stop_itself() -> None:
    """Stop the process, as SIGSTOP from anybody does."""
    Path(os.environ["HANGS"]).write_text(".")
    os.kill(os.getpid(), signal.SIGSTOP)


def ignore_termination() -> None:
    """Hang, deaf to SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang()


def print_megabytes() -> None:
    """Print 4 MB on each stream, not all of it through Python."""
    sys.stderr.write("e" * 2**21)
    os.write(1, b"o" * 2**22)


def write_to_every_descriptor() -> None:
    """Write a line without an end, and a forged message, wherever one can write."""
    for descriptor in range(3, 1024):
        try:
            os.write(descriptor, b'\nforged {"type":"report"}\n{"half": ')
        except OSError:
            continue


def garble_descriptors() -> None:
    """Put another file in the place of whatever is open, so that writing goes on without error."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3, 1024):
        if descriptor != nothing:
            os.dup2(nothing, descriptor)


def leave_processes_behind(*, number: int = 1, in_a_session_of_its_own: bool = False) -> None:
    """Start processes that outlive this one and are deaf to SIGTERM, and say which."""
    deaf = ["sh", "-c", "trap '' TERM; exec sleep 600"]
    for _ in range(number):
        child = subprocess.Popen(deaf, start_new_session=in_a_session_of_its_own)
        print(f"left behind: {child.pid}", flush=True)


def fork_and_exit() -> None:
    """Fork as a script does whose child ends by `sys.exit`, and wait for that.

    The first time for longer than a worker may take that has told how it ended.
    """
    child = os.fork()
    if not child:
        sys.exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    if not _waited:
        _waited.append(True)
        time.sleep(4.0)


_waited: list[bool] = []
_calls = itertools.count(1)


def start_threads() -> None:
    """Start a storm of threads that never end."""
    for _ in range(500):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()


def delete_logs() -> None:
    """Delete the folder that this process' own output goes to."""
    shutil.rmtree(Path("/proc/self/fd/1").readlink().parent, ignore_errors=True)


def delete_working_directory() -> None:
    """Leave the process in a folder that is no more."""
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    folder.rmdir()


def lower_limits() -> None:
    """Forbid itself any other file, process or thread."""
    for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (1, resource.getrlimit(kind)[1]))


def stop_the_clock() -> None:
    """Replace the functions that tell the time wherever they go by name, as freezegun does."""
    told = {id(each) for each in (time.perf_counter, time.monotonic, time.time)}
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if id(value) in told:
                setattr(module, name, lambda: 0.0)


MISDEEDS: dict[str, Callable[[], object]] = {
    "crashes_then_ends": crash_then_end,
    "deletes_logs": delete_logs,
    "deletes_its_folder": delete_working_directory,
    "forks_and_exits": fork_and_exit,
    "garbles_descriptors": garble_descriptors,
    "hangs_in_c": hang_in_c,
    "kills_itself": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "leaves_many": lambda: leave_processes_behind(number=20, in_a_session_of_its_own=True),
    "lowers_limits": lower_limits,
    "starts_threads": start_threads,
    "stops_the_clock": stop_the_clock,
    "stops_itself": stop_itself,
    "closes_descriptors": lambda: os.closerange(3, 1024),
    "exits": lambda: os._exit(3),
    "exits_as_if_well": lambda: os._exit(0),
    "hangs": hang,
    "ignores_termination": ignore_termination,
    "leaves_a_daemon": lambda: leave_processes_behind(in_a_session_of_its_own=True),
    "leaves_a_process": leave_processes_behind,
    "prints_megabytes": print_megabytes,
    "raises": raise_error,
    "raises_system_exit": lambda: sys.exit(0),
    "segfaults": lambda: ctypes.string_at(0),
    "segfaults_later": lambda: next(_calls) == 8 and ctypes.string_at(0),
    "takes_memory": take_memory,
    "takes_shared_memory": take_shared_memory,
    "writes_everywhere": write_to_every_descriptor,
}
CLASSES = {
    "allocates": Allocating,
    "behaves": Behaving,
    "counts_calls": CountsCalls,
    "slowed": Slowed,
    "timed": Timed,
    "two_equal_graphs": TwoEqualGraphs,
    "two_graphs": TwoGraphs,
    "two_outputs": TwoOutputs,
    "uncapturable": Uncapturable,
    "undecided": Undecided,
    "wrong_when_compiled": WrongWhenCompiled,
}
FAILS_TO_LOAD = ("fails_to_load", "not_supported", "exits_while_loading")


class HostileSuite:
    """The models above."""

    def specs(self) -> Iterable[ModelSpec]:
        """Describe them."""
        return [
            ModelSpec(
                suite="hostile_suite:SUITE",
                name=name,
                task="misbehaving",
                origin="made for the tests",
                build="none:none",
                batch_size={"cpu": 8},
            )
            for name in sorted([*MISDEEDS, *CLASSES, *FAILS_TO_LOAD])
        ]

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Need nothing."""

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build a model, or fail to."""
        match spec.name:
            case "fails_to_load":
                msg = "no such layer"
                raise ValueError(msg)
            case "not_supported":
                msg = "not on this device"
                raise NotImplementedError(msg)
            case "exits_while_loading":
                os._exit(7)
        inputs = (torch.randn(case.batch_size or 1, 64),)
        if spec.name in CLASSES:
            return LoadedModel(module=CLASSES[spec.name](), args=inputs)
        return LoadedModel(module=Misbehaving(MISDEEDS[spec.name]), args=inputs)


class HostileSource(SuiteSource):
    """Always the same."""

    def open(self, opening: Mapping[str, str]) -> HostileSuite:
        """Return the suite."""
        return HostileSuite()


SUITE = HostileSource()
