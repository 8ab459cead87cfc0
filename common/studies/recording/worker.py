"""The worker's half of recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.checking.steps import make_step
from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.dynamo.ensemble.model_key import model_key
from dynamometer.dynamo.ensemble.setting import setting_of
from dynamometer.dynamo.graphs.recorder import recorder
from dynamometer.results.store.corpus import Corpus
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.values.cases import ASSEMBLED
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.decisions import Recorded
from dynamometer.results.values.graphs import Origin

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context


def record(context: Context, loaded: LoadedModel) -> Recorded:
    """Take a step of a model, and put its graphs into the corpus; not if it is decided on."""
    case, tuning = context.job.case, context.job.tuning
    assert tuning is not None
    key = model_key(loaded.module, loaded.args, loaded.kwargs)
    setting = setting_of(case.device)
    known = Decisions(Path(tuning.decisions)).find(Subject.MODEL, key, setting)
    if known and tuning.counts(known.decided_at):
        return Recorded(key=key, setting=setting, is_decided=True)
    origin = Origin(
        suite=case.suite,
        model=case.model,
        scale=case.scale,
        mode=case.mode,
        device=case.device,
        dtype=case.dtype,
        batch_size=case.batch_size,
    )
    recording = recorder(Corpus.made(Path(tuning.graphs)), origin)
    compiled = ThroughDynamo(
        name=ASSEMBLED, compiler=recording.compiler, full_graph=case.nopython
    ).compile_function(loaded.module)
    make_step(compiled, loaded, case.mode, context.job.seed).call()
    return Recorded(key=key, setting=setting, graphs=recording.model.graphs)
