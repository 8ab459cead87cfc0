"""What is prepared once, before the first case: backends are loaded, their toolchains made ready.

Otherwise what a toolchain prepares once per machine is charged to whichever model comes first.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.studies.experiment import Context
    from dynamometer.dynamo.backends.backends import Backend


@dataclass(frozen=True)
class Toolchain(InOneProcess):
    """Loads every backend of the plan, and lets its toolchain prepare what it keeps."""

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Leave it at that: the stage says whether a backend or its toolchain is at fault."""
        del arms
        return findings

    def measure(self, context: Context) -> Findings:
        """Load the backends at stage `load`, make them ready at stage `compile`."""
        # It imports torch, which the parent doesn't.
        from dynamometer.dynamo.backends.backends import PreparesToolchain

        backends = [_loaded(context, arm) for arm in context.job.arms]
        device = context.job.case.device
        with context.stages.at(Stage.LOAD):
            _refuse_unusable(context, backends)
        with context.stages.at(Stage.COMPILE):
            for backend in backends:
                if isinstance(backend, PreparesToolchain) and backend.available(device) is None:
                    backend.prepare(device)
        return Findings(outcome=PASSED)


def _refuse_unusable(context: Context, backends: Sequence[Backend]) -> None:
    """Refuse a run whose backends all say that they can't be used here.

    What chooses among backends has a choice less for each.

    Raises:
        SkippedError: they do; says why.
    """
    job = context.job
    asked = [each for arm, each in zip(job.arms, backends, strict=True) if arm != BASELINE]
    reasons = [_reason(each, job.case.device) for each in asked]
    if reasons and all(reasons) and not registry.study(job.study).decides:
        raise SkippedError("; ".join(dict.fromkeys(filter(None, reasons))))


def _reason(backend: Backend, device: str) -> str | None:
    """Return why a backend can't be used; what it fails with its arm says."""
    with suppress(Exception):
        return backend.available(device)
    return None


def _loaded(context: Context, arm: str) -> Backend:
    """Load the backend of an arm, whose module may do anything; it is said which that is."""
    from dynamometer.common.measuring.arm_backends import compiler_of_functions, load_backend

    with context.stages.at(Stage.LOAD, arm):
        backend = load_backend(arm)
        if context.job.case.compiled_optimizer:
            compiler_of_functions(backend)
    return backend
