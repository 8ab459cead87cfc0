"""What on this machine makes figures worse, and what its owner can do; nothing is changed.

Everything is read from Linux's files below `root`, environment variables, and the folders
packages are installed in.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.machine import cgroups
from dynamometer.common.machine.openmp import is_runtime
from dynamometer.common.machine.surroundings import compare, read_counters
from dynamometer.common.machine.variables import recorded, why_not_compiled
from dynamometer.common.machine.versions import judge_versions
from dynamometer.results.statistics.disturbance import BACKGROUND_CPUS
from dynamometer.results.values.records import Diagnosis, Level

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from dynamometer.common.machine.surroundings import Reading

_WATCHED_S = 0.4
"""Long enough for counters that go by 10 ms."""

_PIECES = 60
"""Of work that is always the same, about 5 ms each."""

_LARGEST_VARIATION = 0.10
_STEAL_SHARE = 0.01
_FEWEST_STOLEN_S = 0.03
_GOOD_CLOCKS = {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"}
_ALLOCATOR_VARIABLES = ("GLIBC_TUNABLES", "MALLOC_CONF", "MALLOC_TRIM_THRESHOLD_", "LD_PRELOAD")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
)  # fmt: skip
_SPIN_VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")
_COUNT, _PLACE = r"\s*\+?0*[1-9]\d*\s*", r"\s*(primary|master|close|spread)\s*"
_FORMS = {
    "OMP_NUM_THREADS": f"{_COUNT}(,{_COUNT})*",
    "OMP_PROC_BIND": rf"\s*(true|false)\s*|{_PLACE}(,{_PLACE})*",
    "OMP_WAIT_POLICY": r"\s*(active|passive)\s*",
}
"""What is read of a variable, in any case; anything else is ignored (OpenMP 5.2, 21)."""


def examine(
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    folders: Iterable[Path] | None = None,
    read: Callable[[], Reading | None] = read_counters,
    pause: Callable[[float], None] = time.sleep,
    piece_s: Callable[[], float] | None = None,
) -> tuple[Diagnosis, ...]:
    """Look at everything, in a bit more than the time it takes to see who else is busy."""
    return (
        *_settings(root),
        *_processors(root),
        *_variables(environment),
        _openmp(_library_folders() if folders is None else folders),
        *judge_versions(folders),
        *_others(read, pause),
        _steadiness(piece_s or _work),
        *_graphics_cards(),
    )


def _settings(root: Path) -> list[Diagnosis]:
    """Judge what Linux was told about frequencies, pages and clocks."""
    found = []
    governor = _read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor is not None:
        found.append(_governor(governor))
    no_turbo = _read(root / "sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = _read(root / "sys/devices/system/cpu/cpufreq/boost")
    if no_turbo == "0" or boost == "1":
        found.append(_note(
            "turbo", "on: the clock depends on temperature and on how many cores are busy",
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 >"
            " /sys/devices/system/cpu/cpufreq/boost",
        ))  # fmt: skip
    elif no_turbo is not None or boost is not None:
        found.append(_fine("turbo", "off"))
    pages = _chosen(_read(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    if pages == "always":
        found.append(_note(
            "huge pages", "always: Linux merges pages in the background",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ))  # fmt: skip
    elif pages:
        found.append(_fine("huge pages", pages))
    clock = _read(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    if clock in _GOOD_CLOCKS:
        found.append(_fine("clock", clock or ""))
    elif clock:
        found.append(_note("clock", f"{clock}: reading it takes long", "boot with clocksource=tsc"))
    return found


def _governor(name: str) -> Diagnosis:
    if name == "performance":
        return _fine("governor", name)
    return Diagnosis(
        subject="governor",
        level=Level.UNFIT,
        finding=f"{name}: the clock follows the load, and changes while arms are timed",
        remedy="cpupower frequency-set -g performance",
    )


def _processors(root: Path) -> list[Diagnosis]:
    """Judge which processors there are, and how much of them may be used."""
    found = []
    if _read(root / "sys/devices/system/cpu/smt/active") == "1":
        found.append(_note(
            "SMT", "on: two threads share a core, and which two is up to the scheduler",
            "echo off > /sys/devices/system/cpu/smt/control, or bind with taskset",
        ))  # fmt: skip
    else:
        found.append(_fine("SMT", "off, or hidden by the hypervisor"))
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    if usable < present:
        found.append(_fine("binding", f"this process may use {usable} of {present} processors"))
    share = cgroups.processors(root)
    if share is not None and share < usable:
        found.append(Diagnosis(
            subject="quota", level=Level.UNFIT,
            finding=f"a cgroup allows {share:.2g} of {usable} processors, and stops all threads"
            " when that is used up",
            remedy="raise cpu.max, or bind to as many processors (docker: --cpuset-cpus, not"
            " --cpus)",
        ))  # fmt: skip
    return found


def _variables(environment: Mapping[str, str]) -> list[Diagnosis]:
    """Judge environment variables that allocators, thread pools and compilers read."""
    texts = {
        "allocator": (
            _ALLOCATOR_VARIABLES,
            "but for LD_PRELOAD, workers follow --allocator",
        ),
        "threads": (_THREAD_VARIABLES, "results hold for these settings only; -t sets threads"),
        "spinning": (_SPIN_VARIABLES, "it changes latencies up to twofold; unset it"),
    }
    found = []
    for subject, (names, remedy) in texts.items():
        set_ = {name: environment[name] for name in names if name in environment}
        there = [f"{name}={text}{_if_ignored(name, text)}" for name, text in set_.items()]
        found.append(
            _note(subject, ", ".join(there), remedy)
            if there else _fine(subject, "no environment variable touches it")
        )  # fmt: skip
    judged = {name for names, _ in texts.values() for name in names}
    return [*found, _compiling(environment, judged)]


def _if_ignored(name: str, text: str) -> str:
    form = _FORMS.get(name)
    is_read = form is None or re.fullmatch(form, text, re.IGNORECASE)
    return "" if is_read else " (ignored: no valid value)"


def _compiling(environment: Mapping[str, str], judged: Collection[str]) -> Diagnosis:
    """Judge those that compilers and kernels read, which are all others that records hold."""
    subject = "compiling"
    off = why_not_compiled(environment)
    if off:
        remedy = "unset it: no run begins so"
        return Diagnosis(subject=subject, level=Level.UNFIT, finding="; ".join(off), remedy=remedy)
    there = [f"{name}={text}" for name, text in recorded(environment).items() if name not in judged]
    if there:
        return _note(subject, ", ".join(there), "results hold for these settings only")
    return _fine(subject, "no environment variable touches it")


def _others(read: Callable[[], Reading | None], pause: Callable[[float], None]) -> list[Diagnosis]:
    """Watch for a moment what others take of the processors."""
    before = read()
    pause(_WATCHED_S)
    after = read()
    if before is None or after is None:
        return [_note("load", "Linux has no counters, so disturbances go unnoticed", "")]
    wall_s = after.at_s - before.at_s
    background = compare(before, after).background_s / wall_s
    stolen = (after.stolen_s - before.stolen_s) / wall_s
    found = []
    if background > BACKGROUND_CPUS:
        found.append(Diagnosis(
            subject="load", level=Level.UNFIT,
            finding=f"other processes use {background:.1f} processors",
            remedy="stop them (top shows which), or wait",
        ))  # fmt: skip
    else:
        found.append(_fine("load", "nobody else is busy"))
    least = max(_STEAL_SHARE, _FEWEST_STOLEN_S / wall_s)
    if stolen > least:
        found.append(Diagnosis(
            subject="steal", level=Level.UNFIT,
            finding=f"the hypervisor gives {stolen:.1%} of a processor to other guests",
            remedy="use a dedicated host, or another hour",
        ))  # fmt: skip
    else:
        found.append(
            _fine("steal", f"less than {least:.1%} of a processor, which is what shows here")
        )
    return found


def _steadiness(piece_s: Callable[[], float]) -> Diagnosis:
    """See whether the same work takes the same time, which no counter tells a guest.

    Other guests on the same cores and a varying clock slow it without a trace in Linux's
    counters. The slowest twentieth and the fastest are left out.
    """
    found = statistics.quantiles((piece_s() for _ in range(_PIECES)), n=20)
    variation = found[-1] / found[0] - 1
    text = f"a fixed piece of work takes up to {variation:.0%} longer than at its best"
    if variation <= _LARGEST_VARIATION:
        return _fine("steadiness", text)
    return Diagnosis(
        subject="steadiness", level=Level.UNFIT, finding=text,
        remedy="use another hour or a host of your own: the clock or other guests vary",
    )  # fmt: skip


def _work() -> float:
    started = time.perf_counter()
    sum(index * index for index in range(80_000))
    return time.perf_counter() - started


def _graphics_cards() -> list[Diagnosis]:
    """Ask nvidia-smi, where there is one, for what slows the first card or makes it vary."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, "--query-gpu=persistence_mode", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)  # noqa: S603  the driver's own program
    except (OSError, subprocess.SubprocessError):
        return []
    match done.stdout.partition("\n")[0].strip():
        case "Enabled":
            persistence = _fine("persistence mode", "on")
        case "Disabled":
            finding = "off: the driver starts anew with each process"
            persistence = _note("persistence mode", finding, "nvidia-smi -pm 1")
        case _:
            return []
    clock = "the GPU's clock depends on heat and power unless it is locked"
    found = [persistence, _note("GPU clock", clock, "nvidia-smi -lgc MHZ, with one it can hold")]
    if find_spec("pynvml") is None:
        unseen = "other processes on the GPU, and heat, go unnoticed"
        found.append(_note("GPU neighbours", unseen, "pip install nvidia-ml-py"))
    return found


def _library_folders() -> list[Path]:
    """Name the folders packages put libraries into: beside their code, or into the prefix."""
    return [*map(Path, site.getsitepackages()), Path(sys.prefix) / "lib"]


def _openmp(folders: Iterable[Path]) -> Diagnosis:
    """Look for OpenMP runtimes that packages bring, as a process that imports two has two."""
    patterns = ("*.libs/lib*omp*.so*", "torch/lib/lib*omp*.so*", "lib*omp*.so*")
    found = sorted(
        str(path.relative_to(folder))
        for folder in folders
        for pattern in patterns
        for path in folder.glob(pattern)
        if is_runtime(str(path))
    )
    if len(found) <= 1:
        return _fine("OpenMP", f"one runtime at most: {', '.join(found) or 'none found'}")
    remedy = "nothing, unless a record's notes say that a worker had several; then remove one"
    return _note("OpenMP", f"{len(found)} runtimes are installed: {', '.join(found)}", remedy)


def _fine(subject: str, finding: str) -> Diagnosis:
    return Diagnosis(subject=subject, level=Level.FINE, finding=finding)


def _note(subject: str, finding: str, remedy: str) -> Diagnosis:
    return Diagnosis(subject=subject, level=Level.NOTE, finding=finding, remedy=remedy or None)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _chosen(text: str | None) -> str | None:
    """Return the word in brackets of such as `always [madvise] never`."""
    found = re.search(r"\[(\w+)\]", text or "")
    return found[1] if found else None
