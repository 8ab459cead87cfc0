"""What a calibration comes to, from processes whose noise is made up."""

from __future__ import annotations

import csv
import math
import random
import statistics
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.studies.calibration import evaluation as calibration
from dynamometer.common.studies.calibration.arms import ARMS, IN_ISOLATION, OF_INDUCTOR, PAIRS
from dynamometer.common.studies.calibration.page import Calibration, write_page
from dynamometer.common.studies.calibration.rates import accused, naive_rates, rates
from dynamometer.common.studies.calibration.study import STUDY
from dynamometer.results.statistics import replicates, summary
from dynamometer.results.statistics.between_processes import scatters
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE, Protocol
from dynamometer.results.values.metrics import LATENCY, LATENCY_ISOLATED, SYSTEM_TIME
from dynamometer.results.values.records import (
    ASSUMED_SD,
    BetweenProcessSd,
    Measurement,
    Ratio,
    Record,
)
from dynamometer.results.values.workers import StartMethod

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.values.records import Estimate

MODELS = ("a", "b", "c", "d")
IDENTICAL = sum(truth == 1.0 for truth in PAIRS.values())
SLOWDOWNS = {arm: 1 / truth for (_, arm), truth in PAIRS.items()}


def made_up(between_sd: float, replicates: int = 60, naive_bias: float = 0.0) -> list[Record]:
    """Make processes in which every arm is off by a share drawn anew, the same in all blocks.

    Args:
        between_sd: standard deviation of a log speedup between processes.
        replicates: processes of each model.
        naive_bias: by how much the second arm of a pair seems slower, the usual way.
    """
    rng = random.Random(0)
    records = []
    for model in MODELS:
        case = factories.case(model, ARMS)
        for replicate in range(replicates):
            measurements: list[Measurement] = []
            for arm in ARMS:
                seconds = 0.01 * SLOWDOWNS.get(arm, 1.0) * math.exp(
                    rng.gauss(0.0, between_sd / math.sqrt(2))
                )  # fmt: skip
                measurements.append(factories.latency(arm, seconds))
            for pair in PAIRS:
                for arm in pair:
                    seconds = 0.01 * (1 + naive_bias * (arm == pair[1]))
                    samples = tuple(seconds * math.exp(rng.gauss(0.0, 0.01)) for _ in range(30))
                    metric = calibration.naive_metric(pair)
                    measurements.append(factories.measurement(metric, arm, samples))
            record = factories.record(case, replicate=replicate, measurements=tuple(measurements))
            records.append(record)
    return records


def share(found: Estimate | None) -> float:
    """Return a share that is there."""
    assert found is not None
    return found.value


@pytest.mark.slow
@pytest.mark.parametrize("between_sd", [0.003, 0.01])
def test_rates_are_those_of_the_noise(between_sd: float) -> None:
    """Where variances are alike, a twentieth are false alarms; large slowdowns are noticed."""
    found = rates(calibration.series(made_up(between_sd), Protocol(), None))
    assert 0.01 <= share(found.false_alarms) <= 0.10
    assert 0.91 <= share(found.coverage) <= 0.99
    assert share(found.coverage_slowed) >= 0.91
    assert share(found.detection[5]) > 0.99
    assert (share(found.detection[1]) > 0.7) == (between_sd == 0.003)


@pytest.mark.slow
def test_what_is_assumed_too_small_gives_false_alarms() -> None:
    """The between_sd makes the difference, so a calibration can fail."""
    records = made_up(0.02)
    tiny = calibration.series(records, Protocol(), BetweenProcessSd(sd_log=0.002, df=30.0))
    assert share(rates(tiny).false_alarms) > 0.1
    assert share(rates(tiny).coverage) < 0.9


@pytest.mark.slow
def test_series_take_what_the_protocol_would() -> None:
    """Replicates are used once, in order, three to five for each result."""
    protocol = Protocol(replicates=3, most_replicates=5, target=0.01)
    calm = calibration.series(made_up(0.0001), protocol, BetweenProcessSd(sd_log=0.001, df=8.0))
    assert {each.replicates for each in calm} == {3}
    assert len(calm) == len(MODELS) * len(PAIRS) * 19  # a twentieth might have needed more
    noisy = calibration.series(made_up(0.05), protocol, ASSUMED_SD)
    wide = [each for each in noisy if not each.within_target]
    assert len(wide) > 0.9 * len(noisy)
    assert sum(each.replicates == 5 for each in wide) > 0.9 * len(wide)


@pytest.mark.slow
def test_results_that_were_disturbed_conclude_nothing() -> None:
    """They are told from the others, and count neither as right nor as wrong."""
    records = [
        msgspec.structs.replace(record, disturbed_blocks=(0, 1, 2, 3))
        if record.replicate == 1
        else record
        for record in made_up(0.0001)
    ]
    between_sd = BetweenProcessSd(sd_log=0.001, df=8.0)
    found = calibration.series(records, Protocol(), between_sd)
    left_out = [each for each in found if not each.is_conclusive]
    assert len(left_out) == len(MODELS) * len(PAIRS)
    false_alarms = rates(found).false_alarms
    assert false_alarms is not None
    assert false_alarms.n == len(MODELS) * IDENTICAL * 18


def test_a_pair_is_judged_by_the_blocks_it_shared() -> None:
    """Not by those of the same arm beside another, nor by what disturbed these."""
    arm, other, *_ = (pair[1] for pair in PAIRS if pair[0] == BASELINE)
    measurements = (
        factories.measurement("latency", BASELINE, (1.0, 1.0, 3.0, 3.0), (0, 1, 2, 3)),
        factories.measurement("latency", arm, (0.5, 0.5), (0, 1)),
        factories.measurement("latency", other, (1.0, 1.0), (2, 3)),
    )
    record = factories.record(
        factories.case("a", ARMS), measurements=measurements, disturbed_blocks=(2, 3)
    )
    first, second = (replicates.of_pair(record, (BASELINE, each)) for each in (arm, other))
    assert summary.summarize_case([first]).is_conclusive
    assert not summary.summarize_case([second]).is_conclusive
    (found,) = replicates.log_speedups(BASELINE, arm, [record])
    assert found[:3] == (math.log(2.0), 0.0, 1.0)
    assert replicates.log_speedups(arm, other, [record]) == []


def test_arms_that_shared_no_block_teach_nothing() -> None:
    """Neither those of another pair, nor one that was not timed; the kernel's work goes along."""
    arms, rng = (BASELINE, "inductor", "elsewhere", "skipped"), random.Random(0)
    records = [
        factories.record(
            factories.case(model, arms),
            replicate=each,
            measurements=tuple(
                factories.measurement(metric, arm, samples, blocks)
                for metric in (LATENCY.name, SYSTEM_TIME.name)
                for arm, samples, blocks in (
                    (BASELINE, (1.0, 1.0), (0, 1)),
                    ("inductor", (0.5 + 0.01 * rng.random(),) * 2, (0, 1)),
                    ("elsewhere", (9.0, 9.0), (2, 3)),
                )
            ),
        )
        for model in MODELS
        for each in range(20)
    ]  # fmt: skip
    found = list(scatters(records, "inductor"))
    assert len(found) == len(MODELS)
    assert not list(scatters(records, "elsewhere"))
    assert not list(scatters(records, "skipped"))


@pytest.mark.slow
def test_the_usual_way_is_judged_by_its_own_test() -> None:
    """A bias that is the same in all calls is called a difference every time."""
    fair = calibration.naive_tests(made_up(0.003))
    assert len(fair) == len(MODELS) * 60 * len(PAIRS)
    assert share(naive_rates(fair).false_alarms) < 0.08
    biased = calibration.naive_tests(made_up(0.003, naive_bias=0.02))
    assert share(naive_rates(biased).false_alarms) > 0.95
    assert naive_rates(biased).coverage is None


@pytest.mark.slow
def test_drift_is_that_of_identical_arms() -> None:
    """Its mean is near 0, its between_sd that of the processes."""
    found = calibration.drifts(made_up(0.01, replicates=200))
    assert len(found) == IDENTICAL * len(MODELS)
    for drift in found:
        assert abs(drift.t) < 4
        assert drift.sd == pytest.approx(0.01, rel=0.2)


@pytest.mark.slow
def test_a_model_is_not_judged_by_itself() -> None:
    """What is assumed of it comes from the others alone."""
    records = made_up(0.003)
    wild = [
        msgspec.structs.replace(record, case=factories.case("wild", ARMS))
        for record in made_up(0.5)
        if record.case.model == "a"
    ]
    found = calibration.learnt_from_others([*records, *wild], OF_INDUCTOR)
    assert found["wild"].sd_log < 0.005
    assert found["a"].df < 3


@pytest.mark.slow
def test_a_page_is_written(tmp_path: Path) -> None:
    """With every rate, every model, and a picture where matplotlib is there."""
    specs = tuple(factories.model_spec(name) for name in MODELS)
    manifest = factories.manifest(factories.plan(*specs, arms=ARMS, replicates=60))
    write_page(tmp_path / "page.md", [Calibration(manifest, tuple(made_up(0.003)))])
    text = (tmp_path / "page.md").read_text()
    for words in ("identical arms called different", "2 % slower, noticed", "the same, 2 % slower"):
        assert words in text
    for name in MODELS:
        assert f"| {name} " in text
    with (tmp_path / "page.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["protocol"] == "ours"]
    same = [row for row in rows if row["truth"] == "1" and row["is_conclusive"] == "True"]
    alarms = sum(float(row["p_value"]) <= 0.05 for row in same)
    assert f"| {alarms / len(same):.1%} [" in text
    assert f" of {len(same)} " in text
    drawn = (tmp_path / "page.png").exists()
    assert drawn == ("page.png" in text)


def test_a_line_is_about_arms_timed_beside_the_baseline() -> None:
    """Of the others the page tells, unless one fails."""
    record = made_up(0.003, replicates=1)[0]
    blocks = {
        pair: tuple(4 * index + block for block in range(4)) for index, pair in enumerate(PAIRS)
    }
    others = set(ARMS) - {arm for pair in PAIRS if BASELINE in pair for arm in pair}
    apart = tuple(
        msgspec.structs.replace(each, blocks=blocks[pair])
        for each in record.measurements
        if each.metric == LATENCY.name
        for pair in PAIRS
        if each.arm in pair
    )
    partly = tuple(
        msgspec.structs.replace(
            each, unchecked=("output: not compared",) if each.arm in others else ()
        )
        for each in record.arms
    )
    record = msgspec.structs.replace(record, measurements=apart, arms=partly)
    (line,) = STUDY.lines([record])
    assert all(arm in line for arm in ARMS if arm not in {BASELINE, *others})
    assert not any(arm in line for arm in others)
    assert "not measured" not in line
    assert "PARTIAL" not in line
    failed = tuple(
        msgspec.structs.replace(each, outcome=factories.failure()) if each.arm == ARMS[-4] else each
        for each in partly
    )
    (line,) = STUDY.lines([msgspec.structs.replace(record, arms=failed)])
    assert f"{ARMS[-4]} FAIL" in line


def test_a_tenth_of_the_width_takes_a_hundred_times_the_seconds() -> None:
    """Of a result whose interval is 10 % to either side."""
    ratio = Ratio(value=1.0, low=1 / 1.1, high=1.1, n=3, p_value=1.0)
    found = calibration.Series(
        "a",
        (BASELINE, "b"),
        ratio,
        3,
        2.0,
        within_target=False,
        is_disturbed=False,
        is_conclusive=True,
    )
    assert found.seconds_to(0.10) == pytest.approx(2.0)
    assert found.seconds_to(1.1**0.1 - 1) == pytest.approx(200.0)


def test_too_little_to_count_is_no_fault(tmp_path: Path) -> None:
    """A calibration in which nothing passed has a page without figures."""
    failed = [factories.record(factories.case("a", ARMS), outcome=factories.failure())]
    manifest = factories.manifest(factories.plan(factories.model_spec("a"), arms=ARMS))
    write_page(tmp_path / "page.md", [Calibration(manifest, tuple(failed))])
    assert "| identical arms called different" in (tmp_path / "page.md").read_text()


@pytest.mark.slow
def test_runs_are_evaluated_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`calibrate --from` measures nothing, and takes calibrations only."""
    specs = tuple(factories.model_spec(name) for name in MODELS)
    for name, arms in (("run", ARMS), ("other", (BASELINE, "inductor"))):
        manifest = factories.manifest(factories.plan(*specs, arms=arms, replicates=60))
        store.create(tmp_path / name, manifest)
    with store.RunStore(tmp_path / "run") as events:
        for record in made_up(0.003, replicates=10):
            events.append(record)
        events.append(factories.record())  # of a case that isn't planned
    page = tmp_path / "page.md"
    assert cli.main(None, ["calibrate", "--from", str(tmp_path / "run"), "--page", str(page)]) == 0
    assert "How often measuring is wrong" in page.read_text()
    said = capsys.readouterr()
    assert f"results: {page}" in said.out
    assert "not counted" in said.err
    assert cli.main(None, ["calibrate", "--from", str(tmp_path / "other")]) == 2
    assert "is no calibration" in capsys.readouterr().err
    assert cli.main(None, ["calibrate", "-r", "4"]) == 2
    assert "4 is not in the range" in capsys.readouterr().err
    words = ["calibrate", "--from", str(tmp_path / "run"), "--page", "/dev/null/page.md"]
    assert cli.main(None, words) == 2
    assert "/dev/null/page.md can't be written" in capsys.readouterr().err


def test_what_is_evaluated_is_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What says how to measure is refused beside `--from`, wherever it stands."""
    (tmp_path / "run").mkdir()
    words = ["calibrate", "-r", "5", "--from", str(tmp_path / "run"), "--busy", "--only", "dcgan"]
    assert cli.main(None, words) == 2
    said = capsys.readouterr().err
    assert "--from measures nothing: leave out --only, --replicates, --busy" in said


def test_runs_of_another_kind_are_not_evaluated_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What differs is named; how processes are started may."""
    usual = factories.manifest(factories.plan(arms=ARMS))
    protocol = msgspec.structs.replace(usual.plan.protocol, start_method=StartMethod.SPAWN)
    others = {
        "first": usual,
        "fresh": factories.manifest(factories.plan(arms=ARMS, protocol=protocol)),
        "elsewhere": factories.manifest(
            factories.plan(arms=ARMS), environment=factories.environment(cpu="Another CPU")
        ),
    }
    for name, manifest in others.items():
        store.create(tmp_path / name, manifest)
    first, fresh, elsewhere = (["--from", str(tmp_path / name)] for name in others)
    words = ["calibrate", "--page", str(tmp_path / "page.md"), *first]
    assert cli.main(None, [*words, *fresh]) == 0
    assert cli.main(None, [*words, *elsewhere]) == 2
    assert "elsewhere is of processor Another CPU" in capsys.readouterr().err


@pytest.mark.slow
def test_first_runs_of_a_single_model_learn_from_nobody() -> None:
    """Each result stands on what is assumed alone, which others would have outweighed."""
    records = made_up(0.003, replicates=20)
    wide = BetweenProcessSd(sd_log=0.05, df=8.0)
    together, alone = (
        calibration.series(records, Protocol(), wide, alone=alone) for alone in (False, True)
    )
    widths = [
        statistics.fmean(math.log(each.ratio.high / each.ratio.low) for each in found)
        for found in (together, alone)
    ]
    assert len(together) == len(alone)
    assert widths[1] > 1.5 * widths[0]


def test_how_often_identical_arms_are_accused() -> None:
    """Of results that nothing disturbed; none of a calibration's arms disturb each other."""
    records = made_up(0.003, replicates=5)
    first_of_eager = next(arm for base, arm in PAIRS if base == BASELINE)
    shifted = [
        msgspec.structs.replace(
            record,
            measurements=(
                *record.measurements,
                *(
                    factories.measurement("latency_alone", arm, (0.01 * factor,) * 2, (0, 1))
                    for arm, factor in ((BASELINE, 1.5), (first_of_eager, 1.0))
                ),
            ),
        )
        for record in records
    ]
    assert share(accused(calibration.series(records, Protocol(), None))) == 0.0
    found = calibration.series(shifted, Protocol(), None)
    assert share(accused(found)) == pytest.approx(1 / len(PAIRS))


def in_isolation(records: list[Record], between_sd: float) -> list[Record]:
    """Have the arms that may take turns of their own take them, off by a share drawn anew."""
    rng = random.Random(1)
    return [
        msgspec.structs.replace(
            record,
            measurements=(
                *record.measurements,
                *(
                    factories.measurement(
                        LATENCY_ISOLATED.name,
                        arm,
                        (0.01 * SLOWDOWNS.get(arm, 1.0) * math.exp(rng.gauss(0.0, between_sd)),),
                        (turn,),
                    )
                    for group in IN_ISOLATION
                    for arm in group
                    for turn in (0, 1)
                ),
            ),
        )
        for record in records
    ]


@pytest.mark.slow
def test_isolated_runs_are_evaluated_by_themselves(tmp_path: Path) -> None:
    """They change nothing of what is said of blocks, and have a table of their own."""
    without = made_up(0.003, replicates=10)
    records = in_isolation(without, 0.01)
    usual = Protocol()
    assert not calibration.series_in_isolation(without, usual)
    found = calibration.series_in_isolation(records, usual)
    pairs = {pair for group in IN_ISOLATION for pair in PAIRS if set(pair) <= set(group)}
    assert {each.pair for each in found} == pairs
    assert {each.truth for each in found} == {1.0, 1 / 1.05}
    assert share(rates(found).coverage) > 0.8
    manifest = factories.manifest(factories.plan(factories.model_spec("a"), arms=ARMS))
    for name, run in (("without", without), ("with", records)):
        write_page(tmp_path / f"{name}.md", [Calibration(manifest, tuple(run))])
    before, after = ((tmp_path / f"{name}.md").read_text() for name in ("without", "with"))
    assert "isolated runs" not in before
    assert "| isolated runs " in after
    assert before.partition("| ")[2].splitlines()[:12] == after.partition("| ")[2].splitlines()[:12]


def test_turns_that_something_disturbed_are_left_out() -> None:
    """As blocks are."""
    records = [
        msgspec.structs.replace(record, disturbed_isolated_runs=record.replicate < 5)
        for record in in_isolation(made_up(0.003, replicates=10), 0.01)
    ]
    found = calibration.series_in_isolation(records, Protocol())
    assert {each.is_disturbed for each in found} == {True, False}
    alarms = rates(found).false_alarms
    assert alarms is not None
    assert alarms.n == sum(each.truth == 1.0 and not each.is_disturbed for each in found)


@pytest.mark.slow
def test_a_busy_machine_has_tables_of_its_own(tmp_path: Path) -> None:
    """Beside those of a quiet one, in one page."""
    quiet = factories.manifest(factories.plan(factories.model_spec("a"), arms=ARMS))
    busy = msgspec.structs.replace(quiet, plan=msgspec.structs.replace(quiet.plan, busy=True))
    runs = [Calibration(each, tuple(made_up(0.003, replicates=10))) for each in (quiet, busy)]
    write_page(tmp_path / "page.md", runs)
    text = (tmp_path / "page.md").read_text()
    assert "## With processes by fork, beside a process that computes for 0.1 s and sleeps" in text
    assert text.count("| identical arms called different") == 2
    assert "| fork, busy " in text
    assert text.count("ours, had it not been seen") == 1
