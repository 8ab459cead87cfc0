"""The commands on stored runs, by name, each made when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.command_line.options import command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import click


def makers() -> Mapping[str, Callable[[], click.Command]]:
    """Return what makes each."""
    return {
        "export": _export,
        "history": _history,
        "index": _index,
        "report": _report,
        "repro": _repro,
        "rm": _rm,
        "serve": _serve,
        "show": _show,
    }


def _export() -> click.Command:
    from dynamometer.common.command_line.stored import export

    return command("export", export.OPTIONS, export.run, _EXPORT_HELP)


def _history() -> click.Command:
    from dynamometer.common.command_line.stored import history

    return command("history", history.OPTIONS, history.run, _HISTORY_HELP)


def _index() -> click.Command:
    from dynamometer.common.command_line.stored import indexing

    return command("index", indexing.OPTIONS, indexing.run, _INDEX_HELP)


def _report() -> click.Command:
    from dynamometer.common.command_line.stored import report

    return command("report", report.OPTIONS, report.run, _REPORT_HELP)


def _repro() -> click.Command:
    from dynamometer.common.command_line.stored import repro

    return command("repro", repro.OPTIONS, repro.run, _REPRO_HELP)


def _rm() -> click.Command:
    from dynamometer.common.command_line.stored import removal

    return command("rm", removal.OPTIONS, removal.run, _RM_HELP)


def _serve() -> click.Command:
    from dynamometer.common.command_line.stored import serve

    return command("serve", serve.OPTIONS, serve.run, _SERVE_HELP)


def _show() -> click.Command:
    from dynamometer.common.command_line.stored import show

    return command("show", show.OPTIONS, show.run, _SHOW_HELP)


_EXPORT_HELP = """Write a stored run in the format of another program.

RUN is a run's directory. What was not measured is left out, but in PyTorch's CSV files, which have
0 for it. docs/exports.md describes the formats.
"""

_HISTORY_HELP = """Show what became of a model, or of all models, over all runs.

Where a level changed it says between which runs, and what of the environment changed there. What
regressed lately: dynamometer history --since 4w --regressed. docs/history.md says how it is found.
"""

_INDEX_HELP = """Keep an index of runs, for `history`.

DIR is a folder of run directories, or one of them, which is remembered: later only what is new or
has changed is read. Run directories stay the truth; the index can be removed at any time, which
loses only what it was given: folders, and runs from Parquet files.
"""

_REPORT_HELP = """Write stored runs as one page, to be read in a browser.

RUN is a run's directory. Of two runs the page also says what changed from the first to the second.
It is one file that asks no network for anything, so it can be mailed; docs/report.md describes it.
"""

_REPRO_HELP = """Print the command that repeats a model of a run alone, as the run measured it."""

_RM_HELP = """Remove runs, and say what that frees.

Whatever isn't a run's directory is refused, and so is a run that is going on.
"""

_SERVE_HELP = """Show runs in a browser, as they are when a page is read.

DIR is a folder of run directories, which the index then knows, too. Nothing is written but the
index, and nobody is served but this machine, unless --host says otherwise. Ctrl-C ends it.
"""

_SHOW_HELP = """Show a stored run again, or all that is known of one of its models.

RUN is a run's directory. Of a MODEL: how each replicate ended and why, its samples block by block,
the environment, the end of its log, and the command that repeats it. On a terminal lines end where
it does; elsewhere they are whole.
"""
