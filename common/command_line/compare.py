"""`dynamometer compare A B`: what changed between two runs, and whether it may stay so."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common.command_line.stored import indexing
from dynamometer.common.command_line.stored.runs import RUNS, run_directory, side_of
from dynamometer.common.ending import ExitCode
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Argument, Flag, OneOf, Several, Valued, Within

if TYPE_CHECKING:
    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.command_line.stored.commits import RunsByCommit
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.comparison.gates import Condition
    from dynamometer.results.comparison.sides import Side
    from dynamometer.results.values.comparison import Comparison


BEFORE = Argument(("A",), default="", reads=click.STRING, is_required=True)
AFTER = Argument[str | None](("B",), default=None, reads=click.STRING)
ARMS = Several(
    ("--arm",), reads=click.STRING, metavar="NAME", group="Selection",
    help="Compare this arm alone; given twice, the first of A with the second of B, or both of A.",
)  # fmt: skip
FORCE = Flag(
    ("--force",), group="Selection",
    help="Go on where runs can't be compared, such as of two machines, and mark that.",
)  # fmt: skip
RUN_SD = Valued(
    ("--run-sd",), reads=Within(0, 1), default=0.0, metavar="SHARE", group="Measurement",
    help="How far speedups change between runs beyond what their processes show, as a comparison of"
    " two identical runs tells.",
)  # fmt: skip
FAIL_ON = Valued[str | None](
    ("--fail-on",), reads=click.STRING, default=None, metavar="LIST", group="Output",
    help="Exit with 1 where any holds: regression, newly-failing, slower, ..., passrate<95,"
    " speedup<1.3, comptime>60, memory<0.9; separated by commas, and in quotes.",
)  # fmt: skip
FORM = OneOf(
    ("--markdown", "--json"), values=("markdown", "json"), default="text", group="Output",
    helps=("For a pull request, instead of plain text.", "Values, instead of plain text."),
)  # fmt: skip
INDEX = msgspec.structs.replace(
    indexing.INDEX,
    help="Where a run is looked for by its commit.  [default: index.sqlite below --output-dir]",
)
OPTIONS = (ARMS, FORCE, RUN_SD, FAIL_ON, FORM, INDEX, RUNS, BEFORE, AFTER)

HELP = """Say what changed between two runs.

A and B are run directories, or names of runs below --output-dir; CSV files of PyTorch's harness,
or directories of them; or tags, branches or commits, of which the newest finished run is taken.
With two arms (--arm) of one run, B is left out.
"""


def run(asked: Request, _: Invocation) -> int:
    """Compare, print what was found, and return 1 where a condition of `--fail-on` is met.

    Raises:
        UsageError: there are no such runs, they can't be compared, or a condition is none.
    """
    from dynamometer.results.comparison.compare import compare
    from dynamometer.results.comparison.pairing import IncomparableError

    conditions = _conditions(asked[FAIL_ON])
    before, after = _sides(asked)
    try:
        found = compare(before, after, conditions, run_sd=asked[RUN_SD], forced=asked[FORCE])
    except IncomparableError as error:
        hint = "; --force compares them all the same, and says so" if error.may_be_forced else ""
        msg = f"{before.source} and {after.source} can't be compared: {error}{hint}"
        raise UsageError(msg) from error
    sys.stdout.write(_written(found, asked[FORM]))
    return ExitCode.UNEXPECTED if any(each.hits for each in found.gates) else 0


def _conditions(text: str | None) -> list[Condition]:
    from dynamometer.results.comparison.gates import parse

    try:
        found = parse(text or "")
    except ValueError as error:
        msg = f"--fail-on: {error}"
        raise UsageError(msg) from error
    if text is not None and not found:
        msg = "--fail-on names no condition, and so would never fail; leave it out for that"
        raise UsageError(msg)
    return found


def _sides(asked: Request) -> tuple[Side, Side]:
    """Read both sides, which may be two arms of one run.

    Raises:
        UsageError: one is not there, or lacks an arm.
    """
    from dynamometer.common.command_line.stored.commits import RunsByCommit
    from dynamometer.common.planning.refusals import store_errors_as_usage
    from dynamometer.results.comparison.sides import named_alike, of_arm

    arms = asked[ARMS]
    if len(arms) > 2:  # noqa: PLR2004  one for each side
        msg = "--arm is given once or twice"
        raise UsageError(msg)
    if asked[AFTER] is None and len(arms) != 2:  # noqa: PLR2004  likewise
        msg = "with one run give two arms of it: --arm NAME --arm NAME; or give a second run"
        raise UsageError(msg)
    runs = RunsByCommit(asked.but(indexing.RUNS, asked[RUNS]).but(indexing.INDEX, asked[INDEX]))
    with store_errors_as_usage():
        before = _opened(asked[BEFORE], runs)
        after = before if asked[AFTER] is None else _opened(str(asked[AFTER]), runs)
    if not arms:
        return before, after
    before, after = named_alike(before, after)
    try:
        return of_arm(before, arms[0]), of_arm(after, arms[-1])
    except LookupError as error:
        raise UsageError(str(error)) from error


def _opened(name: str, runs: RunsByCommit) -> Side:
    """Read a run directory, CSV files, or the run that was made on a commit.

    Raises:
        UsageError: there is none of these.
        StoreError: it is damaged, or no such file.
    """
    from dynamometer.results.comparison.dashboard_files import read_files
    from dynamometer.results.store import store

    found = run_directory(Path(name), runs.asked[indexing.RUNS])
    path = found if os.path.exists(found) else runs.directory(name)  # noqa: PTH110  is fine with a name that is too long
    if not (path / store.MANIFEST).exists():
        return read_files(path)
    manifest = store.read_manifest(path)
    run = store.read_run(path)
    records = run.records
    if run.warning:
        click.echo(f"{path}: {run.warning}", err=True)
    if not records:
        msg = f"{path} holds no record: nothing of it has ended yet"
        raise UsageError(msg)
    return side_of(path, manifest, records)


def _written(found: Comparison, form: str) -> str:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"
    if form == "markdown":
        from dynamometer.results.reports.comparison.markdown import markdown

        return markdown(found)
    from dynamometer.results.reports.comparison.text import text

    return text(found)
