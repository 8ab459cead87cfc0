from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dynamometer.common.machine.openmp import note_on_runtimes
from dynamometer.common.machine.surroundings import Machine, Reading, compare, read_counters
from dynamometer.results.statistics.disturbance import disturbs as is_disturbance
from dynamometer.results.values.records import Load


def reading(at_s: float, busy_s: float, own_s: float, **fields: Any) -> Reading:
    """Make a reading of a machine from which nothing is stolen."""
    return Reading(at_s=at_s, busy_s=busy_s, stolen_s=0.0, own_s=own_s, **fields)


@pytest.mark.parametrize(
    ("after", "disturbs"),
    [
        (reading(1.0, 2.0, 2.0), False),
        (reading(1.0, 2.1, 2.0), False),
        (reading(1.0, 2.2, 2.0), True),
        (reading(10.0, 20.9, 20.0), False),
        (reading(0.1, 0.23, 0.2), False),
        (reading(0.1, 0.33, 0.2, processors=16), True),
        (reading(0.1, 0.33, 0.2, processors=64), False),
        (reading(1.0, 2.0, 2.0, throttles=1), True),
        (reading(1.0, 2.0, 2.0, clock_hz=2.9e9), False),
        (reading(1.0, 2.0, 2.0, clock_hz=2.5e9), True),
    ],
    ids=[
        "all-ours",
        "little",
        "a-fifth",
        "little-for-long",
        "ticks",
        "cores",
        "ticks-of-many",
        "hot",
        "clock",
        "slower",
    ],
)
def test_what_counts_as_a_disturbance(after: Reading, *, disturbs: bool) -> None:
    """A tenth of a processor beyond what the counters can't tell, heat, or a falling clock."""
    load = compare(reading(0.0, 0.0, 0.0, clock_hz=3e9), after)
    assert is_disturbance(load) is disturbs


def test_a_machine_compares_the_ends_of_a_block() -> None:
    """Only what happens between them counts."""
    script = iter([reading(0, 0, 0), reading(1, 2, 1), reading(9, 9, 2), reading(10, 10.05, 3)])
    machine = Machine(lambda: next(script), lambda: False)
    machine.begin()
    assert machine.load() == Load(1, 1, resolution_s=0.02)
    machine.begin()
    assert not is_disturbance(machine.load())


@pytest.mark.parametrize("shared", [True, False])
def test_without_counters_the_accelerator_tells(*, shared: bool) -> None:
    """A machine that shows nothing is taken for calm."""
    machine = Machine(lambda: None, lambda: shared)
    machine.begin()
    assert is_disturbance(machine.load()) is shared


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc/stat")
def test_this_process_is_no_disturbance_to_itself() -> None:
    """What it uses itself is told from what others do."""
    before = read_counters()
    until_s = time.process_time() + 0.1
    while time.process_time() < until_s:
        pass
    after = read_counters()
    assert before is not None
    assert after is not None
    assert after.own_s - before.own_s > 0.09
    assert compare(before, after).background_s < after.busy_s - before.busy_s - 0.09


def test_processors_that_are_numbered_otherwise_tell_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may show others' processors, or fewer than it gives."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 8 0 0\ncpu4096 1 2 3 4 5 6 7 8 0 0\n", encoding="ascii")
    monkeypatch.setattr("dynamometer.common.machine.surroundings._STAT", stat)
    assert read_counters() is None


def test_several_openmp_runtimes_are_noted() -> None:
    """Files that are mapped more than once count once."""
    line = "7f00 r-xp 0 08:01 1  /x/torch/lib/libgomp.so.1"
    one = f"{line}\n{line}"
    other = "7f02 r-xp 0 08:01 2  /y/mkl/libiomp5.so"
    third = "7f03 r-xp 0 08:01 3  /z/scikit_learn.libs/libgomp-a34b.so.1.0.0"
    assert note_on_runtimes(one) is None
    assert note_on_runtimes("") is None
    note = note_on_runtimes(f"{one}\n{other}\n{third}")
    assert note is not None
    assert note.startswith("3 OpenMP runtimes")
    assert note.endswith("libgomp-a34b.so.1.0.0, libgomp.so.1, libiomp5.so")


def test_the_map_of_this_process_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel shows one."""
    maps = tmp_path / "maps"
    monkeypatch.setattr("dynamometer.common.machine.openmp._MAPS", maps)
    assert note_on_runtimes() is None
    maps.write_text("r-xp /x/libgomp.so.1\nr-xp /y/libiomp5.so\n", encoding="utf-8")
    assert (note_on_runtimes() or "").endswith("libgomp.so.1, libiomp5.so")
