#!/usr/bin/env python3
"""Run every backend that can be used here over the suites, and write what became of it.

    python bench/backends.py --run DIR [-j 2] [--suite NAME] [--models N]  # suites at tiny scale
    python bench/backends.py --table docs/backends.csv --output docs/backends.md [RUN ...]

Nothing is timed: models are compiled, called, and held to eager. With `--models N` it is the first
N of each suite, in the order of their names, that are not skipped. What came of each model is kept
in the table, to which runs add, finished or not; the page is made of all of it.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from exit_codes import worst

from dynamometer.common.command_line.backends_list import Entry, entries
from dynamometer.common.interfaces import arm_names
from dynamometer.common.planning.arms import usable
from dynamometer.models.suites.tables import TableSuite
from dynamometer.results.listing import first_of
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE, Mode
from dynamometer.results.values.records import PASSED, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dynamometer.results.values.records import Outcome

ROOT = Path(__file__).resolve().parent.parent
SUITES = ("torchbench", "huggingface", "timm_models")
VARIANTS = {
    "inductor:freezing": "weights folded and packed",
    "inductor:cpp-wrapper": "kernels called from C++",
    "inductor:freezing,max-autotune": "and templates chosen by timing them",
    "aot_inductor:freezing": "the same of a library",
    "onnx:no-spin": "idle threads of ONNX Runtime sleep",
    "ov:hint=throughput": "OpenVINO for many requests",
}
"""Useful settings that have a row of their own."""

SLOW = {"inductor:freezing,max-autotune"}
"""Those that are left out unless asked for: minutes a model."""

_LONGEST_REASON = 160


class Row(msgspec.Struct, frozen=True):
    """What came of a model with a backend.

    Attributes:
        suite: the model's.
        model: its name.
        backend: the arm's name.
        torch: the version.
        status: how it ended.
        reason: why, where it didn't pass.
    """

    suite: str
    model: str
    backend: str
    torch: str
    status: Status
    reason: str


def main() -> int:
    """Run the suites, or write the page of what was run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--suite", action="append", dest="suites", choices=SUITES)
    parser.add_argument("--models", type=int)
    parser.add_argument("--timeout", type=float, default=1200.0)
    parser.add_argument("--slow", action="store_true", help="also what takes minutes a model")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    codes: list[int] = []
    if options.run:
        arms = [arm for arm in _arms() if options.slow or arm not in SLOW]
        codes += [_run(suite, arms, options) for suite in options.suites or SUITES]
    if options.runs or options.table:
        known = read_table(options.table) if options.table and options.table.exists() else []
        rows = merged([*known, *rows_of(options.runs)])
        if options.table:
            write_table(rows, options.table)
        text = page(rows)
        print(text)
        if options.output:
            options.output.write_text(text)
    return worst(codes)


def _arms() -> list[str]:
    """Return what can be used here, each followed by its variants."""
    found = usable("cpu", Mode.INFERENCE).names
    return [
        arm
        for name in found
        for arm in (name, *(each for each in VARIANTS if arm_names.read(each).backend == name))
    ]


def _run(suite: str, arms: Sequence[str], options: argparse.Namespace) -> int:
    """Run a suite, and return the exit code."""
    chosen = sorted(s.name for s in TableSuite(suite).specs() if not s.skip_reason("cpu"))
    words = [f"--backend={arm}" for arm in arms]
    words += [f"--only={name}" for name in chosen[: options.models]] if options.models else []
    command = [
        *(sys.executable, str(ROOT / f"{suite}.py"), "--accuracy", "--scale", "tiny"),
        *("--timeout", str(options.timeout), "--output-dir", str(options.run)),
        *("-j", str(options.jobs), *words),
    ]
    return subprocess.run(command, check=False).returncode


def rows_of(runs: Sequence[Path]) -> list[Row]:
    """Read what came of the models of some runs."""
    found = []
    for run in runs:
        torch = store.read_manifest(run).environment.packages["torch"]
        found += [
            Row(
                record.case.suite, record.case.model, result.arm, torch, result.outcome.status,
                "" if result.outcome == PASSED else _reason(result.outcome),
            )
            for record in store.read_records(run)
            for result in record.arms
            if result.arm != BASELINE
            if result.outcome.status is not Status.INFRA  # it says nothing of the backend
        ]  # fmt: skip
    return found


def merged(rows: Sequence[Row]) -> list[Row]:
    """Sort rows; of a model that was run repeatedly with a backend the last one counts."""
    last = {(each.suite, each.model, each.backend): each for each in rows}
    return [last[key] for key in sorted(last)]


def read_table(path: Path) -> list[Row]:
    """Read the rows of a table that `write_table` wrote."""
    with path.open(newline="") as file:
        return msgspec.convert(list(csv.DictReader(file)), list[Row])


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, Row.__struct_fields__, lineterminator="\n")
        writer.writeheader()
        writer.writerows(msgspec.structs.asdict(each) for each in rows)


def page(rows: Sequence[Row]) -> str:
    """Return the page of some rows, one of each model and backend."""
    models: dict[str, set[str]] = defaultdict(set)
    by_backend: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        models[row.suite].add(row.model)
        by_backend[row.backend][row.suite].append(row)
    suites = [suite for suite in SUITES if models[suite]]
    counted = ", ".join(f"{len(models[suite])} of {suite}" for suite in suites)
    return "\n".join(
        [
            _HEAD.format(torch=" and ".join(sorted({each.torch for each in rows})), models=counted),
            f"| backend | {' | '.join(suites)} |",
            f"|---|{'---|' * len(suites)}",
            *(_line(name, by_backend[name], suites) for name in sorted(by_backend)),
            "",
            "## Why not",
            "",
            "| backend | status | why | models |",
            "|---|---|---|---|",
            *_failures(by_backend),
            "",
            "## What there is",
            "",
            *_list(entries()),
            "",
        ]
    )


_HEAD = """# Backends

Made by `bench/backends.py` with torch {torch}: backends as they were run on a CPU, in
inference, float32, at tiny scale, held to eager as [measuring.md](measuring.md) says:
{models}. [backends.csv](backends.csv) has each of them.
`dynamometer ls backends --long` says what works on another machine, and what can be set.

Passed, of the models that were run; what a backend says it can't do is no failure, and is counted
apart.
"""


_OTHERS = """Names that torch registers with `torch.compile` can be given as well, and
`module:attribute` of one's own; of a module in the current folder with `PYTHONPATH=.`."""


def _line(backend: str, found: Mapping[str, Sequence[Row]], suites: Iterable[str]) -> str:
    return f"| `{backend}` | {' | '.join(_rate(found.get(suite, ())) for suite in suites)} |"


def _rate(rows: Sequence[Row]) -> str:
    counts = Counter(each.status for each in rows)
    skipped, run = counts[Status.SKIP], len(rows) - counts[Status.SKIP]
    share = f"{counts[Status.PASS]}/{run}" if run else "-"
    return share + f", {skipped} skipped" * bool(skipped)


def _failures(by_backend: Mapping[str, Mapping[str, Sequence[Row]]]) -> list[str]:
    lines = []
    for backend, by_suite in sorted(by_backend.items()):
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for row in (each for rows in by_suite.values() for each in rows):
            if row.status is not Status.PASS:
                found[str(row.status), row.reason].append(row.model)
        for (status, reason), models in sorted(found.items(), key=lambda each: -len(each[1])):
            said = reason.replace("|", "\\|")
            lines.append(f"| `{backend}` | {status} | {said} | {first_of(models)} |")
    return lines or ["| none | | | |"]


def _reason(outcome: Outcome) -> str:
    """Return why, without what differs from model to model; of a long text its end."""
    text = " ".join((outcome.reason or "no reason was given").split())
    text = re.sub(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?", "N", text)
    return text if len(text) <= _LONGEST_REASON else f"...{text[-_LONGEST_REASON:]}"


def _list(found: Sequence[Entry]) -> list[str]:
    rows = ["| name | kind | devices | trains | what it is |", "|---|---|---|---|---|"]
    for each in found:
        if each.summary.startswith("registered with torch.compile"):
            continue
        devices = ", ".join(each.devices) or "all"
        trains = "yes" if each.trains else "no"
        rows.append(f"| `{each.name}` | {each.kind} | {devices} | {trains} | {each.summary} |")
    rows += ["", _OTHERS, ""]
    rows += ["| variant | |", "|---|---|"]
    rows += [f"| `{name}` | {text} |" for name, text in VARIANTS.items()]
    rows += ["", "| option | of | what it does |", "|---|---|---|"]
    options: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in found:
        for option in each.options:
            options[option.option.replace("|", " or "), option.does].append(f"`{each.name}`")
    rows += [f"| `{form}` | {', '.join(of)} | {does} |" for (form, does), of in options.items()]
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
