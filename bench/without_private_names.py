#!/usr/bin/env python3
"""Time a model on a torch that lacks one of the names it doesn't promise, each in turn.

    python bench/without_private_names.py

Every process of a run is told that torch has no such name. A run must end well, with a speedup, and
its record must name what can't be known for want of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dynamometer.dynamo.capture.private import RESTS_ON
from dynamometer.results.store import store
from dynamometer.results.values.metrics import LATENCY

ROOT = Path(__file__).resolve().parent.parent
WORDS = (
    *("--only", "lennard_jones", "--scale", "tiny", "-r", "1", "-n", "5"),
    *("--backend", "aot_eager", "--speedup-ts"),
)

# Python imports a module of this name when it starts.
LACKING = """
import sys
sys.path.insert(0, {root!r})
from dynamometer.dynamo.capture import private as names
del sys.path[0]
find = names.private
def private(name):
    if name == {name!r}:
        raise names.GoneError("torch has no " + name)
    return find(name)
names.private = private
"""


def main() -> int:
    """Print a line for each name, and return how many cost more than they should."""
    wrong = 0
    for name in RESTS_ON:
        said = _run_without(name)
        wrong += said != "timed, and named"
        print(f"{name}: {said}", flush=True)
    return wrong


def _run_without(name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sitecustomize.py").write_text(LACKING.format(root=str(ROOT), name=name))
        done = subprocess.run(
            [sys.executable, str(ROOT / "torchbench.py"), *WORDS, "--output-dir", f"{folder}/runs"],
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return f"exit code {done.returncode}: {done.stderr.strip()[-200:]}"
        (directory,) = Path(folder, "runs").iterdir()
        (record, *_) = store.read_records(directory)
        timed = {each.arm for each in record.measurements if each.metric == LATENCY.name}
        if timed != set(record.case.arms):
            return f"not timed: {set(record.case.arms) - timed} {record.outcome.line}"
        return "timed, and named" if any(name in note for note in record.notes) else "not named"


if __name__ == "__main__":
    raise SystemExit(main())
