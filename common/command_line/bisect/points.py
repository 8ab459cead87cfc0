"""The points of a search: commits of a repository, or names with a command that switches to one."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import dynamometer
from dynamometer.common.errors import UsageError
from dynamometer.results.values.cases import Value

if TYPE_CHECKING:
    from collections.abc import Sequence


class Point(Value, frozen=True):
    """Something that can be measured."""

    name: str
    """A commit's hash, or what was typed."""
    title: str
    """What a person knows it by."""


class Points(Protocol):
    """Where points come from, and how one is switched to."""

    @property
    def found(self) -> Sequence[Point]:
        """All points, from the good end to the bad one."""
        ...

    def switch(self, point: Point) -> str | None:
        """Make a point what is measured next; say why that can't be."""
        ...

    def restore(self) -> None:
        """Leave things as they were found, as far as that can be."""
        ...


@dataclass(frozen=True)
class Commits:
    """Commits of a git repository, which is switched in its own work tree.

    Attributes:
        folder: the work tree.
        found: the good commit, and each after it on the way to the bad one.
        at: the branch or commit that was checked out before.
        build: run by a shell in the work tree after each switch; `None` for nothing.
        log: takes what git and the build say.
    """

    folder: Path
    found: Sequence[Point]
    at: str
    build: str | None
    log: Path

    def switch(self, point: Point) -> str | None:
        """Check a commit out, and build it."""
        _git(self.folder, "checkout", "--quiet", "--detach", point.name)
        if self.build is None:
            return None
        code = _shell(self.build, self.folder, self.log)
        return None if code == 0 else f"it can't be built: exit code {code}, see {self.log}"

    def restore(self) -> None:
        """Check out what was."""
        _git(self.folder, "checkout", "--quiet", self.at)


def commits(folder: Path, good: str, bad: str, build: str | None, log: Path) -> Commits:
    """Return the commits between two, along the first parents of merges.

    Args:
        folder: of a repository, or below it.
        good: a revision.
        bad: one that has it among its ancestors.
        build: run by a shell after each switch.
        log: takes what that says.

    Raises:
        UsageError: there is no repository, no such revision, or no way from one to the other; it
            has changes that a switch would lose; or it is the repository that runs this.
    """
    top = Path(_git(folder, "rev-parse", "--show-toplevel"))
    if Path(dynamometer.__file__).resolve().is_relative_to(top.resolve()):
        msg = f"{top} holds the dynamometer that is running: bisect another clone of it (--repo)"
        raise UsageError(msg)
    if _git(top, "status", "--porcelain", "--untracked-files=no"):
        msg = f"{top} has changes that are in no commit: commit them, or git stash"
        raise UsageError(msg)
    first, last = (_git(top, "rev-parse", "--verify", f"{each}^{{commit}}") for each in (good, bad))
    later = _git(top, "rev-list", "--first-parent", "--reverse", f"{first}..{last}").split()
    if not later or _git(top, "merge-base", first, last) != first:
        msg = f"{good} is no ancestor of {bad}: --good is the older one"
        raise UsageError(msg)
    titles = _git(top, "log", "--no-walk=unsorted", "--format=%h %as %an: %s", first, *later)
    branch = _git(top, "rev-parse", "--abbrev-ref", "HEAD")
    at = _git(top, "rev-parse", "HEAD") if branch == "HEAD" else branch
    found = [Point(*each) for each in zip([first, *later], titles.splitlines(), strict=True)]
    return Commits(top, found, at, build, log)


@dataclass(frozen=True)
class Names:
    """Names, such as versions of a package, and a command that switches to one of them.

    Attributes:
        found: in order, the good one first.
        switching: run by a shell; `{}` in it is the name.
        log: takes what it says.
    """

    found: Sequence[Point]
    switching: str
    log: Path

    def switch(self, point: Point) -> str | None:
        """Run the command."""
        code = _shell(self.switching.replace("{}", shlex.quote(point.name)), Path.cwd(), self.log)
        return None if code == 0 else f"it can't be switched to: exit code {code}, see {self.log}"

    def restore(self) -> None:
        """Stay at the last: nothing is known of what was there before."""


def names(words: str, switching: str | None, log: Path) -> Names:
    """Return points that were typed.

    Args:
        words: names, separated by commas, the good one first.
        switching: the command.
        log: takes what it says.

    Raises:
        UsageError: there are fewer than two, or no command, or one without a place for the name.
    """
    found = [each.strip() for each in words.split(",") if each.strip()]
    if len(found) < 2 or len(set(found)) < len(found):  # noqa: PLR2004  the two ends
        msg = f"--among {words!r}: two names or more, each once, the good one first"
        raise UsageError(msg)
    if switching is None or "{}" not in switching:
        msg = "--among needs --switch COMMAND, with {} for the name: 'pip install torch=={}'"
        raise UsageError(msg)
    return Names([Point(each, each) for each in found], switching, log)


def _git(folder: Path, *arguments: str) -> str:
    """Ask git.

    Raises:
        UsageError: it says no, or there is none.
    """
    words = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(  # noqa: S603  revisions are the user's own
            words, capture_output=True, text=True, check=False, errors="replace"
        )
    except OSError as error:
        msg = f"git can't be run: {error.strerror}"
        raise UsageError(msg) from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        msg = f"git {arguments[0]} in {folder}: {said[-1]}"
        raise UsageError(msg)
    return done.stdout.strip()


def _shell(command: str, folder: Path, log: Path) -> int:
    """Run what was typed for a shell, and give its exit code."""
    with log.open("ab") as stream:
        words = ["/bin/sh", "-c", command]
        done = subprocess.run(words, cwd=folder, stdout=stream, stderr=stream, check=False)  # noqa: S603  what was typed is what is to be run
    return done.returncode
