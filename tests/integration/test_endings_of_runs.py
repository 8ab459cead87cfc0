"""A run that a signal ends, with real workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dynamometer.results.store import store

ROOT = Path(__file__).resolve().parents[2]
MODELS = """
import time
import torch

def first():
    return torch.nn.Linear(2, 2), (torch.ones(1, 2),)

def second():
    open("begun", "w").close()
    time.sleep(1000)
"""
CODE = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which `nohup` has ignored
from dynamometer.__main__ import main
sys.exit(main())
"""
_LONG_S = 600
"""What nothing here takes, however slow the machine."""
WORDS = ("run", "mine.py", "--accuracy", "--backend", "eager", "-j", "1")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_a_signal_leaves_records_and_nothing_else(tmp_path: Path, number: signal.Signals) -> None:
    """No process, no caches; the exit code is the signal's, and the way on is said."""
    (tmp_path / "mine.py").write_text(MODELS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", CODE, *WORDS], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as program:  # fmt: skip
        begins_by = time.monotonic() + _LONG_S
        while not (tmp_path / "begun").exists() and program.poll() is None:
            if time.monotonic() > begins_by:
                program.kill()
            time.sleep(0.05)
        children = _descendants(program.pid)
        program.send_signal(number)
        try:
            _, said = program.communicate(timeout=_LONG_S)
        finally:
            program.kill()
    assert program.returncode == 128 + number, said
    assert "interrupted; to finish: " in said
    (directory,) = (tmp_path / "runs").iterdir()
    assert [each.case.model for each in store.read_records(directory)] == ["first"]
    assert not (directory / "cache").exists()
    assert children
    deadline = time.monotonic() + _LONG_S  # of a kernel that is about to end what was killed
    while (left := list(filter(_runs, children))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def _runs(pid: int) -> bool:
    """Return whether a process does; one that has ended may wait for an `init` that never asks."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def _descendants(pid: int) -> list[int]:
    """Return all processes that come from one, some of which lead sessions of their own."""
    words: list[str] = []
    with suppress(OSError):  # it has ended meanwhile
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    children = [int(each) for each in words]
    return children + [each for child in children for each in _descendants(child)]
