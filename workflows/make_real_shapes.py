#!/usr/bin/env python3
"""Write the shape set of real models: the matmul problems their published dimensions lead to.

The tables at the top hold the dimensions as the models' papers and configuration files give them,
with the settings (tokens, batches, precision) each is looked at in. The functions below derive the
problems. Nothing is random: the same tables give the same file. How to read what comes out:

- a linear layer is `x @ w.T` with a row-major `w` (layout nt), addmm if it has a bias;
- its backward is dX = dY @ W (nn) and dW = dY.T @ X (tn);
- GPT-2 as published keeps its weights the other way round (`Conv1D`): nn forward, nt for dX;
- attention is two batched products, Q @ K.T (nt) and P @ V (nn), over batch times heads; a mask, a
  position bias or ALiBi added to the scores makes a baddbmm of the first (BLOOM, GPT-NeoX, Megatron
  and diffusers call it so; elsewhere it is what the addition folds into);
- `count` says how many layers of these models, each kind of layer once a setting, pose a problem.

    python workflows/make_real_shapes.py --output diode_datasets/shapes/real_models.json
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from torch_diode.files.shape_sets import write_shapes
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet

LARGEST_BYTES = 8e9
LARGEST_FLOPS = 4e12
LONGEST_ORIGIN = 100


class Precision(NamedTuple):
    """A dtype, and whether float32 products may be computed in TF32."""

    dtype: str
    tf32: bool = False


BF16 = Precision("bfloat16")
FP16 = Precision("float16")
FP32 = Precision("float32")
TF32 = Precision("float32", tf32=True)


# ---------------------------------------------------------------- published dimensions: language


class Decoder(NamedTuple):
    """A decoder-only language model with dense MLPs, and the settings to look at it in."""

    name: str
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    decode: tuple[int, ...] = ()  # batch sizes, one token each
    prefill: tuple[int, ...] = ()  # tokens in all
    fused: bool = False  # one product for Q, K and V, and one for gate and up, as servers do it
    gated: bool = True
    bias: str = ""  # "", "qkv" or "all"
    shards: int = 1  # tensor-parallel ranks
    precision: Precision = BF16


DECODERS = (
    Decoder("Llama-3-8B", 4096, 14336, 32, 8, 128, 128256, (1, 16, 256), (512, 2048, 8192)),
    Decoder("Llama-3-8B", 4096, 14336, 32, 8, 128, 128256, (64,), (1000,), fused=True),
    Decoder("Mistral-7B", 4096, 14336, 32, 8, 128, 32000, (4, 16), (2048,)),
    Decoder("Llama-2-7B", 4096, 11008, 32, 32, 128, 32000, (32,), (128,), precision=FP16),
    Decoder("Llama-2-13B", 5120, 13824, 40, 40, 128, 32000, (2,), precision=FP16),
    Decoder("Llama-3-70B", 8192, 28672, 64, 8, 128, 128256, (1, 64), (2048,), True, shards=8),
    Decoder("Llama-3-70B", 8192, 28672, 64, 8, 128, 128256, (4,), fused=True, shards=2),
    Decoder("Llama-2-70B", 8192, 28672, 64, 8, 128, 32000, (16,)),
    Decoder("Llama-3.2-1B", 2048, 8192, 32, 8, 64, 128256, (1,), (512,)),
    Decoder("Llama-3.2-3B", 3072, 8192, 24, 8, 128, 128256, (8,), (1536,)),
    Decoder("TinyLlama-1.1B", 2048, 5632, 32, 4, 64, 32000, (2,), (2048,), precision=FP16),
    Decoder("Mistral-Nemo-12B", 5120, 14336, 32, 8, 128, 131072, (16,), (640,), True),
    Decoder("Qwen2.5-0.5B", 896, 4864, 14, 2, 64, 151936, (64,), (1024,), bias="qkv"),
    Decoder("Qwen2.5-1.5B", 1536, 8960, 12, 2, 128, 151936, (4,), (333,), bias="qkv"),
    Decoder("Qwen2.5-3B", 2048, 11008, 16, 2, 128, 151936, (), (3000,), bias="qkv"),
    Decoder("Qwen2.5-7B", 3584, 18944, 28, 4, 128, 152064, (1, 256), (4096,), True, bias="qkv"),
    Decoder("Qwen2.5-14B", 5120, 13824, 40, 8, 128, 152064, (8,), bias="qkv"),
    Decoder("Qwen2.5-72B", 8192, 29568, 64, 8, 128, 152064, (32,), (1024,), True, True, "qkv", 4),
    Decoder("Qwen3-0.6B", 1024, 3072, 16, 8, 128, 151936, (1,), (77,)),
    Decoder("Qwen3-1.7B", 2048, 6144, 16, 8, 128, 151936, (), (1200,), True),
    Decoder("Qwen3-4B", 2560, 9728, 32, 8, 128, 151936, (96,), (384,)),
    Decoder("Qwen3-8B", 4096, 12288, 32, 8, 128, 151936, (24,), (6144,), True),
    Decoder("Qwen3-32B", 5120, 25600, 64, 8, 128, 151936, (12,), (), True, shards=2),
    Decoder("Gemma-2-2B", 2304, 9216, 8, 4, 256, 256000, (1,), (2048,)),
    Decoder("Gemma-2-9B", 3584, 14336, 16, 8, 256, 256000, (8,)),
    Decoder("Gemma-3-1B", 1152, 6912, 4, 1, 256, 262144, (32,), (900,)),
    Decoder("Gemma-3-27B", 5376, 21504, 32, 16, 128, 262208, (16,), (1024,), True, shards=2),
    Decoder("Phi-3-mini", 3072, 8192, 32, 32, 96, 32064, (64,), (2048,), True),
    Decoder("Phi-3-medium", 5120, 17920, 40, 10, 128, 32064, (4,), (), True),
    Decoder("Falcon-7B", 4544, 18176, 71, 1, 64, 65024, (8,), (2048,), True, gated=False),
    Decoder("MPT-7B", 4096, 16384, 32, 32, 128, 50432, (), (1024,), True, gated=False),
    Decoder("SmolLM2-135M", 576, 1536, 9, 3, 64, 49152, (16,), (200,)),
    Decoder("BLOOM-560M", 1024, 4096, 16, 16, 64, 250880, (), (512,), True, False, "all"),
    Decoder("BLOOM-7B1", 4096, 16384, 32, 32, 128, 250880, (1,), (), True, False, "all", 1, FP16),
    Decoder("OPT-1.3B", 2048, 8192, 32, 32, 64, 50272, (16,), (), False, False, "all", 1, FP16),
    Decoder("Pythia-1.4B", 2048, 8192, 16, 16, 128, 50304, (64,), (), True, False, "all", 1, FP16),
)


class Mixture(NamedTuple):
    """The MoE layers of a language model."""

    name: str
    hidden: int
    expert_intermediate: int
    experts: int
    active: int
    shared_intermediate: int
    tokens: tuple[int, ...]  # in all, spread evenly over the experts
    capacities: tuple[int, ...] = ()  # tokens an expert, all experts in one batched product
    router: Precision = BF16


MIXTURES = (
    Mixture("Mixtral-8x7B", 4096, 14336, 8, 2, 0, (16, 512, 4096), (16, 128)),
    Mixture("Mixtral-8x22B", 6144, 16384, 8, 2, 0, (32,)),
    Mixture("OLMoE-1B-7B", 2048, 1024, 64, 8, 0, (64, 4096), (32, 512)),
    Mixture("Qwen1.5-MoE-A2.7B", 2048, 1408, 60, 4, 5632, (120,), (8,)),
    Mixture("Qwen3-30B-A3B", 2048, 768, 128, 8, 0, (128, 8192), (4, 64)),
    Mixture("Qwen3-235B-A22B", 4096, 1536, 128, 8, 0, (256,)),
    Mixture("Phi-3.5-MoE", 4096, 6400, 16, 2, 0, (64,), (256,)),
    Mixture("DeepSeek-V2-Lite", 2048, 1408, 64, 6, 2816, (128, 4096), (24,), FP32),
    Mixture("DeepSeek-V3", 7168, 2048, 256, 8, 2048, (32, 4096), (), FP32),
)

# GPT-OSS keeps its experts as (experts, in, out) with a bias, and multiplies all of them at once.
GPT_OSS_HIDDEN, GPT_OSS_INTERMEDIATE, GPT_OSS_VOCAB = 2880, 2880, 201088
GPT_OSS_HEADS, GPT_OSS_KV_HEADS, GPT_OSS_HEAD_DIM = 64, 8, 64
GPT_OSS_EXPERTS = {"GPT-OSS-20B": 32, "GPT-OSS-120B": 128}


class LatentAttention(NamedTuple):
    """DeepSeek's multi-head latent attention: keys and values through one small latent vector."""

    name: str
    hidden: int
    heads: int
    q_rank: int  # 0: queries are projected in one step
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    tokens: tuple[int, ...]


LATENT_ATTENTION = (
    LatentAttention("DeepSeek-V2-Lite", 2048, 16, 0, 512, 128, 64, 128, (8, 512)),
    LatentAttention("DeepSeek-V2", 5120, 128, 1536, 512, 128, 64, 128, (64,)),
    LatentAttention("DeepSeek-V3", 7168, 128, 1536, 512, 128, 64, 128, (1, 128, 1024)),
)


class Encoder(NamedTuple):
    """A text encoder, or an encoder-decoder's stack, and the (batch, sequence) pairs it is fed."""

    name: str
    hidden: int
    intermediate: int
    heads: int
    head_dim: int
    vocab: int  # 0: no head
    inputs: tuple[tuple[int, int], ...]
    precision: Precision
    bias: bool = True
    gated: bool = False
    fused: bool = False


ENCODERS = (
    Encoder("BERT-base", 768, 3072, 12, 64, 30522, ((1, 128), (32, 128), (8, 384)), FP16),
    Encoder("BERT-base", 768, 3072, 12, 64, 30522, ((8, 128),), TF32),
    Encoder("BERT-base", 768, 3072, 12, 64, 30522, ((1, 32),), FP32),
    Encoder("BERT-large", 1024, 4096, 16, 64, 30522, ((1, 384), (4, 384), (56, 512)), FP16),
    Encoder("BERT-large", 1024, 4096, 16, 64, 30522, ((2, 384),), TF32),
    Encoder("RoBERTa-base", 768, 3072, 12, 64, 50265, ((16, 256),), FP16),
    Encoder("RoBERTa-large", 1024, 4096, 16, 64, 50265, ((4, 100),), FP32),
    Encoder("MiniLM-L6", 384, 1536, 12, 32, 30522, ((1, 64), (256, 128)), FP32),
    Encoder("MiniLM-L6", 384, 1536, 12, 32, 30522, ((64, 128),), FP16),
    Encoder("ModernBERT-base", 768, 1152, 12, 64, 0, ((16, 512),), BF16, False, True, True),
    Encoder("T5-small", 512, 2048, 8, 64, 32128, ((1, 128), (16, 512)), BF16, bias=False),
    Encoder("T5-base", 768, 3072, 12, 64, 32128, ((8, 512),), BF16, bias=False),
    Encoder("T5-large", 1024, 4096, 16, 64, 32128, ((4, 512),), FP32, bias=False),
    Encoder("T5-3B", 1024, 16384, 32, 128, 32128, ((2, 512),), BF16, bias=False),
    Encoder("Flan-T5-XL", 2048, 5120, 32, 64, 32128, ((1, 77), (4, 512)), BF16, False, True),
)


class Small(NamedTuple):
    """A small language model; `conv1d`: weights kept as (in, out), as GPT-2 publishes them."""

    name: str
    hidden: int
    vocab: int
    tokens: tuple[tuple[int, int], ...]  # batch and sequence
    precision: Precision
    bias: bool = True
    conv1d: bool = False


SMALL = (
    Small("GPT-2", 768, 50257, ((1, 1), (1, 1024)), FP32, conv1d=True),
    Small("GPT-2", 768, 50257, ((4, 1024),), TF32, conv1d=True),
    Small("GPT-2-medium", 1024, 50257, ((1, 1), (2, 512)), FP16, conv1d=True),
    Small("GPT-2-large", 1280, 50257, ((4, 1), (1, 256)), BF16, conv1d=True),
    Small("GPT-2-XL", 1600, 50257, ((2, 1024),), BF16, conv1d=True),
    Small("NanoGPT Shakespeare", 384, 65, ((64, 256),), BF16, bias=False),
    Small("NanoGPT Shakespeare", 384, 65, ((1, 100),), TF32, bias=False),
    Small("NanoGPT 124M", 768, 50304, ((12, 1024),), BF16, bias=False),
)


# --------------------------------------------------- published dimensions: vision and diffusion


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


VISION = (
    Vision("DeiT-Ti/16", 192, 768, 3, 197, 1000, (1, 64), FP16),
    Vision("ViT-S/16", 384, 1536, 6, 197, 1000, (1, 256), FP16),
    Vision("ViT-B/16", 768, 3072, 12, 197, 1000, (1, 128)),
    Vision("ViT-B/16", 768, 3072, 12, 197, 1000, (32,), TF32),
    Vision("ViT-B/32", 768, 3072, 12, 50, 1000, (16,), FP32),
    Vision("ViT-B/16 384px", 768, 3072, 12, 577, 1000, (16,), FP16),
    Vision("ViT-L/16", 1024, 4096, 16, 197, 1000, (64,)),
    Vision("ViT-H/14", 1280, 5120, 16, 257, 1000, (1,)),
    Vision("DINOv2 ViT-S/14 518px", 384, 1536, 6, 1370, 0, (8,), FP32),
    Vision("DINOv2 ViT-B/14", 768, 3072, 12, 257, 0, (64,), FP16),
    Vision("DINOv2 ViT-L/14 518px", 1024, 4096, 16, 1370, 0, (1,)),
    Vision("CLIP ViT-B/32", 768, 3072, 12, 50, 512, (256,), FP16, False),
    Vision("CLIP ViT-L/14 336px", 1024, 4096, 16, 577, 768, (4,), FP16, False),
    Vision("CLIP ViT-B/32 text", 512, 2048, 8, 77, 512, (64,), FP16, False),
    Vision("CLIP ViT-L/14 text", 768, 3072, 12, 77, 768, (2,), FP16, False),
    Vision("SigLIP-B/16", 768, 3072, 12, 196, 0, (32,), BF16, False),
    Vision("SigLIP-SO400M/14 384px", 1152, 4304, 16, 729, 0, (8,), BF16, False),
    Vision("SigLIP-SO400M/14 896px", 1152, 4304, 16, 4096, 0, (1,), BF16, False),
)

# Swin-T and ConvNeXt-T: (channels, side of the map in tokens) of each stage, at 224 pixels.
STAGES = ((96, 56), (192, 28), (384, 14), (768, 7))
CONV_NET_HEADS = (("ResNet-50", 2048, 256), ("EfficientNet-B0", 1280, 128))  # features, batch


class Level(NamedTuple):
    """One resolution of a diffusion U-Net's attention blocks."""

    channels: int
    tokens: int
    heads: int


class UNet(NamedTuple):
    """A diffusion U-Net with text conditioning; two samples in a batch are one with guidance."""

    name: str
    text_width: int
    embedding: int
    batch: int
    levels: tuple[Level, ...]


SD_LEVELS = (Level(320, 4096, 8), Level(640, 1024, 8), Level(1280, 256, 8), Level(1280, 64, 8))
SDXL_LEVELS = (Level(640, 4096, 10), Level(1280, 1024, 20))
UNETS = (
    UNet("SD-1.5 512px", 768, 1280, 2, SD_LEVELS),
    UNet("SDXL 1024px", 2048, 1280, 2, SDXL_LEVELS),
)
UNET_TEXT_TOKENS = 77
UNET_BASE = 320
SDXL_ADDED = 2816  # pooled text and six size embeddings

# Diffusion transformers: name, layer, outputs, inputs, rows; all with bias.
DIT_LAYERS = (
    ("DiT-XL/2 256px", "attn.qkv", 3456, 1152, (512, 8192)),
    ("DiT-XL/2 256px", "attn.proj", 1152, 1152, (512, 8192)),
    ("DiT-XL/2 256px", "mlp.fc1", 4608, 1152, (512, 8192)),
    ("DiT-XL/2 256px", "mlp.fc2", 1152, 4608, (512, 8192)),
    ("DiT-XL/2 256px", "adaLN_modulation", 6912, 1152, (2, 32)),
    ("DiT-XL/2 256px", "t_embedder.mlp.0", 1152, 256, (2, 32)),
    ("DiT-XL/2 256px", "final_layer.linear", 32, 1152, (512,)),
    ("DiT-XL/2 512px", "attn.qkv", 3456, 1152, (2048,)),
    ("DiT-XL/2 512px", "mlp.fc1", 4608, 1152, (2048,)),
    ("DiT-XL/2 512px", "mlp.fc2", 1152, 4608, (2048,)),
    ("Flux.1 1024px", "double.img_attn.qkv", 9216, 3072, (4096,)),
    ("Flux.1 1024px", "double.img_attn.proj", 3072, 3072, (4096,)),
    ("Flux.1 1024px", "double.img_mlp.0", 12288, 3072, (4096,)),
    ("Flux.1 1024px", "double.img_mlp.2", 3072, 12288, (4096,)),
    ("Flux.1 1024px", "double.txt_attn.qkv", 9216, 3072, (512,)),
    ("Flux.1 1024px", "double.txt_attn.proj", 3072, 3072, (512,)),
    ("Flux.1 1024px", "double.txt_mlp.0", 12288, 3072, (512,)),
    ("Flux.1 1024px", "double.txt_mlp.2", 3072, 12288, (512,)),
    ("Flux.1 1024px", "double.img_mod.lin", 18432, 3072, (1, 4)),
    ("Flux.1 1024px", "single.linear1", 21504, 3072, (4608,)),
    ("Flux.1 1024px", "single.linear2", 3072, 15360, (4608,)),
    ("Flux.1 1024px", "single.modulation.lin", 9216, 3072, (1, 4)),
    ("Flux.1 1024px", "img_in", 3072, 64, (4096,)),
    ("Flux.1 1024px", "txt_in", 3072, 4096, (512,)),
    ("Flux.1 1024px", "vector_in.in_layer", 3072, 768, (1,)),
    ("Flux.1 1024px", "time_in.in_layer", 3072, 256, (1,)),
    ("Flux.1 1024px", "final_layer.linear", 64, 3072, (4096,)),
    ("Flux.1 512px", "single.linear1", 21504, 3072, (1536,)),
    ("Flux.1 512px", "single.linear2", 3072, 15360, (1536,)),
    ("SD3-medium 1024px", "attn.to_q", 1536, 1536, (8192,)),
    ("SD3-medium 1024px", "ff.net.0.proj", 6144, 1536, (8192,)),
    ("SD3-medium 1024px", "ff.net.2", 1536, 6144, (8192,)),
    ("SD3-medium 1024px", "attn.add_q_proj", 1536, 1536, (666,)),
    ("SD3-medium 1024px", "ff_context.net.0.proj", 6144, 1536, (666,)),
    ("SD3-medium 1024px", "ff_context.net.2", 1536, 6144, (666,)),
    ("SD3-medium 1024px", "context_embedder", 1536, 4096, (666,)),
    ("SD3-medium 1024px", "norm1.linear", 9216, 1536, (2,)),
    ("SD3-medium 1024px", "proj_out", 64, 1536, (8192,)),
    ("PixArt-alpha 512px", "attn1.to_q", 1152, 1152, (2048,)),
    ("PixArt-alpha 512px", "attn2.to_k", 1152, 1152, (240,)),
    ("PixArt-alpha 512px", "caption_projection.linear_1", 1152, 4096, (240,)),
)


# -------------------------------------------------- published dimensions: speech and recommender


class Whisper(NamedTuple):
    """A Whisper size: 1,500 audio frames into the encoder, a text decoder beside it."""

    name: str
    width: int
    heads: int
    vocab: int
    batches: tuple[int, ...]
    precision: Precision = FP16


WHISPER_FRAMES = 1500
WHISPER = (
    Whisper("Whisper-tiny", 384, 6, 51865, (1,), FP32),
    Whisper("Whisper-base", 512, 8, 51865, (1,)),
    Whisper("Whisper-small", 768, 12, 51865, (5,)),
    Whisper("Whisper-medium", 1024, 16, 51865, (2,)),
    Whisper("Whisper-large-v3", 1280, 20, 51866, (16,)),
)

# name, width, MLP, frames a sample, batches, precision
SPEECH_ENCODERS = (
    ("wav2vec2-base 10s", 768, 3072, 499, (1, 8), FP32),
    ("wav2vec2-large 10s", 1024, 4096, 499, (4,), FP16),
    ("HuBERT-XL 10s", 1280, 5120, 499, (2,), BF16),
    ("Conformer-S 16s", 144, 576, 400, (16,), TF32),
    ("Conformer-M 16s", 256, 1024, 400, (16,), TF32),
    ("Conformer-L 16s", 512, 2048, 400, (1, 32), BF16),
)
# inputs and outputs of what else they have, rows a sample
SPEECH_EXTRAS = (
    ("wav2vec2-base 10s", "feature_projection", 768, 512, 499, (1, 8), FP32),
    ("wav2vec2-base 10s", "lm_head", 32, 768, 499, (1, 8), FP32),
    ("wav2vec2-large 10s", "feature_projection", 1024, 512, 499, (4,), FP16),
    ("wav2vec2-large 10s", "lm_head", 32, 1024, 499, (4,), FP16),
)

# Criteo models: 13 dense and 26 categorical features.
DLRM_BOTTOM = (13, 512, 256, 128)
DLRM_TOP = (479, 1024, 1024, 512, 256, 1)  # 128 and the 351 pairs of 27 vectors
DLRM_VECTORS, DLRM_WIDTH = 27, 128
DLRM_BATCHES = ((128, FP16), (2048, TF32), (8192, FP16), (32768, FP16))
DCN_INPUT, DCN_RANK = 3456, 512
DCN_TOP = (3456, 1024, 1024, 512, 256, 1)
DCN_BATCHES = ((512, FP32), (2048, BF16), (8192, TF32))
# name, layer widths from the input on, batch, precision
MLPS = (
    ("TorchRec two-tower", (64, 128, 64), 4096, FP32),
    ("NCF MLPerf", (256, 256, 128, 64), 65536, FP16),
    ("NCF MLPerf", (256, 256, 128, 64), 1000, FP32),
    ("DeepFM Criteo", (390, 400, 400, 400), 4096, TF32),
    ("DeepFM Criteo", (390, 400, 400, 400), 256, FP32),
    ("YouTube-DNN tower", (1024, 512, 256), 1024, BF16),
    ("SASRec ML-1M", (50, 50, 50), 25600, FP32),
)
RETRIEVAL = (("TorchRec two-tower", 4096, 64, FP32), ("YouTube-DNN tower", 8192, 256, BF16))

# Reinforcement learning on MuJoCo tasks: observations and actions of the task, hidden width.
HALF_CHEETAH = (17, 6)
HOPPER = (11, 3)
SAC_HIDDEN, SAC_BATCHES = 256, (1, 256, 4096)
MBPO_MODELS, MBPO_HIDDEN, MBPO_BATCHES = 7, 200, (256, 10000)


# -------------------------------------------------------------------- published dimensions: uses


ALIBI = "vector"  # one row for all queries
MASK = "matrix"


class Attention(NamedTuple):
    """The two products of an attention: `heads` of `dim`, queries by keys."""

    name: str
    setting: str
    batch: int
    heads: int
    queries: int
    keys: int
    dim: int
    precision: Precision = BF16
    value_dim: int = 0  # if not `dim`
    bias: str = ""  # ALIBI or MASK: the scores are a baddbmm
    backward: bool = False


ATTENTION = (
    Attention("Llama-3-8B", "prefill 512", 1, 32, 512, 512, 128),
    Attention("Llama-3-8B", "prefill 2048", 1, 32, 2048, 2048, 128),
    Attention("Llama-3-8B", "decode batch 8, context 2048, grouped", 8, 8, 4, 2048, 128),
    Attention("Llama-3-8B", "decode batch 32, context 8192, grouped", 32, 8, 4, 8192, 128),
    Attention("Llama-3-70B", "decode batch 16, context 4096, grouped", 16, 8, 8, 4096, 128),
    Attention("Llama-2-7B", "decode batch 4, context 1024", 4, 32, 1, 1024, 128, FP16),
    Attention("Llama-2-7B", "prefill 1000", 1, 32, 1000, 1000, 128, FP16),
    Attention("Qwen2.5-7B", "decode batch 1, context 3000, grouped", 1, 4, 7, 3000, 128),
    Attention("Qwen2.5-0.5B", "prefill 4x512", 4, 14, 512, 512, 64),
    Attention("Gemma-2-9B", "prefill 1024", 1, 16, 1024, 1024, 256),
    Attention("Gemma-3-1B", "decode batch 16, window 512, grouped", 16, 1, 4, 512, 256),
    Attention("Falcon-7B", "decode batch 8, context 2048, grouped", 8, 1, 71, 2048, 64),
    Attention("Phi-3-mini", "prefill 1024", 1, 32, 1024, 1024, 96),
    Attention("DeepSeek-V3", "prefill 512", 1, 128, 512, 512, 192, BF16, 128),
    Attention("DeepSeek-V3", "decode batch 16, 4096, latent", 16, 1, 128, 4096, 576, BF16, 512),
    Attention("GPT-2", "prefill 1024", 1, 12, 1024, 1024, 64, FP32),
    Attention("GPT-2", "training 8x1024", 8, 12, 1024, 1024, 64, BF16, backward=True),
    Attention("NanoGPT Shakespeare", "training 64x256", 64, 6, 256, 256, 64, BF16, backward=True),
    Attention("Llama-3.2-1B", "training 2x2048", 2, 32, 2048, 2048, 64, BF16, backward=True),
    Attention("BERT-base", "32x128", 32, 12, 128, 128, 64, FP16),
    Attention("BERT-large", "4x384", 4, 16, 384, 384, 64, FP16),
    Attention("BERT-large", "training 8x512", 8, 16, 512, 512, 64, TF32, backward=True),
    Attention("MiniLM-L6", "64x128", 64, 12, 128, 128, 32, FP32),
    Attention("T5-base", "8x512", 8, 12, 512, 512, 64),
    Attention("ViT-S/16", "batch 32", 32, 6, 197, 197, 64, FP16),
    Attention("ViT-B/16", "batch 128", 128, 12, 197, 197, 64),
    Attention("ViT-B/16", "training batch 64", 64, 12, 197, 197, 64, BF16, backward=True),
    Attention("ViT-H/14", "batch 8", 8, 16, 257, 257, 80),
    Attention("DINOv2 ViT-L/14 518px", "batch 4", 4, 16, 1370, 1370, 64),
    Attention("CLIP ViT-L/14 336px", "batch 4", 4, 16, 577, 577, 64, FP16),
    Attention("CLIP ViT-L/14 text", "batch 32", 32, 12, 77, 77, 64, FP16),
    Attention("SigLIP-SO400M/14 384px", "batch 8", 8, 16, 729, 729, 72),
    Attention("Swin-T", "stage 1 windows, batch 16", 1024, 3, 49, 49, 32, FP16),
    Attention("Swin-T", "stage 3 windows, batch 64", 256, 12, 49, 49, 32, FP32),
    Attention("SD-1.5 512px", "64x64 self, batch 2", 2, 8, 4096, 4096, 40, FP16),
    Attention("SD-1.5 512px", "64x64 cross, batch 2", 2, 8, 4096, 77, 40, FP16),
    Attention("SD-1.5 512px", "16x16 self, batch 8", 8, 8, 256, 256, 160, FP16),
    Attention("SD-1.5 VAE", "mid-block attention", 1, 1, 4096, 4096, 512, FP32),
    Attention("SDXL 1024px", "32x32 self, batch 2", 2, 20, 1024, 1024, 64, FP16),
    Attention("SDXL 1024px", "32x32 cross, batch 2", 2, 20, 1024, 77, 64, FP16),
    Attention("DiT-XL/2 256px", "batch 32", 32, 16, 256, 256, 72),
    Attention("Flux.1 512px", "joint attention", 1, 24, 1536, 1536, 128),
    Attention("SD3-medium 512px", "joint attention, batch 2", 2, 24, 1357, 1357, 64, FP16),
    Attention("Whisper-small", "encoder", 1, 12, 1500, 1500, 64, FP16),
    Attention("Whisper-large-v3", "encoder batch 4", 4, 20, 1500, 1500, 64, FP16),
    Attention("Whisper-large-v3", "cross-attention, beam 5", 5, 20, 1, 1500, 64, FP16),
    Attention("wav2vec2-base 10s", "batch 8", 8, 12, 499, 499, 64, FP32),
    Attention("Conformer-L 16s", "batch 32", 32, 8, 400, 400, 64),
    Attention("SASRec ML-1M", "batch 128", 128, 1, 200, 200, 50, FP32),
    Attention("BLOOM-560M", "prefill 512, ALiBi", 1, 16, 512, 512, 64, BF16, bias=ALIBI),
    Attention("BLOOM-560M", "prefill 8x256, ALiBi", 8, 16, 256, 256, 64, FP16, bias=ALIBI),
    Attention("BLOOM-7B1", "prefill 256, ALiBi", 1, 32, 256, 256, 128, FP16, bias=ALIBI),
    Attention("BLOOM-7B1", "prefill 2048, ALiBi", 1, 32, 2048, 2048, 128, BF16, bias=ALIBI),
    Attention("BLOOM-7B1", "prefill 4x500, ALiBi", 4, 32, 500, 500, 128, BF16, bias=ALIBI),
    Attention("BLOOM-176B", "prefill 512, ALiBi", 1, 112, 512, 512, 128, BF16, bias=ALIBI),
    Attention("BLOOM-7B1", "decode batch 8, context 512", 8, 32, 1, 512, 128, FP16, bias=MASK),
    Attention("BLOOM-560M", "decode batch 32, context 1000", 32, 16, 1, 1000, 64, bias=MASK),
    Attention("BLOOM-560M", "prefill 128, ALiBi", 1, 16, 128, 128, 64, FP32, bias=ALIBI),
    Attention("Falcon-RW-1B", "prefill 2x1024, ALiBi", 2, 32, 1024, 1024, 64, bias=ALIBI),
    Attention("MPT-7B", "prefill 1024, ALiBi", 1, 32, 1024, 1024, 128, bias=ALIBI),
    Attention("Pythia-1.4B", "prefill 2048", 1, 16, 2048, 2048, 128, FP16, bias=MASK),
    Attention("Pythia-1.4B", "prefill 4x300", 4, 16, 300, 300, 128, FP16, bias=MASK),
    Attention("Pythia-1.4B", "decode batch 16, 1024 keys", 16, 16, 1, 1024, 128, FP16, bias=MASK),
    Attention("Pythia-160M", "prefill 8x512", 8, 12, 512, 512, 64, FP32, bias=MASK),
    Attention("GPT-NeoX-20B", "prefill 1024", 1, 64, 1024, 1024, 96, FP16, bias=MASK),
    Attention("GPT-NeoX-20B", "decode batch 4, context 2048", 4, 64, 1, 2048, 96, FP16, bias=MASK),
    Attention("GPT-2-XL", "upcast, prefill 1024", 1, 25, 1024, 1024, 64, FP32, bias=MASK),
    Attention("GPT-2-medium", "upcast, 2x512", 2, 16, 512, 512, 64, TF32, bias=MASK),
    Attention("Megatron GPT-3 6.7B", "training", 1, 32, 2048, 2048, 128, BF16, 0, MASK, True),
    Attention("Megatron BERT-large", "training 16x512", 16, 16, 512, 512, 64, FP16, bias=MASK),
    Attention("T5-small", "16x128, position bias", 16, 8, 128, 128, 64, bias=MASK),
    Attention("T5-large", "4x512, position bias", 4, 16, 512, 512, 64, FP32, bias=MASK),
    Attention("T5-base", "decoder, batch 32, position 100", 32, 12, 1, 100, 64, bias=MASK),
    Attention("BERT-base", "8x128, mask", 8, 12, 128, 128, 64, TF32, bias=MASK),
    Attention("RoBERTa-large", "4x100, mask", 4, 16, 100, 100, 64, FP32, bias=MASK),
    Attention("SD-1.5 512px", "32x32 self, batch 2", 2, 8, 1024, 1024, 80, FP16, bias=MASK),
    Attention("SD-1.5 512px", "32x32 cross, batch 8", 8, 8, 1024, 77, 80, FP16, bias=MASK),
    Attention("SD-1.5 512px", "8x8 self, batch 2", 2, 8, 64, 64, 160, FP32, bias=MASK),
    Attention("SDXL 1024px", "64x64 cross, batch 2", 2, 10, 4096, 77, 64, FP16, bias=MASK),
    Attention("SDXL 1024px", "64x64 self", 1, 10, 4096, 4096, 64, FP16, bias=MASK),
    Attention("Swin-T", "stage 1 windows, bias, batch 8", 512, 3, 49, 49, 32, BF16, bias=MASK),
    Attention("Swin-T", "stage 2 windows, bias, batch 32", 512, 6, 49, 49, 32, FP16, bias=MASK),
    Attention("Swin-T", "stage 4 windows, bias, batch 64", 64, 24, 49, 49, 32, TF32, bias=MASK),
    Attention("Whisper-medium", "decoder prompt 224, mask", 2, 16, 224, 224, 64, FP16, bias=MASK),
    Attention("Conformer-M 16s", "batch 16, relative", 16, 4, 400, 400, 64, TF32, bias=MASK),
)


class Trained(NamedTuple):
    """A linear layer in training: so many outputs, inputs and rows (tokens, or samples)."""

    name: str
    layer: str
    outputs: int
    inputs: int
    rows: int
    precision: Precision
    bias: bool = False
    conv1d: bool = False


TRAINED = (
    Trained("Llama-3-8B", "self_attn.q_proj", 4096, 4096, 4096, BF16),
    Trained("Llama-3-8B", "self_attn.k_proj", 1024, 4096, 4096, BF16),
    Trained("Llama-3-8B", "mlp.gate_proj", 14336, 4096, 4096, BF16),
    Trained("Llama-3-8B", "mlp.down_proj", 4096, 14336, 4096, BF16),
    Trained("Llama-3.2-1B", "self_attn.q_proj", 2048, 2048, 2048, BF16),
    Trained("Llama-3.2-1B", "self_attn.v_proj", 512, 2048, 2048, BF16),
    Trained("Llama-3.2-1B", "mlp.up_proj", 8192, 2048, 2048, BF16),
    Trained("Llama-3.2-1B", "mlp.down_proj", 2048, 8192, 2048, BF16),
    Trained("Llama-3.2-1B", "lm_head", 128256, 2048, 2048, BF16),
    Trained("Qwen3-0.6B", "self_attn.q_proj", 2048, 1024, 16384, BF16),
    Trained("Qwen3-0.6B", "self_attn.o_proj", 1024, 2048, 16384, BF16),
    Trained("Qwen3-0.6B", "mlp.gate_proj", 3072, 1024, 16384, BF16),
    Trained("Qwen3-0.6B", "mlp.down_proj", 1024, 3072, 16384, BF16),
    Trained("GPT-2", "attn.c_attn", 2304, 768, 8192, BF16, bias=True, conv1d=True),
    Trained("GPT-2", "attn.c_proj", 768, 768, 8192, BF16, bias=True, conv1d=True),
    Trained("GPT-2", "mlp.c_fc", 3072, 768, 8192, BF16, bias=True, conv1d=True),
    Trained("GPT-2", "mlp.c_proj", 768, 3072, 8192, BF16, bias=True, conv1d=True),
    Trained("NanoGPT 124M", "attn.c_attn", 2304, 768, 12288, BF16),
    Trained("NanoGPT 124M", "mlp.c_fc", 3072, 768, 12288, BF16),
    Trained("NanoGPT 124M", "mlp.c_proj", 768, 3072, 12288, BF16),
    Trained("NanoGPT 124M", "lm_head", 50304, 768, 12288, BF16),
    Trained("NanoGPT Shakespeare", "attn.c_attn", 1152, 384, 16384, BF16),
    Trained("NanoGPT Shakespeare", "mlp.c_fc", 1536, 384, 16384, BF16),
    Trained("NanoGPT Shakespeare", "lm_head", 65, 384, 16384, BF16),
    Trained("BERT-large", "attention.self.query", 1024, 1024, 4096, TF32, bias=True),
    Trained("BERT-large", "intermediate.dense", 4096, 1024, 4096, TF32, bias=True),
    Trained("BERT-large", "output.dense", 1024, 4096, 4096, TF32, bias=True),
    Trained("BERT-base", "intermediate.dense", 3072, 768, 2048, FP32, bias=True),
    Trained("BERT-base", "output.dense", 768, 3072, 2048, FP32, bias=True),
    Trained("ViT-B/16", "attn.qkv", 2304, 768, 12608, BF16, bias=True),
    Trained("ViT-B/16", "attn.proj", 768, 768, 12608, BF16, bias=True),
    Trained("ViT-B/16", "mlp.fc1", 3072, 768, 12608, BF16, bias=True),
    Trained("ViT-B/16", "mlp.fc2", 768, 3072, 12608, BF16, bias=True),
    Trained("ViT-B/16", "head", 1000, 768, 256, BF16, bias=True),
    Trained("OLMoE-1B-7B", "expert.gate_proj", 1024, 2048, 1024, BF16),
    Trained("OLMoE-1B-7B", "expert.down_proj", 2048, 1024, 1024, BF16),
    Trained("Mixtral-8x7B", "expert.w1", 14336, 4096, 1024, BF16),
    Trained("Mixtral-8x7B", "expert.w2", 4096, 14336, 1024, BF16),
    Trained("Mixtral-8x7B", "gate", 8, 4096, 4096, BF16),
    Trained("DiT-XL/2 256px", "attn.qkv", 3456, 1152, 8192, BF16, bias=True),
    Trained("DiT-XL/2 256px", "mlp.fc1", 4608, 1152, 8192, BF16, bias=True),
    Trained("DiT-XL/2 256px", "mlp.fc2", 1152, 4608, 8192, BF16, bias=True),
    Trained("DiT-XL/2 256px", "adaLN_modulation", 6912, 1152, 32, BF16, bias=True),
    Trained("SDXL 1024px", "attn1.to_q", 1280, 1280, 4096, FP16),
    Trained("SDXL 1024px", "ff.net.0.proj", 10240, 1280, 4096, FP16, bias=True),
    Trained("SDXL 1024px", "attn2.to_k", 1280, 2048, 308, FP16),
    Trained("Whisper-small", "encoder.self_attn.q_proj", 768, 768, 12000, FP16, bias=True),
    Trained("Whisper-small", "encoder.fc1", 3072, 768, 12000, FP16, bias=True),
    Trained("wav2vec2-base", "feed_forward.intermediate_dense", 3072, 768, 3992, FP32, bias=True),
    Trained("wav2vec2-base", "lm_head", 32, 768, 3992, FP32, bias=True),
    Trained("DLRM MLPerf", "bottom.0", 512, 13, 8192, FP16, bias=True),
    Trained("DLRM MLPerf", "bottom.1", 256, 512, 8192, FP16, bias=True),
    Trained("DLRM MLPerf", "bottom.2", 128, 256, 8192, FP16, bias=True),
    Trained("DLRM MLPerf", "top.0", 1024, 479, 8192, FP16, bias=True),
    Trained("DLRM MLPerf", "top.1", 1024, 1024, 8192, FP16, bias=True),
    Trained("DLRM MLPerf", "top.4", 1, 256, 8192, FP16, bias=True),
    Trained("DLRM-v2 MLPerf", "cross.V", 512, 3456, 8192, TF32),
    Trained("DLRM-v2 MLPerf", "cross.W", 3456, 512, 8192, TF32, bias=True),
    Trained("DeepFM Criteo", "mlp.0", 400, 390, 4096, FP32, bias=True),
    Trained("DeepFM Criteo", "mlp.1", 400, 400, 4096, FP32, bias=True),
)
NO_INPUT_GRADIENT = ("bottom.0",)  # its input is data

# LoRA: model, layer, outputs, inputs, ranks, tokens, whether trained
ADAPTERS = (
    ("Llama-3-8B", "q_proj", 4096, 4096, (8, 16, 64), 2048, True),
    ("Llama-3-8B", "v_proj", 1024, 4096, (16,), 512, False),
    ("Llama-3-8B", "gate_proj", 14336, 4096, (16,), 16, False),
    ("Llama-2-7B", "down_proj", 4096, 11008, (64,), 1024, True),
    ("Qwen2.5-0.5B", "q_proj", 896, 896, (8,), 4096, True),
    ("SDXL 1024px", "attn1.to_q", 1280, 1280, (4, 32), 2048, False),
)


# ------------------------------------------------------------------------------- building blocks


class Linear(NamedTuple):
    """A linear layer: its name, outputs, inputs, whether it adds a bias."""

    name: str
    outputs: int
    inputs: int
    bias: bool = False


def _shape(
    origin: str,
    op: str,
    M: int,
    N: int,
    K: int,
    layout: str,
    precision: Precision,
    B: int = 1,
    bias: str = "",
) -> CountedShape:
    """One problem. A vector lies both ways in memory, and counts as row-major."""
    problem = MMShape(
        op,
        M=M,
        N=N,
        K=K,
        B=B,
        dtype=precision.dtype,
        transpose_a=layout[0] == "t" and M > 1 and K > 1,
        transpose_b=layout[1] == "t" and N > 1 and K > 1,
        tf32=precision.tf32,
        bias=bias,
    )
    return CountedShape(problem, origin=origin)


def forward(
    model: str,
    layers: Iterable[Linear],
    rows: int,
    setting: str,
    precision: Precision = BF16,
    conv1d: bool = False,
) -> Iterator[CountedShape]:
    """The layers applied to `rows` vectors."""
    for layer in layers:
        op = "addmm" if layer.bias else "mm"
        origin = f"{model}, {layer.name}, {setting}"
        layout = "nn" if conv1d else "nt"
        yield _shape(origin, op, rows, layer.outputs, layer.inputs, layout, precision)


def backward(
    model: str,
    layers: Iterable[Linear],
    rows: int,
    setting: str,
    precision: Precision = BF16,
    conv1d: bool = False,
) -> Iterator[CountedShape]:
    """The gradients of the layers: to what went in, and to the weights."""
    for layer in layers:
        out, into = layer.outputs, layer.inputs
        origin = f"{model}, {layer.name}, {setting}"
        if layer.name not in NO_INPUT_GRADIENT:
            layout = "nt" if conv1d else "nn"
            yield _shape(f"{origin}, dX", "mm", rows, into, out, layout, precision)
        weight = (into, out) if conv1d else (out, into)
        yield _shape(f"{origin}, dW", "mm", *weight, rows, "tn", precision)


def attend(case: Attention) -> Iterator[CountedShape]:
    """Scores and the sum of values; in training their four gradients too."""
    batch, q, k, dim = case.batch * case.heads, case.queries, case.keys, case.dim
    value = case.value_dim or dim
    op = "baddbmm" if case.bias else "bmm"

    def product(name: str, op: str, M: int, N: int, K: int, layout: str) -> CountedShape:
        origin = f"{case.name}, attention {name}, {case.setting}"
        bias = case.bias if op == "baddbmm" else ""
        return _shape(origin, op, M, N, K, layout, case.precision, batch, bias)

    yield product("QK^T", op, q, k, dim, "nt")
    yield product("PV", "bmm", q, value, k, "nn")
    if case.backward:
        yield product("dP", "bmm", q, k, value, "nt")
        yield product("dQ", "bmm", q, dim, k, "nn")
        yield product("dK", "bmm", k, dim, q, "tn")
        yield product("dV", "bmm", k, value, q, "tn")


# -------------------------------------------------------------------------------------- families


def decoder_block(model: Decoder) -> tuple[Linear, ...]:
    """The linears of one layer, on one of the tensor-parallel ranks."""
    q, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    q, kv, inner = q // model.shards, kv // model.shards, model.intermediate // model.shards
    every, qkv = model.bias == "all", bool(model.bias)
    if model.fused:
        attention: tuple[Linear, ...] = (
            Linear("self_attn.qkv_proj", q + 2 * kv, model.hidden, qkv),
        )
    else:
        attention = (
            Linear("self_attn.q_proj", q, model.hidden, qkv),
            Linear("self_attn.k_proj", kv, model.hidden, qkv),
            Linear("self_attn.v_proj", kv, model.hidden, qkv),
        )
    output = Linear("self_attn.o_proj", model.hidden, q, every)
    return (*attention, output, *_mlp(model, inner, every))


def _mlp(model: Decoder, inner: int, bias: bool) -> tuple[Linear, ...]:
    down = Linear("mlp.down_proj", model.hidden, inner, bias)
    up = Linear("mlp.up_proj", inner, model.hidden, bias)
    if not model.gated:
        return (up, down)
    if model.fused:
        return (Linear("mlp.gate_up_proj", 2 * inner, model.hidden, bias), down)
    return (Linear("mlp.gate_proj", inner, model.hidden, bias), up, down)


def _named(model: Decoder) -> str:
    return f"{model.name} TP{model.shards}" if model.shards > 1 else model.name


def llm_decode() -> Iterator[CountedShape]:
    """One token a sequence, logits for each."""
    for model in DECODERS:
        head = Linear("lm_head", model.vocab // model.shards, model.hidden)
        layers = (*decoder_block(model), head)
        for batch in model.decode:
            setting = f"decode batch {batch}"
            yield from forward(_named(model), layers, batch, setting, model.precision)


def llm_prefill() -> Iterator[CountedShape]:
    """Whole prompts; logits are only wanted of the last token, which is decoding's problem."""
    for model in DECODERS:
        for tokens in model.prefill:
            layers = decoder_block(model)
            setting = f"prefill {tokens} tokens"
            yield from forward(_named(model), layers, tokens, setting, model.precision)


def mixtures() -> Iterator[CountedShape]:
    """Routers and experts, one by one and all in one batch; then latent attention."""
    for model in MIXTURES:
        for tokens in model.tokens:
            yield from _mixture(model, tokens)
        inner, hidden = model.expert_intermediate, model.hidden
        for rows in model.capacities:
            where = f"capacity {rows}"
            for name, out, into in (("w13", 2 * inner, hidden), ("w2", hidden, inner)):
                origin = f"{model.name}, experts.{name}, {where}"
                yield _shape(origin, "bmm", rows, out, into, "nt", BF16, model.experts)
    yield from gpt_oss()
    yield from latent_attention()


def _mixture(model: Mixture, tokens: int) -> Iterator[CountedShape]:
    setting = f"{tokens} tokens"
    router = (Linear("router", model.experts, model.hidden),)
    yield from forward(model.name, router, tokens, setting, model.router)
    rows = max(1, tokens * model.active // model.experts)
    inner, hidden = model.expert_intermediate, model.hidden
    expert = (
        Linear("expert.gate_proj", inner, hidden),
        Linear("expert.up_proj", inner, hidden),
        Linear("expert.down_proj", hidden, inner),
    )
    yield from forward(model.name, expert, rows, f"{setting}, {rows} an expert")
    if model.shared_intermediate:
        shared = (
            Linear("shared_expert.gate_up_proj", 2 * model.shared_intermediate, hidden),
            Linear("shared_expert.down_proj", hidden, model.shared_intermediate),
        )
        yield from forward(model.name, shared, tokens, setting)


def gpt_oss() -> Iterator[CountedShape]:
    """Experts with a bias in one batched product, weights as (in, out); biased attention."""
    hidden, inner = GPT_OSS_HIDDEN, GPT_OSS_INTERMEDIATE
    for name, experts in GPT_OSS_EXPERTS.items():
        for rows in (2, 8, 64) if experts == 32 else (4, 16):
            for layer, out, into in (
                ("gate_up_proj", 2 * inner, hidden),
                ("down_proj", hidden, inner),
            ):
                origin = f"{name}, experts.{layer}, {rows} tokens an expert"
                yield _shape(origin, "baddbmm", rows, out, into, "nn", BF16, experts, "vector")
        for tokens in (32, 1024):
            router = (Linear("mlp.router", experts, hidden, True),)
            yield from forward(name, router, tokens, f"{tokens} tokens")
    q, kv = GPT_OSS_HEADS * GPT_OSS_HEAD_DIM, GPT_OSS_KV_HEADS * GPT_OSS_HEAD_DIM
    attention = (
        Linear("self_attn.qkv_proj", q + 2 * kv, hidden, True),
        Linear("self_attn.o_proj", hidden, q, True),
    )
    for tokens in (8, 1024):
        yield from forward("GPT-OSS-20B", attention, tokens, f"{tokens} tokens")
    head = (Linear("lm_head", GPT_OSS_VOCAB, hidden),)
    yield from forward("GPT-OSS-20B", head, 8, "decode batch 8")


def latent_attention() -> Iterator[CountedShape]:
    """The projections, and those absorbed into the heads when decoding."""
    for m in LATENT_ATTENTION:
        q = m.heads * (m.nope_dim + m.rope_dim)
        queries: tuple[Linear, ...] = (Linear("q_proj", q, m.hidden),)
        if m.q_rank:
            queries = (Linear("q_a_proj", m.q_rank, m.hidden), Linear("q_b_proj", q, m.q_rank))
        layers = (
            *queries,
            Linear("kv_a_proj_with_mqa", m.kv_rank + m.rope_dim, m.hidden),
            Linear("kv_b_proj", m.heads * (m.nope_dim + m.value_dim), m.kv_rank),
            Linear("o_proj", m.hidden, m.heads * m.value_dim),
        )
        for tokens in m.tokens:
            yield from forward(m.name, layers, tokens, f"{tokens} tokens")
            origin = f"{m.name}, absorbed {{}}, {tokens} tokens"
            keys = (tokens, m.kv_rank, m.nope_dim)
            values = (tokens, m.value_dim, m.kv_rank)
            yield _shape(origin.format("W_UK"), "bmm", *keys, "nn", BF16, m.heads)
            yield _shape(origin.format("W_UV"), "bmm", *values, "nt", BF16, m.heads)


def encoder_block(m: Encoder) -> tuple[Linear, ...]:
    """The linears of one layer."""
    inner, width = m.heads * m.head_dim, m.hidden
    attention = ("attention.query", "attention.key", "attention.value")
    up = ("mlp.gate", "mlp.up") if m.gated else ("mlp.up",)
    down = Linear("mlp.down", width, m.intermediate, m.bias)
    output = Linear("attention.output", width, inner, m.bias)
    if m.fused:
        qkv = Linear("attention.Wqkv", len(attention) * inner, width, m.bias)
        return (qkv, output, Linear("mlp.Wi", len(up) * m.intermediate, width, m.bias), down)
    return (
        *(Linear(name, inner, width, m.bias) for name in attention),
        output,
        *(Linear(name, m.intermediate, width, m.bias) for name in up),
        down,
    )


def encoders() -> Iterator[CountedShape]:
    """BERT and its kin, T5."""
    for m in ENCODERS:
        layers = encoder_block(m)
        for batch, length in m.inputs:
            setting = f"{batch}x{length} tokens"
            yield from forward(m.name, layers, batch * length, setting, m.precision)
        if m.vocab:
            batch = m.inputs[0][0]
            head = (Linear("lm_head", m.vocab, m.hidden, m.bias),)
            yield from forward(m.name, head, batch, f"one position, batch {batch}", m.precision)


def small_models() -> Iterator[CountedShape]:
    """GPT-2 and NanoGPT."""
    for m in SMALL:
        layers = (
            Linear("attn.c_attn", 3 * m.hidden, m.hidden, m.bias),
            Linear("attn.c_proj", m.hidden, m.hidden, m.bias),
            Linear("mlp.c_fc", 4 * m.hidden, m.hidden, m.bias),
            Linear("mlp.c_proj", m.hidden, 4 * m.hidden, m.bias),
        )
        head = (Linear("lm_head", m.vocab, m.hidden),)
        for batch, length in m.tokens:
            setting = f"{batch}x{length} tokens"
            yield from forward(m.name, layers, batch * length, setting, m.precision, m.conv1d)
            yield from forward(m.name, head, batch, f"decode batch {batch}", m.precision)


def vision() -> Iterator[CountedShape]:
    """Vision transformers; Swin and ConvNeXt stages; the heads of convolutional nets."""
    for m in VISION:
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
    for name, features, batch in CONV_NET_HEADS:
        yield from forward(name, (Linear("fc", 1000, features, True),), batch, f"batch {batch}")


def vision_stages(batch: int, precision: Precision) -> Iterator[CountedShape]:
    """Swin-T's and ConvNeXt-T's pyramid: many rows and few channels first, then the reverse."""
    for stage, (channels, side) in enumerate(STAGES, start=1):
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
        if stage < len(STAGES):
            merge = (Linear("downsample.reduction", 2 * channels, 4 * channels),)
            yield from forward("Swin-T", merge, rows // 4, setting, precision)


def diffusion() -> Iterator[CountedShape]:
    """U-Nets' attention blocks and time embeddings, and diffusion transformers."""
    for m in UNETS:
        time = (
            Linear("time_embedding.linear_1", m.embedding, UNET_BASE, True),
            Linear("time_embedding.linear_2", m.embedding, m.embedding, True),
            *(Linear(f"time_emb_proj to {c}", c, m.embedding, True) for c in (320, 640, 1280)),
        )
        yield from forward(m.name, time, m.batch, f"batch {m.batch}", FP16)
        for level in m.levels:
            yield from _unet_level(m.name, m.text_width, level, m.batch)
    added = (Linear("add_embedding.linear_1", 1280, SDXL_ADDED, True),)
    yield from forward("SDXL 1024px", added, 2, "batch 2", FP16)
    for name, layer, out, into, rows in DIT_LAYERS:
        precision = FP16 if name.startswith("SD3") else BF16
        for count in rows:
            linear = (Linear(layer, out, into, True),)
            yield from forward(name, linear, count, f"{count} rows", precision)


def _unet_level(name: str, text: int, level: Level, batch: int) -> Iterator[CountedShape]:
    width, rows = level.channels, batch * level.tokens
    image = (
        Linear("attn1.to_q", width, width),
        Linear("attn1.to_out.0", width, width, True),
        Linear("ff.net.0.proj", 8 * width, width, True),
        Linear("ff.net.2", width, 4 * width, True),
    )
    setting = f"{level.tokens} tokens, batch {batch}"
    yield from forward(name, image, rows, setting, FP16)
    context = (Linear("attn2.to_k", width, text), Linear("attn2.to_v", width, text))
    rows = batch * UNET_TEXT_TOKENS
    setting = f"{width} channels, batch {batch}"
    yield from forward(name, context, rows, setting, FP16)


def speech() -> Iterator[CountedShape]:
    """Whisper, wav2vec 2.0, HuBERT, Conformer."""
    for m in WHISPER:
        width = m.width
        block = (
            Linear("self_attn.q_proj", width, width, True),
            Linear("self_attn.k_proj", width, width),
            Linear("fc1", 4 * width, width, True),
            Linear("fc2", width, 4 * width, True),
        )
        for batch in m.batches:
            rows, setting = batch * WHISPER_FRAMES, f"encoder, batch {batch}"
            yield from forward(m.name, block, rows, setting, m.precision)
            head = (Linear("proj_out", m.vocab, width),)
            setting = f"decode batch {batch}"
            yield from forward(m.name, (*block, *head), batch, setting, m.precision)
    for name, width, inner, frames, batches, precision in SPEECH_ENCODERS:
        layers = (
            Linear("attention.q_proj", width, width, True),
            Linear("feed_forward.up", inner, width, True),
            Linear("feed_forward.down", width, inner, True),
        )
        for batch in batches:
            yield from forward(name, layers, batch * frames, f"batch {batch}", precision)
            if name.startswith("Conformer"):
                position = (Linear("attention.linear_pos", width, width),)
                rows = 2 * frames - 1
                yield from forward(name, position, rows, "relative positions", precision)
    for name, layer, out, into, frames, batches, precision in SPEECH_EXTRAS:
        for batch in batches:
            linear = (Linear(layer, out, into, True),)
            yield from forward(name, linear, batch * frames, f"batch {batch}", precision)


def _stack(name: str, widths: tuple[int, ...]) -> tuple[Linear, ...]:
    return tuple(
        Linear(f"{name}.{i}", out, into, True) for i, (into, out) in enumerate(pairwise(widths))
    )


def recommenders() -> Iterator[CountedShape]:
    """DLRM and its interactions, DCN v2, towers, and smaller MLPs."""
    for batch, precision in DLRM_BATCHES:
        layers = (*_stack("bottom", DLRM_BOTTOM), *_stack("top", DLRM_TOP))
        setting = f"batch {batch}"
        yield from forward("DLRM MLPerf", layers, batch, setting, precision)
        sizes = (DLRM_VECTORS, DLRM_VECTORS, DLRM_WIDTH)
        origin = f"DLRM MLPerf, interaction, {setting}"
        yield _shape(origin, "bmm", *sizes, "nt", precision, batch)
    cross = (Linear("cross.V", DCN_RANK, DCN_INPUT), Linear("cross.W", DCN_INPUT, DCN_RANK, True))
    for batch, precision in DCN_BATCHES:
        layers = (*cross, *_stack("over", DCN_TOP))
        yield from forward("DLRM-v2 MLPerf", layers, batch, f"batch {batch}", precision)
    for name, widths, batch, precision in MLPS:
        yield from forward(name, _stack("mlp", widths), batch, f"{batch} rows", precision)
    for name, batch, width, precision in RETRIEVAL:
        origin = f"{name}, in-batch logits, batch {batch}"
        yield _shape(origin, "mm", batch, batch, width, "nt", precision)


def reinforcement() -> Iterator[CountedShape]:
    """SAC's actor and critic; MBPO's ensemble of dynamics models, all in one batched product."""
    observations, actions = HALF_CHEETAH
    actor = _stack("actor", (observations, SAC_HIDDEN, SAC_HIDDEN, 2 * actions))
    critic = _stack("critic", (observations + actions, SAC_HIDDEN, SAC_HIDDEN, 1))
    for batch in SAC_BATCHES:
        layers = actor if batch == 1 else (*actor, *critic)  # acting needs no critic
        yield from forward("SAC HalfCheetah", layers, batch, f"batch {batch}", FP32)
    observations, actions = HOPPER
    hidden, outputs = MBPO_HIDDEN, 2 * (observations + 1)  # mean and variance, of the reward too
    for batch in MBPO_BATCHES:
        for layer in _stack("ensemble", (observations + actions, hidden, hidden, outputs)):
            origin = f"MBPO Hopper, {layer.name}, {MBPO_MODELS} models, batch {batch}"
            sizes = (batch, layer.outputs, layer.inputs)
            yield _shape(origin, "baddbmm", *sizes, "nn", FP32, MBPO_MODELS, "vector")


def attention() -> Iterator[CountedShape]:
    """The batched products of attention, where it is not one fused kernel."""
    for case in ATTENTION:
        yield from attend(case)


def training() -> Iterator[CountedShape]:
    """Linear layers forward and backward."""
    for m in TRAINED:
        layers = (Linear(m.layer, m.outputs, m.inputs, m.bias),)
        setting = f"training {m.rows} rows"
        yield from forward(m.name, layers, m.rows, setting, m.precision, m.conv1d)
        yield from backward(m.name, layers, m.rows, setting, m.precision, m.conv1d)


def adapters() -> Iterator[CountedShape]:
    """LoRA: down to the rank and up again."""
    for name, layer, out, into, ranks, tokens, trained in ADAPTERS:
        precision = FP16 if name.startswith("SDXL") else BF16
        for rank in ranks:
            layers = (Linear(f"{layer}.lora_A", rank, into), Linear(f"{layer}.lora_B", out, rank))
            setting = f"rank {rank}, {tokens} tokens"
            yield from forward(name, layers, tokens, setting, precision)
            if trained:
                yield from backward(name, layers, tokens, setting, precision)


FAMILIES: dict[str, Callable[[], Iterator[CountedShape]]] = {
    "LLM decode": llm_decode,
    "LLM prefill": llm_prefill,
    "MoE and latent attention": mixtures,
    "text encoders": encoders,
    "small language models": small_models,
    "vision": vision,
    "diffusion": diffusion,
    "speech": speech,
    "recommenders": recommenders,
    "reinforcement learning": reinforcement,
    "attention": attention,
    "training": training,
    "LoRA": adapters,
}


# --------------------------------------------------------------------------------------- the file


def real_shapes() -> OperationShapeSet:
    """All problems of all families, each once, counted."""
    return OperationShapeSet.of(_checked(s) for family in FAMILIES.values() for s in family())


def by_family() -> dict[str, int]:
    """How many problems each family adds to those before it."""
    seen: set[MMShape] = set()
    added = {}
    for name, family in FAMILIES.items():
        before = len(seen)
        seen.update(shape.problem for shape in family())
        added[name] = len(seen) - before
    return added


def _checked(shape: CountedShape) -> CountedShape:
    """A shape, unless a table above makes one nobody could measure or name."""
    problem = shape.problem
    if problem.bytes_moved > LARGEST_BYTES or problem.flops > LARGEST_FLOPS:
        raise ValueError(f"{shape.origin}: {problem} is too large to measure")
    if not 0 < len(shape.origin) <= LONGEST_ORIGIN:
        raise ValueError(f"{shape.origin}: got {len(shape.origin)} characters; at most 100")
    return shape


def summary(shapes: OperationShapeSet) -> str:
    """How many problems, by op, precision and layout, and by family."""
    kinds = Counter(
        (p.op, p.dtype + (" tf32" if p.tf32 else ""), p.layout) for p in shapes.problems
    )
    layouts = ("nn", "nt", "tn")
    lines = [f"{'op':8} {'dtype':14}" + "".join(f"{x:>6}" for x in layouts)]
    for op, dtype in sorted({kind[:2] for kind in kinds}):
        counts = "".join(f"{kinds[op, dtype, layout]:6}" for layout in layouts)
        lines.append(f"{op:8} {dtype:14}{counts}")
    families = by_family()
    lines += [f"{name:30} {n:5} {n / len(shapes):6.1%}" for name, n in families.items()]
    return "\n".join([*lines, f"{'all':30} {len(shapes):5}"])


def main() -> int:
    """Write the file, say what is in it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="the shape set to write (JSON)")
    options = parser.parse_args()
    shapes = real_shapes()
    try:
        write_shapes(shapes, options.output)
    except OSError as fault:
        print(f"{options.output}: cannot be written: {fault.strerror}", file=sys.stderr)
        return 2
    print(summary(shapes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
