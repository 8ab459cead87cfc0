#!/usr/bin/env python3
"""What the parent takes for each case of a long run: seconds and memory, first to last.

    bench/many_cases.py --cases 100000

Nothing is executed: an executor that makes records at once stands for workers. Records are stored,
printed and put into CSV files as always. What is kept of each case is its record, for the tables at
the end; neither that nor the time per case may grow with the number of cases.
"""

from __future__ import annotations

import argparse
import io
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from tabulate import tabulate

from dynamometer.common import registry
from dynamometer.common.execution.runner import Interrupt, Remaining, RunInProgress, run
from dynamometer.results.reports.sinks import Destination
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE, Case, ModelSpec, Protocol, RunPlan

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

if TYPE_CHECKING:
    from dynamometer.results.values.records import Record

_STEPS = 10


def main() -> None:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000)
    asked = parser.parse_args()
    import factories
    from fakes import FakeExecutor, RecordingObserver

    class Quiet(RecordingObserver):
        def case_started(self, case: Case) -> None:
            pass

        def record_made(self, record: Record) -> None:
            pass

        def case_ended(self, case: Case) -> None:
            pass

    rows: list[tuple[int, float, float]] = []
    began = time.perf_counter()

    def before(case: Case, replicate: int) -> None:
        nonlocal began
        del replicate
        number = int(case.model.removeprefix("model_"))
        if number and number % (asked.cases // _STEPS) == 0:
            now = time.perf_counter()
            rows.append((number, now - began, _memory_mb()))
            began = now

    plan = _plan(asked.cases)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        manifest = msgspec.structs.replace(factories.manifest(plan), plan=plan)
        store.create(directory, manifest)
        destination = Destination(directory, io.StringIO())
        study = registry.study("accuracy")
        sinks = [registry.resolve("sinks", name)(study, destination) for name in ("csv",)]
        before_mb = _memory_mb()
        with store.RunStore(directory) as events:
            executor = FakeExecutor(before=before, experiments=("accuracy",))
            began = time.perf_counter()
            run(
                RunInProgress(Remaining(manifest, []), events, sinks, Quiet()),
                executor,
                Interrupt(),
            )
    step = asked.cases // _STEPS
    print(f"{asked.cases:,} cases; {before_mb:.0f} MB before the first\n")
    table = [
        [f"{number:,}", f"{seconds / step * 1e6:.0f}", f"{memory:.0f}"]
        for number, seconds, memory in rows
    ]
    print(tabulate(table, headers=["cases", "us for each of the last", "MB"]))


def _plan(number: int) -> RunPlan:
    names = [f"model_{index}" for index in range(number)]
    return RunPlan(
        suite="torchbench",
        models=tuple(
            ModelSpec(suite="torchbench", name=name, task="none", origin="none", build="none:none")
            for name in names
        ),
        cases=tuple(
            Case(suite="torchbench", model=name, arms=(BASELINE, "eager")) for name in names
        ),
        experiments=("accuracy",),
        protocol=Protocol(replicates=1, most_replicates=1),
    )


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
