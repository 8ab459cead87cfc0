"""What models leave running, in sessions of their own too, ends with the run: however that ends."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.ending import ExitCode
from dynamometer.results.store import store
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
LONG_S = 1800.0
"""After which a test that waits for what never comes fails."""
MODELS = """
import os, signal, subprocess, time
import torch

def _leave_behind():
    for is_own_session in (True, False):
        subprocess.Popen(["sleep", "{mark}"], start_new_session=is_own_session)
    stubborn = "trap '' TERM HUP INT; (setsid sleep {mark} &); sleep {mark}"
    subprocess.Popen(["sh", "-c", stubborn], start_new_session=True)

def a_hangs():
    _leave_behind()
    time.sleep(1e6)

def b_kills_its_server():
    _leave_behind()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1e6)

def c_stops_its_server():
    _leave_behind()
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(1e6)

def d_works():
    return torch.nn.Linear(2, 2), torch.ones(1, 2)
"""


CODE = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which `nohup` has ignored
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's `&` has
from dynamometer.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def mark() -> str:
    """What nobody else's `sleep` is told: some ten days, and a fraction of a second."""
    return f"900000.{secrets.randbelow(10**9):09}"


def marked(mark: str) -> int:
    """Count the processes that were told to sleep so long."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            count += words[0] == b"sleep" and mark.encode() in words
    return count


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for it.

    Raises:
        AssertionError: it never comes.
    """
    ends = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.05)


def start(folder: Path, mark: str, *words: str) -> subprocess.Popen[bytes]:
    """Begin to run models that leave processes behind."""
    (folder / "mine.py").write_text(MODELS.replace("{mark}", mark))
    command = [sys.executable, "-c", CODE, "run", "mine.py", "--accuracy", "-j", "1"]
    return subprocess.Popen(
        [*command, "--backend", "eager", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ((signal.SIGTERM,), 143),
        ((signal.SIGHUP,), 129),
        ((signal.SIGINT, signal.SIGINT), 130),
        ((signal.SIGKILL,), -9),
    ],
    ids=lambda each: "+".join(one.name for one in each) if isinstance(each, tuple) else None,
)
def test_the_run_is_ended(
    tmp_path: Path, mark: str, signals: tuple[signal.Signals, ...], code: int
) -> None:
    """Whatever ends it, nothing that a model started runs on."""
    run = start(tmp_path, mark, "-k", "hangs")
    try:
        wait_until(lambda: marked(mark) == 4)
        for each in signals:
            run.send_signal(each)
        ends = time.monotonic() + LONG_S
        while run.poll() is None and time.monotonic() < ends:
            time.sleep(1)
            if len(signals) > 1:  # two that come before the first is handled are one
                run.send_signal(signals[-1])
        assert run.wait(LONG_S) == code
        wait_until(lambda: marked(mark) == 0)
    finally:
        run.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)])
def test_a_keeper_that_was_stopped_keeps_on(
    tmp_path: Path, mark: str, number: signal.Signals, code: int
) -> None:
    """What ends a run wakes what is to end all that it has started."""
    run = start(tmp_path, mark, "-k", "hangs")
    try:
        wait_until(lambda: marked(mark) == 4)
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        for keeper in map(int, children):
            os.kill(keeper, signal.SIGSTOP)
        run.send_signal(number)
        assert run.wait(LONG_S) == code
        wait_until(lambda: marked(mark) == 0)
    finally:
        run.kill()


def test_a_fork_server_is_killed_or_stopped(tmp_path: Path, mark: str) -> None:
    """A model ends what it was forked from: that is its own loss, and `--timeout` holds."""
    run = start(tmp_path, mark, "-x", "hangs", "--timeout", "40")
    try:
        assert run.wait(LONG_S) == ExitCode.FAULT
        wait_until(lambda: marked(mark) == 0)
    finally:
        run.kill()
    (directory,) = (tmp_path / "runs").iterdir()
    ended = {each.case.model: each.outcome.status for each in store.read_records(directory)}
    assert ended == {
        "b_kills_its_server": Status.INFRA,
        "c_stops_its_server": Status.TIMEOUT,
        "d_works": Status.PASS,
    }
