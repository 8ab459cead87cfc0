"""Builders of the models of transformers that look or listen, with what they should find."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.language import GreedyGeneration, from_config, images, token_ids


def image_classification(
    *,
    batch_size: int,
    architecture: str,
    sizes: dict[str, Any],
    config: dict[str, Any] | None = None,
) -> LoadedModel:
    """Build a model that says which class an image belongs to.

    Args:
        batch_size: number of images.
        architecture: class of transformers, such as `ViTForImageClassification`.
        sizes: settings of the architecture's configuration that a scale may replace.
        config: its further settings, the same at every scale. What neither names is left at the
            default of the configuration's class.
    """
    module = from_config(architecture, {**(config or {}), **sizes})
    inputs = {
        "pixel_values": images(batch_size, module.config.image_size),
        "labels": torch.randint(module.config.num_labels, (batch_size,)),
    }
    return LoadedModel(module=module, kwargs=inputs)


def transcription(*, batch_size: int, tokens: int, sizes: dict[str, Any]) -> LoadedModel:
    """Build Whisper, which writes down what a log-mel spectrogram says.

    Args:
        batch_size: number of spectrograms, as long as the encoder takes.
        tokens: number of tokens in each transcript.
        sizes: settings of its configuration.
    """
    module = from_config("WhisperForConditionalGeneration", sizes)
    # The encoder's second convolution halves the number of frames.
    frames = 2 * module.config.max_source_positions
    ids = token_ids(batch_size, tokens, module.config.vocab_size)
    inputs = {
        "input_features": torch.randn(batch_size, module.config.num_mel_bins, frames),
        "decoder_input_ids": ids,
        "labels": token_ids(batch_size, tokens, module.config.vocab_size),
    }
    return LoadedModel(module=module, kwargs=inputs)


def transcription_generation(
    *, batch_size: int, new_tokens: int, sizes: dict[str, Any]
) -> LoadedModel:
    """Build Whisper with the loop that writes exactly `new_tokens` tokens.

    Args:
        batch_size: number of spectrograms, as long as the encoder takes.
        new_tokens: number of tokens to generate.
        sizes: settings of its configuration.
    """
    model = from_config("WhisperForConditionalGeneration", sizes)
    frames = 2 * model.config.max_source_positions
    features = torch.randn(batch_size, model.config.num_mel_bins, frames)
    _heed_features(model)
    return LoadedModel(
        module=GreedyGeneration(model, new_tokens, None),
        args=(features,),
        notes=("Convolutions and attention to the encoder have larger weights: it is heard.",),
    )


@torch.no_grad()
def _heed_features(model: Any) -> None:
    """Scale Whisper's weights so that what it writes depends on what it hears.

    As training starts, its convolutions give next to nothing beside the positions, and the decoder
    attends to all places alike, whose mean is the same of any spectrogram.
    """
    encoder = model.get_encoder()
    gains = {encoder.conv1: _OF_CONVOLUTIONS, encoder.conv2: _OF_CONVOLUTIONS}
    gains |= {each.encoder_attn.q_proj: _OF_QUERIES for each in model.get_decoder().layers}
    for layer, gain in gains.items():
        nn.init.normal_(layer.weight, std=gain * layer.weight[0].numel() ** -0.5)


_OF_CONVOLUTIONS, _OF_QUERIES = 2.0, 4.0
"""What layers make of inputs of size 1."""


def speech_recognition(
    *,
    batch_size: int,
    architecture: str,
    samples: int,
    characters: int,
    sizes: dict[str, Any],
    config: dict[str, Any] | None = None,
) -> LoadedModel:
    """Build a model that spells what a waveform says (connectionist temporal classification).

    Args:
        batch_size: number of waveforms.
        architecture: as for `image_classification`.
        samples: length of each waveform, at 16 kHz.
        characters: length of each text.
        sizes: as for `image_classification`.
        config: as for `image_classification`.
    """
    module = from_config(architecture, {**(config or {}), **sizes})
    # The first id stands for no character.
    labels = 1 + token_ids(batch_size, characters, module.config.vocab_size - 1)
    inputs = {"input_values": torch.randn(batch_size, samples), "labels": labels}
    return LoadedModel(module=module, kwargs=inputs)
