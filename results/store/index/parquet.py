"""Rows of an index as a Parquet file, for pandas, DuckDB and Polars, and for other indexes.

Each row says all of its run, so that it can be used alone; a text that many rows share is in the
file once for each group of rows. pyarrow is imported when a file is written or read.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.index.parquet_rows import (
    COLUMNS,
    INTEGER,
    NUMBER,
    READ,
    TEXT,
    TIME,
    RowReader,
    told,
)
from dynamometer.results.store.index.whole_runs import Part
from dynamometer.results.store.reading import opened

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from dynamometer.results.store.index.parquet_rows import Column

ROWS_OF_A_GROUP = 32_768
"""So many rows are in memory where a file is written."""

_ROWS_AT_A_TIME = 8_192
"""Likewise where it is read, as long as whoever wrote it made groups of a usual size."""

_FORMAT = 1
_KEY = b"dynamometer.index"
"""In the file's metadata, for its format. Other programs that write it anew may drop it."""


def arrow() -> Any:
    """Import pyarrow.

    Raises:
        StoreError: it is not installed; says how it is.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        msg = f"Parquet files need pyarrow ({error}): pip install '.[parquet]' in a clone"
        raise StoreError(msg) from error
    return pa


def schema() -> Any:
    """Return names and types of all columns, as pyarrow has them."""
    pa = arrow()
    types = {
        TEXT: pa.string(), INTEGER: pa.int64(), NUMBER: pa.float64(),
        TIME: pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    fields = [pa.field(each.name, types[each.kind], each.may_lack) for each in COLUMNS]
    return pa.schema(fields, {_KEY: b"%d" % _FORMAT})


def check_place(path: Path) -> None:
    """Refuse a place where no file can be written, before anything is done that takes long.

    Raises:
        StoreError: it is none; says why.
    """
    with _named(path):
        begun = _begun(_target(path))
        begun.touch()
        begun.unlink()


def write(path: Path, found: Iterable[Part]) -> tuple[int, int]:
    """Write runs as a file, in place of what is there, and return how many and their rows.

    Raises:
        StoreError: it can't be written; then what was there is as it was.
    """
    pa = arrow()
    with _named(path):
        target = _target(path)
        begun = _begun(target)
        try:
            with begun.open("wb") as file:
                counts = _write(pa, file, found)
                file.flush()
                os.fsync(file.fileno())
            begun.replace(target)
        finally:
            with suppress(OSError):
                begun.unlink()
    return counts


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say of a file that can't be written why, and what to do.

    Raises:
        StoreError: in place of an `OSError`.
    """
    try:
        yield
    except OSError as error:
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        advice = "make room there, or name another file" if is_full else "name another file"
        msg = f"{path} can't be written: {error.strerror or error}; {advice} with --parquet"
        raise StoreError(msg) from error


def _target(path: Path) -> Path:
    """Return the file that is meant, which a link may lead to, in a folder that is there.

    Raises:
        OSError: it can't be one.
    """
    try:
        target = path.resolve()
    except RuntimeError as error:  # of a link that leads to itself
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is there, and is no file", str(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from error
    return target


def _begun(target: Path) -> Path:
    """Return where a file is written until it is whole."""
    return target.with_name(f".{target.name}.{os.getpid()}")


def _write(pa: Any, file: BinaryIO, found: Iterable[Part]) -> tuple[int, int]:
    shape, runs, rows = schema(), 0, 0
    group: list[list[object]] = []
    writer = pa.parquet.ParquetWriter(file, shape, compression="zstd", write_page_checksum=True)

    def write_group() -> None:
        columns = zip(*group, strict=True) if group else ([] for _ in shape)
        arrays = [pa.array(values, each.type) for values, each in zip(columns, shape, strict=True)]
        writer.write_batch(pa.record_batch(arrays, schema=shape))
        group.clear()

    try:
        for part in found:
            runs += 1
            for row in told(part):
                rows += 1
                group.append(row)
                if len(group) == ROWS_OF_A_GROUP:
                    write_group()
        if group or not rows:
            write_group()
        writer.close()
    finally:
        # Else it would go on as it is dropped, and complain there of what is told already.
        writer.is_open = False
    return runs, rows


def read(path: Path, metrics: Collection[str]) -> Iterator[Part]:
    """Return the runs of a file, each in as many parts as its rows lie apart.

    Args:
        path: of the file.
        metrics: that are known; another one is refused.

    Raises:
        StoreError: it can't be read, is damaged or of another kind, or was made by a later
            version; says what is wrong and, if it is a row, which.
    """
    pa, reader = arrow(), RowReader(str(path), metrics)
    for rows in _batches(pa, path):
        found = [reader.row(each) for each in rows]
        for _, own in groupby(found, key=lambda each: id(each[0])):
            of_run = [*own]
            yield Part(*of_run[0][0], [row for _, row in of_run])


def _batches(pa: Any, path: Path) -> Iterator[list[tuple[object, ...]]]:
    """Return rows, some at a time, of columns that are read.

    Raises:
        StoreError: it can't be read, or is not what is expected.
    """
    try:
        with (
            opened(path) as file,
            pa.parquet.ParquetFile(
                file, pre_buffer=False, page_checksum_verification=True
            ) as parquet,
        ):
            _check(path, parquet.schema_arrow)
            for batch in parquet.iter_batches(
                _ROWS_AT_A_TIME, columns=[each.name for each in READ], use_threads=False
            ):
                columns = [_column(pa, path, batch, each) for each in READ]
                yield [*zip(*columns, strict=True)]
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        msg = f"{path} can't be read, or is no Parquet file: {why}"
        raise StoreError(msg) from error


def _check(path: Path, found: Any) -> None:
    """Refuse a file of later versions, and one that lacks a column.

    Raises:
        StoreError: it is one.
    """
    form = (found.metadata or {}).get(_KEY, b"")
    if form.isdigit() and int(form) > _FORMAT:
        msg = f"{path} was made by a later version of dynamometer"
        raise StoreError(msg)
    missing = [each.name for each in READ if len(found.get_all_field_indices(each.name)) != 1]
    if missing:
        msg = (
            f"{path} is no file of runs: it has no column {', '.join(missing)}, or has it twice"
            " (dynamometer index --parquet FILE makes one)"
        )
        raise StoreError(msg)


def _column(pa: Any, path: Path, batch: Any, column: Column) -> list[object]:
    """Return the values of a column, which programs write in types of their own.

    Raises:
        StoreError: it is of another kind.
    """
    values = batch.column(column.name)
    kind, types = values.type, pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    is_one_of = {
        TEXT: (types.is_string, types.is_large_string, types.is_string_view),
        INTEGER: (types.is_integer,),
        NUMBER: (types.is_floating, types.is_integer),
    }[column.kind]
    if not any(each(kind) for each in (*is_one_of, types.is_null)):
        msg = f"{path} is no file of runs: its column {column.name} is {kind}, not {column.kind}"
        raise StoreError(msg)
    found: list[object] = values.cast(schema().field(column.name).type).to_pylist()
    return found
