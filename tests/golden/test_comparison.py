"""What a comparison of two stored runs says, compared byte for byte (`pytest --update-golden`).

They were made up (tests/simulated_runs.py): one model is slower, one faster, one fails and one no
more, one is gone and one new; of one it is eager that is faster. A model has a name that must not
be taken for a tag.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from dynamometer.common.command_line import cli
from dynamometer.results.reports.comparison.markdown import markdown
from dynamometer.results.values.comparison import Change, Comparison, Finding, SideSummary

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = Path(__file__).resolve().parent / "comparison"
WORDS = ["compare", "before", "after", "--fail-on", "regression,newly-failing,passrate<95"]


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_comparison(
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
) -> None:
    """What differs first, then the table, then each model of which there is something to say."""
    monkeypatch.chdir(RUNS)
    assert cli.main(None, [*WORDS, *([] if form == "text" else [f"--{form}"])]) == 1
    text = capsys.readouterr().out
    golden(f"comparison.{ {'text': 'txt', 'markdown': 'md', 'json': 'json'}[form] }", text)
    if form == "json":
        found = msgspec.json.decode(text, type=Comparison)
        assert msgspec.json.decode(msgspec.json.encode(found), type=Comparison) == found


def test_a_run_beside_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names nothing."""
    monkeypatch.chdir(RUNS)
    assert cli.main(None, ["compare", "before", "before", "--fail-on", "regression,gone,new"]) == 0
    text = capsys.readouterr().out
    assert "no difference is known" in text
    assert "nothing newly failing, slower, newly passing, faster, gone or new" in text


def comparison(*findings: Finding) -> Comparison:
    """Make one of which nothing else is known."""
    side = SideSummary(source="a", cases=1)
    return Comparison(
        before=side, after=side, conditions=(), is_forced=False, notes=(), tables=(), counts=(),
        drift=None, findings=findings,
    )  # fmt: skip


def test_markdown_fits_a_comment() -> None:
    """However much there is to say, the worst comes first and the rest is counted."""
    finding = Finding(
        change=Change.SLOWER, suite="s", model="m", mode="inference", arm="a", text="x" * 200
    )
    text = markdown(
        comparison(*[finding] * 1000, msgspec.structs.replace(finding, change=Change.GONE))
    )
    assert 40_000 < len(text) < 60_000
    shown = text.count("x" * 200)
    assert f"- and {1000 - shown} more; --json has all" in text
    assert "#### Slower (1000)" in text
    assert "<summary>Gone (1)</summary>" in text


def test_markdown_obeys_no_name() -> None:
    """A name that somebody else chose makes no link, mentions nobody, and ends no code."""
    finding = Finding(
        change=Change.SLOWER, suite="s", model="[x](https://x.org) @octocat", mode="inference",
        arm="a", text="<img src=x>", command="run `x|y`\n# big",
    )  # fmt: skip
    text = markdown(comparison(finding))
    assert r"\[x\](https://x.org)" in text
    assert "@octocat" not in text
    assert r"\<img src=x>" in text
    assert "  `` run `x|y` # big ``\n" in text
