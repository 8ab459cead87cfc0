"""Which failures are attempted again."""

from __future__ import annotations

import pytest

from dynamometer.common.command_line import cli


@pytest.mark.parametrize("word", ["pass", "skip", "no_such", "timeout,", ""])
def test_what_is_no_failure_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is run, with what there is."""
    assert cli.main("torchbench", ["--only", "alexnet", "--retries-for", word]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"--retries-for {word.rpartition(',')[2]}: no such failure" in said.replace("  ", " ")
    assert "fail_accuracy" in said
