"""`dynamometer bisect --good A --bad B -- COMMAND`: what is asked, and what is said at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common.command_line.bisect.measuring import Measuring
from dynamometer.common.command_line.bisect.points import Point, commits, names
from dynamometer.common.command_line.stored.runs import write_text
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Arguments, Valued, Within
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.reports.texts import printable_lines
from dynamometer.results.store.reading import file_bytes, from_json
from dynamometer.results.values.cases import Value

if TYPE_CHECKING:
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
RUN_SD = Valued(
    ("--run-sd",), reads=Within(0, 1), default=0.0, metavar="SHARE", group="Measurement",
    help="How far runs differ beyond what their processes show, as in `dynamometer compare`.",
)  # fmt: skip
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
like one end. All decisions together are wrong in 5 % of searches at most. docs/bisect.md has more.
"""

_STATE_FILE = "search.json"


def run(asked: Request, _: Invocation) -> int:
    """Search, and say which point is the first that is bad.

    Raises:
        UsageError: what was typed can't be, or the ends don't differ.
    """
    folder = asked[STATE]
    points = _points(asked, folder)
    _keep(folder, Searched(command=asked[COMMAND], points=tuple(points.found)))
    from dynamometer.common.command_line.bisect.searching import Search  # imports scipy
    from dynamometer.results.bisection.search import WRONG_P

    measuring = Measuring(asked[COMMAND], folder.resolve())
    try:
        suspects = Search(points, measuring, asked[RUN_SD], _say).run()
    except KeyboardInterrupt:
        click.echo(f"what was measured is kept in {folder}: the same command goes on", err=True)
        raise
    finally:
        points.restore()
    head = "the first bad one" if len(suspects) == 1 else "one of these is the first bad one"
    _say(f"\n{head} (wrong with p {WRONG_P:g} at most):")
    for each in suspects:
        _say(f"  {each.title}")
    return 0


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
    points: tuple[Point, ...]


def read_search(path: Path) -> Searched:
    """Read what a folder holds the runs of.

    Raises:
        UsageError: it can't be read, or is no such file.
    """
    with store_errors_as_usage():
        return from_json(file_bytes(path), Searched, str(path))


def _keep(folder: Path, searched: Searched) -> None:
    """Note what is searched; go on only with the same.

    Raises:
        UsageError: the folder holds another search, or can't be written or read.
    """
    path = folder / _STATE_FILE
    if not path.exists():
        write_text(path, msgspec.json.format(msgspec.json.encode(searched), indent=1).decode())
        return
    if read_search(path) != searched:
        msg = f"{folder} holds another search: --state DIR begins a new one"
        raise UsageError(msg)


def _say(text: str) -> None:
    """Print lines of which parts are other people's, such as subjects of commits."""
    click.echo("\n".join(printable_lines([text])))
