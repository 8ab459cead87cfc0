"""What groups of either version allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dynamometer.common.machine import cgroups

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GROUPS = "sys/fs/cgroup"
NESTED = "0::/system.slice/job.scope\n"
VERSION_1 = "4:memory:/slurm/job\n3:cpu,cpuacct:/slurm/job\n0::/\n"


def made(folder: Path, own: str | None, files: Mapping[str, str]) -> Path:
    """Make what the kernel shows of groups, and of which this process is in."""
    for name, text in {**files, **({} if own is None else {"proc/self/cgroup": own})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("own", "files", "wanted"),
    [
        (None, {}, None),
        (None, {f"{GROUPS}/memory.max": "8000\n"}, 8000),
        ("0::/\n", {f"{GROUPS}/memory.max": "max\n"}, None),
        (NESTED, {f"{GROUPS}/system.slice/job.scope/memory.max": "8000\n"}, 8000),
        (NESTED, {f"{GROUPS}/system.slice/memory.max": "9000\n",
                  f"{GROUPS}/system.slice/job.scope/memory.max": "max\n"}, 9000),
        (NESTED, {f"{GROUPS}/system.slice/memory.max": "7000\n",
                  f"{GROUPS}/system.slice/job.scope/memory.max": "8000\n"}, 7000),
        (NESTED, {f"{GROUPS}/other.slice/memory.max": "5\n"}, None),
        (VERSION_1, {f"{GROUPS}/memory/slurm/job/memory.limit_in_bytes": "6000\n"}, 6000),
        (VERSION_1, {f"{GROUPS}/memory/memory.limit_in_bytes": "4000\n"}, 4000),
        (VERSION_1, {f"{GROUPS}/memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
    ],
)  # fmt: skip
def test_memory(
    tmp_path: Path, own: str | None, files: Mapping[str, str], wanted: int | None
) -> None:
    """The least of the group of this process and all that it is within."""
    assert cgroups.memory_limit_bytes(made(tmp_path, own, files)) == wanted


@pytest.mark.parametrize("file", ["memory.max", "memory/memory.limit_in_bytes"])
def test_the_limit_of_a_container_is_that_of_its_root(tmp_path: Path, file: str) -> None:
    """Not of a job within it, of which the next may have another."""
    job = f"{GROUPS}/system.slice/job.scope/memory.max"
    folder = made(tmp_path, NESTED, {f"{GROUPS}/{file}": "9000\n", job: "8000\n"})
    assert cgroups.memory_limit_bytes(folder, is_of_container=True) == 9000
    assert cgroups.memory_limit_bytes(folder) == 8000


@pytest.mark.parametrize(
    ("own", "files", "wanted"),
    [
        (None, {}, None),
        (None, {f"{GROUPS}/cpu.max": "max 100000\n"}, None),
        (None, {f"{GROUPS}/cpu.max": "150000 100000\n"}, 1.5),
        (NESTED, {f"{GROUPS}/system.slice/cpu.max": "200000 100000\n",
                  f"{GROUPS}/system.slice/job.scope/cpu.max": "50000 100000\n"}, 0.5),
        (VERSION_1, {f"{GROUPS}/cpu/slurm/job/cpu.cfs_quota_us": "50000\n",
                     f"{GROUPS}/cpu/slurm/job/cpu.cfs_period_us": "100000\n"}, 0.5),
        (VERSION_1, {f"{GROUPS}/cpu/slurm/job/cpu.cfs_quota_us": "-1\n",
                     f"{GROUPS}/cpu/slurm/job/cpu.cfs_period_us": "100000\n"}, None),
    ],
)  # fmt: skip
def test_processors(
    tmp_path: Path, own: str | None, files: Mapping[str, str], wanted: float | None
) -> None:
    """As many as the quota is of the period."""
    assert cgroups.processors(made(tmp_path, own, files)) == wanted
