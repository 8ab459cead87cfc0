#!/usr/bin/env python3
"""Tests per CPU second of `parity.py` beside the corpus' own runner, on the same files.

    bench/against_paritybench.py CHECKOUT --files 60 --seed 0 -o docs/against-paritybench.md

Both run the same test cases with backend eager, in default mode and as full graph: the corpus'
runner in one run for each, `parity.py` in one for both. They have the same stand-ins for packages
that are not installed. The corpus' runner needs pandas, astor and expecttest; where these are not
installed, a folder with them can be put on PYTHONPATH.
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
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.results.store import store
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.records import Record

ROOT = Path(__file__).resolve().parents[1]
USUAL = ("matplotlib", "pandas", "sklearn", "tensorflow", "torchaudio", "torchtext", "torchvision")
"""What the head of every file imports beside torch, numpy and scipy."""
LOST = {Status.CRASH, Status.TIMEOUT, Status.INFRA}
"""How tests of ours end that have no result."""
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
        theirs = [
            _theirs(asked.checkout.resolve(), tests, stand_ins, asked.jobs, *mode)
            for mode in ((), ("--fullgraph",))
        ]
        command = [ROOT / "parity.py", tests, "--output-dir", Path(folder, "runs")]
        ours = _timed([sys.executable, *command, "--backend", "eager", "-j", asked.jobs], folder)
        (run,) = Path(folder, "runs").iterdir()
        records = store.read_records(run)
    page = _page(asked, theirs, ours, records)
    print(page)
    if asked.output:
        asked.output.write_text(page)


def _theirs(checkout: Path, tests: Path, stand_ins: Path, jobs: int, *mode: str) -> Done:
    path = os.pathsep.join(
        filter(None, (str(checkout), str(checkout / "paritybench"), os.environ.get("PYTHONPATH"),
                      str(stand_ins)))
    )  # fmt: skip
    command = [
        sys.executable, checkout / "main.py", "--tests-dir", tests, "--jobs", str(jobs),
        "--backend", "eager", "--device", "cpu", *mode,
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


def _page(
    asked: argparse.Namespace, theirs: list[Done], ours: Done, records: Sequence[Record]
) -> str:
    stats = [
        {key: int(value) for key, value in re.findall(r"\('(\w+)', (\d+)\)", _total(each.output))}
        for each in theirs
    ]
    if not all(each.get("tests") for each in stats):
        sys.exit(f"their runner has no result:\n{theirs[-1].output[-2000:]}\n{theirs=}\n{ours=}")
    default, full = (each["tests"] + each.get("eager_failed", 0) for each in stats)
    lost = [each.get("crash", 0) + each.get("timeout", 0) for each in stats]
    cpu_s = sum(each.cpu_s for each in theirs)
    their_wall_s = [each.wall_s for each in theirs]
    with_result = [each for each in records if each.outcome.status not in LOST]
    tests, our_lost = len(with_result), len(_files(records) - _files(with_result))
    their_rate, our_rate = (default + full) / cpu_s, 2 * tests / ours.cpu_s
    statuses = Counter(str(each.outcome.status) for each in records)
    ended = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
    return f"""# Beside the corpus' own runner

`bench/against_paritybench.py CHECKOUT --files {asked.files} --seed {asked.seed}`, torch
{_torch_version()}: backend eager, `--jobs {asked.jobs}` on both sides; the corpus' runner once in
default mode and once with `--fullgraph`, `parity.py` once, as it always asks both.

| | its default mode | its full graph | both | `parity.py` |
|---|---|---|---|---|
| files lost | {lost[0]} of {asked.files} | {lost[1]} | | {our_lost} |
| tests with a result | {default} | {full} | | {tests} |
| CPU seconds | {theirs[0].cpu_s:.0f} | {theirs[1].cpu_s:.0f} | {cpu_s:.0f} | {ours.cpu_s:.0f} |
| wall seconds | {their_wall_s[0]:.0f} | {their_wall_s[1]:.0f} | {sum(their_wall_s):.0f} \
| {ours.wall_s:.0f} |
| results per CPU second | {default / theirs[0].cpu_s:.2f} | {full / theirs[1].cpu_s:.2f} \
| {their_rate:.2f} | {our_rate:.2f} ({our_rate / their_rate:.1f} times) |

A result is one of one test in one mode, also that it doesn't run in eager. What crashed, ran out of
time or was lost by the harness has none; a file is lost if none of its tests has one.

Its own counts: {stats[0]}, {stats[1]}.
Ours: {ended}.
"""


def _files(records: Sequence[Record]) -> set[str]:
    """Return the files that tests are of; `project.Class` is one of `test_project.py`."""
    return {each.case.model.partition(".")[0] for each in records}


def _total(output: str) -> str:
    """Return the line, such as `TOTAL: [('projects', 2), ('tests', 7)], took 12.1 seconds`."""
    return next((line for line in output.splitlines()[::-1] if "TOTAL:" in line), "")


def _torch_version() -> str:
    from importlib.metadata import version

    return version("torch")


if __name__ == "__main__":
    main()
