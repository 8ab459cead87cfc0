"""Which run is meant by a tag, a branch or a commit: the newest finished one made on it."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import click

from dynamometer.common.command_line.stored.indexing import RUNS, opened, refreshed
from dynamometer.common.errors import UsageError
from dynamometer.results.history import commits
from dynamometer.results.listing import first_of
from dynamometer.results.reports.texts import printable
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.overview import RunState, read_overview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.values.history import IndexedRun

_SHOWN = 12
"""Digits of a commit, as runs have them."""

_MOST_NAMED = 3
"""Runs, or commits, of which a message tells."""

_GIT_TAKES_S = 60.0


@dataclass(frozen=True)
class IndexedRuns:
    """What the index knows.

    Attributes:
        runs: all, the newest first.
        places: directories of runs, by id; of one that a file brought there is none.
    """

    runs: Sequence[IndexedRun]
    places: Mapping[str, Path]


@dataclass(frozen=True)
class RunsByCommit:
    """Finds runs by their commits; the index is brought up to date at the first.

    Attributes:
        asked: which index, and where runs are.
    """

    asked: Request

    @cached_property
    def known(self) -> IndexedRuns:
        """What the index knows."""
        with opened(self.asked) as index:
            refreshed(index)
            runs, _ = index.read({"metric": ()})
            return IndexedRuns([*runs.values()][::-1], index.places())

    def directory(self, name: str) -> Path:
        """Return the directory of the newest finished run that was made on a commit.

        Which that is is said on standard error.

        Args:
            name: a tag, a branch, anything else that git takes for a commit, or the beginning of a
                hash that is known to the index alone.

        Raises:
            UsageError: there is no such commit, there are several, or no such run; names those
                that are near.
        """
        commit = _revision(name)
        if commit is None and not commits.is_hash(name):
            _, _, complaint = _git("rev-parse", "--git-dir")
            why = f" ({complaint.splitlines()[0]})" if complaint else ""
            msg = (
                f"there is no {name}, nor a run of that name in {self.asked[RUNS]} (--output-dir),"
                f" and git knows no such tag, branch or commit here{why}"
            )
            raise UsageError(printable(msg))
        return _newest(name, commit or _only(name, self.known), self.known)


def _newest(name: str, wanted: str, known: IndexedRuns) -> Path:
    """Return the directory of the newest finished run of a commit, and say which it is.

    Raises:
        UsageError: there is none.
    """
    own = [each for each in known.runs if commits.is_of(commits.commit_of(each), wanted)]
    refused = []
    for each in own:
        place = known.places.get(each.run_id)
        why = "its rows are from a file, without its records" if place is None else _why_not(place)
        if place is not None and why is None:
            among = f", the newest finished one of {len(own)} runs" if len(own) > 1 else ""
            when = each.created_at[:16].replace("T", " ")
            said = f"{name}: commit {wanted[:_SHOWN]}, {place} of {when}{among}"
            click.echo(printable(said), err=True)
            return place
        refused.append(f"{place or each.run_id}: {why}")
    raise UsageError(printable(_nothing_of(name, wanted, known, refused)))


def _why_not(place: Path) -> str | None:
    """Return why a run is not taken; `None` of one that has ended."""
    try:
        found = read_overview(place)
    except StoreError as error:
        return str(error)
    return None if found.state is RunState.DONE else found.progress


def _only(start: str, known: IndexedRuns) -> str:
    """Return the commit of the index that begins so.

    Raises:
        UsageError: there is none, or there are several.
    """
    found = commits.begin_with(known.runs, start)
    if len(found) > 1:
        msg = f"{start} is the beginning of several commits: {', '.join(found)}"
        raise UsageError(msg)
    return found[0] if found else start


def _nothing_of(name: str, commit: str, known: IndexedRuns, refused: Sequence[str]) -> str:
    """Say that no run can be taken, why not those there are, and which commits have some."""
    changed = [
        f"{known.places.get(each.run_id, each.run_id)}: the checkout had changes"
        for each in known.runs
        if commits.is_of(commits.changed_commit_of(each), commit)
    ]
    reasons = [*refused, *changed]
    of = "" if commit.startswith(name) else f" ({name})"
    text = f"no finished run was made on the commit {commit[:_SHOWN]}{of}"
    if reasons:
        text += f" [{first_of(reasons, _MOST_NAMED, '; ')}]"
    others = {
        found: each.created_at[:10]
        for each in reversed(known.runs)
        if each.run_id in known.places
        and (found := commits.commit_of(each))
        and not commits.is_of(found, commit)
    }
    if not others:
        return f"{text}; nor was any on another commit that is known"
    parents = _parents(commit)
    near = [
        f"{found} ({steps} commit{'s' * (steps > 1)} away)"
        for found, steps in commits.nearest(parents, commit, others, _MOST_NAMED)
    ]
    if near:
        return f"{text}; the nearest with runs: {', '.join(near)}"
    last = [f"{found} (run of {day})" for found, day in [*others.items()][: -_MOST_NAMED - 1 : -1]]
    if parents:
        text += (
            "; no commit with runs leads to it in this repository: a run knows that of the folder"
            " it was begun in, or that of its dynamometer"
        )
    return f"{text}; the latest with runs: {', '.join(last)}"


def _revision(name: str) -> str | None:
    """Return the commit that git takes a name for, in full; `None` where it knows of none.

    Raises:
        UsageError: it may be several.
    """
    if not name or name.startswith("-") or "\0" in name:
        return None
    code, said, complaint = _git("rev-parse", "--verify", f"{name}^{{commit}}")
    if code == 0 and (found := re.search(r"refname '(.+)' is ambiguous", complaint)):
        _check_refs(found[1])
    if code == 0:
        return said if re.fullmatch(r"[0-9a-f]{40,64}", said) else None
    if "is ambiguous" in complaint and commits.is_hash(name):
        _, objects, _ = _git("rev-parse", f"--disambiguate={name}")
        _, kinds, _ = _git("cat-file", "--batch-check", given=objects + "\n")
        found_all = [line.split() for line in kinds.splitlines()]
        among = ", ".join(sorted(each[0][:_SHOWN] for each in found_all if each[1] == "commit"))
        msg = f"{name} is the beginning of several commits: {among}"
        raise UsageError(msg)
    return None


def _check_refs(name: str) -> None:
    """Refuse a name that a tag and a branch have, unless they are of one commit.

    Raises:
        UsageError: they are of several.
    """
    form = "--format=%(refname) %(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
    folders = ("tags", "heads", "remotes")
    _, said, _ = _git("for-each-ref", form, *(f"refs/{each}/{name}" for each in folders))
    found = [line.split() for line in said.splitlines()]
    if len({commit for _, commit in found}) > 1:
        among = ", ".join(f"{ref} ({commit[:_SHOWN]})" for ref, commit in found)
        msg = f"{name} is ambiguous: name one of {among}"
        raise UsageError(msg)


def _parents(commit: str) -> dict[str, list[str]]:
    """Return the parents of each commit of the repository, or nothing where git can't say."""
    code, said, _ = _git("rev-list", "--parents", "--all", commit, "--")
    lines = (line.split() for line in said.splitlines()) if code == 0 else ()
    return {first: rest for first, *rest in lines}


def _git(*words: str, given: str = "") -> tuple[int, str, str]:
    """Ask git in the current directory: its exit code, what it says, and what it complains of."""
    try:
        done = subprocess.run(  # noqa: S603  a name that was typed, which is no option
            ["git", *words], input=given.encode(), capture_output=True, check=False,  # noqa: S607  git, wherever its user has it
            timeout=_GIT_TAKES_S, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, "", str(error)
    out, complaint = (each.decode(errors="replace").strip() for each in (done.stdout, done.stderr))
    return done.returncode, out, complaint
