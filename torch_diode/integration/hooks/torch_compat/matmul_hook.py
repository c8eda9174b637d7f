"""The method by which `InductorChoices` decides matmuls: its name, and what else must be there."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

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


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)
