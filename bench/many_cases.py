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
import itertools
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.common import registry
from dynamometer.common.execution.runner import Interrupt, Remaining, RunInProgress, run
from dynamometer.results.reports.sinks import Destination
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE, Case, ModelSpec, Protocol, RunPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.records import Record

_STEPS = 10


def main() -> None:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000)
    asked = parser.parse_args()
    if asked.cases < 1:
        parser.error("--cases must be at least 1")
    import factories
    from fakes import FakeExecutor, RecordingObserver

    class Quiet(RecordingObserver):
        def case_started(self, case: Case) -> None:
            pass

        def record_made(self, record: Record) -> None:
            pass

        def case_ended(self, case: Case) -> None:
            number = int(case.model.removeprefix("model_")) + 1
            if number % step == 0 or number == asked.cases:
                rows.append(_Row.now(number))

    step = max(1, asked.cases // _STEPS)
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
            executor = FakeExecutor(experiments=("accuracy",))
            rows = [_Row.now(0)]
            run(
                RunInProgress(Remaining(manifest, []), events, sinks, Quiet()),
                executor,
                Interrupt(),
            )
    print(f"{asked.cases:,} cases; {before_mb:.0f} MB before the first\n")
    print(tabulate(_table(rows), headers=["cases", "us for each of the last", "MB"]))


class _Row(NamedTuple):
    """How many cases have ended, when, and how much memory that has taken."""

    cases: int
    at_s: float
    memory_mb: float

    @classmethod
    def now(cls, cases: int) -> _Row:
        return cls(cases, time.perf_counter(), _memory_mb())


def _table(rows: Sequence[_Row]) -> list[list[str]]:
    """Return a line for each row but the first, which is before any case."""
    return [
        [
            f"{row.cases:,}",
            f"{(row.at_s - last.at_s) / (row.cases - last.cases) * 1e6:.0f}",
            f"{row.memory_mb:.0f}",
        ]
        for last, row in itertools.pairwise(rows)
    ]


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
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    main()
