"""What foreign code may see and do, as far as it can be told without starting any."""

from __future__ import annotations

import errno
import struct

import pytest

from dynamometer.common.execution.confinement.containment import (
    _SOCKET_CALLS,
    socket_filter,
    without_secrets,
)
from dynamometer.common.machine.variables import VARIABLES

ALLOWED, REFUSED = 0x7FFF0000, 0x00050000 | errno.EACCES


def verdict(program: bytes, *, number: int, architecture: int, first: int) -> int:
    """Run a program of seccomp's on a system call, as bpf(4) says."""
    instructions = list(struct.iter_unpack("HBBI", program))
    words = {0: number, 4: architecture, 16: first}
    place, accumulator = 0, 0
    while True:
        code, if_so, if_not, value = instructions[place]
        place += 1
        match code:
            case 0x20:
                accumulator = words[value]
            case 0x15:
                place += if_so if accumulator == value else if_not
            case 0x35:
                place += if_so if accumulator >= value else if_not
            case 0x06:
                return value
            case _:
                raise AssertionError(hex(code))


@pytest.mark.parametrize("machine", sorted(_SOCKET_CALLS))
def test_sockets_of_networks_are_refused(machine: str) -> None:
    """AF_UNIX is allowed, and every other call; another architecture's are not."""
    architecture, call = _SOCKET_CALLS[machine]
    program = socket_filter(architecture, call)
    assert verdict(program, number=call, architecture=architecture, first=1) == ALLOWED
    for family in (2, 10, 16, 17):
        found = verdict(program, number=call, architecture=architecture, first=family)
        assert found == REFUSED
    for other in (0, 1, call - 1, call + 1, 400, 424, 426):
        assert verdict(program, number=other, architecture=architecture, first=2) == ALLOWED
    assert verdict(program, number=425, architecture=architecture, first=2) == REFUSED
    assert verdict(program, number=other, architecture=3, first=1) == REFUSED
    assert verdict(program, number=0x40000029, architecture=architecture, first=2) == REFUSED


def test_secrets_are_left_out() -> None:
    """What compilers, allocators and threads are told by stays, as far as records hold it."""
    named = ("PATH", "LC_ALL", "PYTHONPATH", "LANG", "TORCHINDUCTOR_X", "DNNL_X")
    kept = (*named, *VARIABLES)
    secret = (
        "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HF_TOKEN", "MY_PATH", "LANGCHAIN_API_KEY",
        "CC_TEST_REPORTER_ID", "PYTHONANYWHERE_TOKEN", "PYTHONANYWHERE_USER", "PATHS", "TZ_KEY",
        "TORCH_HUB_TOKEN", "CUDA_PASSWORD", "TORCHSERVE_URL", "HTTPS_PROXY", "HOME",
    )  # fmt: skip
    found = without_secrets(dict.fromkeys((*kept, *secret), "text"))
    assert sorted(found) == sorted(kept)
