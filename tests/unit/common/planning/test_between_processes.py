"""What is learnt from earlier runs, from which, and from a run itself."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.planning.between_processes import known_between_sds
from dynamometer.common.studies.calibration import arms as calibrated
from dynamometer.results.statistics.between_processes import shared, with_between_sd
from dynamometer.results.statistics.replicates import between_sd_of, known_of
from dynamometer.results.statistics.summary import CaseSummary, summarize_case
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import ASSUMED_SD, BetweenProcessSd

if TYPE_CHECKING:
    from pathlib import Path

PLAN = factories.plan(experiments=("speedup",))


def add_run(
    runs: Path, name: str, models: int, shift: float,
    experiments: tuple[str, ...] = PLAN.experiments, **environment: object,
) -> None:  # fmt: skip
    """Add a run of some models, each of three replicates that differ by a share."""
    specs = [factories.model_spec(f"m{model}") for model in range(models)]
    plan = factories.plan(*specs, experiments=experiments)
    manifest = factories.manifest(plan, environment=factories.environment(**environment))
    store.create(runs / name, manifest)
    with store.RunStore(runs / name) as events:
        for model in range(models):
            case = factories.case(f"m{model}")
            for replicate in range(3):
                seconds = {BASELINE: 0.010, "inductor": 0.008 * (1 + shift * replicate)}
                events.append(factories.measured_record(case, replicate=replicate, seconds=seconds))


def known(runs: Path, arm: str = "inductor") -> BetweenProcessSd:
    """Return what is known of an arm of a run that is about to begin, or else assumed."""
    plan = factories.plan(experiments=PLAN.experiments, arms=(BASELINE, arm))
    return known_between_sds(plan, factories.environment(), runs).get(arm, ASSUMED_SD)


def test_nothing_is_known_at_first(tmp_path: Path) -> None:
    """Nor from runs on another machine."""
    assert known(tmp_path) == ASSUMED_SD
    add_run(tmp_path, "1", 60, 0.05, cpu="Another CPU")
    assert known(tmp_path) == ASSUMED_SD


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES"])
def test_nothing_is_known_of_other_threads_or_devices(tmp_path: Path, name: str) -> None:
    """Variables choose them, too."""
    add_run(tmp_path, "1", 60, 0.05, variables={name: "1"})
    assert known(tmp_path) == ASSUMED_SD
    add_run(tmp_path, "2", 60, 0.05, variables={"LD_BIND_NOW": "1"})
    assert known(tmp_path) != ASSUMED_SD


def test_runs_that_teach_little_take_no_place(tmp_path: Path) -> None:
    """However many came after one that taught much, interrupted ones among them."""
    add_run(tmp_path, "1", 60, 0.05)
    taught = known(tmp_path)
    assert taught.sd_log == pytest.approx(0.05, rel=0.5)
    for later in range(2, 10):
        add_run(tmp_path, str(later), later % 2, 0.05)
    assert known(tmp_path).sd_log == pytest.approx(taught.sd_log, rel=0.1)
    assert known(tmp_path).df > 8


@pytest.mark.parametrize("fails_in", ["is_timed", "taught_arms"])
def test_runs_of_a_broken_plugin_teach_nothing(fails_in: str, tmp_path: Path, plugin: Path) -> None:
    """Those of others still do."""
    plugin.write_text("[dynamometer.studies]\nodd = odd_study:STUDY\n")
    (plugin.parents[1] / "odd_study.py").write_text(
        "from dynamometer.common.studies.study import StudyOfCases\n"
        "class Odd(StudyOfCases):\n"
        "    modules = {'odd': 'odd_study:NONE'}\n"
        "    is_timed = True\n"
        f"    {fails_in} = property(lambda self: 1 + 'no')\n"
        "STUDY = Odd()\n"
    )
    add_run(tmp_path, "1", 60, 0.05)
    taught = known(tmp_path)
    add_run(tmp_path, "2", 1, 0.05, experiments=("odd",))
    assert known(tmp_path) == taught


def test_the_newest_come_first(tmp_path: Path) -> None:
    """What a machine was like before they have taught enough counts no more."""
    add_run(tmp_path, "1", 60, 0.2)
    add_run(tmp_path, "2", 60, 0.01)
    assert known(tmp_path).sd_log == pytest.approx(0.01, rel=0.5)


def test_arms_teach_nothing_of_others(tmp_path: Path) -> None:
    """A run of one backend makes nothing known of another, which may differ further."""
    add_run(tmp_path, "1", 60, 0.01)
    assert known(tmp_path) != ASSUMED_SD
    assert known(tmp_path, "onnxrt") == ASSUMED_SD


def test_a_calibration_teaches_of_inductor_what_inductor_did(tmp_path: Path) -> None:
    """Not what eager beside eager did, which is less."""
    rng = random.Random(0)
    specs = [factories.model_spec(f"m{model}") for model in range(20)]
    plan = factories.plan(*specs, experiments=("in_pairs", "naive"), arms=calibrated.ARMS)
    store.create(tmp_path / "1", factories.manifest(plan))
    with store.RunStore(tmp_path / "1") as events:
        for spec, replicate in itertools.product(specs, range(5)):
            case = factories.case(spec.name, calibrated.ARMS)
            measurements = tuple(
                factories.measurement(
                    "latency", arm, (0.01 * math.exp(rng.gauss(0.0, sd)),) * 2, (block, block + 1)
                )
                for block, (pair, sd) in zip((0, 2), SPREADS.items(), strict=True)
                for arm in pair
            )
            events.append(factories.record(case, replicate=replicate, measurements=measurements))
    assert known(tmp_path).sd_log == pytest.approx(0.02 * math.sqrt(2), rel=0.2)


SPREADS = {calibrated.OF_EAGER: 0.001, calibrated.OF_INDUCTOR: 0.02}


def test_arms_that_differ_further_are_told_so_at_the_end() -> None:
    """One that scatters by 3 % doesn't make a calm one's interval wide, nor the other way round."""
    rng = random.Random(0)
    sds = {"calm": 0.002, "wild": 0.03}
    cases = [
        summarize_case(
            [
                factories.measured_record(
                    factories.case(f"m{model}", (BASELINE, *sds)),
                    replicate=replicate,
                    seconds={
                        BASELINE: 0.010,
                        **{arm: 0.010 * math.exp(rng.gauss(0.0, sd)) for arm, sd in sds.items()},
                    },
                )
                for replicate in range(3)
            ]
        )
        for model in range(12)
    ]
    for case in shared(cases):
        calm, wild = (case.records[0].between_sds[arm] for arm in sds)
        assert calm.sd_log < 0.006
        assert wild.sd_log > 0.015
        both = BetweenProcessSd(sd_log=wild.sd_log, df=min(calm.df, wild.df))
        for pair in (tuple(sds), tuple(reversed(sds))):
            assert between_sd_of(case.records, *pair) == both


def run_of(
    models: int, sd: float, rng: random.Random, between_sd: BetweenProcessSd
) -> list[CaseSummary]:
    """Make a run of identical arms, three processes each, whose log speedups differ so much."""
    return [
        summarize_case(
            [
                with_between_sd(
                    factories.measured_record(
                        factories.case(f"m{model}"),
                        replicate=replicate,
                        seconds={BASELINE: 0.010, "inductor": 0.010 * math.exp(rng.gauss(0.0, sd))},
                    ),
                    between_sd,
                )
                for replicate in range(3)
            ]
        )
        for model in range(models)
    ]


def alarms(cases: list[CaseSummary]) -> list[bool]:
    """Return of each case whether its arms are called different."""
    return [arm.speedup is not None and arm.speedup.p_value < 0.05
            for case in cases for arm in case.arms]  # fmt: skip


@pytest.mark.slow
def test_a_first_run_learns_from_itself() -> None:
    """Where processes differ by twice what is assumed, few identical arms are called different."""
    rng = random.Random(0)
    runs = [run_of(12, 2 * ASSUMED_SD.sd_log, rng, ASSUMED_SD) for _ in range(30)]
    before = [each for run in runs for each in alarms(run)]
    after = [each for run in runs for each in alarms(shared(run))]
    assert statistics.fmean(before) > 0.08
    assert statistics.fmean(after) < 0.06


@pytest.mark.slow
def test_a_machine_may_be_less_steady_than_it_was_known() -> None:
    """Where processes differ by three times as much, its run says so, and few alarms are false."""
    known = BetweenProcessSd(sd_log=0.005, df=30.0)
    rng = random.Random(0)
    runs = [run_of(12, 0.015, rng, known) for _ in range(30)]
    before = [each for run in runs for each in alarms(run)]
    after = [each for run in runs for each in alarms(shared(run))]
    assert statistics.fmean(before) > 0.25
    assert statistics.fmean(after) < 0.11
    steady = [each for _ in range(30) for each in alarms(shared(run_of(12, 0.005, rng, known)))]
    assert statistics.fmean(steady) < 0.07


def test_what_is_alone_stays() -> None:
    """Where there is no other case, nothing changes, whatever was known."""
    rng = random.Random(0)
    for known in (ASSUMED_SD, BetweenProcessSd(sd_log=0.004, df=11.0)):
        alone = run_of(1, 0.05, rng, known)
        assert shared(alone) == alone
    assert shared([]) == []


def test_a_case_is_not_its_own_teacher() -> None:
    """One that varies more than all others makes theirs count for less, not its own."""
    rng = random.Random(0)
    wild, *calm = [*run_of(1, 0.3, rng, ASSUMED_SD), *run_of(5, 0.006, rng, ASSUMED_SD)]
    own, *others = [known_of(case.records[0], "inductor") for case in shared([wild, *calm])]
    assert own.df > 2 * max(each.df for each in others)
    assert own.sd_log < 0.012
