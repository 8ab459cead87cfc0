"""Inputs whose sizes change from call to call: what Dynamo makes of them, and what is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
import torch

from dynamometer.common.command_line import cli
from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.sizes import report as sizes_report
from dynamometer.common.studies.sizes.experiment import SizesExperiment
from dynamometer.dynamo import state
from dynamometer.dynamo.capture import sizes
from dynamometer.results.values.cases import BASELINE, DynamicDims, Mode
from dynamometer.results.values.records import (
    NOTHING,
    PASSED,
    Absence,
    ArmResult,
    BetweenProcessSd,
    CaptureStats,
    Outcome,
    Stage,
    Status,
    packed,
)
from dynamometer.results.values.sizes import NOT_REACHED, STATIC, SizeSweep, latency_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.results.values.records import Record

NAMES = ("four", "five", "six")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Leave nothing compiled to other tests."""
    yield
    state.forget_compiled()


def sine(x: torch.Tensor) -> torch.Tensor:
    """Be right for every size."""
    return x.sin() + x.shape[0]


def counts(x: torch.Tensor) -> torch.Tensor:
    """Need one graph for each size."""
    total = x.sum()
    for index in range(x.shape[0]):  # makes it a number
        total = total + index
    return total


def chooses(x: torch.Tensor) -> torch.Tensor:
    """Ask for no number, but for a bound."""
    return x.sin() if x.shape[0] > 3 else x.cos()


def calls() -> list[sizes.Call]:
    """Make inputs of three sizes."""
    return [((torch.ones(size, 3),), {}) for size in (4, 5, 6)]


def observe(function: object, *, dynamic: bool) -> SizeSweep:
    """Call a function at each size."""
    with state.running(Mode.INFERENCE, None, dynamic=dynamic):
        return sizes.observe(function, calls(), NAMES)  # type: ignore[arg-type]  # a function


def test_symbols_from_the_start_need_one_compilation() -> None:
    """All sizes are symbols, and the guards that are left speak of them."""
    found = observe(sine, dynamic=True)
    assert (found.sizes, found.frames, found.recompiles) == (NAMES, 1, ())
    assert found.specializations == ()
    assert all("x.size()" in guard or "x.stride()" in guard for guard in found.guards)


def test_a_bound_on_a_size_is_a_guard() -> None:
    """All three sizes are beyond it."""
    found = observe(chooses, dynamic=True)
    assert found.frames == 1
    assert "4 <= x.size()[0]" in found.guards


def test_untold_a_size_is_a_symbol_once_it_has_changed() -> None:
    """The second call compiles again, the third does not."""
    found = observe(sine, dynamic=False)
    assert (found.frames, len(found.recompiles)) == (2, 1)


def test_a_size_that_is_made_a_number_names_the_line() -> None:
    """Each size is compiled by itself."""
    found = observe(counts, dynamic=True)
    assert found.frames == 3
    assert len(found.recompiles) == 2
    assert {each.number for each in found.specializations} == {4, 5, 6}
    for each in found.specializations:
        assert each.size == "x.size()[0]"
        assert each.function == "counts"
        assert "range(x.shape[0])" in (each.code or "")


def test_marked_sizes_are_those_that_differ() -> None:
    """The others are numbers."""
    given = calls()
    sizes.mark_varying(given)
    with state.running(Mode.INFERENCE, None):
        found = sizes.observe(sine, given, NAMES)
    assert (found.frames, found.recompiles) == (1, ())


def sweep_records(replicates: int = 3) -> list[Record]:
    """Make a sweep of two sizes: 2x over eager at both, and 0.8x over what is for it alone."""
    case = msgspec.structs.replace(
        factories.case("resnet18", (BASELINE, "inductor")),
        dynamic=True,
        dynamic_dims=DynamicDims.NONE,
    )
    found = SizeSweep(
        sizes=("batch size 8", "batch size 7"), frames=2, recompiles=(), guards=(),
        specializations=(),
    )  # fmt: skip
    latencies = {BASELINE: 0.010, "inductor": 0.005, STATIC: 0.004}
    measurements = tuple(
        factories.measurement(
            latency_at(index).name, arm, (seconds,) * 8, tuple(range(8 * index, 8 * index + 8))
        )
        for index in range(2)
        for arm, seconds in latencies.items()
    )
    return [
        factories.record(
            case,
            replicate=each,
            measurements=measurements,
            found=packed(found),
            experiments=("sizes",),
        )
        for each in range(replicates)
    ]


def test_each_size_has_its_own_ratios() -> None:
    """Against eager and against what was compiled for it alone."""
    found = sizes_report.summarize_sweep(sweep_records())
    assert [each.size for each in found.sizes] == ["batch size 8", "batch size 7"]
    for each in found.sizes:
        assert each.over_eager.value == pytest.approx(2.0)
        assert each.over_static is not None
        assert each.over_static.value == pytest.approx(0.8)
        assert (each.eager_s, each.compiled_s, each.static_s) == (0.010, 0.005, 0.004)
    assert len(sizes_report.rows(found).by_column()) == 2
    assert "2.000x" in sizes_report.lines(found)[1]


def test_both_ratios_are_judged_by_what_is_known_of_the_arm() -> None:
    """What was compiled for one size is no arm of which anything could be known."""
    known = {"inductor": BetweenProcessSd(sd_log=0.0001, df=20.0)}
    records = [msgspec.structs.replace(each, between_sds=known) for each in sweep_records(3)]
    for each in sizes_report.summarize_sweep(records).sizes:
        assert each.over_static is not None
        for ratio in (each.over_eager, each.over_static):
            assert ratio.high / ratio.low < 1.01  # of which nothing is known: 1.03


def test_a_size_something_else_disturbed_is_marked() -> None:
    """It keeps its figures; where calm blocks are left, these are of them alone."""
    slow = [0.020] * 3 + [0.010] * 5
    records = [
        msgspec.structs.replace(
            record,
            disturbed_blocks=(0, 1, 2, 8, 9, 10, 11, 12),
            measurements=tuple(
                msgspec.structs.replace(each, samples=tuple(slow))
                if each.arm == BASELINE and each.metric == latency_at(0).name
                else each
                for each in record.measurements
            ),
        )
        for record in sweep_records()
    ]
    found = sizes_report.summarize_sweep(records)
    assert [each.disturbed for each in found.sizes] == [False, True]
    assert [each.over_eager.value for each in found.sizes] == [pytest.approx(2.0)] * 2
    assert [row["disturbed"] for row in sizes_report.rows(found).by_column()] == [False, True]
    first, calm, busy = sizes_report.lines(found)
    assert first.endswith("DISTURBED: something else kept the machine busy")
    assert busy.endswith(" DISTURBED")
    assert "DISTURBED" not in calm


def test_a_size_without_a_static_arm_says_why() -> None:
    """And keeps its speedup; graphs in eager are counted."""
    capture = CaptureStats(frames=1, frames_ok=1, graphs=3, ops=4, fallbacks=2)
    arms = (ArmResult(arm="inductor", outcome=PASSED, capture=capture),)
    kept = lambda each: (each.arm, each.metric) != (STATIC, latency_at(0).name)  # noqa: E731  short
    records = [
        msgspec.structs.replace(
            each, arms=arms, measurements=tuple(filter(kept, each.measurements)),
            absent=(Absence(metric=latency_at(0).name, arm=STATIC, reason="no eights"),),
        )
        for each in sweep_records()
    ]  # fmt: skip
    found = sizes_report.summarize_sweep(records)
    assert [each.over_static is None for each in found.sizes] == [True, False]
    assert [row["fallbacks"] for row in sizes_report.rows(found).by_column()] == [2, 2]
    text = "\n".join(sizes_report.lines(found))
    assert "2 graphs in eager" in text
    assert "not timed: no eights" in text


def test_what_was_observed_of_an_arm_that_failed_is_kept() -> None:
    """Its line and its row say how often it was compiled, though nothing was timed."""
    (record,) = sweep_records(1)
    outcome = factories.failure(factories.Status.FAIL_ACCURACY, factories.Stage.COMPARE, "off")
    found = sizes_report.summarize_sweep(
        [msgspec.structs.replace(record, measurements=(), outcome=outcome)]
    )
    (row,) = sizes_report.rows(found).by_column()
    assert (row["status"], row["recompiles"], row["speedup"]) == ("fail_accuracy", 0, None)
    (line,) = sizes_report.lines(found)
    assert "2 compilations, 0 recompiles, 0 symbolic guards" in line
    assert line.endswith("FAIL_ACCURACY (compare) off")


def test_a_sweep_that_failed_is_one_row() -> None:
    """With its reason."""
    (record,) = sweep_records(1)
    outcome = factories.failure(factories.Status.FAIL, factories.Stage.COMPILE, "no")
    failed = msgspec.structs.replace(record, found=NOTHING, measurements=(), outcome=outcome)
    found = sizes_report.summarize_sweep([failed])
    (row,) = sizes_report.rows(found).by_column()
    assert (row["status"], row["reason"], row["speedup"]) == ("fail", "no", None)
    assert "FAIL (compile) no" in sizes_report.lines(found)[0]


def test_a_sweep_takes_one_backend(capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is refused before it runs."""
    words = ["--only", "resnet18", "--sweep-sizes", "--backend", "eager", "--backend", "inductor"]
    assert cli.main("torchbench", words) == 2
    assert "--sweep-sizes times one backend; choose one of eager, inductor" in (
        capsys.readouterr().err
    )


def test_a_sweep_that_failed_once_has_no_speedup() -> None:
    """Whatever was measured in that replicate and in the others."""
    first, second = sweep_records(2)
    wrong = factories.failure(factories.Status.FAIL_ACCURACY, factories.Stage.COMPARE, "error 0.5")
    found = sizes_report.summarize_sweep([first, msgspec.structs.replace(second, outcome=wrong)])
    (row,) = sizes_report.rows(found).by_column()
    assert (row["status"], row["speedup"], row["abs_latency"]) == ("fail_accuracy", None, None)
    assert sizes_report.lines(found)[0].endswith("FAIL_ACCURACY (compare) error 0.5")


def test_sizes_of_one_name_in_two_frames_are_two() -> None:
    """Names of inputs are those of a frame; the line that is to be mended first was lost."""

    def twice(x: torch.Tensor) -> torch.Tensor:
        y = x * hash(x.shape[0])
        torch._dynamo.graph_break()
        return y + x.sin() * hash(x.shape[0])

    calls = [((torch.randn(size),), {}) for size in (8, 7, 6)]
    found = sizes.observe(twice, calls, ["8", "7", "6"])
    seen = found.specializations
    codes = [each.code for each in seen if (each.size, each.number) == ("x.size()[0]", 7)]
    assert codes == ["y = x * hash(x.shape[0])", "return y + x.sin() * hash(x.shape[0])"]


@pytest.mark.parametrize(
    ("stage", "is_timed", "passes"),
    [(Stage.COMPILE, True, True), (Stage.MEASURE, True, False), (Stage.COMPILE, False, False)],
)
def test_a_process_that_ends_at_one_size(stage: Stage, *, is_timed: bool, passes: bool) -> None:
    """What was compiled for that size alone is not the arm; being timed it may have been."""
    outcome = Outcome(status=Status.CRASH, stage=stage, reason="killed by SIGSEGV")
    times = (factories.measurement("latency", "inductor", [0.01]),) if is_timed else ()
    absent = (Absence(metric="latency_at_1", arm=STATIC, reason=NOT_REACHED),)
    kept = Findings(outcome=PASSED, measurements=times, absent=absent)
    found = SizesExperiment().ended(kept, outcome)
    assert found.outcome == (PASSED if passes else outcome)
    assert [each.reason for each in found.absent] == ["killed by SIGSEGV"]
    assert found.measurements == times
