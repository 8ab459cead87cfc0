"""How a worker goes about its arms, as far as that needs no model."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import factories
import pytest
from fakes import FakeClock

from dynamometer.common.machine.temporary import TEMPORARY
from dynamometer.common.measuring import timed_arms
from dynamometer.common.measuring.arms import WarmArm
from dynamometer.common.measuring.measurements import compile_times
from dynamometer.common.measuring.threads import ArmThreads
from dynamometer.common.measuring.timed_arms import TimedArms, pad_heap, time_in_blocks
from dynamometer.common.measuring.warm_up import WarmUp
from dynamometer.common.studies.experiment import StageClock
from dynamometer.common.studies.speedup.absences import absences
from dynamometer.dynamo.capture.phases import Phases
from dynamometer.dynamo.clock import Clock
from dynamometer.results.values.cases import BASELINE, Protocol
from dynamometer.results.values.metrics import COMPILE_TIME, LATENCY
from dynamometer.results.values.records import PASSED, ArmResult

if TYPE_CHECKING:
    from pathlib import Path

NO_SUCH_THREADS = frozenset({2**30}), frozenset({2**30 + 1})


@pytest.mark.parametrize("processors", [2, 3])
def test_arms_whose_threads_do_not_fit_have_longer_visits(
    processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rests before; as many processors as they need together change that."""
    clock = FakeClock()
    monkeypatch.setattr(Clock, "now", staticmethod(clock.now))
    device = SimpleNamespace(synchronize=lambda: None, is_disturbed=lambda: False)
    context = cast("Any", SimpleNamespace(device=device))
    calls = {arm: clock.step(lambda _: 0.001) for arm in "ab"}
    blocks = time_in_blocks(
        context,
        calls,
        dict.fromkeys(calls, 0.001),
        ArmThreads(dict(zip(calls, NO_SUCH_THREADS, strict=True)), processors),
        Protocol(min_blocks=2, max_blocks=2),
        random.Random(0),
    )
    assert blocks.waited is (processors == 2)
    for burst in blocks.bursts:
        assert burst.calls == pytest.approx(30 if blocks.waited else 8, abs=1)
        assert burst.samples_s == pytest.approx([0.001] * len(burst.samples_s))


def test_no_two_replicates_have_the_same_heap() -> None:
    """What is put before an arm varies in number and in size."""
    padding = [pad_heap(random.Random(seed)) for seed in range(20)]
    assert len({len(each) for each in padding}) > 10
    sizes = [len(block) for each in padding for block in each]
    assert min(sizes) < 4_096
    assert max(sizes) > 32_768


COMPILED = {
    "eager": (0, []),
    "inductor": (0, ["fxgraph/a", "ab/kernel.so"]),
    "inductor:max-autotune": (0, ["fxgraph/b"]),
    "again": (1, []),
    "openvino": (0, [f"{TEMPORARY}/b"]),
}
"""Of each arm how many graphs it finds in the caches, and what it adds to them."""


@pytest.mark.parametrize(
    ("order", "cold"),
    [
        (["inductor", "inductor:max-autotune", "eager", "openvino"],
         {"inductor", "eager", "openvino"}),
        (["openvino", "eager", "inductor:max-autotune", "inductor"],
         {"inductor:max-autotune", "eager", "openvino"}),
        (["again", "inductor"], {"again", "inductor"}),
        (["inductor", "again"], {"inductor"}),
    ],
)  # fmt: skip
def test_of_arms_that_share_caches_one_is_cold(
    order: list[str], cold: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever is built first: it may be that kernels are taken though no graph is found."""

    def build(_: object, loaded: object, name: str, reference: object) -> WarmArm:
        del loaded, reference
        found, added = COMPILED[name]
        for each in added:
            path = tmp_path / each
            path.parent.mkdir(exist_ok=True)
            path.touch()
        compiled = SimpleNamespace(
            name=name, cached_graphs=found, preparing_s=1.0, first_steps_s=()
        )
        warm_up = SimpleNamespace(latency_s=0.1, excess_s=0.0, compiled_always=False)
        return WarmArm(cast("Any", compiled), cast("Any", warm_up), frozenset(), 0, Phases({}))

    monkeypatch.setattr(timed_arms, "_build", build)
    monkeypatch.setattr(
        timed_arms, "arm_result", lambda name, _: ArmResult(arm=name, outcome=PASSED)
    )
    job = SimpleNamespace(
        seed=0, replicate=0, case=factories.case(device="cuda"), cache_dir=str(tmp_path)
    )
    stages = StageClock(lambda _: None)
    timed = TimedArms(cast("Any", SimpleNamespace(job=job, stages=stages)))
    constant = SimpleNamespace(constancy=SimpleNamespace(blame=lambda _, **__: None))
    for each in order:
        timed.build(each, cast("Any", None), cast("Any", constant))
    measured = [*timed.compile_times(), *(LATENCY.measured(each, [0.1]) for each in order)]
    assert {each.arm for each in measured if each.metric == COMPILE_TIME.name} == cold
    absent = absences([*timed.results.values(), ArmResult(arm=BASELINE, outcome=PASSED)], measured)
    missing = {each.arm: each.reason for each in absent if each.arm != BASELINE}
    assert missing.keys() == {*order} - cold
    assert all("--cold" in each for each in missing.values())


def test_compile_time_of_who_never_ceased_to_compile_is_absent_with_a_reason() -> None:
    """What its calls take otherwise is not known."""
    compiled = SimpleNamespace(name="inductor", preparing_s=1.0, first_steps_s=(5.0, 5.0))
    warm_up = WarmUp(total_s=60.0, calls=12, latency_s=5.0, steady=False, compiled_always=True)
    spent = Phases({"entire_frame_compile": 55.0})
    arm = WarmArm(cast("Any", compiled), warm_up, frozenset(), 12, spent)
    measured = [
        *compile_times(COMPILE_TIME, {"inductor": arm}), LATENCY.measured("inductor", [5.0])
    ]  # fmt: skip
    (absent,) = absences([ArmResult(arm="inductor", outcome=PASSED)], measured, {"inductor"})
    assert absent.metric == COMPILE_TIME.name
    assert absent.reason == "something was compiled until the end of its warm-up"


def test_parts_of_compile_time_are_of_the_same_calls_as_the_whole() -> None:
    """Of the calls that warm the arm up, too."""
    compiled = SimpleNamespace(name="inductor", preparing_s=0.0, first_steps_s=(3.0, 1.0))
    warm_up = WarmUp(total_s=5.0, calls=10, latency_s=0.0, steady=True)
    first, further = (
        Phases({"entire_frame_compile": frame_s, "backend_compile": backend_s})
        for frame_s, backend_s in [(4.0, 1.0), (5.0, 3.0)]
    )
    arm = WarmArm(cast("Any", compiled), warm_up, frozenset(), 10, first.plus(further))
    whole, *parts = (each.samples for each in compile_times(COMPILE_TIME, {"inductor": arm}))
    assert whole == (9.0,)
    assert sorted(parts) == [(4.0,), (5.0,)]
