"""The worker's half of recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.studies.graphs.worker import record as record_graphs
from dynamometer.dynamo.ensemble.setting import setting_of
from dynamometer.results.store.decisions import decision_that_counts
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.decisions import Recorded

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context


def record(context: Context, loaded: LoadedModel) -> Recorded:
    """Put the graphs of a model into the corpus of the run, unless the model is decided on."""
    case, tuning = context.job.case, context.job.tuning
    assert tuning is not None
    key = loaded.model_key
    assert key is not None
    setting = setting_of(case.device, case.matmul_precision, context.job.protocol.allocator)
    if not case.dynamic and decision_that_counts(tuning, Subject.MODEL, key, setting):
        return Recorded(key=key, setting=setting, is_decided=True)
    recorded = record_graphs(context, loaded)
    return Recorded(key=key, setting=setting, graphs=recorded.graphs)
