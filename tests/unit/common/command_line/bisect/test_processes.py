"""Commands that a search runs: what is left of one when the search is told to stop."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.command_line.bisect import processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class ToldToStop(subprocess.Popen[bytes]):
    """A command during whose start the search is told to stop."""

    started: list[subprocess.Popen[bytes]]

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[call-overload]  # passed on
        self.started.append(self)
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def is_told(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tell the search to stop while a command starts, and leave none of its commands running."""
    # A shell has what it starts in the background ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(ToldToStop, "started", [], raising=False)
    monkeypatch.setattr(subprocess, "Popen", ToldToStop)
    yield
    signal.signal(signal.SIGINT, before)
    for command in ToldToStop.started:
        command.kill()
        command.wait()


@pytest.mark.usefixtures("is_told")
def test_told_to_stop_while_a_command_starts(tmp_path: Path) -> None:
    """It has ended when the search does."""
    with pytest.raises(KeyboardInterrupt):
        processes.run_logged(["sleep", "100"], tmp_path, tmp_path / "log")
    (command,) = ToldToStop.started
    assert command.returncode == -signal.SIGTERM


def test_a_command_that_cannot_start(tmp_path: Path) -> None:
    """The fault is told as it is."""
    with pytest.raises(FileNotFoundError, match="no-such-command"):
        processes.run_logged(["no-such-command"], tmp_path, tmp_path / "log")
