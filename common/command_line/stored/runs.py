"""What commands on stored runs share: which run and which model is meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import UnknownNameError
from dynamometer.common.interfaces.option import Argument, Arguments
from dynamometer.common.interfaces.run_options import OUTPUT_DIR
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.store import store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.comparison.sides import Side
    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record

RUN = Argument[Path](
    ("RUN",), default=Path(), reads=click.Path(path_type=Path), is_required=True
)  # fmt: skip
"""Its directory, or its name."""

RUN_OR_SEVERAL = Arguments[Path](("RUN",), reads=click.Path(path_type=Path))
"""Likewise."""

RUNS = msgspec.structs.replace(OUTPUT_DIR, help="Where a run is looked for by its name.")


def run_directory(name: Path, runs: Path) -> Path:
    """Return the directory that is meant: the one at a path, or else the run of that name.

    Args:
        name: a path, or the name of a run, as `dynamometer ls runs` prints it.
        runs: the directory that run directories are made in.
    """
    below = runs / name
    is_name = ".." not in name.parts and not os.path.lexists(name)
    return below if is_name and os.path.exists(below) else name  # noqa: PTH110  a name may be too long


def open_run(directory: Path) -> StoredRun:
    """Read a run.

    Raises:
        UsageError: it is none, or damaged, or the plugin that brings its study isn't installed.
    """
    from dynamometer.results.exports.export import StoredRun  # imports scipy

    with store_errors_as_usage():
        manifest = store.read_manifest(directory)
        found = store.read_run(directory)
    if found.warning:
        click.echo(f"{directory}: {found.warning}", err=True)
    return StoredRun(manifest, tuple(found.records), registry.study(manifest.plan.study))


def side_of(directory: Path, manifest: Manifest, records: Sequence[Record]) -> Side:
    """Return a run as what is compared with others.

    Raises:
        UsageError: the plugin that brings its study isn't installed.
    """
    from dynamometer.results.comparison.sides import of_cases  # imports scipy
    from dynamometer.results.statistics.summary import by_case

    study = registry.study(manifest.plan.study)
    return of_cases(str(directory), manifest, by_case(records), study.compared)


def cases_of(manifest: Manifest, model: str) -> list[Case]:
    """Return the cases of a model: those of that label, or else of that name.

    Raises:
        UnknownNameError: the run has none; says which names come near.
    """
    cases = manifest.plan.cases
    found = [each for each in cases if model in {each.label, each.id, each.id_without_arms}]
    found = found or [each for each in cases if each.model == model]
    if not found:
        names = {each.label for each in cases}
        kind, hint = "model", "`dynamometer show RUN` has all of the run."
        raise UnknownNameError(kind, model, names, hint)
    return found
