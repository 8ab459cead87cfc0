#!/usr/bin/env python3
"""Measure eager beside ONNX Runtime, whose idle threads spin, and each of them alone.

    pip install onnx onnxruntime onnxscript
    python bench/interference.py --output docs/interference.md

The truth is the ratio of each arm alone, in processes that hold no other arm; beside it stand what
a run reports, and what call-by-call alternation in one process gives.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from dynamometer.dynamo.processor import processor_name  # noqa: E402  once the path is set
from dynamometer.results import store  # noqa: E402  likewise
from dynamometer.results.inference import moderated, ratio  # noqa: E402  likewise
from dynamometer.results.records import ASSUMED_SPREAD, Ratio, Record  # noqa: E402  likewise
from dynamometer.results.summary import CaseSummary, summarize_cases  # noqa: E402  likewise

MODELS = ("resnet18", "squeezenet1_1", "mobilenet_v2")
ARM = "ort_arm:onnx_runtime"

# Each process: the model, one arm or both in turn, medians of single calls after a warm-up.
PROBE = """
import json, statistics, sys, time
sys.path.insert(0, {root!r}); import dynamometer; del sys.path[0]
from dynamometer.common.allocator import apply
from dynamometer.common.plan import Selection, Workload, build_cases, select
from dynamometer.common.registry import resolve
from dynamometer.results.cases import Allocator, Scale
import torch
apply(Allocator.KEEP)
suite = resolve("suites", "torchbench")({{}})
(spec,) = select(suite.specs(), Selection(only=({model!r},)))
(case,) = build_cases([spec], Workload(arms=(), scale=Scale({scale!r})))
torch.manual_seed(0)
loaded = suite.load(spec, case)
module, args = loaded.module.eval(), loaded.args
arms = {{}}
with torch.no_grad():
    for name in {arms!r}:
        arms[name] = resolve("backends", name).compile(module, args, {{}})
        for _ in range(10): arms[name](*args)
    samples = {{name: [] for name in arms}}
    ends = time.perf_counter() + 2.0 * len(arms)
    while time.perf_counter() < ends:
        for name, call in arms.items():
            started = time.perf_counter(); call(*args)
            samples[name].append(time.perf_counter() - started)
print(json.dumps({{name: statistics.median(own) for name, own in samples.items()}}))
"""


@dataclass(frozen=True)
class Finding:
    """One model: what a run reports, and the ratios alone and call by call."""

    model: str
    case: CaseSummary
    alone: Ratio
    in_turn: Ratio


def main() -> int:
    """Measure and write the table; exits with 1 if a report disagrees with the truth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", default="full")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = [_measure(model, options) for model in MODELS]
    text = _page(found)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0 if all(_agrees(each) for each in found) else 1


def _measure(model: str, options: argparse.Namespace) -> Finding:
    """Take each kind of process once a round, so that all meet the machine's better hours alike."""
    records: list[Record] = []
    alone, in_turn = [], []
    for index in range(options.rounds):
        records += _report(model, options.scale, index)
        single = {arm: _probe(model, options.scale, (arm,))[arm] for arm in ("baseline", ARM)}
        both = _probe(model, options.scale, ("baseline", ARM))
        alone.append(math.log(single["baseline"] / single[ARM]))
        in_turn.append(math.log(both["baseline"] / both[ARM]))
    (case,) = summarize_cases(records)
    return Finding(model, case, _ratio(alone), _ratio(in_turn))


def _ratio(logs: list[float]) -> Ratio:
    return ratio(*moderated(logs, ASSUMED_SPREAD), len(logs))


def _report(model: str, scale: str, index: int) -> list[Record]:
    """Run one replicate, with an order of its own."""
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, str(ROOT / "torchbench.py"), "--only", model, "--backend", ARM]
        command += ["--scale", scale, "-r", "1", "--seed", str(index), "--output-dir", runs]
        subprocess.run(command, check=True, capture_output=True, env=_environment())
        (directory,) = Path(runs).iterdir()
        return list(store.read_records(directory))


def _probe(model: str, scale: str, arms: tuple[str, ...]) -> dict[str, float]:
    code = PROBE.format(root=str(ROOT), model=model, scale=scale, arms=arms)
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        env=_environment(),
    )  # fmt: skip
    medians: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return medians


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent)}


def _agrees(found: Finding) -> bool:
    """Tell whether the reported interval and that of the arms alone have a value in common."""
    reported = found.case.arms[0].speedup
    return (
        reported is not None
        and reported.low <= found.alone.high
        and found.alone.low <= reported.high
    )


def _page(found: list[Finding]) -> str:
    lines = [
        "# Arms that disturb each other",
        "",
        "ONNX Runtime over eager, float32 inference, on",
        f"{os.cpu_count()} cores ({processor_name()}). Its idle threads spin on the cores eager",
        "needs. *Alone*: each in processes of its own, the truth wanted. *Reported*: by replicates",
        "of a run, in which arms that disturb each other are timed apart. *Call by call*: in turn",
        "in one process. Five of each, in turn. Made by `bench/interference.py`.",
        "",
        "| model | alone | reported | timed apart | agree | call by call | off by |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in found:
        (arm,) = each.case.arms
        if arm.speedup is None:
            lines.append(f"| {each.model} | {_text(each.alone)} | {arm.outcome.reason} | | | | |")
            continue
        off = each.in_turn.value / each.alone.value
        lines.append(
            f"| {each.model} | {_text(each.alone)} | {_text(arm.speedup)}"
            f" | {'yes' if each.case.is_apart else 'no'} | {'yes' if _agrees(each) else '**no**'}"
            f" | {_text(each.in_turn)} | {max(off, 1 / off):.2f}x |"
        )
    return "\n".join(lines) + "\n"


def _text(found: Ratio) -> str:
    return f"{found.value:.2f}x [{found.low:.2f}, {found.high:.2f}]"


if __name__ == "__main__":
    raise SystemExit(main())
