"""Models of a folder that transformers loads: their inputs, and what their weights lack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch

from dynamometer.models.builders.torchvision_schemas import define_missing_schemas
from dynamometer.models.suites.hub import load_from_hub

if TYPE_CHECKING:
    from pathlib import Path

define_missing_schemas()
transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8,
}  # fmt: skip
IMAGES = {**SMALL, "image_size": 32, "patch_size": 16}
SPEECH = {
    "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 1,
    "decoder_attention_heads": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "vocab_size": 50,
    "max_source_positions": 10, "pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 1,
    "decoder_start_token_id": 1,
}  # fmt: skip


def saved(folder: Path, name: str, **settings: Any) -> Path:
    """Save a model with random weights."""
    kind = getattr(transformers, f"{name}Model")
    kind(kind.config_class(**settings)).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "settings", "names"),
    [
        ("Bert", {**SMALL, "vocab_size": 5}, {"input_ids"}),
        ("ViT", IMAGES, {"pixel_values"}),
        ("ResNet", {"embedding_size": 8, "hidden_sizes": [8], "depths": [1]}, {"pixel_values"}),
        (
            "CLIP",
            {"text_config": SMALL, "vision_config": IMAGES},
            {"input_ids", "pixel_values"},
        ),
        ("Wav2Vec2", {**SMALL, "conv_dim": [8] * 7, "num_conv_pos_embedding_groups": 1},
         {"input_values"}),
        ("AST", {**SMALL, "max_length": 64, "num_mel_bins": 32}, {"input_values"}),
        ("Whisper", SPEECH, {"input_features", "decoder_input_ids"}),
    ],
)  # fmt: skip
def test_a_model_is_called_with_what_it_takes(
    name: str, settings: dict[str, Any], names: set[str], tmp_path: Path
) -> None:
    """Tokens of its vocabulary, images, waveforms or spectrograms, of sizes that it takes."""
    loaded = load_from_hub(str(saved(tmp_path, name, **settings)))
    assert set(loaded.kwargs) == names
    assert loaded.notes == ()
    with torch.no_grad():
        loaded.module(**loaded.kwargs)


@pytest.mark.parametrize(("name", "main"), [("Encodec", "input_values"), ("Vivit", "pixel_values")])
def test_other_inputs_are_for_the_user_to_make(name: str, main: str, tmp_path: Path) -> None:
    """Which is said before the model is called."""
    settings = {**IMAGES, "num_frames": 2} if name == "Vivit" else {"num_filters": 2}
    folder = saved(tmp_path, name, **settings)
    with pytest.raises(ValueError, match=f"called with, {main}, can't .*: write a FILE.py"):
        load_from_hub(str(folder))


def test_weights_that_are_missing_or_left_out_are_noted(tmp_path: Path) -> None:
    """As the model would otherwise pass for a trained one."""
    config = transformers.BertConfig(**SMALL, vocab_size=50)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    lacking, left_out = load_from_hub(str(tmp_path)).notes
    assert lacking.endswith("lacks are random: pooler.dense.bias, pooler.dense.weight.")
    assert "has no place for are left out: cls.predictions." in left_out


def test_weights_of_other_shapes_are_named(tmp_path: Path) -> None:
    """Before any is replaced by a random one."""
    saved(tmp_path, "Bert", **SMALL, vocab_size=50)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "vocab_size": 60}))
    with pytest.raises(ValueError, match=r"other shapes .* says: embeddings.word_embeddings.we"):
        load_from_hub(str(tmp_path))
