"""PyTorch's own check of results, as its harness applies it (`benchmarks/dynamo/common.py`).

What is compared is what the second of two iterations comes to: the output in inference; in training
the loss, gradients, parameters and buffers. The comparison is the library's, `same`; tolerances are
those of its runners on a CPU. They are given what they'd have on a GPU, an optimizer, and more than
they have: random draws in float64 are eager's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.testing import collect_results
from torch._dynamo.utils import same
from torch.utils._pytree import tree_map_only

from dynamometer.common.checking.copies import in_float64
from dynamometer.common.checking.steps import DTYPES, make_step, own_module
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.rounding import DrawsOf
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from dynamometer.common.checking.steps import Step
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Case

_ITERATIONS = 2
_MULTIPLIED = {"yolov3", "GPT2ForSequenceClassification", "BertForMaskedLM"}
"""Models whose small tensors are given more room."""

_OF_TORCHBENCH = {
    Dtype.AMP: {
        **dict.fromkeys(("doctr_reco_predictor", "drq", "phlippe_resnet"), 1e-2),
        **dict.fromkeys(
            ("soft_actor_critic", "tacotron2", "yolov3", "squeezenet1_1", "shufflenet_v2_x1_0"),
            8e-2,
        ),
    },
    Dtype.BFLOAT16: dict.fromkeys(("doctr_reco_predictor", "drq"), 1e-2),
}
_OF_HUGGINGFACE = {
    Mode.INFERENCE: {"GPT2ForSequenceClassification": 5e-3},
    Mode.TRAINING: {"MT5ForConditionalGeneration": 2e-2},
}


def tolerance_of(case: Case) -> float:
    """Return the tolerance of its runner for a case's suite, mode, dtype and model."""
    if case.suite == "torchbench":
        usual = 1e-3 if case.dtype is Dtype.AMP else 1e-4
        return _OF_TORCHBENCH.get(case.dtype, {}).get(case.model, usual)
    usual = 1e-2 if case.mode is Mode.TRAINING else 1e-3
    if case.suite == "huggingface":
        return _OF_HUGGINGFACE[case.mode].get(case.model, usual)
    return usual


class TheirCheck:
    """What their harness holds the arms of a case to."""

    def __init__(self, case: Case, loaded: LoadedModel, seed: int) -> None:
        """Run eager, and float64, twice each."""
        self._case, self._seed = case, seed
        own = loaded.copy()
        self._eager = self._results(make_step(own.module, own, case.mode, seed))
        self._exact = self._in_float64(loaded)

    def passes(self, step: Step) -> bool:
        """Take two iterations of an arm and compare; what can't be compared fails."""
        try:
            return bool(
                same(
                    self._eager,
                    self._results(step),
                    self._exact,
                    equal_nan=True,
                    use_larger_multiplier_for_smaller_tensor=self._case.model in _MULTIPLIED,
                    cos_similarity=self._exact is None,
                    tol=tolerance_of(self._case),
                    log_error=lambda *_, **__: None,
                )
            )
        except Exception:  # noqa: BLE001  as their harness has it
            return False

    def _results(self, step: Step) -> Any:
        state.seed_everything(self._seed)
        for _ in range(_ITERATIONS - 1):
            step.call()
        results = [call() for call in step.calls]
        if step.mode is Mode.INFERENCE:
            return results
        inputs = step.loaded.args
        module = own_module(step.loaded.module)
        return collect_results(module, None, results, inputs)

    def _in_float64(self, loaded: LoadedModel) -> Any:
        draws = DrawsOf(DTYPES[self._case.dtype])
        try:
            own = in_float64(loaded)
            with draws:
                found = self._results(make_step(own.module, own, self._case.mode, self._seed))
        except Exception:  # noqa: BLE001  then directions are compared, as they do
            return None
        return tree_map_only(
            torch.Tensor, lambda each: each.double() if each.is_floating_point() else each, found
        )
