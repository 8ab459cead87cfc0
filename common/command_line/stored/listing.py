"""`dynamometer ls runs`: the runs in a folder, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.reports.texts import fitted_table, printable
from dynamometer.results.store.errors import FormatError, StoreError
from dynamometer.results.store.overview import read_overview, run_directories

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.store.overview import Overview

_HEADERS = ("run", "when (UTC)", "state", "size", "machine", "torch", "command")


def lines(folder: Path, width: int | None) -> list[str]:
    """Return a table of the runs in a folder; one that is damaged says so in place of its figures.

    Args:
        folder: that run directories are made in.
        width: of the terminal; `None` leaves all as long as it is.

    Raises:
        UsageError: there is no such folder.
    """
    with store_errors_as_usage():
        directories = run_directories(folder)
    rows = [_row(each) for each in directories]
    return fitted_table(rows, _HEADERS, width) if rows else [f"no runs in {folder}"]


def megabytes(size_bytes: int) -> str:
    """Write a size on the disk."""
    return f"{size_bytes / 1e6:,.1f} MB"


def _row(directory: Path) -> list[str]:
    try:
        found = read_overview(directory)
    except StoreError as error:
        state = "of another version" if isinstance(error, FormatError) else "damaged"
        return [printable(directory.name), "", state, "", "", "", printable(str(error))]
    return [printable(each) for each in _cells(found)]


def _cells(found: Overview) -> tuple[str, ...]:
    manifest = found.manifest
    return (
        found.directory.name or str(found.directory),
        manifest.created_at[:16].replace("T", " "),
        found.progress,
        megabytes(found.size_bytes),
        manifest.environment.machine,
        manifest.environment.packages.get("torch", "-"),
        manifest.command,
    )
