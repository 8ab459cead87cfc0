#!/usr/bin/env python3
"""Start a busy process in the middle of a run of identical arms, and look at what is concluded.

    python bench/disturbance.py --output docs/disturbance.md

Without the disturbance, with one that comes and goes, and with one that stays. Exits with 1 if
identical arms are called different, or a lasting disturbance leaves no mark.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.dynamo.processor import processor_name
from dynamometer.results.statistics.between_processes import shared
from dynamometer.results.statistics.significance import Verdict
from dynamometer.results.statistics.summary import CaseSummary, summarize_cases
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.metrics import LATENCY

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("resnet18", "mobilenet_v2", "hf_DistilBert")
BUSY = "while True: pass"
KINDS = {"none": (0.0, 1.0), "comes and goes": (0.3, 1.5), "stays": (1.0, 0.0)}
"""Seconds the busy process runs and rests, over and over."""


@dataclass(frozen=True)
class Finding:
    """One model under one disturbance."""

    kind: str
    case: CaseSummary

    @property
    def blocks(self) -> int:
        """How many there are, over all replicates."""
        return sum(
            len(set(each.blocks))
            for record in self.case.records
            for each in record.measurements
            if (each.metric, each.arm) == (LATENCY.name, BASELINE)
        )

    @property
    def repeated(self) -> int:
        """How often one was measured again."""
        return sum(record.repeated_blocks for record in self.case.records)

    @property
    def marked(self) -> int:
        """How many were disturbed to the last."""
        return sum(len(record.disturbed_blocks) for record in self.case.records)


def main() -> int:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", default="small")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = [each for kind in KINDS for each in measure(kind, options.scale, MODELS)]
    text = _page(found)
    print(text)
    if options.output:
        options.output.write_text(text)
    fooled = [each for each in found if verdict_of(each) in {Verdict.FASTER, Verdict.SLOWER}]
    missed = [each for each in found if each.kind == "stays" and not each.marked]
    return 1 if fooled or missed else 0


def measure(kind: str, scale: str, models: Sequence[str]) -> list[Finding]:
    """Run identical arms of some models under a disturbance."""
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as runs:
        disturber = threading.Thread(
            target=_disturb, args=(*KINDS[kind], len(models), Path(runs), stop)
        )
        disturber.start()
        try:
            command = [sys.executable, str(ROOT / "torchbench.py"), "--scale", scale]
            command += ["--backend", "dynamometer.dynamo.known:eager_again", "--output-dir", runs]
            command += [word for model in models for word in ("--only", model)]
            subprocess.run(command, check=True, capture_output=True)
            (directory,) = Path(runs).iterdir()
            cases = shared(summarize_cases(store.read_records(directory)))
            return [Finding(kind, case) for case in cases]
        finally:
            stop.set()
            disturber.join()


def _disturb(busy_s: float, idle_s: float, models: int, runs: Path, stop: threading.Event) -> None:
    """Compute now and then, beginning in the middle: once each model has had a replicate."""
    while not stop.wait(0.1) and _records(runs) < models:
        pass
    while busy_s and not stop.is_set():
        process = subprocess.Popen([sys.executable, "-c", BUSY])
        stop.wait(busy_s)
        process.kill()
        process.wait()
        stop.wait(idle_s)


def _records(runs: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in runs.glob("*/events.jsonl"))


def verdict_of(found: Finding) -> Verdict:
    """Say what is concluded of the two arms."""
    judged = judge([found.case])
    return judged[0].verdict if judged else Verdict.UNCLEAR


def _page(found: list[Finding]) -> str:
    lines = [
        "# A busy process beside a run",
        "",
        f"Identical arms (eager beside eager), default protocol, on {os.cpu_count()} cores",
        f"({processor_name()}). When each model has had its first replicate another process",
        "begins to compute: never, for 0.3 s every 1.8 s, or all the time. Blocks it disturbs are",
        "measured again, at most twice, then marked; from a case with too many of those nothing is",
        "concluded. Made by `bench/disturbance.py`.",
        "",
        "| disturbance | model | blocks | measured again | marked | speedup | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in found:
        ratio = each.case.arms[0].speedup
        text = f"{ratio.value:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else "-"
        lines.append(
            f"| {each.kind} | {each.case.case.model} | {each.blocks} | {each.repeated}"
            f" | {each.marked} | {text} | {verdict_of(each)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
