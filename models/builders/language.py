"""Builders of the models of transformers: text, speech, and images with text."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.torchvision_schemas import define_missing_schemas


def text(
    *,
    batch_size: int,
    architecture: str,
    sequence_length: int,
    sizes: dict[str, Any],
    config: dict[str, Any] | None = None,
    labels: str | None = None,
) -> LoadedModel:
    """Build a model that reads token ids.

    Args:
        batch_size: number of sequences.
        architecture: class of transformers, such as `BertForMaskedLM`.
        sequence_length: number of tokens in each sequence.
        sizes: settings of the architecture's configuration that a scale may replace.
        config: its further settings, the same at every scale. What neither names is left at the
            default of the configuration's class.
        labels: what the loss compares with, if the model is to compute one: a token for each
            token (`tokens`), a class for each sequence (`class`), or where the answer to a
            question starts and ends (`span`).

    Returns:
        The model with `input_ids`, the same ids for the decoder where it has one, and labels.
    """
    module = from_config(architecture, {**(config or {}), **sizes})
    input_ids = token_ids(batch_size, sequence_length, module.config.vocab_size)
    inputs = {"input_ids": input_ids}
    if module.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = input_ids
    if labels is not None:
        inputs |= _labels(labels, module.config, input_ids.shape)
    return LoadedModel(module=module, kwargs=inputs)


def _labels(kind: str, config: Any, shape: torch.Size) -> dict[str, torch.Tensor]:
    """Draw labels for token ids of a shape `[B, T]`.

    Raises:
        ValueError: there is no such kind of labels.
    """
    count, length = shape
    match kind:
        case "tokens":
            return {"labels": token_ids(count, length, config.vocab_size)}
        case "class":
            return {"labels": torch.randint(config.num_labels, (count,))}
        case "span":
            ends = torch.randint(length, (2, count)).sort(dim=0).values
            return {"start_positions": ends[0], "end_positions": ends[1]}
        case _:
            msg = f"labels are tokens, class or span, not {kind}"
            raise ValueError(msg)


def generation(
    *,
    batch_size: int,
    architecture: str,
    sequence_length: int,
    new_tokens: int,
    sizes: dict[str, Any],
    config: dict[str, Any] | None = None,
    cache: str | None = None,
) -> LoadedModel:
    """Build a model that answers token ids greedily with exactly `new_tokens` tokens.

    Args:
        batch_size: number of sequences.
        architecture: class of transformers that has `generate`.
        sequence_length: number of tokens in each sequence before the new ones.
        new_tokens: number of tokens to generate.
        sizes: as for `text`.
        config: as for `text`.
        cache: how past keys and values are kept, such as `static`, which reserves their memory
            beforehand; by default they grow with the sequence.
    """
    model = from_config(architecture, {**(config or {}), **sizes})
    notes = _with_small_embeddings(model)
    input_ids = token_ids(batch_size, sequence_length, model.config.vocab_size)
    module = GreedyGeneration(model, new_tokens, cache)
    return LoadedModel(module=module, args=(input_ids,), notes=notes)


@torch.no_grad()
def _with_small_embeddings(model: Any) -> tuple[str, ...]:
    """Scale embeddings that training starts at size 1, as T5's, to that of most others.

    They are the last layer's weights as well. Beside them the layers would hardly count: after each
    token would come that token again, whatever the encoder read.

    Returns:
        A note that says so, if there are any.
    """
    weight = model.get_input_embeddings().weight
    size = float(weight.std())
    if size < _LARGEST_EMBEDDINGS:
        return ()
    weight.mul_(_EMBEDDINGS / size)
    return ("Embeddings are as small as most models', so that tokens depend on the layers.",)


_EMBEDDINGS, _LARGEST_EMBEDDINGS = 0.02, 0.5
"""Standard deviations: that of most transformers' weights, and one near to T5's 1."""


class GreedyGeneration(nn.Module):
    """Makes a forward pass of a model's generation loop, with a cache of keys and values.

    Attributes:
        model: a decoder or an encoder-decoder of transformers.
        settings: what transformers' `generate` is told.
    """

    def __init__(self, model: Any, new_tokens: int, cache: str | None) -> None:
        """Wrap `model`, which has transformers' `generate`.

        Args:
            model: a decoder or an encoder-decoder of transformers.
            new_tokens: number of tokens to generate.
            cache: transformers' name of a kind of cache, or its default.
        """
        super().__init__()
        self.model = model
        # Without a token that ends it, the loop is equally long for any weights. What the settings
        # below leave out, `generate` takes from the model's own.
        model.generation_config.eos_token_id = None
        # Where the cache is static, transformers would compile the model itself, the baseline's
        # too.
        self.settings = _transformers().GenerationConfig(
            max_new_tokens=new_tokens,
            do_sample=False,
            num_beams=1,
            use_cache=True,
            cache_implementation=cache,
            disable_compile=True,
            pad_token_id=0,
            eos_token_id=None,
            decoder_start_token_id=0,
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Generate ids from ids `[B, T]`, or from the features of something said.

        Returns:
            `[B, T + new_tokens]` of a decoder, `[B, 1 + new_tokens]` of an encoder-decoder,
            `[B, new_tokens]` of Whisper, which leaves out the token that it starts from.
        """
        # Without a mask, transformers would look for padding among the ids.
        mask = None if inputs.is_floating_point() else torch.ones_like(inputs)
        generated: torch.Tensor = self.model.generate(inputs, self.settings, attention_mask=mask)
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
    module = from_config(architecture, {**(config or {}), **sizes})
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
    loss: bool = False,
) -> LoadedModel:
    """Build a model that compares images with captions.

    Args:
        batch_size: number of images.
        text_sizes: settings of the text encoder's configuration.
        vision_sizes: settings of the image encoder's configuration.
        tokens: number of tokens in each caption.
        captions: number of captions; one for each image by default.
        attention_mask: also pass the captions' mask, which masks nothing.
        loss: also compare which caption belongs to which image; there are as many of both.
    """
    module = from_config("CLIPModel", {"text_config": text_sizes, "vision_config": vision_sizes})
    text_config = module.config.text_config
    inputs: dict[str, Any] = {
        "input_ids": token_ids(captions or batch_size, tokens, text_config.vocab_size),
        "pixel_values": images(batch_size, module.config.vision_config.image_size),
    }
    if attention_mask:
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if loss:
        inputs["return_loss"] = True
    return LoadedModel(module=module, kwargs=inputs)


def segment_anything(
    *,
    batch_size: int,
    vision_sizes: dict[str, Any],
    decoder_sizes: dict[str, Any],
    points: int = 0,
) -> LoadedModel:
    """Build a model that segments images, one mask for each.

    Args:
        batch_size: number of images.
        vision_sizes: settings of the image encoder's configuration.
        decoder_sizes: settings of the mask decoder's configuration.
        points: number of points in each image that belong to what is to be segmented.
    """
    vision = {"image_size": 1024, "patch_size": 16, "output_channels": 256, **vision_sizes}
    width = vision["output_channels"]
    module = from_config(
        "SamModel",
        {
            # The classes' own ranges are so small that the masks would be the same for any image.
            "initializer_range": width**-0.5,
            "vision_config": {"initializer_range": 0.02, "num_pos_feats": width // 2, **vision},
            "prompt_encoder_config": {
                "image_size": vision["image_size"],
                "patch_size": vision["patch_size"],
                "hidden_size": width,
            },
            "mask_decoder_config": {"hidden_size": width, **decoder_sizes},
        },
    )
    size = vision["image_size"]
    inputs = {"pixel_values": images(batch_size, size), "multimask_output": False}
    if points:
        inputs["input_points"] = size * torch.rand(batch_size, 1, points, 2)
        inputs["input_labels"] = torch.ones(batch_size, 1, points, dtype=torch.long)
    return LoadedModel(module=module, kwargs=inputs)


def from_config(architecture: str, settings: dict[str, Any]) -> Any:
    """Build a class of transformers with random weights and without a cache of past keys.

    Args:
        architecture: name of the class.
        settings: settings of its configuration that differ from the defaults. The text `none`
            stands for no value, which TOML doesn't have.
    """
    model_class = getattr(_transformers(), architecture)
    given = {name: None if value == "none" else value for name, value in settings.items()}
    config = model_class.config_class(**given)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return model_class(config)


def _transformers() -> Any:
    """Import transformers, parts of which import torchvision."""
    define_missing_schemas()
    return importlib.import_module("transformers")


def token_ids(count: int, length: int, vocabulary: int) -> torch.Tensor:
    """Draw ids of tokens, `[count, length]`."""
    return torch.randint(0, vocabulary, (count, length))


def images(count: int, size: int) -> torch.Tensor:
    """Draw square images, `[count, 3, size, size]`."""
    return torch.randn(count, 3, size, size)
