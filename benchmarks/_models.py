"""Architectures of the live model benchmark: real widths, few layers, random weights.

Layers of one model have the same shapes, so more of them would show nothing new and take longer to
compile. Written in plain torch, as model code is, so that the benchmark needs nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Case:
    """A model and its input; `train` adds a backward pass."""

    module: nn.Module
    inputs: tuple[Tensor, ...]
    train: bool = False


class Llama(nn.Module):
    """Decoder layers with grouped heads, rotary positions and a gated MLP."""

    def __init__(
        self, width: int, heads: int, groups: int, inner: int, vocabulary: int, layers: int = 2
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, groups, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, -1]))


class LlamaLayer(nn.Module):
    """Decoder layer; with a key-value cache it takes one token per sequence."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.size = width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.size, bias=False)
        self.value = nn.Linear(width, groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)
        self.before, self.after = nn.RMSNorm(width), nn.RMSNorm(width)
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def cache(self, batch: int, length: int) -> None:
        """Create the keys and values of an already processed sequence."""
        groups = self.key.out_features // self.size
        weight = self.key.weight
        for name in ("keys", "values"):
            delattr(self, name)
            shape = (batch, groups, length, self.size)
            made = torch.randn(shape, dtype=weight.dtype, device=weight.device)
            self.register_buffer(name, made, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Attention and MLP with residuals."""
        batch, length, width = x.shape
        h = self.before(x)
        q, k, v = (
            part(h).view(batch, length, -1, self.size).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        q, k = rotated(q), rotated(k)
        if self.keys is not None and self.values is not None:
            self.keys[:, :, -1:], self.values[:, :, -1:] = k, v
            k, v = self.keys, self.values
        attended = functional.scaled_dot_product_attention(
            q, k, v, is_causal=length > 1, enable_gqa=True
        )
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        h = self.after(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


def rotated(x: Tensor) -> Tensor:
    """Apply rotary position embeddings."""
    half = x.shape[-1] // 2
    positions = torch.arange(x.shape[-2], device=x.device)[:, None]
    angles = positions * 10000.0 ** (-torch.arange(half, device=x.device) / half)
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class Encoder(nn.Module):
    """BERT's layers (norm last) or a vision transformer's (norm first)."""

    def __init__(self, width: int, heads: int, layers: int, *, norm_first: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(width, heads, norm_first=norm_first) for _ in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Apply all layers."""
        for layer in self.layers:
            x = layer(x)
        return x


class EncoderLayer(nn.Module):
    """Full attention and an MLP four times as wide."""

    def __init__(self, width: int, heads: int, *, norm_first: bool) -> None:
        super().__init__()
        self.heads, self.norm_first = heads, norm_first
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)

    def attention(self, x: Tensor) -> Tensor:
        """Full self-attention."""
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(*parts.unbind(0))
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))

    def mlp(self, x: Tensor) -> Tensor:
        """MLP with GELU."""
        return self.second(functional.gelu(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        """Attention and MLP with residuals."""
        if self.norm_first:
            x = x + self.attention(self.before(x))
            return x + self.mlp(self.after(x))
        x = self.before(x + self.attention(x))
        return self.after(x + self.mlp(x))


class Bert(nn.Module):
    """Masked-language model: encoder, transform, decoder to the vocabulary."""

    def __init__(self, width: int, heads: int, layers: int, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.norm = nn.LayerNorm(width)
        self.encoder = Encoder(width, heads, layers, norm_first=False)
        self.transform, self.decoder = nn.Linear(width, width), nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of all positions."""
        x = self.encoder(self.norm(self.embedding(tokens)))
        return self.decoder(functional.gelu(self.transform(x)))


class Training(nn.Module):
    """Language-model loss on the model's own input."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        """The scalar loss."""
        logits = self.model(tokens).float()
        return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


class Vit(nn.Module):
    """Vision transformer: patches, a class token, encoder, classes."""

    def __init__(self, width: int, heads: int, layers: int, patch: int, side: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) / 50)
        self.encoder = Encoder(width, heads, layers, norm_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, images: Tensor) -> Tensor:
        """Class logits."""
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.encoder(x))[:, 0])


class Dit(nn.Module):
    """Diffusion transformer: blocks with adaptive norms."""

    def __init__(self, width: int, heads: int, layers: int, channels: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(channels, width), nn.Linear(width, channels)
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(
            EncoderLayer(width, heads, norm_first=True) for _ in range(layers)
        )
        self.modulations = nn.ModuleList(nn.Linear(width, 6 * width) for _ in range(layers))

    def forward(self, latents: Tensor, time: Tensor) -> Tensor:
        """Predicted noise."""
        x, condition = self.enter(latents), functional.silu(self.time(time))
        for block, modulation in zip(self.blocks, self.modulations, strict=True):
            a, b, c, d, e, f = modulation(condition)[:, None].chunk(6, -1)
            x = x + c * block.attention(block.before(x) * (1 + a) + b)
            x = x + f * block.mlp(block.after(x) * (1 + d) + e)
        return self.leave(x)


class Recommender(nn.Module):
    """DLRM: dense features through one MLP, pairwise products with embeddings, another MLP."""

    def __init__(self, tables: int, rows: int, width: int, inner: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = perceptron(13, inner // 2, inner // 4, width)
        pairs = tables * (tables + 1) // 2
        self.top = perceptron(pairs + width, inner, inner, inner // 2, inner // 4, 1)
        self.register_buffer("pairs", torch.triu_indices(tables + 1, tables + 1, 1))

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        """Log odds of a click."""
        x = self.bottom(dense)
        looked_up = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        stacked = torch.stack([x, *looked_up], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        chosen = products[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, chosen], 1))


def perceptron(*widths: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for i, (one, other) in enumerate(itertools.pairwise(widths)):
        layers.append(nn.Linear(one, other))
        if i < len(widths) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def _tokens(vocabulary: int, *shape: int) -> Tensor:
    return torch.randint(vocabulary, shape)


def _llama(tiny: bool) -> Llama:
    if tiny:
        return Llama(64, 4, 2, 160, 256)
    return Llama(4096, 32, 8, 14336, 128256)


def _prefill(tiny: bool) -> Case:
    return Case(_llama(tiny), (_tokens(256, 2, 16) if tiny else _tokens(128256, 4, 512),))


def _decode(tiny: bool) -> Case:
    model, batch = _llama(tiny), 2 if tiny else 16
    for layer in model.layers:
        layer.cache(batch, 16 if tiny else 1024)  # type: ignore[operator]
    return Case(model, (_tokens(256, batch, 1),))


def _bert(tiny: bool) -> Case:
    if tiny:
        return Case(Bert(48, 4, 2, 100), (_tokens(100, 2, 8),))
    return Case(Bert(768, 12, 4, 30522), (_tokens(30522, 16, 128),))


def _vit(tiny: bool) -> Case:
    if tiny:
        return Case(Vit(48, 4, 2, 8, 32), (torch.randn(2, 3, 32, 32),))
    return Case(Vit(768, 12, 4, 16, 224), (torch.randn(32, 3, 224, 224),))


def _dit(tiny: bool) -> Case:
    if tiny:
        return Case(Dit(48, 4, 2, 16), (torch.randn(2, 16, 16), torch.randn(2, 256)))
    return Case(Dit(1152, 16, 4, 16), (torch.randn(8, 256, 16), torch.randn(8, 256)))


def _recommender(tiny: bool) -> Case:
    batch, rows = (4, 50) if tiny else (2048, 100_000)
    model = Recommender(3, rows, 8, 32) if tiny else Recommender(26, rows, 64, 1024)
    return Case(model, (torch.randn(batch, 13), _tokens(rows, batch, len(model.tables))))


def _training(tiny: bool) -> Case:
    if tiny:
        return Case(Training(Bert(48, 4, 1, 100)), (_tokens(100, 2, 8),), train=True)
    model = Training(Bert(768, 12, 2, 30522))
    return Case(model, (_tokens(30522, 16, 128),), train=True)


MODELS: dict[str, Callable[[bool], Case]] = {
    "llama prefill 4x512": _prefill,
    "llama decode 16": _decode,
    "bert 16x128": _bert,
    "vit-b/16 x32": _vit,
    "dit-xl x8": _dit,
    "recommender x2048": _recommender,
    "bert training step 16x128": _training,
}


def build(name: str, device: torch.device, dtype: torch.dtype, seed: int, tiny: bool) -> Case:
    """Build a model with random weights and its input from a seed."""
    torch.manual_seed(seed)
    with device:
        case = MODELS[name](tiny)
    module = case.module.to(device, dtype)
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    inputs = tuple(
        given.to(device, dtype if given.is_floating_point() else None) for given in case.inputs
    )
    return Case(module.train(case.train), inputs, case.train)
