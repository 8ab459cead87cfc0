"""Model-agnostic meta-learning: a classifier adapts to a task of few images, then is tested.

Source: Finn et al. 2017, arXiv:1703.03400, algorithm 2 and section 5.2, for few-shot
classification of Omniglot's 28x28 characters.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel

SIDE = 28  # pixels


class BatchStatisticsNorm(nn.Module):
    """Batch normalisation that always uses the batch's own statistics and keeps none."""

    def __init__(self, channels: int) -> None:
        """Build it as the identity but for the normalisation."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Normalise each channel of `[B, C, H, W]` over everything else."""
        return functional.batch_norm(images, None, None, self.weight, self.bias, training=True)


def _few_shot_network(width: int, ways: int) -> nn.Sequential:
    """Build four convolutions, the first three strided, down to one pixel; and a classifier."""
    layers: list[nn.Module] = []
    channels = 1
    for _ in range(3):
        layers += [nn.Conv2d(channels, width, 3, 2), nn.ReLU(), BatchStatisticsNorm(width)]
        channels = width
    layers += [nn.Conv2d(width, width, 2), nn.ReLU(), BatchStatisticsNorm(width)]
    network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, ways))
    for parameter in network.parameters():
        if parameter.dim() > 1:
            nn.init.kaiming_normal_(parameter)
    return network


class Adaptation(nn.Module):
    """Adapts a network to each task by gradient descent, and tests it after every step."""

    def __init__(self, network: nn.Module, steps: int, rate: float) -> None:
        """Wrap a network.

        Args:
            network: classifies `[N, 1, H, W]` images.
            steps: steps of gradient descent.
            rate: their learning rate.
        """
        super().__init__()
        self.network = network
        self.steps = steps
        self.rate = rate

    def forward(
        self, support: torch.Tensor, labels: torch.Tensor, query: torch.Tensor
    ) -> torch.Tensor:
        """Adapt to tasks.

        Args:
            support: images to adapt to, `[tasks, N, 1, H, W]`.
            labels: their classes, `[tasks, N]`.
            query: images to be tested on, `[tasks, M, 1, H, W]`.

        Returns:
            Probabilities of classes before adapting and after every step,
            `[tasks, steps + 1, M, ways]`.
        """
        tasks = zip(support, labels, query, strict=True)
        return torch.stack([self._adapt(*task) for task in tasks])

    def _adapt(
        self, support: torch.Tensor, labels: torch.Tensor, query: torch.Tensor
    ) -> torch.Tensor:
        weights: dict[str, torch.Tensor] = dict(self.network.named_parameters())
        tested = [self._test(weights, query)]
        for _ in range(self.steps):
            weights = self._descend(weights, support, labels)
            tested.append(self._test(weights, query))
        return torch.stack(tested)

    def _test(self, weights: dict[str, torch.Tensor], query: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            logits: torch.Tensor = functional_call(self.network, weights, (query,))
            return logits.softmax(dim=-1)

    def _descend(
        self, weights: dict[str, torch.Tensor], images: torch.Tensor, labels: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Return weights a step further down; those passed in are left as they are."""
        # The algorithm differentiates even where the caller, who only evaluates it, doesn't.
        with torch.enable_grad():
            leaves = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
            logits = functional_call(self.network, leaves, (images,))
            loss = functional.cross_entropy(logits, labels)
            gradients = torch.autograd.grad(loss, list(leaves.values()))
        return {
            name: weight.detach() - self.rate * gradient
            for (name, weight), gradient in zip(weights.items(), gradients, strict=True)
        }


def build_maml(  # one for each size that a scale may replace
    *, batch_size: int, width: int, ways: int, shots: int, queries: int, steps: int, rate: float
) -> LoadedModel:
    """Build adaptation with random images and labels.

    Args:
        batch_size: number of tasks, one adapted to after the other.
        width: channels of every convolution.
        ways: classes of a task.
        shots: images of each class to adapt to.
        queries: images of each class to be tested on.
        steps: steps of gradient descent.
        rate: their learning rate.
    """
    module = Adaptation(_few_shot_network(width, ways), steps, rate)
    support = torch.randn(batch_size, ways * shots, 1, SIDE, SIDE)
    labels = torch.randint(ways, (batch_size, ways * shots))
    query = torch.randn(batch_size, ways * queries, 1, SIDE, SIDE)
    return LoadedModel(module=module, args=(support, labels, query))
