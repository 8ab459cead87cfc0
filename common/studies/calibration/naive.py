"""The usual way of measuring, to be compared with ours: one process, arms in turn call by call.

What PyTorch's own harness does with its main path's 30 repeats, judged by its unpaired t test
(`speedup_experiment` and `ttest_ind` in benchmarks/dynamo/common.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.calibration.arms import PAIRS
from dynamometer.common.studies.calibration.evaluation import NAIVE_LATENCY, naive_metric
from dynamometer.common.studies.experiment import WorkerSpec, only_missing
from dynamometer.results.values.records import PASSED, Measurement, Stage
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Case, RunPlan

_REPEATS = 30
_WARM_UP_CALLS = 5
_EVERY = 10


@dataclass(frozen=True)
class Naive:
    """Latencies of pairs of arms of known effect, alternating call by call."""

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        """Measure all pairs in one process, under the stock allocator, in some replicates."""
        del plan, found
        return () if replicate % _EVERY else (WorkerSpec(case.arms, Allocator.STOCK),)

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Leave the case as it is: only what is measured here is missing."""
        return only_missing(NAIVE_LATENCY, findings, arms)

    def measure(self, context: Context) -> Findings:
        """Build the arms in the order they are listed, warm up, and time calls in turn."""
        from dynamometer.common.measuring import arms  # imports torch, which the parent doesn't

        watch, calls = arms.stopwatch(context), {}
        with context.stages.at(Stage.LOAD):
            loaded = context.load()
        for name in context.job.arms:
            with context.stages.at(Stage.COMPILE, name):
                calls[name] = arms.compiled_step(context, loaded.copy(), name).call
                for _ in range(_WARM_UP_CALLS):
                    calls[name]()
        measurements = []
        with context.stages.at(Stage.MEASURE):
            for pair in PAIRS:
                samples: dict[str, list[float]] = {name: [] for name in pair}
                for _ in range(_REPEATS):
                    for name in pair:
                        samples[name].append(watch.mean_s(calls[name], 1))
                measurements += [
                    Measurement(metric=naive_metric(pair), unit="s", arm=name, samples=tuple(own))
                    for name, own in samples.items()
                ]
        return Findings(outcome=PASSED, measurements=tuple(measurements))
