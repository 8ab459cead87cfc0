"""How the program ends: its exit codes, what a fault of ours comes to, and signals that stop it.

docs/reliability.md has the codes for users.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Self

import click

from dynamometer.common import plugins
from dynamometer.common.errors import DynamometerError
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

    from _typeshed import ReadableBuffer


SIGNALLED = 128
"""Above which exit codes are those of signals, as shells have it."""


class ExitCode(IntEnum):
    """What each end is; errors of ours have theirs in `errors.py`."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    FAULT = 3
    INTERRUPTED = SIGNALLED + signal.SIGINT
    READER_LEFT = SIGNALLED + signal.SIGPIPE


def exit_code_of(action: Callable[[], object]) -> int:
    """Do what was asked for, and give the exit code; whatever goes wrong is said in a line.

    Args:
        action: returns the exit code, or something else if all is well.
    """
    _open_what_is_closed()
    _name_standard_output()
    _write_whatever_comes()
    if takes_signals() and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        # So who started the program has it: how processes below it end could not be known.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signals = StopSignals()
    try:
        code = _exit_code_of(action, signals)
    except KeyboardInterrupt:  # once more, while that was being said
        code = ExitCode.INTERRUPTED
    _let_go()
    return SIGNALLED + signals.received if signals.received else code


class StopSignals:
    """Turns SIGTERM and SIGHUP into what Ctrl-C is, so that everything is closed in order.

    Attributes:
        received: the number of the first that came. Each one interrupts, as Python swallows what is
            raised in a `__del__`; `Held` is for what must not be interrupted.
    """

    def __init__(self) -> None:
        """Take over nothing yet."""
        self.received = 0
        self._taken: list[signal.Signals] = []

    def __enter__(self) -> Self:
        """Take over those that nobody ignores, as `nohup` does, or handles."""
        if takes_signals():
            self._taken = [each for each in _STOPPING if signal.getsignal(each) is signal.SIG_DFL]
        for each in self._taken:
            signal.signal(each, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give them back."""
        for each in self._taken:
            signal.signal(each, signal.SIG_DFL)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.received = self.received or number
        raise KeyboardInterrupt


class Held:
    """Lets signals that stop the program wait until something is closed.

    Where that is done because the program ends anyway, they change nothing any more.
    """

    def __enter__(self) -> Self:
        """Note from now on what comes."""
        self._came: list[int] = []
        self._before = {
            each: handler
            for each in (signal.SIGINT, *_STOPPING)
            if takes_signals() and callable(handler := signal.getsignal(each))
        }
        for each in self._before:
            signal.signal(each, lambda number, _: self._came.append(number))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let what has come do what it would have done."""
        for each, handler in self._before.items():
            signal.signal(each, handler)
        if self._came and sys.exception() is None:
            signal.raise_signal(self._came[0])


def takes_signals() -> bool:
    """Return whether signals can be handled here: Python lets only its main thread do so."""
    return threading.current_thread() is threading.main_thread()


_STOPPING = (signal.SIGTERM, signal.SIGHUP)


def tell(text: str) -> None:
    """Say something of a fault, if anybody can still hear it."""
    from dynamometer.results.reports.texts import printable_lines

    # A terminal that was closed; a stream that was, or that a signal's handler found at work.
    with suppress(OSError, ValueError, RuntimeError):
        click.echo("\n".join(printable_lines([text])), err=True)


def _exit_code_of(action: Callable[[], object], signals: StopSignals) -> int:
    try:
        with signals:
            code = action()
            if sys.stdout is not None:
                sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return ExitCode.USAGE
    except (KeyboardInterrupt, EOFError, click.Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError as error:
        # Whoever read has left, as `head` does. What was measured is stored.
        return ExitCode.READER_LEFT if _reader_left() else report_fault(error)
    except ModuleNotFoundError:  # `__main__` says what to install
        raise
    except Exception as error:  # noqa: BLE001  the last place where a fault can be named
        return report_fault(error)
    return code if isinstance(code, int) else ExitCode.DONE


def report_fault(error: Exception) -> int:
    """Say what went wrong, and give the exit code."""
    match error:
        case DynamometerError():
            tell(f"error: {error}")
            return error.exit_code
        case StoreError():
            tell(f"error: {error}")
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            tell(f"error: {place}{error.strerror or error}")
        case UnicodeError():
            tell(f"error: a text can't be written: {error}")
        case MemoryError():
            tell("error: this machine has no memory left")
        case _:
            if of_plugin := plugins.package_of(error):
                package, place = of_plugin
                what = f"{type(error).__name__}: {error}"
                tell(f"error: the package {package} failed with {what} ({place})")
                return ExitCode.FAULT
            import traceback

            tell("".join(traceback.format_exception(error)).rstrip())
            tell(f"error: Dynamometer itself failed with {type(error).__name__}: please report it")
    return ExitCode.FAULT


def _open_what_is_closed() -> None:
    """Put nothing in the place of standard descriptors that are closed, or others would get it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w", closefd=False))


class _StandardOutput(io.FileIO):
    """Standard output, which is named in what goes wrong with it, as other files are."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes, and return how many."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = "standard output"
            raise


def _name_standard_output() -> None:
    """Have it named, where it is a file and nobody has put something else in its place."""
    now = sys.stdout
    if type(now) is io.TextIOWrapper and isinstance(now.buffer, io.BufferedWriter | io.FileIO):
        now.flush()
        file = _StandardOutput(now.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            file if isinstance(now.buffer, io.FileIO) else io.BufferedWriter(file),
            encoding=now.encoding,
            line_buffering=now.line_buffering,
            write_through=now.write_through,
        )


def _write_whatever_comes() -> None:
    """Let no name fail where the terminal's encoding lacks a character of it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _reader_left() -> bool:
    """Return whether nobody reads standard output or error any more."""
    import select

    watched = select.poll()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            watched.register(stream.fileno(), 0)
    return bool(watched.poll(0))


def _let_go() -> None:
    """Forget what can't be written, which Python would try, and complain of, as it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
