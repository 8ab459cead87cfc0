"""`dynamometer decisions`: what was decided, why, and how it gets to another machine."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynamometer.common.command_line.options import LazyGroup, command
from dynamometer.common.command_line.output_file import write_text
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Argument, Flag, Valued
from dynamometer.common.interfaces.run_options import DECISIONS_FILE
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.reports.texts import printable
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import MatmulPrecision
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.store.decisions import Decisions
    from dynamometer.results.values.decisions import Decision, Evidence
    from dynamometer.results.values.records import Ratio

DECISIONS = Valued(
    ("--decisions",), reads=click.Path(dir_okay=False, path_type=Path),
    default=Path("runs", DECISIONS_FILE), metavar="FILE", group="Selection",
    help="The file they are in.", variable="DYNAMOMETER_DECISIONS",
)  # fmt: skip
TRUST = Flag(
    ("--trust",), group="Selection",
    help="Take decisions for module:attribute, too, which `ensemble` will import and call.",
)  # fmt: skip
JSON = Flag(("--json",), group="Output", help="As JSON, one decision a line.")
KEY = Argument(("KEY",), default="", reads=click.STRING, is_required=True)
FILE = Argument(
    ("FILE",), default=Path("-"), reads=click.Path(dir_okay=False, allow_dash=True, path_type=Path)
)


def group() -> click.Group:
    """Make the commands."""
    makers = {
        "list": lambda: command("list", (DECISIONS, JSON), _list, "One decision a line."),
        "explain": lambda: command(
            "explain", (DECISIONS, JSON, KEY), _explain,
            "Show what each candidate came to. KEY may be the beginning of one.",
        ),
        "export": lambda: command(
            "export",
            (DECISIONS, FILE),
            _export,
            "Write all as JSON lines, to FILE or standard output."
        ),
        "import": lambda: command(
            "import", (DECISIONS, TRUST, FILE), _import,
            "Add those of a FILE of JSON lines; of two on the same the newer one stays."
            " What is on a backend that isn't here is left out.",
        ),
    }  # fmt: skip
    return LazyGroup(
        makers, name="decisions", help="Which backend computes which graph, as `ensemble` uses it."
    )


def _list(asked: Request, _: Invocation) -> int:
    with store_errors_as_usage():
        found = _opened(asked).all()
    if asked[JSON]:
        _print_json(found)
    else:
        click.echo("\n".join(_line(each) for each in found) if found else "no decisions")
    return 0


def _explain(asked: Request, _: Invocation) -> int:
    """Show decisions with their evidence.

    Raises:
        UsageError: there is none.
    """
    with store_errors_as_usage():
        found = _opened(asked).starting_with(asked[KEY])
    if not found:
        msg = (
            f"no decision in {asked[DECISIONS]} has a key that begins with {asked[KEY]!r};"
            " `dynamometer decisions list` shows all"
        )
        raise UsageError(msg)
    if asked[JSON]:
        _print_json(found)
    else:
        click.echo("\n\n".join("\n".join(_explained(each)) for each in found))
    return 0


def _export(asked: Request, _: Invocation) -> int:
    """Write all decisions.

    Raises:
        UsageError: the file can't be written, or is the one that they are in.
    """
    from dynamometer.results.store.decisions import exported

    with store_errors_as_usage():
        text, path = exported(_opened(asked).all()), asked[FILE]
    if path == Path("-"):
        click.echo(text, nl=False)
        return 0
    if path.exists() and path.samefile(asked[DECISIONS]):
        msg = f"{path} is the file that the decisions are in; name another file"
        raise UsageError(msg)
    write_text(path, text)
    return 0


def _import(asked: Request, _: Invocation) -> int:
    """Add decisions to those there are.

    Raises:
        UsageError: the file can't be read, or holds something else, or what is not to be trusted;
            or that of `--decisions` can't be written.
    """
    from dynamometer.common.planning.choosable import (
        free_text,
        is_foreign,
        is_known,
        unchoosable,
    )
    from dynamometer.results.store.decisions import Decisions, imported
    from dynamometer.results.store.reading import file_text

    path = asked[FILE]
    try:
        text = sys.stdin.read() if path == Path("-") else file_text(path, may_be_pipe=True)
        found = imported(text, str(path), datetime.now(UTC))
    except UnicodeDecodeError as error:
        msg = f"standard input can't be read: {error}"
        raise UsageError(msg) from error
    except StoreError as error:
        msg = f"{error}; nothing was imported"
        raise UsageError(msg) from error
    unknown = {each.arm: None for each in found if not is_known(each.arm)}
    count, found = len(found), [each for each in found if each.arm not in unknown]
    for arm, of_models in {(each.arm, each.subject is Subject.MODEL): None for each in found}:
        if is_foreign(arm) and not asked[TRUST]:
            msg = (
                f"{path} decides on {arm!r}, which is code that `ensemble` would import and"
                " call; nothing was imported. --trust takes it, if you know that code"
            )
            raise UsageError(msg)
        if problem := unchoosable(arm, of_models=of_models):
            msg = f"{path} decides on {arm!r}: {problem}; nothing was imported"
            raise UsageError(msg)
        if not asked[TRUST] and not is_foreign(arm) and (setting := free_text(arm)):
            msg = (
                f"{path} decides on {arm!r}, whose {setting} may name a program or a file; nothing"
                " was imported. --trust takes it, if you know what it does"
            )
            raise UsageError(msg)
    with store_errors_as_usage():
        changed = Decisions(asked[DECISIONS]).merge(*found)
    click.echo(f"{changed} of {count} decisions put into {asked[DECISIONS]}")
    if unknown:
        left = f"{count - len(found)} left out, on what is no backend here"
        click.echo(printable(f"{left}: {', '.join(unknown)}"), err=True)
    return 0


def _opened(asked: Request) -> Decisions:
    """Open the file.

    Raises:
        UsageError: there is none.
    """
    from dynamometer.results.store.decisions import Decisions

    path = asked[DECISIONS]
    if not path.exists():
        msg = f"there is no file of decisions {path}; a run with `--backend ensemble` makes one"
        raise UsageError(msg)
    return Decisions(path)


def _print_json(decisions: Sequence[Decision]) -> None:
    from dynamometer.results.store.decisions import exported

    click.echo(exported(decisions), nl=False)


def _line(each: Decision) -> str:
    return printable(
        f"{each.subject:5} {each.key[:16]:16} {each.arm:24} {_ratio(each):28}"
        f" {each.setting.threads} threads on {each.setting.device_name}{_unusual(each)}"
        f"  {each.label}"
    )


def _unusual(each: Decision) -> str:
    """Say how matrices are multiplied and memory is allocated, where that is not as usual."""
    precision, allocator = each.setting.matmul_precision, each.setting.allocator
    products = "" if precision is MatmulPrecision.HIGHEST else f", matrix products {precision}"
    return products if allocator is Allocator.KEEP else f"{products}, allocator {allocator}"


def _explained(each: Decision) -> list[str]:
    setting = each.setting
    versions = ", ".join(f"{name} {version}" for name, version in setting.versions.items())
    eager = "" if each.eager_s is None else f", eager takes {each.eager_s * 1e3:.4g} ms"
    lines = [
        f"{each.subject} {each.key}: {each.label}",
        f"  {each.arm}  {_ratio(each)}{eager}",
        (
            f"  on {setting.device_name} ({setting.device}), {setting.threads} threads of"
            f" {setting.processor}{_unusual(each)}; {versions}"
        ),
        f"  decided {each.decided_at} by run {each.run}, which took {each.tuning_s:.1f} s",
        *(_candidate(one) for one in each.evidence),
    ]
    return list(map(printable, lines))


def _candidate(each: Evidence) -> str:
    """Say what became of a candidate."""
    if each.speedup is None:
        return f"    {each.arm:24} {each.outcome.line}"
    # Not known where its graphs were in caches, which another candidate had filled.
    known = each.compile_s is not None
    compiled = f"compiled in {each.compile_s:.1f} s" if known else "compile time not known"
    return f"    {each.arm:24} {_evidence(each.speedup)}, {compiled}, {each.samples} samples"


def _ratio(each: Decision) -> str:
    if each.chosen:
        return _evidence(each.chosen.speedup)
    if not each.evidence:
        return "no candidate was left"
    timed = any(one.speedup for one in each.evidence)
    return "no candidate is faster" if timed else "no candidate could be timed"


def _evidence(ratio: Ratio | None) -> str:
    return f"{ratio.value:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else "not timed"
