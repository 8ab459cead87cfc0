"""The process that a calibration on a busy machine is made beside."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dynamometer.common.machine.disturber import disturbed

_ENOUGH_TICKS = 20


def _stat(number: int) -> Path:
    return Path(f"/proc/{number}/stat")


def _fields(number: int) -> list[str]:
    return _stat(number).read_text().rpartition(")")[2].split()


def _leave_early() -> int:
    with disturbed(0, busy_s=0.01, idle_s=1e-6) as number:
        while int(_fields(number)[11]) < _ENOUGH_TICKS:
            assert _fields(number)[0] != "Z"
            time.sleep(0.01)
        raise KeyboardInterrupt(number)


def test_it_computes_for_as_long_as_it_is_wanted() -> None:
    """Whatever ends that."""
    with pytest.raises(KeyboardInterrupt) as stopped:
        _leave_early()
    assert not _stat(stopped.value.args[0]).exists()
