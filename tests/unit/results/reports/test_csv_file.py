"""One CSV file where the user wants it."""

from __future__ import annotations

import ast
import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import fakes
import pytest

from dynamometer.common.studies.accuracy.study import STUDY as ACCURACY
from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.reports.csv_file import CsvFile
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from dynamometer.results.reports.csv_file import Kept
    from dynamometer.results.reports.sinks import Reporter

THEIR_HARNESS = Path(
    os.environ.get("TORCHBENCH_ROOT", ""), "userbenchmark/dynamo/dynamobench/common.py"
)


def add(path: Path, *models: str, reporter: Reporter = STUDY, kept: Kept = "all") -> None:
    """Have a run write cases of models into a file."""
    sink = CsvFile(reporter, path, kept)
    assert sink.paths == ()
    for model in models:
        sink.write([factories.measured_record(factories.case(model))])
    sink.close()


def rows(path: Path) -> list[dict[str, str]]:
    """Read it back."""
    return list(csv.DictReader(path.read_text().splitlines()))


def test_it_has_their_columns(tmp_path: Path) -> None:
    """Those of PyTorch's file of speedups, and a row of each model."""
    path = tmp_path / "deep" / "x.csv"
    add(path, "resnet18", "dcgan")
    found = rows(path)
    assert [each["name"] for each in found] == ["resnet18", "dcgan"]
    assert list(found[0])[:5] == ["dev", "name", "batch_size", "speedup", "abs_latency"]
    assert "speedup_low" not in found[0]


def test_a_full_disk_takes_no_earlier_rows(tmp_path: Path) -> None:
    """What stood there stays until there is something to stand in its place."""
    path = tmp_path / "x.csv"
    add(path, "resnet18")
    before = path.read_text()
    refused = pytest.raises(StoreError, match=r"x\.csv can't be written: File too large")
    with fakes.files_of_at_most(10), refused:
        add(path, "dcgan")
    assert [each.name for each in tmp_path.iterdir()] == ["x.csv"]
    assert path.read_text() == before


def test_cells_beyond_the_header_stay(tmp_path: Path) -> None:
    """They are the user's; nothing of ours is."""
    path = tmp_path / "x.csv"
    add(path, "resnet18")
    path.write_text(path.read_text().rstrip() + ",mine\n")
    add(path, "dcgan")
    assert [line.endswith(",mine") for line in path.read_text().splitlines()] == [
        False,
        True,
        False,
    ]


@pytest.mark.skipif(not THEIR_HARNESS.is_file(), reason="TORCHBENCH_ROOT names no checkout")
def test_columns_are_those_of_a_checkout(tmp_path: Path) -> None:
    """What their harness counts of a capture stands in ours, in its order."""
    tree = ast.parse(THEIR_HARNESS.read_text())
    (counting,) = (
        each for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef) and each.name == "get_dynamo_stats"
    )  # fmt: skip
    (counted,) = (each for each in ast.walk(counting) if isinstance(each, ast.Dict))
    theirs = [ast.literal_eval(key) for key in counted.keys if key is not None]
    assert len(theirs) >= 4
    path = tmp_path / "x.csv"
    add(path, "resnet18")
    assert list(rows(path)[0])[-len(theirs) :] == theirs


def test_rows_are_added(tmp_path: Path) -> None:
    """A second run adds its models: it may have another dtype, which no column names."""
    path = tmp_path / "x.csv"
    add(path, "resnet18", "dcgan")
    add(path, "vgg16", "resnet18")
    assert [each["name"] for each in rows(path)] == ["resnet18", "dcgan", "vgg16", "resnet18"]


def test_a_run_that_is_resumed_replaces_its_own(tmp_path: Path) -> None:
    """The cases that ended before come once more."""
    path = tmp_path / "x.csv"
    add(path, "resnet18", "dcgan")
    add(path, "dcgan", "vgg16", kept="other models")
    assert [each["name"] for each in rows(path)] == ["resnet18", "dcgan", "vgg16"]


def test_it_begins_anew_if_so_asked(tmp_path: Path) -> None:
    """A run of a whole suite leaves nothing of an earlier one."""
    path = tmp_path / "x.csv"
    add(path, "resnet18")
    add(path, "dcgan", kept="nothing")
    assert [each["name"] for each in rows(path)] == ["dcgan"]


def test_other_columns_are_kept_beside_it(tmp_path: Path) -> None:
    """Accuracy has columns of its own: nothing that was in the file is lost, whatever follows."""
    path = tmp_path / "x.csv"
    add(path, "resnet18")
    add(path, "dcgan", reporter=ACCURACY)
    assert rows(path)[0]["accuracy"] == "pass"
    add(path, "vgg16")
    names = ["x.csv.before", "x.csv.before2", "x.csv"]
    found = [[each["name"] for each in rows(tmp_path / name)] for name in names]
    assert found == [["resnet18"], ["dcgan"], ["vgg16"]]


def test_what_can_not_be_read_or_written_is_said(tmp_path: Path) -> None:
    """Both name the file."""
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError, match=r"bytes\.csv, line 1 can't be read"):
        add(tmp_path / "bytes.csv", "resnet18")
    with pytest.raises(StoreError, match="can't be written"):
        add(tmp_path, "resnet18", kept="nothing")
