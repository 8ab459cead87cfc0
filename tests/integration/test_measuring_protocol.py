"""What the protocol does in real workers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from conftest import hostile_manifest, run_replicates, with_protocol

from dynamometer.common.studies.calibration.arms import ARMS, IN_ISOLATION, PAIRS
from dynamometer.common.studies.calibration.evaluation import naive_tests
from dynamometer.dynamo import state
from dynamometer.results.statistics.replicates import log_speedups, of_pair
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.metrics import LATENCY_ISOLATED
from dynamometer.results.values.records import Status, StopReason
from dynamometer.results.values.workers import Caches

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.values.records import Record

APART = pytest.mark.skipif(
    not state.has_limit_per_arm(),
    reason="before torch 2.13 two arms with the same backend share what is compiled",
)


def metrics(record: Record, arm: str) -> set[str]:
    """Name what was measured on an arm."""
    return {each.metric for each in record.measurements if each.arm == arm}


def test_arms_that_disturb_each_other_are_timed_apart(tmp_path: Path) -> None:
    """Eager beside a spinning runtime takes 6 ms instead of 4, alone 4: the ratio is 2, not 3."""
    manifest = hostile_manifest(["slowed"], ["spinning_backend:spinning"])
    (record,) = run_replicates(with_protocol(manifest, min_blocks=6), tmp_path / "run")
    case = summarize_case([record])
    (arm,) = case.arms
    assert case.is_isolated
    assert arm.speedup is not None
    assert arm.speedup.value == pytest.approx(2, rel=0.01)
    for name in record.case.arms:
        assert {"latency", "latency_alone", "latency_isolated"} <= metrics(record, name)


def test_arms_that_do_not_are_timed_together(tmp_path: Path) -> None:
    """Each was timed alone, and that was that."""
    manifest = hostile_manifest(["slowed"], ["eager"])
    (record,) = run_replicates(with_protocol(manifest, min_blocks=6), tmp_path / "run")
    assert {"latency", "latency_alone"} <= metrics(record, BASELINE)
    assert not summarize_case([record]).is_isolated
    assert record.stopped is StopReason.REPLICATES


@pytest.mark.parametrize(
    ("caches", "wanted"),
    [
        (Caches.FIRST_COLD, ["compile_time", "compile_time_warm"]),
        (Caches.COLD, ["compile_time", "compile_time"]),
        (Caches.WARM, ["compile_time_warm", "compile_time_warm"]),
    ],
)
def test_compile_times_are_cold_or_warm_as_asked(
    caches: Caches, wanted: list[str], tmp_path: Path
) -> None:
    """The first replicate is cold unless a process before it was to fill the caches."""
    manifest = hostile_manifest(["behaves"], ["inductor"])
    manifest = with_protocol(manifest, replicates=2, most_replicates=2, caches=caches)
    records = run_replicates(manifest, tmp_path / "run")
    assert [record.outcome.status for record in records] == [Status.PASS] * 2
    found = [
        metrics(record, "inductor") & {"compile_time", "compile_time_warm"} for record in records
    ]
    assert found == [{each} for each in wanted]
    phases = {"compile_dynamo_time", "compile_backend_time"}
    if caches is not Caches.WARM:  # torch keeps what AOTAutograd made, too
        phases.add("compile_aot_autograd_time")
    assert phases <= metrics(records[0], "inductor")


def test_equal_graphs_of_one_arm_are_cold(tmp_path: Path) -> None:
    """The second is found in the caches, where no other arm has put it."""
    (record,) = run_replicates(
        hostile_manifest(["two_equal_graphs"], ["inductor"]), tmp_path / "run"
    )
    assert record.outcome.status is Status.PASS, record.outcome
    assert "compile_time" in metrics(record, "inductor")
    assert not record.absent


@APART
def test_of_two_arms_with_the_same_graphs_one_is_cold(tmp_path: Path) -> None:
    """The one that is built second finds them compiled, and says so."""
    arms = ["inductor", "dynamometer.dynamo.known:inductor_again"]
    (record,) = run_replicates(hostile_manifest(["behaves"], arms), tmp_path / "run")
    assert record.outcome.status is Status.PASS, record.outcome
    first, second = (name for name in record.build_order if name != BASELINE)
    assert "compile_time" in metrics(record, first)
    assert not metrics(record, second) & {"compile_time", "compile_time_warm"}
    (absent,) = [each for each in record.absent if each.metric == "compile_time"]
    assert absent.arm == second
    assert "another arm" in absent.reason


def test_replicates_go_on_until_the_target(tmp_path: Path) -> None:
    """A target that anything meets is met at once, one that nothing meets is not."""
    for target, count, reason in ((1e9, 2, StopReason.TARGET), (1e-9, 3, StopReason.REPLICATES)):
        manifest = with_protocol(
            hostile_manifest(["timed"]), replicates=2, most_replicates=3, target=target
        )
        records = run_replicates(manifest, tmp_path / reason)
        assert [record.replicate for record in records] == list(range(count))
        assert [record.stopped for record in records] == [None] * (count - 1) + [reason]


@APART
def test_a_calibration_measures_every_pair_both_ways(tmp_path: Path) -> None:
    """Each pair in blocks of its own and, under stock malloc, call by call; some arms in turns."""
    manifest = hostile_manifest(
        ["timed"], ARMS[1:], experiments=("in_pairs", "naive", "in_isolation")
    )
    (record,) = run_replicates(manifest, tmp_path / "run")
    assert record.outcome.status is Status.PASS, record.outcome
    assert {(each.model, each.pair) for each in naive_tests([record])} == {
        ("timed", pair) for pair in PAIRS
    }
    turns = Counter(
        each.arm for each in record.measurements if each.metric == LATENCY_ISOLATED.name
    )
    assert turns == Counter({arm: 2 for group in IN_ISOLATION for arm in group})
    blocks: set[int] = set()
    for pair in PAIRS:
        of_two = of_pair(record, pair)
        assert len(log_speedups(*pair, [of_two])) == 1
        (own,) = {each.blocks for each in of_two.measurements if each.metric == "minor_faults"}
        assert blocks.isdisjoint(own)
        blocks.update(own)
