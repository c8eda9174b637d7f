"""What follows a matmul in its graph, where a Triton kernel takes it along and ATen does not.

Pointwise work on a product (a bias, an activation, a product with something else, a sum, a cast)
becomes part of a Triton template. After ATen it is a kernel of its own: that one starts, reads the
product back and writes its result, while the template writes the result in the product's place.
What else the work reads both ways have in common. But a kernel of its own computes while it waits
for memory, and a template at the end of each block, where nothing else goes on. So ATen pays

    LAUNCH_US + (the product's bytes, twice) / memory bandwidth - (steps of slow functions) / rate

more, the second by a share where it finds room in the L2. `benchmarks/epilogues.py` fits the
constants on a chip; these are an H200's.

It is added only where all of that is plain to see. The product is read by pointwise work alone,
over the same elements, and is no output; the work has one result, and that goes to kernels that
fuse with nothing (a matmul, an attention, a convolution) or out of the graph. A reduction behind
it would have made one kernel with it anyway. Work on the products of two matmuls is counted once.

What comes before a matmul is not counted: neither ATen nor a template takes it along, since a
choice that runs alone is told to leave its operands as they are (`releases.disable_prologue_fusion`;
`benchmarks/prologues.py` shows what it would cost).

That a template takes the work along does not endanger it: Triton hands the accumulator over in
parts, through shared memory the main loop no longer needs, and compiled kernels with such work
were seen to need not a byte more than those without.
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
"""The share of the traffic that counts, by where product and result find room."""
LONG, SHORT = 22, 6
STEPS = {
    **dict.fromkeys(("erf", "erfc", "tanh", "sin", "cos", "pow", "expm1", "log1p"), LONG),
    **dict.fromkeys(("exp", "exp2", "sigmoid", "log", "log2"), SHORT),
}
"""What the slow functions take of each lane, an element; erf and exp were measured, the others are
like one of them."""
LANES = 128
LEAST_TILE = 64 * 64
"""A unit does no less than a block of the product."""

_MATMULS = frozenset({"aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm"})
_ALONE = _MATMULS | {
    "aten.convolution",
    "aten._scaled_mm",
    "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_cudnn_attention",
}
"""Kernels that take nothing along that comes before them."""
_REGROUPING = frozenset(
    {"aten.view", "aten.reshape", "aten._unsafe_view", "aten.unsqueeze", "aten.squeeze"}
)
"""The same elements in the same order."""
_MOST_NODES = 32


@dataclass(frozen=True)
class Epilogue:
    """Pointwise work that a template would take along."""

    ops: tuple[str, ...]
    """The name of each, in the order they are met."""
    elements: int
    product_bytes: int

    def extra_us(self, hardware: Hardware) -> float:
        """What ATen pays more than a template; nothing where the chip's rates are not known."""
        if not (hardware.memory_gbps and hardware.units and hardware.clock_mhz):
            return 0.0
        share = IN_L2 if self.fits_l2(hardware) else IN_MEMORY
        steps = sum(STEPS.get(op, 0) for op in self.ops)
        return max(
            LAUNCH_US + share * self.moving_us(hardware) - steps * self.step_us(hardware), 0.0
        )

    def fits_l2(self, hardware: Hardware) -> bool:
        """Whether product and result find room there."""
        return 2 * self.product_bytes <= hardware.l2_bytes

    def moving_us(self, hardware: Hardware) -> float:
        """Product and result at the memory's rate."""
        return 2 * self.product_bytes / (hardware.memory_gbps * 1e3)

    def step_us(self, hardware: Hardware) -> float:
        """One step of a lane for every element."""
        elements = max(self.elements, LEAST_TILE * hardware.units)
        return elements / (LANES * hardware.units * hardware.clock_mhz)


def expand_bias_us(problem: MMShape, hardware: Hardware) -> float:
    """What a template pays for a bias of one element: a kernel that writes it out first."""
    if not hardware.memory_gbps:
        return LAUNCH_US
    written = problem.M * problem.N * DTYPE_BYTES[problem.out_dtype]
    share = IN_L2 if written <= hardware.l2_bytes else IN_MEMORY
    return LAUNCH_US + share * written / (hardware.memory_gbps * 1e3)


def epilogue_of(graph: Any) -> Epilogue | None:
    """What follows the matmul this graph is lowering now; None where nothing certain does."""
    node = graph.current_node
    if not isinstance(node, Node) or _name(node) not in _MATMULS:
        return None
    if not inductor_config.epilogue_fusion:
        return None
    count = _elements(node)
    if not count:
        return None
    members = _pointwise_after(node, count)
    if not members or _is_anothers(node, members, graph):
        return None
    ops = tuple(_name(member).rpartition(".")[2] for member in members)
    return Epilogue(ops, count, count * node.meta["val"].dtype.itemsize)


def _pointwise_after(matmul: Node, count: int) -> dict[Node, None]:
    """The pointwise nodes that work on the product, by way of one another; none where the product
    or anything on the way is needed apart from them."""
    members: dict[Node, None] = {}
    ends: set[Node] = set()
    waiting = [matmul]
    while waiting:
        node = waiting.pop(0)
        for reader in _readers(node):
            if reader in members:
                continue
            if _is_taken_along(reader, matmul, count):
                members[reader] = None
                waiting.append(reader)
            elif node is not matmul and _fuses_with_nothing(reader):
                ends.add(node)
            else:
                return {}
        if len(members) > _MOST_NODES or len(ends) > 1:
            return {}
    return members


def _is_taken_along(node: Node, matmul: Node, count: int) -> bool:
    """Whether this is pointwise work of the product's size that a template can do."""
    if not _is_pointwise(node) or _elements(node) != count:
        return False
    regrouped = node.meta["val"].dim() != matmul.meta["val"].dim()
    return not regrouped or torch_compat.fuses_reshaped_epilogues()


def _is_anothers(matmul: Node, members: Iterable[Node], graph: Any) -> bool:
    """Whether the work also reads another matmul's product, and may go with that one: it comes
    later, or has been made a template."""
    own = {matmul, *members}
    seen: set[Node] = set()
    waiting = [source for member in members for source in member.all_input_nodes]
    while waiting:
        node = waiting.pop()
        if node in own or node in seen:
            continue
        seen.add(node)
        if len(seen) > 4 * _MOST_NODES:
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
    """Who reads a value, in its own grouping of dimensions or another; not what nobody reads."""
    for user in node.users:
        if not user.users and _is_pointwise(user):
            continue
        if _name(user) in _REGROUPING:
            yield from _readers(user)
        else:
            yield user


def _fuses_with_nothing(node: Node) -> bool:
    """Whether what this reads has to be in memory before it starts."""
    if node.op == "output" or _name(node) in _ALONE:
        return True
    return _is_view(node) and all(_fuses_with_nothing(user) for user in _readers(node))


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
    if _name(node) in _REGROUPING:
        return True
    return not target._schema.is_mutable and any(a.alias_info for a in target._schema.arguments)


def _name(node: Node) -> str:
    """Such as aten.mm, whichever overload it is."""
    return str(node.target).rpartition(".")[0] if node.op == "call_function" else ""


def _elements(node: Node) -> int:
    """How many a tensor has, symbols at the sizes they were seen at; 0 where that is not known."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return 0
    count = 1
    for size in value.shape:
        seen = torch_compat.traced_size_or_none(size)
        if seen is None:
            return 0
        count *= seen
    return count
