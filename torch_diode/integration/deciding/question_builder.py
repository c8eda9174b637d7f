"""Inductor's arguments as questions, and answers in the form its hooks return."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

from torch_diode.heuristics.questions import (
    LONGEST_PERSISTENT,
    Convolution,
    CooperativeReduction,
    DepthwiseConvolution,
    Fusion,
    FusionPriority,
    KernelConfig,
    Node,
    PersistentReduction,
    Question,
    ReductionSplit,
)
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import NotApplicable
from torch_diode.types.hardware import Hardware

Ask = Callable[[Callable[[], Question]], Any]
"""Poses a question that is built by the callable; returns the checked answer, or None for torch's
own."""


def answer(hook: str, ask: Ask, own: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The return value of a hook, from torch's own and the answer of a function."""
    build = functools.partial(_BUILDERS[hook], own, *args, **kwargs)
    if hook == "get_conv_configs":
        # Inductor gives the sizes to what the hook returns.
        return lambda *sizes, **more: _configs(
            ask, list(own(*sizes, **more)), lambda default: build(default, *sizes)
        )
    if hook == "get_depthwise_conv_configs":
        return _configs(ask, own, build)
    answered = ask(build)
    if hook == "score_fusion":
        # Each score has a priority, so that all compare.
        return answered or 0, own
    return own if answered is None else answered


def _hardware(device: Any) -> Hardware:
    kind = str(device).partition(":")[0]
    if kind not in device_hardware.DEVICE_TYPES:
        raise NotApplicable
    if str(device) == kind and kind != "cpu":
        import torch

        device = torch.device(kind, getattr(torch, kind).current_device())
    return device_hardware.hardware_of(device)


def _persistent(own: bool, features: Any, cooperative_reduction: bool) -> Question:
    from torch._inductor.virtualized import V

    if torch_compat.is_strict_reduction(features):
        raise NotApplicable
    outputs, length = torch_compat.hints([features.numel, features.reduction_numel])
    return PersistentReduction(
        hardware=_hardware(V.graph.get_current_device_or_throw()),
        default=bool(own),
        outputs=outputs,
        length=length,
        bounded=torch_compat.known_at_most(features.reduction_numel, LONGEST_PERSISTENT),
        layout=str(features.get_reduction_hint().name).lower(),
        dtypes=_dtypes(features.scheduler_nodes()),
        cooperative=bool(cooperative_reduction),
    )


def _cooperative(own: bool, *args: Any) -> Question:
    device, *sizes = torch_compat.reduction_arguments(*args)
    return CooperativeReduction(_hardware(device), bool(own), *torch_compat.hints(sizes))


def _split(
    own: int, device: Any, reduction_numel_hint: Any, numel_hint: Any, inner_reduction: bool
) -> Question:
    outputs, length = torch_compat.hints([numel_hint, reduction_numel_hint])
    return ReductionSplit(_hardware(device), int(own), outputs, length, bool(inner_reduction))


def _fusion(own: bool, scheduler: Any, node1: Any, node2: Any, shared_data_score: Any) -> Question:
    return Fusion(
        hardware=_hardware(node1.get_device()),
        default=bool(own),
        first=_node(node1),
        second=_node(node2),
        shared_bytes=int(shared_data_score),
        producer=bool(node1.get_operation_names() & node2.ancestors),
    )


def _priority(own: Any, scheduler: Any, node1: Any, node2: Any) -> Question:
    return FusionPriority(_hardware(node1.get_device()), 0, _node(node1), _node(node2))


def _node(node: Any) -> Node:
    members = node.get_nodes()
    # Nodes of library calls have no ranges.
    shapes = [_shape(*part.get_ranges()) for part in members if hasattr(part, "get_ranges")]
    return Node(
        kind=next(
            (name for name in ("foreach", "template", "extern") if getattr(node, f"is_{name}")()),
            "reduction" if node.is_reduction() else "pointwise",
        ),
        ops=tuple(sorted({op for part in members for op in _ops(part)})),
        outputs=max((outputs for outputs, _ in shapes), default=0),
        length=max((length for _, length in shapes), default=1),
        dtypes=_dtypes(members),
    )


def _shape(ranges: Iterable[Any], reduced: Iterable[Any]) -> tuple[int, int]:
    outputs, length = (math.prod(torch_compat.hints(list(each))) for each in (ranges, reduced))
    return outputs, length


def _ops(part: Any) -> set[str]:
    origins = part.node.get_origins() if part.node is not None else ()
    targets = [origin.target for origin in origins if origin.op == "call_function"]
    return {getattr(target, "overloadpacket", target).__name__ for target in targets}


def _dtypes(parts: Iterable[Any]) -> tuple[str, ...]:
    buffers = [part.node for part in parts if hasattr(part.node, "get_dtype")]
    names = [str(buffer.get_dtype()).removeprefix("torch.") for buffer in buffers]
    return tuple(dict.fromkeys(names))


def _convolution(
    own: Any, device_type: str, default: tuple[KernelConfig, ...], *sizes: Any
) -> Question:
    return Convolution(_hardware(device_type), default, *torch_compat.hints(sizes[:3]))


def _depthwise(own: Any, device_type: str, default: tuple[KernelConfig, ...]) -> Question:
    return DepthwiseConvolution(_hardware(device_type), default)


def _configs(ask: Ask, own: list[Any], build: Callable[..., Question]) -> list[Any]:
    """Configs of Triton's, chosen among those of torch's own and made like them."""
    known = {_config(each): each for each in reversed(own)}
    answered = ask(lambda: build(tuple(map(_config, own)))) if own else None
    if answered is None:
        return own
    first = own[0]
    others = {name: size for name, size in first.kwargs.items() if not name.startswith("BLOCK")}
    return [
        known.get(each)
        or type(first)(
            {**others, **dict(each.blocks)}, num_stages=each.num_stages, num_warps=each.num_warps
        )
        for each in answered
    ]


def _config(own: Any) -> KernelConfig:
    blocks = tuple((n, int(size)) for n, size in own.kwargs.items() if n.startswith("BLOCK"))
    return KernelConfig(blocks, own.num_stages, own.num_warps)


_BUILDERS: dict[str, Callable[..., Question]] = {
    "should_use_persistent_reduction": _persistent,
    "should_use_cooperative_reduction": _cooperative,
    "reduction_split_factor": _split,
    "can_fuse": _fusion,
    "can_fuse_horizontal": _fusion,
    "score_fusion": _priority,
    "get_conv_configs": _convolution,
    "get_depthwise_conv_configs": _depthwise,
}
