"""`dynamometer history [MODEL]`: what became of models over all runs of the index."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common.command_line.output_file import write_text
from dynamometer.common.command_line.stored.indexing import INDEX, RUNS, opened, refreshed
from dynamometer.common.command_line.stored.show import terminal_width
from dynamometer.common.errors import UnknownNameError, UsageError
from dynamometer.common.interfaces.option import Argument, Flag, Several, Valued

if TYPE_CHECKING:
    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.store.index.index import Index
    from dynamometer.results.values.history import History

MODEL = Argument[str | None](("MODEL",), default=None, reads=click.STRING)
SUITE = Valued[str | None](
    ("--suite",), reads=click.STRING, default=None, metavar="NAME", group="Selection",
    help="All models of a suite.",
)  # fmt: skip
ARMS = Several(
    ("--arm",), reads=click.STRING, metavar="NAME", group="Selection",
    help="This arm alone; `baseline` is eager.",
)  # fmt: skip
METRICS = Several(
    ("--metric",), reads=click.STRING, metavar="NAME", group="Selection",
    help="status, speedup, compile_time, memory_ratio, latency or eager_latency.  [default: of one"
    " model all; else status and speedup]",
)  # fmt: skip
SINCE = Valued[str | None](
    ("--since",), reads=click.STRING, default=None, metavar="WHEN", group="Selection",
    help="Changes since then: 4w, 30d, 12h, or a date such as 2026-11-01.",
)  # fmt: skip
REGRESSED = Flag(
    ("--regressed",), group="Selection", help="Only what has become worse, and still is."
)
JSON = Flag(("--json",), group="Output", help="Values, for other programs.")
PAGE = Valued[Path | None](
    ("-o", "--output"), reads=click.Path(dir_okay=False, path_type=Path), default=None,
    metavar="FILE", group="Output",
    help="A page of it, to be opened in a browser: charts of every series, with their changes.",
)  # fmt: skip
OPTIONS = (SUITE, ARMS, METRICS, SINCE, REGRESSED, JSON, PAGE, INDEX, RUNS, MODEL)
HELP = """Show what became of a model, or of all models, over all runs.

Where a level changed it says between which runs, and what of the environment changed there. What
regressed lately: dynamometer history --since 4w --regressed. docs/history.md says how it is found.
"""

DEFAULT_METRICS = ("status", "speedup")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def run(asked: Request, _: Invocation) -> int:
    """Print series with what changed in them.

    Raises:
        UsageError: there is no such model, or no run.
    """
    now = datetime.now(UTC)
    since = _time(asked[SINCE], now)
    if path := asked[PAGE]:
        _refuse_choices(asked)
    with opened(asked) as index:
        refreshed(index)
        wanted = _wanted(index, asked)
        from dynamometer.results.history.of_index import history_of  # imports numpy

        with_points = asked[JSON] or path is not None or _is_whole(asked)
        found = history_of(index, wanted, since, with_points=with_points)
    if path:
        write_text(path, _page(found, now))
        click.echo(str(path))
        return 0
    if asked[REGRESSED]:
        from dynamometer.results.history.changes import regressed

        found = regressed(found)
    click.echo(_written(found, asked))
    return 0


def _is_whole(asked: Request) -> bool:
    """Return whether each run is shown: of one model, not of what regressed."""
    return asked[MODEL] is not None and not asked[REGRESSED]


def _refuse_choices(asked: Request) -> None:
    """Refuse what the page itself lets one choose.

    Raises:
        UsageError: it was chosen as well.
    """
    chosen = (asked[SINCE] is not None, SINCE), (asked[REGRESSED], REGRESSED), (asked[JSON], JSON)
    for was_chosen, option in chosen:
        if was_chosen:
            msg = f"{option.flag} does not go with {PAGE.flag}: a page has all, and lets one choose"
            raise UsageError(msg)


def _page(found: History, now: datetime) -> str:
    from dynamometer.results.reports.page.document import page
    from dynamometer.results.reports.page.history import shown_history

    return page([], history=shown_history(found, now.isoformat()))


def _written(found: History, asked: Request) -> str:
    if asked[JSON]:
        return msgspec.json.format(msgspec.json.encode(found), indent=1).decode()
    from dynamometer.results.reports import history

    return "\n".join(history.lines(found, terminal_width(), with_points=_is_whole(asked)))


def _wanted(index: Index, asked: Request) -> dict[str, tuple[str, ...]]:
    """Return which models, suites, arms and metrics are meant.

    Raises:
        UnknownNameError: the index has none of a name.
    """
    model, suite = asked[MODEL], asked[SUITE]
    wanted = {
        "model": (model,) if model else (),
        "suite": (suite,) if suite else (),
        "arm": asked[ARMS],
        "metric": asked[METRICS] or (() if model else DEFAULT_METRICS),
    }
    typed = {**wanted, "metric": asked[METRICS]}
    for column, names in typed.items():
        known = index.names(column) if names else []
        if names and not known:
            msg = f"{index.path} holds no run of anything: dynamometer index DIR... adds runs"
            raise UsageError(msg)
        for name in names:
            if name not in known:
                raise UnknownNameError(column, name, known, "The runs of the index have these.")
    return {column: names for column, names in wanted.items() if names}


def _time(text: str | None, now: datetime) -> str | None:
    """Return the time that is meant, as the index writes it.

    Raises:
        UsageError: it is none.
    """
    if text is None:
        return None
    span = re.fullmatch(r"(\d{1,5})([hdw])", text)
    try:
        found = now - int(span[1]) * _UNITS[span[2]] if span else datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError) as error:
        msg = f"--since {text!r} is neither 4w, 30d or 12h nor a date such as 2026-11-01"
        raise UsageError(msg) from error
