"""The worker's half: arms built and compared with eager."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dynamometer.common.measuring import arms
from dynamometer.common.measuring.blame import attempt_arm
from dynamometer.common.measuring.timed_arms import arm_result
from dynamometer.common.studies.arms_beside_eager import findings_of, load

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.records import ArmResult


def check(context: Context) -> Findings:
    """Compile the arms and compare what they compute with eager; time nothing."""
    loaded, reference = load(context)
    results: dict[str, ArmResult] = {}
    for name in context.job.arms:
        action = partial(arms.checked_arm, context, loaded, name, reference)
        results[name] = arm_result(name, attempt_arm(context, name, reference, action))
    return findings_of(context, loaded, results, context.job.arms, reference.constancy.moved_by)
