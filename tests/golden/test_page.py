"""What the page of a run holds, compared byte for byte (`pytest --update-golden`).

Its script and style are not: a browser looks at what comes of them (tests/integration).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import stored
from test_golden_files import replicated, screening

from dynamometer.common import registry
from dynamometer.results.reports.page.document import page
from dynamometer.results.reports.page.run import RunToShow, run_to_show
from dynamometer.results.store import store

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.results.values.records import Record

HERE = Path(__file__).resolve().parent
STORED = sorted(path.parent for path in HERE.glob("format_*/*/manifest.json"))


def held(text: str) -> str:
    """Return all values of a page, one below the other."""
    found = re.findall(r'<script type="application/json" id="([^"]*)">(.*?)</script>', text)
    values = {name: json.loads(value) for name, value in found}
    values["data"]["version"] = "that of the program"
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("run", [screening, replicated], ids=lambda run: run.__name__)
def test_page(golden: Callable[[str, str], None], run: Callable[[], list[list[Record]]]) -> None:
    """A run in which everything happens, and one with replicates."""
    found = stored.run_of(run())
    shown = RunToShow(found.manifest, found.cases, found.reporter, Path("/no/where"))
    golden(f"page_{run.__name__}.json", held(page([shown])))


@pytest.mark.parametrize("directory", STORED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_stored_runs_have_a_page(directory: Path) -> None:
    """Of every study and format: each model is named, and the study's own figures are there."""
    manifest = store.read_manifest(directory)
    study = registry.study(manifest.plan.study)
    text = page([run_to_show(manifest, store.read_records(directory), study, directory)])
    values = json.loads(held(text))
    (run,) = values["data"]["runs"]
    assert {each["label"] for each in run["cases"]} == {each.label for each in manifest.plan.cases}
    assert run["part"]["is_timed"] or run["part"]["tables"] or manifest.plan.study == "accuracy"
    assert all(f"details-0-{index}" in values for index in range(run["ended"]))
