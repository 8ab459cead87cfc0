"""Small networks, each one graph; and two that eager can't run."""

import torch
from torch import nn


class Convolutional(nn.Sequential):
    """Convolution, normalisation, pooling."""

    def __init__(self, channels):
        super().__init__(
            nn.Conv2d(3, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(channels, 10),
        )


class Recurrent(nn.Module):
    """A recurrent layer and its last state."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(4, 8, batch_first=True)

    def forward(self, x):
        output, (hidden, _) = self.layer(x)
        return output[:, -1] + hidden[-1]


class Attention(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = self.project(x).view(shape).permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return found.transpose(1, 2).reshape(batch, length, width)


class Embedding(nn.Module):
    """Words and their places."""

    def __init__(self, words, width):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(16, width)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.words(tokens) + self.places(places)


class MessagePassing(nn.Module):
    """What the nodes of a graph hear from their neighbours."""

    def forward(self, x, edges):
        heard = torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])
        return torch.cat([x, heard], dim=-1)


class ComplexNumbers(nn.Module):
    """A Fourier transform and back."""

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * 1j, n=x.shape[-1])


class WrongShapes(nn.Module):
    """It can't be computed by anyone."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


class NoForward(nn.Module):
    """There is nothing to run."""


TESTCASES = [
    (Convolutional, lambda: ([8], {}), lambda: ([torch.rand([2, 3, 16, 16])], {})),
    (Recurrent, lambda: ([], {}), lambda: ([torch.rand([2, 5, 4])], {})),
    (Attention, lambda: ([8, 2], {}), lambda: ([torch.rand([2, 5, 8])], {})),
    (Embedding, lambda: ([10, 4], {}), lambda: ([torch.randint(0, 10, [2, 5])], {})),
    (
        MessagePassing,
        lambda: ([], {}),
        lambda: ([torch.rand([5, 4]), torch.tensor([[0, 1, 2], [1, 2, 4]])], {}),
    ),
    (ComplexNumbers, lambda: ([], {}), lambda: ([torch.rand([4, 8])], {})),
    (WrongShapes, lambda: ([], {}), lambda: ([torch.rand([4, 3])], {})),
    (NoForward, lambda: ([], {}), lambda: ([torch.rand([4, 3])], {})),
]
