"""Inductor's arguments as questions, and answers in the form its hooks return."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

from torch_diode.heuristics.questions import (
    LONGEST_PERSISTENT,
    Attention,
    AttentionBackward,
    AttentionDecode,
    AttentionForward,
    Convolution,
    CooperativeReduction,
    DepthwiseConvolution,
    Fusion,
    FusionPriority,
    Node,
    PersistentReduction,
    Question,
    ReductionSplit,
)
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import NotApplicable
from torch_diode.types.candidate import KernelConfig
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
            ask, list(own(*sizes, **more)), lambda **default: build(*sizes, **default)
        )
    if hook.endswith("_configs"):
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
    own: Any, device_type: str, *sizes: Any, default: tuple[KernelConfig, ...]
) -> Question:
    return Convolution(_hardware(device_type), default, *torch_compat.hints(sizes[:3]))


def _depthwise(own: Any, device_type: str, *, default: tuple[KernelConfig, ...]) -> Question:
    return DepthwiseConvolution(_hardware(device_type), default)


def _attention(
    kind: type[Attention], own: Any, *args: Any, default: tuple[KernelConfig, ...]
) -> Question:
    head_dim, queries, dtype, device_type = torch_compat.attention_arguments(*args)
    name = str(dtype).removeprefix("torch.")
    call = torch_compat.attention_call()
    return kind(
        hardware=_hardware(device_type),
        default=default,
        head_dim=head_dim,
        dtype=name,
        queries=queries or (call.queries if call else 0),
        tf32=torch_compat.tf32_allowed(),
        value_dim=(call.value_dim if call else 0) or head_dim,
        score_tensors=call.score_tensors if call else (),
        mask_tensors=call.mask_tensors if call else (),
    )


def _configs(ask: Ask, own: list[Any], build: Callable[..., Question]) -> list[Any]:
    """Inductor's configs that were answered, and others made like its first."""
    known = {_config(each): each for each in reversed(own)}
    answered = ask(lambda: build(default=tuple(map(_config, own)))) if own else None
    return (
        own if answered is None else [known.get(each) or _like(own[0], each) for each in answered]
    )


def _config(own: Any) -> KernelConfig:
    values = getattr(own, "kwargs", None) or vars(own)
    blocks = {name: int(size) for name, size in values.items() if name.lower().startswith("block")}
    return KernelConfig(tuple(blocks.items()), own.num_stages, own.num_warps)


def _like(own: Any, config: KernelConfig) -> Any:
    """A config of the same type, Triton's or a dataclass, with other values."""
    values = {"num_stages": config.num_stages, "num_warps": config.num_warps}
    if dataclasses.is_dataclass(own):
        return dataclasses.replace(own, **values, **dict(config.blocks))  # type: ignore[type-var]
    return type(own)({**own.kwargs, **dict(config.blocks)}, **values)


_BUILDERS: dict[str, Callable[..., Question]] = {
    "should_use_persistent_reduction": _persistent,
    "should_use_cooperative_reduction": _cooperative,
    "reduction_split_factor": _split,
    "can_fuse": _fusion,
    "can_fuse_horizontal": _fusion,
    "score_fusion": _priority,
    "get_conv_configs": _convolution,
    "get_depthwise_conv_configs": _depthwise,
    "get_flex_attention_fwd_configs": functools.partial(_attention, AttentionForward),
    "get_flex_attention_bwd_configs": functools.partial(_attention, AttentionBackward),
    "get_flex_decode_configs": functools.partial(_attention, AttentionDecode),
}
