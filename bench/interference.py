#!/usr/bin/env python3
"""Measure eager beside ONNX Runtime, whose idle threads spin, and each of them alone.

    pip install onnx onnxruntime onnxscript
    python bench/interference.py --output docs/interference.md

The truth is the ratio of each arm alone: two processes that hold one arm each are timed in turn,
waiting in between until nothing spins. Beside it stand what a run reports, and what alternating
call by call in one process gives.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.dynamo.processor import processor_name
from dynamometer.results.statistics.significance import Replicate, moderated, ratio
from dynamometer.results.statistics.summary import CaseSummary, summarize_cases
from dynamometer.results.store import store
from dynamometer.results.values.records import BetweenProcessSd

if TYPE_CHECKING:
    from dynamometer.results.values.records import Ratio, Record

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("resnet18", "squeezenet1_1", "mobilenet_v2")
ARM = "ort_arm:onnx_runtime"

# Each process holds some arms. At each line it reads it calls them in turn, first for a while to
# get going, then for as long again, and prints the median seconds of each arm's calls.
PROBE = """
import json, statistics, sys, time
sys.path.insert(0, {root!r}); import dynamometer; del sys.path[0]
from dynamometer.common.machine.allocator import apply
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning.cases import build_cases
from dynamometer.common.planning.selection import Selection, select
from dynamometer.common.registry import resolve
from dynamometer.results.values.cases import Allocator, Scale
import torch
apply(Allocator.KEEP)
suite = resolve("suites", "torchbench").open({{}})
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
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(2):
            samples = {{name: [] for name in arms}}
            ends = time.perf_counter() + {burst_s} * len(arms)
            while time.perf_counter() < ends or not all(samples.values()):
                for name, call in arms.items():
                    started = time.perf_counter(); call(*args)
                    samples[name].append(time.perf_counter() - started)
        medians = {{name: statistics.median(own) for name, own in samples.items()}}
        print(json.dumps(medians), flush=True)
"""
FEWEST_ROUNDS = 2
BURST_S = 0.2
IDLE_S = 0.1
"""Until the threads of the process that was timed have stopped spinning."""


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
    parser.add_argument("--only", action="append", metavar="MODEL")
    parser.add_argument("--scale", default="small")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--bursts", type=int, default=10, help="of each process of a round")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.rounds < FEWEST_ROUNDS:
        parser.error(f"--rounds {options.rounds}: an interval takes {FEWEST_ROUNDS}")
    found = []
    for model in options.only or MODELS:
        found.append(_measure(model, options))
        print(_row(found[-1]), flush=True)
    text = _page(found, options)
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
        alone.append(_ratio_of(model, options, [("baseline",), (ARM,)]))
        in_turn.append(_ratio_of(model, options, [("baseline", ARM)]))
    (case,) = summarize_cases(records)
    return Finding(model, case, _ratio(alone), _ratio(in_turn))


def _ratio_of(model: str, options: argparse.Namespace, groups: list[tuple[str, ...]]) -> float:
    """Start a process for each group of arms, time them in turn, and give the log speedup."""
    probes = [_start(model, options.scale, arms) for arms in groups]
    logs = []
    for _ in range(options.bursts):
        medians: dict[str, float] = {}
        for probe in probes:
            medians |= _ask(probe)
            time.sleep(IDLE_S)
        logs.append(math.log(medians["baseline"] / medians[ARM]))
        probes.reverse()
    for probe in probes:
        probe.communicate()
    return statistics.median(logs)


def _ratio(logs: list[float]) -> Ratio:
    """Return the interval these processes show by themselves, with nothing assumed of others."""
    replicates = [Replicate(each) for each in logs]
    return ratio(moderated(replicates, BetweenProcessSd(sd_log=0.0, df=0.0)))


def _report(model: str, scale: str, index: int) -> list[Record]:
    """Run one replicate, with an order of its own."""
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, str(ROOT / "torchbench.py"), "--only", model, "--backend", ARM]
        command += ["--scale", scale, "-r", "1", "--seed", str(index), "--output-dir", runs]
        subprocess.run(command, check=True, capture_output=True, env=_environment())
        (directory,) = Path(runs).iterdir()
        return list(store.read_records(directory))


def _start(model: str, scale: str, arms: tuple[str, ...]) -> subprocess.Popen[str]:
    code = PROBE.format(root=str(ROOT), model=model, scale=scale, arms=arms, burst_s=BURST_S)
    probe = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=_environment(),
    )  # fmt: skip
    assert probe.stdout is not None
    while probe.stdout.readline() != "ready\n":  # an exporter may print
        if probe.poll() is not None:
            msg = f"{model}: the process that holds {', '.join(arms)} ended"
            raise SystemExit(msg)
    return probe


def _ask(probe: subprocess.Popen[str]) -> dict[str, float]:
    assert probe.stdin is not None
    assert probe.stdout is not None
    print("go", file=probe.stdin, flush=True)
    line = probe.stdout.readline()
    if not line:
        msg = "a process that holds an arm has died while it was timed"
        raise SystemExit(msg)
    medians: dict[str, float] = json.loads(line)
    return medians


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent)}


def _agrees(found: Finding) -> bool:
    """Return whether the report and the arms alone differ by no more than their intervals allow.

    The half-width of a difference of two independent estimates is the root of the sum of squares.
    """
    reported = found.case.arms[0].speedup
    if reported is None:
        return False
    half_widths = [math.log(each.high / each.low) / 2 for each in (reported, found.alone)]
    return abs(math.log(reported.value / found.alone.value)) <= math.hypot(*half_widths)


def _page(found: list[Finding], options: argparse.Namespace) -> str:
    lines = [
        "# Arms that disturb each other",
        "",
        f"ONNX Runtime over eager, float32 inference, {options.scale} scale, on",
        f"{os.cpu_count()} cores ({processor_name()}). Its idle threads spin on the cores eager",
        "needs, for 35 ms after each call. *Alone*: each in a process of its own, timed in turn",
        "waiting in between until nothing spins: the truth wanted.",
        "*Reported*: by a run, which sees that each arm has threads of its own, and waits until",
        "they are idle between bursts. *Call by call*: alternating in one process.",
        f"{options.rounds} of each, in turn; 95 % intervals (t). Two agree where they differ by no",
        "more than both intervals allow. Made by `bench/interference.py`.",
        "",
        "| model | alone | reported | how | agree | call by call | off by |",
        "|---|---|---|---|---|---|---|",
        *map(_row, found),
    ]
    return "\n".join(lines) + "\n"


def _row(found: Finding) -> str:
    (arm,) = found.case.arms
    if arm.speedup is None:
        return f"| {found.model} | {_text(found.alone)} | {arm.outcome.reason} | | | | |"
    off = found.in_turn.value / found.alone.value
    return (
        f"| {found.model} | {_text(found.alone)} | {_text(arm.speedup)}{_mark(found.case)}"
        f" | {_how(found.case)} | {'yes' if _agrees(found) else '**no**'}"
        f" | {_text(found.in_turn)} | {max(off, 1 / off):.2f}x |"
    )


def _how(case: CaseSummary) -> str:
    waited = sum(record.waited for record in case.records)
    return f"waited in {waited} of {len(case.records)}" + (", isolated" if case.is_isolated else "")


def _mark(case: CaseSummary) -> str:
    return "" if case.is_conclusive else " (left open)"


def _text(found: Ratio) -> str:
    return f"{found.value:.2f}x [{found.low:.2f}, {found.high:.2f}]"


if __name__ == "__main__":
    raise SystemExit(main())
