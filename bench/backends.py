#!/usr/bin/env python3
"""Run every backend that can be used here over the suites, and write what became of it.

    python bench/backends.py --run DIR [--models N] [--timeout S]     # the suites at tiny scale
    python bench/backends.py --output docs/backends.md RUN ...        # the page, of finished runs

Nothing is timed: models are compiled, called, and held to eager. With `--models N` it is the first
N of each suite, in the order of their names, that are not skipped.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.common.command_line.backends_list import Entry, entries
from dynamometer.common.interfaces import arm_names
from dynamometer.common.planning.arms import usable
from dynamometer.models.suites.tables import TableSuite
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE, Mode
from dynamometer.results.values.records import Status

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


def main() -> int:
    """Run the suites, or write the page of what was run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--models", type=int)
    parser.add_argument("--timeout", type=float, default=1200.0)
    parser.add_argument("--slow", action="store_true", help="also what takes minutes a model")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.run:
        arms = [arm for arm in _arms() if options.slow or arm not in SLOW]
        for suite in SUITES:
            _run(suite, arms, options)
    if options.runs:
        text = page(options.runs)
        print(text)
        if options.output:
            options.output.write_text(text)
    return 0


def _arms() -> list[str]:
    """Return what can be used here, each followed by its variants."""
    found = usable("cpu", Mode.INFERENCE).names
    return [
        arm
        for name in found
        for arm in (name, *(each for each in VARIANTS if arm_names.read(each).backend == name))
    ]


def _run(suite: str, arms: Sequence[str], options: argparse.Namespace) -> None:
    chosen = sorted(s.name for s in TableSuite(suite).specs() if not s.skip_reason("cpu"))
    words = [f"--backend={arm}" for arm in arms]
    words += [f"--only={name}" for name in chosen[: options.models]] if options.models else []
    command = [
        *(sys.executable, str(ROOT / f"{suite}.py"), "--accuracy", "--scale", "tiny"),
        *("--timeout", str(options.timeout), "--output-dir", str(options.run), *words),
    ]
    subprocess.run(command, check=False)


def page(runs: Sequence[Path]) -> str:
    """Return the page of some runs; of a model that several ran, the last counts."""
    last: dict[tuple[str, str, str], Outcome] = {}
    models: dict[str, set[str]] = defaultdict(set)
    versions: set[str] = set()
    for run in runs:
        manifest = store.read_manifest(run)
        versions.add(manifest.environment.packages["torch"])
        for record in store.read_records(run):
            models[record.case.suite].add(record.case.model)
            for result in record.arms:
                if result.arm != BASELINE:
                    last[result.arm, record.case.suite, record.case.model] = result.outcome
    outcomes: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for (arm, suite, _), outcome in last.items():
        outcomes[arm][suite].append(outcome)
    suites = [suite for suite in SUITES if models[suite]]
    counted = ", ".join(f"{len(models[suite])} of {suite}" for suite in suites)
    return "\n".join(
        [
            _HEAD.format(torch=" and ".join(sorted(versions)), models=counted),
            f"| backend | {' | '.join(suites)} |",
            f"|---|{'---|' * len(suites)}",
            *(_row(arm, outcomes[arm], suites) for arm in sorted(outcomes)),
            "",
            "## Why not",
            "",
            "| backend | status | why | models |",
            "|---|---|---|---|",
            *_failures(outcomes),
            "",
            "## What there is",
            "",
            *_list(entries()),
            "",
        ]
    )


_HEAD = """# Backends

Made by `bench/backends.py` with torch {torch}: backends as they were run on a CPU, in
inference, float32, at tiny scale, held to eager as [measuring.md](measuring.md) says; {models}.
`dynamometer ls backends --long` says what works on another machine, and what can be set.

Passed, of the models that were run; what a backend says it can't do is no failure, and is counted
apart.
"""


_OTHERS = """Names that torch registers with `torch.compile` can be given as well, and
`module:attribute` of one's own; of a module in the current folder with `PYTHONPATH=.`."""


def _row(arm: str, found: Mapping[str, Sequence[Outcome]], suites: Iterable[str]) -> str:
    return f"| `{arm}` | {' | '.join(_rate(found.get(suite, ())) for suite in suites)} |"


def _rate(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(each.status for each in outcomes)
    skipped, run = counts[Status.SKIP], len(outcomes) - counts[Status.SKIP]
    share = f"{counts[Status.PASS]}/{run}" if run else "-"
    return share + f", {skipped} skipped" * bool(skipped)


def _failures(outcomes: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> list[str]:
    rows = []
    for arm, by_suite in sorted(outcomes.items()):
        reasons = Counter(
            (str(each.status), _reason(each))
            for found in by_suite.values()
            for each in found
            if each.status is not Status.PASS
        )
        rows += [
            f"| `{arm}` | {status} | {reason} | {count} |"
            for (status, reason), count in reasons.most_common()
        ]
    return rows or ["| none | | | |"]


def _reason(outcome: Outcome) -> str:
    """Return why, without what differs from model to model; of a long text its end."""
    text = " ".join((outcome.reason or "no reason was given").split())
    text = re.sub(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?", "N", text).replace("|", "\\|")
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
