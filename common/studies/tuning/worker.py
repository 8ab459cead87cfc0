"""The worker's half of tuning: a speedup, on fresh inputs as well where a graph's can be drawn."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.interfaces.outcome import ChangedSettingsError, SkippedError, attempt
from dynamometer.common.studies.experiment import Context
from dynamometer.common.studies.speedup.worker import measure as measure_speedup
from dynamometer.dynamo import process_settings
from dynamometer.dynamo.ensemble.setting import setting_of
from dynamometer.results.store.decisions import decision_that_counts
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.decisions import Tuned
from dynamometer.results.values.records import Outcome, Stage, Status, packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.common.interfaces.messages import Job
    from dynamometer.common.interfaces.suite import LoadedModel

_DRAWS = 1
"""Fresh sets of inputs that candidates have to be right on, besides those they are compiled on."""


@dataclass(frozen=True)
class _Keeping(Context):
    """The context of a job; it remembers what it has loaded, and adds fresh inputs to it.

    Attributes:
        about: which graph or model it has loaded.
        _pace: torch's settings before the first candidate.
    """

    is_guarded: ClassVar = True

    about: list[Tuned] = field(default_factory=list)
    _pace: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def guarding(self, arm: str) -> Iterator[None]:
        """Fail a candidate that leaves others slower or faster than they were, and undo it.

        Raises:
            ChangedSettingsError: it does.
        """
        if arm == BASELINE:
            yield
            return
        if not self._pace:  # eager has run: what the model itself sets is set
            self._pace.update(process_settings.pace())
        process_settings.put_back_pace(self._pace)
        try:
            with self.keeping_options(arm):
                yield
        finally:
            changed = process_settings.put_back_pace(self._pace)
        if changed:
            msg = f"it changes torch's settings for the whole process: {', '.join(changed)}"
            raise ChangedSettingsError(msg)

    def load(self) -> LoadedModel:
        """Build the model; of a captured graph draw inputs several times.

        Raises:
            SkippedError: it is decided on.
        """
        found = super().load()
        if found.graph_key:
            seeds = range(self.job.seed + 1, self.job.seed + 1 + _DRAWS)
            drawn = [replace(self, job=msgspec.structs.replace(self.job, seed=seed))
                     for seed in seeds]  # fmt: skip
            calls = [Context.load(each).calls[0] for each in drawn]
            found = replace(found, others=(*found.others, *calls))
        case, protocol = self.job.case, self.job.protocol
        key = found.graph_key or found.model_key
        assert key is not None, "what decides has a file of decisions"
        about = Tuned(
            subject=Subject.GRAPH if found.graph_key else Subject.MODEL,
            key=key,
            setting=setting_of(case.device, case.matmul_precision, protocol.allocator),
            calls=len(found.calls),
        )
        _refuse_decided(self.job, about)
        self.about.append(about)
        return found


def _refuse_decided(job: Job, about: Tuned) -> None:
    """Leave alone what is decided.

    Raises:
        SkippedError: it is.
    """
    if job.tuning is None or job.replicate:
        return
    known = decision_that_counts(job.tuning, about.subject, about.key, about.setting)
    if known:
        msg = f"decided before: {known.arm}; --retune decides anew"
        raise SkippedError(msg)


def measure(context: Context) -> Findings:
    """Measure candidates, and say which graph or model they are of, and in which setting.

    Where eager fails that says nothing of any candidate, and nothing is decided.
    """
    keeping = _Keeping(
        context.job, context.suite, context.device, context.stages, context.send, context.notes
    )
    done = attempt(context.stages, partial(measure_speedup, keeping))
    findings = Findings(outcome=done) if isinstance(done, Outcome) else done
    if not keeping.about:
        return findings
    about = msgspec.structs.replace(keeping.about[0], is_eager_failing=is_eager_failing(findings))
    return msgspec.structs.replace(findings, found=packed(about))


def is_eager_failing(findings: Findings) -> bool:
    """Return whether eager raised, as a graph may on inputs that are drawn for it."""
    of_eager = [each.outcome for each in findings.arms if each.arm == BASELINE]
    if findings.outcome.stage is Stage.EAGER:
        of_eager.append(findings.outcome)
    return any(each.status in {Status.FAIL, Status.OOM} for each in of_eager)
