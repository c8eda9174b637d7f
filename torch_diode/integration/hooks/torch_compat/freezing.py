"""Freezing's linear layers, whose constant weight oneDNN packs."""

from __future__ import annotations

import functools
from typing import Any


def linear_patterns() -> list[Any]:
    """The patterns by which freezing finds linears and packs their weight; each has a `handler`.

    Registers all of freezing's patterns, as its pass does first of all.
    """
    from torch._inductor.fx_passes import freezing_patterns, mkldnn_fusion

    freezing_patterns.lazy_init()
    check = getattr(mkldnn_fusion, "_is_packable_linear", None)
    entries = [
        entry
        for patterns in freezing_patterns.pass_patterns
        for listed in patterns.patterns.values()
        for entry in listed
        if check is not None and entry.extra_check is check
    ]
    return list({id(entry): entry for entry in entries}.values())


@functools.cache
def packs_float32_for_mkl() -> bool:
    """True if freezing packs float32 weights for MKL, where the number of rows is fixed."""
    import torch

    # Cached: in a compile the operator is called through torch's fake tensors, a quarter of a
    # millisecond each time.
    return bool(torch._C.has_mkl and not torch.ops.mkldnn._is_mkldnn_acl_supported())


def pack_for_onednn(node: Any, a: Any, b: Any, bias: Any, rows: Any) -> None:
    """Replace a linear by oneDNN's on a packed weight: what torch does for 16-bit weights."""
    import torch
    from torch._inductor.fx_passes import mkldnn_fusion

    device_op: Any = mkldnn_fusion._get_mkldnn_device_op("cpu")
    graph = node.graph
    with graph.inserting_before(node):
        weight = graph.call_function(torch.ops.aten.permute.default, (b, (1, 0)))
        packed = device_op.pack_linear_weight(graph, True, weight, rows)
        linear = device_op.pack_linear(graph, True, rows, a, packed, bias)
    node.replace_all_uses_with(linear)
    linear.meta.update(node.meta)
    graph.erase_node(node)
