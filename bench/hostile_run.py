#!/usr/bin/env python3
"""A run of many cases, a fifth of them hostile, with random kills of everything that runs it.

    python bench/hostile_run.py --cases 1000 --kills 50

Every so often a worker, a fork server, its keeper or the program itself is sent SIGKILL, SIGTERM or
SIGSTOP; a program that has ended is gone on with by `resume`. At the end each case must have one
record, no process may be left that any of it started, and neither shared memory nor a temporary
file. Exits with 1 if not.
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
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.common.ending import ExitCode

ROOT = Path(__file__).resolve().parent.parent
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  it is looked at; nothing is put there
MARK = "DYNAMOMETER_HOSTILE_RUN"
"""Variable by which processes are known that this run has started."""
MODELS = """
import ctypes, os, signal, subprocess, sys, threading, time
import torch

def net():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), (torch.ones(2, 4),)

def raises(): raise RuntimeError("no")
def leaves(): sys.exit(3)
def vanishes(): os._exit(0)
def crashes(): ctypes.string_at(0)
def kills_itself(): os.kill(os.getpid(), signal.SIGKILL)
def kills_its_server(): os.kill(os.getppid(), signal.SIGKILL); time.sleep(100)
def stops_its_server(): os.kill(os.getppid(), signal.SIGSTOP); time.sleep(100)
def hangs():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True: pass
def leaves_children():
    for options in ({}, {"start_new_session": True}):
        subprocess.Popen(["sleep", "10000"], **options)
    return net()
def floods():
    for _ in range(2000): print("x" * 1000)
    return net()
def many_threads():
    for _ in range(50): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return net()
def closes_descriptors():
    os.closerange(0, 900)
    return net()
def loses_its_folder():
    folder = os.path.join(os.environ["TMPDIR"], str(os.getpid()))
    os.mkdir(folder); os.chdir(folder); os.rmdir(folder)
    return net()

HOSTILE = [raises, leaves, vanishes, crashes, kills_itself, leaves_children, floods, many_threads,
           closes_descriptors, loses_its_folder]
SELDOM = [kills_its_server, stops_its_server, hangs]
MODELS = {
"""


@dataclass
class Shaken:
    """What was done to a run, and what went wrong.

    Attributes:
        done: signals by whom they were sent to.
        resumed: how often it was gone on with.
        faults: what should not be.
    """

    done: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    faults: list[str] = field(default_factory=list)


def main() -> int:
    """Do it and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    shared = set(SHARED_MEMORY.iterdir()) if SHARED_MEMORY.is_dir() else set()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "mine.py").write_text(_models(asked.cases, rng))
        (place / "tmp").mkdir()
        started = time.monotonic()
        shaken = _shake(place, asked, rng)
        shaken.faults += _check(place, asked.cases)
        shaken.faults += [
            f"{path.name} is left in tmp"
            for path in (place / "tmp").iterdir()
            if not path.name.startswith("torchinductor_")  # torch's own, which programs share
        ]
        wall_s = time.monotonic() - started
    if SHARED_MEMORY.is_dir():
        shaken.faults += [f"{path} is left" for path in set(SHARED_MEMORY.iterdir()) - shared]
    said = ", ".join(f"{number} x {what}" for what, number in sorted(shaken.done.items()))
    print(f"{asked.cases} cases in {wall_s:.0f} s; {said}; resumed {shaken.resumed} times")
    print("\n".join(shaken.faults) or "a record for each case, and nothing left")
    return 1 if shaken.faults else 0


def _models(number: int, rng: random.Random) -> str:
    """Return a file of models: four of five are whole; what takes a timeout is rare."""
    lines = []
    for index in range(number):
        kind = "net"
        if index % 5 == 0:
            table, length = ("SELDOM", 3) if index % 100 == 0 else ("HOSTILE", 10)
            kind = f"{table}[{rng.randrange(length)}]"
        lines.append(f'    "m{index:04}": {kind},')
    return MODELS + "\n".join(lines) + "\n}\n"


def _shake(place: Path, asked: argparse.Namespace, rng: random.Random) -> Shaken:
    shaken = Shaken()
    words = ["run", "mine.py", "--accuracy", "--backend", "eager", "--timeout", "15"]
    words += ["-j", str(asked.jobs), "--output-dir", "runs"]
    left = asked.kills
    while True:
        environment = {**os.environ, MARK: "1", "TMPDIR": str(place / "tmp")}
        environment["PYTHONPATH"] = str(ROOT)
        with (place / "said.txt").open("ab") as said:
            program = subprocess.Popen(
                [sys.executable, "-m", "dynamometer", *words], cwd=place, env=environment,
                stdout=said, stderr=said,
            )  # fmt: skip
        before = left
        while program.poll() is None:
            time.sleep(rng.uniform(0.5, 6.0))
            if left and program.poll() is None:
                left -= _kill(program, rng, shaken)
        _wait_until_all_are_gone(shaken)
        directory = next((path.parent for path in place.glob("runs/*/manifest.json")), None)
        if directory is not None:
            words = ["resume", str(directory)]
        if program.returncode == 0:
            return shaken
        # A run ends with 3 when three servers in a row are killed as they start.
        is_ended = program.returncode == ExitCode.FAULT and left < before
        if not is_ended and program.returncode not in {-signal.SIGKILL, 128 + signal.SIGTERM}:
            text = (place / "said.txt").read_text(errors="replace")[-1500:]
            shaken.faults.append(f"the program ended with {program.returncode}: {text}")
            return shaken
        shaken.resumed += 1


def _kill(program: subprocess.Popen[bytes], rng: random.Random, shaken: Shaken) -> int:
    """Send a signal to something of the run; return whether there was something."""
    others = [pid for pid in _marked() if pid != program.pid]
    who = rng.choice(("program", "other", "other"))
    number = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP))
    pid = program.pid if who == "program" else rng.choice(others or [program.pid])
    what = "program" if pid == program.pid else _role(pid)
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return 0
    shaken.done[f"{number.name} to {what}"] += 1
    if number is signal.SIGSTOP and pid == program.pid:
        time.sleep(2)
        os.kill(pid, signal.SIGCONT)
    return 1


def _marked() -> list[int]:
    """Return the processes that this run has started, however they were detached."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if MARK.encode() in path.read_bytes() and not _is_dead(path.parent):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _is_dead(process: Path) -> bool:
    return (process / "stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}


def _role(pid: int) -> str:
    """Say what a process is, by what is above it."""
    above = 0
    while pid > 1:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            line = Path(f"/proc/{fields[1]}/cmdline").read_bytes()
        except OSError:
            break
        pid = int(fields[1])
        above += 1
        if b"-m\0dynamometer" in line:
            break
    return {1: "keeper", 2: "fork server", 3: "worker"}.get(above, "child of a worker")


def _wait_until_all_are_gone(shaken: Shaken) -> None:
    deadline = time.monotonic() + 60
    while (left := _marked()) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in left:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()[:80]
        shaken.faults.append(f"process {pid} is left: {line!r}")
        os.kill(pid, signal.SIGKILL)


def _check(place: Path, cases: int) -> list[str]:
    directories = [path.parent for path in place.glob("runs/*/manifest.json")]
    if len(directories) != 1:
        return [f"there are {len(directories)} runs"]
    lines = (directories[0] / "events.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    attempts = Counter((each["case"]["model"], len(each.get("earlier", ()))) for each in records)
    models = {model for model, _ in attempts}
    statuses = Counter(each["outcome"]["status"] for each in records)
    print(f"{len(models)} cases recorded: {dict(statuses)}")
    return [
        *(f"{model} was recorded {n} times" for (model, _), n in attempts.items() if n > 1),
        *([f"{cases - len(models)} cases have no record"] if len(models) != cases else []),
        *(["cache/ is left"] if (directories[0] / "cache").exists() else []),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
