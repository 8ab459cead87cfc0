#!/usr/bin/env python3
"""Time a model on a torch that lacks one of the names it doesn't promise, each in turn.

    python bench/without_private_names.py [NAME ...]

Every process of a run is told that torch has no such name. A run must end well, with a speedup, and
its record must name what can't be known for want of it. The last run lacks all of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.dynamo.private import RESTS_ON
from dynamometer.results.store import store
from dynamometer.results.values.metrics import LATENCY

if TYPE_CHECKING:
    from collections.abc import Sequence

GOOD = "timed, and named"
ROOT = Path(__file__).resolve().parent.parent
WORDS = (
    *("--only", "lennard_jones", "--scale", "tiny", "-r", "1", "-n", "5"),
    *("--backend", "inductor", "--speedup-ts"),
)

# Python imports a module of this name when it starts.
LACKING = """
import sys
sys.path.insert(0, {root!r})
from dynamometer.dynamo import private as names
del sys.path[0]
find = names.private
def private(name):
    if name in {lacking!r}:
        raise names.GoneError("torch has no " + name)
    return find(name)
names.private = private
"""


def main() -> int:
    """Print a line for each name, and return how many cost more than they should."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args().names
    wrong = 0
    alone = [(name,) for name in given or RESTS_ON]
    for names in alone if given else [*alone, tuple(RESTS_ON)]:
        said = run_without(names)
        wrong += said != GOOD
        print(f"{names[0] if len(names) == 1 else 'all of them'}: {said}", flush=True)
    return wrong


def run_without(names: Sequence[str]) -> str:
    """Time a model without some names, and say how that went."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sitecustomize.py").write_text(
            LACKING.format(root=str(ROOT), lacking=names)
        )
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
        silent = [name for name in names if not any(f" {name}:" in each for each in record.notes)]
        return f"not named: {', '.join(silent)}" if silent else GOOD


if __name__ == "__main__":
    raise SystemExit(main())
