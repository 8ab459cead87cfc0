"""A model that transformers loads by its name on the hub or from a folder, with inputs for it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.results.listing import first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BATCH = 2
_WAVEFORM = 16_000
"""Samples: a second."""

_FRAMES = 200
"""Of a spectrogram, where any number is taken."""

_IMAGE_SIZE = 224
"""Where a configuration names none."""


def load_from_hub(name: str) -> LoadedModel:
    """Load a model's weights, and make up inputs of the kind that it is called with.

    Args:
        name: the hub's, or a folder.

    Raises:
        ValueError: weights have other shapes than the model; or it can't be told what it is called
            with.
    """
    transformers = importlib.import_module("transformers")
    module, found = transformers.AutoModel.from_pretrained(
        name, output_loading_info=True, ignore_mismatched_sizes=True
    )
    if found["mismatched_keys"]:
        keys = first_of(sorted(str(each[0]) for each in found["mismatched_keys"]))
        msg = f"weights of {name} have other shapes than its configuration says: {keys}"
        raise ValueError(msg)
    return LoadedModel(module=module, kwargs=_inputs(module, name), notes=_notes(name, found))


def _notes(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    """Say which weights of a model are random, and which of a checkpoint it has no place for."""
    texts = {
        "missing_keys": f"Weights that {name} lacks are random",
        "unexpected_keys": f"Weights of {name} that the model has no place for are left out",
    }
    return tuple(
        f"{text}: {first_of(sorted(found[kind]))}." for kind, text in texts.items() if found[kind]
    )


def _inputs(module: Any, name: str) -> dict[str, torch.Tensor]:
    """Make up what a model is called with: the class's own example, or by the main input's name.

    Raises:
        ValueError: it is of another kind.
    """
    inputs = {key: each for key, each in module.dummy_inputs.items() if each is not None}
    main = str(module.main_input_name)
    if main not in inputs:
        inputs = {}
        try:
            inputs[main] = _MADE_UP[main](module.config)
        except (KeyError, AttributeError) as error:
            msg = (
                f"what {name} is called with, {main}, can't be made up from its configuration:"
                " write a FILE.py whose function returns the model and its inputs"
            )
            raise ValueError(msg) from error
    if hasattr(module, "logit_scale"):  # compares images with text, as CLIP does
        inputs.setdefault("pixel_values", _images(module.config))
    if module.config.is_encoder_decoder and "decoder_input_ids" not in inputs:
        inputs["decoder_input_ids"] = torch.ones(len(inputs[main]), 5, dtype=torch.long)
    most = getattr(module.config.get_text_config(), "vocab_size", None)
    for key, each in inputs.items():
        if each.is_floating_point():
            inputs[key] = each.to(module.dtype)
        elif key.endswith("input_ids") and most:
            inputs[key] = each.clamp(max=most - 1)
    return inputs


def _images(config: Any) -> torch.Tensor:
    if hasattr(config, "num_frames"):
        msg = "it takes videos"
        raise AttributeError(msg)
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", _IMAGE_SIZE)
    height, width = (size, size) if isinstance(size, int) else size
    return torch.randn(_BATCH, getattr(vision, "num_channels", 3), height, width)


def _sound(config: Any) -> torch.Tensor:
    """Draw waveforms, or spectrograms where the configuration says how large these are."""
    if hasattr(config, "num_mel_bins"):
        return torch.randn(_BATCH, config.max_length, config.num_mel_bins)
    if not hasattr(config, "conv_stride"):
        msg = "it has no convolutions over a waveform"
        raise AttributeError(msg)
    return torch.randn(_BATCH, _WAVEFORM)


def _spectrogram(config: Any) -> torch.Tensor:
    if hasattr(config, "num_mel_bins"):  # Whisper's encoder halves the number of frames
        return torch.randn(_BATCH, config.num_mel_bins, 2 * config.max_source_positions)
    if hasattr(config, "input_feat_per_channel"):
        return torch.randn(_BATCH, _FRAMES, config.input_feat_per_channel)
    return torch.randn(_BATCH, _FRAMES, config.feature_projection_input_dim)


_MADE_UP: dict[str, Callable[[Any], torch.Tensor]] = {
    "pixel_values": _images,
    "input_values": _sound,
    "input_features": _spectrogram,
}
