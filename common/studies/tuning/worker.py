"""The worker's half of tuning: a speedup, on fresh inputs as well where a graph's can be drawn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.interfaces.suite import DrawsInputs
from dynamometer.common.studies.experiment import Context
from dynamometer.common.studies.speedup.worker import measure as measure_speedup
from dynamometer.dynamo.ensemble.model_key import model_key
from dynamometer.dynamo.ensemble.setting import setting_of
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.decisions import Tuned
from dynamometer.results.values.records import packed

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.interfaces.suite import LoadedModel

_DRAWS = 2
"""Fresh sets of inputs that candidates have to be right on, besides those they are compiled on."""


@dataclass(frozen=True)
class _Keeping(Context):
    """The context of a job; it remembers what it has loaded, and adds fresh inputs to it."""

    loaded: list[LoadedModel] = field(default_factory=list)

    def load(self) -> LoadedModel:
        found = super().load()
        suite, spec = self.suite, self.job.spec
        if isinstance(suite, DrawsInputs):
            drawn = [suite.inputs(spec, self.job.seed + 1 + draw) for draw in range(_DRAWS)]
            found = replace(found, others=(*found.others, *drawn))
        self.loaded.append(found)
        return found


def measure(context: Context) -> Findings:
    """Measure candidates, and say which graph or model they are of, and in which setting."""
    keeping = _Keeping(context.job, context.suite, context.device, context.stages)
    findings = measure_speedup(keeping)
    (loaded,) = keeping.loaded
    is_graph = isinstance(context.suite, DrawsInputs)
    found = Tuned(
        subject=Subject.GRAPH if is_graph else Subject.MODEL,
        key=context.suite.key_of(context.job.spec)
        if isinstance(context.suite, DrawsInputs)
        else model_key(loaded.module, loaded.args, loaded.kwargs),
        setting=setting_of(context.job.case.device),
    )
    return msgspec.structs.replace(findings, found=packed(found))
