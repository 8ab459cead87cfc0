"""Which cases the tables of a comparison are of, and what tells cases of one model apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.dashboard_files import read_files
from dynamometer.results.comparison.entries import of_arms
from dynamometer.results.comparison.gates import parse
from dynamometer.results.comparison.sides import Side
from dynamometer.results.values.cases import NO_OVERRIDES, Overrides
from dynamometer.results.values.comparison import Change

if TYPE_CHECKING:
    from pathlib import Path

TOLD = Overrides(disable=("module:function",))


def side(
    name: str, seconds: dict[Overrides, float], models: tuple[str, ...] = ("m0", "m1")
) -> Side:
    """Make a side whose models take so long when compiled, by what Dynamo is told of them."""
    entries = [
        entry
        for model in models
        for overrides, compiled in seconds.items()
        for entry in of_arms(
            [
                factories.measured_record(
                    factories.case(model, overrides=overrides),
                    replicate=replicate,
                    seconds={"baseline": 0.010, "inductor": compiled},
                )
                for replicate in range(3)
            ]
        )
    ]
    return Side(name, tuple(entries))


def test_cases_with_overrides_are_in_lists_alone() -> None:
    """The table is of the usual cases, as a run's own figures are, and so are gates on it."""
    sides = [
        side(name, {NO_OVERRIDES: 0.005, TOLD: told})
        for name, told in (("before", 0.020), ("after", 0.010))
    ]
    found = compare(*sides, parse("speedup<1.9"))
    (column,) = found.tables[0].columns
    assert [(each.passed, each.counted) for each in column.passrate] == [(2, 2), (2, 2)]
    assert (column.common_speedup.n_before, column.common_speedup.n_after) == (2, 2)
    assert column.speedup.after == pytest.approx(2.0)
    assert found.gates[0].hits == ()
    assert {each.model for each in found.of(Change.FASTER)} == {"m0 +overrides", "m1 +overrides"}


def test_a_side_whose_cases_all_have_overrides_counts_them() -> None:
    """Each side has the figures of its own run, also where the other counts other cases."""
    told = side("told", {TOLD: 0.020})
    (column,) = compare(told, told).tables[0].columns
    assert column.common_speedup.n_after == 2
    both = side("both", {NO_OVERRIDES: 0.005, TOLD: 0.020})
    (column,) = compare(both, told).tables[0].columns
    assert column.speedup.before == pytest.approx(2.0)
    assert column.speedup.after == pytest.approx(0.5)
    assert column.common_passrate[0].counted == 0


def files_of_two_devices(folder: Path, speedup_on_cuda: float) -> Side:
    """Read what PyTorch's harness would write of two devices."""
    folder.mkdir()
    for device, speedup in (("cpu", 1.0), ("cuda", speedup_on_cuda)):
        path = folder / f"inductor_torchbench_float32_inference_{device}_performance.csv"
        path.write_text(f"dev,name,batch_size,speedup\n{device},m,4,{speedup}\n{device},n,4,2.0\n")
    return read_files(folder)


def test_devices_have_tables_of_their_own(tmp_path: Path) -> None:
    """No mean is over two of them; of one device none is named."""
    before, after = (
        files_of_two_devices(tmp_path / name, speedup) for name, speedup in (("a", 4.0), ("b", 1.0))
    )
    tables = compare(before, after).tables
    assert [each.title for each in tables] == [
        "inference, inductor, cpu",
        "inference, inductor, cuda",
    ]
    assert [each.columns[0].speedup.n_after for each in tables] == [2, 2]


def test_lists_tell_cases_of_one_model_apart(tmp_path: Path) -> None:
    """By that in which they differ, on either side."""
    before, after = (
        files_of_two_devices(tmp_path / name, speedup) for name, speedup in (("a", 4.0), ("b", 1.0))
    )
    (finding,) = compare(before, after).of(Change.SLOWER)
    assert finding.subject == "torchbench/m inference inductor (device cuda)"
    alone = Side("b", tuple(each for each in after.entries if each.identity["device"] == "cuda"))
    found = compare(before, alone)
    assert [each.subject for each in found.of(Change.SLOWER)] == [finding.subject]
    assert {each.apart for each in found.of(Change.GONE)} == {"device cpu"}
