"""Scripts that set what we take beside what others' harnesses take."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
from argparse import Namespace
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import against_dynamobench
import against_paritybench
import factories
import interval_widths
from overhead_parts import _difference

from dynamometer.results.values.records import PASSED, Status

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOTAL = "TOTAL: [('projects', 2), ('tests', 7), ('crash', 1)], took 12.1 seconds"


def test_tests_of_ours_without_a_result_are_lost() -> None:
    """As theirs are: they count neither as results nor in the rate, and a file may be lost."""
    ended = {"one.A": Status.PASS, "one.B": Status.TIMEOUT, "two.A": Status.CRASH,
             "two.B": Status.INFRA, "three.A": Status.SKIP}  # fmt: skip
    records = [
        factories.record(
            factories.case(name),
            outcome=PASSED if status is Status.PASS else factories.failure(status),
        )
        for name, status in ended.items()
    ]
    done = against_paritybench.Done(10.0, 10.0, TOTAL)
    asked = Namespace(files=3, seed=0, jobs=2)
    text = against_paritybench._page(asked, [done, done], done, records)
    assert "| files lost | 1 of 3 | 1 | | 1 |" in text
    assert "| tests with a result | 7 | 7 | | 2 |" in text
    assert "| 0.70 | 0.40 (0.6 times) |" in text
    assert "`--jobs 2`" in text


def drawn(seed: int, rounds: int = 60) -> list[float]:
    """Draw times of rounds, which are 0 but for noise."""
    draw = random.Random(seed)
    return [draw.gauss(0.0, 1.0) for _ in range(rounds)]


def test_intervals_of_trimmed_means_hold_what_is_true() -> None:
    """In 95 % of all cases, though the rounds that differ most are left out."""
    found = [_difference(drawn(seed), [0.0] * 60) for seed in range(600)]
    share = statistics.fmean(abs(each.mean_us) <= each.margin_us for each in found)
    assert 0.93 <= share <= 0.97


def test_reasons_with_commas_move_no_figure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The table is read as CSV."""
    table = (
        'name,verdict_reason,replicates,speedup\ndcgan,"partly within 2 %, partly beyond",5,1.2\n'
    )

    def run(command: list[str], **_: object) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "a.csv").write_text(table)

    monkeypatch.setattr(subprocess, "run", run)
    folder = nullcontext(str(tmp_path))
    monkeypatch.setattr(interval_widths.tempfile, "TemporaryDirectory", lambda: folder)
    own, _ = interval_widths._ours("dcgan")
    assert (own["replicates"], own["speedup"]) == ("5", "1.2")


def test_what_their_harness_does_not_run_leaves_the_other_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And the page says why it is not among them."""

    def theirs(model: str, *_: object) -> tuple[float, str]:
        if model == "dcgan":
            msg = "performance: more than 600 s"
            raise against_dynamobench.NotRunError(msg)
        return 20.0, "1.100x"

    own = {"replicates": "3", "speedup": "1.2", "speedup_low": "1.1", "speedup_high": "1.3"}
    monkeypatch.setattr(interval_widths, "_ours", lambda _: (own, 30.0))
    monkeypatch.setattr(interval_widths, "_their_run", theirs)
    page = tmp_path / "page.md"
    argv = ["interval_widths.py", "--checkout", str(tmp_path), "--output", str(page)]
    monkeypatch.setattr(sys, "argv", [*argv, "--only", "dcgan", "--only", "resnet18"])
    assert interval_widths.main() == 0
    assert "| resnet18 | 30.0 | 3 |" in page.read_text()
    assert "- dcgan: performance: more than 600 s" in page.read_text()


def record(status: str, seconds: float) -> dict[str, Any]:
    """Make what is read of a record."""
    outcome = {"status": status, "reason": None if status == "pass" else "why"}
    return {"outcome": outcome, "seconds": {"compile": seconds}, "case": {"batch_size": 1}}


def test_only_models_that_pass_on_both_sides_are_in_the_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Others are named, and their seconds count on neither side."""
    records = {"a": record("pass", 10.0), "b": record("fail", 500.0), "c": record("pass", 70.0)}
    accuracy = {"a": "pass", "b": "pass", "c": "pass_due_to_skip"}
    monkeypatch.setattr(
        against_dynamobench,
        "_theirs",
        lambda name, *_: against_dynamobench.Theirs(10.0, 10.0, accuracy[name], "1.1x"),
    )
    monkeypatch.setattr(against_dynamobench, "_ours", lambda *_: (dict(records), "x a frames, 1x"))
    clock = iter([0.0, 590.0])
    monkeypatch.setattr(against_dynamobench.time, "monotonic", lambda: next(clock))
    page = tmp_path / "page.md"
    words = ["--checkout", str(tmp_path), "--output", str(page)]
    words += [word for name in records for word in ("--model", name)]
    monkeypatch.setattr(sys, "argv", ["against_dynamobench.py", *words])
    assert against_dynamobench.main() == 0
    text = page.read_text()
    assert "| all, start included | 10.0 | 10.0 | 20.0 | 20.0 | **100%** | | |" in text
    assert "- b: fail here: why" in text
    assert "- c: there: pass_due_to_skip" in text
    assert "start included" in text
