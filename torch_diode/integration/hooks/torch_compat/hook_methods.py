"""The methods by which `InductorChoices` decides, and their arguments in each release."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from torch_diode.integration.hooks.torch_compat.sizes import hints
from torch_diode.types.errors import MissingPartError

FINALIZE_HOOK = "_finalize_template_configs"


GENERATOR_HOOK = "get_mm_configs"


_HOOK_ARGUMENTS = {
    FINALIZE_HOOK: ("template_choices", "kernel_inputs", "templates", "op_name", "kwarg_overrides"),
    GENERATOR_HOOK: ("kernel_inputs", "layout", "templates", "op_name", "kwarg_overrides"),
}


_NEEDED = {
    "torch._inductor.choices": ("InductorChoices",),
    "torch._inductor.codecache": ("FxGraphHashDetails",),
    "torch._inductor.kernel.bmm": ("bmm_template",),
    "torch._inductor.kernel.mm": ("mm_template",),
    "torch._inductor.kernel_inputs": ("MMKernelInputs",),
    "torch._inductor.ir": ("ExpandView", "FixedLayout", "TensorBox"),
    "torch._inductor.select_algorithm": ("realize_inputs", "add_preprocessing_fn"),
    "torch._inductor.utils": ("use_triton_template", "use_triton_tma_template"),
    "torch._inductor.virtualized": ("V", "_choices"),
}


def why_unusable() -> str:
    """Empty if this torch has everything the matmul integration needs, else what is missing.

    Imports Inductor.
    """
    for module_name, names in _NEEDED.items():
        try:
            module = __import__(module_name, fromlist=["_"])
        except ImportError as fault:
            return f"{module_name} cannot be imported ({fault})"
        for name in names:
            if not hasattr(module, name):
                return f"{module_name} has no {name}"
    return _why_hook_unusable()


def _why_hook_unusable() -> str:
    from torch._inductor.choices import InductorChoices

    hook = matmul_hook()
    if not hook:
        return f"InductorChoices has neither {FINALIZE_HOOK} nor {GENERATOR_HOOK}"
    missing = set(_HOOK_ARGUMENTS[hook]) - _parameters(getattr(InductorChoices, hook))
    if missing:
        return f"InductorChoices.{hook} has no argument {', '.join(sorted(missing))}"
    if hook == FINALIZE_HOOK and not hasattr(InductorChoices, "get_ktc"):
        return "InductorChoices has no get_ktc"
    return ""


@functools.cache
def matmul_hook() -> str:
    """The method for matmul choices: 2.10+ finalizes a list, 2.9 generates one."""
    from torch._inductor.choices import InductorChoices

    for name in (FINALIZE_HOOK, GENERATOR_HOOK):
        if hasattr(InductorChoices, name):
            return name
    return ""


def other_hook(handler: Any) -> str:
    """The name of the class whose matmul hook ours overrides; empty for torch's default."""
    from torch._inductor.choices import InductorChoices

    hook = matmul_hook()
    for registered in vars(handler).get("_choices", ()):  # 2.15: those of torch's own register
        if getattr(type(registered), hook) is not getattr(InductorChoices, hook):
            return type(registered).__name__
    ours = False
    for part in type(handler).__mro__:
        if part.__module__.startswith("torch_diode."):
            ours = True
        elif ours and hook in vars(part):
            return "" if part is InductorChoices else part.__name__
    return ""


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


def attention_arguments(*args: Any) -> tuple[int, int, Any, str]:
    """The head dimension, the length of the queries or 0, dtype and device type of an attention:
    only the forward kernel of 2.14 and later is told the length."""
    head_dim, *length, dtype, device_type = args
    return int(head_dim), hints(length)[0] if length else 0, dtype, device_type


def is_strict_reduction(features: Any) -> bool:
    """True if the order of additions is fixed (an option since 2.15), and persistence with it."""
    strict = getattr(features, "strict_reduction_rblock", None)
    return strict is not None and strict() is not None


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


def choices_slot(virtualized: ModuleType) -> Any:
    """Torch's slot for the choices handler; raises on a torch without it."""
    slot = virtualized._choices
    if not callable(slot._get_handler):
        raise MissingPartError(f"{virtualized.__name__}._choices has no _get_handler")
    return slot
