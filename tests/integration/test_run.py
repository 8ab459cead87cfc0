"""Real models through the real program, as a user runs it."""

from __future__ import annotations

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dynamometer.results.reports.arms.columns import PERFORMANCE
from dynamometer.results.store import store
from dynamometer.results.values.metrics import COMPILE_PHASES
from dynamometer.results.values.records import Record, Status

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = [sys.executable, str(ROOT / "torchbench.py")]
RUN = [sys.executable, "-m", "dynamometer", "run"]
RESUME = [sys.executable, "-m", "dynamometer", "resume"]
LONG_S = 3600.0
"""Longer than anything takes on any machine; whoever waits so long waits for nothing."""
FILE = """
import os, time
import torch

def first():
    return torch.nn.Linear(4, 4), torch.randn(2, 4)

def second():
    open("under-way", "w").close()
    while not os.path.exists("go-on"):
        time.sleep(0.02)
    return first()

def third():
    return first()
"""
"""Models of which the second says that it is under way, and waits until it is told to go on."""
MODELS = ("first", "second", "third")
FULL = """
import os, time
import torch

def until(name):
    while not os.path.exists(name):
        time.sleep(0.02)

def greedy():
    if not os.path.exists("was-full"):
        until("beside")
        open("was-full", "w").close()
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return torch.nn.Linear(4, 4), torch.randn(2, 4)

def patient():
    open("beside", "w").close()
    until("was-full")
    return torch.nn.Linear(4, 4), torch.randn(2, 4)
"""
"""Two models of which the first finds no memory while the other is at work beside it."""


def finish(command: list[str], cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
        cwd=cwd,
        env=environment(),
    )


def environment() -> dict[str, str]:
    """Let Python find this tree from any folder, and torch choose its threads as for a user."""
    kept = {name: text for name, text in os.environ.items() if name != "OMP_NUM_THREADS"}
    return {**kept, "PYTHONPATH": str(ROOT)}


def only(*names: str) -> list[str]:
    """Select models by name, tiny."""
    return ["--scale", "tiny", *(word for name in names for word in ("--only", name))]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Measure one model with three arms in two replicates; give its directory and output."""
    runs = tmp_path_factory.mktemp("runs")
    arms = ["--backend", "eager", "--backend", "inductor", "--speedup-ts"]
    words = [*only("lennard_jones"), *arms, "-r", "2", "-n", "20", "--output-dir", str(runs)]
    # From another folder: the script must not depend on where it is run.
    done = finish([*SCRIPT, *words], cwd=runs)
    assert done.returncode == 0, done.stderr
    return next(runs.iterdir()), done.stdout


def test_all_arms_are_measured(finished_run: tuple[Path, str]) -> None:
    """Every arm passes and has latencies in the blocks of the baseline, faults and memory."""
    records = store.read_records(finished_run[0])
    assert [record.replicate for record in records] == [0, 1]
    for record in records:
        assert [arm.outcome.status for arm in record.arms] == [Status.PASS] * 4
        latencies = {each.arm: each for each in record.measurements if each.metric == "latency"}
        assert set(latencies) == set(record.case.arms)
        blocks = {tuple(sorted(set(each.blocks))) for each in latencies.values()}
        assert len(blocks) == 1
        assert sorted(record.build_order) == sorted(record.case.arms)
        assert not record.absent
    assert len({record.build_order for record in records}) == len(records)
    memory = {each.arm for each in records[0].measurements if each.metric == "calls_memory"}
    assert memory == set(records[0].case.arms)


def test_only_the_first_compilation_is_cold(finished_run: tuple[Path, str]) -> None:
    """Graph caches are empty at the first replicate and warm at the second, and it is said."""
    cold, warm = store.read_records(finished_run[0])
    phases = {each.name for each in COMPILE_PHASES.values()}
    for record, metric in ((cold, "compile_time"), (warm, "compile_time_warm")):
        found = {each.metric for each in record.measurements if "compile" in each.metric}
        assert found - phases == {metric}
        assert (found >= phases) == (record is cold)  # torch keeps what AOTAutograd made, too


def test_capture_is_counted_for_each_arm(finished_run: tuple[Path, str]) -> None:
    """Arms of Dynamo have one frame and one graph of the same size each; TorchScript none."""
    record = store.read_records(finished_run[0])[0]
    captures = {arm.arm: arm.capture for arm in record.arms}
    assert captures["baseline"] is None
    assert captures["ts"] is None
    sizes = set()
    for name in ("eager", "inductor"):
        capture = captures[name]
        assert capture is not None
        assert (capture.frames, capture.frames_ok, capture.graphs) == (1, 1, 1)
        sizes.add(capture.ops)
    assert len(sizes) == 1


def test_csv_has_the_dashboards_columns(finished_run: tuple[Path, str]) -> None:
    """Each arm's file begins with PyTorch's columns in order, filled with this case."""
    path = finished_run[0] / "inductor_torchbench_float32_inference_cpu_performance.csv"
    with path.open() as file:
        reader = csv.DictReader(file)
        (row,) = list(reader)
        theirs = [each.name for each in PERFORMANCE.theirs().columns]
        assert (reader.fieldnames or [])[: len(theirs)] == theirs
    assert (row["dev"], row["name"], row["unique_graphs"]) == ("cpu", "lennard_jones", "1")
    assert float(row["speedup_low"]) < float(row["speedup"]) < float(row["speedup_high"])
    assert all(float(row[name]) > 0 for name in ("abs_latency", "compilation_latency"))
    assert all(float(row[name]) > 0 for name in ("eager_peak_mem", "dynamo_peak_mem"))


def test_output_names_the_files(finished_run: tuple[Path, str]) -> None:
    """The table, the split of the time and the paths of the results are on standard output."""
    directory, output = finished_run
    assert "cpu  lennard_jones " in output
    assert "GEOMEAN SPEEDUP [" in output or "DISTURBED" in output  # by whatever else goes on
    assert "% harness)" in output
    assert str(directory / "events.jsonl") in output


def started(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a run of the models above, and wait until the second is in flight."""
    (folder / "mine.py").write_text(FILE)
    process = subprocess.Popen(
        [*RUN, "mine.py", "--backend", "eager", "--accuracy", "-j", "1"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((folder / "under-way").exists)
    (events,) = (folder / "runs").glob(f"*/{store.EVENTS}")
    return process, events.parent


def resumed(folder: Path, directory: Path) -> list[Record]:
    """Let the second model go on, run what is missing, and give all records."""
    (folder / "go-on").touch()
    done = finish([*RESUME, str(directory)], cwd=folder)
    assert done.returncode == 0, done.stderr
    return store.read_records(directory)


def test_killed_parent_loses_nothing(tmp_path: Path) -> None:
    """After `kill -9` no process is left, and resuming runs exactly what was missing."""
    process, directory = started(tmp_path)
    children = descendants(process.pid)
    process.kill()
    process.communicate()
    before = (directory / store.EVENTS).read_bytes()
    assert children
    wait_until(lambda: not any(is_running(pid) for pid in children))
    records = resumed(tmp_path, directory)
    assert (directory / store.EVENTS).read_bytes().startswith(before)
    assert sorted(record.case.model for record in records) == sorted(MODELS)
    assert all(record.outcome.status is Status.PASS for record in records)


def test_interrupt_finishes_the_case(tmp_path: Path) -> None:
    """Ctrl-C lets the case in flight end, stores it, and says how to go on."""
    process, directory = started(tmp_path)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: has_noticed(process))
    (tmp_path / "go-on").touch()
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 130
    assert f"resume {directory.relative_to(tmp_path)}" in errors
    assert [record.case.model for record in store.read_records(directory)] == ["first", "second"]
    assert [record.case.model for record in resumed(tmp_path, directory)] == list(MODELS)


def test_a_case_that_others_left_no_memory_for_is_run_again(tmp_path: Path) -> None:
    """By itself, once they have ended; what it came to then is what counts."""
    (tmp_path / "mine.py").write_text(FULL)
    words = ["mine.py", "--backend", "eager", "--accuracy", "-j", "2"]
    done = finish([*RUN, *words], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "greedy replicate 0: infra in" in done.stderr
    (directory,) = (tmp_path / "runs").iterdir()
    last = {each.case.model: each for each in store.read_records(directory)}
    assert {each.outcome.status for each in last.values()} == {Status.PASS}
    (before,) = last["greedy"].earlier
    assert before.status is Status.INFRA
    assert str(before.reason).startswith("no memory beside other cases, and attempted again by")


def test_other_users_of_the_names_are_not_met(tmp_path: Path) -> None:
    """Run from a folder with packages called common and results, the program uses its own.

    The command in the record plans the very same case again.
    """
    for name in ("common", "results", "models"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not ours')")
    words = [*only("lennard_jones"), "--backend", "eager", "--accuracy"]
    record = only_record([*SCRIPT, *words], tmp_path, "runs")
    again = only_record(shlex.split(record.command), tmp_path, "again")
    assert again.case == record.case


def only_record(command: list[str], cwd: Path, runs: str) -> Record:
    """Run a command that measures one case once."""
    done = finish([*command, "--output-dir", runs], cwd=cwd)
    assert done.returncode == 0, done.stderr
    (record,) = store.read_records(next((cwd / runs).iterdir()))
    return record


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for something that happens sooner or later."""
    ends = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.02)


def has_noticed(process: subprocess.Popen[str]) -> bool:
    """Return whether a process has taken in the SIGINT it was sent: none is pending any more."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    pending = [line.split()[1] for line in status.splitlines() if "Pnd:" in line]
    return not any(int(each, 16) >> (signal.SIGINT - 1) & 1 for each in pending)


def descendants(pid: int) -> list[int]:
    """Return the processes below a process."""
    below = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            below += [int(child), *descendants(int(child))]
    return below


def is_running(pid: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.getpid() != pid


def test_manifest_says_what_was_planned(finished_run: tuple[Path, str]) -> None:
    """The manifest holds the plan and the environment, readable without this project."""
    manifest = json.loads((finished_run[0] / store.MANIFEST).read_text())
    assert manifest["plan"]["cases"][0]["model"] == "lennard_jones"
    assert manifest["environment"]["packages"]["torch"]
    assert manifest["command"].endswith("--output-dir " + str(finished_run[0].parent))
