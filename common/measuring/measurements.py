"""What was timed in a worker as the measurements of its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.metrics import COMPILE_PHASES, COUNTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.common.measuring.arms import WarmArm
    from dynamometer.common.measuring.timing import Burst
    from dynamometer.results.values.metrics import Metric
    from dynamometer.results.values.records import Measurement


def compile_times(metric: Metric, warm: Mapping[str, WarmArm]) -> list[Measurement]:
    """Return what compiling each arm took, and the phases of it."""
    return [
        each.measured(name, [seconds])
        for name, arm in warm.items()
        if arm.compile_s is not None
        for each, seconds in (
            (metric, arm.compile_s),
            *((COMPILE_PHASES[phase], spent) for phase, spent in arm.spent.parts_s().items()),
        )
    ]


def latencies(metric: Metric, bursts: Sequence[Burst]) -> list[Measurement]:
    """Return the samples of each arm, with their blocks."""
    return [
        metric.measured(
            arm,
            [sample for burst in own for sample in burst.samples_s],
            [burst.block for burst in own for _ in burst.samples_s],
        )
        for arm, own in _by_arm(bursts).items()
    ]


def counted(bursts: Sequence[Burst]) -> list[Measurement]:
    """Return what the operating system counted of each arm, one sample for each burst."""
    return [
        each.measured(
            arm, [burst.counted[each.name] for burst in own], [burst.block for burst in own]
        )
        for arm, own in _by_arm(bursts).items()
        for each in COUNTED
    ]


def _by_arm(bursts: Sequence[Burst]) -> dict[str, list[Burst]]:
    found: dict[str, list[Burst]] = {}
    for burst in bursts:
        found.setdefault(burst.arm, []).append(burst)
    return found
