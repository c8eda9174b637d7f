"""Problems of vision, diffusion and speech models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from _real_shapes_layers import Linear, forward
from _real_shapes_tables import BF16, FP16, Precision, read_table

from torch_diode.types.shapes import CountedShape


class Vision(NamedTuple):
    """A vision (or CLIP text) transformer: one sequence length, several batches."""

    name: str
    width: int
    mlp: int
    heads: int
    tokens: int
    outputs: int  # of the head or projection; 0: none
    batches: tuple[int, ...]
    precision: Precision = BF16
    fused: bool = True


class Stage(NamedTuple):
    """A stage of Swin-T and of ConvNeXt-T, at 224 pixels."""

    channels: int
    side: int  # of the map, in tokens


class ConvNetHead(NamedTuple):
    """The classifier of a convolutional net."""

    name: str
    features: int
    batch: int


def vision() -> Iterator[CountedShape]:
    """Vision transformers; Swin and ConvNeXt stages; the heads of convolutional nets."""
    for m in read_table("vision", Vision):
        if m.fused:
            attention = (Linear("attn.qkv", 3 * m.width, m.width, True),)
        else:
            attention = (Linear("self_attn.q_proj", m.width, m.width, True),)
        layers = (
            *attention,
            Linear("attn.proj", m.width, m.width, True),
            Linear("mlp.fc1", m.mlp, m.width, True),
            Linear("mlp.fc2", m.width, m.mlp, True),
        )
        for batch in m.batches:
            setting = f"batch {batch}"
            yield from forward(m.name, layers, batch * m.tokens, setting, m.precision)
            if m.outputs:
                head = (Linear("head", m.outputs, m.width, m.outputs == 1000),)
                yield from forward(m.name, head, batch, setting, m.precision)
    yield from vision_stages(batch=16, precision=FP16)
    for net in read_table("conv_net_heads", ConvNetHead):
        head = (Linear("fc", 1000, net.features, True),)
        yield from forward(net.name, head, net.batch, f"batch {net.batch}")


def vision_stages(batch: int, precision: Precision) -> Iterator[CountedShape]:
    """Swin-T's and ConvNeXt-T's pyramid: many rows and few channels first, then the reverse."""
    stages = read_table("stages", Stage)
    for stage, (channels, side) in enumerate(stages, start=1):
        rows, setting = batch * side * side, f"stage {stage}, batch {batch}"
        layers = (
            Linear("attn.qkv", 3 * channels, channels, True),
            Linear("attn.proj", channels, channels, True),
        )
        mlp = (
            Linear("mlp.fc1", 4 * channels, channels, True),
            Linear("mlp.fc2", channels, 4 * channels, True),
        )
        yield from forward("Swin-T", (*layers, *mlp), rows, setting, precision)
        yield from forward("ConvNeXt-T", mlp, rows, setting, precision)
        if stage < len(stages):
            merge = (Linear("downsample.reduction", 2 * channels, 4 * channels),)
            yield from forward("Swin-T", merge, rows // 4, setting, precision)


class Level(NamedTuple):
    """One resolution of a diffusion U-Net's attention blocks."""

    channels: int
    tokens: int
    heads: int


class UNet(NamedTuple):
    """A diffusion U-Net with text conditioning; two samples in a batch are one with guidance."""

    name: str
    text_width: int
    text_tokens: int
    base: int  # channels of the first block, and width of the time's sinusoids
    embedding: int
    block_channels: tuple[int, ...]
    batch: int
    levels: tuple[Level, ...]
    added: int = 0  # SDXL's pooled text and six size embeddings


class DitLayer(NamedTuple):
    """A layer of a diffusion transformer, with bias."""

    name: str
    layer: str
    outputs: int
    inputs: int
    rows: tuple[int, ...]
    precision: Precision = BF16


def diffusion() -> Iterator[CountedShape]:
    """U-Nets' attention blocks and time embeddings, and diffusion transformers."""
    for m in read_table("unets", UNet):
        time = (
            Linear("time_embedding.linear_1", m.embedding, m.base, True),
            Linear("time_embedding.linear_2", m.embedding, m.embedding, True),
            *(Linear(f"time_emb_proj to {c}", c, m.embedding, True) for c in m.block_channels),
        )
        yield from forward(m.name, time, m.batch, f"batch {m.batch}", FP16)
        for level in m.levels:
            yield from _unet_level(m, level)
        if m.added:
            added = (Linear("add_embedding.linear_1", m.embedding, m.added, True),)
            yield from forward(m.name, added, m.batch, f"batch {m.batch}", FP16)
    for dit in read_table("dit_layers", DitLayer):
        linear = (Linear(dit.layer, dit.outputs, dit.inputs, True),)
        for rows in dit.rows:
            yield from forward(dit.name, linear, rows, f"{rows} rows", dit.precision)


def _unet_level(m: UNet, level: Level) -> Iterator[CountedShape]:
    width = level.channels
    image = (
        Linear("attn1.to_q", width, width),
        Linear("attn1.to_out.0", width, width, True),
        Linear("ff.net.0.proj", 8 * width, width, True),
        Linear("ff.net.2", width, 4 * width, True),
    )
    setting = f"{level.tokens} tokens, batch {m.batch}"
    yield from forward(m.name, image, m.batch * level.tokens, setting, FP16)
    context = (
        Linear("attn2.to_k", width, m.text_width),
        Linear("attn2.to_v", width, m.text_width),
    )
    setting = f"{width} channels, batch {m.batch}"
    yield from forward(m.name, context, m.batch * m.text_tokens, setting, FP16)


class Whisper(NamedTuple):
    """A Whisper size: audio frames into the encoder, a text decoder beside it."""

    name: str
    width: int
    heads: int
    vocab: int
    frames: int
    batches: tuple[int, ...]
    precision: Precision = FP16


class SpeechEncoder(NamedTuple):
    """A speech encoder on samples of one length."""

    name: str
    width: int
    mlp: int
    frames: int  # a sample
    batches: tuple[int, ...]
    precision: Precision
    relative: bool = False  # relative positions are projected too


class SpeechExtra(NamedTuple):
    """Another linear layer of a speech encoder, with bias, on every frame."""

    name: str
    layer: str
    outputs: int
    inputs: int
    frames: int
    batches: tuple[int, ...]
    precision: Precision


def speech() -> Iterator[CountedShape]:
    """Whisper, wav2vec 2.0, HuBERT, Conformer."""
    yield from _whisper()
    for encoder in read_table("speech_encoders", SpeechEncoder):
        yield from _speech_encoder(encoder)
    for m in read_table("speech_extras", SpeechExtra):
        linear = (Linear(m.layer, m.outputs, m.inputs, True),)
        for batch in m.batches:
            yield from forward(m.name, linear, batch * m.frames, f"batch {batch}", m.precision)


def _whisper() -> Iterator[CountedShape]:
    for m in read_table("whisper", Whisper):
        width = m.width
        block = (
            Linear("self_attn.q_proj", width, width, True),
            Linear("self_attn.k_proj", width, width),
            Linear("fc1", 4 * width, width, True),
            Linear("fc2", width, 4 * width, True),
        )
        for batch in m.batches:
            rows, setting = batch * m.frames, f"encoder, batch {batch}"
            yield from forward(m.name, block, rows, setting, m.precision)
            head = (Linear("proj_out", m.vocab, width),)
            setting = f"decode batch {batch}"
            yield from forward(m.name, (*block, *head), batch, setting, m.precision)


def _speech_encoder(m: SpeechEncoder) -> Iterator[CountedShape]:
    layers = (
        Linear("attention.q_proj", m.width, m.width, True),
        Linear("feed_forward.up", m.mlp, m.width, True),
        Linear("feed_forward.down", m.width, m.mlp, True),
    )
    for batch in m.batches:
        yield from forward(m.name, layers, batch * m.frames, f"batch {batch}", m.precision)
        if m.relative:
            position = (Linear("attention.linear_pos", m.width, m.width),)
            rows = 2 * m.frames - 1
            yield from forward(m.name, position, rows, "relative positions", m.precision)
