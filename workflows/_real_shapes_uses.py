"""Problems of unfused attention, training and LoRA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from _real_shapes_layers import Linear, backward, forward, one_shape
from _real_shapes_tables import BF16, Precision, read_table

from torch_diode.types.shapes import CountedShape


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
    bias: str = ""  # "vector" (ALiBi) or "matrix" (mask): the scores are a baddbmm
    backward: bool = False


def attend(case: Attention) -> Iterator[CountedShape]:
    """Scores and weighted values; in training also their four gradients."""
    batch, q, k, dim = case.batch * case.heads, case.queries, case.keys, case.dim
    value = case.value_dim or dim
    op = "baddbmm" if case.bias else "bmm"

    def product(name: str, op: str, M: int, N: int, K: int, layout: str) -> CountedShape:
        origin = f"{case.name}, attention {name}, {case.setting}"
        bias = case.bias if op == "baddbmm" else ""
        return one_shape(origin, op, M, N, K, layout, case.precision, batch, bias)

    yield product("QK^T", op, q, k, dim, "nt")
    yield product("PV", "bmm", q, value, k, "nn")
    if case.backward:
        yield product("dP", "bmm", q, k, value, "nt")
        yield product("dQ", "bmm", q, dim, k, "nn")
        yield product("dK", "bmm", k, dim, q, "tn")
        yield product("dV", "bmm", k, value, q, "tn")


def attention() -> Iterator[CountedShape]:
    """Batched products of unfused attention."""
    for case in read_table("attention", Attention):
        yield from attend(case)


class Trained(NamedTuple):
    """A linear layer in training: outputs, inputs and rows (tokens or samples)."""

    name: str
    layer: str
    outputs: int
    inputs: int
    rows: int
    precision: Precision
    bias: bool = False
    conv1d: bool = False


def training() -> Iterator[CountedShape]:
    """Linear layers forward and backward."""
    for m in read_table("trained", Trained):
        layers = (Linear(m.layer, m.outputs, m.inputs, m.bias),)
        setting = f"training {m.rows} rows"
        yield from forward(m.name, layers, m.rows, setting, m.precision, m.conv1d)
        yield from backward(m.name, layers, m.rows, setting, m.precision, m.conv1d)


class Adapter(NamedTuple):
    """LoRA on one layer of a model, at several ranks."""

    name: str
    layer: str
    outputs: int
    inputs: int
    ranks: tuple[int, ...]
    tokens: int
    trained: bool
    precision: Precision = BF16


def adapters() -> Iterator[CountedShape]:
    """LoRA: down to the rank and up again."""
    for m in read_table("adapters", Adapter):
        for rank in m.ranks:
            layers = (
                Linear(f"{m.layer}.lora_A", rank, m.inputs),
                Linear(f"{m.layer}.lora_B", m.outputs, rank),
            )
            setting = f"rank {rank}, {m.tokens} tokens"
            yield from forward(m.name, layers, m.tokens, setting, m.precision)
            if m.trained:
                yield from backward(m.name, layers, m.tokens, setting, m.precision)
