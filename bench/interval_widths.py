#!/usr/bin/env python3
"""Set the interval we print beside how far PyTorch's harness is from itself, and what both cost.

    python bench/interval_widths.py --checkout DIR --output docs/interval-widths.md

DIR is a checkout of pytorch/benchmark. Theirs runs five times with its default 30 repeats (one
performance run each; correctness would take as many again), ours once with default settings.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from against_dynamobench import ROOT, STUB, NotRunError, _cpu, _their_run

MODELS = ("lennard_jones", "resnet18", "squeezenet1_1", "dcgan", "phlippe_resnet")
RUNS = 5


def main() -> int:
    """Run both, ours and theirs model by model, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=MODELS, metavar="MODEL")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    options.batch_size, options.repeat, options.limit_s = 1, 30, 600.0
    rows: list[str] = []
    left_out: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "sitecustomize.py").write_text(STUB.format(root=str(ROOT)))
        for model in options.only or MODELS:
            own, own_s = _ours(model)
            try:
                runs = [
                    _their_run(model, options, Path(scratch), "--performance") for _ in range(RUNS)
                ]
            except NotRunError as error:
                left_out[model] = str(error)
                print(f"{model} left out: {error}", flush=True)
                continue
            rows.append(_row(model, own, own_s, runs))
            print(rows[-1], flush=True)
    text = _page(rows, left_out)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _ours(model: str) -> tuple[dict[str, Any], float]:
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, str(ROOT / "torchbench.py"), "--only", model]
        command += ["--backend", "inductor", "--batch-size", "1", "--output-dir", runs]
        started = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        spent_s = time.monotonic() - started
        (table,) = Path(runs).glob("*/*.csv")
        return _first_row(table), spent_s


def _first_row(table: Path) -> dict[str, Any]:
    with table.open(newline="") as file:
        return next(csv.DictReader(file))


def _row(model: str, own: dict[str, Any], own_s: float, runs: list[tuple[float, str]]) -> str:
    try:
        speedups = [float(printed.partition("x")[0]) for _, printed in runs]
    except ValueError:
        return f"| {model} | {own_s:.1f} | | | | | nothing | |"
    if not own["speedup"]:
        return f"| {model} | {own_s:.1f} | | nothing | | | | |"
    spread = (max(speedups) - min(speedups)) / statistics.median(speedups)
    low, high, value = (float(own[name]) for name in ("speedup_low", "speedup_high", "speedup"))
    seconds = statistics.fmean(spent for spent, _ in runs)
    return (
        f"| {model} | {own_s:.1f} | {own['replicates']} | {value:.3f}x [{low:.3f}, {high:.3f}]"
        f" | {(high - low) / value:.1%} | {seconds:.1f} |"
        f" {', '.join(f'{each:.3f}' for each in speedups)} | {spread:.1%} |"
    )


def _page(rows: list[str], left_out: dict[str, str]) -> str:
    lines = [
        "# Intervals beside the spread of runs",
        "",
        f"Inductor, float32 inference, batch 1, full scale, on {_cpu()}. Ours: one run with",
        "default settings, start included; it gives correctness, memory and the interval. Theirs:",
        "five performance runs of PyTorch's harness with its default 30 repeats, each giving a",
        "speedup without an interval. Made by `bench/interval_widths.py`.",
        "",
        "| model | ours, s | processes | we print | width | theirs, s | they print | range |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
    ]
    if left_out:
        lines += ["", "Left out, as PyTorch's harness did not run them:", ""]
        lines += [f"- {model}: {reason}" for model, reason in left_out.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
