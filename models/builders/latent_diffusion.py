"""The U-Net of latent diffusion, which predicts the noise in the latent of an image from a text.

Source: Rombach et al. 2021, arXiv:2112.10752, in the sizes of Stable Diffusion 1: residual blocks
told the time step (Ho et al. 2020, arXiv:2006.11239), and between them transformers that read the
text. Published models start their last convolution at zero; here it starts at random, or the
output of an untrained model would be zero whatever the computation.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import nn
from torch.nn import functional

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.builders.attention import merge_heads, split_heads
from dynamometer.models.builders.diffusion_transformer import CHANNELS, EXPANSION, STEPS, step_waves

GROUPS = 32  # of a normalisation


class Residual(nn.Module):
    """Two convolutions, with the time step added in between."""

    def __init__(self, channels_in: int, channels: int, step_width: int) -> None:
        """Build the layers."""
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(GROUPS, channels_in),
            nn.SiLU(),
            nn.Conv2d(channels_in, channels, 3, padding=1),
        )
        self.step = nn.Sequential(nn.SiLU(), nn.Linear(step_width, channels))
        self.second = nn.Sequential(
            nn.GroupNorm(GROUPS, channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )
        self.skip = (
            nn.Identity() if channels_in == channels else nn.Conv2d(channels_in, channels, 1)
        )

    def forward(self, features: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """Update features `[B, C, H, W]` at an embedded step `[B, step_width]`."""
        hidden = self.first(features) + self.step(step)[:, :, None, None]
        updated: torch.Tensor = self.skip(features) + self.second(hidden)
        return updated


class Attention(nn.Module):
    """Attention from some tokens to others."""

    def __init__(self, width: int, context_width: int, heads: int) -> None:
        """Build the four projections."""
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(context_width, width, bias=False)
        self.value = nn.Linear(context_width, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Attend from tokens `[B, T, width]` to a context `[B, S, context_width]`."""
        query, key, value = (
            split_heads(projected, self.heads)
            for projected in (self.query(tokens), self.key(context), self.value(context))
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        projected: torch.Tensor = self.out(merge_heads(attended))
        return projected


class Gated(nn.Module):
    """A feed-forward network half of whose features are gates of the others (GEGLU)."""

    def __init__(self, width: int) -> None:
        """Build the two layers."""
        super().__init__()
        self.expand = nn.Linear(width, 2 * EXPANSION * width)
        self.contract = nn.Linear(EXPANSION * width, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Update each token of `[B, T, width]` by itself."""
        hidden, gate = self.expand(tokens).chunk(2, dim=-1)
        updated: torch.Tensor = self.contract(hidden * functional.gelu(gate))
        return updated


class TextReader(nn.Module):
    """A transformer block over the pixels, which also attend to a text."""

    def __init__(self, width: int, text_width: int, heads: int) -> None:
        """Build the layers."""
        super().__init__()
        self.norm_in = nn.GroupNorm(GROUPS, width, eps=1e-6)
        self.project_in = nn.Conv2d(width, width, 1)
        self.norm_self = nn.LayerNorm(width)
        self.self_attention = Attention(width, width, heads)
        self.norm_text = nn.LayerNorm(width)
        self.text_attention = Attention(width, text_width, heads)
        self.norm_mlp = nn.LayerNorm(width)
        self.mlp = Gated(width)
        self.project_out = nn.Conv2d(width, width, 1)

    def forward(self, features: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """Update features `[B, C, H, W]` with a text `[B, S, text_width]`."""
        tokens = self.project_in(self.norm_in(features)).flatten(2).transpose(1, 2)
        normed = self.norm_self(tokens)
        tokens = tokens + self.self_attention(normed, normed)
        tokens = tokens + self.text_attention(self.norm_text(tokens), text)
        tokens = tokens + self.mlp(self.norm_mlp(tokens))
        read: torch.Tensor = self.project_out(tokens.transpose(1, 2).reshape(features.shape))
        return features + read


class Stage(nn.Module):
    """A residual block, then possibly a transformer, then possibly a change of resolution."""

    def __init__(
        self, residual: Residual, reader: TextReader | None, resize: nn.Module | None
    ) -> None:
        """Combine the parts."""
        super().__init__()
        self.residual = residual
        self.reader = reader
        self.resize = resize

    def forward(
        self, features: torch.Tensor, step: torch.Tensor, text: torch.Tensor
    ) -> torch.Tensor:
        """Apply what parts there are."""
        features = self.residual(features, step)
        if self.reader is not None:
            features = self.reader(features, text)
        if self.resize is not None:
            features = self.resize(features)
        return features


class LatentUNet(nn.Module):
    """A contracting path, an expanding one, and skips between all their stages."""

    def __init__(self, widths: list[int], blocks: int, heads: int, text_width: int) -> None:
        """Build the stages; all levels but the last read the text.

        Args:
            widths: channels of each level, the finest first.
            blocks: number of residual blocks of a level on the way down; one more on the way up.
            heads: number of attention heads.
            text_width: features of a token of the text.
        """
        super().__init__()
        self.step_width = EXPANSION * widths[0]
        self.heads = heads
        self.text_width = text_width
        self.step = nn.Sequential(
            nn.Linear(widths[0], self.step_width),
            nn.SiLU(),
            nn.Linear(self.step_width, self.step_width),
        )
        self.first = nn.Conv2d(CHANNELS, widths[0], 3, padding=1)
        skips = self._build_down(widths, blocks)
        deepest = widths[-1]
        self.middle = self._stage(deepest, deepest, reads=True)
        self.middle_out = Residual(deepest, deepest, self.step_width)
        self._build_up(widths, blocks, skips)
        self.last = nn.Sequential(
            nn.GroupNorm(GROUPS, widths[0]),
            nn.SiLU(),
            nn.Conv2d(widths[0], CHANNELS, 3, padding=1),
        )

    def _build_down(self, widths: list[int], blocks: int) -> list[int]:
        """Build the contracting path and give the channels of what it hands across."""
        stages: list[nn.Module] = []
        skips = [widths[0]]
        for level, width in enumerate(widths):
            deepest = level == len(widths) - 1
            for _ in range(blocks):
                stages.append(self._stage(skips[-1], width, reads=not deepest))
                skips.append(width)
            if not deepest:
                stages.append(nn.Conv2d(width, width, 3, stride=2, padding=1))
                skips.append(width)
        self.down = nn.ModuleList(stages)
        return skips

    def _build_up(self, widths: list[int], blocks: int, skips: list[int]) -> None:
        """Build the expanding path, which takes `skips` from the last."""
        stages = []
        before = widths[-1]
        for level in reversed(range(len(widths))):
            width = widths[level]
            for block in range(blocks + 1):
                stage = self._stage(before + skips.pop(), width, reads=level < len(widths) - 1)
                if level > 0 and block == blocks:
                    stage.resize = nn.Sequential(
                        nn.Upsample(scale_factor=2), nn.Conv2d(width, width, 3, padding=1)
                    )
                stages.append(stage)
                before = width
        self.up = nn.ModuleList(stages)

    def _stage(self, channels_in: int, channels: int, *, reads: bool) -> Stage:
        reader = TextReader(channels, self.text_width, self.heads) if reads else None
        return Stage(Residual(channels_in, channels, self.step_width), reader, None)

    def forward(
        self, latents: torch.Tensor, steps: torch.Tensor, text: torch.Tensor
    ) -> torch.Tensor:
        """Predict the noise in latents `[B, 4, H, W]`.

        Args:
            latents: what noise was added to.
            steps: how often, `[B]`.
            text: embedded captions, `[B, S, text_width]`.
        """
        waves = step_waves(steps, self.step_width // EXPANSION)
        step = self.step(waves.to(latents.dtype))
        features = self.first(latents)
        skips = [features]
        for stage in self.down:
            features = stage(features, step, text) if isinstance(stage, Stage) else stage(features)
            skips.append(features)
        features = self.middle_out(self.middle(features, step, text), step)
        for stage in self.up:
            features = stage(torch.cat([features, skips.pop()], dim=1), step, text)
        return cast("torch.Tensor", self.last(features))


def build(
    *,
    batch_size: int,
    size: int,
    widths: list[int],
    blocks: int,
    heads: int,
    text_width: int,
    tokens: int,
) -> LoadedModel:
    """Build the model with noisy latents, time steps and embedded captions.

    Args:
        batch_size: number of latents.
        size: height and width of a latent.
        widths: as for `LatentUNet`.
        blocks: as for `LatentUNet`.
        heads: as for `LatentUNet`.
        text_width: as for `LatentUNet`.
        tokens: number of tokens of a caption.
    """
    latents = torch.randn(batch_size, CHANNELS, size, size)
    steps = torch.randint(STEPS, (batch_size,))
    text = torch.randn(batch_size, tokens, text_width)
    module = LatentUNet(widths, blocks, heads, text_width)
    return LoadedModel(module=module, args=(latents, steps, text))
