"""Processes, a network and files of one's own, as Linux lends them to anyone: namespaces(7).

Sources: user_namespaces(7), pid_namespaces(7), mount_setattr(2).
"""

from __future__ import annotations

import ctypes
import os
import struct
from contextlib import suppress

from dynamometer.common.execution.confinement.libc import call, syscall

_CLONE_NEWNS, _CLONE_NEWIPC = 0x00020000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID_NODEV, _MS_NOSUID_NODEV_NOEXEC = 2 | 4, 2 | 4 | 8
_MS_PRIVATE_ALL = (1 << 18) | (1 << 14)
_MOUNT_SETATTR = 442
"""The system call, the same on every architecture."""
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY = 1


def unshare_processes() -> bool:
    """Have the next child be the first process of a PID namespace; tell whether it will be.

    Its descendants see no process but each other. They can't end it, and end when it does, all at
    once. Must be called before there are threads.
    """
    wanted = _CLONE_NEWPID | _CLONE_NEWNS
    return _unshare(wanted) or _unshare_as_user(wanted)


def is_first_process() -> bool:
    """Return whether this process is the first of its PID namespace."""
    return os.getpid() == 1


def mount_proc() -> bool:
    """Have /proc show the processes of this PID namespace; tell whether it does.

    Where parts of /proc are covered, as in most containers, it can't be mounted anew.
    """
    _mount("none", "/", None, _MS_PRIVATE_ALL, None)
    return _mount("proc", "/proc", "proc", _MS_NOSUID_NODEV_NOEXEC, None)


def are_own_processes_shown() -> bool:
    """Return whether /proc shows this process by the number that it knows itself by."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())  # noqa: PTH115  pathlib takes 10 ms to import
    except OSError:
        return True  # it shows none


def unshare_network_and_mounts() -> bool:
    """Have a network without any device, and mounts that nobody else sees; tell whether that is."""
    return _unshare_as_user(_CLONE_NEWNET | _CLONE_NEWNS | _CLONE_NEWIPC) and _mount(
        "none", "/", None, _MS_PRIVATE_ALL, None
    )


def remount_read_only() -> bool:
    """Have nothing that is mounted be changed through this process; tell whether it can't be."""
    attributes = struct.pack("QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    place = (_AT_FDCWD, b"/", _AT_RECURSIVE)
    return not syscall(_MOUNT_SETATTR, *place, attributes, len(attributes))


def lock_mounts() -> bool:
    """Give up what could undo that: mounts are locked for who is in one more user namespace."""
    return _unshare_as_user(_CLONE_NEWNS)


def mount_tmpfs(directory: str, most_bytes: int) -> bool:
    """Have a directory in memory, empty and of a limited size; tell whether it is."""
    return _mount("tmpfs", directory, "tmpfs", _MS_NOSUID_NODEV, f"size={most_bytes}")


def _unshare(namespaces: int) -> bool:
    return not call("unshare", namespaces)


def _unshare_as_user(namespaces: int) -> bool:
    """Leave namespaces as one who may, being alone in a user namespace, and stay who one is."""
    uid, gid = os.getuid(), os.getgid()
    if not _unshare(namespaces | _CLONE_NEWUSER):
        return False
    for name, text in (
        ("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1"), ("uid_map", f"{uid} {uid} 1"),
    ):  # fmt: skip
        with suppress(OSError), open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123  pathlib takes 10 ms to import
            file.write(text)
    return True


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> bool:
    texts = [text.encode() if text is not None else None for text in (source, target, kind)]
    data = options.encode() if options is not None else None
    return not call("mount", *texts, ctypes.c_ulong(flags), data)
