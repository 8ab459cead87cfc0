"""What the control groups of this process allow it, of either version. Linux."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def memory_limit_bytes(root: Path = Path("/"), *, is_of_container: bool = False) -> int | None:
    """Return the least that a group of this process may use; `None` where none is limited.

    Version 1 says some 2^63 there.

    Args:
        root: below which `proc` and `sys` are.
        is_of_container: whether the outermost groups that are seen count alone.
    """
    told = _read_all(root, "memory", _MEMORY, is_of_container=is_of_container)
    found = [int(text) for text in told if text.isdecimal()]
    return min((each for each in found if each < _UNLIMITED), default=None)


def processors(root: Path = Path("/")) -> float | None:
    """Return how many processors a group of this process may use; `None` where any number.

    Args:
        root: below which `proc` and `sys` are.
    """
    shares = []
    for text in _read_all(root, "cpu", _PROCESSORS):
        quota, _, period = text.partition(" ")
        if quota.isdecimal() and period.isdecimal():
            shares.append(int(quota) / int(period))
    return min(shares, default=None)


_UNLIMITED = 2**62
_MEMORY = ("memory.max", "memory.limit_in_bytes")
_PROCESSORS = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
"""Files of version 2 and then of version 1, whose lines are put together."""


def _read_all(
    root: Path, controller: str, names: tuple[str, ...], *, is_of_container: bool = False
) -> Iterator[str]:
    """Yield what the files of each group say, from that of this process to all it is within.

    In a container the path that is told may be one of the host, and the group is the root.

    Source:
        man 7 cgroups: `/proc/[pid]/cgroup`.
    """
    mounts = root / "sys/fs/cgroup"
    lines = ["0::/", f"0:{controller}:/"]
    if not is_of_container:
        with suppress(OSError):
            told = (root / "proc/self/cgroup").read_bytes().decode(errors="surrogateescape")
            lines += told.splitlines()
    for line in dict.fromkeys(lines):
        _, controllers, path = line.split(":", 2)
        is_v1 = bool(controllers)
        if is_v1 and controller not in controllers.split(","):
            continue
        # A mount of several has a link for each, whatever their order in its own name.
        top = mounts / controller if is_v1 else mounts
        group = top / path.lstrip("/")
        files = names[1:] if is_v1 else names[:1]
        for each in (group, *group.parents):
            with suppress(OSError):
                yield " ".join((each / name).read_text().strip() for name in files)
            if each == top:
                break
