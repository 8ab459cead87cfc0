"""The points of a search: commits of a repository, or names with a command that switches to one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import dynamometer
from dynamometer.common.command_line.bisect.processes import asked, run_logged
from dynamometer.common.errors import UsageError
from dynamometer.results.values.cases import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM = Path(dynamometer.__file__)


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

    def restore(self) -> str | None:
        """Leave things as they were found, as far as that can be; say what can't."""
        ...


@dataclass(frozen=True)
class Commits:
    """Commits of a git repository, which is switched in its own work tree.

    Attributes:
        folder: the work tree.
        found: the good commit, and each after it on the way to the bad one.
        at: the branch's reference, or else the commit, that was checked out when the search began.
        build: run by a shell in the work tree after each switch; `None` for nothing.
        log: takes what the build says.
    """

    folder: Path
    found: Sequence[Point]
    at: str
    build: str | None
    log: Path

    def switch(self, point: Point) -> str | None:
        """Check a commit out, and build it."""
        try:
            # The tree was clean: only a build can have changed files of the commit before.
            _git(self.folder, "reset", "--quiet", "--hard")
            _git(self.folder, "checkout", "--quiet", "--detach", point.name)
        except UsageError as error:
            return str(error)
        if self.build is None:
            return None
        code = run_logged(["/bin/sh", "-c", self.build], self.folder, self.log)
        return None if code == 0 else f"it can't be built: exit code {code}, see {self.log}"

    def restore(self) -> str | None:
        """Check out what was. Nothing is built."""
        branch = self.at.removeprefix(_BRANCH)
        try:
            _git(self.folder, "reset", "--quiet", "--hard")
            if branch == self.at:
                _git(self.folder, "checkout", "--quiet", "--detach", self.at)
            else:
                _git(self.folder, "switch", "--quiet", branch)
        except UsageError as error:
            return f"{self.at} is not checked out again: {error}"
        return None

    @property
    def is_on_branch(self) -> bool:
        """Whether a branch was checked out, and not one of the commits that a search checks out."""
        return self.at.startswith(_BRANCH)


_BRANCH = "refs/heads/"


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
    if asked(["git", "-C", str(top), "ls-files", "--error-unmatch", str(_PROGRAM)]).returncode == 0:
        msg = f"{top} holds the dynamometer that is running: bisect another clone of it (--repo)"
        raise UsageError(msg)
    if _git(top, "status", "--porcelain", "--untracked-files=no"):
        msg = f"{top} has changes that are in no commit: commit them, or git stash"
        raise UsageError(msg)
    first, last = _commit(top, good, "--good"), _commit(top, bad, "--bad")
    later = _git(top, "rev-list", "--first-parent", "--reverse", f"{first}..{last}").split()
    _check_way(top, (good, first), (bad, last))
    _check_chain(top, (good, first), bad, later)
    found = _titled(top, [first, *later])
    branch = asked(["git", "-C", str(top), "symbolic-ref", "--quiet", "HEAD"])
    at = branch.stdout.decode().strip() or _git(top, "rev-parse", "HEAD")
    return Commits(top, found, at, build, log)


def _commit(top: Path, revision: str, flag: str) -> str:
    """Return the commit that a revision names.

    Raises:
        UsageError: there is none.
    """
    words = ["rev-parse", "--quiet", "--verify", f"{revision}^{{commit}}"]
    found = asked(["git", "-C", str(top), *words])
    if found.returncode:
        msg = f"there is no commit {revision!r} in {top} ({flag})"
        raise UsageError(msg)
    return found.stdout.decode().strip()


def _check_way(top: Path, good: tuple[str, str], bad: tuple[str, str]) -> None:
    """Refuse two revisions of which the first is no ancestor of the other.

    Raises:
        UsageError: it is none.
    """
    if good[1] == bad[1]:
        msg = f"{good[0]} and {bad[0]} are one commit: there is nothing between them"
        raise UsageError(msg)
    base = asked(["git", "-C", str(top), "merge-base", good[1], bad[1]]).stdout.decode().strip()
    if base != good[1]:
        hint = (
            f"they part at {base[:12]}, which may be --good"
            if base and base != bad[1]
            else "--good is the older one"
            if base
            else "they have nothing in common; a shallow clone needs git fetch --unshallow"
        )
        msg = f"{good[0]} is no ancestor of {bad[0]}: {hint}"
        raise UsageError(msg)


def _check_chain(top: Path, good: tuple[str, str], bad: str, later: Sequence[str]) -> None:
    """Refuse a good commit that was merged in: commits before that merge don't contain it.

    Raises:
        UsageError: it was; names the merge.
    """
    _, *parents = _git(top, "rev-list", "--parents", "-1", later[0]).split()
    if parents[:1] == [good[1]]:
        return
    way = set(_git(top, "rev-list", "--ancestry-path", f"{good[1]}..{later[-1]}").split())
    merge = next(each for each in later if each in way)
    _, *parents = _git(top, "rev-list", "--parents", "-1", merge).split()
    ends = [each[:12] for each in parents if each in way]
    branch = f", or search its branch with --bad {ends[0]}" if ends else ""
    msg = (
        f"{good[0]} came into {bad} by the merge {merge[:12]}, and commits before that lack it:"
        f" --good {merge[:12]} if that one is good{branch}"
    )
    raise UsageError(msg)


def _titled(top: Path, hashes: Sequence[str]) -> list[Point]:
    """Return commits with what people know them by, whatever their subjects hold."""
    words = ["-c", "log.showSignature=false", "log", "--no-walk=unsorted", "--stdin"]
    said = _git(top, *words, "--format=%H %h %as %an: %s%x00", given="\n".join(hashes) + "\n")
    titles = dict(each.strip().split(" ", 1) for each in said.split("\0") if each.strip())
    return [Point(each, titles.get(each, each)) for each in hashes]


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
        command = self.switching.replace("{}", shlex.quote(point.name))
        code = run_logged(["/bin/sh", "-c", command], Path.cwd(), self.log)
        return None if code == 0 else f"it can't be switched to: exit code {code}, see {self.log}"

    def restore(self) -> str | None:
        """Stay at the last: nothing is known of what was there before."""
        return None


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


def _git(folder: Path, *arguments: str, given: str | None = None) -> str:
    """Ask git.

    Raises:
        UsageError: it says no, or there is none.
    """
    try:
        done = asked(["git", "-C", str(folder), *arguments], given)
    except OSError as error:
        msg = f"git can't be run: {error.strerror}"
        raise UsageError(msg) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").split("\n")
        reasons = [line.strip() for line in said if line.strip() and line.strip() != "Aborting"]
        command = next(each for each in arguments if not each.startswith(("-", "log.")))
        msg = f"git {command} in {folder}: {' '.join(reasons) or 'no reason given'}"
        raise UsageError(msg)
    return done.stdout.decode(errors="replace").strip()
