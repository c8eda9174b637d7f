"""Inductor's templates: limits, where it uses them, and what they fuse."""

from __future__ import annotations

import functools
import inspect
from typing import Any


@functools.cache
def max_batch_size() -> int | None:
    """The largest batch of the batched template, whose grid's second dimension it is; None from
    2.12 on, where the grid splits it."""
    from torch._inductor.kernel.bmm import bmm_template

    most = 65535
    blocks = {"BLOCK_M": 16, "BLOCK_N": 16}
    return most if bmm_template.grid(most + 1, 16, 16, blocks)[1] > most else None


def has_lowering(op: Any) -> bool:
    """True if Inductor generates code for an op instead of calling torch's kernel."""
    from torch._inductor import lowering

    return op in lowering.lowerings and op not in lowering.fallbacks


def reads_template(value: Any, graph: Any) -> bool:
    """True if a lowered value is a matmul template's output or an unrealised loop over one."""
    from torch._inductor import ir

    while isinstance(value, (ir.MutableBox, ir.BaseView)):
        value = value.data
    if isinstance(value, ir.Loops):
        sources = [graph.name_to_buffer.get(name) for name in value.get_read_names()]
    else:
        sources = [value]
    return any(isinstance(source, ir.TemplateBuffer) for source in sources)


def offers_tma(mat1: Any, mat2: Any, layout: Any) -> bool:
    """True if Inductor would use its TMA template; adds no guards."""
    import torch._inductor.utils as inductor_utils

    test: Any = inductor_utils.use_triton_tma_template
    if "output_layout" in inspect.signature(test).parameters:
        return bool(test(mat1, mat2, output_layout=layout))
    return bool(test(mat1, mat2))


def tma_template() -> Any | None:
    """The persistent TMA template for chips before Blackwell."""
    import torch._inductor.kernel.mm as mm

    return getattr(mm, "persistent_tma_mm_template", None)
