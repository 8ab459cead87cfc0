"""Commands that a search runs, each in a group of its own, which ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from dynamometer.common.ending import Held

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LEAVE_S = 30.0
"""For a command that is told to stop to keep what it has; then its group is killed."""


def run_logged(words: Sequence[str], folder: Path, log: Path) -> int:
    """Run a command, and give its exit code; negative is the signal that ended it.

    Args:
        words: of the command.
        folder: in which it is run.
        log: takes what it says, after what is there.

    Raises:
        OSError: it can't be started.
        KeyboardInterrupt: we were told to stop; the command has ended by then.
    """
    process = None
    try:
        # A signal that raised within Popen would leave a command that we have no handle of.
        with log.open("ab") as stream, Held():
            process = subprocess.Popen(  # noqa: S603  what was typed is what is to be run
                words, cwd=folder, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
                start_new_session=True,
            )  # fmt: skip
        return process.wait()
    except BaseException:
        if process is not None:
            with Held():
                _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Tell a command to stop with all it has started, wait, and kill what is left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_LEAVE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def asked(words: Sequence[str], given: str | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a short command to its end, whatever signals come meanwhile, and give what it says.

    Args:
        words: of the command.
        given: to its standard input.

    Raises:
        OSError: it can't be started.
    """
    with Held():
        return subprocess.run(  # noqa: S603  git, and revisions that were typed
            words, input=(given or "").encode(), capture_output=True, check=False,
            start_new_session=True,
        )  # fmt: skip
