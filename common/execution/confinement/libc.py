"""Functions of the C library and calls of the kernel that Python doesn't have."""

from __future__ import annotations

import ctypes


def call(name: str, *arguments: object) -> int:
    """Call a function, and give what it returns; whole numbers are C's `int`."""
    return int(getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments))


def syscall(number: int, *arguments: object) -> int:
    """Make a system call, and give what it returns; whole numbers are C's `long`."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *words))
