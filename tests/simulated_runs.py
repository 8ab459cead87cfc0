"""Runs of made-up models on machines that are made up, as sides of a comparison."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import factories
import msgspec
import numpy as np
from simulated import EFFICIENCY, Machine, taken
from stored import ended

from dynamometer.results.comparison.entries import of_arms
from dynamometer.results.comparison.sides import Side, of_run
from dynamometer.results.statistics.replicates import log_speedups
from dynamometer.results.values.cases import BASELINE, Protocol
from dynamometer.results.values.records import ArmResult, BetweenProcessSd, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dynamometer.results.values.records import Manifest, Record

CALIBRATED = Machine(between=0.006, within=0.0087, correlation=0.5)
"""As wide as the noise of the calibration: 1.05 % from process to process, of which 70 % of the
variance is seen within them (docs/decisions/0007-error-bars.md)."""

KNOWN = BetweenProcessSd(sd_log=0.006, df=30.0)
ARM = "inductor"
_EAGER_S = 0.010


@dataclass(frozen=True)
class Made:
    """What is true of a run.

    Attributes:
        models: how many, each of a speedup of its own.
        slower: by which factor the compiled code of a model is slower.
        eager: by which factor eager is.
        failing: models that fail.
        missing: models that are not there.
        speed: by which factor everything is slower.
        compile_sd: how far compile times from empty caches differ from run to run.
        warm_sd: how far those from filled caches differ from process to process.
        run_sd: how far speedups differ from run to run beyond what its processes show.
    """

    models: int = 30
    slower: Mapping[int, float] = field(default_factory=dict)
    eager: Mapping[int, float] = field(default_factory=dict)
    failing: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()
    speed: float = 1.0
    compile_sd: float = 0.05
    warm_sd: float = 0.05
    run_sd: float = 0.0


def side(
    made: Made,
    seed: int,
    replicates: int | None = None,
    *,
    machine: Machine = CALIBRATED,
    known: BetweenProcessSd = KNOWN,
) -> Side:
    """Make up a run, in which cases get so many replicates, or until they are known well enough."""
    manifest, cases = run(made, seed, replicates, machine=machine, known=known)
    entries = [entry for records in cases for entry in of_arms(records)]
    own = [each for case in cases for each in case]
    return of_run(manifest.run_id, manifest, own, entries)


def run(
    made: Made,
    seed: int,
    replicates: int | None = None,
    *,
    machine: Machine = CALIBRATED,
    known: BetweenProcessSd = KNOWN,
) -> tuple[Manifest, list[list[Record]]]:
    """Make up what is stored of a run: its manifest, and the records of each case."""
    rng = np.random.default_rng(seed)
    cases = [
        _case(made, model, machine, known, rng, replicates)
        for model in range(made.models)
        if model not in made.missing
    ]
    plan = factories.plan(*(factories.model_spec(_name(each)) for each in range(made.models)))
    plan = msgspec.structs.replace(plan, protocol=Protocol())
    return factories.manifest(plan, run_id=f"run-{seed}"), cases


def records(made: Made, seed: int, replicates: int) -> list[Record]:
    """Make up the records of one case, the first of a run's, with so many replicates."""
    return _case(made, 0, CALIBRATED, KNOWN, np.random.default_rng(seed), replicates)


def _name(model: int) -> str:
    return f"model_{model:02}"


def _case(
    made: Made, model: int, machine: Machine, known: BetweenProcessSd, rng: np.random.Generator,
    replicates: int | None = None,
) -> list[Record]:  # fmt: skip
    case = factories.case(_name(model))
    if model in made.failing:
        failed = factories.record(case, outcome=factories.failure(Status.FAIL_ACCURACY))
        return ended([failed])
    slower = made.slower.get(model, 1.0) * math.exp(rng.normal(0.0, made.run_sd))
    own = _replicates(made, model, slower, machine, known, rng)
    records = list(itertools.islice(own, replicates or Protocol().most_replicates))
    if replicates is not None:
        return ended(records)
    n = len(taken(tuple(log_speedups(BASELINE, ARM, records)), known))
    return ended(records[:n])


def _replicates(
    made: Made, model: int, slower: float, machine: Machine, known: BetweenProcessSd,
    rng: np.random.Generator,
) -> Iterator[Record]:  # fmt: skip
    case = factories.case(_name(model))
    eager_s = _EAGER_S * made.eager.get(model, 1.0) * made.speed
    compiled_s = _EAGER_S / (1 + model % 7 / 10) * slower * made.speed
    arms = tuple(ArmResult(arm=arm, outcome=factories.PASSED, steady=True) for arm in case.arms)
    for replicate in itertools.count():
        common = rng.normal(0.0, 0.02)
        offset = rng.normal(0.0, machine.between)
        noise = block_noise(machine, rng)
        measurements = [
            _latencies(BASELINE, eager_s * np.exp(common + noise)),
            _latencies(ARM, compiled_s * math.exp(common + offset) * np.ones(machine.blocks)),
        ]
        if replicate == 0:
            compile_s = 10 * math.exp(rng.normal(0.0, made.compile_sd))
            measurements.append(factories.measurement("compile_time", ARM, (compile_s,)))
            measurements += _memory(rng)
            (of_warm,) = rng.spawn(1)
        else:
            warm_s = math.exp(of_warm.normal(0.0, made.warm_sd))
            measurements.append(factories.measurement("compile_time_warm", ARM, (warm_s,)))
        yield factories.record(
            case, replicate=replicate, arms=arms, measurements=tuple(measurements), between_sd=known
        )


def block_noise(
    machine: Machine, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Draw the noise of successive blocks, as `simulated.measured` does."""
    rho = machine.correlation
    noise = rng.standard_normal(machine.blocks)
    for block in range(1, machine.blocks):
        noise[block] = math.sqrt(1 - rho**2) * noise[block] + rho * noise[block - 1]
    scale = math.sqrt(EFFICIENCY * machine.blocks * (1 - rho) / (1 + rho))
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = machine.within * scale * noise
    return found


def _latencies(
    arm: str, seconds: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> factories.Measurement:
    return factories.measurement(
        "latency", arm, tuple(seconds.tolist()), tuple(range(len(seconds)))
    )


def _memory(rng: np.random.Generator) -> list[factories.Measurement]:
    mib = factories.MIB
    return [
        factories.measurement(metric, arm, (size * mib,), unit="B")
        for arm in (BASELINE, ARM)
        for metric, size in (
            ("loaded_memory", 300.0),
            ("residue_memory", 50.0),
            ("calls_memory", 100.0 * math.exp(rng.normal(0.0, 0.01))),
        )
    ]
