"""What must be typed, of every command there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from dynamometer.common.command_line import cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _called_short(group: click.Group, *before: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command with one required argument left out, and all after it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from _called_short(found, *before, name)
        required = [
            each for each in found.params if isinstance(each, click.Argument) and each.required
        ]
        for count in range(len(required)):
            yield (*before, name, *("word" for _ in required[:count]))


_SHORT = [*_called_short(cli._program())]


def test_there_are_such_commands() -> None:
    """They are found, in groups as well."""
    assert {("explain",), ("repro", "word"), ("corpus", "import")} <= {*_SHORT}


@pytest.mark.parametrize("words", _SHORT, ids=" ".join)
def test_a_required_argument_is_missed(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is a usage error that names it, before anything is done or written."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(None, words) == 2
    assert "Missing argument" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
