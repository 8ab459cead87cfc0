"""The page of all columns: what every CSV file holds. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.reports.columns import Column, Table

_HEAD = """# Columns of the CSV files

Each is declared once, in a table beside its value. A file is called
`<arm>_<suite>_<dtype>_<mode>_<device>_<kind>.csv`. Of a long arm name it holds the beginning and a
hash; a hash also follows names that differ in punctuation alone (`a:b`, `a.b`). What is not known
is empty, never 0. Columns of PyTorch's harness (`theirs`) come first, under its names and in its
order; `--csv-compat` writes these alone, with its 0 for missing.
"""


def page(studies: Iterable[tuple[str, Sequence[Table[Any]]]]) -> str:
    """Return the page.

    Args:
        studies: the name of each and its tables.
    """
    writers: dict[str, tuple[Table[Any], list[str]]] = {}
    for name, tables in studies:
        for table in tables:
            writers.setdefault(table.kind, (table, []))[1].append(name)
    parts = [_HEAD]
    for kind, (table, names) in writers.items():
        parts += [f"## `{kind}`\n", f"{table.doc} Studies: {', '.join(names)}.\n", _rows(table)]
    return "\n".join(parts)


def _rows(table: Table[Any]) -> str:
    rows = ["| column | unit | better | | what it holds |", "|---|---|---|---|---|"]
    return "\n".join([*rows, *map(_row, table.columns), ""])


def _row(column: Column[Any]) -> str:
    whose = "theirs" if column.is_theirs else ""
    return f"| `{column.name}` | {column.unit} | {column.better or ''} | {whose} | {column.doc} |"
