"""The encoder of T5-small with random weights, in plain torch.

Six layers, width 512, eight heads, a feed-forward of 2048, position bias in the attention, no bias
in the linear layers: the published dimensions.
"""

from __future__ import annotations

import math

import torch
from torch import nn

TOKENS, LAYERS, WIDTH, HEADS, INNER, VOCABULARY = 128, 6, 512, 8, 2048, 32128
BUCKETS, FARTHEST = 32, 128


class Attention(nn.Module):
    """Attention with a bias on the scores, unscaled as in T5."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Multi-head attention."""
        parts = (self.q(x), self.k(x), self.v(x))
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        weights = torch.softmax((q @ k.transpose(2, 3) + bias).float(), dim=-1).to(x.dtype)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention, then a feed-forward with ReLU, each pre-norm with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH, 1e-6), nn.RMSNorm(WIDTH, 1e-6)
        self.attention = Attention()
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Apply the layer."""
        x = x + self.attention(self.norm_1(x), bias)
        return x + self.down(torch.relu(self.up(self.norm_2(x))))


class Encoder(nn.Module):
    """Token ids to one vector per token."""

    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.bias = nn.Embedding(BUCKETS, HEADS)
        self.register_buffer("buckets", buckets(TOKENS))
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.RMSNorm(WIDTH, 1e-6)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Apply all layers and the final norm."""
        x = self.embedding(tokens)
        bias = self.bias(self.buckets).permute(2, 0, 1)
        for layer in self.layers:
            x = layer(x, bias)
        return self.norm(x)


def buckets(length: int) -> torch.Tensor:
    """Bucket of each pair of positions: one per small distance, wider ones farther out, separate
    for earlier and later positions."""
    positions = torch.arange(length)
    apart = positions[None, :] - positions[:, None]
    half = BUCKETS // 2
    exact = half // 2
    far = torch.log(apart.abs().clamp(min=1) / exact) / math.log(FARTHEST / exact)
    wide = (exact + far * (half - exact)).long().clamp(max=half - 1)
    near = torch.where(apart.abs() < exact, apart.abs(), wide)
    return near + half * (apart > 0)
