"""The speaker encoder of Mozilla TTS, trained with the angular prototypical loss.

Source: Wan et al. 2017, arXiv:1710.10467 (LSTMs, each followed by a projection; the last frame,
normalised, is the speaker), and Chung et al. 2020, arXiv:2003.11982, for the loss; sizes from
mozilla/TTS.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel


class ProjectedLstm(nn.Module):
    """One LSTM layer and a linear projection of what it gives."""

    def __init__(self, features: int, hidden: int, projection: int) -> None:
        """Build the two, with Xavier weights and no offsets."""
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)
        self.projection = nn.Linear(hidden, projection, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_normal_(parameter)
            else:
                nn.init.zeros_(parameter)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Transform `[B, T, features]` to `[B, T, projection]`."""
        hidden, _ = self.lstm(frames)
        projected: torch.Tensor = self.projection(hidden)
        return projected


class SpeakerEncoder(nn.Module):
    """A stack of LSTMs whose last frame is a unit vector for the speaker."""

    def __init__(self, mels: int, hidden: int, projection: int, layers: int) -> None:
        """Build `layers` layers."""
        super().__init__()
        sizes = [mels] + [projection] * (layers - 1)
        self.layers = nn.Sequential(*(ProjectedLstm(size, hidden, projection) for size in sizes))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Embed spectrograms `[B, T, mels]` as `[B, projection]`."""
        return functional.normalize(self.layers(frames)[:, -1], dim=1)


def build_speaker_encoder(
    *, batch_size: int, frames: int, mels: int, hidden: int, projection: int, layers: int
) -> LoadedModel:
    """Build the encoder with random spectrograms.

    Args:
        batch_size: number of utterances.
        frames: frames in an utterance.
        mels: bands of a frame.
        hidden: state size of an LSTM.
        projection: features it is projected to.
        layers: number of LSTMs.
    """
    module = SpeakerEncoder(mels, hidden, projection, layers)
    return LoadedModel(module=module, args=(torch.rand(batch_size, frames, mels),))
