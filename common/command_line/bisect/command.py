"""`dynamometer bisect --good A --bad B -- COMMAND`: what is asked, and what is said at the end."""

from __future__ import annotations

import fcntl
import shlex
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common.command_line import compare
from dynamometer.common.command_line.bisect.measuring import Measuring
from dynamometer.common.command_line.bisect.points import Commits, commits, names
from dynamometer.common.command_line.output_file import write_text
from dynamometer.common.ending import tell
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Arguments, Valued
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.reports.texts import printable_lines
from dynamometer.results.store import store
from dynamometer.results.store.reading import file_bytes, from_json
from dynamometer.results.values.cases import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.common.command_line.bisect.points import Points
    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request

GOOD = Valued[str | None](
    ("--good",), reads=click.STRING, default=None, metavar="COMMIT", group="Selection",
    help="A commit at which all is well.",
)  # fmt: skip
BAD = Valued[str | None](
    ("--bad",), reads=click.STRING, default=None, metavar="COMMIT", group="Selection",
    help="A later one, which is worse.",
)  # fmt: skip
REPO = Valued(
    ("--repo",), reads=click.Path(file_okay=False, exists=True, path_type=Path), default=Path(),
    metavar="DIR", group="Selection", help="The git repository.",
)  # fmt: skip
BUILD = Valued[str | None](
    ("--build",), reads=click.STRING, default=None, metavar="COMMAND", group="Execution",
    help="What a shell runs in the repository after each switch, such as 'pip install -e .'.",
)  # fmt: skip
AMONG = Valued[str | None](
    ("--among",), reads=click.STRING, default=None, metavar="A,B,...", group="Selection",
    help="Instead of commits: names, such as versions of a package, the good one first.",
)  # fmt: skip
SWITCH = Valued[str | None](
    ("--switch",), reads=click.STRING, default=None, metavar="COMMAND", group="Execution",
    help="What a shell runs to get one of --among, with {} for the name.",
)  # fmt: skip
RUN_SD = msgspec.structs.replace(
    compare.RUN_SD,
    help="How far runs differ beyond what their processes show, as in `dynamometer compare`.",
)
STATE = Valued(
    ("--state",), reads=click.Path(file_okay=False, path_type=Path), default=Path("bisect"),
    metavar="DIR", group="Output",
    help="Where all runs of the search are kept; the same command goes on there.",
)  # fmt: skip
COMMAND = Arguments[str](("COMMAND",), reads=click.STRING)
OPTIONS = (GOOD, BAD, REPO, AMONG, BUILD, SWITCH, RUN_SD, STATE, COMMAND)

HELP = """Find the first commit, or version, at which a model is worse.

COMMAND, after --, is what measures: a suite's script or `dynamometer run`, best of one model. Both
ends are measured first, then what lies between, each point with more replicates until it is plainly
like one end, to be wrong in 5 % of searches at most, about. docs/bisect.md has more.
"""

_STATE_FILE = "search.json"


def run(asked: Request, _: Invocation) -> int:
    """Search, and say which point is the first that is bad.

    Raises:
        UsageError: what was typed can't be, or the ends don't differ.
    """
    _check_command(asked[COMMAND])
    folder = asked[STATE].resolve()
    points = _points(asked, folder)
    with _kept(folder, _searched(asked, points)) as searched:
        if isinstance(points, Commits) and not points.is_on_branch:
            points = replace(points, at=searched.at)  # a call that was killed left it there
        try:
            _search(points, Measuring(asked[COMMAND], folder), asked[RUN_SD])
        except KeyboardInterrupt:
            tell(f"what was measured is kept in {folder}: the same command goes on")
            raise
        finally:
            if why_not := points.restore():
                tell(why_not)
    return 0


def _search(points: Points, measuring: Measuring, run_sd: float) -> None:
    from dynamometer.common.command_line.bisect.searching import Search  # imports scipy
    from dynamometer.results.bisection.search import WRONG_P

    suspects = Search(points, measuring, run_sd, _say).run()
    head = "the first bad one" if len(suspects) == 1 else "one of these is the first bad one"
    _say(f"\n{head} (wrong with p {WRONG_P:g}, about, at most):")
    for each in suspects:
        _say(f"  {each.title}")


def _check_command(words: tuple[str, ...]) -> None:
    """Refuse what the search itself says.

    Raises:
        UsageError: it was typed.
    """
    for flag, why in (
        ("--output-dir", "--state is where runs are kept"),
        ("--rigorous", "points that are unclear get more replicates"),
    ):
        if any(each == flag or each.startswith(f"{flag}=") for each in words):
            msg = f"leave {flag} out of the command: {why}"
            raise UsageError(msg)


def _points(asked: Request, folder: Path) -> Points:
    """Return what is searched.

    Raises:
        UsageError: it is not said, or said twice.
    """
    log = folder / "switching.txt"
    good, bad, among = asked[GOOD], asked[BAD], asked[AMONG]
    if among is not None:
        if good or bad or asked[BUILD]:
            msg = "--among names all points: leave out --good, --bad and --build"
            raise UsageError(msg)
        return names(among, asked[SWITCH], log)
    if good is None or bad is None:
        msg = "say where to search: --good COMMIT --bad COMMIT, or --among A,B --switch COMMAND"
        raise UsageError(msg)
    if asked[SWITCH]:
        msg = "--switch goes with --among; commits are checked out, and --build is run after that"
        raise UsageError(msg)
    return commits(asked[REPO], good, bad, asked[BUILD], log)


class Searched(Value, frozen=True, kw_only=True):
    """What a folder holds the runs of."""

    command: tuple[str, ...]
    points: tuple[str, ...]
    """Their names."""
    repository: str | None
    build: str | None
    switch: str | None
    at: str
    """What was checked out when the search began; empty of no repository."""


def _searched(asked: Request, points: Points) -> Searched:
    repository = points if isinstance(points, Commits) else None
    return Searched(
        command=asked[COMMAND],
        points=tuple(each.name for each in points.found),
        repository=str(repository.folder) if repository else None,
        build=asked[BUILD],
        switch=asked[SWITCH],
        at=repository.at if repository else "",
    )


@contextmanager
def _kept(folder: Path, searched: Searched) -> Iterator[Searched]:
    """Note what is searched, or go on with the same; nobody else does meanwhile.

    Raises:
        UsageError: the folder holds another search, or can't be written or read; or another process
            searches there.
    """
    path = folder / _STATE_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        msg = f"{folder} can't be written: {error.strerror}"
        raise UsageError(msg) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            msg = f"another process searches in {folder}: --state DIR begins another search"
            raise UsageError(msg) from error
        if not path.exists():
            _note(path, searched)
        known = read_search(path)
        if msgspec.structs.replace(known, at=searched.at) != searched:
            if any(folder.glob(f"*/*/*/*/{store.MANIFEST}")):
                msg = (
                    f"{folder} holds another search, with `{shlex.join(known.command)}`: remove"
                    " it, or begin a new one elsewhere (--state DIR)"
                )
                raise UsageError(msg)
            # That one came to nothing, as where its command was mistyped.
            is_there = known.repository == searched.repository
            known = msgspec.structs.replace(searched, at=known.at if is_there else searched.at)
            _note(path, known)
        yield known


def _note(path: Path, searched: Searched) -> None:
    write_text(path, msgspec.json.format(msgspec.json.encode(searched), indent=1).decode())


def read_search(path: Path) -> Searched:
    """Read what a folder holds the runs of.

    Raises:
        UsageError: it can't be read, or is no such file.
    """
    with store_errors_as_usage():
        return from_json(file_bytes(path), Searched, str(path))


def _say(text: str) -> None:
    """Print lines of which parts are other people's, such as subjects of commits."""
    click.echo("\n".join(printable_lines([text])))
