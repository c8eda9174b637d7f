"""The differences between torch releases, 2.9 to 2.15: all of them, and here only.

Each is told by what the interface looks like, not by a version. What other modules of this room
call on torch directly has been the same in all of these releases.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

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
    """Empty where this torch has what the matmul integration needs; else what is missing.

    Imports Inductor, so it is asked when torch uses it, or by someone who wants to know.
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
    """The method that hands out matmul choices: 2.10+ finalizes a list, 2.9 generates one."""
    from torch._inductor.choices import InductorChoices

    for name in (FINALIZE_HOOK, GENERATOR_HOOK):
        if hasattr(InductorChoices, name):
            return name
    return ""


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


@dataclass(frozen=True)
class Base:
    """What a template's choices have in common: everything Inductor derives but the config."""

    template: Any
    kwargs: dict[str, Any]
    make: Callable[[dict[str, Any]], Any]
    """From keyword arguments to the object the hook returns (2.9: None if it cannot be made)."""


def base_of(
    handler: Any, inputs: Any, template: Any, op: str, overrides: dict[str, Any], layout: Any
) -> Base | None:
    """The first choice Inductor itself would make of a template, to be changed into others.

    None where Inductor has no choice for these inputs. Call it with max-autotune patched on.
    """
    if matmul_hook() == GENERATOR_HOOK:
        return _base_of_caller(inputs, template, op, overrides, layout)
    first = next(iter(handler.get_ktc(inputs, template, op, overrides)), None)
    if first is None:
        return None

    def make(kwargs: dict[str, Any]) -> Any:
        return type(first)(
            template=first.template,
            params=type(first.params)(kwargs),
            extra_kwargs=first.extra_kwargs,
            layout=layout,
            inputs=first.inputs,
        )

    return Base(template, first.params.to_kwargs(), make)


def _base_of_caller(
    inputs: Any, template: Any, op: str, overrides: dict[str, Any], layout: Any
) -> Base | None:
    """As 2.9's `get_mm_configs` does it, which makes callers at once."""
    import torch._inductor.template_heuristics as heuristics

    source: Any = cast("Any", heuristics).get_template_heuristic(
        template.uid, inputs.device_type, op
    )
    first = next(iter(source.get_template_configs(inputs, layout, op)), None)
    if first is None:
        return None
    extra = {
        **source.get_extra_kwargs(inputs, layout, op),
        "layout": layout,
        "input_nodes": source.adjust_kernel_inputs(inputs, op).nodes(),
    }

    def make(kwargs: dict[str, Any]) -> Any:
        return template.choice_or_none(**kwargs, **extra)

    return Base(template, {**first, **overrides}, make)


def can_be_rendered(choice: Any) -> bool:
    """Whether a made choice yields a kernel: where it does not, Inductor drops it silently."""
    if choice is None:
        return False
    return matmul_hook() == GENERATOR_HOOK or choice.choice is not None


def fixed_layout(inputs: Any, layout: Any | None) -> Any:
    """The output's layout as a Triton template needs it: decided, not flexible."""
    from torch._inductor.ir import FixedLayout

    if hasattr(inputs, "output_layout"):
        return inputs.output_layout(flexible=False)
    if isinstance(layout, FixedLayout):
        return layout
    assert layout is not None
    return FixedLayout(layout.device, layout.dtype, layout.size)


def hints(values: Sequence[Any]) -> tuple[int, ...]:
    """The sizes Inductor optimises for, symbols replaced by their hints."""
    import sympy  # type: ignore[import-untyped]

    if all(isinstance(value, (int, sympy.Integer)) for value in values):
        return tuple(map(int, values))
    import torch._inductor.config as inductor_config
    from torch._inductor.virtualized import V

    sizevars: Any = V.graph.sizevars
    if hasattr(sizevars, "optimization_hints"):
        found = sizevars.optimization_hints(values)
    else:
        fallback = inductor_config.unbacked_symint_fallback
        found = sizevars.size_hints(values, fallback=fallback)
    return tuple(int(value) for value in found)


def torch_release() -> str:
    """The release of torch, such as 2.13.0."""
    import torch

    return torch.__version__.partition("+")[0]


def triton_release() -> str:
    """The release of triton; empty where it is not installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("triton")
    return ""


def size_seen(value: Any) -> int:
    """The number a traced size had when the program ran; the number itself where it is none."""
    return int(value.node.hint) if hasattr(value, "node") else int(value)


def tf32_allowed() -> bool:
    """Whether float32 products may be computed in TF32; the older switch raises where the newer
    one was used."""
    import torch

    matmul = torch.backends.cuda.matmul
    precision = getattr(matmul, "fp32_precision", None)
    return precision == "tf32" if precision is not None else bool(matmul.allow_tf32)


def offers_tma(mat1: Any, mat2: Any, layout: Any) -> bool:
    """Whether Inductor would take its TMA template for these, without adding guards for it."""
    import torch._inductor.utils as inductor_utils

    test: Any = inductor_utils.use_triton_tma_template
    if "output_layout" in _parameters(test):
        return bool(test(mat1, mat2, output_layout=layout))
    return bool(test(mat1, mat2))


def tma_template() -> Any | None:
    """The persistent TMA template for chips before Blackwell."""
    import torch._inductor.kernel.mm as mm

    return getattr(mm, "persistent_tma_mm_template", None)


def template_hashes() -> dict[str, str]:
    """The templates' hashes by the names candidates have, for tables that note them.

    Empty on 2.9, which has none, and where Inductor has not been imported: then nothing is being
    compiled with them either.
    """
    if "torch._inductor.kernel.mm" not in sys.modules:
        return {}
    import torch._inductor.kernel.bmm as bmm
    import torch._inductor.kernel.mm as mm

    found = [mm.mm_template, bmm.bmm_template, tma_template()]
    hashes = {t.uid: getattr(t, "src_hash", None) for t in found if t is not None}
    return {name: text for name, text in hashes.items() if text}


def add_preprocessing(function: Callable[[list[Any]], list[Any]]) -> Callable[[], None]:
    """Have Inductor pass every list of choices through a function; returns what undoes it."""
    import torch._inductor.select_algorithm as select

    select.add_preprocessing_fn(function)

    def undo() -> None:
        cache = select.get_algorithm_selector_cache()
        if function in cache.preprocessing_fns:
            cache.preprocessing_fns.remove(function)

    return undo


def marks_of(choice: Any) -> dict[str, Any]:
    """Where notes about a choice live: 2.10+ carries them from KTC to caller, 2.9 has no place."""
    notes = getattr(choice, "annotations", None)
    if not isinstance(notes, dict):
        notes = {}
        choice.annotations = notes
    return notes


def choices_slot(virtualized: ModuleType) -> Any:
    """Where torch keeps the choices handler; raises on a torch without it."""
    slot = virtualized._choices
    if not callable(slot._get_handler):
        raise MissingPartError(f"{virtualized.__name__}._choices has no _get_handler")
    return slot


def devices_in(example_inputs: Iterable[Any]) -> list[Any]:
    """The devices a graph's inputs are on, each once, in order."""
    found = (getattr(value, "device", None) for value in example_inputs)
    return list(dict.fromkeys(device for device in found if device is not None))
