"""Linear layers of any model and their matmul problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from _real_shapes_tables import BF16, Precision

from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import CountedShape

NO_INPUT_GRADIENT = ("bottom.0",)  # its input is data


class Linear(NamedTuple):
    """A linear layer: name, outputs, inputs, bias."""

    name: str
    outputs: int
    inputs: int
    bias: bool = False


def one_shape(
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
    """One problem; a vector counts as row-major."""
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
        yield one_shape(origin, op, rows, layer.outputs, layer.inputs, layout, precision)


def backward(
    model: str,
    layers: Iterable[Linear],
    rows: int,
    setting: str,
    precision: Precision = BF16,
    conv1d: bool = False,
) -> Iterator[CountedShape]:
    """Gradients of the layers with respect to inputs and weights."""
    for layer in layers:
        out, into = layer.outputs, layer.inputs
        origin = f"{model}, {layer.name}, {setting}"
        if layer.name not in NO_INPUT_GRADIENT:
            layout = "nt" if conv1d else "nn"
            yield one_shape(f"{origin}, dX", "mm", rows, into, out, layout, precision)
        weight = (into, out) if conv1d else (out, into)
        yield one_shape(f"{origin}, dW", "mm", *weight, rows, "tn", precision)


def stack(name: str, widths: tuple[int, ...]) -> tuple[Linear, ...]:
    """An MLP with biases, from its widths."""
    return tuple(
        Linear(f"{name}.{i}", out, into, True) for i, (into, out) in enumerate(pairwise(widths))
    )
