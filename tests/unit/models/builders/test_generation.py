"""What is generated depends on what is read or heard, so that a wrong backend is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import pytest
import torch

from dynamometer.models.suites.tables import TableSuite
from dynamometer.results.values.cases import Scale

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel

MODELS = [
    ("torchbench", "hf_T5_generate"),
    ("huggingface", "T5_generate"),
    ("huggingface", "Whisper_generate"),
]


def load(suite_name: str, model: str) -> LoadedModel:
    """Build a tiny model, ready for inference."""
    suite = TableSuite(suite_name)
    (spec,) = (each for each in suite.specs() if each.name == model)
    torch.manual_seed(0)
    loaded = suite.load(spec, factories.case(model, batch_size=1, scale=Scale.TINY))
    loaded.module.eval()
    return loaded


def drawn(loaded: LoadedModel) -> torch.Tensor:
    """Draw another input of the same kind."""
    (first,) = loaded.args
    if first.is_floating_point():
        return torch.randn_like(first)
    return torch.randint(512, first.shape)


@pytest.mark.parametrize(("suite", "model"), MODELS)
@torch.no_grad()
def test_what_is_generated_depends_on_what_is_read(suite: str, model: str) -> None:
    """On the input, and on each of the parts that a backend could get wrong."""
    loaded = load(suite, model)
    inputs = [drawn(loaded) for _ in range(4)]
    found = [loaded.module(each) for each in inputs]
    assert len({tuple(each.flatten().tolist()) for each in found}) > 1
    for part in ("encoder.", "decoder."):
        attention = {
            name: each.clone()
            for name, each in loaded.module.state_dict().items()
            if part in name and ("attn" in name or "Attention" in name)
        }
        zeroed = {name: torch.zeros_like(each) for name, each in attention.items()}
        assert attention
        loaded.module.load_state_dict(zeroed, strict=False)
        assert not torch.equal(loaded.module(inputs[0]), found[0]), part
        loaded.module.load_state_dict(attention, strict=False)
    assert any("depend" in each or "heard" in each for each in loaded.notes)
