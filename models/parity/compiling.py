"""Compiling a file of a corpus: by its worker, or once for those that are forked afterwards."""

from __future__ import annotations

import marshal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import file_bytes

if TYPE_CHECKING:
    from types import CodeType

MODULE = "_corpus_file"
"""The name of any file as a module."""
_APART = Path(__file__).with_name("compile_apart.py")
_MOST_WALL_S = 20.0
"""For a process that may take 2 s of a core's time, however busy the machine is."""
_FILES = 4
"""Whose code is kept: cases of one file mostly follow each other."""

_kept: dict[tuple[Path, int, int], CodeType | None] = {}
"""By file and its version; `None` of what can't be compiled ahead, which is tried but once."""


def compile_ahead(file: Path) -> None:
    """Compile a file for whoever asks for its code here, or in a fork of this process.

    Not in this process: what takes too much, or crashes the compiler, is left for its workers.

    Raises:
        OSError: there is no such file.
    """
    version = _version(file)
    if version not in _kept:
        _kept[version] = _compiled_apart(file)
        for each in [*_kept][:-_FILES]:
            del _kept[each]


def code_of(file: Path) -> CodeType:
    """Compile a file as importing it would, unless that was done and it hasn't changed since.

    Raises:
        OSError: it can't be read.
        Exception: what Python raises of a text that is none.
    """
    code = _kept.get(_version(file))
    if code is not None:
        return code
    with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
        compiled: CodeType = compile(file_bytes(file), str(file), "exec", dont_inherit=True)
    return compiled


def _version(file: Path) -> tuple[Path, int, int]:
    found = file.stat()
    return file, found.st_mtime_ns, found.st_size


def _compiled_apart(file: Path) -> CodeType | None:
    words = [sys.executable, "-I", "-S", "-W", "ignore", str(_APART), str(file)]
    try:
        found = subprocess.run(  # noqa: S603  our own interpreter and code
            [*words, str(sys.flags.optimize)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_MOST_WALL_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    code: CodeType = marshal.loads(found.stdout)  # noqa: S302  as a .pyc file is read
    return code
