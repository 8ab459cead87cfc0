"""`dynamometer report RUN...`: stored runs as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common import registry
from dynamometer.common.command_line.output_file import write_text
from dynamometer.common.command_line.stored.indexing import INDEX, read_run
from dynamometer.common.command_line.stored.runs import RUN_OR_SEVERAL, RUNS, run_directory
from dynamometer.common.interfaces.option import Flag, Valued
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.reports.texts import printable
from dynamometer.results.store import store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.comparison.sides import Side
    from dynamometer.results.reports.page.earlier import Earlier
    from dynamometer.results.reports.page.run import RunToShow
    from dynamometer.results.reports.page.values import ShownComparison
    from dynamometer.results.values.records import Manifest, Record

OUTPUT = Valued(
    ("-o", "--output"), reads=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"), metavar="FILE", group="Output", help="The page.",
)  # fmt: skip
INDEX_OF_RUNS = msgspec.structs.replace(
    INDEX, reads=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The index that has earlier runs.  [default: index.sqlite beside each run]",
)  # fmt: skip
NO_HISTORY = Flag(("--no-history",), group="Output", help="Leave out what earlier runs were.")
OPTIONS = (OUTPUT, NO_HISTORY, INDEX_OF_RUNS, RUNS, RUN_OR_SEVERAL)
HELP = """Write stored runs as one page, to be read in a browser.

RUN is a run's directory, or its name below --output-dir. Of two runs the page also says what
changed from the first to the second. It is one file that asks no network for
anything, so it can be mailed; docs/report.md describes it.
"""


def run(asked: Request, _: Invocation) -> int:
    """Write the page, and say where it is.

    Raises:
        UsageError: a run can't be read, or the plugin that brings its study isn't installed, or the
            page can't be written.
    """
    named = [run_directory(each, asked[RUNS]) for each in asked[RUN_OR_SEVERAL]]
    stored = [(each, *_read(each)) for each in named]
    from dynamometer.results.reports.page.document import page  # imports scipy
    from dynamometer.results.reports.page.run import run_to_show

    runs = [
        run_to_show(
            manifest, records, registry.study(manifest.plan.study), directory,
            _earlier(directory, records, asked),
        )
        for directory, manifest, records in stored
    ]  # fmt: skip
    found = compared(*runs) if len(runs) == 2 else None  # noqa: PLR2004  before and after
    write_text(asked[OUTPUT], page(runs, found))
    click.echo(str(asked[OUTPUT]))
    return 0


def _read(directory: Path) -> tuple[Manifest, list[Record]]:
    """Read a run.

    Raises:
        UsageError: it is none, or damaged.
    """
    with store_errors_as_usage():
        return store.read_manifest(directory), store.read_records(directory)


def _earlier(directory: Path, records: Sequence[Record], asked: Request) -> Earlier | None:
    """Return a run among those of the index, which has it from then on."""
    from dynamometer.results.history.of_run import among_earlier, index_beside
    from dynamometer.results.reports.page.earlier import Earlier

    index = asked[INDEX_OF_RUNS] or index_beside(directory)
    if asked[NO_HISTORY] or index is None or not records:
        return None

    def complain(why: str) -> None:
        click.echo(printable(f"no earlier runs on the page: {why}"), err=True)

    found = among_earlier(index, directory, read_run, complain)
    return Earlier(found) if found else None


def compared(before: RunToShow, after: RunToShow) -> ShownComparison:
    """Compare two runs; where they can't be compared, the page says why."""
    from dynamometer.results.comparison.compare import compare
    from dynamometer.results.comparison.pairing import IncomparableError
    from dynamometer.results.comparison.sides import of_cases
    from dynamometer.results.reports.page.comparing import shown_comparison
    from dynamometer.results.reports.page.values import ShownComparison

    def side(found: RunToShow) -> Side:
        study = registry.study(found.manifest.plan.study)
        return of_cases(str(found.directory), found.manifest, found.cases, study.compared)

    empty = [str(each.directory) for each in (before, after) if not each.cases]
    if empty:
        return ShownComparison(refused=f"{empty[0]} holds no record: nothing of it has ended yet")
    try:
        return shown_comparison(compare(side(before), side(after)))
    except IncomparableError as error:
        return ShownComparison(refused=str(error))
