"""Which runs were made on a commit, and which commits that have runs are near to it. Pure."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dynamometer.results.values.history import IndexedRun

_COMMITS = ("commit", "commit of dynamometer")
"""Conditions of a run that hold a commit, shortened: of the repository it was begun in, or, of
runs that knew none, of the checkout it was made with."""

_DIRTY = "-dirty"
_HASH = re.compile(r"[0-9a-f]{4,64}")


def is_hash(text: str) -> bool:
    """Return whether a word may be a commit's hash, or the beginning of one."""
    return _HASH.fullmatch(text) is not None


def commit_of(run: IndexedRun) -> str | None:
    """Return the commit that a run was made on.

    `None` where it isn't known, or where the checkout had changes: that was no commit.
    """
    found = _said(run)
    return found if is_hash(found) else None


def changed_commit_of(run: IndexedRun) -> str | None:
    """Return the commit that a run was made on with changes; `None` of any other run."""
    found = _said(run)
    return found.removesuffix(_DIRTY) if found.endswith(_DIRTY) else None


def _said(run: IndexedRun) -> str:
    """Return what a run knows of its commit, which may be that there is none."""
    said = (run.conditions.get(each, "") for each in _COMMITS)
    return next((each for each in said if is_hash(each.removesuffix(_DIRTY))), "")


def is_of(known: str | None, commit: str) -> bool:
    """Return whether two hashes, either of which may be shortened, are of one commit."""
    return known is not None and (known.startswith(commit) or commit.startswith(known))


def begin_with(runs: Iterable[IndexedRun], start: str) -> list[str]:
    """Return the commits of some runs that begin so, each once, in the longest form there is."""
    found: list[str] = []
    for each in sorted({each for each in map(commit_of, runs) if is_of(each, start)}, key=str):
        if found and is_of(each, found[-1]):
            found.pop()
        found.append(str(each))
    return found


def nearest(
    parents: Mapping[str, Sequence[str]], commit: str, known: Collection[str], most: int = 3
) -> list[tuple[str, int]]:
    """Return the commits with runs that are nearest to another, and how many steps that is.

    Args:
        parents: of each commit of the repository, in full.
        commit: in full.
        known: commits with runs, shortened.
        most: how many are wanted.
    """
    beside = defaultdict(list)
    for each, own in parents.items():
        for parent in own:
            beside[each].append(parent)
            beside[parent].append(each)
    lengths = sorted({len(each) for each in known})
    steps, waiting = {commit: 0}, deque([commit])
    found: list[tuple[str, int]] = []
    while waiting and len(found) < most:
        at = waiting.popleft()
        short = next((at[:length] for length in lengths if at[:length] in known), None)
        if short is not None and at != commit:
            found.append((short, steps[at]))
        for other in beside[at]:
            if other not in steps:
                steps[other] = steps[at] + 1
                waiting.append(other)
    return found
