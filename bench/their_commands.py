#!/usr/bin/env python3
"""Run command lines of PyTorch's own scripts as they stand, and say what comes of each.

    python bench/their_commands.py --output docs/their-commands.md

Each is as `.ci/pytorch/test.sh`, `benchmarks/dynamo/runner.py` or `benchmarks/dynamo/README.md` of
pytorch/pytorch has it, but for the path of the script, the device (the CPU) and the models: a small
one is named, and the models of two suites are shrunk (`--scale tiny`). A speedup of 0 is one that
something else disturbed: PyTorch's files have 0 for what is not known.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from exit_codes import worst

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = Path(__file__).with_suffix(".txt")
MODELS = {
    "torchbench.py": ["--only", "lennard_jones"],
    "huggingface.py": ["--only", "DistilBertForMaskedLM", "--scale", "tiny"],
    "timm_models.py": ["--only", "lcnet_050", "--scale", "tiny"],
}
_LONGEST_NOTE = 300


@dataclass(frozen=True)
class Ran:
    """What came of one: exit status, its last words, and what its file holds."""

    status: int
    said: str
    rows: str


def main() -> int:
    """Run all of them and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = [
        "# Command lines of PyTorch's scripts, run here",
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        "Made by `bench/their_commands.py`.",
        "",
        "| from | command line | exit | what was said, or what its file holds |",
        "|---|---|---|---|",
    ]
    codes = []
    for source, command in commands():
        found = run(command)
        codes.append(found.status)
        told = found.said if found.status else found.rows
        row = (source, f"`{command}`", str(found.status), told)
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
    return worst(codes)


def commands() -> list[tuple[str, str]]:
    """Return each command line with the place it is from."""
    found, source = [], ""
    for line in COMMANDS.read_text().splitlines():
        if line.startswith("#"):
            source = line.removeprefix("#").strip()
        elif line:
            found.append((source, line))
    return found


def run(command: str) -> Ran:
    """Run one in a folder of its own."""
    script, *argv = shlex.split(command)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "models_list.txt").write_text("lennard_jones,64\n")
        done = subprocess.run(
            [sys.executable, str(ROOT / script), *argv, *MODELS[script]],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        said = [line for line in done.stderr.splitlines() if line.strip()] or [""]
        written = [path.read_text().splitlines() for path in folder.glob("*.csv")]
    rows = "; ".join(f"`{row}`" for file in written for row in file[1:]) or "no file"
    return Ran(done.returncode, said[-1][:_LONGEST_NOTE].replace("|", "\\|"), rows)


if __name__ == "__main__":
    raise SystemExit(main())
