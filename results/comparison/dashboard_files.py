"""CSV files of PyTorch's harness, or ours with its columns alone, as one side of a comparison.

They hold one number for each model: neither its error nor where it was measured. So speedups are
taken to differ as those of isolated runs do, which is a guess: of five models beside ours, one was
off by a quarter (docs/against-dynamobench.md). 0 stands for what is missing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from dynamometer.results.comparison.entries import OWN, Entry
from dynamometer.results.comparison.quantities import (
    COMPILE_TIME,
    EAGER_LATENCY,
    LATENCY,
    MEMORY_RATIO,
    SPEEDUP,
    of_values,
)
from dynamometer.results.comparison.sides import Side
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.expected import Expectation
from dynamometer.results.store.reading import csv_table, unquoted
from dynamometer.results.values.cases import IDENTITY
from dynamometer.results.values.records import PASSED, SEPARATE_SD, Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from dynamometer.results.comparison.quantities import Quantity

    Row = Mapping[str, str]
    _Model = tuple[dict[str, str], str, dict[str, str]]

_NAME = re.compile(
    r"(?P<arm>.+?)_(?P<suite>torchbench|huggingface|timm_models|[^_]+)"
    r"_(?P<dtype>float32|float16|bfloat16|amp_fp16|amp_bf16|amp|notset|[a-z]+\d*)"
    r"_(?P<mode>inference|training)_(?P<device>.+)_(?:performance|accuracy)"
)
"""How PyTorch's scripts name a file, and its dashboard reads that name."""

_NEEDED = {"name"}
_OURS, _OF_PAIRS = "status", "base"
_ENDINGS = ("speedup", "accuracy")
_STATUSES = (
    (re.compile("pass"), Status.PASS),
    (re.compile("pass_due_to_skip"), Status.SKIP),
    (re.compile("fail_accuracy"), Status.FAIL_ACCURACY),
    (re.compile("eager_two_runs_differ|eager_variation"), Status.NONDETERMINISTIC),
    (re.compile(".*timeout.*", re.IGNORECASE), Status.TIMEOUT),
    (re.compile(".*OOM.*"), Status.OOM),
    (re.compile(".*infra.*"), Status.INFRA),
    (re.compile(".*"), Status.FAIL),
)
"""What `accuracy` says in our words; what they don't name any further is a failure."""


def read_files(path: Path) -> Side:
    """Read one file, or all of a directory that hold how models ended or how fast they were.

    PyTorch's harness puts others there, such as that of the phases of compiling.

    Raises:
        StoreError: there is none, one that is named is no such file, or two say different things of
            a model; says which.
    """
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not files:
        msg = f"{path} holds neither manifest.json, as a run directory does, nor a CSV file"
        raise StoreError(msg)
    rows: dict[tuple[str, ...], _Model] = {}
    left_out: list[str] = []
    for file in files:
        lines = _rows(file)
        if lines is None:
            left_out.append(file.name)
            continue
        known, arm = _of_name(file)
        own: dict[tuple[str, ...], _Model] = {}
        for row in lines:
            identity = _identity(known, row)
            key = (arm, *identity.values())
            said = {name: value for name, value in row.items() if value}
            _add(own, {key: (identity, arm, said)}, file, "another row")
        _add(rows, own, file, "another file beside it")
    if len(left_out) == len(files):
        what = f"{path} is" if files == [path] else f"{path} holds {', '.join(left_out)}, which is"
        msg = (
            f"{what} no CSV file of PyTorch's harness: it lacks a column `name`, or both of"
            f" {', '.join(_ENDINGS)}, or compares arms with each other"
        )
        raise StoreError(msg)
    return Side(
        source=str(path),
        entries=tuple(_entry(*each) for each in _timed([*_joined(rows.values())])),
        left_out=tuple(left_out),
    )


def _add(
    rows: dict[tuple[str, ...], _Model],
    own: Mapping[tuple[str, ...], _Model],
    file: Path,
    other: str,
) -> None:
    """Add what a file, or a row of it, says of models to what others say of them.

    Raises:
        StoreError: one says something else of the same model.
    """
    for key, (identity, arm, found) in own.items():
        _, _, merged = rows.setdefault(key, (identity, arm, {}))
        for name in _ENDINGS:
            if name in merged and found.get(name, merged[name]) != merged[name]:
                msg = (
                    f"{file} says {name} {found[name]} of {identity['model']}, and {other}"
                    f" {merged[name]}: leave one of them out, or name files as PyTorch's scripts"
                    " do, by backend, suite, dtype, mode and device"
                )
                raise StoreError(msg)
        merged.update(found)


def _joined(models: Iterable[_Model]) -> Iterator[_Model]:
    """Make one of what the two files say of a model, where their batch sizes differ.

    PyTorch checks some models with a smaller one than it times them with, which is the one kept.
    """
    same: defaultdict[tuple[str, ...], list[_Model]] = defaultdict(list)
    for model in models:
        identity, arm, _ = model
        known = (value for name, value in identity.items() if name != "batch_size")
        same[arm, *known].append(model)
    for found in same.values():
        checked, timed = (
            [each for each in found if own in each[2] and other not in each[2]]
            for own, other in (("accuracy", "speedup"), ("speedup", "accuracy"))
        )
        if len(found) == 2 and len(checked) == len(timed) == 1:  # noqa: PLR2004  one of each
            identity, arm, row = timed[0]
            yield identity, arm, {**checked[0][2], **row}
        else:
            yield from found


def _timed(models: Sequence[_Model]) -> Iterator[_Model]:
    """Give models that were checked alone a speedup of 0, where others beside them were timed.

    PyTorch's harness writes no row of a model whose process crashes while it is timed.
    """
    timed = [each for each in models if SPEEDUP.name in each[2]]
    places = {_place(each) for each in timed}
    names = {(*_place(each), each[0]["model"]) for each in timed}
    for model in models:
        identity, arm, row = model
        is_missing = _place(model) in places and (*_place(model), identity["model"]) not in names
        yield (identity, arm, {**row, SPEEDUP.name: "0"}) if is_missing else model


def _place(model: _Model) -> tuple[str, ...]:
    """Return in what all rows of a file are the same."""
    identity, arm, _ = model
    return arm, *(identity.get(each, "") for each in IDENTITY if each not in _OF_ROWS)


_OF_ROWS = ("model", "batch_size")


def _rows(file: Path) -> list[Row] | None:
    """Return the rows of a file; `None` if it says neither how models ended nor how fast they were.

    Raises:
        StoreError: it can't be read, has columns of ours, or a row without a name.
    """
    columns, lines = csv_table(file, may_be_pipe=True)
    needed = _NEEDED.issubset(columns) and set(_ENDINGS).intersection(columns)
    if not needed or _OF_PAIRS in columns:
        return None
    if _OURS in columns:  # others of which say of a case what nobody looks at here
        msg = (
            f"{file} has other columns than PyTorch's: compare the run's directory, or what"
            " --csv-compat writes"
        )
        raise StoreError(msg)
    rows: list[Row] = [row for _, row in lines]
    if not all(row.get("name") for row in rows):
        msg = f"{file} has a row without a name"
        raise StoreError(msg)
    return rows


def _of_name(file: Path) -> tuple[dict[str, str], str]:
    """Return what a file's name tells of its cases, and the arm."""
    found = _NAME.fullmatch(file.stem)
    if found is None:
        return {}, "compiled"
    known = found.groupdict()
    words = known.pop("arm").split("_")
    arm = "_".join(each for each in words if each != "dynamic")
    return {**known, "shapes": "dynamic" if "dynamic" in words else "static"}, arm or "compiled"


def _identity(known: Mapping[str, str], row: Row) -> dict[str, str]:
    size = row.get("batch_size")
    size = OWN if size == "0" else size  # none that is known: the model's own, where it ran
    of_row = {"model": unquoted(row["name"]), "device": row.get("dev"), "batch_size": size}
    return {**known, **{name: value for name, value in of_row.items() if value}}


def _entry(identity: Mapping[str, str], arm: str, row: Row) -> Entry:
    outcome = _outcome(row)
    counts = [_number(row, name) for name in ("calls_captured", "graph_breaks")]
    ops, breaks = (None if each is None else int(each) for each in counts)
    return Entry(
        identity=identity,
        arm=arm,
        outcome=outcome,
        expectation=Expectation(status=outcome.status, captured_ops=ops, graph_breaks=breaks),
        quantities=_quantities(row) if outcome.status is Status.PASS else {},
    )


def _outcome(row: Row) -> Outcome:
    """Return how a model ended: as `accuracy` says, and if it was timed whether it ran then.

    Theirs has 0 for everything where a model that passed the check failed when it was timed, and so
    their table counts it. Ours has no speedup of a disturbed case, but what it took to compile.
    """
    said = row.get("accuracy")
    if said:
        status = next(status for form, status in _STATUSES if form.fullmatch(said))
        if status is not Status.PASS:
            return Outcome(status=status, reason=said)
    needed = _MEASURED if said else ("speedup",)
    if (said and not row.get("speedup")) or any(_number(row, name) for name in needed):
        return PASSED
    return Outcome(status=Status.FAIL, reason="it has no speedup")


_MEASURED = ("speedup", "abs_latency", "compilation_latency", "dynamo_peak_mem")


def _quantities(row: Row) -> dict[str, Quantity]:
    speedup, latency = (_number(row, name) for name in ("speedup", "abs_latency"))
    eager = speedup * latency if speedup and latency else None
    values = (
        (SPEEDUP, speedup),
        (COMPILE_TIME, _number(row, "compilation_latency")),
        (MEMORY_RATIO, _number(row, "compression_ratio")),
        (EAGER_LATENCY, eager),
        (LATENCY, latency),
    )
    found = [of_values(kind, [value]) for kind, value in values if value]
    known = {each.kind.name: each for each in found if each is not None}
    if SPEEDUP.name in known:
        known[SPEEDUP.name] = replace(known[SPEEDUP.name], between_sd=SEPARATE_SD)
    return known


def _number(row: Row, name: str) -> float | None:
    try:
        found = float(row[name])
    except (KeyError, TypeError, ValueError):
        return None
    return found if found == 0 or _LEAST <= found <= _MOST else None


_LEAST, _MOST = 1e-18, 1e18
"""Whatever is measured lies between, and what is made of two such numbers is one."""
