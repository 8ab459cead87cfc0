"""What came of models with each backend adds up over runs, and is written and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends import Row, merged, page, read_table, write_table

from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from pathlib import Path


def row(model: str, status: Status = Status.PASS, reason: str = "") -> Row:
    """Make a row of one suite and backend."""
    return Row("torchbench", model, "onnx", "2.13.0+cpu", status, reason)


BEFORE = [row("b"), row("a", Status.FAIL, "no rule, for | it"), row("c", Status.SKIP, "no input")]
NOW = [row("a", Status.FAIL_ACCURACY, "output: N elements are wrong"), row("d")]


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    """With reasons that hold what separates fields."""
    write_table(BEFORE, tmp_path / "table.csv")
    assert read_table(tmp_path / "table.csv") == BEFORE


def test_the_last_run_of_a_model_counts() -> None:
    """What is known of others stays."""
    found = merged([*BEFORE, *NOW])
    assert [each.model for each in found] == ["a", "b", "c", "d"]
    assert found[0] == NOW[0]


def test_the_page_counts_and_says_why_not() -> None:
    """Models that are skipped are counted apart."""
    text = page(merged([*BEFORE, row("e", Status.FAIL, "no rule, for | it")]))
    assert "4 of torchbench" in text
    assert "| `onnx` | 1/3, 1 skipped |" in text
    assert "| `onnx` | fail | no rule, for \\| it | a, e |" in text
