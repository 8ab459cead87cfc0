"""What an arm needs and what it leaves behind are told apart, in real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import pytest
from conftest import hostile_manifest, run_manifest

from dynamometer.common.studies.speedup.memory import Memory
from dynamometer.results.statistics.memory import COMPILERS_BYTES
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from dynamometer.results.statistics.memory import ArmMemory
    from dynamometer.results.statistics.summary import CaseSummary

CALL_MIB = 48.0
"""What a call of the model takes."""
ARMS = ("eager", *(f"hoarding_backend:{name}" for name in (
    "keeps_16_mib", "keeps_128_mib", "takes_32_mib_more",
)))  # fmt: skip


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> CaseSummary:
    """Measure a model that is small beside what its calls take, in four arms."""
    manifest = hostile_manifest(["allocates"], ARMS)
    directory = tmp_path_factory.mktemp("memory") / "run"
    return summarize_case([run_manifest(manifest, directory)["allocates"]])


def memory(measured: CaseSummary, name: str) -> ArmMemory:
    """Return an arm's memory in MiB."""
    (arm,) = [arm for arm in measured.arms if arm.name.endswith(name)]
    return arm.memory


def calls_mib(found: ArmMemory) -> float:
    """Return what calls take."""
    assert found.calls_bytes is not None
    return found.calls_bytes / factories.MIB


def residue_mib(found: ArmMemory) -> float:
    """Return what was left behind."""
    assert found.residue_bytes is not None
    return found.residue_bytes / factories.MIB


def test_calls_take_what_the_model_allocates(measured: CaseSummary) -> None:
    """In eager and in every arm, whatever compiling left behind; one takes more on top."""
    for found in (measured.baseline.memory, *(memory(measured, name) for name in ARMS[:3])):
        assert calls_mib(found) == pytest.approx(CALL_MIB, abs=3)
    assert calls_mib(memory(measured, "32_mib_more")) == pytest.approx(CALL_MIB + 32, abs=3)


def test_what_a_backend_keeps_is_left_behind(measured: CaseSummary) -> None:
    """Beyond what Dynamo itself leaves."""
    dynamos_mib = residue_mib(memory(measured, "eager"))
    for name, kept_mib in (("keeps_16_mib", 16), ("keeps_128_mib", 128), ("32_mib_more", 0)):
        found_mib = residue_mib(memory(measured, name))
        assert found_mib - dynamos_mib == pytest.approx(kept_mib, abs=3)


def test_the_ratio_is_of_what_is_needed(measured: CaseSummary) -> None:
    """The same kernels have 1; more memory in calls less than that, and so has a hoard."""
    ratios = {arm.name.split(":")[-1]: measured.compression(arm) for arm in measured.arms}
    for name in ("eager", "keeps_16_mib"):
        assert ratios[name].ratio == pytest.approx(1.0, abs=0.05)
    needed = measured.baseline.memory.needed_bytes
    assert needed is not None
    expected = needed / (needed + 32 * factories.MIB)
    assert ratios["takes_32_mib_more"].ratio == pytest.approx(expected, abs=0.05)
    hoard = ratios["keeps_128_mib"].ratio
    assert hoard is not None
    kept = needed / hoard - needed  # with what compilers leave, which is 40 MiB at most
    assert 128 * factories.MIB - COMPILERS_BYTES < kept < 128 * factories.MIB


def test_memory_is_measured_twice() -> None:
    """In the first replicates, each arm in a process of its own that gives freed memory back."""
    plan = factories.plan()
    (case,) = plan.cases
    wanted = [Memory().processes(case, plan, replicate, ()) for replicate in range(4)]
    assert [len(each) for each in wanted] == [len(case.arms), len(case.arms), 0, 0]
    assert {process.allocator for each in wanted for process in each} == {Allocator.STOCK}
