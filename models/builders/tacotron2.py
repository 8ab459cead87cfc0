"""Tacotron 2, which turns text into a spectrogram frame by frame.

Source: Shen et al. 2017, arXiv:1712.05884, with the location-sensitive attention of Chorowski et
al. 2015, arXiv:1506.07503; sizes from NVIDIA/tacotron2. Frames are predicted from the true ones
before them, as TorchBench does.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel

KERNEL = 5
LOCATION_KERNEL = 31
SILENCE = 1e3  # log-odds of stopping, in padding


class Sizes(NamedTuple):
    """Numbers of features."""

    mels: int
    text: int
    recurrent: int
    prenet: int
    attention: int
    location: int
    postnet: int


class State(NamedTuple):
    """What the decoder remembers from frame to frame."""

    attention_cell: tuple[torch.Tensor, torch.Tensor]
    decoder_cell: tuple[torch.Tensor, torch.Tensor]
    context: torch.Tensor
    weights: torch.Tensor
    total_weights: torch.Tensor


def _convolution(channels_in: int, channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(channels_in, channels, KERNEL, padding=KERNEL // 2), nn.BatchNorm1d(channels)
    )


class Encoder(nn.Module):
    """Three convolutions over characters and a bidirectional LSTM."""

    def __init__(self, symbols: int, width: int) -> None:
        """Build the layers, all of `width` features."""
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        layers: list[nn.Module] = []
        for _ in range(3):
            layers += [_convolution(width, width), nn.ReLU(), nn.Dropout(0.5)]
        self.convolutions = nn.Sequential(*layers)
        self.lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Encode `[B, S]` characters as `[B, S, width]`."""
        features = self.convolutions(self.embedding(text).transpose(1, 2))
        encoded: torch.Tensor = self.lstm(features.transpose(1, 2))[0]
        return encoded


class LocationAttention(nn.Module):
    """Attention that sees where it has been."""

    def __init__(self, sizes: Sizes) -> None:
        """Build the projections."""
        super().__init__()
        self.query = nn.Linear(sizes.recurrent, sizes.attention, bias=False)
        self.location = nn.Sequential(
            nn.Conv1d(2, sizes.location, LOCATION_KERNEL, padding=LOCATION_KERNEL // 2, bias=False),
            nn.Conv1d(sizes.location, sizes.attention, 1, bias=False),
        )
        self.energy = nn.Linear(sizes.attention, 1, bias=False)

    def forward(
        self, hidden: torch.Tensor, keys: torch.Tensor, state: State, real: torch.Tensor
    ) -> torch.Tensor:
        """Return weights of characters, `[B, S]`.

        Args:
            hidden: `[B, recurrent]`.
            keys: projected characters, `[B, S, attention]`.
            state: of the frame before.
            real: characters that are no padding, `[B, S]`.
        """
        been = torch.stack([state.weights, state.total_weights], dim=1)
        located = self.location(been).transpose(1, 2)
        energy = self.energy(torch.tanh(self.query(hidden)[:, None] + located + keys))
        weights: torch.Tensor = energy.squeeze(-1).masked_fill(~real, -torch.inf).softmax(dim=1)
        return weights


class Decoder(nn.Module):
    """Two LSTM cells, one before attending and one after."""

    def __init__(self, sizes: Sizes) -> None:
        """Build the cells and what reads frames off them."""
        super().__init__()
        self.sizes = sizes
        # The paper drops out here in evaluation as well, which no comparison of outputs allows.
        self.prenet = nn.Sequential(
            nn.Linear(sizes.mels, sizes.prenet, bias=False),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(sizes.prenet, sizes.prenet, bias=False),
            nn.ReLU(),
            nn.Dropout(0.5),
        )
        self.keys = nn.Linear(sizes.text, sizes.attention, bias=False)
        self.attention = LocationAttention(sizes)
        self.attention_cell = nn.LSTMCell(sizes.prenet + sizes.text, sizes.recurrent)
        self.decoder_cell = nn.LSTMCell(sizes.recurrent + sizes.text, sizes.recurrent)
        self.dropout = nn.Dropout(0.1)
        self.frame = nn.Linear(sizes.recurrent + sizes.text, sizes.mels)
        self.stop = nn.Linear(sizes.recurrent + sizes.text, 1)

    def forward(
        self, memory: torch.Tensor, frames: torch.Tensor, real: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Predict every frame from those before it.

        Args:
            memory: characters, `[B, S, text]`.
            frames: true frames, `[B, mels, T]`.
            real: characters that are no padding, `[B, S]`.

        Returns:
            Frames `[B, mels, T]`, log-odds of stopping `[B, T]`, and weights `[B, T, S]`.
        """
        before = functional.pad(frames, (1, 0))[:, :, :-1].permute(2, 0, 1)
        keys = self.keys(memory)
        state = self._start(memory)
        read, weights = [], []
        for frame in self.prenet(before):
            state = self._step(frame, memory, keys, state, real)
            read.append(torch.cat([state.decoder_cell[0], state.context], dim=-1))
            weights.append(state.weights)
        features = torch.stack(read, dim=1)
        predicted = self.frame(features).transpose(1, 2)
        return predicted, self.stop(features).squeeze(-1), torch.stack(weights, dim=1)

    def _start(self, memory: torch.Tensor) -> State:
        cell = memory.new_zeros(len(memory), self.sizes.recurrent)
        nowhere = memory.new_zeros(memory.shape[:2])
        context = memory.new_zeros(len(memory), self.sizes.text)
        return State((cell, cell), (cell, cell), context, nowhere, nowhere)

    def _step(
        self,
        frame: torch.Tensor,
        memory: torch.Tensor,
        keys: torch.Tensor,
        state: State,
        real: torch.Tensor,
    ) -> State:
        """Go from one frame, `[B, prenet]`, to the next."""
        hidden, cell = self.attention_cell(
            torch.cat([frame, state.context], dim=-1), state.attention_cell
        )
        hidden = self.dropout(hidden)
        weights = self.attention(hidden, keys, state, real)
        context = torch.bmm(weights[:, None], memory).squeeze(1)
        decoded, decoder_cell = self.decoder_cell(
            torch.cat([hidden, context], dim=-1), state.decoder_cell
        )
        return State(
            (hidden, cell),
            (self.dropout(decoded), decoder_cell),
            context,
            weights,
            state.total_weights + weights,
        )


class Tacotron2(nn.Module):
    """Encoder, decoder, and a network that corrects the spectrogram as a whole."""

    def __init__(self, symbols: int, sizes: Sizes) -> None:
        """Build the three."""
        super().__init__()
        self.encoder = Encoder(symbols, sizes.text)
        self.decoder = Decoder(sizes)
        layers: list[nn.Module] = [_convolution(sizes.mels, sizes.postnet)]
        for _ in range(3):
            layers += [nn.Tanh(), nn.Dropout(0.5), _convolution(sizes.postnet, sizes.postnet)]
        layers += [nn.Tanh(), nn.Dropout(0.5), _convolution(sizes.postnet, sizes.mels)]
        self.postnet = nn.Sequential(*layers, nn.Dropout(0.5))

    def forward(
        self,
        text: torch.Tensor,
        text_lengths: torch.Tensor,
        frames: torch.Tensor,
        frame_lengths: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Predict a spectrogram.

        Args:
            text: characters, `[B, S]`.
            text_lengths: characters that are no padding, `[B]`.
            frames: the true spectrogram, `[B, mels, T]`.
            frame_lengths: frames that are no padding, `[B]`.

        Returns:
            Spectrograms before and after correction, `[B, mels, T]` each, log-odds of stopping,
            `[B, T]`, and weights of characters, `[B, T, S]`.
        """
        memory = self.encoder(text)
        predicted, stop, weights = self.decoder(memory, frames, _within(text_lengths, memory))
        corrected = predicted + self.postnet(predicted)
        real = _within(frame_lengths, stop)
        return (
            predicted * real[:, None],
            corrected * real[:, None],
            stop.masked_fill(~real, SILENCE),
            weights,
        )


def _within(lengths: torch.Tensor, sequences: torch.Tensor) -> torch.Tensor:
    """Return which steps of `[B, T, ...]` are no padding, `[B, T]`."""
    return torch.arange(sequences.shape[1], device=lengths.device) < lengths[:, None]


def build_tacotron2(
    *, batch_size: int, symbols: int, characters: int, frames: int, sizes: dict[str, int]
) -> LoadedModel:
    """Build Tacotron 2 with random texts and spectrograms, all equally long.

    Args:
        batch_size: number of texts.
        symbols: number of characters there are.
        characters: characters in a text.
        frames: frames in a spectrogram.
        sizes: the fields of `Sizes`.
    """
    module = Tacotron2(symbols, Sizes(**sizes))
    text = torch.randint(symbols, (batch_size, characters))
    spectrogram = torch.randn(batch_size, sizes["mels"], frames)
    lengths = (torch.full((batch_size,), characters), torch.full((batch_size,), frames))
    return LoadedModel(module=module, args=(text, lengths[0], spectrogram, lengths[1]))
