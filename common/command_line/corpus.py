"""`dynamometer corpus`: captured graphs, recorded, listed, handed on and run. Without torch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from tabulate import tabulate

from dynamometer.common.command_line.options import LazyGroup, command
from dynamometer.common.errors import UnknownNameError, UsageError
from dynamometer.common.interfaces.option import Argument, Flag, Valued
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.reports.texts import count_text, printable
from dynamometer.results.store.graphs.corpus import Corpus, is_corpus
from dynamometer.results.values.graphs import TensorInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.values.graphs import Origin, SavedGraph

    Run = Callable[[list[str]], int]

_USUAL = Path("corpus")
_SHOWN_DIGITS, _SHOWN_ORIGINS = 12, 3

FOLDER = Argument[Path](("FOLDER",), default=_USUAL, reads=click.Path(path_type=Path))
INTO = Valued(
    ("-o", "--corpus"), reads=click.Path(file_okay=False, path_type=Path), default=_USUAL,
    metavar="DIR", group="Output", help="The corpus.",
)  # fmt: skip
JSON = Flag(("--json",), group="Output", help="As JSON, one graph a line.")
FILE = Argument(
    ("FILE",), default=Path(), reads=click.Path(dir_okay=False, path_type=Path), is_required=True
)


class ListedGraph(msgspec.Struct, frozen=True):
    """What `list` says of a graph."""

    key: str
    ops: int
    inputs: int
    weights: int
    bytes: int
    is_dynamic: bool
    torch: str
    origins: tuple[str, ...]


def group(run: Run) -> click.Group:
    """Make the commands.

    Args:
        run: runs `dynamometer` with other arguments.
    """
    makers = {
        "record": lambda: _passing_on("record", _RECORD_HELP, _record(run), [_into()], _Recording),
        "list": lambda: command(
            "list", (FOLDER, JSON), _list, "List the graphs of a corpus.  [default: ./corpus]"
        ),
        "export": lambda: command("export", (INTO, FILE), _export, "Write a corpus as a tar FILE."),
        "import": lambda: command(
            "import", (INTO, FILE), _import, "Add the graphs of a tar FILE to a corpus."
        ),
        "run": lambda: _passing_on("run", _RUN_HELP, _on_corpus(run)),
        "tune": lambda: _passing_on("tune", _TUNE_HELP, _on_corpus(run, "--tune")),
    }
    return LazyGroup(makers, name="corpus", help="Captured graphs, apart from their models.")


_RECORD_HELP = """Put the graphs that Dynamo captures of models into a corpus.

TARGET and OPTIONS are those of `dynamometer run`, such as -k, --only, --scale and --training.
Each model runs in a process of its own; a graph that is there already is not saved again.
"""

_RUN_HELP = """Run each graph of a corpus with a backend: right or wrong, speed, compile time.

FOLDER and OPTIONS are those of `dynamometer run`, such as --backend module:attribute and -k.
"""


_TUNE_HELP = """Decide which backend computes each graph of a corpus from now on.

Without --backend, all that work here are tried. Each decision is kept as soon as it is made; what
was decided before is not measured again, unless --retune is given. `dynamometer decisions` shows
what was decided, and why.
"""


_SHORT, _LONG = INTO.flags


class _Recording(click.Command):
    """Takes the corpus; its other words are another command's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `-o` as `--corpus`: click would find it in the midst of `-kmobilenet` as well."""
        attached = re.compile(f"^{_SHORT}=?(?=.)")
        words = [_LONG if each == _SHORT else attached.sub(f"{_LONG}=", each) for each in args]
        return super().parse_args(ctx, words)


def _into() -> click.Option:
    return click.Option(
        [_LONG], type=INTO.reads, default=INTO.default, help=f"{INTO.help} For short {_SHORT}.",
        metavar=INTO.metavar, show_default=True,
    )  # fmt: skip


def _passing_on(
    name: str, text: str, call: Callable[..., int], options: Iterable[click.Option] = (),
    kind: type[click.Command] = click.Command,
) -> click.Command:  # fmt: skip
    """Make a command whose other words are another command's."""
    word = "TARGET" if name == "record" else "FOLDER"
    rest = click.Argument(
        ["rest"], nargs=-1, type=click.UNPROCESSED, required=True, metavar=f"{word} [OPTIONS]..."
    )
    return kind(
        name, params=[*options, rest], callback=call, help=text,
        context_settings={"ignore_unknown_options": True},
    )  # fmt: skip


def _record(run: Run) -> Callable[..., int]:
    def record(corpus: Path, rest: tuple[str, ...]) -> int:
        return run(["run", *rest, "--record-graphs", str(corpus)])

    return record


def _on_corpus(run: Run, *more: str) -> Callable[..., int]:
    def on_corpus(rest: tuple[str, ...]) -> int:
        try:
            return run(["run", *rest, *more])
        except UnknownNameError as error:
            if error.kind != "suite":
                raise
            msg = (
                f"there is no corpus at {error.name}; `dynamometer corpus record SUITE -o"
                f" {error.name}` makes one"
            )
            raise UsageError(msg) from error

    return on_corpus


def _list(asked: Request, _: Invocation) -> int:
    with store_errors_as_usage():
        corpus = _opened(asked[FOLDER])
        origins = corpus.origins()
        listed = [_listed(corpus, each, origins) for each in corpus.graphs()]
    if asked[JSON]:
        for each in listed:
            click.echo(msgspec.json.encode(each))
        return 0
    headers = ["key", "ops", "inputs", "weights", "KiB", "models", "of"]
    click.echo(tabulate([_row(each) for each in listed], headers=headers, disable_numparse=True))
    total = sum(each.bytes for each in listed)
    click.echo(f"\n{count_text(len(listed), 'graph')}, {total / 2**20:.1f} MiB")
    return 0


def _listed(
    corpus: Corpus, graph: SavedGraph, origins: dict[str, tuple[Origin, ...]]
) -> ListedGraph:
    weights = sum(isinstance(each, TensorInput) and each.is_weight for each in graph.inputs)
    names = dict.fromkeys(each.name for each in (graph.origin, *origins.get(graph.key, ())))
    return ListedGraph(
        key=graph.key,
        ops=graph.op_count,
        inputs=len(graph.inputs) - weights,
        weights=weights,
        bytes=corpus.path(graph.key).stat().st_size,
        is_dynamic=graph.is_dynamic,
        torch=graph.torch,
        origins=tuple(names),
    )


def _row(each: ListedGraph) -> list[str]:
    shown = ", ".join(each.origins[:_SHOWN_ORIGINS])
    more = len(each.origins) - _SHOWN_ORIGINS
    counts = (each.ops, each.inputs, each.weights, round(each.bytes / 2**10), len(each.origins))
    return [
        each.key[:_SHOWN_DIGITS],
        *map(str, counts),
        printable(f"{shown} and {more} more" if more > 0 else shown),
    ]


def _export(asked: Request, _: Invocation) -> int:
    from dynamometer.results.store.graphs.archive import write_tar

    with store_errors_as_usage():
        count = write_tar(_opened(asked[INTO]), asked[FILE])
    click.echo(f"{count_text(count, 'graph')} written to {asked[FILE]}")
    return 0


def _import(asked: Request, _: Invocation) -> int:
    from dynamometer.results.store.graphs.archive import read_tar

    with store_errors_as_usage():
        new, count = read_tar(asked[INTO], asked[FILE])
    click.echo(f"{count_text(count, 'graph')} read, {new} new in {asked[INTO]}")
    return 0


def _opened(folder: Path) -> Corpus:
    """Open a corpus.

    Raises:
        UsageError: the folder is none.
    """
    if not is_corpus(folder):
        msg = f"{folder} is no corpus; `dynamometer corpus record SUITE -o {folder}` makes one"
        raise UsageError(msg)
    return Corpus.opened(folder)
