"""The methods by which `InductorChoices` decides beyond matmul, and their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_ANSWER_HOOKS = {
    "reduction": (
        "should_use_persistent_reduction",
        "should_use_cooperative_reduction",
        "reduction_split_factor",
    ),
    "convolution": ("get_conv_configs", "get_depthwise_conv_configs"),
    "fusion": ("can_fuse", "can_fuse_horizontal", "score_fusion"),
    "attention": (
        "get_flex_attention_fwd_configs",
        "get_flex_attention_bwd_configs",
        "get_flex_decode_configs",
    ),
}
_HOOKS_SINCE_2_12 = {"get_depthwise_conv_configs"}


def answer_hooks(decisions: Iterable[str]) -> tuple[str, ...]:
    """The methods by which this release takes decisions beyond matmul; one that every release has
    is named even if it is missing here, which is then a failed step."""
    from torch._inductor.choices import InductorChoices

    return tuple(
        hook
        for decision in dict.fromkeys(decisions)
        for hook in _ANSWER_HOOKS[decision]
        if hook not in _HOOKS_SINCE_2_12 or hasattr(InductorChoices, hook)
    )


def reduction_arguments(*args: Any) -> tuple[Any, Any, Any]:
    """The device, the outputs and the length of a reduction that may be cooperative: releases
    before 2.13 give the features of its kernel instead."""
    if len(args) == 3:
        return args
    from torch._inductor.virtualized import V

    (features,) = args
    return V.graph.get_current_device_or_throw(), features.numel, features.reduction_numel


def is_strict_reduction(features: Any) -> bool:
    """True if the order of additions is fixed (an option since 2.15), and persistence with it."""
    strict = getattr(features, "strict_reduction_rblock", None)
    return strict is not None and strict() is not None
