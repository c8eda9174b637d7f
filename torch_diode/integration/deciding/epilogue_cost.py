"""The cost of a matmul's epilogue, which a Triton template fuses and ATen does not.

Pointwise ops on a product (bias, activation, residual, cast) become part of a Triton template.
After ATen they are a separate kernel, which reads the product back and writes the result, while the
template writes the result in the product's place. Other operands are read either way. A separate
kernel computes while it waits for memory; a template computes at the end of each block, where
nothing overlaps. So ATen costs

    LAUNCH_US + (the product's bytes, twice) / memory bandwidth - (steps of slow functions) / rate

more, the second term scaled down where product and result fit the L2. `benchmarks/epilogues.py`
fits the constants; these are an H200's.

An epilogue counts only where the fusion is certain: the product is read by pointwise ops alone,
over the same elements, and is not an output; they have one result, which is read by kernels that
fuse nothing (a matmul, an attention, a convolution) or returned. A reduction after them would fuse
with them in either case. An epilogue of two matmuls counts once.

Prologues are not counted: neither ATen nor a single template fuses them
(`torch_compat.disable_prologue_fusion`; `benchmarks/prologues.py` shows what they would cost).
Epilogues need no additional shared memory: Triton passes the accumulator on in parts, through
memory that the main loop no longer uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch._inductor.config as inductor_config
from torch.fx import Node

from torch_diode.integration.hooks import torch_compat
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape

LAUNCH_US = 1.2
IN_L2, IN_MEMORY = 0.7, 1.0
"""Fraction of the traffic that counts, by where product and result fit."""
LONG, SHORT = 22, 6
STEPS = {
    **dict.fromkeys(("erf", "erfc", "tanh", "sin", "cos", "pow", "expm1", "log1p"), LONG),
    **dict.fromkeys(("exp", "exp2", "sigmoid", "log", "log2"), SHORT),
}
"""Steps per element of slow functions; erf and exp were measured, the others resemble one."""
LANES = 128
LEAST_TILE = 64 * 64
"""A unit computes at least one block of the product."""

_MATMULS = frozenset({"aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm"})
_UNFUSED = _MATMULS | {
    "aten.convolution",
    "aten._scaled_mm",
    "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_cudnn_attention",
}
"""Kernels that fuse nothing before them."""
_RESHAPES = frozenset(
    {"aten.view", "aten.reshape", "aten._unsafe_view", "aten.unsqueeze", "aten.squeeze"}
)
"""Ops that keep the elements and their order."""
_MAX_NODES = 32


@dataclass(frozen=True)
class Epilogue:
    """Pointwise ops that a template would fuse."""

    ops: tuple[str, ...]
    elements: int
    product_bytes: int

    def extra_us(self, hardware: Hardware) -> float:
        """Additional time of ATen over a template; 0 where the chip's rates are not known."""
        if not (hardware.memory_gbps and hardware.units and hardware.clock_mhz):
            return 0.0
        share = IN_L2 if self.fits_l2(hardware) else IN_MEMORY
        steps = sum(STEPS.get(op, 0) for op in self.ops)
        return max(
            LAUNCH_US + share * self.moving_us(hardware) - steps * self.step_us(hardware), 0.0
        )

    def fits_l2(self, hardware: Hardware) -> bool:
        """True if product and result fit the L2."""
        return 2 * self.product_bytes <= hardware.l2_bytes

    def moving_us(self, hardware: Hardware) -> float:
        """Time to move product and result at memory bandwidth."""
        return 2 * self.product_bytes / (hardware.memory_gbps * 1e3)

    def step_us(self, hardware: Hardware) -> float:
        """Time of one step for every element."""
        elements = max(self.elements, LEAST_TILE * hardware.units)
        return elements / (LANES * hardware.units * hardware.clock_mhz)


def expand_bias_us(problem: MMShape, hardware: Hardware) -> float:
    """Additional time of a template for a bias of one element, which a kernel expands first."""
    if not hardware.memory_gbps:
        return LAUNCH_US
    written = problem.M * problem.N * DTYPE_BYTES[problem.out_dtype]
    share = IN_L2 if written <= hardware.l2_bytes else IN_MEMORY
    return LAUNCH_US + share * written / (hardware.memory_gbps * 1e3)


def epilogue_of(graph: Any) -> Epilogue | None:
    """The epilogue of the matmul that this graph is lowering; None where no fusion is certain."""
    node = graph.current_node
    if not isinstance(node, Node) or _name(node) not in _MATMULS:
        return None
    if not inductor_config.epilogue_fusion:
        return None
    count = _elements(node)
    if not count:
        return None
    members = _pointwise_after(node, count)
    if not members or _fuses_elsewhere(node, members, graph):
        return None
    ops = tuple(_name(member).rpartition(".")[2] for member in members)
    return Epilogue(ops, count, count * node.meta["val"].dtype.itemsize)


def _pointwise_after(matmul: Node, count: int) -> dict[Node, None]:
    """All pointwise nodes that depend on the product; empty where the product or an intermediate
    result is also used otherwise."""
    members: dict[Node, None] = {}
    ends: set[Node] = set()
    waiting = [matmul]
    while waiting:
        node = waiting.pop(0)
        for reader in _readers(node):
            if reader in members:
                continue
            if _is_fusible(reader, matmul, count):
                members[reader] = None
                waiting.append(reader)
            elif node is not matmul and _is_unfused(reader):
                ends.add(node)
            else:
                return {}
        if len(members) > _MAX_NODES or len(ends) > 1:
            return {}
    return members


def _is_fusible(node: Node, matmul: Node, count: int) -> bool:
    """True for a pointwise op of the product's size that a template can fuse."""
    if not _is_pointwise(node) or _elements(node) != count:
        return False
    reshaped = node.meta["val"].dim() != matmul.meta["val"].dim()
    return not reshaped or torch_compat.fuses_reshaped_epilogues()


def _fuses_elsewhere(matmul: Node, members: Iterable[Node], graph: Any) -> bool:
    """True if the epilogue also reads the product of another matmul that may fuse it: one lowered
    later, or lowered to a template."""
    own = {matmul, *members}
    seen: set[Node] = set()
    waiting = [source for member in members for source in member.all_input_nodes]
    while waiting:
        node = waiting.pop()
        if node in own or node in seen:
            continue
        seen.add(node)
        if len(seen) > 4 * _MAX_NODES:
            return True
        if node in graph.env:
            if torch_compat.reads_template(graph.env[node], graph):
                return True
        elif _name(node) in _MATMULS:
            return True
        elif _is_pointwise(node) or _is_view(node):
            waiting += node.all_input_nodes
    return False


def _readers(node: Node) -> Iterator[Node]:
    """The nodes that read a value, through reshapes; without dead pointwise ops."""
    for user in node.users:
        if not user.users and _is_pointwise(user):
            continue
        if _name(user) in _RESHAPES:
            yield from _readers(user)
        else:
            yield user


def _is_unfused(node: Node) -> bool:
    """True if the inputs of this node have to be in memory before it starts."""
    if node.op == "output" or _name(node) in _UNFUSED:
        return True
    return _is_view(node) and all(_is_unfused(user) for user in _readers(node))


def _is_pointwise(node: Node) -> bool:
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    if torch.Tag.pointwise not in target.tags or target._schema.is_mutable:
        return False
    return torch_compat.has_lowering(target)


def _is_view(node: Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if _name(node) in _RESHAPES:
        return True
    return not target._schema.is_mutable and any(a.alias_info for a in target._schema.arguments)


def _name(node: Node) -> str:
    """The op without its overload, such as aten.mm."""
    return str(node.target).rpartition(".")[0] if node.op == "call_function" else ""


def _elements(node: Node) -> int:
    """Number of elements, with symbols at their traced sizes; 0 where unknown."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return 0
    count = 1
    for size in value.shape:
        number = torch_compat.traced_size_or_none(size)
        if number is None:
            return 0
        count *= number
    return count
