"""The worker's half of tuning: a speedup, on fresh inputs as well where a graph's can be drawn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

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

_DRAWS = 1
"""Fresh sets of inputs that candidates have to be right on, besides those they are compiled on."""


@dataclass(frozen=True)
class _Keeping(Context):
    """The context of a job; it remembers what it has loaded, and adds fresh inputs to it."""

    loaded: list[LoadedModel] = field(default_factory=list)

    def load(self) -> LoadedModel:
        """Build the model; of a captured graph draw inputs several times."""
        found = super().load()
        if found.graph_key:
            seeds = range(self.job.seed + 1, self.job.seed + 1 + _DRAWS)
            drawn = [replace(self, job=msgspec.structs.replace(self.job, seed=seed))
                     for seed in seeds]  # fmt: skip
            calls = [Context.load(each).calls[0] for each in drawn]
            found = replace(found, others=(*found.others, *calls))
        self.loaded.append(found)
        return found


def measure(context: Context) -> Findings:
    """Measure candidates, and say which graph or model they are of, and in which setting."""
    keeping = _Keeping(context.job, context.suite, context.device, context.stages)
    findings = measure_speedup(keeping)
    (loaded,) = keeping.loaded
    found = Tuned(
        subject=Subject.GRAPH if loaded.graph_key else Subject.MODEL,
        key=loaded.graph_key or model_key(loaded.module, loaded.args, loaded.kwargs),
        setting=setting_of(context.job.case.device),
    )
    return msgspec.structs.replace(findings, found=packed(found))
