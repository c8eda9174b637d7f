"""What flex attention's hooks are told, and what no release tells them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch_diode.integration.hooks.torch_compat.sizes import hints, traced_size_or_none


@dataclass(frozen=True)
class AttentionCall:
    """What a flex attention is called with beyond what its hooks are told, on any release."""

    queries: int
    """0 for a number known only at run time."""
    value_dim: int
    score_tensors: tuple[int, ...]
    """Bytes per element of the tensors that the function of scores reads, except those with fewer
    elements than there are keys."""
    mask_tensors: tuple[int, ...]
    """The same of the function of the mask."""


def attention_arguments(*args: Any) -> tuple[int, int, Any, str]:
    """The head dimension, the length of the queries or 0, dtype and device type of an attention:
    only the forward kernel of 2.14 and later is told the length."""
    head_dim, *length, dtype, device_type = args
    return int(head_dim), hints(length)[0] if length else 0, dtype, device_type


def attention_call() -> AttentionCall | None:
    """The attention being lowered; None outside of its lowering."""
    from torch._inductor.virtualized import V

    node = getattr(V.graph, "current_node", None)
    if node is None or "flex_attention" not in str(node.target) or len(node.args) < 9:
        return None
    queries, keys, values = (argument.meta["val"].shape for argument in node.args[:3])
    rows = traced_size_or_none(keys[-2]) or 1
    score, mask = (_element_bytes(tensors, rows) for tensors in node.args[-2:])
    value_dim = traced_size_or_none(values[-1]) or 0
    return AttentionCall(traced_size_or_none(queries[-2]) or 0, value_dim, score, mask)


def _element_bytes(tensors: Iterable[Any], least: int) -> tuple[int, ...]:
    """Bytes per element of the nodes that are tensors of this many elements, or of a number known
    only at run time."""
    values: list[Any] = [getattr(each, "meta", {}).get("val") for each in tensors]
    return tuple(
        value.element_size()
        for value in values
        if hasattr(value, "element_size") and (traced_size_or_none(value.numel()) or least) >= least
    )
