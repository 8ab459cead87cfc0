#!/usr/bin/env python3
"""Set what Dynamo captures under one torch beside what it captures under another.

    python bench/coverage_across_torch.py --before RUN ... --after RUN ... --output FILE

Each RUN is the directory of a run with `--coverage`, one for each suite and mode; those of one
torch stand together. What is counted is compared model by model, and so are the lines at which
graphs end and the functions left as they are, with reasons and operators lost there. Time and
guards are not, as the one is measured and the other a matter of how torch writes them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.common.studies.coverage.rows import COVERAGE
from dynamometer.common.studies.coverage.summary import coverage_of, summarize
from dynamometer.results.reports.texts import in_source, place
from dynamometer.results.store import store
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.coverage import Coverage
    from dynamometer.results.values.records import Record

COUNTED = (
    "status", "graphs", "graph_calls", "captured_ops", "total_ops", "frames_ok", "frames",
    "frames_again", "full_graph", "largest_graph", "breaks", "unique_breaks", "recompiles",
    "recompile_limit_hits", "skipped_frames", "unexplained_ops",
)  # fmt: skip
"""Columns of the coverage CSV in which two versions are compared."""

Key = tuple[str, str, str, str]
"""Suite, mode, scale, and model."""

Counted = tuple["Mapping[str, object]", "Mapping[str, str]"]
"""The numbers of a model, and of each place that loses something what and why."""


def main() -> int:
    """Read the runs and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, nargs="+", required=True, metavar="RUN")
    parser.add_argument("--after", type=Path, nargs="+", required=True, metavar="RUN")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    text = _page(*map(_versions, (options.before, options.after)))
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _versions(runs: Sequence[Path]) -> tuple[str, dict[Key, Counted]]:
    """Return the torch runs were made with, and what was counted of each model."""
    manifests = [store.read_manifest(run) for run in runs]
    torches = {manifest.environment.packages["torch"] for manifest in manifests}
    if len(torches) != 1:
        sys.exit(f"{', '.join(map(str, runs))}: made with several versions of torch: {torches}")
    rows = {
        _key(manifest.plan.suite, record.case): (
            _row(record),
            _not_captured(coverage_of(record)),
        )
        for run, manifest in zip(runs, manifests, strict=True)
        for record in store.read_records(run)
        if record.outcome.status is not Status.SKIP
    }
    return torches.pop(), rows


def _row(record: Record) -> dict[str, object]:
    found = summarize([record])
    return {each.name: each.value(found) for each in COVERAGE.columns}


def _not_captured(seen: Coverage | None) -> dict[str, str]:
    """Return of each place that loses something how many operators, and why."""
    return {
        f"{place(each.file, each.line)} {in_source(each.function)}":
            f"{each.not_captured_ops} not captured, {in_source(each.reason)}"
        for each in (seen.not_captured if seen else ())
    }  # fmt: skip


def _key(suite: str, case: Case) -> Key:
    return suite, str(case.mode), str(case.scale), case.label


def _page(
    before: tuple[str, Mapping[Key, Counted]], after: tuple[str, Mapping[Key, Counted]]
) -> str:
    (old, old_rows), (new, new_rows) = before, after
    both = sorted(old_rows.keys() & new_rows.keys())
    different = {key: _differences(old_rows[key], new_rows[key]) for key in both}
    lines = [
        "# What is captured, by version of torch",
        "",
        f"torch {old} beside {new}: what `--coverage` counts, {len(COUNTED)} numbers a model,",
        "and the lines and functions that lose something, with operators and reason.",
        "Made by `bench/coverage_across_torch.py`.",
        "",
        "| suite | mode | scale | models | all equal | different |",
        "|---|---|---|---|---|---|",
    ]
    models = Counter(key[:3] for key in both)
    equal = Counter(key[:3] for key in both if not different[key])
    lines += [
        f"| {' | '.join(group)} | {count} | {equal[group]} | {count - equal[group]} |"
        for group, count in sorted(models.items())
    ]
    lines += [
        "",
        f"Every difference, {old} first:",
        "",
        "| suite | mode | scale | model | what |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {' | '.join(key)} | {'; '.join(found)} |" for key, found in different.items() if found
    ]
    alone = sorted(old_rows.keys() ^ new_rows.keys())
    if alone:
        lines += ["", "Under one of the two alone: " + ", ".join("/".join(key) for key in alone)]
    return "\n".join(lines) + "\n"


def _differences(old: Counted, new: Counted) -> list[str]:
    (numbers, losses), (numbers_now, losses_now) = old, new
    pairs = [(name, numbers[name], numbers_now[name]) for name in COUNTED]
    pairs += [
        (f"{where}:", losses.get(where, "nothing"), losses_now.get(where, "nothing"))
        for where in sorted(losses.keys() | losses_now.keys())
    ]
    return [f"{name} {before} → {after}" for name, before, after in pairs if before != after]


if __name__ == "__main__":
    raise SystemExit(main())
