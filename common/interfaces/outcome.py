"""Model faults are data: `attempt` turns whatever a case raises into an outcome, in words."""

from __future__ import annotations

import errno
import os
import re
import resource
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dynamometer.results.store.bounds import encodable, shortened
from dynamometer.results.values.records import Outcome, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dynamometer.common.studies.experiment import StageClock

T = TypeVar("T")

_NOT_THE_MODELS = re.compile(
    r"^<|/(site|dist)-packages/|/lib/python3|/dynamometer/(common/|dynamo/|models/suites/user_models)"
)
"""Frames of the interpreter, of installed packages and of this harness."""

_TRACED_PLACE = re.compile(r'^ *File "([^"]+)", line (\d+), in ', re.MULTILINE)
"""Of a line that Dynamo traced and didn't run, in the message of its exception."""

_HINTS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^ *Explanation: Dynamo failed to run FX node with fake tensors: .*?: (got .+)$",
        r"^ *Hint: (.+)$",
        r"^ *Explanation: .* Reason: (.+)$",
        r"^-- (No conversion rule found for operations: .+)$",  # OpenVINO
        r"\AThe following operation failed in the TorchScript interpreter\.[\s\S]*^(\w+: .+)$",
    )
)
"""Where texts say what a reader needs, if not at their beginning; the first found counts."""

_DETAIL_CHARACTERS = 8_000
_REASON_CHARACTERS = 2_000
_OUT_OF_MEMORY = re.compile(
    "can't allocate memory|out of memory|not enough memory|bad_alloc"
    "|cannot allocate memory(?! in static tls)"  # which the dynamic linker keeps for itself
    r"|^(?:\w+: )*memoryerror\b",  # quoted by Dynamo and Inductor, whose own have no cause
    re.IGNORECASE | re.MULTILINE,
)
"""What torch and its libraries write when an allocation fails."""
_MAY_QUOTE = (RuntimeError, OSError, ImportError)
"""What they raise, and the dynamic linker."""

_NO_THREAD = re.compile("can't start new thread|" + re.escape(os.strerror(errno.EAGAIN)))
"""What Python and C++ say, whichever bound a further thread is beyond: pthread_create(3)."""
_NEAR_THE_LIMIT = 0.9
"""Of the limit of memory; some is free again by the time an exception is looked at."""
_STACK_BYTES = 2 * 2**20  # of a thread where stacks have no bound: pthread_create(3)
_COUNTS = re.compile(r"^(VmData|Threads):\s+(\d+)", re.MULTILINE)  # proc_pid_status(5)

_DISK_FULL = os.strerror(errno.ENOSPC)
_NO_ROOM = (_DISK_FULL.lower(), os.strerror(errno.EDQUOT).lower())


class SkippedError(Exception):
    """Raised in a worker where a case or an arm can't be run for a reason that is no fault."""


class WrongResultError(Exception):
    """Raised in a worker where an arm's result is not eager's.

    Attributes:
        found: what the call came to (`checking.looking.Look`).
    """

    def __init__(self, message: str, found: object = None) -> None:
        """Take what is wrong, and where that was seen."""
        super().__init__(message)
        self.found = found


class NondeterministicError(Exception):
    """Raised in a worker where eager disagrees with itself."""


class ChangedSettingsError(Exception):
    """Raised in a worker where an arm leaves settings changed that others are timed under."""


class BurstError(Exception):
    """Raised in a worker where an arm fails while it is timed; its cause says how."""

    def __init__(self, arm: str) -> None:
        """Name the arm."""
        super().__init__(f"{arm} failed while it was timed")
        self.arm = arm


def attempt(stages: StageClock, action: Callable[[], T]) -> T | Outcome:
    """Do what may fail in any way a model can, and turn a failure into an outcome.

    A child that a model forks ends here, as it would in the model's own program: what comes after
    is its parent's.
    """
    own = os.getpid()
    try:
        found = action()
    except BaseException as error:  # noqa: BLE001  a model's SystemExit must not end the sweep
        end_if_forked(own, error)
        return classify(error, stages.stage or Stage.WORKER)
    end_if_forked(own, SystemExit())
    return found


def end_if_forked(own: int, error: BaseException) -> None:
    """End a child that a model has forked as Python does where nobody catches an error.

    Args:
        own: the process that the model runs in; in it nothing is done.
        error: what the child was ended by.
    """
    if os.getpid() == own:
        return
    code = 1
    try:
        if isinstance(error, SystemExit) and isinstance(error.code, int | None):
            code = error.code or 0
        else:
            traceback.print_exception(error)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code & 0xFF)


def classify(error: BaseException, stage: Stage) -> Outcome:
    """Name what an exception means for the case it was raised in."""
    if isinstance(error, BurstError) and error.__cause__ is not None:
        error = error.__cause__
    kind = type(error).__name__
    detail = encodable("".join(traceback.format_exception(error)))[-_DETAIL_CHARACTERS:]
    text = shortened(_first_line(error), _REASON_CHARACTERS)
    reason = _with_hint((f"{kind}: {text}" if text else kind) + _place(error), error)
    for raised, said in _SAID.items():
        if isinstance(error, raised):
            return Outcome(status=said, stage=stage, reason=text)
    status = Status.FAIL
    if _is_disk_full(error):  # which is no backend's fault, whoever wrote
        status = Status.INFRA
        reason = f"{_DISK_FULL}, where a compiler, a backend or the model writes: {reason}"
    elif _is_failed_allocation(error):
        status = Status.OOM
    elif _lacks_a_stack(error):
        status = Status.OOM
        reason = f"its limit of memory has no room for another thread's stack: {reason}"
    elif isinstance(error, NotImplementedError) and stage is Stage.LOAD:
        status = Status.SKIP  # so TorchBench's refuse device or mode
    return Outcome(status=status, stage=stage, reason=reason, detail=detail)


_SAID: Mapping[type[Exception], Status] = {
    SkippedError: Status.SKIP,
    WrongResultError: Status.FAIL_ACCURACY,
    NondeterministicError: Status.NONDETERMINISTIC,
}
"""What our own exceptions mean; their text is the whole reason."""


def _place(error: BaseException) -> str:
    """Return in which line of the model's own code an exception came up, if in any."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _NOT_THE_MODELS.search(frame.filename)]
    traced = _TRACED_PLACE.findall(error_text(error).rpartition("from user code:")[2])
    if traced and "from user code:" in error_text(error):
        file, line = traced[-1]
        return f" ({Path(file).name}:{line})"
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def _with_hint(reason: str, error: BaseException) -> str:
    """Add the first thing Dynamo advises to do about it, if it does, or the deeper reason."""
    text = error_text(error)
    found = next((match for each in _HINTS if (match := each.search(text))), None)
    if found is None:
        return reason
    return f"{reason.removesuffix('.')}. {shortened(found[1], _REASON_CHARACTERS)}"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception, or what caused it, is a failed allocation."""
    return _is_failed_allocation(error) or _lacks_a_stack(error)


def _is_failed_allocation(error: BaseException) -> bool:
    """Return whether an exception, or what caused it, says that memory was wanting."""
    return any(
        isinstance(each, MemoryError)
        or type(each).__name__ == "OutOfMemoryError"
        or (isinstance(each, OSError) and each.errno == errno.ENOMEM)
        or (isinstance(each, _MAY_QUOTE) and _OUT_OF_MEMORY.search(error_text(each)))
        for each in _with_causes(error)
    )


def _lacks_a_stack(error: BaseException) -> bool:
    """Return whether an exception, or what caused it, is a thread whose stack found no memory.

    Its text is the same whichever bound the thread is beyond, so the process is looked at.
    """
    is_of_a_thread = any(
        isinstance(each, RuntimeError) and _NO_THREAD.search(error_text(each))
        for each in _with_causes(error)
    )
    return is_of_a_thread and _is_full()


def _is_full() -> bool:
    """Return whether this process is near its limit of memory, and not by its threads' stacks.

    Linux counts a stack as data, all of it, when it is mapped (getrlimit(2), mmap(2)). Stacks are
    taken to be as large as the process was started with.
    """
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit_bytes == resource.RLIM_INFINITY:
        return False
    stack_bytes, _ = resource.getrlimit(resource.RLIMIT_STACK)
    if stack_bytes == resource.RLIM_INFINITY:
        stack_bytes = _STACK_BYTES
    try:
        status = Path("/proc/self/status").read_text(errors="replace")
    except MemoryError:
        return True
    except OSError:  # the model has used up, or forbidden itself, its descriptors
        return False
    found = {name: int(count) for name, count in _COUNTS.findall(status)}
    data_bytes = found.get("VmData", 0) * 1024
    stacks_bytes = found.get("Threads", 0) * stack_bytes
    return data_bytes > _NEAR_THE_LIMIT * limit_bytes and stacks_bytes < data_bytes / 2


def _is_disk_full(error: BaseException) -> bool:
    """Return whether an exception, or what caused it, quotes that a disk has no room for this."""
    texts = [error_text(each).lower() for each in _with_causes(error)]
    return any(sign in text for sign in _NO_ROOM for text in texts)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()  # a model's exceptions may be equal, or raise when they are compared
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__


def error_text(error: BaseException) -> str:
    """Return an exception's text, even that of one which fails to say what it is."""
    try:
        return encodable(str(error).strip())
    except Exception as failure:  # noqa: BLE001  a model's exception may do anything
        return f"its text can't be had ({type(failure).__name__})"


def _first_line(error: BaseException) -> str:
    """Return how an exception's text begins; with the next lines where those only announce it."""
    first, *others = error_text(error).splitlines() or [""]
    while first.endswith(":") and others:
        first = f"{first} {others.pop(0)}"
    return first


_SEVERITY = (
    Status.PASS,
    Status.SKIP,
    Status.FAIL_ACCURACY,
    Status.NONDETERMINISTIC,
    Status.FAIL,
    Status.OOM,
    Status.TIMEOUT,
    Status.CRASH,
    Status.INFRA,
)


def worst(outcomes: list[Outcome]) -> Outcome:
    """Return the gravest of some outcomes; the first of equals."""
    return max(outcomes, key=lambda outcome: _SEVERITY.index(outcome.status))
