"""What other programs read, compared byte for byte (`pytest --update-golden`)."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import factories
import pytest
import stored
from test_golden_files import replicated, screening

from dynamometer.common import registry
from dynamometer.results.exports.export import StoredRun
from dynamometer.results.store import store

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
STORED = sorted(path.parent for path in HERE.glob("format_*/*/manifest.json"))
FORMATS = sorted(name for name in registry.targets("exports"))


def reading(directory: Path) -> StoredRun:
    """Read a run that an earlier version has made."""
    manifest = store.read_manifest(directory)
    records = tuple(store.read_records(directory))
    return StoredRun(manifest, records, registry.study(manifest.plan.study))


RUNS: dict[str, Callable[[], StoredRun]] = {
    "stored_speedup": lambda: reading(HERE / "format_2" / "speedup"),
    "stored_coverage": lambda: reading(HERE / "format_3" / "coverage"),
    "interrupted": lambda: stored.run_of(
        [*screening(), *replicated()[1:]], factories.case("never_run", ("baseline", "ts"))
    ),
}


def parsed(name: str, text: str) -> None:
    """Read a document as what its name says it is."""
    match Path(name).suffix:
        case ".json":
            lines = text.splitlines() if text.startswith('{"') else [text]
            for line in lines:
                json.loads(line)
        case ".xml":
            ET.fromstring(text)
        case ".csv":
            head, *rows = csv.reader(io.StringIO(text))
            assert {len(row) for row in rows if row} <= {len(head)}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("run", RUNS)
def test_exports(golden: Callable[[str, str], None], run: str, form: str) -> None:
    """Every export of runs that were stored, and of one in which everything happens."""
    for document in registry.resolve("exports", form)(RUNS[run]()):
        parsed(document.name, document.text)
        golden(f"exports/{run}/{form}/{document.name}", document.text)


@pytest.mark.parametrize("directory", STORED, ids=lambda path: f"{path.parent.name}_{path.name}")
def test_every_stored_run_can_be_exported(directory: Path) -> None:
    """Whatever it asked, in every format."""
    for form in FORMATS:
        for document in registry.resolve("exports", form)(reading(directory)):
            parsed(document.name, document.text)
