"""Runs by their commits, and which commits are near."""

from __future__ import annotations

import msgspec
import pytest

from dynamometer.results.history.commits import (
    begin_with,
    changed_commit_of,
    commit_of,
    is_hash,
    is_of,
    nearest,
)
from dynamometer.results.values.history import IndexedRun


def run(commit: str | None) -> IndexedRun:
    """Describe a run that was made on a commit."""
    return IndexedRun(
        run_id="a",
        created_at="2026-01-01T00:00:00+00:00",
        study="speedup",
        conditions={} if commit is None else {"commit of dynamometer": commit},
        setting={},
    )


@pytest.mark.parametrize(
    ("known", "clean", "changed"),
    [
        ("0123456789ab", "0123456789ab", None),
        ("0123456789ab-dirty", None, "0123456789ab"),
        ("not known", None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_the_commit_of_a_run(known: str | None, clean: str | None, changed: str | None) -> None:
    """A checkout with changes is on none."""
    assert commit_of(run(known)) == clean
    assert changed_commit_of(run(known)) == changed


def test_the_commit_of_what_was_measured_comes_first() -> None:
    """Where there is none, it is that of the checkout that measured."""
    both = msgspec.structs.replace(
        run(None), conditions={"commit": "aaaa1111", "commit of dynamometer": "bbbb2222"}
    )
    assert commit_of(both) == "aaaa1111"
    alone = {"commit": "not known", "commit of dynamometer": "bbbb2222"}
    assert commit_of(msgspec.structs.replace(both, conditions=alone)) == "bbbb2222"
    changed = {"commit": "aaaa1111-dirty", "commit of dynamometer": "bbbb2222"}
    assert commit_of(msgspec.structs.replace(both, conditions=changed)) is None


def test_hashes() -> None:
    """Short ones are those that git takes, and stand for what begins so."""
    words = ("abcd", "abc", "ABCD", "main", "0" * 64, "0" * 65)
    assert [each for each in words if is_hash(each)] == ["abcd", "0" * 64]
    assert is_of("abcdef", "abcd")
    assert is_of("abcd", "abcdef")
    assert not is_of("abcd", "abce")
    assert not is_of(None, "abcd")


def test_commits_that_begin_so() -> None:
    """Each once, however far it was shortened."""
    runs = [run(each) for each in ("abcd01", "abcd0123", "abcd", "abce01", "abcd01-dirty", None)]
    assert begin_with(runs, "abce") == ["abce01"]
    assert begin_with(runs[:2], "abcd") == ["abcd0123"]
    assert begin_with(runs, "ffff") == []
    assert begin_with([run("abcd01"), run("abcd02")], "abcd") == ["abcd01", "abcd02"]
    assert begin_with([run("abcd01")], "abcd0199") == ["abcd01"]  # typed in full


def test_near_commits() -> None:
    """Before and after, and on other branches, in steps; the commit itself is none of them."""
    #   a - b - c - d
    #        \- e - f
    parents = {
        f"{name}000": [f"{each}000" for each in own]
        for name, own in {"a": "", "b": "a", "c": "b", "d": "c", "e": "b", "f": "e"}.items()
    }
    known = {"a00", "d000", "f00", "c00", "elsewhere"}
    assert nearest(parents, "c000", known) == [("d000", 1), ("a00", 2), ("f00", 3)]
    assert nearest(parents, "c000", known, most=1) == [("d000", 1)]
    assert nearest(parents, "c000", {"elsewhere"}) == []
    assert nearest({}, "c000", known) == []


def test_a_long_history() -> None:
    """Of which each commit is looked at once."""
    parents = {str(each): [str(each - 1)] for each in range(1, 50_000)}
    assert nearest(parents, "49999", {"0"}) == [("0", 49_999)]
