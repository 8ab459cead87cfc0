"""`dynamometer export RUN --format F`: a stored run in the format of another program."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynamometer.common import registry
from dynamometer.common.command_line.output_file import write_text
from dynamometer.common.command_line.stored.runs import RUN, RUNS, open_run, run_directory
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Valued

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.exports.export import Document, Export

FORMAT = Valued(
    ("--format",), reads=click.STRING, default="pytorch-csv", metavar="NAME", group="Output",
    help="One of `dynamometer ls exports`.",
)  # fmt: skip
OUTPUT = Valued[str | None](
    ("-o", "--output"), reads=click.STRING, default=None, metavar="PATH",
    group="Output", help="A file; a folder for formats of several files.  [default: standard"
    " output]",
)  # fmt: skip
OPTIONS = (FORMAT, OUTPUT, RUNS, RUN)
HELP = """Write a stored run in the format of another program.

RUN is a run's directory, or its name below --output-dir. What was not measured is left out,
but in PyTorch's CSV files, which have 0 for it. docs/exports.md describes the formats.
"""


def run(asked: Request, _: Invocation) -> int:
    """Export a run to standard output, to a file, or to a folder.

    Raises:
        UsageError: the run can't be read, or there is no such format, or it comes to several files
            and no folder is named.
        DynamometerError: the format is a plugin's, which failed.
    """
    export: Export = registry.resolve("exports", asked[FORMAT])
    directory = run_directory(asked[RUN], asked[RUNS])
    stored = open_run(directory)
    with registry.named("exports", asked[FORMAT]):
        documents = _checked(export(stored), asked[FORMAT])
    named = asked[OUTPUT]
    output = None if named is None else Path(named)
    is_folder = named is not None and (named.endswith("/") or Path(named).is_dir())
    if not documents:
        click.echo(f"{directory} has nothing to say in {asked[FORMAT]}", err=True)
    elif len(documents) == 1 and not is_folder:
        if output is None:
            click.echo(documents[0].text, nl=False)
        else:
            write_text(output, documents[0].text)
    elif output is None or output.is_file():
        names = ", ".join(each.name for each in documents)
        msg = f"this comes to {len(documents)} files ({names}): name a folder with --output"
        raise UsageError(msg)
    else:
        _check_names([each.name for each in documents])
        for each in documents:
            write_text(output / each.name, each.text)
            click.echo(str(output / each.name))
    return 0


def _checked(found: object, form: str) -> list[Document]:
    """Return what an export gives, once it is known that it can be written.

    Raises:
        DynamometerError: it is something else.
        UnicodeError: it holds what no file can.
    """
    from dynamometer.results.exports.export import Document

    documents: list[Document] = []
    several = (
        found if isinstance(found, Iterable) and not isinstance(found, str | bytes) else [found]
    )
    for each in several:
        if not isinstance(each, Document) or {type(each.name), type(each.text)} != {str}:
            what = type(each).__name__
            if isinstance(each, Document):
                what += f" of {type(each.name).__name__} and {type(each.text).__name__}"
            registry.blame("exports", form, f"it gives {what}, and no Document of two texts")
        f"{each.name}{each.text}".encode()
        documents.append(each)
    return documents


def _check_names(names: Sequence[str]) -> None:
    """Refuse names of files that lead out of the folder, as a run of others may hold, or are one.

    Raises:
        UsageError: some do, or two are the same.
    """
    for name in names:
        if Path(name).name != name or name in {"", ".."} or "\0" in name:
            msg = f"a file of this run would be named {name!r}, which leads elsewhere: not written"
            raise UsageError(msg)
        if names.count(name) > 1:
            msg = f"{names.count(name)} files of this run would be named {name!r}: not written"
            raise UsageError(msg)
