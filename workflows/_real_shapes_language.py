"""Problems of language models: decoders, mixtures of experts, latent attention, encoders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from _real_shapes_layers import Linear, forward, one_shape
from _real_shapes_tables import BF16, Precision, read_table

from torch_diode.types.shapes import CountedShape


class Decoder(NamedTuple):
    """A decoder-only language model with dense MLPs, and the settings to derive problems for."""

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
    """One token per sequence, with logits."""
    for model in read_table("decoders", Decoder):
        head = Linear("lm_head", model.vocab // model.shards, model.hidden)
        layers = (*decoder_block(model), head)
        for batch in model.decode:
            setting = f"decode batch {batch}"
            yield from forward(_named(model), layers, batch, setting, model.precision)


def llm_prefill() -> Iterator[CountedShape]:
    """Whole prompts; only the last token needs logits, which is a decoding problem."""
    for model in read_table("decoders", Decoder):
        for tokens in model.prefill:
            layers = decoder_block(model)
            setting = f"prefill {tokens} tokens"
            yield from forward(_named(model), layers, tokens, setting, model.precision)


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


class GptOss(NamedTuple):
    """GPT-OSS: experts stored as (experts, in, out) with a bias, multiplied in one batch."""

    name: str
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    experts: int
    capacities: tuple[int, ...]  # tokens an expert
    router_tokens: tuple[int, ...]
    attention_tokens: tuple[int, ...] = ()
    decode: tuple[int, ...] = ()  # batch sizes of the head


class LatentAttention(NamedTuple):
    """DeepSeek's multi-head latent attention."""

    name: str
    hidden: int
    heads: int
    q_rank: int  # 0: queries are projected in one step
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    tokens: tuple[int, ...]


def mixtures() -> Iterator[CountedShape]:
    """Routers and experts, one by one and batched; then latent attention."""
    for model in read_table("mixtures", Mixture):
        for tokens in model.tokens:
            yield from _mixture(model, tokens)
        inner, hidden = model.expert_intermediate, model.hidden
        for rows in model.capacities:
            where = f"capacity {rows}"
            for name, out, into in (("w13", 2 * inner, hidden), ("w2", hidden, inner)):
                origin = f"{model.name}, experts.{name}, {where}"
                yield one_shape(origin, "bmm", rows, out, into, "nt", BF16, model.experts)
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
    models = read_table("gpt_oss", GptOss)
    for m in models:
        for rows in m.capacities:
            for layer, out, into in (
                ("gate_up_proj", 2 * m.intermediate, m.hidden),
                ("down_proj", m.hidden, m.intermediate),
            ):
                origin = f"{m.name}, experts.{layer}, {rows} tokens an expert"
                yield one_shape(origin, "baddbmm", rows, out, into, "nn", BF16, m.experts, "vector")
        for tokens in m.router_tokens:
            router = (Linear("mlp.router", m.experts, m.hidden, True),)
            yield from forward(m.name, router, tokens, f"{tokens} tokens")
    for m in models:
        q, kv = m.heads * m.head_dim, m.kv_heads * m.head_dim
        attention = (
            Linear("self_attn.qkv_proj", q + 2 * kv, m.hidden, True),
            Linear("self_attn.o_proj", m.hidden, q, True),
        )
        for tokens in m.attention_tokens:
            yield from forward(m.name, attention, tokens, f"{tokens} tokens")
        head = (Linear("lm_head", m.vocab, m.hidden),)
        for batch in m.decode:
            yield from forward(m.name, head, batch, f"decode batch {batch}")


def latent_attention() -> Iterator[CountedShape]:
    """The projections, and those absorbed into the heads when decoding."""
    for m in read_table("latent_attention", LatentAttention):
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
            yield one_shape(origin.format("W_UK"), "bmm", *keys, "nn", BF16, m.heads)
            yield one_shape(origin.format("W_UV"), "bmm", *values, "nt", BF16, m.heads)


class Encoder(NamedTuple):
    """A text encoder, or an encoder-decoder's stack, and its (batch, sequence) pairs."""

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
    """BERT-like models and T5."""
    for m in read_table("encoders", Encoder):
        layers = encoder_block(m)
        for batch, length in m.inputs:
            setting = f"{batch}x{length} tokens"
            yield from forward(m.name, layers, batch * length, setting, m.precision)
        if m.vocab:
            batch = m.inputs[0][0]
            head = (Linear("lm_head", m.vocab, m.hidden, m.bias),)
            yield from forward(m.name, head, batch, f"one position, batch {batch}", m.precision)


class Small(NamedTuple):
    """A small language model; `conv1d`: weights stored as (in, out), as GPT-2 publishes them."""

    name: str
    hidden: int
    vocab: int
    tokens: tuple[tuple[int, int], ...]  # batch and sequence
    precision: Precision
    bias: bool = True
    conv1d: bool = False


def small_models() -> Iterator[CountedShape]:
    """GPT-2 and NanoGPT."""
    for m in read_table("small", Small):
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
