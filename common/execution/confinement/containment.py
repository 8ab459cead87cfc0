"""What a worker gives up before it runs code that nobody here has read.

It can't reach a network, change anything outside its own directory, see other processes, read
their memory or environment, or use descriptors other than its output and its channel; files,
processor time and processes are limited. What the system doesn't offer is named, and the record
says so.

Sources: landlock(7), seccomp(2), getrlimit(2), and those of `namespaces`. None of it holds against
a fault of the kernel.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dynamometer.common.execution.confinement import namespaces
from dynamometer.common.execution.confinement.libc import call, syscall
from dynamometer.common.machine.variables import is_recorded, is_secret

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Landlock's system calls, the same on every architecture."""
_ASK_VERSION = 1
_PATH_BENEATH = 1
_WRITE_FILE = 1 << 1
_WRITING = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""To files, and to make or remove them, and directories, links, pipes and sockets."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_TCP = 0b11
_SIGNALS_AND_SOCKETS = 0b11
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  it is replaced by one of its own
_SINCE = {"refer": 2, "truncate": 3, "tcp": 4, "scope": 6}
"""The version of Landlock that brought it."""

_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Of an architecture, its number for audit and that of socket(2)."""
_AF_UNIX = 1
_IO_URING_SETUP = 425
"""The same on every architecture."""

_KEPT = frozenset((
    "CC", "CFLAGS", "CPATH", "CPLUS_INCLUDE_PATH", "CXX", "CXXFLAGS", "C_INCLUDE_PATH",
    "GLIBC_TUNABLES", "LANG", "LANGUAGE", "LDFLAGS", "LIBRARY_PATH", "PATH",
    "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONHOME", "PYTHONPATH", "PYTHONPYCACHEPREFIX",
    "PYTHONUNBUFFERED", "PYTHONWARNINGS", "TZ", "VIRTUAL_ENV",
))  # fmt: skip
_KEPT_GROUPS = (
    "COVERAGE_", "CUDA_", "DYNAMOMETER_", "LC_", "LD_", "NVIDIA_", "TORCHDYNAMO_", "TORCHINDUCTOR_",
    "TORCH_",
)  # fmt: skip
"""How the names of environment variables begin that compilers know, beside what records hold."""


@dataclass(frozen=True)
class Bounds:
    """What foreign code may use.

    Attributes:
        cpu_s: processor seconds.
        file_bytes: of one file.
        files_bytes: of all files in its directory.
        descriptors: open at a time.
    """

    cpu_s: int
    file_bytes: int = 256 * 2**20
    files_bytes: int = 2**30
    descriptors: int = 1024


MOST_PROCESSES = 256
"""Of a worker and all it starts; above that all of it is killed."""


def without_secrets(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment variables that foreign code may see."""
    return {name: text for name, text in environment.items() if _may_be_seen(name)}


def _may_be_seen(name: str) -> bool:
    if is_secret(name):
        return False
    return name in _KEPT or name.startswith(_KEPT_GROUPS) or is_recorded(name)


def contain(
    directory: Path, descriptors: set[int], bounds: Bounds, *, device: str
) -> tuple[str, ...]:
    """Give up what foreign code must not have, for good; threads must not have been started.

    Args:
        directory: the only one that can be written to afterwards; what is in it may vanish.
        descriptors: which stay open.
        bounds: what may be used.
        device: whose drivers may be talked to.

    Returns:
        What could not be given up, a sentence each.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _close_all_but(descriptors)
    _limit(bounds)
    missing = []
    is_alone = os.getppid() == 1  # its fork server is the first of a PID namespace
    if not is_alone:
        missing.append("other processes can be seen: PID namespaces are not permitted")
    elif not namespaces.are_own_processes_shown():
        missing.append("other processes can be seen: /proc can't be mounted anew")
    left = _leave_namespaces(directory, bounds)
    missing += left.missing
    missing += _landlock(directory, device, left, is_alone=is_alone)
    _live_in(directory)
    return tuple(missing)


def _close_all_but(descriptors: set[int]) -> None:
    for each in [*map(int, os.listdir("/proc/self/fd"))] if os.path.isdir("/proc/self/fd") else ():  # noqa: PTH112, PTH208  pathlib opens others
        if each not in descriptors:
            with suppress(OSError):
                os.close(each)


def _limit(bounds: Bounds) -> None:
    wanted = {
        resource.RLIMIT_CPU: bounds.cpu_s,
        resource.RLIMIT_FSIZE: bounds.file_bytes,
        resource.RLIMIT_NOFILE: bounds.descriptors,
    }
    for limit, most in wanted.items():
        _, hard = resource.getrlimit(limit)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (least, least))


@dataclass(frozen=True)
class _Left:
    """What leaving namespaces came to.

    Attributes:
        missing: what could not be given up.
        is_read_only: whether no file can be changed but those in memory.
        has_own_memory: whether nobody else sees the files of /dev/shm.
    """

    missing: tuple[str, ...]
    is_read_only: bool
    has_own_memory: bool


def _leave_namespaces(directory: Path, bounds: Bounds) -> _Left:
    """Have no network, and nothing that can be changed but files in memory; say what can be."""
    missing = []
    has_own = namespaces.unshare_network_and_mounts()
    if not has_own and not _refuse_sockets():
        missing.append("the network can be reached: neither namespaces nor seccomp are permitted")
    is_read_only = has_own and namespaces.remount_read_only()
    if not is_read_only:
        missing.append("files outside its directory can be given other modes and times")
    if not (has_own and namespaces.mount_tmpfs(str(directory), bounds.files_bytes)):
        missing.append(f"the disk can be filled by files of {bounds.file_bytes} bytes")
    # One in memory would hide a directory that is there.
    is_within = directory.resolve().is_relative_to(_SHARED_MEMORY)
    is_apart = has_own and not is_within and _SHARED_MEMORY.is_dir()
    shared_bytes = bounds.files_bytes // 4
    has_own_memory = is_apart and namespaces.mount_tmpfs(str(_SHARED_MEMORY), shared_bytes)
    if has_own and not namespaces.lock_mounts():
        missing.append("mounts can be undone: user namespaces can't be nested")
    return _Left(tuple(missing), is_read_only, has_own_memory)


def _refuse_sockets() -> bool:
    """Have socket(2) fail but for those on this machine; tell whether it will."""
    known = _SOCKET_CALLS.get(platform.machine())
    if known is None or call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    program = socket_filter(*known)
    buffer = ctypes.create_string_buffer(program, len(program))
    head = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    )
    return not call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, head, 0, 0)


def socket_filter(architecture: int, socket_call: int) -> bytes:
    """Return the program that refuses sockets of any family but AF_UNIX (seccomp(2), bpf(2)).

    It refuses io_uring_setup(2), too: what is asked for through it, no such program sees.

    Args:
        architecture: its number for audit; another one's calls are refused.
        socket_call: the number of socket(2).
    """
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EACCES
    other_calls = 0x40000000
    """On x86-64 those of the ABI x32, which have other numbers."""
    instructions = (
        (load, 0, 0, 4),
        (equal, 0, 7, architecture),
        (load, 0, 0, 0),
        (at_least, 5, 0, other_calls),
        (equal, 4, 0, _IO_URING_SETUP),
        (equal, 0, 2, socket_call),
        (load, 0, 0, 16),
        (equal, 0, 1, _AF_UNIX),
        (give, 0, 0, allow),
        (give, 0, 0, refuse),
    )
    return b"".join(struct.pack("HBBI", *each) for each in instructions)


def _landlock(directory: Path, device: str, left: _Left, *, is_alone: bool) -> list[str]:
    """Write nowhere else, signal nobody else, and look into no other process."""
    refused = []
    what = "pipes and devices" if left.is_read_only else "files"
    refused.append(f"{what} outside its directory can be written to: there is no Landlock here")
    refused += [] if is_alone else ["processes can be signalled: there is no Landlock here"]
    version = syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < 1:
        return refused
    writing = _WRITING
    writing |= _REFER if version >= _SINCE["refer"] else 0
    writing |= _TRUNCATE if version >= _SINCE["truncate"] else 0
    tcp = _TCP if version >= _SINCE["tcp"] else 0
    scope = _SIGNALS_AND_SOCKETS if version >= _SINCE["scope"] else 0
    fields = (writing, *([tcp] if tcp else []), *([scope] if scope else []))
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    rules = syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return refused
    try:
        for path in (directory, *([_SHARED_MEMORY] if left.has_own_memory else ())):
            _allow(rules, path, writing)
        for path in (Path(os.devnull), *_nodes_of(device)):
            _allow(rules, path, _WRITE_FILE)
        call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if syscall(_RESTRICT_SELF, rules, 0):
            return refused
    finally:
        os.close(rules)
    if scope or is_alone:
        return []
    return [f"processes can be signalled: Landlock is of version {version}, not 6"]


def _nodes_of(device: str) -> list[Path]:
    """Return what drivers of accelerators are talked to by."""
    patterns = () if device == "cpu" else ("nvidia*", "nvidia-caps/*", "dri/*", "kfd")
    found = (path for pattern in patterns for path in Path("/dev").glob(pattern))
    return [path for path in found if path.is_char_device()]


def _allow(rules: int, path: Path, access: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", access, descriptor), 0)
    finally:
        os.close(descriptor)


def _live_in(directory: Path) -> None:
    """Make a directory the current one, and that of temporary files and of the user."""
    os.chdir(directory)
    for name in ("HOME", "TMPDIR"):
        os.environ[name] = str(directory)
    tempfile.tempdir = str(directory)
