"""Demucs, which separates a song into its instruments as waveforms.

Source: Défossez et al. 2019, arXiv:1911.13254 (the first Demucs: convolutional encoder and
decoder with skips, GLU, and a bidirectional LSTM between).
"""

from __future__ import annotations

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel

SOURCES = 4
STEREO = 2
KERNEL = 8
STRIDE = 4
CONTEXT = 3
RESCALE = 0.1


class Bottleneck(nn.Module):
    """A bidirectional LSTM over time, projected back to the width it reads."""

    def __init__(self, channels: int, lstm_layers: int) -> None:
        """Build the LSTM and the projection."""
        super().__init__()
        self.lstm = nn.LSTM(channels, channels, lstm_layers, bidirectional=True)
        self.projection = nn.Linear(2 * channels, channels)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Transform `[B, C, T]`."""
        by_time, _ = self.lstm(features.permute(2, 0, 1))
        projected: torch.Tensor = self.projection(by_time)
        return projected.permute(1, 2, 0)


class Demucs(nn.Module):
    """A U-shaped network over the samples of a mix."""

    def __init__(self, channels: int, depth: int, lstm_layers: int) -> None:
        """Build `depth` levels, each with twice the channels of the one before.

        Args:
            channels: channels of the first level.
            depth: number of levels.
            lstm_layers: layers of the LSTM between encoder and decoder.
        """
        super().__init__()
        outputs = [SOURCES * STEREO, *(channels * 2**level for level in range(depth))]
        inputs = [STEREO, *outputs[1:]]
        levels = range(depth)
        self.encoder = nn.ModuleList(_encode(inputs[i], outputs[i + 1]) for i in levels)
        self.bottleneck = Bottleneck(outputs[-1], lstm_layers)
        self.decoder = nn.ModuleList(
            _decode(outputs[i + 1], outputs[i], last=i == 0) for i in reversed(levels)
        )
        self.apply(_rescale)

    def forward(self, mix: torch.Tensor) -> torch.Tensor:
        """Separate a mix `[B, 2, T]` into `[B, 4, 2, T']`; T' is a little less than T."""
        features = mix
        skips = []
        for encode in self.encoder:
            features = encode(features)
            skips.append(features)
        features = self.bottleneck(features)
        for decode in self.decoder:
            features = decode(features + _trim(skips.pop(), features.shape[-1]))
        sources: torch.Tensor = features.view(len(mix), SOURCES, STEREO, -1)
        return sources


def _encode(channels_in: int, channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(channels_in, channels, KERNEL, STRIDE),
        nn.ReLU(),
        nn.Conv1d(channels, 2 * channels, 1),
        nn.GLU(dim=1),
    )


def _decode(channels: int, channels_out: int, *, last: bool) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(channels, 2 * channels, CONTEXT),
        nn.GLU(dim=1),
        nn.ConvTranspose1d(channels, channels_out, KERNEL, STRIDE),
        nn.Identity() if last else nn.ReLU(),
    )


def _trim(features: torch.Tensor, length: int) -> torch.Tensor:
    """Cut `[B, C, T]` to its middle `length` steps, leaving the odd one at the end."""
    start = (features.shape[-1] - length) // 2
    return features[..., start : start + length]


def _rescale(module: nn.Module) -> None:
    """Bring a convolution's weights nearer to a deviation of 0.1, as the paper's section 4.3."""
    if isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
        scale = (module.weight.std() / RESCALE).sqrt()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.div_(scale)


class Separation(nn.Module):
    """Mixes separate instruments, and separates them again."""

    def __init__(self, model: Demucs, crop: int) -> None:
        """Wrap a model.

        Args:
            model: the model that separates.
            crop: samples cut off the end. Training shifts by up to so many; evaluation doesn't.
        """
        super().__init__()
        self.model = model
        self.crop = crop

    def forward(self, streams: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return instruments and estimates of them.

        Args:
            streams: `[B, 5, 2, T]`: a mix, which is not used, and four instruments.

        Returns:
            The instruments, `[B, 4, 2, T - crop]`, and their estimates, `[B, 4, 2, T']`.
        """
        sources = streams[:, 1:, :, : streams.shape[-1] - self.crop]
        return sources, self.model(sources.sum(dim=1))


def build_demucs(
    *, batch_size: int, channels: int, depth: int, lstm_layers: int, samples: int, crop: int
) -> LoadedModel:
    """Build Demucs with random instruments.

    Args:
        batch_size: number of excerpts.
        channels: channels of the first level.
        depth: number of levels.
        lstm_layers: layers of the LSTM.
        samples: length of an excerpt.
        crop: samples cut off its end.
    """
    module = Separation(Demucs(channels, depth, lstm_layers), crop)
    streams = torch.rand(batch_size, 1 + SOURCES, STEREO, samples)
    return LoadedModel(module=module, args=(streams,))
