"""The worker's half of recording graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.checking.steps import make_step
from dynamometer.dynamo.backends.backends import as_backend
from dynamometer.dynamo.graphs.recorder import recorder
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.graphs import Origin

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.graphs import RecordedModel

_STEPS = 2
"""The second may compile again what the first left behind changed."""


def record(context: Context, loaded: LoadedModel) -> RecordedModel:
    """Take steps of a model, and put its graphs into the corpus: those there are by any failure."""
    case = context.job.case
    assert context.job.corpus is not None, "the study asks for one"
    origin = Origin(
        suite=case.suite,
        model=case.model,
        scale=case.scale,
        mode=case.mode,
        device=case.device,
        dtype=case.dtype,
        batch_size=case.batch_size,
    )
    corpus = Corpus.made(Path(context.job.corpus))
    recording = recorder(corpus, origin)
    compiled = as_backend(recording.compiler).compile(loaded.module, loaded.args, loaded.kwargs)
    step = make_step(compiled, loaded, case.mode, context.job.seed)
    try:
        for _ in range(_STEPS):
            step.call()
    finally:
        corpus.add(recording.model)
    return recording.model
