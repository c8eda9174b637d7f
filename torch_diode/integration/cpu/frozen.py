"""Linears of frozen graphs: torch packs their constant weight for a library, or a heuristic decides
otherwise.

Freezing rewrites `mm` and `addmm` with a constant weight before the graph is lowered. A linear left
as it is reaches the lowering as any matmul does, with a constant weight: there the decision taken
here is read off its node.
"""

from __future__ import annotations

from typing import Any

import torch
import torch._inductor.config as inductor_config
from torch._inductor.select_algorithm import ExternKernelCaller
from torch._inductor.virtualized import V

from torch_diode.candidates.cpu.libraries import PLAIN
from torch_diode.integration.cpu import onednn
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import CPP_GEMM, MKL_PACKED, ONEDNN_PACKED, PACKED, Candidate

_DECISION = "torch_diode"
"""The key of a node's metadata under which the decision on its linear is kept."""


class FrozenLinear:
    """An `mm` or `addmm` of the graph that is about to have its weight packed."""

    def __init__(self, node: Any) -> None:
        self.node = node
        with_bias = node.target is torch.ops.aten.addmm.default
        self.op = "addmm" if with_bias else "mm"
        self._bias, self._a, self._b = node.args if with_bias else (None, *node.args)
        self.inputs = FrozenInputs(node)
        """The operands, in the form of Inductor's kernel inputs."""

    @property
    def device(self) -> Any:
        """The device of the matmul."""
        return self._a.meta["val"].device

    @property
    def has_static_rows(self) -> bool:
        """True if the number of rows is a number, not a symbol."""
        return isinstance(self._a.meta["val"].shape[0], int)

    @property
    def own(self) -> str:
        """The library that torch packs the weight for."""
        is_float32 = self._b.meta["val"].dtype == torch.float32
        if is_float32 and self.has_static_rows and torch_compat.packs_float32_for_mkl():
            return MKL_PACKED
        return ONEDNN_PACKED

    @property
    def max_autotune(self) -> bool:
        """True if the lowering will autotune the linear."""
        return bool(inductor_config.max_autotune or inductor_config.max_autotune_gemm)

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries that can run it."""
        return tuple(dict.fromkeys((*PLAIN, ONEDNN_PACKED, self.own)))

    def keep(self, candidate: Candidate) -> None:
        """Keep the decision on the node, for the lowering of what becomes of it."""
        self.node.meta[_DECISION] = candidate

    def apply(self, candidate: Candidate) -> None:
        """Pack the weight for oneDNN, or leave the node to the lowering, with the decision."""
        if candidate.template != ONEDNN_PACKED:
            return
        rows = self._a.meta["val"].shape[0]
        torch_compat.pack_for_onednn(self.node, self._a, self._b, self._bias, rows)


class FrozenInputs:
    """A linear's operands as `problem_of` reads them: the bias first, if there is one."""

    def __init__(self, node: Any) -> None:
        self._operands = [FrozenOperand(operand.meta["val"]) for operand in node.args]
        self._scalars = node.kwargs

    def nodes(self) -> list[FrozenOperand]:
        """All operands."""
        return self._operands

    def mat1mat2(self) -> tuple[FrozenOperand, FrozenOperand]:
        """The two matrices."""
        return self._operands[-2], self._operands[-1]


class FrozenOperand:
    """An operand's fake tensor, with the methods of Inductor's nodes; symbols as their hints."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get_size(self) -> list[int]:
        """The sizes."""
        return [torch_compat.traced_size(size) for size in self._value.shape]

    def get_stride(self) -> list[int]:
        """The strides."""
        return [torch_compat.traced_size(step) for step in self._value.stride()]

    maybe_get_stride = get_stride

    def get_dtype(self) -> Any:
        """The dtype."""
        return self._value.dtype

    def get_device(self) -> Any:
        """The device."""
        return self._value.device


def decision_here() -> Candidate | None:
    """The decision on the linear that is being lowered; None where none was taken."""
    node = getattr(V.graph, "current_node", None)
    return None if node is None else node.meta.get(_DECISION)


def keep_decided(choices: list[Any]) -> list[Any]:
    """The library's kernel alone, where a linear was decided and its weight packed: max-autotune
    would time it against a kernel of the C++ template again."""
    decided = decision_here()
    if decided is None or decided.template not in PACKED:
        return choices
    return [choice for choice in choices if isinstance(choice, ExternKernelCaller)] or choices


def embeds_packed_weights(gm: Any) -> bool:
    """True if code generated for a graph will contain weights packed by the C++ template.

    Torch's graph cache identifies frozen weights by their sizes and takes them from the module, but
    stores those packed while lowering: it would serve them to a module with other weights.
    """
    decisions = (node.meta.get(_DECISION) for node in gm.graph.nodes)
    return any(decision is not None and decision.template == CPP_GEMM for decision in decisions)


def why_unavailable() -> str:
    """The reason frozen linears are torch's under its settings now; empty where they are not."""
    if torch_compat.compiles_in_subprocess():
        return "graphs are compiled in a subprocess, without torch-diode"
    return onednn.why_unavailable()
