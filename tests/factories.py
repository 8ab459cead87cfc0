"""Values of the vocabulary with sensible defaults; a test names only what it is about."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.reports.sinks import Destination
from dynamometer.results.values.cases import BASELINE, Case, ModelSpec, Protocol, RunPlan, Skip
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.decisions import Decision, Evidence, Setting
from dynamometer.results.values.records import (
    PASSED,
    ArmResult,
    CaptureStats,
    Environment,
    Manifest,
    Measurement,
    Outcome,
    Ratio,
    Record,
    Stage,
    Status,
)

if TYPE_CHECKING:
    from typing import TextIO

ARMS = (BASELINE, "inductor")
MIB = 2.0**20


def model_spec(name: str = "alexnet", *, skipped: str | None = None, **fields: object) -> ModelSpec:
    """Describe a model; `skipped` is the reason its table gives for not running it."""
    defaults: dict[str, object] = {
        "suite": "torchbench",
        "task": "classification",
        "origin": "made up",
        "build": "vision:alexnet",
        "batch_size": {"cpu": 4, "cuda": 64},
        "skips": () if skipped is None else (Skip(reason=skipped),),
    }
    return ModelSpec(name=name, **{**defaults, **fields})  # type: ignore[arg-type]  # untyped


def case(model: str = "alexnet", arms: tuple[str, ...] = ARMS, **fields: object) -> Case:
    """Make a case with the batch size `model_spec` gives."""
    defaults: dict[str, object] = {"suite": "torchbench", "batch_size": 4}
    return Case(model=model, arms=arms, **{**defaults, **fields})  # type: ignore[arg-type]  # untyped


def destination(
    directory: Path = Path(), *, stream: TextIO | None = None, is_compatible: bool = False
) -> Destination:
    """Return where a sink puts results."""
    return Destination(directory, stream or io.StringIO(), is_compatible)


def environment(**fields: object) -> Environment:
    """Describe a machine that there is not."""
    defaults: dict[str, object] = {
        "id": "0123456789ab",
        "machine": "testbed",
        "cpu": "Made-up CPU",
        "cpus": 2,
        "memory_bytes": 8 * 2**30,
        "os": "Linux 6.0",
        "python": "3.11.0",
        "packages": {"torch": "2.13.0"},
        "git": None,
        "governor": None,
        "load_1min": 0.5,
        "variables": {},
    }
    return Environment(**{**defaults, **fields})  # type: ignore[arg-type]  # untyped


def plan(
    *specs: ModelSpec, arms: tuple[str, ...] = ARMS, replicates: int = 3, **fields: object
) -> RunPlan:
    """Plan one case for each spec."""
    specs = specs or (model_spec(),)
    defaults: dict[str, object] = {
        "suite": "torchbench",
        "models": specs,
        "cases": tuple(case(spec.name, arms) for spec in specs),
        "protocol": Protocol(replicates=replicates, most_replicates=replicates),
    }
    return RunPlan(**{**defaults, **fields})  # type: ignore[arg-type]  # untyped


def manifest(run_plan: RunPlan | None = None, **fields: object) -> Manifest:
    """Wrap a plan."""
    defaults: dict[str, object] = {
        "run_id": "20260101-000000-abcdef",
        "created_at": "2026-01-01T00:00:00+00:00",
        "version": "0.1.0",
        "program": "./torchbench.py",
        "command": "./torchbench.py --quick",
        "environment": environment(),
    }
    return Manifest(plan=run_plan or plan(), **{**defaults, **fields})  # type: ignore[arg-type]  # untyped


def measurement(
    metric: str = "latency",
    arm: str = BASELINE,
    samples: tuple[float, ...] = (0.010, 0.011, 0.010, 0.012),
    blocks: tuple[int, ...] = (),
    unit: str = "s",
) -> Measurement:
    """Make raw samples."""
    return Measurement(metric=metric, unit=unit, arm=arm, samples=samples, blocks=blocks)


def latency(arm: str, seconds: float) -> Measurement:
    """Make latencies of four blocks, spread a little around a value."""
    samples = tuple(seconds * factor for factor in (1.0, 1.002, 0.998, 1.001))
    return measurement("latency", arm, samples, (0, 1, 2, 3))


def failure(
    status: Status = Status.FAIL,
    stage: Stage | None = Stage.COMPILE,
    reason: str | None = "RuntimeError: no such operator",
) -> Outcome:
    """Return how something failed."""
    return Outcome(status=status, stage=stage, reason=reason)


def record(of: Case | None = None, *, replicate: int = 0, **fields: object) -> Record:
    """Make a record of a replicate that passed, with nothing measured."""
    of = of or case()
    outcome = fields.get("outcome", PASSED)
    defaults: dict[str, object] = {
        "run_id": "20260101-000000-abcdef",
        "outcome": outcome,
        "arms": tuple(ArmResult(arm=arm, outcome=outcome) for arm in of.arms),  # type: ignore[arg-type]  # untyped
        "environment_id": "0123456789ab",
        "seed": 0,
        "started_at": "2026-01-01T00:00:00.000+00:00",
        "seconds": {"load": 1.0, "measure": 2.0},
        "command": f"./torchbench.py --only {of.model}",
    }
    return Record(case=of, replicate=replicate, **{**defaults, **fields})  # type: ignore[arg-type]  # untyped


def of_small_model(record: Record) -> Record:
    """Return a record whose model takes 20 MiB and its calls 1 MiB."""
    parts_mib = {"loaded_memory": 20, "calls_memory": 1}
    measurements = tuple(
        msgspec.structs.replace(each, samples=(parts_mib[each.metric] * MIB,))
        if each.metric in parts_mib
        else each
        for each in record.measurements
    )
    return msgspec.structs.replace(record, measurements=measurements)


def measured_record(
    of: Case | None = None,
    *,
    replicate: int = 0,
    seconds: dict[str, float] | None = None,
    peaks_mib: dict[str, float] | None = None,
    residues_mib: dict[str, float] | None = None,
) -> Record:
    """Make a record of a replicate that passed, with everything a run measures.

    Args:
        of: what was run.
        replicate: which process.
        seconds: latency by arm; 10 ms for the baseline and 8 ms for the others unless said.
        peaks_mib: memory of calls by arm, beyond a model of 300 MiB; 100 MiB, where not said.
        residues_mib: what compiling leaves behind by arm; 30 MiB, where not said.
    """
    of = of or case()
    seconds = seconds or {arm: 0.010 if arm == BASELINE else 0.008 for arm in of.arms}
    peaks = dict.fromkeys(of.arms, 100.0) | (peaks_mib or {})
    residues = dict.fromkeys(of.arms, 30.0) | (residues_mib or {})
    measurements = [latency(arm, value) for arm, value in seconds.items()]
    for arm in of.arms:
        measurements += [
            measurement("loaded_memory", arm, (300 * MIB,), unit="B"),
            measurement("residue_memory", arm, (residues[arm] * MIB,), unit="B"),
            measurement("calls_memory", arm, (0.9 * peaks[arm] * MIB, peaks[arm] * MIB), unit="B"),
        ]
        if arm != BASELINE:
            measurements.append(measurement("compile_time", arm, (12.5,)))
    capture = CaptureStats(frames=2, frames_ok=2, graphs=3, ops=40, breaks={"print": 2, "item": 1})
    arms = tuple(
        ArmResult(
            arm=arm, outcome=PASSED, capture=None if arm == BASELINE else capture, steady=True
        )
        for arm in of.arms
    )
    return record(of, replicate=replicate, arms=arms, measurements=tuple(measurements))


def cold_and_warm(*, warm_s: float) -> tuple[Record, Record]:
    """Make a case's first two replicates: the second compiles from the caches the first filled."""
    first, second = (measured_record(replicate=each) for each in range(2))
    others = [each for each in second.measurements if each.metric != "compile_time"]
    warm = measurement("compile_time_warm", "inductor", (warm_s,))
    return first, msgspec.structs.replace(second, measurements=(*others, warm))


def setting(**fields: object) -> Setting:
    """Describe what decisions hold for."""
    defaults: dict[str, object] = {
        "device": "cpu",
        "device_name": "Made-up CPU",
        "threads": 2,
        "processor": "Made-up CPU",
        "versions": {"torch": "2.13.0"},
    }
    return Setting(**{**defaults, **fields})  # type: ignore[arg-type]  # untyped


def decision(**fields: object) -> Decision:
    """Make a decision for the one candidate there was."""
    ratio = Ratio(value=2.0, low=1.9, high=2.1, n=3, p_value=0.001)
    arm = str(fields.get("arm", "inductor"))
    evidence = Evidence(arm=arm, outcome=PASSED, speedup=ratio, compile_s=3.0, samples=24)
    defaults: dict[str, object] = {
        "subject": Subject.GRAPH,
        "key": "0123456789abcdef" * 4,
        "label": "torchbench.alexnet.0123456789ab",
        "setting": setting(),
        "arm": arm,
        "eager_s": 0.01,
        "evidence": (evidence,),
        "tuning_s": 20.0,
        "decided_at": "2026-01-01T00:00:00.000+00:00",
        "run": "20260101-000000-abcdef",
    }
    return Decision(**{**defaults, **fields})  # type: ignore[arg-type]  # untyped
