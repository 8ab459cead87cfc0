"""Builders of the image classifiers of torchvision and timm."""

from __future__ import annotations

import importlib
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.settling import SAMPLES, settled
from dynamometer.models.builders.torchvision_schemas import define_missing_schemas


def resnet(  # the published variants differ in each of these
    *,
    batch_size: int,
    block: str,
    layers: list[int],
    image_size: int,
    num_classes: int = 1000,
    groups: int = 1,
    width_per_group: int = 64,
    group_norm: bool = False,
) -> LoadedModel:
    """Build a residual network of torchvision.

    Args:
        batch_size: number of images.
        block: name of the block's class, `BasicBlock` or `Bottleneck`.
        layers: number of blocks in each of the four stages.
        image_size: height and width in pixels.
        num_classes: number of logits.
        groups: groups of the blocks' 3x3 convolutions.
        width_per_group: channels of one such group, at the first stage.
        group_norm: normalise over groups of channels instead of the batch, as training with
            per-sample gradients requires.
    """
    zoo = _import("torchvision.models.resnet")
    module = zoo.ResNet(
        getattr(zoo, block),
        layers,
        num_classes=num_classes,
        groups=groups,
        width_per_group=width_per_group,
        norm_layer=_group_norm if group_norm else None,
    )
    return _classifier(module, batch_size, image_size)


def _group_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(min(32, channels), channels)


def alexnet(*, batch_size: int, image_size: int, hidden: int) -> LoadedModel:
    """Build AlexNet with `hidden` features in the two hidden layers of its classifier."""
    module = _import("torchvision.models").AlexNet()
    _resize_hidden(module.classifier, hidden)
    return _classifier(module, batch_size, image_size)


def vgg(*, batch_size: int, image_size: int, layout: list[int | str], hidden: int) -> LoadedModel:
    """Build a VGG.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        layout: output channels of each 3x3 convolution, with `"M"` for a maximum pooling between
            them. The last convolution must have 512 channels.
        hidden: features of the two hidden layers of the classifier.
    """
    zoo = _import("torchvision.models.vgg")
    module = zoo.VGG(zoo.make_layers(layout), init_weights=True)
    _resize_hidden(module.classifier, hidden)
    return _classifier(module, batch_size, image_size)


def _resize_hidden(classifier: nn.Sequential, hidden: int) -> None:
    """Change the number of features between the first and the last linear layer in place."""
    linears = [(i, layer) for i, layer in enumerate(classifier) if isinstance(layer, nn.Linear)]
    between = [hidden] * (len(linears) - 1)
    widths = [linears[0][1].in_features, *between, linears[-1][1].out_features]
    for (i, layer), (fan_in, fan_out) in zip(linears, pairwise(widths), strict=True):
        if (layer.in_features, layer.out_features) != (fan_in, fan_out):
            classifier[i] = nn.Linear(fan_in, fan_out)


def densenet(
    *,
    batch_size: int,
    image_size: int,
    growth_rate: int,
    block_config: list[int],
    num_init_features: int,
) -> LoadedModel:
    """Build a densely connected network with `block_config[i]` layers in the i-th block."""
    module = _import("torchvision.models").DenseNet(
        growth_rate, tuple(block_config), num_init_features
    )
    return _classifier(module, batch_size, image_size)


def mobilenet_v2(
    *, batch_size: int, image_size: int, stages: list[list[int]], width_mult: float = 1.0
) -> LoadedModel:
    """Build a MobileNetV2.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        stages: expansion factor, output channels, repetitions and stride of each stage.
        width_mult: factor of all widths.
    """
    module = _import("torchvision.models").MobileNetV2(
        width_mult=width_mult, inverted_residual_setting=stages
    )
    return _classifier(module, batch_size, image_size)


def mobilenet_v3(
    *,
    batch_size: int,
    image_size: int,
    blocks: list[tuple[int, int, int, int, bool, str, int]],
    last_channel: int = 1280,
) -> LoadedModel:
    """Build a MobileNetV3.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        blocks: input channels, kernel size, expanded channels, output channels, whether it has
            squeeze-and-excitation, `"RE"` for ReLU or `"HS"` for hard swish, and the stride.
        last_channel: features of the classifier's hidden layer.
    """
    zoo = _import("torchvision.models.mobilenetv3")
    setting = [zoo.InvertedResidualConfig(*block, dilation=1, width_mult=1.0) for block in blocks]
    module = zoo.MobileNetV3(setting, last_channel)
    return _classifier(module, batch_size, image_size)


# Where MNASNet's flat list of layers holds its stacks of inverted residuals.
MNASNET_STACKS = slice(8, 14)


def mnasnet(
    *, batch_size: int, image_size: int, alpha: float = 1.0, repeats: list[int]
) -> LoadedModel:
    """Build an MNASNet of width `alpha` that keeps `repeats[i]` blocks of its i-th stack.

    torchvision fixes the depth in code, hence the blocks are taken out afterwards.
    """
    module = _import("torchvision.models").MNASNet(alpha)
    layers = list(module.layers)
    stacks = [
        stack[:kept] for stack, kept in zip(layers[MNASNET_STACKS], repeats, strict=False) if kept
    ]
    projection, *tail = layers[MNASNET_STACKS.stop :]
    channels = stacks[-1][-1].layers[-1].num_features
    if channels != projection.in_channels:
        projection = nn.Conv2d(channels, projection.out_channels, 1, bias=False)
    module.layers = nn.Sequential(*layers[: MNASNET_STACKS.start], *stacks, projection, *tail)
    return _classifier(module, batch_size, image_size)


def shufflenet_v2(
    *, batch_size: int, image_size: int, repeats: list[int], channels: list[int]
) -> LoadedModel:
    """Build a ShuffleNetV2.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        repeats: number of blocks in each of the three stages.
        channels: output channels of the stem, the three stages and the last convolution.
    """
    module = _import("torchvision.models").ShuffleNetV2(repeats, channels)
    return _classifier(module, batch_size, image_size)


def squeezenet(*, batch_size: int, image_size: int, depth: int | None = None) -> LoadedModel:
    """Build SqueezeNet 1.1 with the first `depth` of its eight fire modules, or all of them.

    torchvision fixes the depth in code, hence the rest is taken out afterwards.
    """
    zoo = _import("torchvision.models.squeezenet")
    module = zoo.SqueezeNet("1_1")
    if depth is not None:
        fires = [
            place for place, layer in enumerate(module.features) if isinstance(layer, zoo.Fire)
        ]
        last = module.features[fires[depth - 1]]
        module.features = module.features[: fires[depth - 1] + 1]
        channels = last.expand1x1.out_channels + last.expand3x3.out_channels
        module.classifier[1] = nn.Conv2d(channels, module.num_classes, 1)
    return _classifier(module, batch_size, image_size)


def timm_classifier(
    *,
    batch_size: int,
    architecture: str,
    image_size: int,
    settings: dict[str, Any] | None = None,
) -> LoadedModel:
    """Build a classifier timm has by name.

    Args:
        batch_size: number of images.
        architecture: name in timm's registry.
        image_size: height and width in pixels.
        settings: what replaces the architecture's published widths and depths, in the words of
            its timm class.
    """
    module = _import("timm").create_model(architecture, pretrained=False, **(settings or {}))
    return _classifier(module, batch_size, image_size)


def efficientnet(
    *, batch_size: int, image_size: int, stages: list[str], num_features: int, stem_size: int
) -> LoadedModel:
    """Build an EfficientNet, whose depth timm's registry doesn't let a caller change.

    Args:
        batch_size: number of images.
        image_size: height and width in pixels.
        stages: timm's code of each stage, such as `ir_r2_k3_s2_e6_c24_se0.25`.
        num_features: channels of the last convolution.
        stem_size: channels of the first convolution.
    """
    zoo = _import("timm.models.efficientnet")
    module = zoo.EfficientNet(
        block_args=zoo.decode_arch_def([[stage] for stage in stages]),
        num_features=num_features,
        stem_size=stem_size,
        act_layer=nn.SiLU,
    )
    return _classifier(module, batch_size, image_size)


def _import(name: str) -> Any:
    """Import a module of torchvision, or of timm, which imports torchvision."""
    define_missing_schemas()
    return importlib.import_module(name)


def _classifier(module: nn.Module, batch_size: int, image_size: int) -> LoadedModel:
    """Complete a network with its images and, if it normalises over the batch, statistics."""
    images = torch.randn(batch_size, 3, image_size, image_size)
    samples = torch.randn(SAMPLES, 3, image_size, image_size)
    return settled(LoadedModel(module=module, args=(images,)), (samples,))
