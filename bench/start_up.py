#!/usr/bin/env python3
"""Time what a command takes that measures nothing: help, lists and refusals.

    python bench/start_up.py --output docs/start-up.md

Each command is started a number of times, in turn with the alternatives: an interpreter that does
nothing, and one that imports torch. Reported are medians, and the ratio to importing torch.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALTERNATIVES = {"python, doing nothing": ["-c", "pass"], "importing torch": ["-c", "import torch"]}
COMMANDS = {
    "./torchbench.py --help": 0,
    "./torchbench.py --list": 0,
    "./huggingface.py --list": 0,
    "./torchbench.py --backend inductro": 2,
    "./torchbench.py --backend no_such_module:fast": 2,
    "./torchbench.py --only resnet81": 2,
    "./torchbench.py -k (": 2,
    "./torchbench.py --torchbench-root /nowhere": 2,
    "./torchbench.py --only resnet18 --quick": 2,
    "./torchbench.py --speedup-ts --training": 2,
    "./torchbench.py --only resnet18 --output-dir /proc/none": 2,
    "./torchbench.py --only resnet18 -d cuda": 4,
    "./torchbench.py -k nothing_like_it": 5,
    "-m dynamometer --help": 0,
    "-m dynamometer ls models": 0,
    "-m dynamometer resume /nowhere": 2,
    "-m dynamometer run nowhere.py": 2,
}
"""With the exit code each must have."""


def main() -> int:
    """Time everything, interleaved, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    words = {**ALTERNATIVES, **{text: text.split() for text in COMMANDS}}
    seconds: dict[str, list[float]] = {name: [] for name in words}
    for _ in range(options.rounds):
        for name, arguments in words.items():
            seconds[name].append(_time(arguments, COMMANDS.get(name, 0)))
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    text = _table(medians, options.rounds)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _time(arguments: list[str], code: int) -> float:
    # With bytecode, as it is on any machine after the first start.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        env={**environment, "CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )
    if done.returncode != code:
        sys.exit(f"{arguments} ended with {done.returncode}: {done.stderr.decode()}")
    return time.perf_counter() - started


def _table(medians: dict[str, float], rounds: int) -> str:
    torch_s = medians["importing torch"]
    lines = [
        "# Start-up",
        "",
        f"Wall time of commands that measure nothing, on {os.cpu_count()} cores: medians of",
        f"{rounds} starts, interleaved. Made by `bench/start_up.py`.",
        "",
        "| command | ms | of importing torch |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{name}` | {1e3 * median_s:.0f} | {median_s / torch_s:.0%} |"
        for name, median_s in medians.items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
