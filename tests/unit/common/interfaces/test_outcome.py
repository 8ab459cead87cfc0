from __future__ import annotations

import errno
import inspect
import os
import subprocess
import sys
from pathlib import Path

import hand_built
import msgspec
import pytest
import torch

from dynamometer.common.execution.channel import Channel
from dynamometer.common.interfaces.messages import Progress
from dynamometer.common.interfaces.outcome import (
    NondeterministicError,
    SkippedError,
    WrongResultError,
    attempt,
    classify,
    worst,
)
from dynamometer.common.studies.experiment import StageClock
from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.results.values.records import PASSED, Outcome, Stage, Status


def _leave(how: str) -> None:
    if how == "exits":
        sys.exit(3)
    if how == "says why":
        sys.exit("no more")
    if how == "raises":
        raise ValueError(how)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Python 3.12, where there are threads
@pytest.mark.parametrize(
    ("how", "code"), [("exits", 3), ("says why", 1), ("raises", 1), ("returns", 0)]
)
def test_a_child_that_a_model_forks_ends_as_it_would_by_itself(how: str, code: int) -> None:
    """It went on with what was the worker's own, and told how that ended."""
    reader, writer = os.pipe()
    channel = Channel(writer, "token")

    def fork() -> int:
        child = os.fork()
        if not child:
            channel.send(Progress(stage=Stage.RUN, arm=None))
            _leave(how)
        return child

    child = attempt(StageClock(lambda _: None), fork)
    assert isinstance(child, int)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
    os.close(writer)
    assert os.read(reader, 100) == b""
    os.close(reader)


class OutOfMemoryError(RuntimeError):
    """What torch calls its own, which can't be imported here."""


def caused(error: Exception, cause: Exception) -> Exception:
    """Raise one error from another."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "stage", "status", "reason"),
    [
        (SkippedError("needs timm"), Stage.LOAD, Status.SKIP, "needs timm"),
        (WrongResultError("output: 1"), Stage.COMPARE, Status.FAIL_ACCURACY, "output: 1"),
        (NondeterministicError("output"), Stage.EAGER, Status.NONDETERMINISTIC, "output"),
        (MemoryError(), Stage.RUN, Status.OOM, "MemoryError"),
        (OutOfMemoryError("CUDA"), Stage.RUN, Status.OOM, "OutOfMemoryError: CUDA"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
            Stage.COMPILE,
            Status.OOM,
            "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried",
        ),
        (
            caused(RuntimeError("backend failed"), MemoryError()),
            Stage.COMPILE,
            Status.OOM,
            "RuntimeError: backend failed",
        ),
        (
            OSError(errno.ENOMEM, "Cannot allocate memory"),
            Stage.LOAD,
            Status.OOM,
            "OSError: [Errno 12] Cannot allocate memory",
        ),
        (
            RuntimeError("MemoryError: \n\nfrom user code:\n"),
            Stage.COMPILE,
            Status.OOM,
            "RuntimeError: MemoryError:",
        ),
        (
            RuntimeError("LoweringException: MemoryError: \n  target: aten.add"),
            Stage.COMPILE,
            Status.OOM,
            "RuntimeError: LoweringException: MemoryError:",
        ),
        (
            OSError("k.so: failed to map segment from shared object: Cannot allocate memory"),
            Stage.COMPILE,
            Status.OOM,
            "OSError: k.so: failed to map segment",
        ),
        (
            RuntimeError("cannot allocate memory in static TLS block"),
            Stage.RUN,
            Status.FAIL,
            "RuntimeError: cannot allocate memory in static TLS block",
        ),
        (ValueError("out of memory"), Stage.RUN, Status.FAIL, "ValueError: out of memory"),
        (NotImplementedError("cuda only"), Stage.LOAD, Status.SKIP, "NotImplementedError: cuda on"),
        (NotImplementedError("op"), Stage.COMPILE, Status.FAIL, "NotImplementedError: op"),
        (RuntimeError("first\nsecond"), Stage.RUN, Status.FAIL, "RuntimeError: first"),
        (RuntimeError("\n\n  first\nsecond"), Stage.RUN, Status.FAIL, "RuntimeError: first"),
        (AssertionError(), Stage.RUN, Status.FAIL, "AssertionError"),
        (SystemExit(3), Stage.RUN, Status.FAIL, "SystemExit: 3"),
        (KeyboardInterrupt(), Stage.RUN, Status.FAIL, "KeyboardInterrupt"),
    ],
    ids=repr,
)
def test_what_an_exception_means(
    error: BaseException, stage: Stage, status: Status, reason: str
) -> None:
    """Every kind of exception has its status, with the stage and one line of reason."""
    found = classify(error, stage)
    assert (found.status, found.stage) == (status, stage)
    assert found.reason is not None
    assert found.reason.startswith(reason)
    assert "\n" not in found.reason


def test_a_failure_keeps_its_traceback() -> None:
    """The evidence names the line that raised; of a long one the end is kept."""

    def faulty() -> None:
        msg = "here" + "." * 20_000
        raise RuntimeError(msg)

    found = attempt(StageClock(lambda progress: None), faulty)
    assert isinstance(found, Outcome)
    assert found.detail is not None
    assert found.detail.endswith("...\n")
    assert len(found.detail) <= 8_000
    short = attempt(StageClock(lambda progress: None), [].pop)
    assert isinstance(short, Outcome)
    assert short.detail is not None
    assert "IndexError" in short.detail


class UnprintableError(Exception):
    """An exception whose text can't be had."""

    def __str__(self) -> str:
        msg = "no text"
        raise RuntimeError(msg)


def test_an_exception_without_text_is_a_failure() -> None:
    """A model's exception whose `__str__` raises is data like any other."""

    def faulty() -> None:
        raise UnprintableError

    found = attempt(StageClock(lambda progress: None), faulty)
    assert isinstance(found, Outcome)
    assert found.status is Status.FAIL
    assert "UnprintableError" in (found.reason or "")


def test_a_circle_of_causes_is_a_failure() -> None:
    """Causes that a model tied into a circle are not followed for ever."""
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    assert classify(first, Stage.RUN).status is Status.FAIL


class IncomparableError(RuntimeError):
    """An exception that can't be compared with others."""

    __hash__ = None  # type: ignore[assignment]  # as a model's own class may have it

    def __eq__(self, other: object) -> bool:
        """Fail."""
        raise ValueError


def test_causes_are_not_compared() -> None:
    """A model's exceptions may raise then, which would end the worker."""
    error = IncomparableError("first")
    error.__cause__ = IncomparableError("out of memory")
    assert classify(error, Stage.RUN).status is Status.OOM


FULL = "No space left on device"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, FULL, "/tmp/kernel.cpp"),
        RuntimeError(f"C++ compile error\n\ng++ -o kernel.so\nfatal error: kernel.s: {FULL}\n"),
    ],
)
def test_a_full_disk_is_no_fault_of_a_backend(error: Exception) -> None:
    """Also where a compiler meets it, whose text a backend quotes, or where it is a cause."""
    wrapped = RuntimeError("it can't be compiled")
    wrapped.__cause__ = error
    for each in (error, wrapped):
        found = classify(each, Stage.COMPILE)
        assert found.status is Status.INFRA
        assert (found.reason or "").startswith(f"{FULL}, where a compiler")


def test_want_of_memory_below_dynamo_is_seen() -> None:
    """Dynamo quotes what a backend raised in an exception of its own, which has no cause."""

    def compile_without_memory(graph: object, inputs: object) -> None:
        raise MemoryError

    function = torch.compile(torch.relu, backend=compile_without_memory)
    with pytest.raises(RuntimeError) as caught:
        function(torch.ones(2))
    torch._dynamo.reset()
    assert caught.value.__cause__ is None
    assert classify(caught.value, Stage.COMPILE).status is Status.OOM


ROOT = Path(__file__).resolve().parents[4]
WITHOUT_ROOM = """
import _thread, ctypes, errno, os, resource, sys, time
from dynamometer.common.interfaces.outcome import attempt
from dynamometer.common.studies.experiment import StageClock

PR_SET_NAME = 15
LIMIT_BYTES, KEPT_BYTES = 2**30, int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))

def start_until_there_is_no_room():
    kept = bytearray(KEPT_BYTES)
    if "no descriptor" in sys.argv:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    if "another bound" in sys.argv:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    if "odd name" in sys.argv:
        ctypes.CDLL(None).prctl(PR_SET_NAME, b"\\xff")
    while True:  # which, other than threading's, doesn't wait for what can't begin
        _thread.start_new_thread(time.sleep, (60,))

found = attempt(StageClock(lambda progress: None), start_until_there_is_no_room)
print(found.status, found.reason, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("stack", ["8192", "unlimited"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["943718400"], "oom its limit of memory has no room for another thread's stack: Runtime"),
        (["0"], "fail RuntimeError: can't start new thread"),
        (["943718400", "no descriptor"], "fail RuntimeError: can't start new thread"),
        (["943718400", "another bound"], "fail BlockingIOError: [Errno 11]"),
        (["943718400", "odd name"], "oom its limit of memory has no room"),
    ],
    ids=["data", "threads", "nobody can tell", "no thread", "odd name"],
)
def test_no_room_for_a_stack_is_want_of_memory(words: list[str], said: str, stack: str) -> None:
    """And what starts threads until none fits is told apart, though the words are the same."""
    program = [sys.executable, "-c", WITHOUT_ROOM, *words]
    bounded = ["sh", "-c", f'ulimit -s {stack}; exec "$@"', "sh", *program]
    run = subprocess.run(bounded, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600)
    assert run.stdout.startswith(said), run


def test_no_further_thread_is_a_failure_where_memory_has_no_limit() -> None:
    """Some other bound was met: of processes, say."""
    error = RuntimeError("can't start new thread")
    assert classify(error, Stage.COMPILE).status is Status.FAIL


def test_any_text_can_be_sent() -> None:
    """A reason that UTF-8 can't hold, such as the name of a file, still reaches the parent."""
    found = classify(RuntimeError("no file \udcff"), Stage.LOAD)
    assert b"no file" in msgspec.json.encode(found)


def test_a_success_is_passed_on() -> None:
    """What the action gives is what comes back."""
    assert attempt(StageClock(lambda progress: None), lambda: 42) == 42


def test_what_dynamo_could_not_trace_is_named_with_its_line_and_a_hint() -> None:
    """The line was traced, not run, so it is in the message alone."""
    backend = ThroughDynamo(name="eager", compiler="eager", full_graph=True)
    with pytest.raises(Exception, match="branching") as caught, torch.no_grad():
        backend.compile(hand_built.Branches(), (), {})(torch.ones(2, 4))
    reason = classify(caught.value, Stage.COMPILE).reason
    assert reason is not None
    source, start = inspect.getsourcelines(hand_built.Branches)
    line = start + next(index for index, text in enumerate(source) if "ends a graph" in text)
    assert reason.startswith("Unsupported: Data-dependent branching (hand_built.py:")
    said, hint = reason.split(f"(hand_built.py:{line}). ")
    # Dynamo's first hint on a branch; before torch 2.13 it was another one.
    assert said
    assert hint.startswith(("For the common pattern", "This graph break is fundamental"))
    torch._dynamo.reset()


def test_a_failure_is_placed_by_the_stage_clock() -> None:
    """The stage is the one that was entered last; before any it is the worker's."""
    said: list[Progress] = []
    stages = StageClock(said.append)

    def faulty() -> None:
        with stages.at(Stage.LOAD), stages.at(Stage.COMPILE, "inductor"):
            raise RuntimeError

    before = attempt(stages, lambda: 1 / 0)
    assert isinstance(before, Outcome)
    assert before.stage is Stage.WORKER
    during = attempt(stages, faulty)
    assert isinstance(during, Outcome)
    assert during.stage is Stage.COMPILE
    assert said == [
        Progress(stage=Stage.LOAD, arm=None),
        Progress(stage=Stage.COMPILE, arm="inductor"),
    ]


def test_the_stage_clock_adds_up() -> None:
    """Every stage that was entered has its seconds, failed or not."""
    stages = StageClock(lambda progress: None)
    for _ in range(2):
        with stages.at(Stage.RUN):
            pass
    once = stages.seconds[Stage.RUN]
    with stages.at(Stage.RUN):
        pass
    assert stages.seconds[Stage.RUN] >= once >= 0
    assert set(stages.seconds) == {Stage.RUN}


def test_the_worst_of_several_outcomes() -> None:
    """The gravest wins, and of equals the first."""
    skip = Outcome(status=Status.SKIP)
    first, second = (Outcome(status=Status.FAIL, reason=text) for text in "ab")
    assert worst([PASSED]) == PASSED
    assert worst([PASSED, skip]) == skip
    assert worst([skip, first, second, PASSED]) is first


def test_every_status_has_its_gravity() -> None:
    """No status is left out of the order; a pass is the lightest."""
    outcomes = [Outcome(status=status) for status in Status]
    assert worst(outcomes).status is Status.INFRA
    for outcome in outcomes:
        assert worst([PASSED, outcome]) == outcome


FAKE = "Explanation: Dynamo failed to run FX node with fake tensors"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("No\n  Explanation: It calls `f`. Reason: There is no f.\n", "There is no f."),
        ("No\n  Explanation: It calls `f`. Reason: None.\n  Hint: Write f.\n", "Write f."),
        (f"No\n  {FAKE}: call_function f(): got TypeError('x: got no')\n  Hint: Don't.\n",
         "got TypeError('x: got no')"),
    ],
)  # fmt: skip
def test_a_deeper_reason_stands_in_for_a_hint(text: str, told: str) -> None:
    """As torch 2.15 names it of an RNN; a hint is told before it, but what was raised first."""
    assert classify(RuntimeError(text), Stage.COMPILE).reason == f"RuntimeError: No. {told}"


def test_a_reason_at_the_end_of_a_text_is_told() -> None:
    """OpenVINO and TorchScript begin with what is the same of every failure."""
    unconverted = (
        "Check 'false' failed at report.cpp:151:\nFrontEnd API failed:\nIt wasn't converted.\n"
        "Summary:\n-- No conversion rule found for operations: aten.scatter_reduce.two\n"
    )
    assert classify(RuntimeError(unconverted), Stage.COMPILE).reason == (
        "RuntimeError: Check 'false' failed at report.cpp:151: FrontEnd API failed: "
        "It wasn't converted. No conversion rule found for operations: aten.scatter_reduce.two"
    )
    interpreted = (
        "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript "
        "(most recent call last):\nmodule.py(17): _call_impl\nRuntimeError: no such size\n"
    )
    assert classify(RuntimeError(interpreted), Stage.COMPILE).reason == (
        "RuntimeError: The following operation failed in the TorchScript interpreter. "
        "RuntimeError: no such size"
    )
