"""Builders of the models of transformers: text, speech, and images with text."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import nn

from dynamometer.common.suite import LoadedModel
from dynamometer.models.torchvision_schemas import define_missing_schemas


def text(
    *,
    batch_size: int,
    architecture: str,
    sequence_length: int,
    sizes: dict[str, Any],
    config: dict[str, Any] | None = None,
) -> LoadedModel:
    """Build a model that reads token ids.

    Args:
        batch_size: number of sequences.
        architecture: class of transformers, such as `BertForMaskedLM`.
        sequence_length: number of tokens in each sequence.
        sizes: settings of the architecture's configuration that a scale may replace.
        config: its further settings, the same at every scale. What neither names is left at the
            default of the configuration's class.

    Returns:
        The model with `input_ids`, and the same ids for the decoder where it has one.
    """
    module = _from_config(architecture, {**(config or {}), **sizes})
    input_ids = _token_ids(batch_size, sequence_length, module.config.vocab_size)
    inputs = {"input_ids": input_ids}
    if module.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = input_ids
    return LoadedModel(module=module, kwargs=inputs)


def generation(
    *,
    batch_size: int,
    architecture: str,
    sequence_length: int,
    new_tokens: int,
    sizes: dict[str, Any],
    config: dict[str, Any] | None = None,
) -> LoadedModel:
    """Build a model that continues token ids greedily by exactly `new_tokens` tokens.

    The other arguments are those of `text`.
    """
    model = _from_config(architecture, {**(config or {}), **sizes})
    input_ids = _token_ids(batch_size, sequence_length, model.config.vocab_size)
    return LoadedModel(module=GreedyGeneration(model, new_tokens), args=(input_ids,))


class GreedyGeneration(nn.Module):
    """Makes a forward pass of a model's generation loop, with a cache of keys and values."""

    def __init__(self, model: Any, new_tokens: int) -> None:
        """Wrap `model`, which has transformers' `generate`.

        Args:
            model: an encoder-decoder of transformers.
            new_tokens: number of tokens to generate.
        """
        super().__init__()
        self.model = model
        # Without a token that ends it, the loop is equally long for any weights.
        self.settings = _transformers().GenerationConfig(
            max_new_tokens=new_tokens,
            do_sample=False,
            num_beams=1,
            use_cache=True,
            pad_token_id=0,
            eos_token_id=None,
            decoder_start_token_id=0,
        )

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Generate `[B, 1 + new_tokens]` ids from `[B, T]` ids."""
        generated: torch.Tensor = self.model.generate(input_ids, self.settings)
        return generated


def speech(
    *,
    batch_size: int,
    architecture: str,
    sizes: dict[str, Any],
    config: dict[str, Any] | None = None,
) -> LoadedModel:
    """Build a model that reads a log-mel spectrogram as long as its encoder takes.

    The arguments are those of `text`.
    """
    module = _from_config(architecture, {**(config or {}), **sizes})
    # The encoder's second convolution halves the number of frames.
    frames = 2 * module.config.max_source_positions
    features = torch.randn(batch_size, module.config.num_mel_bins, frames)
    return LoadedModel(module=module, args=(features,))


def clip(
    *,
    batch_size: int,
    text_sizes: dict[str, Any],
    vision_sizes: dict[str, Any],
    tokens: int,
    captions: int | None = None,
    attention_mask: bool = False,
) -> LoadedModel:
    """Build a model that compares images with captions.

    Args:
        batch_size: number of images.
        text_sizes: settings of the text encoder's configuration.
        vision_sizes: settings of the image encoder's configuration.
        tokens: number of tokens in each caption.
        captions: number of captions; one for each image by default.
        attention_mask: also pass the captions' mask, which masks nothing.
    """
    module = _from_config("CLIPModel", {"text_config": text_sizes, "vision_config": vision_sizes})
    text_config = module.config.text_config
    inputs = {
        "input_ids": _token_ids(captions or batch_size, tokens, text_config.vocab_size),
        "pixel_values": _images(batch_size, module.config.vision_config.image_size),
    }
    if attention_mask:
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    return LoadedModel(module=module, kwargs=inputs)


def segment_anything(
    *, batch_size: int, vision_sizes: dict[str, Any], decoder_sizes: dict[str, Any]
) -> LoadedModel:
    """Build a model that segments images without a prompt, one mask for each.

    Args:
        batch_size: number of images.
        vision_sizes: settings of the image encoder's configuration.
        decoder_sizes: settings of the mask decoder's configuration.
    """
    vision = {"image_size": 1024, "patch_size": 16, "output_channels": 256, **vision_sizes}
    width = vision["output_channels"]
    module = _from_config(
        "SamModel",
        {
            # The class's own range is so small that the encoder would give the same for any image.
            "vision_config": {"initializer_range": 0.02, "num_pos_feats": width // 2, **vision},
            "prompt_encoder_config": {
                "image_size": vision["image_size"],
                "patch_size": vision["patch_size"],
                "hidden_size": width,
            },
            "mask_decoder_config": {"hidden_size": width, **decoder_sizes},
        },
    )
    inputs = {"pixel_values": _images(batch_size, vision["image_size"]), "multimask_output": False}
    return LoadedModel(module=module, kwargs=inputs)


def _from_config(architecture: str, settings: dict[str, Any]) -> Any:
    """Build a class of transformers with random weights and without a cache of past keys."""
    model_class = getattr(_transformers(), architecture)
    config = model_class.config_class(**settings)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return model_class(config)


def _transformers() -> Any:
    """Import transformers, parts of which import torchvision."""
    define_missing_schemas()
    return importlib.import_module("transformers")


def _token_ids(count: int, length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (count, length))


def _images(count: int, size: int) -> torch.Tensor:
    return torch.randn(count, 3, size, size)
