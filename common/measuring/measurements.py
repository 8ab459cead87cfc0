"""What was timed in a worker as the measurements of its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.metrics import COMPILE_PHASES, KERNEL_TIME, MINOR_FAULTS
from dynamometer.results.values.records import Measurement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.common.measuring.arms import WarmArm
    from dynamometer.common.measuring.timing import Burst


def compile_times(metric: str, settled: Mapping[str, WarmArm]) -> list[Measurement]:
    """Return what compiling each arm took, and the phases of it."""
    found = []
    for name, arm in settled.items():
        if arm.compile_s is None:
            continue
        spent_s = {metric: arm.compile_s}
        for phase, seconds in arm.compiled.phases_s.items():
            spent_s[COMPILE_PHASES[phase]] = seconds
        found += [
            Measurement(metric=what, unit="s", arm=name, samples=(seconds,))
            for what, seconds in spent_s.items()
        ]
    return found


def latencies(metric: str, bursts: Sequence[Burst]) -> list[Measurement]:
    """Return the samples of each arm, with their blocks."""
    return [
        Measurement(
            metric=metric,
            unit="s",
            arm=arm,
            samples=tuple(sample for burst in own for sample in burst.samples_s),
            blocks=tuple(burst.block for burst in own for _ in burst.samples_s),
        )
        for arm, own in _by_arm(bursts).items()
    ]


def kernel_work(bursts: Sequence[Burst]) -> list[Measurement]:
    """Return what the kernel did for each arm: served page faults, and whatever took it time."""
    found = []
    for arm, own in _by_arm(bursts).items():
        blocks = tuple(burst.block for burst in own)
        faults = tuple(burst.minor_faults_per_call for burst in own)
        seconds = tuple(burst.kernel_s_per_call for burst in own)
        found += [
            Measurement(metric=MINOR_FAULTS, unit="1/call", arm=arm, samples=faults, blocks=blocks),
            Measurement(metric=KERNEL_TIME, unit="s/call", arm=arm, samples=seconds, blocks=blocks),
        ]
    return found


def _by_arm(bursts: Sequence[Burst]) -> dict[str, list[Burst]]:
    found: dict[str, list[Burst]] = {}
    for burst in bursts:
        found.setdefault(burst.arm, []).append(burst)
    return found
