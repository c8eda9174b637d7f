"""The C++ kernel of attention outside a compile: for timing, and for a first run in a process of
its own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config as inductor_config
from torch import Tensor
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.lowering import lowerings

from torch_diode.integration.cpu.cpp_attention import AttentionCall

ATEN_ATTENTION: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


def build_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False
) -> Callable[[], Tensor]:
    """Compile the kernel that Inductor would emit for these operands; the call runs it on them.

    Takes about two seconds. Raises where the kernel does not compute this attention.
    """
    operands = [query, key, value, *([] if mask is None else [mask])]
    own = lowerings[ATEN_ATTENTION]
    lowerings[ATEN_ATTENTION] = lambda *args, **kwargs: AttentionCall.of(args, kwargs).kernel()
    try:
        with inductor_config.patch(fx_graph_cache=False), torch.no_grad():
            compiled: Any = compile_fx_inner(_graph(len(operands), causal), operands)
    finally:
        lowerings[ATEN_ATTENTION] = own
    call = compiled.current_callable

    def run() -> Tensor:
        result: Tensor = call(list(operands))[0]
        return result

    return run


def _graph(operands: int, causal: bool) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    query, key, value, *mask = [graph.placeholder(f"operand{i}") for i in range(operands)]
    more: dict[str, Any] = {"attn_mask": mask[0]} if mask else {}
    both = graph.call_function(ATEN_ATTENTION, (query, key, value, 0.0, causal), more)
    graph.output((graph.call_function(operator.getitem, (both, 0)),))
    return torch.fx.GraphModule({}, graph)
