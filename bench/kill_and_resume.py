#!/usr/bin/env python3
"""Kill the parent of a sweep with SIGKILL at random moments, resume each time, and check.

    python bench/kill_and_resume.py --kills 10

After each kill the processes it had started must be gone; after the last resume there must be
exactly one record for each planned replicate, and every record that was there at a kill must be
there unchanged. Exits with 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GRACE_S = 5.0


@dataclass(frozen=True)
class Stopped:
    """One start of the sweep.

    Attributes:
        killed: whether it was killed; it may have ended before.
        records: those that are stored then.
        faults: what should not be.
    """

    killed: bool
    records: list[str]
    faults: list[str]


def main() -> int:
    """Do it and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AsWritten)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest-s", type=float, default=15.0, help="longest time to a kill")
    parser.add_argument("--filter", default="^(alexnet|basic_gnn_gcn|hf_Bert|resnet18|dcgan|vgg16)")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as runs:
        words = ["--scale", "tiny", "--backend", "eager", "-r", "2", "--output-dir", runs]
        command = [str(ROOT / "torchbench.py"), "-k", options.filter, *words]
        kills, records = 0, list[str]()
        faults: list[str] = []
        for number in range(options.kills):
            found = _run_and_kill(command, runs, rng.uniform(0.3, options.longest_s), number)
            faults += [*found.faults, *_changed(records, found.records, f"start {number}")]
            kills, records = kills + found.killed, found.records
            directory = _run_directory(runs)
            if directory is not None:
                command = ["-m", "dynamometer", "resume", str(directory)]
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, capture_output=True, check=False
        )
        if done.returncode:
            faults.append(f"the last resume ended with {done.returncode}: {done.stderr[-500:]!r}")
        faults += _changed(records, _lines(runs), "the last resume")
        directory = _run_directory(runs)
        faults += _check(directory) if directory else ["there is no run"]
    if not kills:
        faults.append("nothing was killed: it had always ended before; see --longest-s")
    print("\n".join(faults) or f"{kills} kills: nothing lost, nothing run twice")
    return 1 if faults else 0


class _AsWritten(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the description."""


def _run_and_kill(command: list[str], runs: str, after_s: float, number: int) -> Stopped:
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        code = process.wait(after_s)
    except subprocess.TimeoutExpired:
        code = None
    before = _lines(runs)
    descendants = _descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    killed = process.wait() == -signal.SIGKILL
    time.sleep(GRACE_S)
    left = [pid for pid in descendants if Path(f"/proc/{pid}").exists()]
    # A line may have been finished between the look and the kill, none may be missing.
    after = _lines(runs)
    state = f"killed after {after_s:.1f} s" if killed else "had ended by itself"
    print(f"{number}: {state}, {len(after)} records, {len(descendants)} processes", flush=True)
    faults = [f"start {number}: process {pid} is left" for pid in left]
    faults += _changed(before, after, f"the kill of start {number}")
    if code not in (None, 0):
        faults.append(f"start {number}: it had ended with {code} by itself")
    return Stopped(killed, after, faults)


def _changed(before: list[str], after: list[str], by: str) -> list[str]:
    """Say so if what was stored is not there any more as it was."""
    return [] if after[: len(before)] == before else [f"{by} changed a stored record"]


def _run_directory(runs: str) -> Path | None:
    """Find the run; one that was killed before it had said what it would do is none."""
    return next((path.parent for path in Path(runs).glob("*/manifest.json")), None)


def _lines(runs: str) -> list[str]:
    directory = _run_directory(runs)
    if directory is None or not (directory / "events.jsonl").exists():
        return []
    text = (directory / "events.jsonl").read_text()
    return text[: text.rfind("\n") + 1].splitlines()


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found, frontier = [], [pid]
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, [])]
        found += frontier
    return found


def _check(directory: Path) -> list[str]:
    plan = json.loads((directory / "manifest.json").read_text())["plan"]
    planned = {
        (case["model"], replicate)
        for case in plan["cases"]
        for replicate in range(plan["protocol"]["replicates"])
    }
    records = [json.loads(line) for line in _lines(str(directory.parent))]
    keys = [(record["case"]["model"], record["replicate"]) for record in records]
    faults = [f"{key} was run {keys.count(key)} times" for key in planned if keys.count(key) > 1]
    failed = {
        record["case"]["model"] for record in records if record["outcome"]["status"] != "pass"
    }
    missing = {key for key in planned - set(keys) if key[0] not in failed}
    faults += [f"{key} has no record" for key in sorted(missing)]
    faults += [f"{key} was not planned" for key in sorted(set(keys) - planned)]
    print(f"{len(planned)} replicates planned, {len(keys)} records, {len(failed)} models failed")
    return faults


if __name__ == "__main__":
    os.environ["PYTHONUNBUFFERED"] = "1"
    raise SystemExit(main())
