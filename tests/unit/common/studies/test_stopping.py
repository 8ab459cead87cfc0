from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common import registry
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.cases import BASELINE, Protocol
from dynamometer.results.values.records import BetweenProcessSd, Record, Status, StopReason, packed
from dynamometer.results.values.sizes import SizeSweep, latency_at

if TYPE_CHECKING:
    from collections.abc import Sequence

CALM = BetweenProcessSd(sd_log=0.001, df=8.0)
NOISY = BetweenProcessSd(sd_log=0.2, df=8.0)


def stop_reason(records: Sequence[Record], protocol: Protocol) -> StopReason | None:
    """Ask the study that the records are of."""
    return registry.study(records[0].experiments[0]).stop_reason(records, protocol)


def replicates(count: int, between_sd: BetweenProcessSd, seconds: float = 1.0) -> list[Record]:
    """Make replicates of a machine with a between_sd, each of which took as long."""
    return [
        msgspec.structs.replace(
            factories.measured_record(replicate=each),
            between_sd=between_sd,
            seconds={"measure": seconds},
        )
        for each in range(count)
    ]


@pytest.mark.parametrize(
    ("records", "wanted"),
    [
        (replicates(2, CALM), None),
        (replicates(3, CALM), StopReason.TARGET),
        (replicates(3, NOISY), None),
        (replicates(4, NOISY), None),
        (replicates(5, NOISY), StopReason.REPLICATES),
        (replicates(3, NOISY, seconds=20.0), None),
        (replicates(4, NOISY, seconds=20.0), StopReason.TIME),
        (replicates(2, NOISY, seconds=50.0), None),
    ],
    ids=["too-few", "precise", "wide", "wider", "most", "quick", "slow", "slow-but-too-few"],
)
def test_when_to_stop(records: list[Record], wanted: StopReason | None) -> None:
    """After the least number, at the target, the largest number, or when time is up."""
    assert stop_reason(records, Protocol(case_budget_s=80.0)) is wanted


@pytest.mark.parametrize("seconds", [0.010, 0.0097, 0.005])
def test_what_was_found_does_not_decide(seconds: float) -> None:
    """Arms that are the same and arms that differ get as many replicates."""
    found = [
        msgspec.structs.replace(
            factories.measured_record(
                replicate=each, seconds={BASELINE: 0.010, "inductor": seconds}
            ),
            between_sd=NOISY,
        )
        for each in range(4)
    ]
    assert stop_reason(found, Protocol()) is None


def test_a_failure_is_not_repeated() -> None:
    """Nothing is told by measuring again what gives wrong results, or doesn't run."""
    failed = factories.record(outcome=factories.failure(Status.CRASH))
    assert stop_reason([failed], Protocol()) is StopReason.FAILED
    passed = factories.measured_record()
    arms = tuple(
        msgspec.structs.replace(arm, outcome=factories.failure()) if arm.arm == BASELINE else arm
        for arm in passed.arms
    )
    unmeasured = msgspec.structs.replace(passed, arms=arms)
    assert stop_reason([unmeasured], Protocol()) is StopReason.FAILED
    assert stop_reason([passed, failed], Protocol()) is StopReason.FAILED


def test_a_case_without_an_arm_that_always_passed_is_not_repeated() -> None:
    """Each failed once, so no speedup can be known; that all of none were was called the target."""
    of = factories.case(arms=(BASELINE, "inductor", "ts"))
    found = []
    for replicate, name in enumerate(("inductor", "ts")):
        passed = factories.measured_record(of, replicate=replicate)
        arms = tuple(
            msgspec.structs.replace(each, outcome=factories.failure()) if each.arm == name else each
            for each in passed.arms
        )
        found.append(msgspec.structs.replace(passed, arms=arms))
    assert stop_reason(found[:1], Protocol()) is None
    assert stop_reason(found, Protocol()) is StopReason.FAILED


def test_correctness_alone_is_repeated_as_often_as_asked() -> None:
    """Without latencies there is no interval to wait for."""
    records = [factories.record(replicate=each, experiments=("accuracy",)) for each in range(3)]
    assert stop_reason(records[:2], Protocol()) is None
    assert stop_reason(records, Protocol()) is StopReason.TARGET


def test_a_search_ends_by_itself() -> None:
    """Or at its largest size."""
    sizes = [
        factories.record(
            factories.case(arms=(BASELINE,)), replicate=each, experiments=("batch_sizes",),
            measurements=(factories.measurement(samples=(0.01,)),),
        )
        for each in range(4)
    ]  # fmt: skip
    assert stop_reason(sizes, Protocol(replicates=9, most_replicates=9)) is None
    assert stop_reason(sizes, Protocol(replicates=4, most_replicates=4)) is StopReason.REPLICATES
    end = msgspec.structs.replace(sizes[-1], outcome=factories.failure(Status.OOM))
    found = stop_reason([*sizes[:-1], end], Protocol(replicates=9, most_replicates=9))
    assert found is StopReason.FOUND


def noisy_record(replicate: int, between_sd: BetweenProcessSd, within: float) -> Record:
    """Make a replicate whose blocks differ."""
    samples = tuple(0.010 * (1 + within * sign) for sign in (-1, 1, 1, -1, 1, -1, -1, 1))
    blocks = tuple(range(len(samples)))
    return factories.record(
        replicate=replicate, between_sd=between_sd,
        measurements=(
            factories.measurement("latency", BASELINE, samples, blocks),
            factories.measurement("latency", "inductor", (0.010,) * len(samples), blocks),
        ),
    )  # fmt: skip


def test_replicates_that_agree_by_luck_are_no_reason_to_stop() -> None:
    """Each is known no better than its blocks allow."""
    calm, noisy = (
        [noisy_record(each, CALM, within) for each in range(3)] for within in (0.001, 0.05)
    )
    assert stop_reason(calm, Protocol()) is StopReason.TARGET
    assert stop_reason(noisy, Protocol()) is None


@pytest.mark.parametrize("target", [None, 0.01])
def test_how_many_replicates_it_would_take_is_said(target: float | None) -> None:
    """Of speedups that are not known well enough, if it is known how well that is."""
    calm, noisy = (
        [
            msgspec.structs.replace(noisy_record(each, CALM, within), target=target)
            for each in range(3)
        ]
        for within in (0.001, 0.05)
    )
    assert summarize_case(calm).arms[0].replicates_needed is None
    needed = summarize_case(noisy).arms[0].replicates_needed
    assert (needed is not None) == (target is not None)
    assert needed is None or needed > 10


@pytest.mark.parametrize(
    ("between_sd", "wanted"), [(CALM, StopReason.TARGET), (NOISY, None)], ids=["calm", "noisy"]
)
def test_sizes_are_known_as_well_as_was_asked(
    between_sd: BetweenProcessSd, wanted: StopReason | None
) -> None:
    """A sweep over sizes has an interval for each of them."""
    sweep = SizeSweep(sizes=("1", "2"), frames=1, guards=(), specializations=(), recompiles=())
    records = [
        factories.record(
            replicate=each, experiments=("sizes",), found=packed(sweep), between_sd=between_sd,
            measurements=tuple(
                factories.measurement(latency_at(size).name, arm, (0.010,) * 4, (0, 1, 2, 3))
                for size in (0, 1)
                for arm in (BASELINE, "inductor")
            ),
        )
        for each in range(3)
    ]  # fmt: skip
    assert stop_reason(records, Protocol()) is wanted
