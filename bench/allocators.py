#!/usr/bin/env python3
"""Measure the same models under several policies of `malloc`, and say what that does to speedups.

    python bench/allocators.py --output docs/allocators.md

Models of the three suites, Inductor against eager, three processes each; policies take turns model
by model, so that a machine's better and worse hours come to all of them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.common.machine.allocator import find_library
from dynamometer.dynamo.processor import processor_name
from dynamometer.results.statistics.summary import CaseSummary, summarize_cases
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.metrics import MINOR_FAULTS
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parent.parent
MODELS = {
    "torchbench.py": ("dcgan", "mobilenet_v3_large", "resnet18", "squeezenet1_1"),
    "timm_models.py": ("lcnet_050", "regnety_002", "tinynet_a"),
    "huggingface.py": ("DistilBertForMaskedLM", "ElectraForCausalLM", "T5Small"),
}


def main() -> int:
    """Measure and write the table and its picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", default="small")
    parser.add_argument("--replicates", type=int, default=3)
    parser.add_argument("--policy", action="append", choices=list(Allocator), type=Allocator)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    policies = options.policy or [
        each for each in Allocator if not each.is_preloaded or find_library(each)
    ]
    found: dict[tuple[str, Allocator], CaseSummary] = {}
    for script, models in MODELS.items():
        for model in models:
            for policy in policies:
                found[model, policy] = _measure(script, model, policy, options)
                print(_row(model, policy, found[model, policy]), flush=True)
    text = _page(found, options.output)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _measure(
    script: str, model: str, policy: Allocator, options: argparse.Namespace
) -> CaseSummary:
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, str(ROOT / script), "--only", model, "--backend", "inductor"]
        command += ["--scale", options.scale, "-r", str(options.replicates)]
        command += ["--allocator", policy, "--output-dir", runs]
        subprocess.run(command, check=True, capture_output=True)
        (directory,) = Path(runs).iterdir()
        (case,) = summarize_cases(store.read_records(directory))
    return case


def _row(model: str, policy: Allocator, case: CaseSummary) -> str:
    (arm,) = case.arms
    if arm.speedup is None or arm.latency_s is None or case.baseline.latency_s is None:
        return f"| {model} | {policy} | {arm.outcome.status} | | | | |"
    faults = [_faults(case, name) for name in (BASELINE, arm.name)]
    return (
        f"| {model} | {policy} | {arm.speedup.value:.3f}x{_mark(case)}"
        f" [{arm.speedup.low:.3f}, {arm.speedup.high:.3f}] | {1e3 * case.baseline.latency_s:.2f}"
        f" | {1e3 * arm.latency_s:.2f} | {faults[0]:.0f} | {faults[1]:.0f} |"
    )


def _mark(case: CaseSummary) -> str:
    if not case.is_conclusive:
        return " (disturbed)"
    return " (isolated)" if case.is_isolated else ""


def _faults(case: CaseSummary, arm: str) -> float:
    return statistics.median(
        sample
        for record in case.records
        for each in record.measurements
        if (each.metric, each.arm) == (MINOR_FAULTS.name, arm)
        for sample in each.samples
    )


def _page(found: dict[tuple[str, Allocator], CaseSummary], output: Path | None) -> str:
    lines = [
        "# What malloc does to speedups",
        "",
        f"Inductor against eager, float32 inference on {processor_name()}. Three processes each,",
        "95 % intervals. `stock` is glibc as it comes, `keep` glibc told to keep freed memory (the",
        "default here), the others are preloaded. (isolated): the arms disturbed each other,",
        "and were timed in processes of their own. Made by `bench/allocators.py`.",
        "",
        "| model | malloc | speedup | eager, ms | inductor, ms | faults a call, eager | inductor |",
        "|---|---|---|---|---|---|---|",
        *(_row(model, policy, case) for (model, policy), case in found.items()),
    ]
    if output and _draw(found, output.with_suffix(".png")):
        lines += ["", f"![Speedups by allocator]({output.with_suffix('.png').name})"]
    return "\n".join(lines) + "\n"


def _draw(found: dict[tuple[str, Allocator], CaseSummary], path: Path) -> bool:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    models = list(dict.fromkeys(model for model, _ in found))
    policies = list(dict.fromkeys(policy for _, policy in found))
    figure = Figure(figsize=(8, 0.5 * len(models) + 1), layout="constrained")
    axes = figure.subplots()
    for index, policy in enumerate(policies):
        _draw_policy(axes, [found[model, policy] for model in models], policy, 0.18 * index)
    axes.axvline(1, color="0.6", linewidth=0.8)
    axes.set_yticks([each + 0.09 * (len(policies) - 1) for each in range(len(models))], models)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xticks([0.5, 0.7, 1, 1.4, 2, 3], ["0.5", "0.7", "1", "1.4", "2", "3"])
    axes.minorticks_off()
    axes.set_xlabel("speedup of Inductor over eager, with 95 % interval")
    axes.legend()
    figure.savefig(path, dpi=150)
    return True


def _draw_policy(axes: Axes, cases: Sequence[CaseSummary], policy: Allocator, shift: float) -> None:
    ratios = [(row, case.arms[0].speedup) for row, case in enumerate(cases)]
    known = [(row + shift, ratio) for row, ratio in ratios if ratio is not None]
    values = [ratio.value for _, ratio in known]
    below = [ratio.value - ratio.low for _, ratio in known]
    above = [ratio.high - ratio.value for _, ratio in known]
    rows = [row for row, _ in known]
    axes.errorbar(values, rows, xerr=[below, above], fmt="o", markersize=4, label=str(policy))


if __name__ == "__main__":
    raise SystemExit(main())
