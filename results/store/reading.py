"""The one place that reads a file, and knows how it can be bad.

A file may be missing, a folder, a named pipe that nobody writes to, not UTF-8, cut short, or hold
other values than it should. Each is an `OSError` or a `StoreError` that names file and line.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from datetime import UTC
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.choices import moment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from io import BufferedReader
    from pathlib import Path

T = TypeVar("T")

BAD_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises; the last two of what is nested too deeply."""
BAD_JSON = (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError)
"""What msgspec raises on JSON that is none, or of something else."""

FORMULA = re.compile(r"'*[=+\-@]")
"""How a cell of a CSV file begins that is written with another `'` before it.

Source: OWASP, CSV injection, which names the signs that a formula begins with.
"""


def opened(path: Path, *, may_be_pipe: bool = False) -> BufferedReader:
    """Open a file for reading; nothing but a file is waited for.

    Args:
        path: of the file.
        may_be_pipe: whether a pipe will do and is waited for, as users name one: `<(command)`.

    Raises:
        OSError: it can't be read, or is no file.
    """
    waits = 0 if may_be_pipe else os.O_NONBLOCK
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | waits)
    except ValueError as error:  # a name with NUL
        raise OSError(errno.EINVAL, "that is no name of a file", str(path)) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if not (may_be_pipe and stat.S_ISFIFO(mode)):
            _check_kind(path, mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_kind(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Is a pipe or device, not a file", str(path))


def file_bytes(path: Path, *, may_be_pipe: bool = False) -> bytes:
    """Return what a file, or a pipe where one will do, holds.

    Raises:
        OSError: it can't be read, or is no file.
    """
    with opened(path, may_be_pipe=may_be_pipe) as file:
        return file.read()


def file_text(path: Path, *, may_be_pipe: bool = False) -> str:
    """Return the text of a file, or a pipe where one will do, with its ends of lines as they are.

    Raises:
        StoreError: it can't be read, or is not UTF-8; says in which line.
    """
    try:
        data = file_bytes(path, may_be_pipe=may_be_pipe)
    except OSError as error:
        msg = f"{path} can't be read: {error.strerror}"
        raise StoreError(msg) from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        msg = (
            f"{path}, line {line} can't be read: byte 0x{data[error.start]:02x} is not UTF-8; save"
            " the file in that encoding"
        )
        raise StoreError(msg) from error


def from_json(data: Any, kind: type[T], place: str) -> T:
    """Return the value that JSON stands for.

    Args:
        data: the JSON; whatever a damaged file has in its place.
        kind: of value.
        place: the file and line, for the message.

    Raises:
        StoreError: it stands for none.
    """
    try:
        if isinstance(data, bytes):
            data.decode()  # msgspec doesn't look at what the kind of value has no place for
        return msgspec.json.decode(data, type=kind)
    except BAD_JSON as error:
        msg = f"{place} is damaged: {error}"
        raise StoreError(msg) from error


def utc_time(text: str) -> datetime | None:
    """Read a time in ISO 8601 as one of UTC, which it is where it has no offset; else `None`."""
    with suppress(OverflowError):
        found = moment(text)
        return found and found.astimezone(UTC)
    return None


def unquoted(cell: str) -> str:
    """Return the text of a cell without the `'` that our tables have before a formula."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def csv_table(
    path: Path, *, may_be_pipe: bool = False
) -> tuple[tuple[str, ...], Iterator[tuple[int, dict[str, str]]]]:
    """Return the columns of a CSV file, and its rows, each with the line it ends in.

    Rows are dictionaries by column; what a short row lacks is not in them, nor what a long one has
    too much. Empty lines are passed over.

    Raises:
        StoreError: the file can't be read, or, once rows are taken, a line is no CSV.
    """
    found = csv_rows(path, may_be_pipe=may_be_pipe)
    _, first = next(found, (0, []))
    return tuple(first), ((line, dict(zip(first, row, strict=False))) for line, row in found if row)


def csv_rows(path: Path, *, may_be_pipe: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Return all rows of a CSV file as they are, each with the line it ends in.

    Raises:
        StoreError: the file can't be read, or, once rows are taken, a line is no CSV.
    """
    import csv  # which most of what reads files doesn't need
    import io

    # Spreadsheets mark the beginning of a file as UTF-8.
    text = file_text(path, may_be_pipe=may_be_pipe).removeprefix("\ufeff")
    reader = csv.reader(io.StringIO(text, newline=""))

    def rows() -> Iterator[tuple[int, list[str]]]:
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            msg = f"{path}, line {reader.line_num} can't be read: {error}"
            raise StoreError(msg) from error

    return rows()
