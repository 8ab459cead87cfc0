from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.expected import Kind
from dynamometer.results.store.their_expected import compare, is_theirs, read_table

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """name,accuracy,graph_breaks



alexnet,pass,0



resnet18,fail_accuracy,6


"""
"""With blank lines between rows, as theirs are."""
ROW = {"name": "alexnet", "accuracy": "pass", "graph_breaks": 0, "unique_graphs": 1}


def table(folder: Path, text: str = TEXT) -> Path:
    """Write a table."""
    path = folder / "inductor_torchbench_inference.csv"
    path.write_text(text)
    return path


def test_theirs_are_told_from_ours(tmp_path: Path) -> None:
    """By their first columns; what can't be read is none."""
    assert is_theirs(table(tmp_path))
    assert not is_theirs(table(tmp_path, "case,arm,status,captured_ops,graph_breaks\n"))
    assert not is_theirs(table(tmp_path, ""))
    assert not is_theirs(tmp_path)


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    """They keep merges from conflicting."""
    found = read_table(table(tmp_path))
    assert [(name, row["accuracy"], row["graph_breaks"]) for name, row in found.items()] == [
        ("alexnet", "pass", "0"),
        ("resnet18", "fail_accuracy", "6"),
    ]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("alexnet,pass,0", "alexnet is there already"),
        (",pass,0", "no name or no accuracy"),
        ("vgg16,,0", "no name or no accuracy"),
        ("vgg16,pass,many", "graph_breaks of vgg16 is 'many'"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, row: str, says: str) -> None:
    """With the line."""
    with pytest.raises(StoreError, match=f"line 11: .*{says}"):
        read_table(table(tmp_path, f"{TEXT.rstrip()}\n\n{row}\n"))


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"accuracy": "fail_to_run"}, Kind.REGRESSION, "pass became fail_to_run"),
        ({"graph_breaks": 2}, Kind.REGRESSION, "0 graph_breaks became 2"),
        ({"name": "vgg16"}, Kind.NEW, "pass, which the table doesn't have"),
        ({"name": "resnet18"}, Kind.IMPROVEMENT, "fail_accuracy became pass"),
        (
            {"name": "resnet18", "accuracy": "fail_accuracy", "graph_breaks": 5},
            Kind.IMPROVEMENT,
            "6 graph_breaks became 5",
        ),
    ],
)
def test_changes_are_named(
    tmp_path: Path, fields: dict[str, object], kind: Kind, text: str
) -> None:
    """As their checkers see them: whatever differs is unexpected."""
    (found,) = compare(read_table(table(tmp_path)), "inductor", [{**ROW, **fields}])
    assert (found.kind, found.text, found.is_unexpected) == (kind, text, True)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"unique_graphs": 0, "graph_breaks": 9},
        {"graph_breaks": None},
        {"name": "resnet18", "accuracy": "fail_accuracy", "graph_breaks": 6},
    ],
    ids=["the same", "nothing captured", "not known", "a failure as expected"],
)
def test_what_is_as_expected_is_no_change(tmp_path: Path, fields: dict[str, object]) -> None:
    """Nor are counts of a model of which Dynamo captured nothing."""
    assert compare(read_table(table(tmp_path)), "inductor", [{**ROW, **fields}]) == []


def test_newer_tables_have_more_counts(tmp_path: Path) -> None:
    """Fewer operators captured are lost ground."""
    path = table(tmp_path, "name,accuracy,graph_breaks,calls_captured\nalexnet,pass,0,40\n")
    (found,) = compare(read_table(path), "inductor", [{**ROW, "calls_captured": 39}])
    assert (found.kind, found.text) == (Kind.REGRESSION, "40 calls_captured became 39")
