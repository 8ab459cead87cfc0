"""What was timed in a worker as the measurements of its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.metrics import COMPILE_PHASES, COUNTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.common.measuring.arms import SettledArm
    from dynamometer.common.measuring.timing import Visit
    from dynamometer.results.values.metrics import Metric
    from dynamometer.results.values.records import Measurement


def compile_times(metric: Metric, settled: Mapping[str, SettledArm]) -> list[Measurement]:
    """Return what compiling each arm took, and the phases of it."""
    return [
        each.measured(name, [seconds])
        for name, arm in settled.items()
        if arm.compile_s is not None
        for each, seconds in (
            (metric, arm.compile_s),
            *((COMPILE_PHASES[phase], spent) for phase, spent in arm.compiled.phases_s.items()),
        )
    ]


def latencies(metric: Metric, visits: Sequence[Visit]) -> list[Measurement]:
    """Return the samples of each arm, with their blocks."""
    return [
        metric.measured(
            arm,
            [sample for visit in own for sample in visit.samples_s],
            [visit.block for visit in own for _ in visit.samples_s],
        )
        for arm, own in _by_arm(visits).items()
    ]


def counted(visits: Sequence[Visit]) -> list[Measurement]:
    """Return what the operating system counted of each arm, one sample for each visit."""
    return [
        each.measured(
            arm, [visit.counted[each.name] for visit in own], [visit.block for visit in own]
        )
        for arm, own in _by_arm(visits).items()
        for each in COUNTED
    ]


def _by_arm(visits: Sequence[Visit]) -> dict[str, list[Visit]]:
    found: dict[str, list[Visit]] = {}
    for visit in visits:
        found.setdefault(visit.arm, []).append(visit)
    return found
