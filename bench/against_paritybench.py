#!/usr/bin/env python3
"""Tests per CPU second of `parity.py` beside the corpus' own runner, on the same files.

    bench/against_paritybench.py CHECKOUT --files 60 --seed 0 -o docs/against-paritybench.md

Both run the same test cases in default mode with backend eager, one after the other, and have the
same stand-ins for packages that are not installed. The corpus' runner needs pandas, astor and
expecttest; where these are not installed, a folder with them can be put on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from dynamometer.results.store import store

ROOT = Path(__file__).resolve().parents[1]
USUAL = ("matplotlib", "pandas", "sklearn", "tensorflow", "torchaudio", "torchtext", "torchvision")
"""What the head of every file imports beside torch, numpy and scipy."""
STAND_IN = """
from unittest.mock import MagicMock
import sys
module = MagicMock(name=__name__)
module.__path__, module.__spec__, module.__name__ = [], __spec__, __name__
sys.modules[__name__] = module
"""


_FOR_TORCHVISION = """
from dynamometer.models.builders.torchvision_schemas import define_missing_schemas
define_missing_schemas()
"""


@dataclass(frozen=True)
class Done:
    """What a program took.

    Attributes:
        wall_s: seconds.
        cpu_s: processor seconds of it and all it started.
        output: what it wrote.
    """

    wall_s: float
    cpu_s: float
    output: str


def main() -> None:
    """Run both, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="of jansel/pytorch-jit-paritybench")
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    every = sorted((asked.checkout / "generated").glob("test_*.py"))
    chosen = random.Random(asked.seed).sample(every, asked.files)
    with tempfile.TemporaryDirectory() as folder:
        tests, stand_ins = Path(folder, "generated"), Path(folder, "stand-ins")
        tests.mkdir()
        # Their runner links to its helpers from where it is.
        Path(folder, "paritybench").symlink_to(asked.checkout.resolve() / "paritybench")
        for file in chosen:
            shutil.copy(file, tests)
        _write_stand_ins(stand_ins)
        theirs = _theirs(asked.checkout.resolve(), tests, stand_ins, asked.jobs)
        command = [ROOT / "parity.py", tests, "--output-dir", Path(folder, "runs")]
        ours = _timed([sys.executable, *command, "--backend", "eager", "-j", asked.jobs], folder)
        (run,) = Path(folder, "runs").iterdir()
        statuses = Counter(str(each.outcome.status) for each in store.read_records(run))
    page = _page(asked, theirs, ours, statuses)
    print(page)
    if asked.output:
        asked.output.write_text(page)


def _theirs(checkout: Path, tests: Path, stand_ins: Path, jobs: int) -> Done:
    path = os.pathsep.join(
        filter(None, (str(checkout), str(checkout / "paritybench"), os.environ.get("PYTHONPATH"),
                      str(stand_ins)))
    )  # fmt: skip
    command = [
        sys.executable, checkout / "main.py", "--tests-dir", tests, "--jobs", str(jobs),
        "--backend", "eager", "--device", "cpu",
    ]  # fmt: skip
    return _timed(command, tests.parent, PYTHONPATH=path)


def _timed(command: list[object], folder: Path | str, **variables: str) -> Done:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [str(each) for each in command], cwd=folder, env={**os.environ, **variables}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        print(done.stdout[-4000:], file=sys.stderr)
        sys.exit(f"{command[1]} ended with {done.returncode}")
    return Done(time.monotonic() - started, cpu_s, done.stdout)


def _write_stand_ins(folder: Path) -> None:
    """Write packages in the place of those that are not installed, and let torchvision be imported.

    Where it is no build for this torch its operators are missing, which `parity.py` deals with.
    """
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_FOR_TORCHVISION)
    for name in USUAL:
        if importlib.util.find_spec(name) is None:
            (folder / f"{name}.py").write_text(STAND_IN)


def _page(asked: argparse.Namespace, theirs: Done, ours: Done, statuses: Counter[str]) -> str:
    found = re.findall(r"\('(\w+)', (\d+)\)", _total(theirs.output))
    stats = {key: int(value) for key, value in found}
    if not stats.get("tests"):
        sys.exit(f"their runner has no result:\n{theirs.output[-2000:]}\n{theirs=}\n{ours=}")
    their_tests = stats.get("tests", 0) + stats.get("eager_failed", 0)
    our_tests = statuses.total()
    their_rate, our_rate = their_tests / theirs.cpu_s, our_tests / ours.cpu_s
    lost = stats.get("crash", 0) + stats.get("timeout", 0)
    ended = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
    return f"""# Beside the corpus' own runner

`bench/against_paritybench.py CHECKOUT --files {asked.files} --seed {asked.seed}`, torch
{_torch_version()}: backend eager, default mode, one process at a time.

| | the corpus' runner | `parity.py` |
|---|---|---|
| files | {asked.files}, of which {lost} lost | {asked.files} |
| tests with a result | {their_tests} | {our_tests} |
| CPU seconds | {theirs.cpu_s:.0f} | {ours.cpu_s:.0f} |
| wall seconds | {theirs.wall_s:.0f} | {ours.wall_s:.0f} |
| tests per CPU second | {their_rate:.2f} | {our_rate:.2f} ({our_rate / their_rate:.1f} times) |

Theirs: {stats}.
Ours: {ended}.
"""


def _total(output: str) -> str:
    """Return the line, such as `TOTAL: [('projects', 2), ('tests', 7)], took 12.1 seconds`."""
    return next((line for line in output.splitlines()[::-1] if "TOTAL:" in line), "")


def _torch_version() -> str:
    from importlib.metadata import version

    return version("torch")


if __name__ == "__main__":
    main()
