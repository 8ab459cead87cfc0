from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.machine import doctor
from dynamometer.common.machine.doctor import examine as look_around  # itself, on any machine
from dynamometer.common.machine.surroundings import Reading
from dynamometer.results.values.records import Diagnosis, Level

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CALM = (Reading(0.0, 0.0, 0.0, 0.0), Reading(0.4, 0.1, 0.0, 0.1, 0))


def examine(
    root: Path,
    files: Mapping[str, str] = {},
    environment: Mapping[str, str] = {},
    readings: tuple[Reading | None, ...] = CALM,
    pieces_s: tuple[float, ...] = (0.005,),
) -> dict[str, Diagnosis]:
    """Examine a machine with these kernel files; give the findings by what they are of."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    script, pieces = iter(readings), itertools.cycle(pieces_s)
    found = look_around(
        root,
        environment,
        [root / "packages"],
        lambda: next(script),
        lambda seconds: None,
        lambda: next(pieces),
    )
    by_subject = {each.subject: each for each in found}
    assert len(by_subject) == len(found)
    return by_subject


CPU, CLOCKS = "sys/devices/system/cpu", "sys/devices/system/clocksource/clocksource0"
GOVERNOR = f"{CPU}/cpu0/cpufreq/scaling_governor"
PAGES = "sys/kernel/mm/transparent_hugepage/enabled"


@pytest.mark.parametrize(
    ("file", "text", "subject", "level"),
    [
        (GOVERNOR, "powersave", "governor", Level.UNFIT),
        (GOVERNOR, "performance", "governor", Level.FINE),
        (f"{CPU}/intel_pstate/no_turbo", "0", "turbo", Level.NOTE),
        (f"{CPU}/intel_pstate/no_turbo", "1", "turbo", Level.FINE),
        (f"{CPU}/cpufreq/boost", "1", "turbo", Level.NOTE),
        (f"{CPU}/smt/active", "1", "SMT", Level.NOTE),
        (f"{CPU}/smt/active", "0", "SMT", Level.FINE),
        (PAGES, "[always] madvise never", "huge pages", Level.NOTE),
        (PAGES, "always [madvise] never", "huge pages", Level.FINE),
        (f"{CLOCKS}/current_clocksource", "hpet", "clock", Level.NOTE),
        (f"{CLOCKS}/current_clocksource", "tsc", "clock", Level.FINE),
        ("sys/fs/cgroup/cpu.max", "10000 100000", "quota", Level.UNFIT),
    ],
)  # fmt: skip
def test_kernel_files(tmp_path: Path, file: str, text: str, subject: str, level: Level) -> None:
    """What the kernel was told is judged, and what isn't fine comes with a remedy."""
    found = examine(tmp_path, {file: text})[subject]
    assert found.level is level
    assert (found.remedy is None) == (level is Level.FINE)


def test_a_machine_that_tells_nothing_is_not_blamed(tmp_path: Path) -> None:
    """Without the files there is nothing to say of governor, turbo, pages or quota."""
    found = examine(tmp_path)
    assert not found.keys() & {"governor", "turbo", "huge pages", "clock", "quota"}
    of_machine = [found[subject] for subject in found.keys() - {"Python", "torch"}]
    assert {each.level for each in of_machine} == {Level.FINE}


def test_several_openmp_runtimes_are_noted(tmp_path: Path) -> None:
    """Those that packages bring, wherever they keep them."""
    files = {"packages/torch/lib/libgomp.so.1": "", "packages/some.libs/libiomp5.so": ""}
    files["packages/torch/lib/libbackend_with_compiler.so"] = ""  # is none
    found = examine(tmp_path, files)["OpenMP"]
    assert found.level is Level.NOTE
    assert "some.libs/libiomp5.so, torch/lib/libgomp.so.1" in found.finding


def test_an_unlimited_quota_is_none(tmp_path: Path) -> None:
    """A cgroup without a limit says `max`."""
    assert "quota" not in examine(tmp_path, {"sys/fs/cgroup/cpu.max": "max 100000"})


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("LD_PRELOAD", "allocator"),
        ("OMP_NUM_THREADS", "threads"),
        ("GOMP_SPINCOUNT", "spinning"),
        ("TORCHDYNAMO_SUPPRESS_ERRORS", "compiling"),
        ("DNNL_MAX_CPU_ISA", "compiling"),
    ],
)
def test_variables_are_named(tmp_path: Path, name: str, subject: str) -> None:
    """A variable that changes timings is shown with its value."""
    found = examine(tmp_path, environment={name: "7"})[subject]
    assert found.level is Level.NOTE
    assert f"{name}=7" in found.finding


@pytest.mark.parametrize(
    ("setting", "is_read"),
    [
        ("OMP_NUM_THREADS=garbage", False),
        ("OMP_NUM_THREADS=0", False),
        ("OMP_NUM_THREADS=", False),
        ("OMP_NUM_THREADS=4, 2", True),
        ("OMP_PROC_BIND=TRUE", True),
        ("OMP_PROC_BIND=spread,close", True),
        ("OMP_PROC_BIND=2", False),
        ("OMP_WAIT_POLICY=asleep", False),
        ("OMP_PLACES=cores", True),
    ],
)
def test_values_that_are_ignored(tmp_path: Path, setting: str, *, is_read: bool) -> None:
    """Results hold for no such setting, and it is said that nobody reads it."""
    name, _, text = setting.partition("=")
    found = examine(tmp_path, environment={name: text})
    finding = found["spinning" if "WAIT" in name else "threads"].finding
    assert finding == (setting if is_read else f"{setting} (ignored: no valid value)")


def test_what_turns_compiling_off_is_unfit(tmp_path: Path) -> None:
    """No run begins so, and the doctor says why; elsewhere it is fine."""
    found = examine(tmp_path, environment={"TORCH_COMPILE_DISABLE": "1"})["compiling"]
    assert found.level is Level.UNFIT
    assert found.finding == "TORCH_COMPILE_DISABLE=1 turns torch.compile off"
    assert examine(tmp_path, environment={"OMP_NUM_THREADS": "7"})["compiling"].level is Level.FINE


@pytest.mark.parametrize(
    ("after", "load", "steal"),
    [
        (Reading(0.4, 0.4, 0.0, 0.1), Level.UNFIT, Level.FINE),
        (Reading(0.4, 0.5, 0.4, 0.1), Level.UNFIT, Level.UNFIT),
        (Reading(0.4, 0.14, 0.04, 0.11), Level.FINE, Level.UNFIT),
    ],
    ids=["load", "both", "steal"],
)
def test_others_are_noticed(tmp_path: Path, after: Reading, load: Level, steal: Level) -> None:
    """Who takes the processors, other processes or other guests."""
    found = examine(tmp_path, readings=(CALM[0], after))
    assert (found["load"].level, found["steal"].level) == (load, steal)


@pytest.mark.parametrize(
    ("pieces_s", "level"),
    [
        ((0.005, 0.0052, 0.0051), Level.FINE),
        ((0.005,) * 59 + (0.050,), Level.FINE),
        ((0.005, 0.005, 0.005, 0.007), Level.UNFIT),
    ],
    ids=["steady", "a-hiccup", "a-neighbour"],
)
def test_a_machine_whose_speed_varies_is_unfit(
    tmp_path: Path, pieces_s: tuple[float, ...], level: Level
) -> None:
    """Whoever slows it, and whether or not the kernel knows."""
    assert examine(tmp_path, pieces_s=pieces_s)["steadiness"].level is level


def test_a_kernel_without_counters_is_noted(tmp_path: Path) -> None:
    """Disturbances will go unnoticed there, which a reader should know."""
    found = examine(tmp_path, readings=(None, None))
    assert found["load"].level is Level.NOTE


@pytest.mark.parametrize(("level", "code"), [(Level.UNFIT, 4), (Level.NOTE, 0), (Level.FINE, 0)])
def test_the_command_prints_and_judges(
    level: Level, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`dynamometer doctor` prints findings with their remedies, and 4 says the machine is unfit."""
    found = Diagnosis(subject="governor", level=level, finding="powersave", remedy="cpupower")
    monkeypatch.setattr(doctor, "examine", lambda: (found,))
    assert cli.main(None, ["doctor"]) == code
    out = capsys.readouterr().out
    assert f"{level.upper():5} governor: powersave" in out
    assert "cpupower" in out


@pytest.mark.parametrize("watched", [True, False])
def test_a_card_nobody_watches_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, watched: bool
) -> None:
    """Without NVIDIA's package for Python other processes on it, and heat, go unnoticed."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho Enabled\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(doctor, "find_spec", lambda name: object() if watched else None)
    found = examine(tmp_path)
    assert found["persistence mode"].level is Level.FINE
    assert ("GPU neighbours" in found) is not watched
